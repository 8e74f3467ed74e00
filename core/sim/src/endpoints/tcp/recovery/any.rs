//! A recovery of any kind, stored in its sender: no allocation and no pointer per flow.

use super::newreno::NewReno;
use super::rack::Rack;
use super::reno::RenoRecovery;
use super::sack::Sack;
use super::sack1::Sack1;
use super::tahoe::Tahoe;
use super::vegas::VegasRecovery;
use super::{AckOutcome, Acked, DUP_THRESH, LossRecovery, RecoveryPhase, RecoveryState};
use crate::endpoints::tcp::scoreboard::{Scoreboard, SentSegment};
use crate::protocol::{RecoveryKind, TcpConfig};
use narrows_base::{Duration, Time};

#[derive(Debug)]
enum AnyRecovery {
    Tahoe(Tahoe),
    Reno(RenoRecovery),
    NewReno(NewReno),
    Vegas(VegasRecovery),
    Sack(Sack),
    Sack1(Sack1),
    Rack(Box<Rack>),
}

/// The loss recovery of a sender.
#[derive(Debug)]
pub(crate) struct Recovery {
    state: RecoveryState,
    /// Whether each segment counts its copies, which leave the pipe with it.
    counts_copies: bool,
    kind: AnyRecovery,
}

macro_rules! each {
    ($self:expr, $kind:ident => $call:expr) => {
        match $self {
            AnyRecovery::Tahoe($kind) => $call,
            AnyRecovery::Reno($kind) => $call,
            AnyRecovery::NewReno($kind) => $call,
            AnyRecovery::Vegas($kind) => $call,
            AnyRecovery::Sack($kind) => $call,
            AnyRecovery::Sack1($kind) => $call,
            AnyRecovery::Rack($kind) => $call,
        }
    };
}

impl Recovery {
    pub fn new(config: &TcpConfig) -> Recovery {
        let kind = match config.recovery {
            RecoveryKind::Tahoe => AnyRecovery::Tahoe(Tahoe::new(config)),
            RecoveryKind::Reno => AnyRecovery::Reno(RenoRecovery::new(config)),
            RecoveryKind::NewReno => AnyRecovery::NewReno(NewReno::new(config)),
            RecoveryKind::Vegas => AnyRecovery::Vegas(VegasRecovery::new(config)),
            RecoveryKind::Sack => AnyRecovery::Sack(Sack::default()),
            RecoveryKind::Sack1 => AnyRecovery::Sack1(Sack1::new(config)),
            RecoveryKind::Rack => AnyRecovery::Rack(Box::default()),
        };
        let counts_copies = matches!(config.recovery, RecoveryKind::Sack | RecoveryKind::Rack);
        let phase = RecoveryPhase::Open;
        let by_pipe = counts_copies;
        let state = RecoveryState { phase, dupacks: 0, recover: 0, inflation: 0, pipe: 0, by_pipe };
        Recovery { state, counts_copies, kind }
    }

    #[inline]
    pub fn uses_sack(&self) -> bool {
        matches!(self.kind, AnyRecovery::Sack(_) | AnyRecovery::Sack1(_) | AnyRecovery::Rack(_))
    }

    #[inline]
    pub fn in_recovery(&self) -> bool {
        self.state.phase == RecoveryPhase::FastRecovery
    }

    /// Whether the first duplicates of a possible loss have arrived: segments beyond the window now are limited
    /// transmit (RFC 3042).
    #[inline]
    pub fn suspects_loss(&self) -> bool {
        self.state.phase == RecoveryPhase::Open && self.state.dupacks > 0
    }

    /// Segments added to the window; may be negative.
    #[inline]
    pub fn inflation(&self) -> i64 {
        self.state.inflation
    }

    pub fn phase(&self) -> RecoveryPhase {
        self.state.phase
    }

    /// Outstanding segments, to be compared with the window. `next` is the next segment to send.
    #[inline]
    pub fn outstanding(&self, scoreboard: &Scoreboard, next: u64) -> u64 {
        if self.state.by_pipe { self.state.pipe.max(0) as u64 } else { next - scoreboard.una }
    }

    /// Whether lost segments are retransmitted now: RACK does so after a timeout, too.
    #[inline]
    pub fn repairs(&self) -> bool {
        self.in_recovery() || (self.by_time() && self.state.phase == RecoveryPhase::SlowStart)
    }

