//! Received repair packets, and the packets rebuilt from them.

use super::kept::KeptPackets;
use super::loss_share::LossShare;
use narrows_base::replay::WINDOW;
use narrows_base::{Duration, Time};
use narrows_wire::RepairFields;
use narrows_wire::repair::{add_symbol, frames_of_symbol};
use std::collections::VecDeque;

/// Share of missing packets from which copies are kept. It is slightly below the 3% from which senders repair.
const MIN_MISSING: f64 = 0.025;
/// Upper limit on the losses that one gap counts for.
const MAX_HOLE: u64 = 64;
/// Copies are kept for this time plus one RTT.
const KEPT_FOR: Duration = Duration::from_millis(250);

/// Frames that a REPAIR rebuilt, if any.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum RepairOutcome {
    /// All covered packets arrived, or more than one of them is missing.
    Nothing,
    /// The frames of the missing packet.
    Rebuilt(Vec<u8>),
    /// The code is not the XOR of the packets that it names.
    Wrong,
}

/// Received packets and rebuilt numbers, kept to rebuild lost packets.
#[derive(Default, Debug)]
pub struct RepairDecoder {
    share: LossShare,
    /// One above the highest received number.
    next: u64,
    kept: KeptPackets,
    /// Numbers of rebuilt packets that may still arrive.
    rebuilt: VecDeque<u64>,
    /// Number of rebuilt packets.
    pub count: u64,
}

impl RepairDecoder {
    fn is_keeping(&self) -> bool {
        self.share.share() >= MIN_MISSING
    }
    /// Whether this packet, which arrived only now, was rebuilt before.
    #[inline]
    pub fn was_rebuilt(&self, number: u64) -> bool {
        number < self.next && self.rebuilt.contains(&number)
    }
    /// Handles a received packet. `uncounted` numbers directly below its own do not count as missing. `frames` are
    /// given if repair packets may need them.
    pub fn on_packet(
        &mut self,
        now: Time,
        number: u64,
        uncounted: u64,
        frames: Option<&[u8]>,
        rtt: Duration,
    ) {
        if number < self.next {
            self.share.add(-1.0, 0.0);
        } else {
            let hole = (number - self.next).saturating_sub(uncounted).min(MAX_HOLE) as f64;
            self.share.add(hole, hole + 1.0);
            self.next = number + 1;
        }
        if !self.is_keeping() {
            self.kept.clear();
        } else if let Some(frames) = frames {
            self.kept.drop_older(now, rtt + KEPT_FOR);
            self.kept.keep(now, number, [frames, &[]]);
        }
    }

    /// Handles a REPAIR that arrived in packet `number`.
    pub(super) fn rebuild(
        &mut self,
        number: u64,
        repair: &RepairFields<'_>,
        is_new: impl Fn(u64) -> bool,
    ) -> RepairOutcome {
        let mut missing = repair.numbers(number).filter(|n| self.kept.get(*n).is_none());
        let (Some(lost), None) = (missing.next(), missing.next()) else {
            return RepairOutcome::Nothing;
        };
        if !self.is_keeping() || !is_new(lost) || self.rebuilt.contains(&lost) {
            return RepairOutcome::Nothing;
        }
        let mut symbol = repair.code.to_vec();
        for frames in repair.numbers(number).filter_map(|n| self.kept.get(n)) {
            add_symbol(&mut symbol, frames);
        }
        let frames = frames_of_symbol(&symbol).filter(|_| symbol.len() == repair.code.len());
        let Some(frames) = frames else { return RepairOutcome::Wrong };
        if self.rebuilt.len() >= WINDOW as usize {
            self.rebuilt.pop_front();
        }
        self.rebuilt.push_back(lost);
        self.count += 1;
        RepairOutcome::Rebuilt(frames.to_vec())
    }

    pub fn memory(&self) -> usize {
        self.kept.memory() + self.rebuilt.capacity() * size_of::<u64>()
    }
    pub fn release_memory(&mut self) {
        self.kept.clear();
    }
}
