//! A whole window as Linux 6.1 keeps it, with the changes that are independent of the algorithm: `tcp_cong.c` and the
//! states of `tcp_input.c`.
//!
//! Segments are counted, not ACKs. A loss sets the threshold, and the transport reduces the window to it by PRR. A
//! timeout during a recovery leaves the threshold unchanged. A spurious reduction is undone.

use crate::{Ack, CongestionEvent, Environment, SendLimits, bounded};
use narrows_base::Time;

/// Ticks per second (`HZ`) of the kernel in the comparison.
pub const HZ: u64 = 250;

/// Whole ticks since the start.
pub fn ticks(at: Time) -> u64 {
    at.as_nanos() / (1_000_000_000 / HZ)
}

/// Microseconds in whole ticks, rounded up.
pub fn ticks_of_us(us: u64) -> u64 {
    us.div_ceil(1_000_000 / HZ)
}

/// The smoothed or sampled RTT in microseconds, at least 1.
pub fn micros(d: narrows_base::Duration) -> u64 {
    (d.as_nanos() / 1000).max(1)
}

#[derive(Clone, Debug)]
pub struct LinuxWindow {
    pub cwnd: u64,
    pub ssthresh: u64,
    count: u64,
    recovering: bool,
    before: Option<(u64, u64)>,
    /// Segments that the last ACK delivered and that have not raised the window: the ACK that ends a recovery does so
    /// after its end (`tcp_cong_control` comes after `tcp_fastretrans_alert`).
    pending: u64,
}

/// Effect of an event on an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WindowEffect {
    None,
    /// A recovery that reduced the window is over.
    Reduced,
    /// Everything lost is repaired after a timeout.
    Open,
    /// A recovery begins.
    Recovery,
    /// A timeout; whether it set the threshold.
    Loss(bool),
}

impl LinuxWindow {
    pub fn new(environment: &Environment) -> LinuxWindow {
        LinuxWindow {
            cwnd: bounded(environment.initial_window, 1.0) as u64,
            ssthresh: environment.initial_ssthresh as u64, // infinity saturates
            count: 0,
            recovering: false,
            before: None,
            pending: 0,
        }
    }

    /// An ACK has arrived. Returns whether it may raise the window now.
    pub fn admits(&mut self, ack: &Ack) -> bool {
        let cumulative = &ack.cumulative;
        let delivers = cumulative.newly_acked > 0
            || (cumulative.selective_counts && cumulative.newly_sacked > 0);
        let advances = delivers && ack.marks == 0 && ack.window_limited;
        self.pending = if advances && ack.in_recovery { ack.newly_delivered } else { 0 };
        advances && !ack.in_recovery
    }

    /// Segments that raise the window at the end of a recovery.
    pub fn take_pending(&mut self) -> u64 {
        std::mem::take(&mut self.pending)
    }

    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// `tcp_slow_start`: returns the acknowledged segments beyond those needed to reach the threshold.
    pub fn slow_start(&mut self, acked: u64) -> u64 {
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd;
        left
    }

    /// `tcp_cong_avoid_ai`: a segment for every `per` acknowledged.
    pub fn avoid(&mut self, per: u64, acked: u64) {
        let per = per.max(1);
        if self.count >= per {
            self.count = 0;
            self.cwnd += 1;
        }
        self.count += acked;
        self.cwnd += self.count / per;
        self.count %= per;
    }

    /// `tcp_reno_cong_avoid`.
    pub fn reno(&mut self, acked: u64) {
        let left = if self.in_slow_start() { self.slow_start(acked) } else { acked };
        if left > 0 {
            self.avoid(self.cwnd, left);
        }
    }

    /// For Veno, which counts by itself.
    pub fn counted(&mut self) -> &mut u64 {
        &mut self.count
    }

    /// `tcp_current_ssthresh`: three quarters of the window at least.
    pub fn raise_ssthresh(&mut self) {
        self.ssthresh = self.ssthresh.max(self.cwnd / 2 + self.cwnd / 4);
    }

