//! Closing: CLOSE, RESET, and the closing and draining states (RFC 9000 section 10).

use super::life::LifePhase;
use super::{Closed, Connection, ConnectionEvent};
use narrows_base::{Duration, Time};
use narrows_wire::frame::MAX_REASON_BYTES;
use narrows_wire::reset::is_token;
use narrows_wire::{Frame, OpenError};

/// The closing and draining states last this many PTOs (RFC 9000 section 10.2).
const DRAIN: u64 = 3;
/// Upper limit on that time: three of the longest timeouts, with a margin. A clock that jumps, or a peer that delays
/// its reports, can make a PTO of minutes.
const MAX_DRAIN: Duration = Duration::from_secs(10);

/// CLOSE code for a path that drops full packets.
const SMALL_PATH: u64 = 11;

impl Connection {
    pub(super) fn is_open(&self) -> bool {
        self.life.is_open()
    }

    /// Sends CLOSE and reports `closed` to the application.
    pub(super) fn begin_closing(&mut self, now: Time, code: u64, reason: &str, closed: Closed) {
        if !self.is_open() {
            return;
        }
        let pause = self.path.sender.pto();
        let until = self.drained_at(now);
        let reason = bounded(reason).into();
        self.life.phase = LifePhase::Closing { code, reason, say: true, next: now, pause, until };
        self.life.closed = Some(closed);
    }

    /// Closes after a protocol violation by the peer.
    pub(super) fn fault(&mut self, now: Time, code: u64, why: &'static str) {
        self.begin_closing(now, code, why, Closed::Fault { code, why });
    }

    /// Closes the connection because the path drops full packets.
    pub(super) fn end_on_small_path(&mut self, now: Time) {
        let size = self.path.mtu.small();
        let why = format!("packets of {size} bytes do not pass");
        self.begin_closing(now, SMALL_PATH, &why, Closed::SmallPath { size });
    }

    /// Handles the peer's CLOSE.
    pub(super) fn on_close(&mut self, now: Time, code: u64, reason: &[u8]) {
        if self.is_open() {
            let reason = cleaned(reason);
            self.life.closed = Some(Closed::ByPeer { code, reason });
        }
        let until = match self.life.phase {
            LifePhase::Closing { until, .. } => until,
            LifePhase::Draining { .. } | LifePhase::Over => return,
            LifePhase::Open => self.drained_at(now),
        };
        self.life.phase = LifePhase::Draining { until };
    }

    /// End of a closing or draining state that begins now.
    fn drained_at(&self, now: Time) -> Time {
        now + self.path.sender.pto().saturating_mul(DRAIN).min(MAX_DRAIN)
    }

    /// Ends the connection at once, without CLOSE.
    pub(super) fn vanish(&mut self, closed: Closed) {
        self.life.vanish(closed);
    }

    /// Handles a RESET from the peer's address. It is valid only if its token equals the one in the peer's parameters.
    pub fn on_reset(&mut self, token: &[u8; 16]) {
        if self.is_open()
            && self.life.reset_token.as_ref().is_some_and(|told| is_token(told, token))
        {
            self.vanish(Closed::Reset);
        }
    }

    pub(super) fn on_refused(&mut self, now: Time, why: &OpenError) {
        self.traffic.refused += 1;
        if matches!(why, OpenError::TooManyForged) {
            self.fault(now, 6, "more forged packets than the cipher withstands");
        }
    }

    /// Writes CLOSE if it is due.
    pub(super) fn transmit_close(&mut self, now: Time, buffer: &mut [u8]) -> Option<usize> {
        let LifePhase::Closing { code, reason, say, next, pause, .. } = &mut self.life.phase else {
            return None;
        };
        if !*say || now < *next {
            return None;
        }
        *say = false;
        *next = now + *pause;
        *pause = pause.saturating_mul(2);
        let code = *code;
        let reason = reason.clone();
        let close = [&Frame::Close { code, reason: reason.as_bytes() }];
        // The last report is included, to give the peer the outcome of its packets. If both do not fit, CLOSE is sent
        // alone.
        self.seal_frames(now, buffer, &close, None, true)
            .or_else(|| self.seal_frames(now, buffer, &close, None, false))
    }

    /// The next event; `None` if no event is pending.
    pub fn event(&mut self) -> Option<ConnectionEvent> {
        if self.life.ended {
            return None;
        }
        if let Some(to) = self.path.address.moved() {
            return Some(ConnectionEvent::Moved(to));
        }
        if std::mem::take(&mut self.agreement.news) {
            return Some(ConnectionEvent::ApplicationKnown);
        }
        if std::mem::take(&mut self.inbox.news) {
            return Some(ConnectionEvent::Message);
        }
        if let Some(event) = self.payload.streams.event() {
            return Some(ConnectionEvent::Stream(event));
        }
        self.life.closed().map(ConnectionEvent::Closed)
    }

    /// Whether the closing or draining state is over, so that the connection can be dropped.
    pub fn is_drained(&self) -> bool {
        matches!(self.life.phase, LifePhase::Over)
    }
}

/// The reason, truncated to `MAX_REASON_BYTES`.
fn bounded(reason: &str) -> &str {
    let mut most = reason.len().min(MAX_REASON_BYTES);
    while !reason.is_char_boundary(most) {
        most -= 1;
    }
    reason.get(..most).unwrap_or_default()
}

/// A peer's reason, escaped for display.
fn cleaned(reason: &[u8]) -> String {
    narrows_base::text::shown(&String::from_utf8_lossy(reason)).into_owned()
}
