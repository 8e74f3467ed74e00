//! Loss repair: what is missing, how sure are we, what is sent again.
//!
//! ```text
//!            3rd duplicate, or SACK says lost
//!     Open ------------------------------------> Repair (Reno, NewReno, SACK, Vegas)
//!      ^  \                                        |
//!      |   \ timeout; Tahoe's 3rd duplicate        | advance past `recover` (Reno: any advance)
//!      |    v                                      v
//!      +-- Restart --(advance past `recover`)--> Open
//! ```
//!
//! Repair never sets a window. It owns the count of what is outstanding, and lends the window
//! a signed bonus: Reno's inflation by duplicates, limited transmit, NewReno's deflation.

use super::config::{RecoveryKind, TcpConfig};
use super::scoreboard::Scoreboard;
use crate::ranges::Ranges;
use narrows_base::{Duration, Time};
use narrows_congestion::LossFoundBy;

/// Duplicates that make a loss (RFC 5681; DupThresh of RFC 6675).
const DUP_THRESH: u64 = 3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    Open,
    RecoveryEvent,
    SlowStartRestart,
}

/// What an acknowledgement did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outcome {
    /// Segments newly found lost, and the first of them: (count, sent, transmissions, how).
    pub lost: Option<(u64, Time, u32, LossFoundBy)>,
    /// A recovery began.
    pub begins: bool,
    /// A recovery ended.
    pub ends: bool,
    /// The window begins anew (Tahoe).
    pub restarts: bool,
    /// A segment to send at once, whatever the window.
    pub force: Option<u64>,
    /// The retransmission timer must not be restarted by this advance.
    pub keep_timer: bool,
}

#[derive(Debug)]
pub(crate) struct Recovery {
    pub kind: RecoveryKind,
    pub phase: Phase,
    limited_transmit: bool,
    once_per_window: bool,
    pub dupacks: u64,
    /// One past the highest segment sent when the last episode began.
    recover: u64,
    /// Segments lent to the window.
    inflation: i64,
    /// Outstanding segments by the pipe rules.
    pipe: u64,
    pub sacked: Ranges,
    /// Unsacked segments below this are lost (RFC 6675 IsLost).
    lost_edge: u64,
    /// Next candidate for retransmission in this episode (above RFC 6675's HighRxt).
    retransmit_next: u64,
    rescued: bool,
    partials: u32,
    /// Vegas: advances left at which the oldest segment's age is checked.
    worried: u32,
    /// Sack1: ns-2's count of what is outstanding, and whether a timeout began the last episode.
    crude: i64,
    after_timeout: bool,
}

impl Recovery {
    pub fn new(config: &TcpConfig) -> Recovery {
        Recovery {
            kind: config.recovery,
            phase: Phase::Open,
            limited_transmit: config.limited_transmit,
            once_per_window: config.once_per_window,
            dupacks: 0,
            recover: 0,
            inflation: 0,
            pipe: 0,
            sacked: Ranges::default(),
            lost_edge: 0,
            retransmit_next: 0,
            rescued: false,
            partials: 0,
            worried: 0,
            crude: 0,
            after_timeout: false,
        }
    }

    #[inline]
    pub fn uses_sack(&self) -> bool {
        matches!(self.kind, RecoveryKind::Sack | RecoveryKind::Sack1)
    }

    /// Segments outstanding, to be held against the window. `next` is where sending goes on.
    #[inline]
    pub fn outstanding(&self, scoreboard: &Scoreboard, next: u64) -> u64 {
        match self.kind {
            RecoveryKind::Sack => self.pipe,
            RecoveryKind::Sack1 if self.phase == Phase::RecoveryEvent => self.crude.max(0) as u64,
            _ => next - scoreboard.una,
        }
    }

    /// Segments lent to the window; may be negative.
    #[inline]
    pub fn inflation(&self) -> i64 {
        self.inflation
    }

    #[inline]
    pub fn in_recovery(&self) -> bool {
        self.phase == Phase::RecoveryEvent
    }

