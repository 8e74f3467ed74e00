//! What became of a difference in rate.

use super::View;
use super::constants::{DECIDES, EMPTY, FOLLOWS, LEAST_DIFFERENCE, MOST_EACH, RATE_NOISE, UNQUEUED, UP};
use super::estimate::Path;

/// Cumulative sums of log-likelihoods (Page 1954): of sharing over being alone, or the reverse.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    pub sum: f64,
    /// 1 while being alone is believed, -1 otherwise.
    sign: f64,
    /// Packets per second when the sum left 0.
    pub rate_before: f64,
    /// The round before.
    before: Option<View>,
}

impl Evidence {
    /// Begins anew: `shared` is believed now.
    pub fn begin(&mut self, shared: bool) {
        *self = Evidence { sign: if shared { -1.0 } else { 1.0 }, ..Evidence::default() };
    }
    /// Whether the belief is wrong.
    pub fn decides(&self) -> bool {
        self.sum > DECIDES
    }
    fn add(&mut self, for_shared: f64, rate: f64) {
        if self.sum <= 0.0 {
            self.rate_before = rate;
        }
        let gain = self.sign * for_shared.clamp(-MOST_EACH, MOST_EACH);
        self.sum = (self.sum + gain).max(0.0);
    }
    pub fn on_round(&mut self, view: &View, path: &Path, bandwidth: f64) {
        let before = self.before.replace(*view);
        let round = &view.round;
        if round.app_limited {
            self.before = None;
            return;
        }
        if view.yields {
            self.add(MOST_EACH, bandwidth);
        }
        if !view.queued {
            let follows = round.rate > bandwidth * (1.0 + 0.5 * FOLLOWS * (round.gain - 1.0));
            if round.gain > 1.0 && round.gain <= UP && follows {
                // Of what was sent more much arrives: there is room, or where some is lost others have less.
                self.add(if view.saturated { MOST_EACH } else { -2.0 * UNQUEUED }, bandwidth);
            } else if self.sign < 0.0 && !view.saturated && round.queue_mean <= EMPTY * path.longest().max(path.noise()) {
                self.add(-UNQUEUED, bandwidth);
            }
            return;
        }
        let Some(last) = before.filter(|b| b.queued) else { return };
        // What was sent more, and what arrived more; the rest waits.
        let packets = |r: &super::Round| (r.delivered + r.lost).max(1.0);
        let sent = (packets(round) / packets(&last.round)).ln();
        let came = (round.mean_rate / last.round.mean_rate).ln();
        if sent.abs() < LEAST_DIFFERENCE {
            return;
        }
        let few = 1.0 / round.delivered.min(last.round.delivered).max(1.0);
        let variance = path.rate_variance.max(RATE_NOISE * RATE_NOISE) + few * few;
        let expected = FOLLOWS * sent;
        let likelier = (came * came - (came - expected) * (came - expected)) / (2.0 * variance);
        self.add(likelier, bandwidth);
    }
}
