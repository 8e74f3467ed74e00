//! Outgoing packets: filled with frames, recorded by the packet sender, sealed in place.

use super::messages::MESSAGE_OVERHEAD;
use super::path::{PathFrame, PathFrameTo};
use super::payload::{SentFrames, UDP_OVERHEAD};
use super::report_frame;
use super::{Connection, Transmit};
use crate::streams::{SentFrame, Side};
use narrows_base::Time;
use narrows_wire::frame::{SKIPPED, UNCOUNTED, number_bytes};
use narrows_wire::packet::TAG_BYTES;
use narrows_wire::seal::receipt_nonce;
use narrows_wire::{Frame, FrameWriter, Prelude, SealError, Sealer};

/// A packet with messages that leaves at most this many bytes free may be followed by others in the same call. They
/// must not be larger, because the kernel cuts one buffer into datagrams of equal size.
const MAX_LEFT_EMPTY: usize = 128;
/// If more messages wait, a packet is padded by up to this many bytes to the length of the packet before it, which may
/// have a report. These bytes cost less than another system call.
const MAX_MESSAGE_PADDING: usize = 32;
/// What a packet carries besides a report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum PacketContent {
    Report,
    /// PING and PADDING, to probe a path without data.
    Probe,
    Data,
}

/// Size in bytes of a packet with PATH_CHALLENGE or PATH_RESPONSE.
const PATH_FRAME_BYTES: usize = 9 + 8 + 9 + TAG_BYTES;

impl Connection {
    /// Writes the next datagram, or up to `segments` consecutive datagrams of equal size. `None` if no datagram may
    /// leave now.
    pub fn transmit(&mut self, now: Time, buffer: &mut [u8], segments: usize) -> Option<Transmit> {
        if self.multipath.is_some() {
            return self.transmit_multipath(now, buffer, segments);
        }
        if !self.is_open() {
            return self.transmit_closing(now, buffer);
        }
        if let Some(sent) = self.transmit_path_frame(now, buffer) {
            return Some(sent);
        }
        if let Some(sent) = self.transmit_mtu_probe(now, buffer) {
            return Some(sent);
        }
        self.payload.messages.expire(now);
        let data = self.transmit_packets(now, buffer, segments, None);
        data.or_else(|| self.transmit_repair(now, buffer))
    }

    /// Sends CLOSE, if it is due.
    pub(super) fn transmit_closing(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let size = self.transmit_close(now, buffer)?;
        Some(self.one(self.path.address.remote(), size, false))
    }

    /// Sends PATH_CHALLENGE or PATH_RESPONSE, if one is due. On a further path they are as long as full packets, until
    /// it is validated: a path that carries only small packets is not used (RFC 9000 section 8.2.1).
    pub(super) fn transmit_path_frame(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let is_padded = !self.path.address.is_validated();
        let small = usize::from(self.path.mtu.small());
        let most = if is_padded { small } else { PATH_FRAME_BYTES };
        let timeout = self.path.sender.pto();
        let PathFrameTo { to, frame } = self.path.address.path_frame(now, most, timeout)?;
        let frame = match frame {
            PathFrame::Challenge(data) => Frame::PathChallenge(data),
            PathFrame::Response(data) => Frame::PathResponse(data),
        };
        let size = if is_padded {
            let frames = [&frame, &Frame::Padding(small)];
            self.seal_frames(now, buffer, &frames, None, false)?
        } else {
            self.seal_not_in_flight(now, buffer, &frame)?
        };
        Some(self.one(to, size, false))
    }

    pub(super) fn transmit_mtu_probe(&mut self, now: Time, buffer: &mut [u8]) -> Option<Transmit> {
        let size = self.mtu_probe(now, buffer)?;
        Some(self.one(self.path.address.remote(), size, false))
    }

    pub(super) fn one(&mut self, to: std::net::SocketAddr, size: usize, is_data: bool) -> Transmit {
        self.traffic.on_sent(size);
        self.path.bytes_sent += size as u64;
        let ecn = self.ecn.of(is_data, self.path.sender.controller().requirements().l4s);
        // A server has one socket for all paths.
        let is_client = self.agreement.side == Side::Client;
        let socket = if is_client { self.path.number } else { 0 };
        Transmit { to, size, segment: size, ecn, socket }
    }

