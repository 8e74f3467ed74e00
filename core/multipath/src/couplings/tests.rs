//! The equations of the sources, with values computed by hand.

use super::{balia, lia, olia, shared, uncoupled};
use crate::{COUPLING_NAMES, COUPLINGS, CoupledPath, CouplingEntry};
use narrows_base::list::Listed as _;
use narrows_base::{Duration, WindowChange};
use proptest::prelude::*;

fn path(cwnd: f64, ms: u64, loss_interval: f64) -> CoupledPath {
    CoupledPath { cwnd, srtt: Duration::from_millis(ms), loss_interval }
}

fn change(entry: &CouplingEntry, paths: &[CoupledPath], path: usize) -> WindowChange {
    (entry.change)(paths, path).unwrap()
}

fn assert_near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9 * b.abs().max(1.0), "{a} is not {b}");
}

/// With equal RTTs alpha is the largest window over the sum: 10 / 20 and 30 / 40.
#[test]
fn lia_alpha_with_equal_rtts_is_share_of_largest_window() {
    let equal = [path(10.0, 100, 0.0), path(10.0, 100, 0.0)];
    assert_near(lia::alpha(&equal), 0.5);
    assert_near(change(&lia::ENTRY, &equal, 0).increase, 0.5 / 20.0);
    let unequal = [path(30.0, 100, 0.0), path(10.0, 100, 0.0)];
    assert_near(lia::alpha(&unequal), 0.75);
    assert_near(change(&lia::ENTRY, &unequal, 1).increase, 0.75 / 40.0);
}

/// Windows 10 and 20, RTTs 100 and 400 ms: best 10 / 0.01 = 1000, rate 100 + 50 = 150, so alpha = 30 · 1000 / 22500.
#[test]
fn lia_alpha_with_unequal_rtts_follows_equation_2() {
    let paths = [path(10.0, 100, 0.0), path(20.0, 400, 0.0)];
    assert_near(lia::alpha(&paths), 4.0 / 3.0);
    assert_near(change(&lia::ENTRY, &paths, 0).increase, 4.0 / 3.0 / 30.0);
    // Windows 1 and 80, RTTs 10 and 400 ms: alpha / total = (1 / 0.0001) / (100 + 200)² = 1 / 9, more than one flow's.
    let large = [path(1.0, 10, 0.0), path(80.0, 400, 0.0)];
    assert_near(change(&lia::ENTRY, &large, 0).increase, 1.0 / 9.0);
    assert_near(change(&lia::ENTRY, &large, 1).increase, 1.0 / 80.0);
    assert_eq!(change(&lia::ENTRY, &large, 1).decrease, 0.5);
}

/// Windows 20 and 10, RTTs 100 ms; the second path loses less, so half a packet per window moves to it.
#[test]
fn olia_moves_window_to_best_path_with_smaller_window() {
    let paths = [path(20.0, 100, 50.0), path(10.0, 100, 100.0)];
    assert_near(olia::alpha(&paths, 0), -0.5);
    assert_near(olia::alpha(&paths, 1), 0.5);
    // 20 / 0.01 / 300² and 10 / 0.01 / 300².
    assert_near(change(&olia::ENTRY, &paths, 0).increase, 2000.0 / 90_000.0 - 0.5 / 20.0);
    assert_near(change(&olia::ENTRY, &paths, 1).increase, 1000.0 / 90_000.0 + 0.5 / 10.0);
    // The best path has the largest window, too.
    let settled = [path(20.0, 100, 100.0), path(10.0, 100, 50.0)];
    assert_near(olia::alpha(&settled, 0), 0.0);
    assert_near(olia::alpha(&settled, 1), 0.0);
    // l² / rtt: 100² / 0.4 is below 60² / 0.1.
    let far = [path(20.0, 400, 100.0), path(10.0, 100, 60.0)];
    assert_near(olia::alpha(&far, 1), 0.5);
}

/// Rates 200 and 100 packets per second, so alpha is 1 and 2.
#[test]
fn balia_follows_section_of_draft() {
    let paths = [path(20.0, 100, 0.0), path(10.0, 100, 0.0)];
    let fast = change(&balia::ENTRY, &paths, 0);
    assert_near(fast.increase, 2000.0 / 90_000.0);
    assert_near(fast.decrease, 0.5);
    let slow = change(&balia::ENTRY, &paths, 1);
    assert_near(slow.increase, 1000.0 / 90_000.0 * 1.5 * 1.2);
    assert_near(slow.decrease, 0.25);
}

#[test]
fn coupling_names_and_list_agree() {
    let listed: Vec<_> = COUPLINGS.built_in().iter().map(|e| e.name()).collect();
    assert_eq!(listed, COUPLING_NAMES);
    for entry in [uncoupled::ENTRY, shared::ENTRY] {
        assert!((entry.change)(&[path(1.0, 1, 1.0)], 0).is_none());
    }
}

proptest! {
    #[test]
    fn coupling_of_one_path_is_reno(cwnd in 1.0..1e6, ms in 1_u64..10_000, interval in 0.0..1e9) {
        for entry in [lia::ENTRY, olia::ENTRY, balia::ENTRY] {
            let one = change(&entry, &[path(cwnd, ms, interval)], 0);
            assert_near(one.increase * cwnd, 1.0);
            assert_near(one.decrease, 0.5);
        }
    }

    #[test]
    fn olia_shifts_sum_to_zero(
        paths in prop::collection::vec((1_u8..20, 1_u64..50, 0_u8..20), 1..5),
    ) {
        let paths: Vec<_> =
            paths.iter().map(|(w, ms, l)| path(f64::from(*w), *ms, f64::from(*l))).collect();
        let sum: f64 = (0..paths.len()).map(|n| olia::alpha(&paths, n)).sum();
        assert_near(sum, 0.0);
    }
}
