use super::*;
use proptest::prelude::*;

/// Lost ranges, in order, if these numbers arrive a millisecond apart.
fn lost(reorder: u32, arrivals: &[u64]) -> Vec<(u64, u64)> {
    let mut d = Detector::new(reorder);
    let mut out = Vec::new();
    for (i, seq) in arrivals.iter().enumerate() {
        d.arrive(*seq, i as f64 * 1e-3);
        while let Some(gap) = d.lost(0.0, 0.0) {
            out.push((gap.from, gap.to));
        }
    }
    out
}

#[test]
fn three_later_packets_tell_a_loss() {
    assert_eq!(lost(3, &[0, 1, 3, 4]), []);
    assert_eq!(lost(3, &[0, 1, 3, 4, 5]), [(2, 3)]);
    assert_eq!(lost(1, &[0, 1, 3]), [(2, 3)], "ns-2 waits for one");
    assert_eq!(lost(3, &[0, 4, 5, 6, 9, 10, 11]), [(1, 4), (7, 9)]);
}

#[test]
fn reordering_within_three_is_no_loss() {
    assert_eq!(lost(3, &[0, 3, 1, 2, 6, 4, 7, 5, 8, 9, 10]), []);
    // 2 is filled in the middle of 1..4; 1 and 3 stay missing.
    assert_eq!(lost(3, &[0, 4, 2, 5, 6]), [(1, 2), (3, 4)]);
    // Too late: 1 was lost already, once.
    assert_eq!(lost(3, &[0, 2, 3, 4, 1, 5, 6, 7]), [(1, 2)]);
}

/// With a window, three later packets indicate no loss before it has passed.
#[test]
fn late_packets_are_noticed_and_waited_for() {
    let mut d = Detector::new(3);
    for (seq, at) in [(0, 0.0), (2, 0.002), (3, 0.003), (4, 0.004)] {
        assert_eq!(d.arrive(seq, at), None);
    }
    assert!(d.lost(0.004, 0.01).is_none());
    assert_eq!(d.lost(0.012, 0.01).map(|gap| (gap.from, gap.to)), Some((1, 2)));
    let late = d.arrive(1, 0.013).unwrap();
    assert!((late - 0.011).abs() < 1e-12, "{late}");
}

#[test]
fn a_loss_has_the_time_between_its_neighbours() {
    let mut d = Detector::new(1);
    d.arrive(10, 1.0);
    d.arrive(15, 2.0);
    let gap = d.lost(2.0, 0.0).unwrap();
    assert!((gap.time(11) - 1.2).abs() < 1e-12 && (gap.time(14) - 1.8).abs() < 1e-12);
    assert_eq!(gap.first_after(0.0), Some(11));
    assert_eq!(gap.first_after(1.5), Some(13));
    assert_eq!(gap.first_after(1.8), None);
    assert_eq!(gap.stride(0.25), 2);
}

proptest! {
    /// Any numbers: few ranges wait, each missing number is lost at most once, and no number that arrived before is
    /// lost.
    #[test]
    fn memory_is_bounded_and_losses_are_true(
        steps in prop::collection::vec((0u64..12, any::<bool>(), 0u64..u64::MAX / 4), 1..300),
        reorder in 1u32..8,
        window in prop_oneof![Just(0.0), 0.0f64..300.0],
    ) {
        let mut d = Detector::new(reorder);
        let mut base = 1_000_u64;
        let mut seen = Vec::new();
        let mut reported_to = 0_u64;
        for (i, (step, jump, far)) in steps.iter().enumerate() {
            let seq = if *jump && i % 37 == 0 { base.saturating_add(far / 64) } else { base + step };
            base = seq.max(base).saturating_sub(4);
            if seen.contains(&seq) {
                continue;
            }
            d.arrive(seq, i as f64);
            seen.push(seq);
            while let Some(gap) = d.lost(i as f64, window) {
                prop_assert!(gap.from < gap.to && gap.from >= reported_to);
                prop_assert!(!seen.iter().any(|s| (gap.from..gap.to).contains(s)));
                reported_to = gap.to;
            }
            let max = if window > 0.0 { MAX_GAPS.max(reorder as usize) } else { reorder as usize };
            prop_assert!(d.gaps.len() <= max && d.lost.len() <= MAX_GAPS);
        }
    }
}
