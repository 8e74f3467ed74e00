//! Prague: a scalable controller for L4S (draft-briscoe-iccrg-prague-congestion-control, RFC 9331).
//!
//! Measures the share of CE-marked packets, and losses. Its packets are ECT(1), which a dual queue (DualPI2) marks from
//! a wait of one millisecond on:
//!
//! ```text
//! alpha += (marked share of the last round - alpha) / 16        once per round of rtt_virt (section 2.4.2)
//! mark, once per round:        cwnd -= cwnd * alpha / 2         (2.4.3)
//! unmarked ACK:                cwnd += (srtt / rtt_virt)^2 / cwnd    (2.4.4)
//! loss:                        cwnd /= 2, as Reno               (2.4.1; RFC 9331 section 4.3)
//! pacing:                      cwnd / srtt, twice that in slow start
//! ```
//!
//! `rtt_virt` is the larger of srtt and 25 ms: flows with shorter RTTs grow and update alpha as if theirs were 25 ms,
//! so that they do not displace flows with longer RTTs (2.4.4). Slow start ends at the first mark or loss.
//!
//! If slow start ends early on a fast link (because its bursts are marked), the window then grows only by a packet per
//! round. On 1 Gbit/s with 10 ms, .63 is used over the first 10 s (mean of three).
//!
//! Left out: the fallback to Reno's reaction behind a classic ECN queue as in RFC 3168 (optional in section 2.4.1 of
//! the draft, off in Linux). Beside Reno in such a queue it takes more than its fair share.

use crate::undo::BeforeLosses;
use crate::{
    Ack, CongestionEvent, Controller, Dialect, Environment, RecoveryCause, Requirements,
    SendLimits, bounded, positive,
};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Rate, Settings, Status, Time, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "prague",
    summary: "reduces in proportion to the share of marked packets: short queues where the network is L4S",
    source: "draft-briscoe-iccrg-prague-congestion-control-04, RFC 9331",
    senses: "congestion marks (accurate ECN), loss",
    sets: "window and pacing rate",
    params: &[
        Param {
            name: "gain",
            help: "weight of the last round in the mean share of marks",
            kind: ParamKind::Number { unit: Unit::None, min: 0.001, max: 1.0, default: 0.0625 },
            origin: "draft section 2.4.2: 1/16",
        },
        Param {
            name: "rtt-virt",
            help: "shortest RTT as which it behaves",
            kind: ParamKind::Number { unit: Unit::Seconds, min: 0.001, max: 10.0, default: 0.025 },
            origin: "draft section 2.4.4: 25 ms",
        },
    ],
    status: Status::NotValidated,
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] =
    &[Variable::new("prague_alpha", "fraction", "mean share of marked packets")];

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Prague {
        packet_bits: f64::from(environment.packet_bytes.max(1)) * 8.0,
        gain: settings.number("gain"),
        rtt_virt_s: settings.number("rtt-virt"),
        dialect: environment.dialect,
        cwnd: bounded(environment.initial_window, 1.0),
        ssthresh: environment.initial_ssthresh,
        before: BeforeLosses::default(),
        srtt: Duration::ZERO,
        alpha: 1.0,
        saw_mark: false,
        round: AlphaRound::default(),
        reduced_until: Time::ZERO,
    })
}

/// Packets since the last update of alpha.
#[derive(Clone, Copy, Debug, Default)]
struct AlphaRound {
    delivered: u64,
    marked: u64,
    end: Time,
}

#[derive(Clone, Debug)]
struct Prague {
    packet_bits: f64,
    gain: f64,
    rtt_virt_s: f64,
    dialect: Dialect,
    cwnd: f64,
    ssthresh: f64,
    before: BeforeLosses,
    srtt: Duration,
    alpha: f64,
    /// As long as no mark was seen, it is unknown whether the network marks, and alpha stays one.
    saw_mark: bool,
    round: AlphaRound,
    /// Marks until then belong to the last reduction.
    reduced_until: Time,
}

impl Prague {
    fn is_in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    fn virtual_rtt(&self) -> Duration {
        Duration::from_secs_f64(self.rtt_virt_s).max(self.srtt)
    }

    /// Once per virtual round trip.
    fn update_alpha(&mut self, now: Time) {
        if now < self.round.end {
            return;
        }
        if self.saw_mark && self.round.delivered > 0 {
            let share = self.round.marked as f64 / self.round.delivered as f64;
            self.alpha = bounded(self.alpha + self.gain * (share - self.alpha), 0.0).min(1.0);
        }
        self.round = AlphaRound { end: now + self.virtual_rtt(), ..AlphaRound::default() };
    }

    fn reduce(&mut self, now: Time) {
        if now < self.reduced_until {
            return;
        }
        self.cwnd = bounded(self.cwnd * (1.0 - self.alpha / 2.0), 2.0);
        self.ssthresh = self.cwnd;
        self.reduced_until = now + self.virtual_rtt();
    }
}

