//! Losses that turn out to be none, since the packets came after all.

use super::late::LatePacket;

/// The losses of the last episode, while each of them may turn out to be spurious.
#[derive(Clone, Copy, Debug)]
pub(super) struct Episode {
    /// The lowest number of its losses.
    first: u64,
    /// Losses that were not taken back.
    left: u64,
}

impl Episode {
    pub fn new(first: u64, losses: u64) -> Episode {
        Episode { first, left: losses }
    }
    pub fn add(&mut self, losses: u64) {
        self.left += losses;
    }
    /// Packets arrived after all, while all below `gone` that did not are lost for good: whether no loss is left.
    pub fn take_back(&mut self, late: &LateArrivals, gone: u64) -> bool {
        self.left = self.left.saturating_sub(late.in_episode);
        self.left == 0 && gone <= self.first
    }
}

/// What one report shows of packets that counted as lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct LateArrivals {
    /// The lowest number of the last episode's losses.
    episode: u64,
    pub packets: u64,
    /// Of these, packets of the last episode, packets that left behind one that saw no long queue, and packets that
    /// the receiver took for the radio link's losses.
    in_episode: u64,
    pub at_short_queue: u64,
    pub radio: u64,
}

impl LateArrivals {
    pub fn none(episode: Option<&Episode>) -> LateArrivals {
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
