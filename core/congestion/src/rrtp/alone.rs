//! The policy that assumes to be the only user of the bottleneck (docs/rrtp-congestion-control.md, section 3.2): its
//! bandwidth, and a queue below the noise.
//!
//! One of [`CYCLE`] rounds is a probe with the gain [`UP`], and a round with the gain [`DOWN`] follows each probe. While
//! the queue is empty and a recent round had a higher rate, a probe begins at once and paces at that rate. If
//! at least half of the additional traffic arrives without a queue or losses, another probe follows that round;
//! otherwise the gain is 1 until the next probe. Each probe that causes losses without a queue doubles the distance to
//! the next, up to [`CYCLE`] cycles. While a queue or losses remain, every second round has the gain [`DOWN`].
//!
//! In a round with the gain [`DOWN`] only the pacing rate falls, not the window.

use super::constants::*;
use super::estimate::{PathModel, RoundView};
use super::limits::PolicyLimits;

#[derive(Clone, Debug)]
pub struct Alone {
    /// Rounds since the last probe.
    phase: u32,
    /// Rounds from a probe to the next.
    cycle: u32,
    /// Gain in force.
    pub gain: f64,
}

impl Alone {
    /// Begins with a gain below 1, because the startup leaves a queue.
    pub fn begin() -> Alone {
        Alone { phase: 2, cycle: CYCLE, gain: DOWN }
    }

    pub fn on_round(&mut self, view: &RoundView, path: &PathModel) {
        self.phase += 1;
        let probed = view.round.gain > 1.0;
        let (saturated, follows) = (view.saturated(), view.follows());
        if probed && view.dropped && !view.queued {
            self.cycle = (2 * self.cycle).min(CYCLE * CYCLE);
        } else if follows {
            self.cycle = CYCLE;
        }
        let recalls = view.empty && path.recalled() > UP * path.bandwidth.get();
        if !saturated && (follows || recalls || self.phase >= self.cycle) {
            (self.phase, self.gain) = (0, UP);
        } else if self.gain > 1.0 || saturated && !probed && self.gain >= 1.0 {
            self.gain = DOWN;
        } else {
            self.gain = 1.0;
        }
    }

    pub fn limits(&self, path: &PathModel) -> PolicyLimits {
        // With a gain below 1 the rate drains the queue; a smaller window would leave the link idle.
        let window = (self.gain.max(1.0) * path.target() + 1.0).max(MIN_WINDOW);
        // Rounds without a delivered packet leave no bandwidth.
        let least = if path.rtt > 0.0 { MIN_WINDOW / path.rtt } else { 0.0 };
        let bandwidth = path.bandwidth.get().max(least);
        let rate = if self.gain > 1.0 {
            // Only the pacing rate rises to the recalled one: a larger window would leave a queue.
            path.recalled().min(2.0 * bandwidth).max(self.gain * bandwidth)
        } else {
            self.gain * bandwidth
        };
        PolicyLimits { window, rate: Some(rate) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::estimate::Round;
    use super::*;

    /// A round without queue and losses whose packets left with this gain.
    fn idle(gain: f64) -> RoundView {
        let round =
            Round { gain, delivered: 100.0, mean_rate: 900.0, rate: 900.0, ..Round::default() };
        RoundView {
            round,
            bandwidth: 1000.0,
            queued: false,
            dropped: false,
            unexplained: false,
            empty: true,
        }
    }

    /// The probe's queue drains in the next round, so a cycle sends as much as the bandwidth.
    #[test]
    fn a_round_at_the_lower_rate_follows_each_probe() {
        let mut alone = Alone::begin();
        let mut gains = vec![1.0];
        for i in 0..4 * CYCLE as usize {
            gains.push(alone.gain);
            alone.on_round(&idle(gains[i]), &PathModel::default());
        }
        let probes: Vec<usize> = (2..gains.len() - 1).filter(|i| gains[*i] == UP).collect();
        assert!(probes.len() >= 3, "{gains:?}");
        assert!(probes.iter().all(|i| gains[i + 1] == DOWN), "{gains:?}");
        let cycle = &gains[probes[0]..probes[1]];
        assert_eq!(cycle.iter().sum::<f64>(), cycle.len() as f64, "{gains:?}");
    }

    #[test]
    fn the_lower_rate_leaves_the_window() {
        let mut path = PathModel::default();
        path.hint_rtt(0.1);
        path.bandwidth.set(1000.0);
        let [steady, lower] =
            [1.0, DOWN].map(|gain| Alone { gain, ..Alone::begin() }.limits(&path));
        assert_eq!((lower.window, lower.rate), (steady.window, steady.rate.map(|r| DOWN * r)));
    }

    #[test]
    fn probe_with_empty_queue_paces_at_recalled_rate() {
        let mut path = PathModel::default();
        path.hint_rtt(0.1);
        path.bandwidth.set(1000.0);
        path.recent[5] = 1900.0;
        let mut alone = Alone { gain: 1.0, phase: 0, ..Alone::begin() };
        alone.on_round(&RoundView { empty: false, ..idle(1.0) }, &path);
        assert_eq!(alone.gain, 1.0);
        let steady = alone.limits(&path).window;
        alone.on_round(&idle(1.0), &path);
        let probe = alone.limits(&path);
        assert_eq!((alone.gain, probe.rate), (UP, Some(1900.0)));
        assert!(probe.window <= UP * steady);
        path.recent[5] = 9000.0;
        assert_eq!(alone.limits(&path).rate, Some(2000.0));
    }

    /// Otherwise the sender never sends again.
    #[test]
    fn rounds_without_a_delivered_packet_leave_a_rate() {
        let mut path = PathModel::default();
        path.hint_rtt(0.1);
        assert_eq!(Alone::begin().limits(&path).rate, Some(DOWN * MIN_WINDOW / 0.1));
    }
}
