//! The test whether the bottleneck is shared (docs/rrtp-congestion-control.md, section 4): it compares rounds in which
//! the sender sent more or less than before.
//!
//! | queue | effect of sending more or less | conclusion |
//! |---|---|---|
//! | yes | the delivery rate changes likewise | shared: packets of other flows fill the rest of the queue |
//! | yes | the delivery rate stays | alone: only the queue's length changes |
//! | no | while shared, the queue stays empty | alone |
//! | in any case | outside of probes, losses in long queues exceed the link's | shared |
//!
//! Each row gives a log-likelihood ratio of shared over alone. These terms against the present hypothesis are summed up
//! (Page's cumulative sum, 1954). Above [`THRESHOLD`] the hypothesis changes.
//!
//! A queue that the sender drains or fills becomes shorter or longer. If the least delay stays instead, the path has
//! become longer.

use super::constants::*;
use super::estimate::{Round, RoundView};
use narrows_base::math;

#[derive(Clone, Debug)]
pub struct Evidence {
    /// The sum, 0 or more.
    sum: f64,
    /// 1 if the present hypothesis is alone, -1 if it is shared.
    sign: f64,
    /// Bandwidth when the sum left 0, packets per second: that before the sender backed off.
    pub bandwidth_before: f64,
    /// Previous round; absent if the application limited it.
    last: Option<RoundView>,
    queued: QueuedRun,
}

/// Consecutive rounds with a queue.
#[derive(Clone, Debug, Default)]
struct QueuedRun {
    rounds: u32,
    /// Smallest and largest of their least queueing delays, seconds.
    shortest: f64,
    longest: f64,
}

impl QueuedRun {
    fn on_round(&mut self, view: &RoundView) {
        let delay = view.round.queue_min;
        if !view.queued {
            *self = QueuedRun::default();
        } else if self.rounds == 0 {
            *self = QueuedRun { rounds: 1, shortest: delay, longest: delay };
        } else {
            self.rounds += 1;
            self.shortest = self.shortest.min(delay);
            self.longest = self.longest.max(delay);
        }
    }
}

impl Evidence {
    /// No evidence, with this hypothesis.
    pub fn assuming_shared(shared: bool) -> Evidence {
        let sign = if shared { -1.0 } else { 1.0 };
        Evidence { sum: 0.0, sign, bandwidth_before: 0.0, last: None, queued: QueuedRun::default() }
    }
    /// Whether the hypothesis is to be changed.
    pub fn refutes(&self) -> bool {
        self.sum > THRESHOLD
    }
    /// Whether the delays of all rounds since the queue began are those of a longer path: they stay, although the rate
    /// follows the packets, or a cycle of rounds at lower rates did not drain them.
    pub fn path_is_longer(&self) -> bool {
        let run = &self.queued;
        let stays = run.longest < (1.0 + MIN_CHANGE) * run.shortest;
        stays && (self.refutes() || run.rounds >= CYCLE)
    }
    fn add(&mut self, for_shared: f64, bandwidth: f64) {
        if self.sum <= 0.0 {
            self.bandwidth_before = bandwidth;
        }
        let term = self.sign * for_shared.clamp(-MAX_TERM, MAX_TERM);
        self.sum = (self.sum + term).max(0.0);
    }

    pub fn on_round(&mut self, view: &RoundView) {
        self.queued.on_round(view);
        let last = self.last.replace(*view);
        if view.round.app_limited {
            self.last = None;
            return;
        }
        if view.unexplained {
            self.add(MAX_TERM, view.bandwidth);
        }
        if let Some(last) = last.filter(|last| last.queued && view.queued) {
            self.compare(&last.round, view);
        } else if self.sign < 0.0 && view.empty && !view.saturated() {
            self.add(-EMPTY_TERM, view.bandwidth);
        }
    }

    /// Compares two consecutive rounds with a queue, if one of them sent more.
    fn compare(&mut self, before: &Round, view: &RoundView) {
        let after = &view.round;
        let sent = math::ln(after.packets() / before.packets());
        let arrived = math::ln(after.mean_rate / before.mean_rate);
        if sent.abs() < MIN_CHANGE || !arrived.is_finite() {
            return;
        }
        let packet = 1.0 / after.delivered.min(before.delivered).max(1.0);
        let error = MIN_CHANGE / 2.0;
        let variance = error * error + packet * packet;
        // Expected change of the rate: half of that of the packets if the queue is shared, 0 if it is not.
        let residual = arrived - FOLLOWS * sent;
        self.add((arrived * arrived - residual * residual) / (2.0 * variance), view.bandwidth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(gain: f64, packets: f64, rate: f64, queued: bool) -> RoundView {
        let round = Round {
            gain,
            delivered: packets,
            lost: 0.0,
            mean_rate: rate,
            rate,
            queue_min: 0.0,
            queue_mean: 0.0,
            app_limited: false,
        };
        RoundView {
            round,
            bandwidth: 1000.0,
            queued,
            dropped: false,
            unexplained: false,
            empty: !queued,
        }
    }
    /// Number of rounds until the hypothesis changes. They send 100 and 75 packets in turn and have these delivery
    /// rates.
    fn rounds_to_refute(shared: bool, rates: [f64; 2]) -> Option<usize> {
        let mut evidence = Evidence::assuming_shared(shared);
        (0..20).find(|i| {
            let sent = [100.0, 75.0][i % 2];
            evidence.on_round(&view(1.0, sent, rates[i % 2], true));
            evidence.refutes()
        })
    }

    #[test]
    fn rate_that_falls_with_the_sending_rate_shows_shared_queue() {
        assert_eq!(rounds_to_refute(false, [1000.0, 800.0]), Some(2));
        assert_eq!(rounds_to_refute(false, [1000.0, 1000.0]), None);
    }

    #[test]
    fn constant_rate_while_sending_less_shows_an_own_queue() {
        assert_eq!(rounds_to_refute(true, [1000.0, 1000.0]), Some(2));
        assert_eq!(rounds_to_refute(true, [1000.0, 800.0]), None);
    }

    #[test]
    fn queued_delay_that_no_lower_rate_drains_is_the_paths() {
        let rounds_to_see = |delays: [f64; 2]| {
            let mut evidence = Evidence::assuming_shared(false);
            (1..20).find(|i| {
                let mut view = view(1.0, 100.0, 1000.0, true);
                view.round.queue_min = delays[i % 2];
                evidence.on_round(&view);
                evidence.path_is_longer()
            })
        };
        assert_eq!(rounds_to_see([0.17, 0.171]), Some(CYCLE as usize));
        assert_eq!(rounds_to_see([0.17, 0.15]), None);
    }
}
