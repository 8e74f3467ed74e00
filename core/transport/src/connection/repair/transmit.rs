//! Repair packets that a connection sends.

use super::Repairs;
use super::outgoing::PendingRepair;
use crate::connection::messages::MESSAGE_OVERHEAD;
use crate::connection::payload::{SentFrames, UDP_OVERHEAD};
use crate::connection::{Connection, Transmit};
use crate::streams::SentFrame;
use narrows_base::Time;
use narrows_wire::bytes::Sink;
use narrows_wire::frame::REPAIR;
use narrows_wire::packet::TAG_BYTES;
use narrows_wire::repair::{MAX_DISTANCE, MAX_OVERHEAD};
use narrows_wire::{Frame, Frames, RepairFields, Sealer};

impl Connection {
    /// Bytes that data packets leave free. With them a repair packet for these packets fits into a datagram of `full`
    /// bytes.
    pub(in super::super) fn left_for_repair(&mut self, full: usize) -> usize {
        let is_active = self.repairs.as_ref().is_some_and(|r| r.outgoing.is_active());
        if !is_active || self.path.sender.is_short_probe() {
            return 0;
        }
        // With this much data unacknowledged, packets sent now are acknowledged before the last data leave.
        let flight = self.path.sender.packets_in_flight();
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
        self.timeouts.sent = now;
        self.timeouts.keeps_memory = true;
        Some(self.one(self.path.address.remote(), size, true))
    }

    /// Seals a repair packet. `None` if it does not fit; no state has changed then.
    fn seal_repair(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        waiting: &PendingRepair,
    ) -> Option<usize> {
        let number = self.path.sender.next_number();
        let acked = self.path.sender.highest_reported();
        let head = Sealer::header_len(number, acked);
        let distance = number.checked_sub(*waiting.numbers.first()?)?;
        let bitmap = waiting.bitmap.get(..waiting.bitmap_bytes)?;
        let repair = RepairFields { distance, bitmap, code: &waiting.code };
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
