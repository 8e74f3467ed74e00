//! Timed scenarios for controller tests: events at given times, and the expected windows.

use crate::{Ack, CongestionEvent, Controller, CumulativeAck, Environment};
use crate::{Loss, LossFoundBy, RecoveryCause, RecoveryEvent, SlowStartRestart, SpuriousLosses};
use narrows_base::{Duration, Settings, Spec, Time};

/// Builds a controller from a user's specification, in preset `rfc`.
pub fn build(spec: &str) -> Box<dyn Controller> {
    build_in(spec, &Environment::default())
}

/// A controller on an ideal path: constant RTT, one ACK per segment, window always full.
pub struct IdealPath {
    pub controller: Box<dyn Controller>,
    pub now: Time,
    pub rtt: Duration,
    pub min_rtt: Duration,
    /// Time between ACKs.
    pub gap: Duration,
    pub window_limited: bool,
    /// Segments that arrived behind a hole, which FlightSize counts beyond the window.
    pub extra_flight: u64,
    round: u64,
    round_left: u64,
    repeat_timeouts: u32,
    delivered: u64,
}

impl IdealPath {
    pub fn new(controller: Box<dyn Controller>) -> IdealPath {
        IdealPath {
            controller,
            now: Time::ZERO,
            rtt: Duration::from_millis(100),
            min_rtt: Duration::from_millis(100),
            gap: Duration::from_millis(5),
            window_limited: true,
            extra_flight: 0,
            round: 0,
            round_left: 0,
            repeat_timeouts: 0,
            delivered: 0,
        }
    }
    pub fn window(&self) -> f64 {
        self.controller.send_limits().cwnd
    }
    pub fn ssthresh(&self) -> Option<f64> {
        self.controller.send_limits().ssthresh
    }
    fn flight(&self) -> u64 {
        let w = self.window();
        if w.is_finite() { w as u64 } else { 10 }
    }
    /// The next ACK as an endpoint would report it.
    pub fn ack(&mut self, newly_acked: u64, in_recovery: bool) -> Ack {
        self.now += self.gap;
        self.min_rtt = self.min_rtt.min(self.rtt);
        let round_start = self.round_left == 0;
        if round_start {
            self.round += 1;
            self.round_left = self.flight().max(1);
        }
        self.round_left -= 1;
        self.delivered += 1;
        self.repeat_timeouts = 0;
        let flight = self.flight();
        Ack {
            cumulative: CumulativeAck::of(newly_acked),
            counted: newly_acked,
            newly_delivered: newly_acked.max(1),
            sent_since: flight,
            flight,
            outstanding: flight,
            prior_outstanding: flight + newly_acked,
            window_limited: self.window_limited,
            in_recovery,
            round: self.round,
            round_start,
            rate: Some(crate::RateSample {
                delivered: flight.max(1),
                interval: self.rtt,
                prior_delivered: self.delivered.saturating_sub(flight),
                total_delivered: self.delivered,
                app_limited: !self.window_limited,
            }),
            ..Ack::of_packet(self.now, self.rtt, self.min_rtt)
        }
    }
    /// `n` ACKs of one new segment each.
    pub fn acks(&mut self, n: u32) {
        for _ in 0..n {
            let ack = self.ack(1, false);
            self.controller.on_ack(&ack);
        }
    }
    /// A recovery that begins now.
    pub fn recovery_start(&self) -> CongestionEvent {
        CongestionEvent::RecoveryStart(self.episode())
    }
    fn episode(&self) -> RecoveryEvent {
        RecoveryEvent {
            now: self.now,
            cause: RecoveryCause::Loss,
            flight: self.flight() + self.extra_flight,
            outstanding: self.flight(),
            min_rtt: self.min_rtt,
            srtt: self.rtt,
        }
    }
    /// A recovery begins and ends.
    pub fn recovery(&mut self) {
        let episode = self.episode();
        self.controller.on_congestion_event(&CongestionEvent::RecoveryStart(episode));
        let episode = self.episode();
        self.controller.on_congestion_event(&CongestionEvent::RecoveryEnd(episode));
    }
    /// A packet that had been declared lost arrived; `undo` if it was the last one of its episode.
    pub fn spurious(&mut self, undo: bool) {
        let spurious = SpuriousLosses { now: self.now, packets: 1, undo };
        self.controller.on_congestion_event(&CongestionEvent::SpuriousLosses(spurious));
    }
    /// The retransmission timer expires.
    pub fn timeout(&mut self) {
        self.repeat_timeouts += 1;
        let restart = SlowStartRestart {
            now: self.now,
            flight: self.flight() + self.extra_flight,
            timeout: true,
            backoffs: self.repeat_timeouts,
            min_rtt: self.min_rtt,
            srtt: self.rtt,
        };
        self.controller.on_congestion_event(&CongestionEvent::SlowStartRestart(restart));
    }
}

/// Builds a controller from a user's specification, in that environment.
pub fn build_in(spec: &str, environment: &Environment) -> Box<dyn Controller> {
    let spec = Spec::parse(spec).expect("a test's spec is well formed");
    let entry = crate::find(&spec.name).expect("a test names a listed controller");
    let settings: Settings = entry.read(&spec).expect("a test's parameters are legal");
    entry.build(&settings, environment)
}

/// One segment found lost.
pub fn lost(now: Time, sent: Time, transmissions: u32, found_by: LossFoundBy) -> Loss {
    Loss { now, segments: 1, sent, transmissions, found_by, new_episode: true, radio: 0 }
}
