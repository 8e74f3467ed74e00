//! The receiver half: the machine, and when to report.
//!
//! S4 says only that reports are much rarer than TCP's ACKs. Here: at once when the rate fell below
//! what was last reported, otherwise once per RTT while packets come; every packet until a
//! rate is known; and after four holes, so that the endpoint's ACK vector has room for them.

use super::machine::{Machine, State};
use crate::{Advice, Arrival, ReceiverHalf};
use narrows_base::{Duration, Time};

/// Holes in the sequence after which a report is due.
const HOLES: u32 = 4;

#[derive(Debug)]
pub(super) struct Half {
    pub machine: Machine,
    /// Packets per second in the last report.
    reported: f64,
    reported_at: Time,
    /// A packet came since.
    fresh: bool,
    holes: u32,
    next: u64,
}

impl Half {
    pub fn new(machine: Machine) -> Half {
        Half { machine, reported: 0.0, reported_at: Time::ZERO, fresh: false, holes: 0, next: 0 }
    }

    fn scheduled(&self) -> Time {
        match self.machine.rtt() {
            _ if !self.fresh => Time::NEVER,
            _ if self.reported <= 0.0 => Time::ZERO,
            Some(rtt) => self.reported_at + Duration::from_secs_f64(rtt),
            None => Time::ZERO,
        }
    }
    fn wanted(&self, now: Time) -> bool {
        self.machine.rate() < self.reported || self.holes >= HOLES || self.scheduled() <= now
    }
}

impl ReceiverHalf for Half {
    fn on_arrival(&mut self, a: &Arrival) -> bool {
        self.machine.on_arrival(a);
        self.fresh = true;
        if a.seq > self.next && self.next > 0 {
            self.holes += 1;
        }
        self.next = self.next.max(a.seq.saturating_add(1));
        self.wanted(a.now)
    }
    fn on_tick(&mut self, now: Time) -> bool {
        self.machine.on_time(now);
        self.wanted(now)
    }
    fn next_tick(&self) -> Time {
        self.machine.due().min(self.scheduled())
    }
    fn advice(&mut self, now: Time) -> Advice {
        self.reported = self.machine.rate();
        self.reported_at = now;
        self.fresh = false;
        self.holes = 0;
        Advice::of(&[self.reported])
    }
    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("tear_cwnd", self.machine.cwnd);
        put("tear_ssthresh", self.machine.ssthresh());
        put(
            "tear_state",
            match self.machine.state {
                State::SlowStartReady => 0.0,
                State::SlowStart => 1.0,
                State::AvoidanceReady => 2.0,
                State::Avoidance => 3.0,
                State::Gap => 4.0,
                State::FastRecovery => 5.0,
                State::Timeout => 6.0,
            },
        );
        if let Some(delay) = self.machine.delay() {
            let (judged, r1, r2) = delay.judged();
            put("tear_delay_s", judged);
            put("tear_r1_s", r1);
            put("tear_r2_s", r2);
            put("tear_down", f64::from(u8::from(delay.is_down())));
        }
    }
}
