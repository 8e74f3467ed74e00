//! Repair packets to send.

use super::kept::{KeptPacket, KeptPackets};
use super::loss_share::LossShare;
use crate::connection::payload::UDP_OVERHEAD;
use narrows_base::{Duration, Time};
use narrows_wire::packet::TAG_BYTES;
use narrows_wire::repair::{MAX_BITMAP_BYTES, MAX_OVERHEAD, add_symbol, bitmap};
use std::collections::VecDeque;

/// Loss rate from which repair packets are sent.
const MIN_LOSS: f64 = 0.03;
/// Bytes of repair packets per byte of other packets, in addition to the loss rate.
const MARGIN: f64 = 0.03;
/// Upper limit on the bank in bytes: as many full packets as a group of 128 can use at a loss rate of 20%.
const MAX_BANK: f64 = 48_000.0;
/// Bytes on the wire of a repair packet, beyond the frames of the longest packet that it covers.
const OVERHEAD: usize = UDP_OVERHEAD as usize + 9 + 8 + 3 + MAX_OVERHEAD + TAG_BYTES;

/// A repair packet not yet sent.
#[derive(Debug)]
pub(super) struct PendingRepair {
    pub made: Time,
    /// Numbers of the covered packets, in ascending order.
    pub numbers: Vec<u64>,
    pub bitmap: [u8; MAX_BITMAP_BYTES],
    pub bitmap_bytes: usize,
    pub code: Vec<u8>,
}

/// State of an end that sends repair packets.
#[derive(Debug)]
pub struct RepairEncoder {
    /// Number of packets that the peer keeps.
    most: u64,
    share: LossShare,
    /// Losses and packets already added to `share`.
    known: (u64, u64),
    /// Bytes of repair packets permitted now.
    pub(super) bank: f64,
    pub(super) kept: KeptPackets,
    pub(super) waiting: VecDeque<PendingRepair>,
    /// Repair packets sent, and their bytes on the wire.
    pub sent: (u64, u64),
}

impl RepairEncoder {
    pub fn new(most: u64) -> RepairEncoder {
        RepairEncoder {
            most,
            share: LossShare::default(),
            known: (0, 0),
            bank: 0.0,
            kept: KeptPackets::default(),
            waiting: VecDeque::new(),
            sent: (0, 0),
        }
    }
    /// Whether the loss rate is high enough for repair.
    pub fn is_active(&self) -> bool {
        self.share.share() >= MIN_LOSS
    }
    /// Handles a sent packet that is no repair packet, of `bytes` bytes on the wire. `losses` come from
    /// [`losses_at_short_queue`](narrows_recovery::packet_sender::PacketSender::losses_at_short_queue), because drops by a full
    /// queue are not repaired.
    pub fn on_sent(&mut self, bytes: u32, losses: (u64, u64)) {
        let lost = losses.0 as f64 - self.known.0 as f64;
        self.share.add(lost, losses.1.saturating_sub(self.known.1) as f64);
        self.known = losses;
        if self.is_active() {
            let share = self.share.share() + MARGIN;
            self.bank = (self.bank + share * f64::from(bytes)).min(MAX_BANK);
        } else if !self.kept.is_empty() {
            self.release_memory();
        }
    }

    /// Makes repair packets for packets sent in the last `span` and not acknowledged, within the bank.
    pub(super) fn prepare(
        &mut self,
        now: Time,
        span: Duration,
        is_in_flight: impl Fn(u64) -> bool,
    ) {
        self.waiting.retain(|waiting| {
            now.since(waiting.made) <= span && waiting.numbers.iter().any(|n| is_in_flight(*n))
        });
        self.kept.drop_while(|p| now.since(p.at) > span || !is_in_flight(p.number));
        if !self.waiting.is_empty() {
            return;
        }
        let newest = self.kept.iter().last().map_or(0, |p| p.number);
        let is_of_group = |p: &&KeptPacket| newest - p.number < self.most && is_in_flight(p.number);
        let group: Vec<&KeptPacket> = self.kept.iter().filter(is_of_group).collect();
        let count = self.count(&group);
        for first in 0..count {
            let packets = || group.iter().skip(first).step_by(count);
            let numbers: Vec<u64> = packets().map(|p| p.number).collect();
            let mut code = Vec::new();
            packets().for_each(|p| add_symbol(&mut code, &p.frames));
            if let Some((bitmap, bitmap_bytes)) = bitmap(numbers.iter().copied()) {
                self.waiting.push_back(PendingRepair {
                    made: now,
                    numbers,
                    bitmap,
                    bitmap_bytes,
                    code,
                });
            }
        }
        if count > 0 {
            self.kept.clear();
        }
    }
    /// Number of repair packets for a group: the expected losses, plus two standard deviations and one, within the
    /// bank.
    fn count(&self, group: &[&KeptPacket]) -> usize {
        let Some(longest) = group.iter().map(|p| p.frames.len()).max() else { return 0 };
        let affordable = (self.bank / (longest + OVERHEAD) as f64) as usize;
        let loss = self.share.share();
        let expected = group.len() as f64 * loss / (1.0 - loss).max(0.1);
        let wanted = (expected + 2.0 * expected.sqrt() + 1.0) as usize;
        affordable.min(wanted).min(group.len())
    }

    pub fn memory(&self) -> usize {
        let waiting = self.waiting.iter().map(|w| w.code.capacity() + 8 * w.numbers.capacity());
        self.kept.memory()
            + waiting.sum::<usize>()
            + self.waiting.capacity() * size_of::<PendingRepair>()
    }
    pub fn release_memory(&mut self) {
        self.kept.clear();
        self.waiting = VecDeque::new();
    }
}