    /// Sends packets of equal size. `first` is the content of the first one, if that is decided already.
    pub(super) fn transmit_packets(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        segments: usize,
        first: Option<PacketContent>,
    ) -> Option<Transmit> {
        let mut used = 0;
        let mut segment = 0;
        let full = self.path.datagram();
        let full = full - self.left_for_repair(full);
        for _ in 0..segments.max(1) {
            let most = if used == 0 { full } else { segment };
            let end = (used + most).min(buffer.len());
            if used > 0 && end < used + most {
                break;
            }
            let Some(space) = buffer.get_mut(used..end) else { break };
            let content = match first {
                Some(content) if used == 0 => content,
                Some(_) if !self.is_next_here(now) => break,
                Some(_) => PacketContent::Data,
                None if self.path.may_send(now, &mut self.payload) => PacketContent::Data,
                None => PacketContent::Report,
            };
            let size = self.next_packet(now, space, used, content);
            if used == 0 {
                segment = size;
            }
            used += size;
            // The next message did not fit; later ones may make packets of the same size.
            let is_nearly_full = size + MAX_LEFT_EMPTY >= full && !self.payload.messages.is_empty();
            if size < segment || size < full && !is_nearly_full {
                break;
            }
        }
        if used == 0 {
            return None;
        }
        self.timeouts.sent = now;
        self.timeouts.keeps_memory = true;
        // `one` counts one of the datagrams.
        self.traffic.datagrams_sent += used.div_ceil(segment) as u64 - 1;
        Some(Transmit { segment, ..self.one(self.path.address.remote(), used, true) })
    }

    /// Whether a packet of `bytes` bytes, after `before` bytes of the same call, exceeds the limits before the first
    /// acknowledgement.
    pub(super) fn is_before_first_ack(&self, before: usize, bytes: usize) -> bool {
        let sent = self.traffic.bytes_sent + (before + bytes) as u64;
        self.is_too_early(sent) || self.traffic.is_before_first_ack(sent, bytes)
    }

    /// Fills and seals one packet. Returns its size, 0 if no packet leaves. After other packets of the same call
    /// (`before` bytes) the packet should be as long as `space`.
    #[inline]
    fn next_packet(
        &mut self,
        now: Time,
        space: &mut [u8],
        before: usize,
        content: PacketContent,
    ) -> usize {
        let mut data =
            content != PacketContent::Report && !self.is_before_first_ack(before, space.len());
        if data && content == PacketContent::Data && self.payload.is_empty() {
            self.path.sender.nothing_to_send();
            data = false;
        }
        if !data && !self.path.receiver.must_report(now) {
            return 0;
        }
        let number = self.path.sender.next_number();
        let acked = self.path.sender.highest_reported();
        let head = Sealer::header_len(number, acked);
        let Some(end) = space.len().checked_sub(TAG_BYTES) else { return 0 };
        let Some(area) = space.get_mut(head..end) else { return 0 };
        let Some(mut writer) = self.begin(now, area) else { return 0 };
        // A report behind a lost MTU probe would show a gap.
        if data || self.path.mtu.out {
            self.say_uncounted(&mut writer);
        }
        let reported = self.path.receiver.should_piggyback(now)
            && report_frame::write(&mut self.path.receiver, now, &mut writer);
        let reported_end = writer.len();
        let mut frames = SentFrames::default();
        if data {
            self.payload.ping |= content == PacketContent::Probe;
            self.fill(now, &mut writer, &mut frames, before > 0, content);
        }
        let asks = writer.len() > reported_end;
        let length = writer.len();
        if !asks && !reported {
            // The waiting data fit into no packet.
            self.path.sender.nothing_to_send();
            return 0;
        }
        let mut length = length;
        if asks && !reported && self.reports_with_last(&mut writer, now) {
            length = writer.len();
        }
        let apart = frames.last().filter(|_| writer.apart() > 0);
        let written = head + length - writer.apart();
        let size = head + length + TAG_BYTES;
        frames.size = size as u16;
        let bytes = size as u32 + UDP_OVERHEAD;
        if asks {
            self.keep_for_repair(now, space.get(head..written), &frames, apart);
            let again = self.payload.repays(&frames);
            self.path.sent(now, &mut self.payload, bytes, frames, again);
        } else {
            self.path.sent_not_in_flight(now, &mut self.payload, bytes, frames, false);
        }
        if self.seal(number, acked, space.get_mut(..size), apart) { size } else { 0 }
    }

