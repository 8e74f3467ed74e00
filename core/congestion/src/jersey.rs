//! TCP-Jersey: Xu, Tian and Ansari, IEEE JSAC 22(4), 2004; as described by Hu and Zha, section II.
//!
//! Measures ECN marks (best from the queue `cw`) and the rate at which ACKs return. The window grows as Reno's. A mark
//! sets ssthresh and the window to the estimated rate times the round trip. A loss without a mark is attributed to the
//! radio link and does not change the window. After a timeout slow start begins below that ssthresh.
//!
//! The estimator (Hu and Zha print it without its equation): R = (K RTT R' + L) / (t - t' + K RTT) at an ACK t - t'
//! after the previous one that acknowledges L segments. RTT is the smoothed one, K is 1. ACKs of L every T move it by
//! T/(T + RTT) of the way to L/T. New Jersey (the same authors, Computer Networks 47, 2005) uses the receiver's arrival
//! times for t, so that bunched ACKs do no harm.
//!
//! An addition of Narrows: before the first mark, a loss while packets of the flow itself are queued counts as a full
//! buffer. The window then becomes the rate times the smallest round trip (`unmarked=queue`). By the paper
//! (`unmarked=radio`) it grows over a plain queue until it times out, and fills 0.3 of 2 Mbit/s, 40 ms.
//!
//! Choices where the paper is silent, or available only through Hu and Zha: L counts duplicates as Westwood does. The
//! optimum window RTT R is latched once per round trip, at every ACK before the first latch. Marks cause one reaction
//! per window (the transport ensures that). The reaction comes after the ACK's own growth instead of before it. It
//! never widens the window unless `assign=always`, which is the reading of the simulator ns-3. No window falls below
//! two segments.

use crate::acked_count::AckedCount;
use crate::{
    Ack, CongestionEvent, Controller, Environment, RecoveryCause, SendLimits, bounded, positive,
    variables,
};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, Settings, Status, Time, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "jersey",
    summary: "takes unmarked losses for the radio's; a mark sets the window to the measured rate",
    source: "Xu, Tian and Ansari 2004; Hu and Zha, section II",
    senses: "routers' marks, rate of returning ACKs",
    sets: "window: +1 segment per RTT; rate times RTT after a mark, as it was after a loss",
    params: &[
        Param {
            name: "estimator",
            help: "times of ACKs, or of arrivals by the receiver's clock (receiver-stamps=on; without them, of ACKs)",
            kind: ParamKind::Choice(&["jersey", "new-jersey"]),
            origin: "Xu, Tian and Ansari 2004; 2005",
        },
        Param {
            name: "k",
            help: "round trips over which the rate is averaged",
            kind: ParamKind::Number { unit: Unit::None, min: 0.01, max: 1000.0, default: 1.0 },
            origin: "Xu, Tian and Ansari 2004",
        },
        Param {
            name: "assign",
            help: "whether a mark may also widen the window",
            kind: ParamKind::Choice(&["min", "always"]),
            origin: "as Westwood's cut; always in the paper's pseudo-code and in ns-3",
        },
        Param {
            name: "latch",
            help: "when the optimum window is taken from the estimate",
            kind: ParamKind::Choice(&["round", "ack"]),
            origin: "Hu and Zha, section II: once per round trip",
        },
        Param {
            name: "unmarked",
            help: "cause of a loss before the first mark: congestion if packets queue, or the radio",
            kind: ParamKind::Choice(&["queue", "radio"]),
            origin: "an addition for paths without warning routers; radio: Hu and Zha, section II",
        },
    ],
    status: Status::Differs(
        "more goodput than Westwood, as Hu and Zha claim; keeps the queue of slow start; without routers that warn, by \
         an added rule (docs/validation.md)",
    ),
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[
    variables::BANDWIDTH,
    Variable::new("ownd", "packets", "optimum window: bandwidth times round-trip time, latched"),
];

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    Box::new(Jersey {
        packet_bits: f64::from(environment.packet_bytes) * 8.0,
        cwnd: bounded(environment.initial_window, 1.0),
        ssthresh: environment.initial_ssthresh,
        by_receiver: settings.choice("estimator") == "new-jersey",
        may_widen: settings.choice("assign") == "always",
        every_ack: settings.choice("latch") == "ack",
        counter: AckedCount::default(),
        rate: RateEstimate { k: settings.number("k"), per_second: 0.0, last: None },
        optimum: 0.0,
        by_queue: settings.choice("unmarked") == "queue",
    })
}

