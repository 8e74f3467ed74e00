use super::*;

/// The gains that the ST-PD thesis prints for m = 3, and the same exchanged.
const PRINTED: (f64, f64) = (0.368, 0.033);
const EXCHANGED: (f64, f64) = (0.033, 0.368);

fn s0((kp, kd): (f64, f64)) -> Loop {
    Loop::of_s0(3, kp, kd)
}

/// The recursion through queue and error is equation 4.17 with both eliminated:
/// `a(n) = 2 a(n-1) - a(n-2) + (kp+kd) v(n-m) - kd v(n-m-1)`, `v(n) = r(n) - r(n-1) + d(n) - a(n)`.
#[test]
fn the_recursion_is_the_closed_form() {
    let (kp, kd) = EXCHANGED;
    let m = 3;
    let p = 40;
    let steps = 200usize;
    let r = |n: usize| 1.0 + f64::from(u8::from((p..=p + m).contains(&n)));
    let mut a: Vec<f64> = Vec::new();
    for n in 0..steps {
        let at = |ago: usize| n.checked_sub(ago).map_or(0.0, |i| a[i]);
        let v = |ago: usize| {
            let Some(i) = n.checked_sub(ago) else { return 0.0 };
            let before = if i == 0 { 0.0 } else { r(i - 1) };
            r(i) - before + 1.0 - a[i]
        };
        a.push(2.0 * at(1) - at(2) + (kp + kd) * v(m) - kd * v(m + 1));
    }
    let ours = s0(EXCHANGED).arrivals(LoopStart::Rest, Some(p), steps);
    for (n, (x, y)) in ours.iter().zip(&a).enumerate() {
        assert!((x - y).abs() < 1e-9, "a({n}): {x}, by 4.17 {y}");
    }
}

#[test]
fn the_printed_poles_belong_to_the_gains_exchanged() {
    let poles = s0(EXCHANGED).characteristic().roots();
    let printed = [(0.8961, 0.0), (0.8031, 0.4155), (0.8031, -0.4155), (-0.5023, 0.0)];
    for (pole, (re, im)) in poles.iter().zip(printed) {
        assert!((pole.re - re).abs() < 6e-5 && (pole.im - im).abs() < 6e-5, "{poles:?}");
    }
    assert!(s0(EXCHANGED).is_stable() && !s0(PRINTED).is_stable());
    assert!((s0(PRINTED).characteristic().largest_modulus() - 1.2388).abs() < 5e-5);
}

#[test]
fn a_loss_is_answered_after_a_round_trip_and_forgotten() {
    let a = s0(EXCHANGED).arrivals(LoopStart::Equilibrium, Some(10), 200);
    assert!(a[..13].iter().all(|x| *x == 1.0), "news takes a round trip");
    assert!((a[13] - 1.401).abs() < 1e-12, "kp + kd");
    let peak = (0..200).max_by(|i, j| a[*i].total_cmp(&a[*j])).unwrap();
    assert_eq!(peak, 15);
    assert!((a[199] - 1.0).abs() < 1e-3);
    assert_eq!(s0(EXCHANGED).settling_time(), Some(32));
    let diverges = s0(PRINTED).arrivals(LoopStart::Equilibrium, Some(10), 200);
    assert!(diverges.iter().any(|x| x.abs() > 1e6));
    assert_eq!(s0(PRINTED).largest_loss_rate(), None);
}

/// The loop that ACKs clock has a closed form for its limit: 2 sin(pi / (2 (2 m - 1))) without a derivative.
#[test]
fn the_stability_limit_is_the_closed_form() {
    for (delay, limit) in [(1, 2.0), (2, 1.0), (3, 0.618_034), (4, 0.445_042), (10, 0.165_159)] {
        let bare = Loop { delay, kp: 0.0, kd: 0.0, clocked_by_acks: true };
        let ours = bare.largest_stable_kp();
        assert!((ours - limit).abs() < 1e-5, "m = {delay}: {ours}");
    }
    assert_eq!(Loop::of_s0(3, 0.0, 0.0).largest_stable_kp(), 0.0, "two integrators, no damping");
}

#[test]
fn throughput_is_the_mean_over_the_places_of_the_loss() {
    for start in [LoopStart::Rest, LoopStart::Equilibrium] {
        let used = |place| {
            let arrivals = s0(EXCHANGED).arrivals(start, Some(place), 33);
            arrivals.iter().map(|a| a.min(1.0)).sum::<f64>() / 33.0
        };
        let mean = (0..33).map(used).sum::<f64>() / 33.0;
        assert!((s0(EXCHANGED).throughput(start, 33) - mean).abs() < 1e-12, "{mean}");
    }
}

#[test]
fn fewer_losses_leave_more_throughput() {
    let of = |k| s0(EXCHANGED).throughput(LoopStart::Equilibrium, k);
    assert!((of(100) - 0.9704).abs() < 1e-4, "{}", of(100));
    assert!((of(1000) - 0.9966).abs() < 1e-4, "{}", of(1000));
    assert!(of(30) < of(100) && of(10_000) < 1.0);
    let from_rest = s0(EXCHANGED).throughput(LoopStart::Rest, 100);
    assert!((from_rest - 0.9212).abs() < 1e-4, "{from_rest}");
}
