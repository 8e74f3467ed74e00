//! TCP Veno: Fu and Liew, IEEE JSAC 21(2), 2003, as Linux 2.6 and ns-2's TCP/Linux run it.
//!
//! Reacts to loss, and distinguishes random loss from congestion by delay: N = cwnd (RTT - baseRTT)
//! / RTT packets are queued. The window behaves as Reno's, except that with N >= `beta` it grows at
//! half speed, and with N < `beta` a loss counts as random and costs a fifth instead of a half.
//!
//! As in Linux, N is counted in half packets, rounded up, of a whole window: with a buffer of three
//! packets that rounding decides between 4/5 and 1/2 (ns-2.35 N1, limit 4). The RTT is the smallest
//! since the last growth, in practice the newest. Departure from the paper, as in Linux: baseRTT
//! survives losses, see `base`. Departure from Linux: N is also measured after a timeout, before
//! everything is repaired; slow start rules the window there.

use crate::linux;
use crate::linux::{MAX_COUNTED, WholeWindow};
use crate::undo::BeforeLosses;
use crate::{Ack, CongestionEvent, Controller, Dialect, Environment, SendLimits, variables};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "veno",
    summary: "Reno that backs off by a fifth instead of half if the delay indicates random loss",
    source: "Fu and Liew 2003, as in Linux 2.6",
    senses: "loss, delay",
    sets: "window: +1 segment per RTT or two; 4/5 or 1/2 per loss episode",
    params: &[
        Param {
            name: "beta",
            help: "packets queued from which a loss means congestion",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.5, max: 10_000.0, default: 3.0 },
            origin: "Fu and Liew section II; Linux",
        },
        Param {
            name: "base",
            help: "whether the smallest RTT is kept over a loss or measured again",
            kind: ParamKind::Choice(&["keep", "reset"]),
            origin: "Linux; Fu and Liew reset it",
        },
        crate::linux::like(&["preset", "linux2.6", "linux"]),
    ],
    status: Status::Validated("ns-2.35 TCP/Linux Veno (docs/validation.md)"),
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[variables::BACKLOG];

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    if linux::is_meant(settings, environment) {
        return linux::veno::build(settings.steps("beta", 2), environment);
    }
    Box::new(Veno {
        beta_halves: settings.steps("beta", 2),
        reset_base: settings.choice("base") == "reset",
        // ns-2 halves at repeated timeouts too; RFC 5681 keeps ssthresh.
        cut_again: environment.dialect == Dialect::Ns2,
        window: WholeWindow::new(environment.initial_window, environment.initial_ssthresh),
        base_us: u64::MAX,
        rtt_us: u64::MAX,
        samples: 0,
        backlog_halves: 0,
        raise_next: true,
        before: BeforeLosses::default(),
    })
}

#[derive(Clone, Debug)]
struct Veno {
    beta_halves: u64,
    reset_base: bool,
    cut_again: bool,
    window: WholeWindow,
    /// Smallest RTT in microseconds, plus one (`basertt`).
    base_us: u64,
    /// Smallest RTT since the last growth (`minrtt`).
    rtt_us: u64,
    /// RTT samples so far: with two or fewer it is Reno.
    samples: u32,
    /// N in half packets (`diff`).
    backlog_halves: u64,
    /// With congestion, only every second window of ACKs raises (`inc`).
    raise_next: bool,
    before: BeforeLosses,
}

impl Veno {
    fn random(&self) -> bool {
        self.backlog_halves < self.beta_halves
    }

    /// The growth for one acknowledged segment.
    fn grow(&mut self) {
        if self.samples <= 2 {
            self.window.reno();
        } else {
            // diff = 2 cwnd - floor(2 cwnd baseRTT / RTT).
            let double = self.window.cwnd.saturating_mul(2);
            let target = double.saturating_mul(self.base_us) / self.rtt_us;
            self.backlog_halves = double.saturating_sub(target);
            if self.window.slow_start() {
                self.window.raise();
            } else if self.window.count() {
                let congested = !self.random();
                if !congested || self.raise_next {
                    self.window.raise();
                }
                self.raise_next ^= congested;
            }
        }
    }

    /// Window and threshold.
    fn in_force(&self) -> (f64, f64) {
        (self.window.cwnd as f64, self.window.ssthresh)
    }

    /// Fu and Liew section III: 4/5 after a random loss, 1/2 after congestion.
    fn cut(&mut self) -> u64 {
        let cwnd = self.window.cwnd;
        let cut =
            if self.random() { (cwnd / 5).saturating_mul(4) + cwnd % 5 * 4 / 5 } else { cwnd / 2 };
        self.window.ssthresh = cut.max(2) as f64;
        if self.reset_base {
            self.base_us = u64::MAX;
            self.rtt_us = u64::MAX;
            self.samples = 0;
        }
        cut.max(2)
    }
}

