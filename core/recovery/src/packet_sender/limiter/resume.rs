//! Careful Resume (RFC 9959): the flight that a stored rate permits, until it is validated.
//!
//! The handshake takes the place of the initial window's acknowledgement (section 3.2). The limiter opens with half of the
//! stored window (3.3). If that flight meets congestion, only repairs leave until a later packet is acknowledged; then the
//! sender goes on with half of what arrived (3.5).

use narrows_base::{Duration, Time};

/// State of the flight.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
enum ResumePhase {
    /// No stored rate is in use, or it is validated (section 3.6).
    #[default]
    Normal,
    /// A stored rate is set; no packet has left.
    Ready,
    /// Packets have left since this time, and none of them is acknowledged (section 3.3).
    Unvalidated(Time),
    /// The packets sent between these times are the flight; some are acknowledged (section 3.4).
    Validating(Time, Time),
    /// The flight met congestion. Ends with a packet sent from this time on (section 3.5).
    SafeRetreat(Time),
}

/// A stored rate in use.
#[derive(Clone, Debug, Default)]
pub(super) struct Resume {
    phase: ResumePhase,
    /// Stored share of losses without congestion.
    loss: f64,
    /// Packets of the flight that were sent and lost, and its bytes that arrived (PipeSize).
    sent: u32,
    lost: u32,
    pipe: u64,
}

/// Whether a stored path may be the present one by its smallest RTT (sections 3.2 and 4.2.1).
pub(super) fn confirms(stored: Duration, rtt: Duration) -> bool {
    let stored = stored.as_secs_f64();
    let rtt = rtt.as_secs_f64();
    rtt > stored / 2.0 && rtt <= stored * 10.0
}

impl Resume {
    /// A stored rate with this share of losses is set.
    pub fn ready(loss: f64) -> Resume {
        Resume { phase: ResumePhase::Ready, loss, ..Resume::default() }
    }
    /// Whether a stored rate is set or being validated.
    pub fn is_open(&self) -> bool {
        matches!(
            self.phase,
            ResumePhase::Ready | ResumePhase::Unvalidated(_) | ResumePhase::Validating(..)
        )
    }
    pub fn is_in_retreat(&self) -> bool {
        matches!(self.phase, ResumePhase::SafeRetreat(_))
    }
    pub fn on_sent(&mut self, now: Time) {
        if self.phase == ResumePhase::Ready {
            self.phase = ResumePhase::Unvalidated(now);
        }
        if let ResumePhase::Unvalidated(_) = self.phase {
            self.sent = self.sent.saturating_add(1);
        }
    }
    /// A packet arrived. At the end of a retreat, returns the bytes that may leave: half of the PipeSize.
    pub fn on_arrived(&mut self, now: Time, sent: Time, bytes: u64) -> Option<u64> {
        match self.phase {
            ResumePhase::Unvalidated(begun) if sent >= begun => {
                self.phase = ResumePhase::Validating(begun, now);
            }
            ResumePhase::Validating(_, end) if sent >= end => self.phase = ResumePhase::Normal,
            ResumePhase::SafeRetreat(end) if sent >= end => {
                self.phase = ResumePhase::Normal;
                return Some(self.pipe / 2);
            }
            _ => {}
        }
        if self.phase != ResumePhase::Normal {
            self.pipe += bytes;
        }
        None
    }
    /// A packet that left at `sent` is lost. Returns whether the retreat begins: at the first loss, or on a path that was
    /// stored with losses, at more than three standard deviations above that share.
    pub fn on_lost(&mut self, now: Time, sent: Time) -> bool {
        let (ResumePhase::Unvalidated(begun) | ResumePhase::Validating(begun, _)) = self.phase
        else {
            return false;
        };
        let end = if let ResumePhase::Validating(_, end) = self.phase { end } else { Time::NEVER };
        if sent < begun || sent >= end {
            return false;
        }
        self.lost = self.lost.saturating_add(1);
        let expected = self.loss * f64::from(self.sent);
        f64::from(self.lost) > expected + 3.0 * expected.sqrt() && self.on_marks(now)
    }
    /// Packets were marked: congestion. Returns whether the retreat begins.
    pub fn on_marks(&mut self, now: Time) -> bool {
        let is_unvalidated =
            matches!(self.phase, ResumePhase::Unvalidated(_) | ResumePhase::Validating(..));
        if is_unvalidated {
            self.phase = ResumePhase::SafeRetreat(now);
        }
        is_unvalidated
    }
}
