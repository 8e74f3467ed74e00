//! Spurious losses: packets that were declared lost and arrive late.

use super::late::LatePacket;

/// The losses of the last loss episode, while all of them may still turn out to be spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossEpisode {
    /// The lowest lost number.
    first: u64,
    /// Losses that are not known to be spurious.
    left: u64,
}

impl LossEpisode {
    pub fn new(first: u64, losses: u64) -> LossEpisode {
        LossEpisode { first, left: losses }
    }
    pub fn add(&mut self, losses: u64) {
        self.left += losses;
    }
    /// Packets arrived late, and those below `gone` are finally lost. Returns whether all losses of the episode were
    /// spurious.
    pub fn take_back(&mut self, late: &LateArrivals, gone: u64) -> bool {
        self.left = self.left.saturating_sub(late.in_episode);
        self.left == 0 && gone <= self.first
    }
}

/// The late packets of one report.
#[derive(Clone, Copy, Debug)]
pub(super) struct LateArrivals {
    /// The lowest lost number of the last episode.
    episode: u64,
    pub packets: u64,
    /// Of `packets`: those of the last episode, those sent after one that met no long queue, and those that the
    /// receiver had counted as lost by the radio link.
    in_episode: u64,
    pub at_short_queue: u64,
    pub radio: u64,
}

impl LateArrivals {
    pub fn none(episode: Option<&LossEpisode>) -> LateArrivals {
        let episode = episode.map_or(u64::MAX, |e| e.first);
        LateArrivals { episode, packets: 0, in_episode: 0, at_short_queue: 0, radio: 0 }
    }
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }
    pub fn add<L>(&mut self, late: &LatePacket<'_, L>) {
        self.packets += 1;
        self.in_episode += u64::from(late.seq >= self.episode);
        self.at_short_queue += u64::from(late.short_queue);
        self.radio += u64::from(late.radio);
    }
}
