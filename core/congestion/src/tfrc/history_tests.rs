use super::*;

fn history() -> LossHistory {
    LossHistory::new(8, true, false)
}

#[test]
fn weights_are_the_rfcs() {
    let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-12);
    assert!(close(&history().weights, &[1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2]));
    for n in 2..=64 {
        let h = LossHistory::new(n, true, false);
        assert_eq!(h.weights.len(), n);
        assert!(h.weights.windows(2).all(|w| w[0] >= w[1]) && h.weights[n - 1] > 0.0, "{n}");
    }
}

/// Choi 2006, figure 6.2: a loss every 100, 20 or 10 packets gives exactly that mean.
#[test]
fn a_constant_period_is_found_exactly() {
    for ns2 in [false, true] {
        for period in [100_u64, 20, 10] {
            let mut h = LossHistory::new(8, true, ns2);
            h.begin(1000.0, 0);
            for i in 1..=9 {
                h.event(i * period);
            }
            // The pretended first interval has left the history; I_0 is short and does not count.
            let mean = h.mean(9 * period + 1).unwrap();
            assert!((mean - period as f64).abs() < 1e-9, "{period}: {mean}");
            assert_eq!(h.loss_event_rate(9 * period + 1), 1.0 / mean);
        }
    }
}

#[test]
fn the_open_interval_only_ever_lowers_the_loss_event_rate() {
    for ns2 in [false, true] {
        let mut h = LossHistory::new(8, true, ns2);
        h.begin(50.0, 0);
        for start in [30, 130, 140, 300] {
            h.event(start);
            let mut before = 1.0;
            for top in start..start + 2000 {
                let p = h.loss_event_rate(top);
                assert!(p <= before, "{start} {top}: {p} after {before}");
                before = p;
            }
        }
    }
}

/// Eight intervals of 10, then I_0 of 100: DF = max(0.5, 2 * 10 / 100) = 0.5, so
/// I_mean = (100 + 0.5 * 10 * 5) / (1 + 0.5 * 5) = 125 / 3.5 (weights of I_1..I_7 sum to 5).
#[test]
fn a_long_interval_discounts_the_older_ones() {
    let mut h = history();
    h.begin(10.0, 0);
    for i in 1..=7 {
        h.event(i * 10);
    }
    let mean = h.mean(70 + 100).unwrap();
    assert!((mean - 125.0 / 3.5).abs() < 1e-9, "{mean}");
    // The next event folds the discount in: I_1 = 100 whole, I_2 to I_8 at half.
    h.event(170);
    let mean = h.mean(171).unwrap();
    assert!((mean - 125.0 / 3.5).abs() < 1e-9, "{mean}");
    // Between 2 and 4 times the mean the discount is the ratio itself: 20 / 25.
    let mut h = history();
    h.begin(10.0, 0);
    for i in 1..=7 {
        h.event(i * 10);
    }
    let mean = h.mean(70 + 25).unwrap();
    assert!((mean - (25.0 + 0.8 * 50.0) / (1.0 + 0.8 * 5.0)).abs() < 1e-9, "{mean}");
    // Without discounting the plain average: (100 + 50) / 6.
    let mut h = LossHistory::new(8, false, false);
    h.begin(10.0, 0);
    for i in 1..=7 {
        h.event(i * 10);
    }
    assert!((h.mean(170).unwrap() - 25.0).abs() < 1e-9);
}

/// While the history is short the RFC averages as many intervals with I_0 as without; ns-2 adds
/// I_0 to them.
#[test]
fn short_history_is_averaged_over_its_intervals() {
    let mean = |ns2| {
        let mut h = LossHistory::new(8, false, ns2);
        h.begin(10.0, 0);
        h.mean(30).unwrap()
    };
    assert_eq!((mean(false), mean(true)), (30.0, 20.0));
}

#[test]
fn absurd_numbers_stay_numbers() {
    let mut h = history();
    assert_eq!(h.loss_event_rate(u64::MAX), 0.0);
    h.begin(f64::INFINITY, 5);
    h.event(3);
    h.event(u64::MAX);
    let p = h.loss_event_rate(0);
    assert!((0.0..=1.0).contains(&p), "{p}");
}
