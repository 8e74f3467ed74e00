//! TCP's throughput equation as in Choi 2006 (equations 4.2, 4.4, 5.5), and its inverse for a window.

use crate::positive;
use narrows_base::Duration;

/// Least loss event rate: intervals are at most 10^8 packets.
pub const MIN_LOSS_RATE: f64 = 1e-8;
/// The grid of Choi 2006, algorithm 1.
const GRID: f64 = 1e-5;

/// f(p): round trips per packet at loss event rate `p` (Choi 2006, equation 4.2).
pub fn f(p: f64) -> f64 {
    let p = p.clamp(MIN_LOSS_RATE, 1.0);
    (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p)
}

/// W: packets per round trip at loss event rate `p` (Choi 2006, equation 4.4; packets, not bytes as in the text there).
pub fn window(p: f64) -> f64 {
    1.0 / f(p)
}

/// The smallest `p` with a window below `cwnd`, on a grid of 10^-5 (Choi 2006, algorithm 1). The grid ends at windows
/// of 387. Beyond, the exact root is used; otherwise a fast path would begin too slowly.
pub fn rate_for(cwnd: f64) -> f64 {
    let mut low = MIN_LOSS_RATE;
    let mut high = 1.0;
    // f rises with p. Halving 60 times leaves less than a float's precision.
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        if window(middle) < cwnd {
            high = middle;
        } else {
            low = middle;
        }
    }
    if high < GRID {
        return high;
    }
    let on_grid = (high / GRID - 1e-6).ceil() * GRID;
    on_grid.clamp(GRID, 1.0)
}

/// The interval between packets in rate mode, in seconds (Choi 2006, equation 5.5): the denominator of TCP's equation.
/// `capped` bounds `3 sqrt(3p/8)` at 1, as the author's later code does.
pub fn dispersion(p: f64, rtt: Duration, t0: f64, capped: bool) -> f64 {
    let p = p.clamp(MIN_LOSS_RATE, 1.0);
    let timeouts = 3.0 * (3.0 * p / 8.0).sqrt();
    let timeouts = if capped { timeouts.min(1.0) } else { timeouts };
    positive(rtt) * (2.0 * p / 3.0).sqrt() + t0 * timeouts * p * (1.0 + 32.0 * p * p)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_at_loss_rates() {
        let table = [
            (0.001, 38.4),
            (0.002, 26.9),
            (0.005, 16.6),
            (0.01, 11.23),
            (0.02, 7.32),
            (0.05, 3.69),
            (0.0908, 2.00),
            (0.1, 1.77),
            (0.2, 0.537),
            (0.5, 0.0417),
        ];
        for (p, expected) in table {
            assert!((window(p) / expected - 1.0).abs() < 0.003, "{p}: {}", window(p));
        }
    }

    #[test]
    fn the_first_loss_is_turned_into_a_rate() {
        for (cwnd, p, interval) in [
            (10.0, 0.01218, 82.0),
            (16.0, 0.00534, 187.0),
            (32.0, 0.00143, 699.0),
            (64.0, 0.00037, 2702.0),
            (1.0, 0.14587, 6.0),
        ] {
            let found = rate_for(cwnd);
            assert!((found - p).abs() < 1e-9, "{cwnd}: {found}");
            assert_eq!((1.0 / found).floor(), interval);
            assert!(window(found) < cwnd && window(found - GRID) >= cwnd);
        }
        // Beyond the grid, Choi would use p = 10^-5, a window of 387, for any window.
        let p = rate_for(1000.0);
        assert!((window(p) / 1000.0 - 1.0).abs() < 1e-6, "{p}");
        assert!((rate_for(1e12) / MIN_LOSS_RATE - 1.0).abs() < 1e-6);
    }

    #[test]
    fn spacing_is_window_per_rtt_if_timeout_is_four_rtt() {
        let rtt = Duration::from_millis(100);
        for p in [0.01, 0.1, 0.3] {
            assert!((dispersion(p, rtt, 0.4, false) - 0.1 * f(p)).abs() < 1e-12);
        }
        // The cap bites above p = 0.296.
        assert!(dispersion(0.5, rtt, 0.4, true) < dispersion(0.5, rtt, 0.4, false));
        assert_eq!(dispersion(0.29, rtt, 0.4, true), dispersion(0.29, rtt, 0.4, false));
    }
}
