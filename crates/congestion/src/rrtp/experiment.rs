//! The test whether the bottleneck is shared: it compares rounds in which the sender sent more or less than before.
//!
//! | queue | effect of sending more or less | conclusion |
//! |---|---|---|
//! | yes | the delivery rate changes likewise | shared: packets of other flows fill the rest of the queue |
//! | yes | the delivery rate stays | alone: only the queue's length changes |
//! | no | additional packets arrive without losses | there is capacity left |
//! | no | additional packets arrive, losses exceed the link's | shared: they displaced packets of other flows |
//! | in any case | outside of probes, losses in long queues exceed the link's | shared |
//!
//! Each row gives a log-likelihood ratio of shared over alone. The terms against the present hypothesis are summed up
//! (Page's cumulative sum, 1954). Above [`THRESHOLD`] the hypothesis changes.

use super::constants::*;
use super::estimate::View;
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
    last: Option<View>,
}

impl Evidence {
    /// No evidence, with this hypothesis.
    pub fn assuming_shared(shared: bool) -> Evidence {
        let sign = if shared { -1.0 } else { 1.0 };
        Evidence { sum: 0.0, sign, bandwidth_before: 0.0, last: None }
    }
    /// Whether the hypothesis is to be changed.
    pub fn refutes(&self) -> bool {
        self.sum > THRESHOLD
    }
    fn add(&mut self, for_shared: f64, bandwidth: f64) {
        if self.sum <= 0.0 {
            self.bandwidth_before = bandwidth;
        }
        let term = self.sign * for_shared.clamp(-MAX_TERM, MAX_TERM);
        self.sum = (self.sum + term).max(0.0);
    }

    pub fn on_round(&mut self, view: &View) {
        let last = self.last.replace(*view);
        if view.round.app_limited {
            self.last = None;
            return;
        }
        if view.unexplained {
            self.add(MAX_TERM, view.bandwidth);
        }
        if !view.queued {
            if view.round.gain <= UP && view.follows(FOLLOWS * FOLLOWS) {
                let term = if view.dropped { MAX_TERM } else { -2.0 * EMPTY_TERM };
                self.add(term, view.bandwidth);
            } else if self.sign < 0.0 && view.empty && !view.dropped {
                self.add(-EMPTY_TERM, view.bandwidth);
            }
        } else if let Some(last) = last.filter(|l| l.queued) {
            self.compare(&last, view);
        }
    }

    /// Compares two consecutive rounds with a queue, if one of them sent more.
    fn compare(&mut self, last: &View, view: &View) {
        let (before, after) = (&last.round, &view.round);
        let sent = math::ln(after.packets() / before.packets());
        let arrived = math::ln(after.mean_rate / before.mean_rate);
        if sent.abs() < MIN_CHANGE || !arrived.is_finite() {
            return;
        }
        let packet = 1.0 / after.delivered.min(before.delivered).max(1.0);
        let variance = view.rate_variance.max(MIN_RATE_ERROR * MIN_RATE_ERROR) + packet * packet;
        // Expected change of the rate: half of that of the packets if the queue is shared, 0 if it is not.
        let residual = arrived - FOLLOWS * sent;
        self.add((arrived * arrived - residual * residual) / (2.0 * variance), view.bandwidth);
    }
}

#[cfg(test)]
mod tests {
    use super::super::estimate::Round;
    use super::*;

    fn view(gain: f64, packets: f64, rate: f64, queued: bool) -> View {
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
        View {
            round,
            bandwidth: 1000.0,
            queued,
            dropped: false,
            unexplained: false,
            empty: !queued,
            rate_variance: 0.0,
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
    fn a_rate_that_falls_with_the_packets_sent_shows_a_shared_queue() {
        assert_eq!(rounds_to_refute(false, [1000.0, 800.0]), Some(2));
        assert_eq!(rounds_to_refute(false, [1000.0, 1000.0]), None);
    }

    #[test]
    fn a_rate_that_stays_when_less_is_sent_shows_an_own_queue() {
        assert_eq!(rounds_to_refute(true, [1000.0, 1000.0]), Some(2));
        assert_eq!(rounds_to_refute(true, [1000.0, 800.0]), None);
    }

    /// If rates vary by a third, a difference of a fifth is weak evidence.
    #[test]
    fn rates_that_vary_are_weaker_evidence() {
        let mut evidence = Evidence::assuming_shared(false);
        for i in 0..6 {
            let (sent, rate) = if i % 2 == 0 { (100.0, 1000.0) } else { (75.0, 800.0) };
            evidence.on_round(&View { rate_variance: 0.1, ..view(1.0, sent, rate, true) });
        }
        assert!(!evidence.refutes());
    }

    #[test]
    fn a_probe_that_arrives_and_causes_losses_shows_other_flows() {
        let probe = View { dropped: true, ..view(UP, 125.0, 1200.0, false) };
        let mut evidence = Evidence::assuming_shared(false);
        evidence.on_round(&probe);
        assert!(!evidence.refutes(), "one is not enough");
        evidence.on_round(&probe);
        assert!(evidence.refutes());
        // A probe that arrives without losses used free capacity. One that does not arrive displaced no other traffic.
        let mut evidence = Evidence::assuming_shared(false);
        (0..9).for_each(|_| evidence.on_round(&View { dropped: false, ..probe }));
        (0..9).for_each(|_| {
            evidence.on_round(&View { dropped: true, ..view(UP, 125.0, 1000.0, false) })
        });
        assert!(!evidence.refutes());
    }
}