    /// Whether no loss is known or suspected, so that a tail loss probe may be sent.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.state.phase == RecoveryPhase::Open && self.sacked() == 0
    }

    /// Whether losses are found by time: RACK.
    #[inline]
    pub fn by_time(&self) -> bool {
        matches!(self.kind, AnyRecovery::Rack(_))
    }

    #[inline]
    pub fn begin_ack(&mut self, now: Time, min_rtt: Duration) {
        each!(&mut self.kind, k => k.begin_ack(now, min_rtt));
    }

    pub fn on_reorder_timeout(
        &mut self,
        scoreboard: &mut Scoreboard,
        acked: Acked<'_>,
    ) -> AckOutcome {
        each!(&mut self.kind, k => k.on_reorder_timeout(&mut self.state, scoreboard, acked))
    }

    /// A copy of segment `seq` was sent.
    #[inline]
    pub fn on_sent(&mut self, seq: u64, segment: &mut SentSegment) {
        let now = segment.sent;
        let repair = segment.transmissions > 1;
        each!(&mut self.kind, k => k.on_copy(now, seq, repair));
        self.state.pipe += 1;
        if self.counts_copies {
            segment.copies = segment.copies.saturating_add(1);
        }
    }

    /// A segment is cumulatively acknowledged and leaves the scoreboard, and its outstanding copies with it.
    #[inline]
    pub fn on_acked(&mut self, seq: u64, segment: &SentSegment) {
        self.state.pipe -= i64::from(segment.copies);
        each!(&mut self.kind, k => k.on_acked_segment(&self.state, seq, segment));
    }

    pub fn on_block(
        &mut self,
        scoreboard: &mut Scoreboard,
        block: (u64, u64),
        fresh: impl FnMut(&mut Scoreboard, u64),
    ) {
        each!(&mut self.kind, k => k.on_block(&mut self.state, scoreboard, block, fresh));
    }

    /// The receiver reported duplicates of these segments; `is_probe` if of the tail loss probe.
    pub fn on_duplicates(&mut self, scoreboard: &Scoreboard, block: (u64, u64), is_probe: bool) {
        each!(&mut self.kind, k => k.on_duplicates(scoreboard, block, is_probe));
    }

    /// Whether the path reorders by more segments than indicate a loss, so that selectively acknowledged ones raise the
    /// window, too (Linux).
    #[inline]
    pub fn is_reordering_high(&self) -> bool {
        each!(&self.kind, k => k.is_reordering_high())
    }

    #[inline]
    pub fn on_ack(&mut self, scoreboard: &mut Scoreboard, acked: Acked<'_>) -> AckOutcome {
        let outcome = each!(&mut self.kind, k => k.on_ack(&mut self.state, scoreboard, acked));
        if outcome.restarts {
            self.restart(scoreboard);
            // Duplicates of the flight before the restart are ignored.
            self.state.dupacks = DUP_THRESH;
        }
        outcome
    }

    /// Restarts slow start: segments from `una` on are retransmitted, except those that SACK reported.
    pub fn restart(&mut self, scoreboard: &mut Scoreboard) {
        let phase = RecoveryPhase::SlowStart;
        let recover = scoreboard.max;
        let by_pipe = self.counts_copies;
        self.state = RecoveryState { phase, dupacks: 0, recover, inflation: 0, pipe: 0, by_pipe };
        each!(&mut self.kind, k => k.on_restart(scoreboard));
    }

    pub fn sacked(&self) -> u64 {
        each!(&self.kind, k => k.sacked())
    }

    pub fn next_hole(&mut self, scoreboard: &Scoreboard) -> Option<u64> {
        each!(&mut self.kind, k => k.next_hole(&self.state, scoreboard))
    }

    pub fn next_guess(&mut self, scoreboard: &Scoreboard) -> Option<u64> {
        each!(&mut self.kind, k => k.next_guess(scoreboard))
    }

    pub fn on_retransmitted(&mut self, seq: u64) {
        each!(&mut self.kind, k => k.on_retransmitted(seq));
    }
}

#[cfg(test)]
impl Recovery {
    /// The sum of all segments' copies, if they are counted.
    pub fn pipe(&self) -> Option<i64> {
        self.counts_copies.then_some(self.state.pipe)
    }
}