    /// A copy of `seq` left.
    #[inline]
    pub fn sent(&mut self, scoreboard: &mut Scoreboard, seq: u64) {
        let segment = scoreboard.get_mut(seq);
        segment.copies = segment.copies.saturating_add(1);
        self.pipe += 1;
        self.crude += 1;
    }

    /// A segment is cumulatively acknowledged and leaves the scoreboard.
    #[inline]
    pub fn acked(&mut self, copies: u8) {
        self.pipe -= u64::from(copies);
    }

    /// Takes in a SACK block; calls `fresh` with each segment that is newly reported.
    pub fn sack(
        &mut self,
        scoreboard: &mut Scoreboard,
        from: u64,
        to: u64,
        mut fresh: impl FnMut(&mut Scoreboard, u64),
    ) {
        if self.kind == RecoveryKind::Sack1 && self.phase == Phase::SlowStartRestart {
            return; // After a timeout ns-2 does not listen.
        }
        let (from, to) = (from.max(scoreboard.una), to.min(scoreboard.max));
        let pipe = &mut self.pipe;
        self.sacked.insert(from, to, |a, b| {
            for seq in a..b {
                let segment = scoreboard.get_mut(seq);
                segment.sacked = true;
                *pipe -= u64::from(segment.copies);
                segment.copies = 0;
                fresh(scoreboard, seq);
            }
        });
    }

    /// After the scoreboard is up to date: decides. `fine` is Vegas's fine-grained timeout.
    pub fn on_ack(
        &mut self,
        scoreboard: &mut Scoreboard,
        now: Time,
        newly_acked: u64,
        duplicate: bool,
        fine: Duration,
    ) -> Outcome {
        let mut out = Outcome::default();
        self.crude -= if newly_acked > 0 { 2 } else { 1 };
        if newly_acked > 0 {
            self.dupacks = 0;
            if !self.sacked.is_empty() {
                self.sacked.trim_below(scoreboard.una);
            }
            self.advanced(scoreboard, now, newly_acked, fine, &mut out);
        } else if duplicate {
            self.dupacks += 1;
        }
        if self.uses_sack() {
            if !self.sacked.is_empty() {
                self.find_lost(scoreboard, &mut out);
            }
            if self.kind == RecoveryKind::Sack1 && self.phase != Phase::RecoveryEvent {
                let lent = if self.limited_transmit { self.dupacks.min(DUP_THRESH - 1) } else { 0 };
                self.inflation = lent as i64;
            }
            self.maybe_repair_sack(scoreboard, &mut out);
        } else if duplicate {
            self.duplicate(scoreboard, now, fine, &mut out);
        }
        out
    }

    /// The cumulative acknowledgement advanced.
    fn advanced(
        &mut self,
        scoreboard: &Scoreboard,
        now: Time,
        acked: u64,
        fine: Duration,
        out: &mut Outcome,
    ) {
        let full = scoreboard.una >= self.recover;
        match self.phase {
            Phase::Open => self.inflation = 0,
            Phase::SlowStartRestart => {
                self.inflation = 0;
                if full {
                    self.phase = Phase::Open;
                }
            }
            Phase::RecoveryEvent => match self.kind {
                RecoveryKind::NewReno if !full => {
                    // RFC 6582 section 3.2: repair the next hole, deflate by what was
                    // acknowledged, add back one.
                    self.inflation += 1 - acked.min(i64::MAX as u64) as i64;
                    self.partials += 1;
                    out.keep_timer = self.partials > 1;
                    out.force = Some(scoreboard.una);
                    out.lost = Some(loss(scoreboard, scoreboard.una, LossFoundBy::Duplicates));
                }
                RecoveryKind::Sack | RecoveryKind::Sack1 if !full => {}
                _ => {
                    self.phase = Phase::Open;
                    self.inflation = 0;
                    out.ends = true;
                }
            },
        }
        if self.worried > 0 && scoreboard.una < scoreboard.max {
            // Vegas: the advances after a retransmission check the oldest segment's age; if it is
            // lost too, the duplicates to come have told of it already.
            self.worried -= 1;
            if now.since(scoreboard.get(scoreboard.una).sent) >= fine {
                out.force = Some(scoreboard.una);
                out.lost = Some(loss(scoreboard, scoreboard.una, LossFoundBy::Clock));
                self.dupacks = DUP_THRESH;
            } else {
                self.worried = 0;
            }
        }
    }

