//! Detects a silent path: packets are in flight, and the peer does not answer.

use narrows_base::{Duration, Time};

/// Time between probes of a silent path. A path is to be used again within a second of its return, and an answer takes
/// a round trip.
const PROBE_INTERVAL: Duration = Duration::from_millis(500);

/// Whether a path is silent. RFC 9002's probe timeout begins anew with each packet that is sent; a sender with data
/// would find a dead path only when its window is full. This one begins with the first packet after the last answer.
#[derive(Clone, Copy, Debug)]
pub struct Liveness {
    /// When the first packet since the last answer left; [`Time::NEVER`] without such a packet.
    unanswered: Time,
    /// When the next probe is due; [`Time::NEVER`] while the path is not silent.
    next_probe: Time,
}

impl Default for Liveness {
    fn default() -> Liveness {
        Liveness { unanswered: Time::NEVER, next_probe: Time::NEVER }
    }
}

impl Liveness {
    /// A packet that elicits an answer was sent.
    pub fn on_sent(&mut self, now: Time) {
        self.unanswered = self.unanswered.min(now);
    }
    /// An answer arrived; `outstanding` if packets are still in flight. Returns whether the path was silent.
    pub fn on_answer(&mut self, now: Time, outstanding: bool) -> bool {
        self.unanswered = if outstanding { now } else { Time::NEVER };
        let was_silent = self.is_silent();
        self.next_probe = Time::NEVER;
        was_silent
    }
    /// Whether the path is silent.
    pub fn is_silent(&self) -> bool {
        !self.next_probe.is_never()
    }
    /// When [`on_timeout`](Liveness::on_timeout) is due, for a path with this probe timeout (RFC 9002 section 6.2.1).
    pub fn due(&self, pto: Duration) -> Time {
        if self.is_silent() {
            self.next_probe
        } else if self.unanswered.is_never() {
            Time::NEVER
        } else {
            self.unanswered + pto
        }
    }
    /// A time has come. If the path is silent and a probe is due, returns true: a full packet must be sent, since small
    /// ones may pass where full ones do not.
    pub fn on_timeout(&mut self, now: Time, pto: Duration) -> bool {
        let is_due = self.due(pto) <= now;
        if is_due {
            self.next_probe = now + PROBE_INTERVAL;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn liveness_without_answer_is_silent_after_one_pto() {
        let pto = Duration::from_millis(100);
        let mut path = Liveness::default();
        assert!(path.due(pto).is_never());
        (0..10).for_each(|n| path.on_sent(at(n * 20)));
        assert_eq!(path.due(pto), at(100), "later packets do not postpone it");
        assert!(!path.on_timeout(at(99), pto) && !path.is_silent());
        assert!(path.on_timeout(at(100), pto) && path.is_silent());
        assert_eq!(path.due(pto), at(600));
        assert!(path.on_answer(at(700), false) && !path.is_silent());
        assert!(path.due(pto).is_never());
    }
}