    pub fn half(&self) -> u64 {
        (self.cwnd / 2).max(2)
    }

    /// Applies an event; `ssthresh` is the algorithm's new threshold after a loss.
    pub fn on_event(
        &mut self,
        event: &CongestionEvent,
        ssthresh: impl FnOnce(&LinuxWindow) -> u64,
    ) -> WindowEffect {
        match event {
            CongestionEvent::RecoveryStart(_) => {
                self.before = Some((self.cwnd, self.ssthresh));
                self.ssthresh = ssthresh(self);
                self.cwnd = self.ssthresh;
                self.count = 0;
                self.recovering = true;
                WindowEffect::Recovery
            }
            CongestionEvent::RecoveryEnd(_) => {
                if std::mem::take(&mut self.recovering) {
                    WindowEffect::Reduced
                } else {
                    WindowEffect::Open
                }
            }
            CongestionEvent::SlowStartRestart(restart) => {
                let anew = restart.backoffs <= 1 && !self.recovering;
                if anew {
                    self.before = Some((self.cwnd, self.ssthresh));
                    self.ssthresh = ssthresh(self);
                }
                self.cwnd = 1;
                self.count = 0;
                self.recovering = false;
                WindowEffect::Loss(anew)
            }
            CongestionEvent::SpuriousLosses(spurious) if spurious.undo => {
                if let Some((cwnd, ssthresh)) = self.before.take() {
                    self.cwnd = self.cwnd.max(cwnd);
                    self.ssthresh = self.ssthresh.max(ssthresh);
                }
                WindowEffect::None
            }
            _ => WindowEffect::None,
        }
    }

    pub fn limits(&self) -> SendLimits {
        let ssthresh = if self.ssthresh == u64::MAX { f64::INFINITY } else { self.ssthresh as f64 };
        SendLimits::unpaced(self.cwnd as f64).with_ssthresh(ssthresh)
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{IdealPath, build};

    const ALL: [&str; 5] = ["reno", "cubic", "vegas", "veno", "westwood+"];

    fn linux(name: &str) -> IdealPath {
        IdealPath::new(build(&format!("{name}(like=linux)")))
    }

    #[test]
    fn segments_count_not_acks() {
        for name in ALL {
            let mut s = linux(name);
            for _ in 0..2 {
                let ack = s.ack(2, false);
                s.controller.on_ack(&ack);
            }
            assert_eq!(s.window(), 8.0, "{name}");
        }
    }

    /// `tcp_may_raise_cwnd`.
    #[test]
    fn selective_reports_raise_window_only_on_reordering_paths() {
        for (selective_counts, window) in [(false, 4.0), (true, 5.0)] {
            let mut s = linux("reno");
            let mut ack = s.ack(0, false);
            ack.cumulative.newly_sacked = 1;
            ack.cumulative.selective_counts = selective_counts;
            s.controller.on_ack(&ack);
            assert_eq!(s.window(), window);
        }
    }

    #[test]
    fn loss_reduces_by_each_algorithms_factor_timeout_to_one() {
        for (name, left) in
            [("reno", 16.0), ("cubic", 22.0), ("vegas", 16.0), ("veno", 25.0), ("westwood+", 16.0)]
        {
            let mut s = linux(name);
            s.acks(28);
            assert_eq!(s.window(), 32.0, "{name}");
            s.controller.on_congestion_event(&s.recovery_start());
            assert_eq!((s.window(), s.ssthresh()), (left, Some(left)), "{name}");
            s.timeout();
            assert_eq!(s.window(), 1.0, "{name}");
            if name != "westwood+" {
                assert_eq!(s.ssthresh(), Some(left), "{name}: one loss episode, one cut");
            }
        }
    }

    #[test]
    fn spurious_loss_is_undone() {
        for name in ["reno", "cubic", "vegas", "veno"] {
            let mut s = linux(name);
            s.acks(28);
            s.recovery();
            s.spurious(true);
            assert_eq!((s.window(), s.ssthresh()), (32.0, Some(f64::INFINITY)), "{name}");
        }
    }
}