    /// A duplicate, without SACK.
    fn duplicate(
        &mut self,
        scoreboard: &mut Scoreboard,
        now: Time,
        fine: Duration,
        out: &mut Outcome,
    ) {
        let vegas = self.kind == RecoveryKind::Vegas;
        let late = vegas && now.since(scoreboard.get(scoreboard.una).sent) >= fine;
        match self.phase {
            Phase::RecoveryEvent if late => {
                // The recovery itself was lost.
                out.lost = Some(loss(scoreboard, scoreboard.una, LossFoundBy::Clock));
                out.force = Some(scoreboard.una);
            }
            Phase::RecoveryEvent => self.inflation += 1,
            // Duplicates keep what is sent again flowing, too, as in ns-2; but not those of the
            // flight that Tahoe gave up.
            Phase::SlowStartRestart if self.limited_transmit && self.dupacks < DUP_THRESH => {
                self.inflation = self.dupacks as i64;
            }
            Phase::SlowStartRestart => {}
            Phase::Open => {
                // Not twice for one window: RFC 6582 section 3.2 step 2; ns-2's bugFix_.
                let enough = match vegas {
                    true => self.dupacks == DUP_THRESH || late,
                    false => {
                        let new_window = scoreboard.una > self.recover || !self.once_per_window;
                        self.dupacks >= DUP_THRESH && new_window
                    }
                };
                if enough {
                    let by = if late { LossFoundBy::Clock } else { LossFoundBy::Duplicates };
                    out.lost = Some(loss(scoreboard, scoreboard.una, by));
                    if self.kind == RecoveryKind::Tahoe {
                        self.restart(scoreboard);
                        self.dupacks = DUP_THRESH;
                        out.restarts = true;
                    } else {
                        self.begin(scoreboard, out);
                        self.inflation = self.dupacks.min(DUP_THRESH) as i64;
                        self.dupacks = self.dupacks.max(DUP_THRESH);
                        self.worried = if vegas { 2 } else { 0 };
                    }
                } else if vegas {
                    // No limited transmit: the clock finds what too few duplicates do not.
                    self.inflation += i64::from(self.dupacks > DUP_THRESH);
                } else if self.limited_transmit {
                    self.inflation = self.dupacks.min(DUP_THRESH - 1) as i64;
                }
            }
        }
    }

    fn begin(&mut self, scoreboard: &Scoreboard, out: &mut Outcome) {
        self.phase = Phase::RecoveryEvent;
        self.after_timeout = false;
        // The first repair, to be sent at once, is not counted.
        self.crude = (scoreboard.max - scoreboard.una) as i64 - DUP_THRESH as i64 - 1;
        self.recover = scoreboard.max;
        self.inflation = 0;
        self.partials = 0;
        self.rescued = false;
        self.retransmit_next = scoreboard.una;
        out.begins = true;
        out.force = Some(scoreboard.una);
    }

    /// Marks what the blocks above it show to be lost (RFC 6675 IsLost, in segments).
    fn find_lost(&mut self, scoreboard: &mut Scoreboard, out: &mut Outcome) {
        let Some(edge) = self.sacked.kth_from_top(DUP_THRESH) else { return };
        let from = self.lost_edge.max(scoreboard.una);
        if edge <= from {
            return;
        }
        let mut first = None;
        let mut count = 0;
        for seq in from..edge {
            if self.mark_lost(scoreboard, seq) {
                first.get_or_insert(seq);
                count += 1;
            }
        }
        self.lost_edge = edge;
        if let Some(seq) = first {
            let (_, sent, times, by) = loss(scoreboard, seq, LossFoundBy::Sack);
            out.lost = Some((count, sent, times, by));
        }
    }

    fn mark_lost(&mut self, scoreboard: &mut Scoreboard, seq: u64) -> bool {
        let segment = scoreboard.get_mut(seq);
        if segment.sacked || segment.lost {
            return false;
        }
        segment.lost = true;
        if segment.copies > 0 {
            segment.copies -= 1;
            self.pipe -= 1;
        }
        true
    }

