//! What time brings.

use super::{Closed, Connection};
use crate::carrier::Cargo;
use narrows_base::{Duration, Time};

impl Connection {
    /// When [`on_due`](Connection::on_due) is wanted. Ask after every other call.
    pub fn next_due(&self) -> Time {
        if !self.is_open() {
            return self.next_close_due();
        }
        let held = self.held_until.unwrap_or(Time::NEVER);
        self.carrier
            .next_due(self.last_due + self.tick_pause())
            .min(held)
            .min(self.arrivals.next_due())
            .min(self.path.next_due())
            .min(self.idle_due())
            .min(self.keep_alive_due())
    }

    /// The controller's ticks are no denser. TFRC's (RFC 5348 section 4.4) come every four round trips
    /// for ever, which on a path of microseconds would keep a processor busy with a connection that
    /// does nothing: they become rarer as the silence grows, from 32 round trips on.
    fn tick_pause(&self) -> Duration {
        let silence = self.last_due.since(self.last_heard.max(self.last_sent));
        silence.mul_f64(0.125).max(Duration::from_nanos(1))
    }

    fn idle_due(&self) -> Time {
        match self.idle_timeout {
            Duration::ZERO => Time::NEVER,
            timeout => self.last_heard + timeout,
        }
    }
    fn keep_alive_due(&self) -> Time {
        match self.keep_alive {
            Duration::ZERO => Time::NEVER,
            pause => self.last_heard.max(self.last_asked) + pause,
        }
    }

    /// A due time has come.
    pub fn on_due(&mut self, now: Time) {
        self.last_due = now;
        if !self.is_open() {
            return self.on_close_due(now);
        }
        if now >= self.idle_due() {
            return self.vanish(Closed::TimedOut);
        }
        if now >= self.keep_alive_due() {
            self.last_asked = now;
            self.carrier.cargo_mut().ping = true;
        }
        if self.carrier.on_due(now) {
            // Nothing is heard: something must leave, and perhaps packets are too large.
            let cargo = self.carrier.cargo_mut();
            cargo.ping |= cargo.is_empty();
            self.suspects_size = true;
            // A rate that fell in an outage may forbid packets for a minute. What leaves is data if
            // there is any: receiver halves measure what comes, and a few bytes every two seconds
            // would keep a rate that follows that measure (RFC 5348: twice of it) down for good.
            self.carrier.force();
        }
        self.arrivals.on_due(now);
    }
}
