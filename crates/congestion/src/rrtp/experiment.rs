//! The one experiment: a round that sends more or less than the one before, whatever for. What became of the difference?
//!
//! | a queue stands | what was sent more or less | says |
//! |---|---|---|
//! | yes | arrives more or less | others': their packets fill or leave the rest of the queue |
//! | yes | does not show in what arrives | ours: it only waits |
//! | no | arrives, and nothing is lost | there is room |
//! | no | arrives, and more is lost than the link loses | others', who had it before |
//! | no, and nothing was probed | more is lost in longer queues | others' |
//!
//! Each is a log-likelihood ratio of sharing over being alone. They are summed up as long as they speak against what is
//! believed (Page's cumulative sum, 1954); at [`DECIDES`] it is given up.

use super::constants::*;
use super::estimate::View;
use narrows_base::math;

#[derive(Clone, Debug)]
pub struct Evidence {
    /// The sum, 0 or more.
    sum: f64,
    /// 1 while being alone is believed, -1 while sharing is.
    sign: f64,
    /// Bandwidth when the sum left 0: what the sender had before it gave way.
    pub bandwidth_before: f64,
    /// The round before.
    last: Option<View>,
}

impl Evidence {
    /// None yet, while that is believed.
    pub fn while_shared(shared: bool) -> Evidence {
        let sign = if shared { -1.0 } else { 1.0 };
        Evidence { sum: 0.0, sign, bandwidth_before: 0.0, last: None }
    }
    /// Whether what is believed is wrong.
    pub fn decides(&self) -> bool {
        self.sum > DECIDES
    }
    fn add(&mut self, for_shared: f64, bandwidth: f64) {
        if self.sum <= 0.0 {
            self.bandwidth_before = bandwidth;
        }
        let gain = self.sign * for_shared.clamp(-MOST_EACH, MOST_EACH);
        self.sum = (self.sum + gain).max(0.0);
    }

    pub fn on_round(&mut self, view: &View) {
        let last = self.last.replace(*view);
        if view.round.app_limited {
            self.last = None;
            return;
        }
        if view.unexplained {
            self.add(MOST_EACH, view.bandwidth);
        }
        if !view.queued {
            if view.round.gain <= UP && view.follows(FOLLOWS * FOLLOWS) {
                let says = if view.dropped { MOST_EACH } else { -2.0 * UNQUEUED };
                self.add(says, view.bandwidth);
            } else if self.sign < 0.0 && view.empty && !view.dropped {
                self.add(-UNQUEUED, view.bandwidth);
            }
        } else if let Some(last) = last.filter(|l| l.queued) {
            self.compare(&last, view);
        }
    }

    /// Two rounds in a queue, of which one sent more.
    fn compare(&mut self, last: &View, view: &View) {
        let (before, after) = (&last.round, &view.round);
        let sent = math::ln(after.packets() / before.packets());
        let came = math::ln(after.mean_rate / before.mean_rate);
        if sent.abs() < LEAST_DIFFERENCE || !came.is_finite() {
            return;
        }
        let packet = 1.0 / after.delivered.min(before.delivered).max(1.0);
        let variance = view.rate_variance.max(RATE_NOISE * RATE_NOISE) + packet * packet;
        // Of half of the others' share; alone nothing is expected.
        let missed = came - FOLLOWS * sent;
        self.add((came * came - missed * missed) / (2.0 * variance), view.bandwidth);
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
    /// Rounds that send 100 and 75 packets in turn, of which these rates arrive; how many it takes to decide.
    fn decides(shared: bool, rates: [f64; 2]) -> Option<usize> {
        let mut evidence = Evidence::while_shared(shared);
        (0..20).find(|i| {
            let sent = [100.0, 75.0][i % 2];
            evidence.on_round(&view(1.0, sent, rates[i % 2], true));
            evidence.decides()
        })
    }

    #[test]
    fn less_that_arrives_when_less_is_sent_shows_others() {
        assert_eq!(decides(false, [1000.0, 800.0]), Some(2));
        assert_eq!(decides(false, [1000.0, 1000.0]), None);
    }

    #[test]
    fn as_much_that_arrives_when_less_is_sent_shows_nobody() {
        assert_eq!(decides(true, [1000.0, 1000.0]), Some(2));
        assert_eq!(decides(true, [1000.0, 800.0]), None);
    }

    /// Where rates vary by a third of themselves, a difference of a fifth says little.
    #[test]
    fn rates_that_vary_say_less() {
        let mut evidence = Evidence::while_shared(false);
        for i in 0..6 {
            let (sent, rate) = if i % 2 == 0 { (100.0, 1000.0) } else { (75.0, 800.0) };
            evidence.on_round(&View { rate_variance: 0.1, ..view(1.0, sent, rate, true) });
        }
        assert!(!evidence.decides());
    }

    #[test]
    fn a_probe_that_arrives_and_loses_took_from_others() {
        let probe = View { dropped: true, ..view(UP, 125.0, 1200.0, false) };
        let mut evidence = Evidence::while_shared(false);
        evidence.on_round(&probe);
        assert!(!evidence.decides(), "one is not enough");
        evidence.on_round(&probe);
        assert!(evidence.decides());
        // What arrives without a loss found room; of what does not arrive others lost nothing.
        let mut evidence = Evidence::while_shared(false);
        (0..9).for_each(|_| evidence.on_round(&View { dropped: false, ..probe }));
        (0..9).for_each(|_| {
            evidence.on_round(&View { dropped: true, ..view(UP, 125.0, 1000.0, false) })
        });
        assert!(!evidence.decides());
    }
}
