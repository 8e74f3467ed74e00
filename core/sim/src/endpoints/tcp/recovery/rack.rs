//! RACK (RFC 8985) with F-RTO (RFC 5682): losses by time of sending, as Linux detects them.
//!
//! A segment is lost if one that was sent later has arrived, and it was sent longer ago than an RTT and the reordering
//! window. This applies to first copies and retransmissions. While no reordering was seen, the window is zero in
//! recovery, or with three selectively acknowledged segments. After a timeout, the acknowledgement of new data shows
//! whether the timeout was spurious; so do an echo of an original's time stamp and an acknowledged original. A recovery
//! is undone by such an echo, or if the receiver reports a duplicate of each retransmission (RFC 2883).

use super::reordering::PathReordering;
use super::sacked::Sacked;
use super::undo::EpisodeRetransmissions;
use super::{AckOutcome, Acked, DUP_THRESH, LossRecovery, Lost, RecoveryPhase, RecoveryState};
use crate::endpoints::tcp::scoreboard::{Scoreboard, SentSegment};
use narrows_base::{Duration, Time};
use narrows_congestion::LossFoundBy;
use std::collections::VecDeque;

#[derive(Debug, Default)]
pub(super) struct Rack {
    sacked: Sacked,
    /// Copies in the order of sending; those that no longer count are skipped.
    order: VecDeque<(Time, u64)>,
    /// The latest sent copy of those that have arrived, and its RTT.
    newest: (Time, u64),
    rtt: Duration,
    advanced: bool,
    reordering: PathReordering,
    /// Range of the lost segments that wait for their retransmission.
    holes: (u64, u64),
    episode: EpisodeRetransmissions,
    /// An original arrived beside outstanding retransmissions: no others before the next acknowledgement.
    holding: bool,
    recovering: bool,
    /// F-RTO: whether the timeout may have been spurious.
    doubtful: bool,
    /// F-RTO has sent new data: no retransmissions before it is acknowledged.
    asking: bool,
    original_arrived: bool,
    /// The present acknowledgement: its time, the smallest RTT, and the highest segment selectively acknowledged before
    /// it, plus one.
    now: Time,
    min_rtt: Duration,
    highest: u64,
}

/// What turned out spurious.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UndoneReduction {
    None,
    /// The reduction. Segments that are marked lost stay so.
    Window,
    /// The reduction and the losses.
    WindowAndLosses,
}

impl Rack {
    /// RFC 8985 section 6.2 step 4.
    fn window(&self, state: &RecoveryState, min: Duration, srtt: Duration) -> Duration {
        let proven = state.phase != RecoveryPhase::Open || self.sacked.count() >= DUP_THRESH;
        if !self.reordering.is_seen() && proven {
            return Duration::ZERO;
        }
        self.reordering.window(min, srtt)
    }

    /// Step 5: marks lost segments. Returns them, and the time until others may be lost.
    fn find_lost(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        (now, window): (Time, Duration),
    ) -> (Option<Lost>, Duration) {
        let mut lost: Option<Lost> = None;
        let mut wait = Duration::ZERO;
        let mut keep = 0;
        while let Some(&(sent, seq)) = self.order.get(keep) {
            let live = seq >= scoreboard.una && {
                let s = scoreboard.get(seq);
                !s.sacked && s.sent == sent && s.copies > 0
            };
            if !live {
                self.order.remove(keep);
                continue;
            }
            if (sent, seq) >= self.newest {
                break;
            }
            let due = sent + self.rtt + window;
            if now < due {
                wait = wait.max(due.since(now));
                keep += 1;
                continue;
            }
            let one = Lost::one(scoreboard, seq, LossFoundBy::Sack);
            let all = lost.get_or_insert(Lost { segments: 0, ..one });
            all.segments += 1;
            mark(&mut self.holes, state, scoreboard, seq);
            self.order.remove(keep);
        }
        (lost, wait)
    }

    /// Steps 1 to 3: a segment arrived.
    fn delivered(&mut self, segment: &SentSegment, seq: u64, recover: u64) {
        let first_copy = segment.transmissions <= 1;
        if first_copy {
            if seq < self.highest {
                self.reordering.on_reordered(self.highest - seq);
            }
            self.original_arrived |= seq < recover;
        }
        let rtt = self.now.since(segment.sent);
        if !first_copy && rtt < self.min_rtt {
            return; // The original, or an earlier retransmission.
        }
        self.advanced = true;
        self.rtt = rtt;
        self.newest = self.newest.max((segment.sent, seq));
    }