impl Controller for Veno {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.cumulative.newly_acked > 0 {
            let rtt = (ack.rtt.as_nanos() / 1000).saturating_add(1);
            self.base_us = self.base_us.min(rtt);
            self.rtt_us = self.rtt_us.min(rtt);
            self.samples = self.samples.saturating_add(1);
        }
        if !ack.may_grow() {
            return;
        }
        for _ in 0..ack.counted.min(MAX_COUNTED) {
            self.grow();
        }
        self.rtt_us = u64::MAX;
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::RecoveryStart(recovery) => {
                let (cwnd, ssthresh) = self.in_force();
                self.before.on_recovery(recovery, cwnd, ssthresh);
                let cut = self.cut();
                self.window.set(cut);
            }
            CongestionEvent::RecoveryEnd(_) => {
                self.rtt_us = u64::MAX; // the RTTs of the recovery say nothing about the new window
            }
            CongestionEvent::SlowStartRestart(restart) => {
                if restart.backoffs <= 1 {
                    let (cwnd, ssthresh) = self.in_force();
                    self.before.keep(cwnd, ssthresh);
                }
                if restart.backoffs <= 1 || self.cut_again {
                    self.cut();
                }
                self.window.set(1);
                self.rtt_us = u64::MAX;
            }
            CongestionEvent::SpuriousLosses(spurious) => {
                let (cwnd, ssthresh) = self.in_force();
                if let Some((cwnd, ssthresh)) = self.before.undo(spurious, cwnd, ssthresh) {
                    self.window.set(cwnd as u64);
                    self.window.ssthresh = ssthresh;
                }
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.window.cwnd as f64).with_ssthresh(self.window.ssthresh)
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("backlog", self.backlog_halves as f64 / 2.0);
    }
}

#[cfg(test)]
mod tests {
    use crate::Environment;
    use crate::scenario::{IdealPath, build, build_in};
    use crate::scenario_path::SimplePath;
    use narrows_base::{Duration, Time};

    /// In congestion avoidance with a window of 20.
    fn avoiding(spec: &str) -> IdealPath {
        let mut s = IdealPath::new(build(spec));
        s.acks(36);
        s.rtt = Duration::from_millis(200);
        s.acks(1); // the window is 41 and half of it queued: congestion
        s.recovery();
        assert_eq!(s.window(), 20.0);
        s
    }

    #[test]
    fn without_a_queue_a_loss_costs_a_fifth() {
        let mut s = avoiding("veno");
        s.rtt = Duration::from_millis(110); // 20 (1 - 100/110) = 1.8 packets
        s.acks(10);
        s.recovery();
        assert_eq!(s.window(), 16.0);
    }

    #[test]
    fn queue_makes_losses_halve_and_growth_half_as_fast() {
        let mut s = avoiding("veno");
        s.rtt = Duration::from_millis(150); // 20 (1 - 100/150) = 6.7 packets
        s.acks(1);
        assert_eq!(s.window(), 21.0, "Linux still slow-starts at ssthresh");
        s.acks(22);
        assert_eq!(s.window(), 22.0);
        s.acks(23);
        assert_eq!(s.window(), 22.0, "every other round only");
        s.acks(23);
        assert_eq!(s.window(), 23.0);
        s.recovery();
        assert_eq!(s.window(), 11.0);
    }

    #[test]
    fn without_congestion_it_grows_each_round() {
        let mut s = avoiding("veno");
        s.rtt = Duration::from_millis(100);
        s.acks(1);
        for window in [22, 23, 24] {
            s.acks(window);
            assert_eq!(s.window(), f64::from(window));
        }
    }

    #[test]
    fn the_paper_measures_the_base_anew_after_a_loss() {
        for (spec, after) in [("veno", 10.0), ("veno(base=reset)", 16.0)] {
            let mut s = avoiding(spec);
            s.acks(10); // still at 200 ms: a new base, or ten packets queued
            s.recovery();
            assert_eq!(s.window(), after, "{spec}");
        }
    }

    /// ns-2.35's N1 (docs/validation.md): the window between 10 and 30 s. With three packets
    /// waiting, 2 (11 - 11 46.8/58.7) rounds down to 5 half packets, below `beta`: a fifth is given
    /// up.
    #[test]
    fn rounding_decides_at_a_small_buffer() {
        for (limit, least, most) in [(14, 11.0, 22.0), (4, 9.0, 12.0)] {
            let mut path = SimplePath::new(build_in("veno", &Environment::default()));
            path.rate_bps = 1.5e6;
            path.delay = Duration::from_micros(41_445);
            path.queue_limit = limit - 1;
            path.run(Time::from_secs_f64(10.0));
            path.least_window = f64::INFINITY;
            path.most_window = 0.0;
            path.run(Time::from_secs_f64(30.0));
            assert_eq!((path.least_window, path.most_window), (least, most), "limit {limit}");
        }
    }

    #[test]
    fn a_timeout_begins_at_one() {
        let mut s = avoiding("veno");
        s.timeout();
        assert_eq!((s.window(), s.ssthresh()), (1.0, Some(10.0)));
        s.timeout();
        assert_eq!(s.ssthresh(), Some(10.0));
    }
}
