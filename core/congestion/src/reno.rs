//! AIMD as in Tahoe, Reno, NewReno and SACK TCP: RFC 5681 sections 3.1 and 3.2.
//!
//! Senses loss; sets the window. Slow start adds one segment per segment acknowledged
//! (RFC 3465, see [`Ack::counted`]), congestion avoidance one per window.
//! Which segments are sent again is recovery's matter: with recovery `tahoe` this is Tahoe.
//!
//! Preset `ns2` halves the window rather than FlightSize, see [`Dialect::halve`].

use crate::linux;
use crate::undo::BeforeLosses;
use crate::{Ack, CongestionEvent, Controller, Dialect, Environment, PathEvent, SendLimits};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status, Time, WindowChange};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "reno",
    summary: "additive increase, multiplicative decrease: TCP's standard since 1988",
    source: "RFC 5681",
    senses: "loss",
    sets: "window: +1 segment per RTT, halved per loss episode",
    params: &[
        Param {
            name: "increase",
            help: "segments added per round trip in congestion avoidance",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 1000.0, default: 1.0 },
            origin: "RFC 5681 section 3.1",
        },
        Param {
            name: "decrease",
            help: "factor applied to the window at a loss",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.01, max: 0.99, default: 0.5 },
            origin: "RFC 5681 equation 4",
        },
        crate::linux::like(&["preset", "rfc", "linux"]),
    ],
    status: Status::Validated("ns-2.35 Tahoe, Reno, NewReno and Sack1 (docs/validation.md)"),
};

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    if linux::is_meant(settings, environment) {
        return linux::reno::build(environment);
    }
    Box::new(Reno {
        cwnd: environment.initial_window,
        ssthresh: environment.initial_ssthresh,
        dialect: environment.dialect,
        increase: settings.number("increase"),
        decrease: settings.number("decrease"),
        before: BeforeLosses::default(),
        coupling: None,
    })
}

#[derive(Clone, Debug)]
struct Reno {
    cwnd: f64,
    ssthresh: f64,
    dialect: Dialect,
    increase: f64,
    decrease: f64,
    before: BeforeLosses,
    coupling: Option<WindowChange>,
}

impl Reno {
    /// The new (cwnd, ssthresh). FlightSize includes packets that arrived behind a hole. Behind a lost retransmission
    /// it grows until the timeout, far beyond the path's capacity. Equation 4 is an upper limit, and here so is `most`.
    fn cut(&self, flight: u64, most: f64) -> (f64, f64) {
        let scale = self.coupling.map_or(self.decrease, |c| c.decrease) / 0.5;
        let (cwnd, ssthresh) = self.dialect.halve(self.cwnd, flight);
        let within = |half: f64, least: f64| (half * scale).min(most.max(2.0)).max(least);
        (within(cwnd, 1.0), within(ssthresh, 2.0))
    }
}

impl Controller for Reno {
    fn on_ack(&mut self, ack: &Ack) {
        if !ack.may_grow() {
            return;
        }
        let counted = ack.counted as f64;
        if self.cwnd < self.ssthresh {
            self.cwnd += counted;
        } else {
            let increase = self.coupling.map_or(self.increase / self.cwnd, |c| c.increase);
            self.cwnd = (self.cwnd + increase * counted).max(1.0);
            // OLIA may lower the window, which must not begin slow start.
            self.ssthresh = self.ssthresh.min(self.cwnd);
        }
    }

