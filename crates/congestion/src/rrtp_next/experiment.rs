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
        let sent = (after.packets() / before.packets()).ln();
        let came = (after.mean_rate / before.mean_rate).ln();
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