impl Controller for Prague {
    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.estimate.srtt;
        let marks = u64::from(ack.marks).min(ack.newly_delivered.max(1));
        self.round.delivered += ack.newly_delivered;
        self.round.marked += marks;
        self.saw_mark |= marks > 0;
        self.update_alpha(ack.now);
        if marks > 0 {
            self.reduce(ack.now);
        }
        let unmarked = ack.newly_delivered.saturating_sub(marks) as f64;
        if unmarked == 0.0 || ack.in_recovery || !ack.window_limited {
            return;
        }
        let growth = if self.is_in_slow_start() {
            unmarked
        } else {
            let ratio = positive(self.srtt) / self.rtt_virt_s.max(positive(self.srtt));
            unmarked * ratio * ratio / self.cwnd
        };
        self.cwnd = bounded(self.cwnd + growth, 1.0);
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            // Marks are handled as acknowledgements report them, in proportion.
            CongestionEvent::RecoveryStart(r) if r.cause == RecoveryCause::EcnCe => {}
            CongestionEvent::RecoveryStart(r) => {
                self.before.keep(self.cwnd, self.ssthresh);
                (self.cwnd, self.ssthresh) = self.dialect.halve(self.cwnd, r.flight);
                self.reduced_until = r.now + self.virtual_rtt();
            }
            CongestionEvent::SlowStartRestart(r) => {
                if r.backoffs <= 1 {
                    self.before.keep(self.cwnd, self.ssthresh);
                }
                if r.timeout {
                    self.ssthresh = self.dialect.halve(self.cwnd, r.flight).1;
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
        let limits = SendLimits::unpaced(self.cwnd).with_ssthresh(self.ssthresh);
        if self.srtt == Duration::ZERO {
            return limits;
        }
        let times = if self.is_in_slow_start() { 2.0 } else { 1.0 };
        let bps = times * self.cwnd * self.packet_bits / positive(self.srtt);
        SendLimits { pacing_rate: Some(Rate::from_bps_f64(bounded(bps, 1.0))), ..limits }
    }

    fn requirements(&self) -> Requirements {
        Requirements::L4S
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("prague_alpha", self.alpha);
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{IdealPath, build};

    fn marked(s: &mut IdealPath, marks: u32) {
        let ack = crate::Ack { marks, ..s.ack(1, false) };
        s.controller.on_ack(&ack);
    }

    fn alpha(s: &IdealPath) -> f64 {
        let mut found = f64::NAN;
        s.controller.watch(&mut |name, x| {
            if name == "prague_alpha" {
                found = x;
            }
        });
        found
    }

    /// Slow start ends at the first mark by half (alpha begins at one), and once in a round trip only.
    #[test]
    fn only_the_first_mark_of_a_round_trip_reduces() {
        let mut s = IdealPath::new(build("prague"));
        for _ in 0..60 {
            marked(&mut s, 0);
        }
        let before = s.window();
        assert_eq!(before, 64.0);
        marked(&mut s, 1);
        assert!((s.window() - before / 2.0).abs() < 2.5, "{}", s.window());
        let after = s.window();
        marked(&mut s, 1);
        assert!(s.window() >= after);
    }

    /// A tenth of the packets is marked: alpha converges to it, and a reduction leaves 95%.
    #[test]
    fn a_reduction_is_in_proportion_to_the_share_of_marks() {
        let mut s = IdealPath::new(build("prague"));
        s.gap = narrows_base::Duration::from_micros(500);
        for i in 0..40_000 {
            marked(&mut s, u32::from(i % 10 == 9));
        }
        assert!((alpha(&s) - 0.1).abs() < 0.01, "{}", alpha(&s));
        // 180 unmarked of 200 acknowledgements per round trip add 180 / w, and w / 20 is subtracted: w is 60.
        let window = s.window();
        assert!((window - 60.0).abs() < 4.0, "{window}");
    }

    /// Below 25 ms a flow grows as slowly as one of 25 ms: by (srtt / 25 ms) squared per round trip.
    #[test]
    fn short_rtt_grows_no_faster_than_a_long_one() {
        let grown = |rtt_ms: u64| {
            let mut s = IdealPath::new(build("prague"));
            s.rtt = narrows_base::Duration::from_millis(rtt_ms);
            for _ in 0..60 {
                marked(&mut s, 0);
            }
            marked(&mut s, 1);
            // A second of round trips.
            let before = s.window();
            let rounds = 1000 / rtt_ms;
            s.gap = narrows_base::Duration::from_micros(rtt_ms * 1000 / before as u64);
            for _ in 0..(rounds as f64 * before) as u64 {
                marked(&mut s, 0);
            }
            s.window() - before
        };
        let short = grown(5);
        let long = grown(25);
        assert!(short < 0.45 * long, "{short} {long}");
    }
}
