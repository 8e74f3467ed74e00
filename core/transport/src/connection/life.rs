//! The life of a connection: open, closing, draining, over (RFC 9000 section 10).

use super::event::Closed;
use narrows_base::{Duration, Time};

/// The life of a connection, from open to over.
#[derive(Debug)]
pub(super) struct Life {
    pub phase: LifePhase,
    /// The reason for the end, until it is reported. Then `ended` is set, and no event follows.
    pub closed: Option<Closed>,
    pub ended: bool,
    /// The token in the peer's parameters that makes a RESET valid.
    pub reset_token: Option<Box<[u8; 16]>>,
}

/// The state of a connection.
#[derive(Debug)]
pub(super) enum LifePhase {
    Open,
    /// CLOSE was sent. It is repeated if the peer keeps sending.
    Closing {
        code: u64,
        reason: Box<str>,
        say: bool,
        next: Time,
        pause: Duration,
        until: Time,
    },
    /// The peer sent CLOSE; this end sends no further packets.
    Draining {
        until: Time,
    },
    Over,
}

impl Life {
    /// An open connection.
    pub fn new(reset_token: Option<[u8; 16]>) -> Life {
        let reset_token = reset_token.map(Box::new);
        Life { phase: LifePhase::Open, closed: None, ended: false, reset_token }
    }
    pub fn is_open(&self) -> bool {
        matches!(self.phase, LifePhase::Open)
    }
    /// Ends the connection at once, without CLOSE.
    pub fn vanish(&mut self, closed: Closed) {
        if self.is_open() {
            self.closed = Some(closed);
        }
        self.phase = LifePhase::Over;
    }
    /// Schedules another CLOSE after an authentic packet that arrived too late. The interval between CLOSEs doubles
    /// each time.
    pub fn on_late_packet(&mut self) {
        if let LifePhase::Closing { say, .. } = &mut self.phase {
            *say = true;
        }
    }
    pub fn next_timeout(&self) -> Time {
        match &self.phase {
            LifePhase::Closing { say: true, next, until, .. } => *next.min(until),
            LifePhase::Closing { until, .. } | LifePhase::Draining { until } => *until,
            LifePhase::Open | LifePhase::Over => Time::NEVER,
        }
    }
    pub fn on_timeout(&mut self, now: Time) {
        if let LifePhase::Closing { until, .. } | LifePhase::Draining { until } = self.phase
            && now >= until
        {
            self.phase = LifePhase::Over;
        }
    }
    /// The reason for the end, once.
    pub fn closed(&mut self) -> Option<Closed> {
        let closed = self.closed.take()?;
        self.ended = true;
        Some(closed)
    }
}