/// ABE, the available bandwidth estimate.
#[derive(Clone, Debug)]
struct RateEstimate {
    /// Round trips in the average.
    k: f64,
    /// Segments per second.
    per_second: f64,
    last: Option<Time>,
}

impl RateEstimate {
    /// An ACK of time `t` acknowledges `segments`.
    fn acked(&mut self, t: Time, segments: u64, srtt: Duration) {
        let Some(last) = self.last else {
            self.last = Some(t);
            return;
        };
        // Reordered arrivals have a gap of zero.
        let gap = t.since(last).as_secs_f64();
        let window = self.k * positive(srtt);
        let rate = (window * self.per_second + segments as f64) / (gap + window);
        self.per_second = bounded(rate, 0.0);
        self.last = Some(t.max(last));
    }
}

/// Packets of its own in the queue from which on a loss without a mark is a full buffer's.
const QUEUED: f64 = 1.0;

#[derive(Clone, Debug)]
struct Jersey {
    packet_bits: f64,
    cwnd: f64,
    ssthresh: f64,
    by_receiver: bool,
    may_widen: bool,
    every_ack: bool,
    counter: AckedCount,
    rate: RateEstimate,
    /// The optimum window (ownd) in segments, latched; 0 before the first.
    optimum: f64,
    /// Whether losses while packets queue are congestion: until a mark shows that routers warn.
    by_queue: bool,
}

impl Jersey {
    /// Routers with congestion warning mark before they drop. So without marks, losses while packets queue mean a full
    /// buffer. The window becomes the capacity of an empty path at the measured rate.
    fn full_buffer(&mut self, srtt: Duration, min_rtt: Duration) -> Option<f64> {
        let queued = self.rate.per_second * (positive(srtt) - positive(min_rtt));
        (self.by_queue && queued >= QUEUED)
            .then(|| (self.rate.per_second * positive(min_rtt)).max(2.0))
    }
}

impl Controller for Jersey {
    fn on_ack(&mut self, ack: &Ack) {
        let segments = self.counter.count(ack);
        let time = if self.by_receiver { ack.arrived.unwrap_or(ack.now) } else { ack.now };
        self.rate.acked(time, segments, ack.estimate.srtt);
        if ack.round_start || self.every_ack || self.optimum <= 0.0 {
            self.optimum = bounded(self.rate.per_second * positive(ack.estimate.srtt), 0.0);
        }
        // A marked ACK widens the window, too; the reaction to the mark is separate.
        if ack.cumulative.newly_acked > 0 && !ack.in_recovery && ack.window_limited {
            let growth = if self.cwnd < self.ssthresh { 1.0 } else { 1.0 / self.cwnd };
            self.cwnd = bounded(self.cwnd + ack.counted as f64 * growth, 1.0);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            // Explicit retransmit: a loss alone is not congestion, a mark is.
            CongestionEvent::RecoveryStart(r) if r.cause == RecoveryCause::EcnCe => {
                self.by_queue = false;
                self.ssthresh = self.optimum.max(2.0);
                self.cwnd =
                    if self.may_widen { self.ssthresh } else { self.cwnd.min(self.ssthresh) };
            }
            CongestionEvent::RecoveryStart(r) => {
                if let Some(window) = self.full_buffer(r.srtt, r.min_rtt) {
                    self.ssthresh = window;
                    self.cwnd = self.cwnd.min(window);
                }
            }
            CongestionEvent::SlowStartRestart(r) => {
                let full = self.full_buffer(r.srtt, r.min_rtt);
                self.ssthresh = full.unwrap_or(self.optimum.max(2.0));
                self.cwnd = 1.0;
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.cwnd).with_ssthresh(self.ssthresh)
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("bandwidth_bps", self.rate.per_second * self.packet_bits);
        put("ownd", self.optimum);
    }
}

#[cfg(test)]
#[path = "jersey_tests.rs"]
mod tests;
