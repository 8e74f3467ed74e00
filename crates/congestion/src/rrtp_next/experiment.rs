//! What became of a difference in rate.

use super::View;
use super::constants::{DECIDES, MOST_EACH, RATE_NOISE};
use super::estimate::Path;

#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Log-likelihood of sharing over being alone.
    pub shared: f64,
    /// The round before.
    before: Option<View>,
}

impl Evidence {
    pub fn settle(&mut self, shared: bool) {
        self.shared = 0.0;
        let _ = shared;
        self.before = None;
    }
    pub fn is_shared(&self) -> bool {
        self.shared > DECIDES
    }
    pub fn is_alone(&self) -> bool {
        self.shared < -DECIDES
    }
    pub fn on_round(&mut self, view: &View, _path: &Path) {
        let before = self.before.replace(*view);
        if !view.saturated {
            self.shared = (self.shared - 0.25).max(-2.0 * DECIDES);
            return;
        }
        let Some(last) = before.filter(|b| b.saturated) else { return };
        if view.round.app_limited || last.round.app_limited {
            return;
        }
        // ln of what was sent more, and of what arrived more.
        let sent = (view.round.gain / last.round.gain).ln();
        let came = (view.round.rate / last.round.rate).ln();
        if sent.abs() < RATE_NOISE {
            return;
        }
        let few = 2.0 / view.round.delivered.min(last.round.delivered).max(1.0);
        let variance = RATE_NOISE * RATE_NOISE + few * few;
        let share = 0.5 * sent;
        let gained = (came * came - (came - share) * (came - share)) / (2.0 * variance);
        self.shared = (self.shared + gained.clamp(-MOST_EACH, MOST_EACH)).clamp(-2.0 * DECIDES, 2.0 * DECIDES);
    }
}