    /// Writes UNCOUNTED, unless SKIPPED covers it: how many numbers directly below this packet's do not count as
    /// missing.
    #[inline]
    pub(super) fn say_uncounted(&self, writer: &mut FrameWriter<'_>) {
        let below = self.path.sender.not_in_flight_below();
        if below > self.path.sender.skipped_below() {
            let mut bytes = [0; 8];
            let body = number_bytes(below, &mut bytes);
            // The frame fits at the beginning of a packet, and is optional after a repair.
            let _ = writer.frame(&Frame::Extension { kind: UNCOUNTED, body });
        }
    }

    /// Writes a report after the last waiting data, if packets arrived and the report fits. A response is the best
    /// packet for the report on its request, which would soon need a packet of its own.
    #[inline]
    fn reports_with_last(&mut self, writer: &mut FrameWriter<'_>, now: Time) -> bool {
        writer.room() > 0
            && self.path.receiver.has_news()
            && self.payload.is_empty()
            && report_frame::write(&mut self.path.receiver, now, writer)
    }

    /// Begins a payload: the prelude, and SKIPPED if numbers directly below were skipped.
    #[inline]
    pub(super) fn begin<'b>(&self, now: Time, area: &'b mut [u8]) -> Option<FrameWriter<'b>> {
        let number = self.path.sender.next_number();
        let prelude = Prelude::new(now, number, self.path.sender.least_unacked());
        let mut writer = FrameWriter::new(area, prelude).ok()?;
        let skipped = self.path.sender.skipped_below();
        if skipped > 0 {
            let mut bytes = [0; 8];
            let body = number_bytes(skipped, &mut bytes);
            writer.frame(&Frame::Extension { kind: SKIPPED, body }).ok()?;
        }
        Some(writer)
    }

    /// Writes control frames, messages and stream data.
    fn fill(
        &mut self,
        now: Time,
        writer: &mut FrameWriter<'_>,
        frames: &mut SentFrames,
        follows: bool,
        content: PacketContent,
    ) {
        self.protocols.write_label(self.payload.announced, writer);
        self.agreement.write(self.payload.announced, writer);
        self.path.changes.write(self.path.sender.has_arrived(), writer);
        self.give_token(writer, frames);
        self.path.write_feedback(now, writer);
        self.path.write_spacing(writer);
        let is_short = self.path.sender.is_short_probe();
        let payload = &mut self.payload;
        if payload.ping && writer.frame(&Frame::Ping).is_ok() {
            payload.ping = false;
        }
        if is_short {
            return;
        }
        if content == PacketContent::Probe {
            let _ = writer.frame(&Frame::Padding(writer.room()));
            return;
        }
        while let Some(message) = self.payload.messages.peek() {
            let message_bytes = message.len() as u16;
            if writer.room() == message.len() + 1 {
                if writer.last_datagram(message).is_err() {
                    break;
                }
            } else if writer.frame(&Frame::Datagram(message)).is_err() {
                // A message that fits into no path's datagram would wait for ever, so it is dropped.
                let largest = usize::from(self.largest_datagram());
                let is_hopeless = message.len() + MESSAGE_OVERHEAD > largest;
                if !is_hopeless {
                    break;
                }
            }
            frames.messages += message_bytes;
            self.payload.messages.pop();
        }
        let payload = &mut self.payload;
        if writer.room() > 0 {
            payload.streams.fill(writer, &mut |piece| frames.push(piece));
        }
        let padding = writer.room();
        let is_padded = follows && padding <= MAX_MESSAGE_PADDING && !payload.messages.is_empty();
        // The first packet is always a full one: it measures the RTT of full packets, and its arrival shows that they
        // pass.
        if padding > 0 && (is_padded || self.path.sender.next_number() == 0) {
            let _ = writer.frame(&Frame::Padding(padding));
        }
    }

    /// Seals a packet with one frame, which ignores window and pacer.
    pub(super) fn seal_not_in_flight(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        frame: &Frame<'_>,
    ) -> Option<usize> {
        self.seal_frames(now, buffer, &[frame], None, false)
    }

    /// Sends a probe of a larger datagram size, if one is due.
    fn mtu_probe(&mut self, now: Time, buffer: &mut [u8]) -> Option<usize> {
        let size = self.path.next_mtu_probe(now)?;
        let number = self.path.sender.next_number();
        let head = Sealer::header_len(number, self.path.sender.highest_reported());
        let prelude = Prelude::new(now, number, self.path.sender.least_unacked()).len();
        let padding = usize::from(size).checked_sub(head + prelude + 1 + TAG_BYTES)?;
        let frames = [&Frame::Ping, &Frame::Padding(padding)];
        let sealed = self.seal_frames(now, buffer, &frames, Some(size), false)?;
        self.path.mtu.out = true;
        Some(sealed)
    }

    /// Seals a packet with these frames, after a report if `report` is set and packets arrived. If they do not fit,
    /// returns `None`; only the pending report is used up then.
    pub(super) fn seal_frames(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        frames: &[&Frame<'_>],
        probe: Option<u16>,
        report: bool,
    ) -> Option<usize> {
        let number = self.path.sender.next_number();
        let acked = self.path.sender.highest_reported();
        let head = Sealer::header_len(number, acked);
        let most = usize::from(probe.unwrap_or(self.path.mtu.small())).min(buffer.len());
        let area = buffer.get_mut(head..most.checked_sub(TAG_BYTES)?)?;
        let mut writer = self.begin(now, area)?;
        if report {
            report_frame::write(&mut self.path.receiver, now, &mut writer);
        }
        for frame in frames {
            match frame {
                Frame::Padding(most) => {
                    let padding = (*most).min(writer.room());
                    writer.frame(&Frame::Padding(padding)).ok()?;
                }
                frame => writer.frame(frame).ok()?,
            }
        }
        let size = head + writer.len() + TAG_BYTES;
        let frames = SentFrames::bare(size as u16, probe.is_some());
        self.path.sent_not_in_flight(
            now,
            &mut self.payload,
            size as u32 + UDP_OVERHEAD,
            frames,
            probe.is_some(),
        );
        self.seal(number, acked, buffer.get_mut(..size), None).then_some(size)
    }

    /// `apart` is the range of a stream that is still in the stream's buffer.
    #[inline]
    pub(super) fn seal(
        &mut self,
        number: u64,
        acked: Option<u64>,
        datagram: Option<&mut [u8]>,
        apart: Option<SentFrame>,
    ) -> bool {
        let Some(datagram) = datagram else { return false };
        let streams = &self.payload.streams;
        let tail = apart.as_ref().map_or(&[][..], |piece| streams.bytes(piece));
        self.path.sealer.set_random(self.path.nonces.header_bits());
        let sealed = self.path.sealer.seal_with(number, acked, datagram, tail);
        if sealed == Err(SealError::KeyUsedUp) || sealed == Err(SealError::Number) {
            // No further packet can be sealed, not even CLOSE.
            self.vanish(super::Closed::Fault { code: 6, why: "keys used up" });
        }
        if sealed.is_ok() {
            self.path.nonces.on_sealed(number, receipt_nonce(datagram));
            let next = self.path.sender.next_number();
            let least_unacked = self.path.sender.least_unacked();
            self.path.nonces.forget(self.path.sender.smallest_tracked(), next, least_unacked);
        }
        sealed.is_ok()
    }
}
