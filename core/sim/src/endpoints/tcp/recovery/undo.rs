//! Whether all retransmissions of an episode were spurious: Linux's `undo_marker` and `undo_retrans`.

use super::Acked;
use crate::endpoints::tcp::scoreboard::Scoreboard;
use narrows_base::Time;

/// The retransmissions of the last recovery or timeout, until its reduction is undone.
#[derive(Debug, Default)]
pub(super) struct EpisodeRetransmissions {
    /// The oldest segment when the episode began.
    start: Option<u64>,
    /// Those whose duplicate was not reported; `None` before the first.
    left: Option<u64>,
    /// When the first was sent.
    first: Option<Time>,
}

impl EpisodeRetransmissions {
    /// An episode begins.
    pub fn begin(&mut self, scoreboard: &Scoreboard) {
        let earlier = outstanding(scoreboard).count() as u64;
        self.start = Some(scoreboard.una);
        self.left = (earlier > 0).then_some(earlier);
        self.first = None;
    }
    /// A segment was retransmitted.
    pub fn on_retransmitted(&mut self, now: Time) {
        self.left = Some(self.left.unwrap_or(0) + 1);
        self.first.get_or_insert(now);
    }
    /// The receiver reported `segments` duplicates that end at `to`.
    pub fn on_duplicates(&mut self, to: u64, segments: u64) {
        if self.start.is_some_and(|start| to > start) {
            self.left = self.left.map(|left| left.saturating_sub(segments));
        }
    }
    /// Whether the episode's reduction is in force and each retransmission arrived beside its original.
    pub fn all_spurious(&self) -> bool {
        self.start.is_some() && self.left == Some(0)
    }
    /// Whether the acknowledgement echoes a segment sent before the first retransmission (RFC 3522): the original of the
    /// acknowledged segment arrived.
    pub fn is_original(&self, acked: &Acked<'_>) -> bool {
        self.start.is_some() && self.first.is_none_or(|first| acked.echo < first)
    }
    /// Whether retransmissions are outstanding.
    pub fn is_waiting(scoreboard: &Scoreboard) -> bool {
        outstanding(scoreboard).next().is_some()
    }
    /// The reduction is undone, at most once.
    pub fn end(&mut self) {
        self.start = None;
    }
}

/// Retransmitted segments that are outstanding.
fn outstanding(scoreboard: &Scoreboard) -> impl Iterator<Item = u64> + '_ {
    (scoreboard.una..scoreboard.max).filter(|seq| {
        let segment = scoreboard.get(*seq);
        segment.transmissions > 1 && segment.copies > 0
    })
}
