//! Timers of a connection.

use super::{Closed, Connection};
use crate::packet_sender::PayloadSource;
use crate::rtt::RtoConfig;
use narrows_base::{Duration, Time};

/// If data wait for the pacer and no packet arrives, the sender requests a reply after this part of the idle timeout.
/// If that packet is lost, PTO follows.
const ASKS_AFTER: f64 = 0.25;
/// Before the first acknowledgement, timeouts double up to this part of the idle timeout. After an outage that ends in
/// time, several probes remain, of which a bad link may lose some.
const LONGEST_TIMEOUT: f64 = 0.125;
/// Lower limit on that longest timeout, for short idle timeouts.
const MIN_LONGEST_TIMEOUT: Duration = Duration::from_secs(2);
/// After this time without packets, memory kept for later packets and streams is released.
const KEEPS_MEMORY: Duration = Duration::from_millis(250);

/// Limits the timeout's back-off for a connection with this idle timeout.
pub(super) fn backing_off(rto: RtoConfig, idle_timeout: Duration) -> RtoConfig {
    let longest = match idle_timeout {
        Duration::ZERO => rto.max,
        idle => rto.max.min(idle.mul_f64(LONGEST_TIMEOUT).max(MIN_LONGEST_TIMEOUT)),
    };
    RtoConfig { max: longest, ..rto }
}

impl Connection {
    /// When to call [`on_timeout`](Connection::on_timeout). The value is valid until the next call of any other method.
    pub fn next_timeout(&self) -> Time {
        if !self.is_open() {
            return self.next_close_timeout();
        }
        let held = self.held_until.unwrap_or(Time::NEVER);
        self.sender
            .next_timeout(self.last_due + self.tick_pause())
            .min(held)
            .min(self.receiver.next_timeout())
            .min(self.path.next_timeout())
            .min(self.idle_due())
            .min(self.keep_alive_due())
            .min(self.release_due())
    }

    /// Shortest interval between the controller's ticks. TFRC's ticks (RFC 5348 section 4.4) come every four round
    /// trips, without end. On a path of microseconds they would keep a processor busy with an idle connection. So from
    /// 32 round trips of idle time on, ticks become rarer.
    fn tick_pause(&self) -> Duration {
        let silence = self.last_due.since(self.last_received.max(self.last_sent));
        silence.mul_f64(0.125).max(Duration::from_nanos(1))
    }

    /// When unused memory is released.
    fn release_due(&self) -> Time {
        // Reading the end of a stream can free it without a packet.
        if self.keeps_memory || self.payload.streams.has_spare() {
            self.last_received.max(self.last_sent) + KEEPS_MEMORY
        } else {
            Time::NEVER
        }
    }
    fn release_memory(&mut self) {
        self.keeps_memory = false;
        self.sender.release_memory();
        self.nonces.release_memory();
        self.inbox.release_memory();
        if let Some(repairs) = &mut self.repairs {
            repairs.release_memory();
        }
        let payload = &mut self.payload;
        payload.streams.release_memory();
        payload.messages.release_memory();
    }

    fn idle_due(&self) -> Time {
        let idle = match self.idle_timeout {
            Duration::ZERO => Time::NEVER,
            timeout => self.last_received + timeout,
        };
        idle.min(self.unconfirmed_until())
    }
    /// When to request a reply from the peer: after the keep-alive interval, or earlier if the pacer holds data back. A
    /// controller's rate may be a packet per minute (RFC 5348's lowest is one in 64 s). While no packet is in flight,
    /// no PTO runs, and two live ends with data to send would time out.
    fn keep_alive_due(&self) -> Time {
        let held = self.is_data_held.then(|| self.idle_timeout.mul_f64(ASKS_AFTER));
        let wanted = (self.keep_alive != Duration::ZERO).then_some(self.keep_alive);
        let pause = held.into_iter().chain(wanted).filter(|p| *p != Duration::ZERO).min();
        pause.map_or(Time::NEVER, |pause| self.last_received.max(self.last_asked) + pause)
    }
    /// Requests a reply: with waiting data if there are any, otherwise with a PING if keep-alive is on. The packet
    /// ignores window and pacer; one per interval is no load.
    fn keep_alive(&mut self, now: Time) {
        let is_wanted = self.keep_alive != Duration::ZERO
            && now >= self.last_received.max(self.last_asked) + self.keep_alive;
        self.last_asked = now;
        if self.sender.backoffs() > 0 {
            return; // Probes already request a reply.
        }
        let payload = &mut self.payload;
        payload.ping |= is_wanted;
        if !payload.is_empty() {
            self.sender.force();
        }
    }

    /// Handles the time given by [`next_timeout`](Connection::next_timeout).
    pub fn on_timeout(&mut self, now: Time) {
        self.last_due = now;
        if !self.is_open() {
            return self.on_close_timeout(now);
        }
        if now >= self.idle_due() {
            return self.vanish(Closed::TimedOut);
        }
        if now >= self.release_due() {
            self.release_memory();
        }
        if now >= self.keep_alive_due() {
            self.keep_alive(now);
        }
        if self.sender.on_timeout(now, &mut self.payload) {
            // PTO expired: a probe must be sent. The datagram size may be too large.
            // Until a full packet arrives, every second probe from the third PTO on is short. Its report distinguishes
            // a path that carries only small packets from an outage.
            let timeouts = self.sender.counters().timeouts;
            let has_arrived = self.payload.full_packets.has_arrived();
            let tests_size = !has_arrived && timeouts > 2 && timeouts % 2 == 1;
            if tests_size || self.is_before_first_ack(0, self.datagram()) {
                self.sender.shorten_probe();
            }
            let is_short = self.sender.is_short_probe();
            let payload = &mut self.payload;
            payload.ping |= is_short || payload.is_empty();
            self.suspects_size = true;
        }
        self.receiver.on_timeout(now);
    }
}
