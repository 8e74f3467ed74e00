//! A packet that is longer than a message: in two of them.
//!
//! ```text
//! message: | flow (4) | IP packet |
//!          | flow (4) | half (1) | packet's number (2) | bytes |      half: 0 the first, 1 the second
//! ```
//!
//! IP itself begins with 4 or 6. Whoever has one half waits for the other among the newest [`WAITING`] packets.

use super::MAX_MTU;

/// Packets of which one half is kept.
pub const WAITING: usize = 16;
/// Bytes before a half.
pub const HEAD: usize = 3;

/// Both halves of a packet, as messages of a flow that have room for so many bytes; `None` if that is too short.
pub fn split(packet: &[u8], number: u16, room: usize) -> Option<[Vec<u8>; 2]> {
    let (first, second) = packet.split_at_checked(packet.len().div_ceil(2))?;
    let half = |which: u8, bytes: &[u8]| {
        let [high, low] = number.to_be_bytes();
        [&[which, high, low], bytes].concat()
    };
    (HEAD + first.len() <= room).then(|| [half(0, first), half(1, second)])
}

/// Halves that wait for the other one.
#[derive(Debug, Default)]
pub struct Halves([Option<(u16, u8, Vec<u8>)>; WAITING]);

impl Halves {
    /// A half has come: the packet, if it is whole now. What is no half is dropped.
    pub fn join(&mut self, message: &[u8]) -> Option<Vec<u8>> {
        let ([which @ (0 | 1), high, low], bytes) = message.split_first_chunk::<HEAD>()? else {
            return None;
        };
        let number = u16::from_be_bytes([*high, *low]);
        let slot = self.0.get_mut(usize::from(number) % WAITING)?;
        if bytes.len() > MAX_MTU {
            return None;
        }
        match slot.take() {
            Some((other, of, kept)) if other == number && of != *which => {
                let whole = if of == 0 { [&kept, bytes].concat() } else { [bytes, &kept].concat() };
                (whole.len() <= MAX_MTU).then_some(whole)
            }
            _ => {
                *slot = Some((number, *which, bytes.to_vec()));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn halves_join_in_either_order(packet in prop::collection::vec(any::<u8>(), 1..=MAX_MTU), number: u16, swap: bool) {
            let mut halves = split(&packet, number, 1000).unwrap();
            if swap {
                halves.swap(0, 1);
            }
            let mut waiting = Halves::default();
            prop_assert_eq!(waiting.join(&halves[0]), None);
            prop_assert_eq!(waiting.join(&halves[0]), None, "a copy is no other half");
            prop_assert_eq!(waiting.join(&halves[1]), Some(packet));
        }

        #[test]
        fn whatever_comes_is_bounded(messages in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..40)) {
            let mut waiting = Halves::default();
            for message in messages {
                if let Some(whole) = waiting.join(&message) {
                    prop_assert!(whole.len() <= MAX_MTU);
                }
            }
        }
    }

    #[test]
    fn a_half_that_is_lost_costs_one_packet() {
        let mut waiting = Halves::default();
        let [first, _] = split(&[1; 100], 5, 100).unwrap();
        assert_eq!(waiting.join(&first), None);
        // So many later, the place is another packet's.
        let [first, second] = split(&[2; 100], 5 + WAITING as u16, 100).unwrap();
        assert_eq!(waiting.join(&first), None);
        assert_eq!(waiting.join(&second), Some(vec![2; 100]));
        assert_eq!(split(&[3; 100], 1, 52), None, "too short for half of it");
    }
}
