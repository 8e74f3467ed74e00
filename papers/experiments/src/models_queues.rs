//! Closed forms of managed queues under unresponsive traffic.

use super::Arguments;

/// RED's average queue under a constant overload. The dropped share 1 - 1/load determines the mean distance between
/// drops, from which the probability follows, and from that the average. NaN if RED cannot drop that much.
pub fn red_average(a: &Arguments) -> f64 {
    let waits = a["wait"] > 0.0;
    let wanted = 1.0 / (1.0 - 1.0 / a["load"]);
    // The distance falls with the probability.
    let mut low = 1e-4;
    let mut high = 1.0;
    if !(distance(low, waits) >= wanted && distance(high, waits) <= wanted) {
        return f64::NAN;
    }
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if distance(middle, waits) > wanted { low = middle } else { high = middle }
    }
    let min = a["min"];
    let max = a["max"];
    let max_p = a["max_p"];
    if low <= max_p {
        min + (max - min) * low / max_p
    } else {
        // Gentle: from max_p at max to 1 at twice max.
        max + max * (low - max_p) / (1.0 - max_p)
    }
}

/// Mean packets from drop to drop at a probability `p` by the average: the n-th packet is dropped with p / (1 - n p).
/// With `waits`, no packet is dropped below n p = 1, and from there with p / (2 - n p).
fn distance(p: f64, waits: bool) -> f64 {
    let mut alive = 1.0;
    let mut sum = 0.0;
    let mut n = 0.0;
    while alive > 1e-12 {
        sum += alive;
        n += 1.0;
        let passed = n * p;
        let struck = match waits {
            true if passed < 1.0 => 0.0,
            true if passed < 2.0 => p / (2.0 - passed),
            false if passed < 1.0 => p / (1.0 - passed),
            _ => 1.0,
        };
        alive *= 1.0 - struck.min(1.0);
    }
    sum
}

/// The n-th drop is followed by the next after interval / √n.
pub fn codel_drops(interval: f64, seconds: f64) -> f64 {
    let mut at = 0.0;
    let mut drops = 0.0f64;
    while at <= seconds && drops < 1e7 {
        drops += 1.0;
        at += interval / drops.sqrt();
    }
    drops
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Even over 1/p to 2/p - 1, and over 1 to 1/p - 1.
    #[test]
    fn uniform_distances_have_their_mean() {
        for n in [4.0, 10.0, 50.0] {
            assert!((distance(1.0 / n, true) - (1.5 * n - 0.5)).abs() < 1e-6, "{n}");
            assert!((distance(1.0 / n, false) - n / 2.0).abs() < 1e-6, "{n}");
        }
    }

    #[test]
    fn red_at_twice_the_capacity_drops_every_other_packet() {
        let of = |wait: f64, load: f64| {
            let a = [("min", 20.0), ("max", 60.0), ("max_p", 0.25), ("load", load), ("wait", wait)];
            red_average(&a.map(|(k, v)| (k.to_string(), v)).into())
        };
        // Half is dropped: p is a quarter, which is max_p.
        assert!((of(0.0, 2.0) - 60.0).abs() < 1e-3, "{}", of(0.0, 2.0));
        // A packet in ten, with waiting: 10 = 1.5 / p - 0.5, so p = 1/7.
        assert!((of(1.0, 10.0 / 9.0) - (20.0 + 40.0 * 4.0 / 7.0)).abs() < 1e-3);
        assert!(of(1.0, 0.9).is_nan(), "below the capacity nothing is dropped");
    }

    #[test]
    fn drops_follow_interval_over_root_of_their_count() {
        assert_eq!(codel_drops(0.1, 0.0), 1.0);
        assert_eq!(codel_drops(0.1, 0.11), 2.0);
        assert_eq!(codel_drops(0.1, 0.1 + 0.0708), 3.0);
        // 2 interval √n in the long run.
        assert!((codel_drops(0.1, 20.0) / 10_000.0 - 1.0).abs() < 0.02);
    }
}
