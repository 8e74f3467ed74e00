//! Undoes a reduction after spurious losses (RFC 4015, RFC 9438 section 4.9).

use crate::{RecoveryCause, RecoveryEvent, SpuriousLosses};

/// Window and threshold before the last loss episode, until all its losses have turned out spurious.
#[derive(Clone, Debug, Default)]
pub struct BeforeLosses(Option<(f64, f64)>);

impl BeforeLosses {
    /// A recovery begins, with this window and threshold in force. A reduction for an ECN mark is not undone.
    pub fn on_recovery(&mut self, recovery: &RecoveryEvent, cwnd: f64, ssthresh: f64) {
        self.0 = (recovery.cause == RecoveryCause::Loss).then_some((cwnd, ssthresh));
    }

    /// Losses are found, or a timer expires, with this window and threshold in force.
    pub fn keep(&mut self, cwnd: f64, ssthresh: f64) {
        self.0 = Some((cwnd, ssthresh));
    }

    /// The window and the threshold before the reduction, if all losses of the episode were spurious. Larger present
    /// values stay.
    pub fn undo(
        &mut self,
        spurious: &SpuriousLosses,
        cwnd: f64,
        ssthresh: f64,
    ) -> Option<(f64, f64)> {
        if !spurious.undo {
            return None;
        }
        let (cwnd_before, ssthresh_before) = self.0.take()?;
        Some((cwnd.max(cwnd_before), ssthresh.max(ssthresh_before)))
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{IdealPath, build, lost};
    use crate::{CongestionEvent, LossFoundBy};

    const REDUCE_AT_LOSSES: [&str; 9] = [
        "reno",
        "cubic",
        "vegas",
        "veno",
        "westwood",
        "westwood+",
        "illinois",
        "ledbat++",
        "prague",
    ];

    /// A window of some size, and a loss episode that reduces it.
    fn after_losses(spec: &str) -> (IdealPath, f64) {
        let mut s = IdealPath::new(build(spec));
        s.acks(28);
        let before = s.window();
        let loss = lost(s.now, s.now, 1, LossFoundBy::Duplicates);
        s.controller.on_congestion_event(&CongestionEvent::Losses(loss));
        s.recovery();
        (s, before)
    }

    #[test]
    fn spurious_losses_keep_the_window() {
        for spec in REDUCE_AT_LOSSES {
            let (mut s, before) = after_losses(spec);
            let reduced = s.window();
            assert!(reduced < before, "{spec}: {reduced} of {before}");
            s.spurious(false);
            assert_eq!(s.window(), reduced, "{spec}: some of it were losses");
            s.spurious(true);
            assert!(s.window() >= before, "{spec}: {} of {before}", s.window());
            let undone = s.window();
            s.spurious(true);
            assert_eq!(s.window(), undone, "{spec}: once");
        }
    }

    /// Late packets of one episode do not undo the reduction of an earlier one.
    #[test]
    fn only_the_last_episode_is_undone() {
        for spec in REDUCE_AT_LOSSES {
            let (mut s, before) = after_losses(spec);
            s.acks(4);
            let second = s.window();
            let loss = lost(s.now, s.now, 1, LossFoundBy::Duplicates);
            s.controller.on_congestion_event(&CongestionEvent::Losses(loss));
            s.recovery();
            s.spurious(true);
            assert!(s.window() >= second && s.window() < before, "{spec}: {}", s.window());
        }
    }

    #[test]
    fn spurious_timeout_is_undone() {
        for spec in ["reno", "vegas", "veno", "westwood", "illinois", "ledbat++", "prague", "copa"]
        {
            let mut s = IdealPath::new(build(spec));
            s.acks(28);
            let before = s.window();
            s.timeout();
            assert!(s.window() < before, "{spec}");
            s.spurious(true);
            assert_eq!(s.window(), before, "{spec}");
        }
    }
}