    fn on_path_event(&mut self, _now: Time, event: &PathEvent) {
        if let PathEvent::Coupling(change) = event {
            self.coupling = Some(*change);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::RecoveryStart(recovery) => {
                self.before.on_recovery(recovery, self.cwnd, self.ssthresh);
                (self.cwnd, self.ssthresh) = self.cut(recovery.flight, self.cwnd);
            }
            CongestionEvent::SlowStartRestart(restart) => {
                // RFC 5681 section 3.1: a second timeout of the same segment keeps ssthresh; ns-2 halves
                // it at each.
                if restart.backoffs <= 1 || self.dialect == Dialect::Ns2 {
                    self.before.keep(self.cwnd, self.ssthresh);
                    // In the slow start after another timeout, ssthresh is the window last in force.
                    self.ssthresh = self.cut(restart.flight, self.cwnd.max(self.ssthresh)).1;
                }
                self.cwnd = 1.0;
            }
            CongestionEvent::SpuriousLosses(spurious) => {
                let undone = self.before.undo(spurious, self.cwnd, self.ssthresh);
                (self.cwnd, self.ssthresh) = undone.unwrap_or((self.cwnd, self.ssthresh));
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.cwnd).with_ssthresh(self.ssthresh)
    }
}

#[cfg(test)]
mod tests {
    use crate::PathEvent;
    use crate::scenario::{IdealPath, build};
    use narrows_base::{Time, WindowChange};

    #[test]
    fn slow_start_doubles_then_a_loss_halves() {
        let mut s = IdealPath::new(build("reno"));
        assert_eq!(s.window(), 4.0);
        s.acks(4);
        assert_eq!(s.window(), 8.0);
        s.recovery();
        assert_eq!((s.window(), s.ssthresh()), (4.0, Some(4.0)));
        s.acks(4);
        assert!((s.window() - 5.0).abs() < 0.1, "one segment per round: {}", s.window());
    }

    #[test]
    fn a_timeout_starts_anew_and_its_repetition_keeps_ssthresh() {
        let mut s = IdealPath::new(build("reno"));
        s.acks(28);
        s.timeout();
        assert_eq!((s.window(), s.ssthresh()), (1.0, Some(16.0)));
        s.timeout();
        assert_eq!((s.window(), s.ssthresh()), (1.0, Some(16.0)));
    }

    /// FlightSize includes packets that arrived behind a hole: a thousand segments after a lost retransmission.
    #[test]
    fn loss_never_raises_the_window_whatever_was_sacked() {
        for spec in ["reno", "reno(decrease=0.9)"] {
            let mut s = IdealPath::new(build(spec));
            s.acks(12);
            s.extra_flight = 1000;
            s.recovery();
            assert_eq!((s.window(), s.ssthresh()), (16.0, Some(16.0)), "{spec}");
            s.timeout();
            assert_eq!((s.window(), s.ssthresh()), (1.0, Some(16.0)), "{spec}");
        }
    }

    #[test]
    fn spurious_loss_leaves_the_window_unchanged() {
        let mut s = IdealPath::new(build("reno"));
        s.acks(12);
        s.recovery();
        s.spurious(false);
        assert_eq!((s.window(), s.ssthresh()), (8.0, Some(8.0)), "some of it were losses");
        s.spurious(true);
        assert_eq!((s.window(), s.ssthresh()), (16.0, Some(f64::INFINITY)));
        s.recovery();
        s.timeout();
        s.spurious(true);
        assert_eq!(
            (s.window(), s.ssthresh()),
            (8.0, Some(8.0)),
            "the timeout's, not the recovery's"
        );
        s.spurious(true);
        assert_eq!(s.window(), 8.0, "once");
    }

    #[test]
    fn coupling_replaces_increase_and_decrease() {
        let mut s = IdealPath::new(build("reno"));
        s.acks(12);
        s.recovery();
        let change = WindowChange { increase: -0.25, decrease: 0.25 };
        s.controller.on_path_event(Time::ZERO, &PathEvent::Coupling(change));
        s.acks(4);
        assert_eq!(s.window(), 7.0);
        s.acks(100);
        assert_eq!(s.window(), 1.0, "at least one segment");
        let change = WindowChange { increase: 1.0, ..change };
        s.controller.on_path_event(Time::ZERO, &PathEvent::Coupling(change));
        s.acks(39);
        s.recovery();
        assert_eq!(s.window(), 10.0);
    }

    #[test]
    fn an_idle_sender_earns_no_growth() {
        let mut s = IdealPath::new(build("reno"));
        s.window_limited = false;
        s.acks(100);
        assert_eq!(s.window(), 4.0);
    }
}