    fn enter(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &Scoreboard,
        outcome: &mut AckOutcome,
    ) {
        state.begin(scoreboard, outcome);
        outcome.force = None;
        self.episode.begin(scoreboard);
        self.original_arrived = false;
    }

    /// In a fast recovery, as Linux's `tcp_fastretrans_alert`.
    fn in_recovery(
        &mut self,
        scoreboard: &Scoreboard,
        state: &RecoveryState,
        acked: &Acked<'_>,
        outcome: &mut AckOutcome,
    ) -> UndoneReduction {
        let is_original = acked.newly_acked > 0 && self.episode.is_original(acked);
        let all_spurious = self.episode.all_spurious();
        outcome.ends = scoreboard.una >= state.recover;
        if outcome.ends {
            if is_original || all_spurious {
                return UndoneReduction::Window;
            }
            self.reordering.on_recovery(false);
        } else if is_original {
            let before = scoreboard.una - acked.newly_acked;
            self.reordering.on_reordered(self.highest.saturating_sub(before));
            self.holding = EpisodeRetransmissions::is_waiting(scoreboard);
            if !self.holding {
                return UndoneReduction::WindowAndLosses;
            }
        } else if all_spurious {
            self.reordering.on_recovery(true);
            return UndoneReduction::Window;
        }
        UndoneReduction::None
    }

    /// After a timeout (RFC 5682 section 3.1, with SACK).
    fn after_timeout(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &Scoreboard,
        acked: &Acked<'_>,
        outcome: &mut AckOutcome,
    ) -> UndoneReduction {
        let advanced = acked.newly_acked > 0;
        let spurious = self.episode.is_original(acked) || self.episode.all_spurious();
        if (advanced && spurious) || (self.doubtful && self.original_arrived) {
            return UndoneReduction::WindowAndLosses;
        }
        let recovered = scoreboard.una >= state.recover;
        if self.doubtful {
            if self.asking {
                if acked.duplicate {
                    self.doubtful = false;
                    self.asking = false;
                }
            } else if advanced && !recovered {
                state.recover = scoreboard.max;
                self.asking = true;
            }
        }
        outcome.ends |= recovered;
        UndoneReduction::None
    }

    /// The losses were spurious: the segments in flight count again.
    fn revert(&mut self, state: &mut RecoveryState, scoreboard: &mut Scoreboard) {
        for seq in scoreboard.una..scoreboard.max {
            let segment = scoreboard.get_mut(seq);
            if segment.lost {
                segment.lost = false;
                if !segment.sacked {
                    segment.copies += 1;
                    state.pipe += 1;
                    self.order.push_back((segment.sent, seq));
                }
            }
        }
        self.order.make_contiguous().sort_unstable();
        self.holes = (u64::MAX, 0);
    }
}

impl LossRecovery for Rack {
    fn on_ack(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        acked: Acked<'_>,
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        if acked.newly_acked > 0 {
            state.dupacks = 0;
            self.sacked.trim(scoreboard);
        } else if acked.duplicate {
            state.dupacks += 1;
        }
        if let Some(prior) = acked.prior_delivered {
            self.reordering.on_delivered(prior, acked.delivered);
        }
        self.holding = false;
        let undo = match state.phase {
            RecoveryPhase::Open if self.episode.all_spurious() => {
                self.reordering.on_recovery(true);
                UndoneReduction::Window
            }
            RecoveryPhase::Open => UndoneReduction::None,
            RecoveryPhase::FastRecovery => {
                self.in_recovery(scoreboard, state, &acked, &mut outcome)
            }
            RecoveryPhase::SlowStart => self.after_timeout(state, scoreboard, &acked, &mut outcome),
        };
        if undo != UndoneReduction::None {
            outcome.undo = true;
            outcome.ends |= state.phase != RecoveryPhase::Open;
            self.episode.end();
            self.advanced = true;
        }
        if undo == UndoneReduction::WindowAndLosses {
            self.revert(state, scoreboard);
        }
        if outcome.ends {
            state.end(&mut outcome);
            self.doubtful = false;
            self.asking = false;
        }
        if !self.holding
            && undo != UndoneReduction::WindowAndLosses
            && std::mem::take(&mut self.advanced)
        {
            let window = self.window(state, acked.min_rtt, acked.rtt.srtt());
            let (lost, wait) = self.find_lost(state, scoreboard, (acked.now, window));
            outcome.lost = lost;
            outcome.reorder_wait = (wait > Duration::ZERO).then_some(wait);
        }
        let lost = outcome.lost.is_some() || self.next_hole(state, scoreboard).is_some();
        if state.phase == RecoveryPhase::Open && lost && scoreboard.una < scoreboard.max {
            self.enter(state, scoreboard, &mut outcome);
        }
        self.recovering = state.phase == RecoveryPhase::FastRecovery;
        outcome
    }