    fn maybe_repair_sack(&mut self, scoreboard: &mut Scoreboard, out: &mut Outcome) {
        if self.phase != Phase::Open
            || scoreboard.una < self.recover
            || scoreboard.una == scoreboard.max
        {
            return;
        }
        let sack1 = self.kind == RecoveryKind::Sack1;
        if sack1 && self.after_timeout && scoreboard.una <= self.recover {
            return; // bugFix_: beyond all that was sent before the timeout.
        }
        let by_count = self.dupacks >= DUP_THRESH;
        if by_count || (!sack1 && scoreboard.get(scoreboard.una).lost) {
            if self.mark_lost(scoreboard, scoreboard.una) {
                out.lost = Some(loss(scoreboard, scoreboard.una, LossFoundBy::Duplicates));
            }
            self.lost_edge = self.lost_edge.max(scoreboard.una + 1);
            self.begin(scoreboard, out);
        }
    }

    /// The window begins anew: what follows `una` is sent again, except what SACK reported.
    pub fn restart(&mut self, scoreboard: &mut Scoreboard) {
        self.phase = Phase::SlowStartRestart;
        self.after_timeout = true;
        self.recover = scoreboard.max;
        self.inflation = 0;
        self.dupacks = 0;
        self.worried = 0;
        self.lost_edge = scoreboard.max;
        let forgets = self.kind == RecoveryKind::Sack1;
        if forgets {
            self.sacked = Ranges::default();
        }
        for seq in scoreboard.una..scoreboard.max {
            let segment = scoreboard.get_mut(seq);
            segment.sacked &= !forgets;
            segment.lost = !segment.sacked;
            segment.copies = 0;
        }
        self.pipe = 0;
    }

    /// The segment to send again next, during a recovery with SACK: RFC 6675 NextSeg rule 1.
    pub fn next_hole(&mut self, scoreboard: &Scoreboard) -> Option<u64> {
        if self.phase != Phase::RecoveryEvent || !self.uses_sack() {
            return None;
        }
        if self.kind == RecoveryKind::Sack1 {
            let highest = self.sacked.iter().next_back().map_or(scoreboard.una, |r| r.1);
            return self.hole_below(scoreboard, highest.min(self.recover));
        }
        self.hole_below(scoreboard, self.lost_edge.min(self.recover))
    }

    /// When there is no new data: NextSeg rules 3 and 4.
    pub fn next_guess(&mut self, scoreboard: &Scoreboard) -> Option<u64> {
        if self.phase != Phase::RecoveryEvent || !self.uses_sack() {
            return None;
        }
        let highest = self.sacked.iter().next_back().map_or(scoreboard.una, |r| r.1);
        if let Some(seq) = self.hole_below(scoreboard, highest) {
            return Some(seq);
        }
        let last = scoreboard.max - 1;
        if self.rescued || last < scoreboard.una || scoreboard.get(last).sacked {
            return None;
        }
        self.rescued = true;
        Some(last)
    }

    fn hole_below(&mut self, scoreboard: &Scoreboard, edge: u64) -> Option<u64> {
        let mut seq = self.retransmit_next.max(scoreboard.una);
        while seq < edge {
            if !scoreboard.get(seq).sacked {
                return Some(seq);
            }
            // Jump over the block that holds it.
            seq = self.sacked.find(seq).map_or(seq + 1, |r| r.1);
            self.retransmit_next = seq;
        }
        None
    }

    /// `seq` was sent again in this repair.
    pub fn retransmitted(&mut self, seq: u64) {
        self.retransmit_next = self.retransmit_next.max(seq + 1);
    }
}

fn loss(scoreboard: &Scoreboard, seq: u64, by: LossFoundBy) -> (u64, Time, u32, LossFoundBy) {
    let segment = scoreboard.get(seq);
    (1, segment.sent, u32::from(segment.transmissions), by)
}

#[cfg(test)]
impl Recovery {
    pub fn pipe_for_tests(&self) -> u64 {
        self.pipe
    }
}
