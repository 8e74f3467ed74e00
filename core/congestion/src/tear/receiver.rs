//! The receiver side: the state machine, and the time of reports.
//!
//! Jayaram's thesis says only that reports are much rarer than TCP's ACKs. Here a report is sent at once if the rate
//! fell below the last reported one, otherwise once per RTT while packets arrive. Before the first rate, every packet
//! is reported. Four holes are reported at once, since the endpoint's ACK vector is limited.

use super::emulation::{EmulationState, TcpEmulation};
use crate::{Arrival, Feedback, ReceiverSide};
use narrows_base::{Duration, Time};

/// Holes in the sequence after which a report is due.
const HOLES: u32 = 4;

#[derive(Clone, Debug)]
pub(super) struct TearReceiver {
    pub emulation: TcpEmulation,
    /// Packets per second in the last report.
    reported: f64,
    reported_at: Time,
    /// A packet has arrived since.
    fresh: bool,
    holes: u32,
    next: u64,
}

impl TearReceiver {
    pub fn new(emulation: TcpEmulation) -> TearReceiver {
        TearReceiver {
            emulation,
            reported: 0.0,
            reported_at: Time::ZERO,
            fresh: false,
            holes: 0,
            next: 0,
        }
    }

    fn scheduled(&self) -> Time {
        match self.emulation.rtt() {
            _ if !self.fresh => Time::NEVER,
            _ if self.reported <= 0.0 => Time::ZERO,
            Some(rtt) => self.reported_at + Duration::from_secs_f64(rtt),
            None => Time::ZERO,
        }
    }
    fn wanted(&self, now: Time) -> bool {
        self.emulation.rate() < self.reported || self.holes >= HOLES || self.scheduled() <= now
    }
}

impl ReceiverSide for TearReceiver {
    fn on_arrival(&mut self, a: &Arrival) -> bool {
        self.emulation.on_arrival(a);
        self.fresh = true;
        if a.seq > self.next && self.next > 0 {
            self.holes += 1;
        }
        self.next = self.next.max(a.seq.saturating_add(1));
        self.wanted(a.now)
    }
    fn on_tick(&mut self, now: Time) -> bool {
        self.emulation.on_time(now);
        self.wanted(now)
    }
    fn next_tick(&self) -> Time {
        self.emulation.due().min(self.scheduled())
    }
    fn feedback(&mut self, now: Time) -> Feedback {
        self.reported = self.emulation.rate();
        self.reported_at = now;
        self.fresh = false;
        self.holes = 0;
        Feedback::of(&[self.reported])
    }
    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("tear_cwnd", self.emulation.cwnd);
        put("tear_ssthresh", self.emulation.ssthresh());
        put(
            "tear_state",
            match self.emulation.state {
                EmulationState::SlowStartReady => 0.0,
                EmulationState::SlowStart => 1.0,
                EmulationState::AvoidanceReady => 2.0,
                EmulationState::Avoidance => 3.0,
                EmulationState::Gap => 4.0,
                EmulationState::FastRecovery => 5.0,
                EmulationState::Timeout => 6.0,
            },
        );
        if let Some(delay) = self.emulation.delay() {
            let (judged, r1, r2) = delay.judged();
            put("tear_delay_s", judged);
            put("tear_r1_s", r1);
            put("tear_r2_s", r2);
            put("tear_down", f64::from(u8::from(delay.is_down())));
        }
    }
}