    fn on_reorder_timeout(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        acked: Acked<'_>,
    ) -> AckOutcome {
        let mut outcome = AckOutcome::default();
        let window = self.window(state, acked.min_rtt, acked.rtt.srtt());
        let (lost, wait) = self.find_lost(state, scoreboard, (acked.now, window));
        outcome.lost = lost;
        outcome.reorder_wait = (wait > Duration::ZERO).then_some(wait);
        if lost.is_some() && state.phase == RecoveryPhase::Open {
            self.enter(state, scoreboard, &mut outcome);
            self.recovering = true;
        }
        outcome
    }

    fn on_restart(&mut self, scoreboard: &mut Scoreboard) {
        if !self.recovering {
            self.reordering.on_timeout(self.sacked.count());
        }
        self.sacked.all_lost(scoreboard);
        self.order.clear();
        self.holes = (scoreboard.una, scoreboard.max);
        self.episode.begin(scoreboard);
        self.original_arrived = false;
        self.holding = false;
        self.doubtful = !self.recovering;
        self.asking = false;
        self.recovering = false;
    }

    fn on_block(
        &mut self,
        state: &mut RecoveryState,
        scoreboard: &mut Scoreboard,
        block: (u64, u64),
        mut fresh: impl FnMut(&mut Scoreboard, u64),
    ) {
        let recover = state.recover;
        let mut seen = std::mem::take(&mut self.sacked);
        seen.insert(state, scoreboard, block, |scoreboard, seq| {
            self.delivered(scoreboard.get(seq), seq, recover);
            fresh(scoreboard, seq);
        });
        self.sacked = seen;
    }

    fn on_duplicates(&mut self, scoreboard: &Scoreboard, block: (u64, u64), is_probe: bool) {
        let (from, to) = block;
        if !is_probe {
            self.reordering.on_duplicate();
        }
        self.episode.on_duplicates(to, to - from);
        if from >= scoreboard.una && to <= scoreboard.max && scoreboard.get(from).sacked {
            self.reordering.on_reordered(self.sacked.top().saturating_sub(from));
        }
    }

    fn is_reordering_high(&self) -> bool {
        self.reordering.is_high()
    }

    fn sacked(&self) -> u64 {
        self.sacked.count()
    }

    fn next_hole(&mut self, _state: &RecoveryState, scoreboard: &Scoreboard) -> Option<u64> {
        if self.asking || self.holding || self.holes.0 >= self.holes.1 {
            return None;
        }
        let mut seq = self.holes.0.max(scoreboard.una);
        while seq < self.holes.1.min(scoreboard.max) {
            let segment = scoreboard.get(seq);
            if segment.lost && !segment.sacked && segment.copies == 0 {
                self.holes.0 = seq;
                return Some(seq);
            }
            seq += 1;
        }
        self.holes = (u64::MAX, 0);
        None
    }

    /// F-RTO has no new data to send: lost segments are retransmitted.
    fn next_guess(&mut self, scoreboard: &Scoreboard) -> Option<u64> {
        if !std::mem::take(&mut self.asking) {
            return None;
        }
        self.doubtful = false;
        let edge = self.holes.1.min(scoreboard.max);
        (self.holes.0.max(scoreboard.una)..edge).find(|seq| {
            let segment = scoreboard.get(*seq);
            segment.lost && !segment.sacked && segment.copies == 0
        })
    }

    fn begin_ack(&mut self, now: Time, min_rtt: Duration) {
        self.now = now;
        self.min_rtt = min_rtt;
        self.highest = self.sacked.top();
    }

    fn on_copy(&mut self, now: Time, seq: u64, repair: bool) {
        self.order.push_back((now, seq));
        if repair {
            self.episode.on_retransmitted(now);
        }
    }

    fn on_acked_segment(&mut self, state: &RecoveryState, seq: u64, segment: &SentSegment) {
        if !segment.sacked {
            self.delivered(segment, seq, state.recover);
        }
    }
}

/// Marks a segment's newest copy lost.
fn mark(holes: &mut (u64, u64), state: &mut RecoveryState, scoreboard: &mut Scoreboard, seq: u64) {
    let segment = scoreboard.get_mut(seq);
    let gone = if segment.lost { segment.copies } else { segment.copies.min(1) };
    segment.lost = true;
    segment.copies -= gone;
    state.pipe -= i64::from(gone);
    if segment.copies == 0 {
        *holes = (holes.0.min(seq), holes.1.max(seq + 1));
    }
}
