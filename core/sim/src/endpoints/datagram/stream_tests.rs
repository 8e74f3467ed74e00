//! A stream's sending side: bytes are sent until they arrive, and not after that.

use super::*;
use proptest::prelude::*;

#[test]
fn lost_ranges_go_first_and_delivered_ones_never_again() {
    let mut s = OutgoingStream::default();
    s.push(5000);
    let new = |offset| Some(SentRange { offset, length: 1000, again: false, copy: false });
    assert_eq!((s.take(1000), s.take(1000), s.take(1000)), (new(0), new(1000), new(2000)));
    s.arrived(1000, 1000);
    assert!(s.send_again(0, 1000) && !s.send_again(1000, 1000));
    assert!(s.send_again(0, 3000), "a range with a hole in it");
    let again = |offset| Some(SentRange { offset, length: 1000, again: true, copy: false });
    assert_eq!((s.take(1000), s.take(1000), s.take(1000)), (again(0), again(2000), new(3000)));
    // A packet that was declared lost arrives before its retransmission.
    s.send_again(2000, 1000);
    s.arrived(2000, 1000);
    assert_eq!(
        s.take(4000),
        Some(SentRange { offset: 4000, length: 1000, again: false, copy: false })
    );
    s.arrived(0, 1000);
    s.arrived(3000, 2000);
    assert!(s.is_empty() && s.all_arrived());
}

proptest! {
    /// With packets of any size, losses, late packets and duplicates, every byte arrives in the end.
    #[test]
    fn every_byte_is_delivered(
        steps in prop::collection::vec((1u32..50, 0u8..4, 0usize..8), 1..200),
        bytes in 1u64..2000,
    ) {
        let mut s = OutgoingStream::default();
        s.push(bytes);
        let mut out: Vec<SentRange> = Vec::new();
        let mut received = vec![false; bytes as usize];
        let mut deliver = |s: &mut OutgoingStream, l: &SentRange| {
            s.arrived(l.offset, l.length);
            received[l.offset as usize..][..l.length as usize].fill(true);
        };
        for (max, what, which) in steps {
            match what {
                0 | 1 => out.extend(s.take(max)),
                _ if out.is_empty() => {}
                2 => { let l = out.remove(which % out.len()); deliver(&mut s, &l); }
                // Declared lost, but may arrive late.
                _ => { let l = out[which % out.len()]; s.send_again(l.offset, l.length); }
            }
        }
        for l in out.drain(..) {
            s.send_again(l.offset, l.length);
        }
        let mut rounds = 0;
        while let Some(l) = s.take(37) {
            deliver(&mut s, &l);
            rounds += 1;
            prop_assert!(rounds <= 2000);
        }
        prop_assert!(s.all_arrived() && s.is_empty());
        prop_assert!(received.iter().all(|c| *c));
    }
}
