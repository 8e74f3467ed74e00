//! Repair packets to send.

use super::Repairs;
use super::kept::{KeptPacket, KeptPackets};
use super::loss_share::LossShare;
use crate::connection::messages::MESSAGE_OVERHEAD;
use crate::connection::payload::SentFrames;
use crate::connection::{Connection, Transmit, UDP_OVERHEAD};
use crate::streams::SentFrame;
use narrows_base::{Duration, Time};
use narrows_wire::bytes::Sink;
use narrows_wire::frame::REPAIR;
use narrows_wire::packet::TAG_BYTES;
use narrows_wire::repair::{MAX_BITMAP_BYTES, MAX_DISTANCE, MAX_OVERHEAD, add_symbol, bitmap};
use narrows_wire::{Frame, Frames, Repair, Sealer};
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
struct Waiting {
    made: Time,
    /// Numbers of the covered packets, in ascending order.
    numbers: Vec<u64>,
    bitmap: [u8; MAX_BITMAP_BYTES],
    bitmap_bytes: usize,
    code: Vec<u8>,
}

/// State of an end that sends repair packets.
#[derive(Debug)]
pub(in super::super) struct Outgoing {
    /// Number of packets that the peer keeps.
    most: u64,
    share: LossShare,
    /// Losses and packets already added to `share`.
    known: (u64, u64),
    /// Bytes of repair packets permitted now.
    bank: f64,
    kept: KeptPackets,
    waiting: VecDeque<Waiting>,
    /// Repair packets sent, and their bytes on the wire.
    pub sent: (u64, u64),
}

impl Outgoing {
    pub fn new(most: u64) -> Outgoing {
        Outgoing {
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
    /// [`losses_at_short_queue`](crate::packet_sender::PacketSender::losses_at_short_queue), because drops by a full
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
    fn prepare(&mut self, now: Time, span: Duration, is_in_flight: impl Fn(u64) -> bool) {
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
                self.waiting.push_back(Waiting { made: now, numbers, bitmap, bitmap_bytes, code });
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
        self.kept.memory() + waiting.sum::<usize>() + self.waiting.capacity() * size_of::<Waiting>()
    }
    pub fn release_memory(&mut self) {
        self.kept.clear();
        self.waiting = VecDeque::new();
    }
}

impl Connection {
    /// Bytes that data packets leave free. With them a repair packet for these packets fits into a datagram of `full`
    /// bytes.
    pub(in super::super) fn left_for_repair(&mut self, full: usize) -> usize {
        let is_active = self.repairs.as_ref().is_some_and(|r| r.outgoing.is_active());
        if !is_active || self.path.sender.is_short_probe() {
            return 0;
        }
        // With this much data unacknowledged, packets sent now are acknowledged before the last data leave.
        let flight = self.path.sender.flight();
        let payload = &mut self.payload;
        let round = flight.clamp(16, super::MAX_GROUP);
        if payload.streams.unacknowledged() as u64 > (flight + round) * full as u64 {
            return 0;
        }
        let message = payload.messages.peek().map_or(0, |m| m.len() + MESSAGE_OVERHEAD);
        if message + MAX_OVERHEAD > full { 0 } else { MAX_OVERHEAD }
    }

    /// Keeps a packet that is about to leave, if repair packets may cover it. `apart` is the range of a stream that is
    /// not in `payload`.
    #[inline]
    pub(in super::super) fn keep_for_repair(
        &mut self,
        now: Time,
        payload: Option<&[u8]>,
        frames: &SentFrames,
        apart: Option<SentFrame>,
    ) {
        let full = self.path.datagram();
        let Some(Repairs { outgoing, .. }) = self.repairs.as_deref_mut() else { return };
        outgoing.on_sent(
            u32::from(frames.size) + UDP_OVERHEAD,
            self.path.sender.losses_at_short_queue(),
        );
        let is_worth_it = frames.last().is_some() || frames.messages > 0;
        let fits = usize::from(frames.size) + MAX_OVERHEAD <= full;
        if !outgoing.is_active() || !is_worth_it || !fits {
            return;
        }
        let frames = payload.and_then(|payload| Frames::read(payload).ok());
        let Some((_, frames)) = frames else { return };
        let streams = &self.payload.streams;
        let tail = apart.as_ref().map_or(&[][..], |piece| streams.bytes(piece));
        outgoing.kept.keep(now, self.path.sender.next_number(), [frames.bytes(), tail]);
    }

    /// The next repair packet, if no data wait to be sent.
    pub(in super::super) fn transmit_repair(
        &mut self,
        now: Time,
        buffer: &mut [u8],
    ) -> Option<Transmit> {
        let outgoing = &mut self.repairs.as_mut()?.outgoing;
        let has_something = !outgoing.kept.is_empty() || !outgoing.waiting.is_empty();
        if !has_something || !self.payload.is_empty() {
            return None;
        }
        let sender = &self.path.sender;
        outgoing.prepare(now, sender.rtt().srtt(), |n| sender.is_in_flight(n));
        let is_nothing = outgoing.waiting.is_empty();
        let full = self.path.datagram().min(buffer.len());
        if is_nothing
            || self.is_before_first_ack(0, full)
            || !self.path.may_send(now, &mut self.payload)
        {
            return None;
        }
        let size = loop {
            let waiting = self.repairs.as_mut()?.outgoing.waiting.pop_front()?;
            if let Some(size) = self.seal_repair(now, buffer.get_mut(..full)?, &waiting) {
                break size;
            }
        };
        (self.timeouts.sent, self.timeouts.keeps_memory) = (now, true);
        Some(self.one(self.path.address.remote(), size, true))
    }

    /// Seals a repair packet. `None` if it does not fit; no state has changed then.
    fn seal_repair(&mut self, now: Time, buffer: &mut [u8], waiting: &Waiting) -> Option<usize> {
        let number = self.path.sender.next_number();
        let acked = self.path.sender.highest_reported();
        let head = Sealer::header_len(number, acked);
        let distance = number.checked_sub(*waiting.numbers.first()?)?;
        let bitmap = waiting.bitmap.get(..waiting.bitmap_bytes)?;
        let repair = Repair { distance, bitmap, code: &waiting.code };
        let mut body = vec![0; repair.len()];
        repair.write(&mut Sink::new(&mut body)).ok().filter(|()| distance <= MAX_DISTANCE)?;
        let area = buffer.get_mut(head..buffer.len().checked_sub(TAG_BYTES)?)?;
        let mut writer = self.begin(now, area)?;
        writer.frame(&Frame::Extension { kind: REPAIR, body: &body }).ok()?;
        self.say_uncounted(&mut writer);
        let size = head + writer.len() + TAG_BYTES;
        let bytes = size as u32 + UDP_OVERHEAD;
        self.path.sent(now, &mut self.payload, bytes, SentFrames::bare(size as u16, false), false);
        let outgoing = &mut self.repairs.as_mut()?.outgoing;
        outgoing.bank = (outgoing.bank - f64::from(bytes)).max(0.0);
        outgoing.sent = (outgoing.sent.0 + 1, outgoing.sent.1 + u64::from(bytes));
        self.seal(number, acked, buffer.get_mut(..size), None).then_some(size)
    }
}
