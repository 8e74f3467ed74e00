//! Packets of a handshake that are sent until they are answered.

use narrows_base::{Duration, Time};

/// A packet without an answer is sent again after this at first; then after twice as long each
/// time. RFC 6298's second is for data; a handshake that waits a second for each lost packet is
/// what people complain of on bad links, and one that asks early costs 64 bytes.
pub(crate) const FIRST_REPEAT: Duration = Duration::from_millis(300);
/// The shortest wait where the round-trip time is known: the peer's arithmetic takes time, too.
const SOON: Duration = Duration::from_millis(100);
/// The longest wait.
const LAST_REPEAT: Duration = Duration::from_secs(2);
/// A packet that is sent until it is answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Repeat {
    /// When it leaves next.
    pub(crate) due: Time,
    wait: Duration,
    first_sent: Time,
    pub(crate) sent: u32,
}

impl Repeat {
    /// To leave now; and again after `wait`, and so on.
    pub(crate) fn new(now: Time, wait: Duration) -> Repeat {
        Repeat { due: now, wait: wait.min(LAST_REPEAT), first_sent: now, sent: 0 }
    }
    /// To leave now, to a peer that has answered within `rtt` before.
    pub(crate) fn after(now: Time, rtt: Duration) -> Repeat {
        Repeat::new(now, rtt.saturating_mul(2).max(SOON))
    }
    /// It leaves.
    pub(crate) fn on_sent(&mut self, now: Time) {
        if self.sent == 0 {
            self.first_sent = now;
        }
        self.sent = self.sent.saturating_add(1);
        self.due = now + self.wait;
        self.wait = self.wait.saturating_mul(2).min(LAST_REPEAT);
    }
    /// Whether it left at all.
    pub(crate) fn is_sent(&self) -> bool {
        self.sent > 0
    }
    /// How long its answer took from the first time that it left.
    pub(crate) fn took(&self, now: Time) -> Duration {
        now.since(self.first_sent)
    }
    /// What its answer says of the round-trip time: nothing if it is not known which it answers
    /// (Karn's rule, RFC 6298 section 3).
    pub(crate) fn sample(&self, now: Time) -> Option<Duration> {
        (self.sent == 1).then(|| now.since(self.first_sent))
    }
}
