//! Timeouts of a connection.

use narrows_base::{Duration, Time};
use narrows_recovery::rtt::RtoConfig;

/// If data wait for the pacer and no packet arrives, the sender requests a reply after this part of the idle timeout.
/// If that packet is lost, PTO follows.
const ASKS_AFTER: f64 = 0.25;
/// Before the first acknowledgement, timeouts double up to this part of the idle timeout. After an outage that ends in
/// time, several probes remain, of which a bad link may lose some.
const LONGEST_TIMEOUT: f64 = 0.125;
/// Lower limit on that longest timeout, for short idle timeouts.
const MIN_LONGEST_TIMEOUT: Duration = Duration::from_secs(2);
/// An idle timeout is at least this many round trips or PTOs (RFC 9000 section 10.1).
const IDLE_ROUND_TRIPS: u64 = 3;
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

/// The idle timeout on a path with round trips of at most `max_rtt`: a reply must be able to arrive in time.
pub(super) fn covering(idle_timeout: Duration, max_rtt: Duration) -> Duration {
    match idle_timeout {
        Duration::ZERO => Duration::ZERO,
        idle => idle.max(max_rtt.saturating_mul(IDLE_ROUND_TRIPS)),
    }
}

/// Timeouts of a connection, and the times from which they run.
#[derive(Debug)]
pub(super) struct Timeouts {
    /// The shorter of both ends' idle timeouts; zero for none.
    pub idle: Duration,
    /// Interval of keep-alive; zero for none.
    pub keep_alive: Duration,
    /// When the last packet was received, the last data were sent, and a reply was last requested.
    pub received: Time,
    pub sent: Time,
    pub asked: Time,
    /// The last call of [`on_timeout`](super::Connection::on_timeout).
    pub due: Time,
    /// Whether a packet was sent or received since memory was last released.
    pub keeps_memory: bool,
}

impl Timeouts {
    /// For a connection that begins now.
    pub fn new(now: Time, idle: Duration, keep_alive: Duration) -> Timeouts {
        Timeouts {
            idle,
            keep_alive,
            received: now,
            sent: now,
            asked: now,
            due: now,
            keeps_memory: true,
        }
    }

    /// Earliest next tick of the controller. TFRC's ticks (RFC 5348 section 4.4) come every four round trips, without
    /// end. On a path of microseconds they would keep a processor busy with an idle connection. So from 32 round trips
    /// of idle time on, ticks become rarer.
    pub fn earliest_tick(&self) -> Time {
        let silence = self.due.since(self.received.max(self.sent));
        self.due + silence.mul_f64(0.125).max(Duration::from_nanos(1))
    }
    /// When unused memory is released. `has_spare`: whether streams have some, because reading the end of a stream can
    /// free it without a packet.
    pub fn release_due(&self, has_spare: bool) -> Time {
        if self.keeps_memory || has_spare {
            self.received.max(self.sent) + KEEPS_MEMORY
        } else {
            Time::NEVER
        }
    }
    pub fn idle_due(&self, pto: Duration) -> Time {
        match covering(self.idle, pto) {
            Duration::ZERO => Time::NEVER,
            timeout => self.received + timeout,
        }
    }
    /// When to request a reply from the peer: after the keep-alive interval, or earlier if the pacer holds data back. A
    /// controller's rate may be a packet per minute (RFC 5348's lowest is one in 64 s). While no packet is in flight,
    /// no PTO runs, and two live ends with data to send would time out.
    pub fn keep_alive_due(&self, holds_data: bool) -> Time {
        let held = holds_data.then(|| self.idle.mul_f64(ASKS_AFTER));
        let wanted = (self.keep_alive != Duration::ZERO).then_some(self.keep_alive);
        let pause = held.into_iter().chain(wanted).filter(|p| *p != Duration::ZERO).min();
        pause.map_or(Time::NEVER, |pause| self.received.max(self.asked) + pause)
    }
    /// A reply is requested. Returns whether keep-alive is the reason.
    pub fn ask(&mut self, now: Time) -> bool {
        let is_wanted = self.keep_alive != Duration::ZERO
            && now >= self.received.max(self.asked) + self.keep_alive;
        self.asked = now;
        is_wanted
    }
}
