//! Outgoing packets: filled with frames, recorded by the packet sender, sealed in place.

use super::messages::MESSAGE_OVERHEAD;
use super::path::PathFrame;
use super::payload::{SHORT_PROBE_DATAGRAM, SentFrames};
use super::report_frame::{self, feedback_bytes};
use super::{Connection, Transmit, UDP_OVERHEAD};
use crate::packet_sender::{PayloadSource, Permission};
use crate::streams::SentFrame;
use narrows_base::{Duration, Time};
use narrows_wire::frame::{CONTROLLER, REPORT_SPACING, SKIPPED, UNCOUNTED, number_bytes};
use narrows_wire::packet::TAG_BYTES;
use narrows_wire::seal::receipt_nonce;
use narrows_wire::{Frame, FrameWriter, Prelude, SealError, Sealer};

/// ECN field of packets that routers may mark: ECT(0).
const ECT0: u8 = 2;
/// ECN field of a scalable sender (RFC 9331): ECT(1).
const ECT1: u8 = 1;
/// Longest time that a paced connection waits in order to send several packets in one call. Only above [`BURST_RATE`].
const MAX_HOLD: Duration = Duration::from_micros(500);
/// A packet with messages that leaves at most this many bytes free may be followed by others in the same call. They
/// must not be larger, because the kernel cuts one buffer into datagrams of equal size.
const MAX_LEFT_EMPTY: usize = 128;
/// If more messages wait, a packet is padded by up to this many bytes to the length of the packet before it, which may
/// have a report. These bytes cost less than another system call.
const MAX_MESSAGE_PADDING: usize = 32;
/// Most packets that the hold collects for one call.
const MAX_HELD: u64 = 40;
/// Below this rate (bit/s) packets leave one by one.
const BURST_RATE: u64 = 5_000_000;
/// After this many consecutive PTOs datagrams are small, because their size may be the cause.
const SUSPICIOUS: u32 = 2;
/// The first packets of a connection carry the sender side's feedback, and then every `ADVISED_EVERY`-th, even if it
/// has not changed.
const FIRST_ADVISED: u64 = 10;
const ADVISED_EVERY: u64 = 16;
/// Bytes that a server may send per byte received, until a packet of its own is acknowledged. Short probes have a
/// higher limit, because the client's report may depend on them if the first packet was lost. Reports and CLOSE are not
/// limited; with them the factor stays below 40.
const MAX_UNHEARD: u64 = 34;
const MAX_UNHEARD_WITH_PROBES: u64 = 36;
/// UDP payload in bytes: SYN; START with the shortest FINISH; the server's handshake packets.
const SYN: u64 = 64;
const START_AND_FINISH: u64 = 90 + 73;
const SERVERS_HANDSHAKE: u64 = 57 + 240;
/// Size in bytes of a packet with PATH_CHALLENGE or PATH_RESPONSE.
const PATH_FRAME_BYTES: usize = 9 + 8 + 9 + TAG_BYTES;

impl Connection {
    /// Writes the next datagram, or up to `segments` consecutive datagrams of equal size. `None` if no datagram may
    /// leave now.
    pub fn transmit(&mut self, now: Time, buffer: &mut [u8], segments: usize) -> Option<Transmit> {
        if !self.is_open() {
            let size = self.transmit_close(now, buffer)?;
            return Some(self.one(self.path.remote(), size, false));
        }
        let timeout = self.sender.probe_timeout();
        if let Some((to, path_frame)) = self.path.path_frame(now, PATH_FRAME_BYTES, timeout) {
            let frame = match path_frame {
                PathFrame::Challenge(data) => Frame::PathChallenge(data),
                PathFrame::Response(data) => Frame::PathResponse(data),
            };
            let size = self.seal_not_in_flight(now, buffer, &frame)?;
            return Some(self.one(to, size, false));
        }
        if let Some(size) = self.mtu_probe(now, buffer) {
            return Some(self.one(self.path.remote(), size, false));
        }
        let data = self.transmit_data(now, buffer, segments);
        data.or_else(|| self.transmit_repair(now, buffer))
    }

    pub(super) fn one(&mut self, to: std::net::SocketAddr, size: usize, ecn: bool) -> Transmit {
        self.datagrams_sent += 1;
        self.bytes_sent += size as u64;
        let ecn = match (ecn, self.ecn_field, self.sender.controller().requirements().l4s) {
            (false, _, _) => 0,
            (true, Some(field), _) => field,
            (true, None, true) => ECT1,
            (true, None, false) if self.ecn => ECT0,
            (true, None, false) => 0,
        };
        Transmit { to, size, segment: size, ecn }
    }

    fn transmit_data(&mut self, now: Time, buffer: &mut [u8], segments: usize) -> Option<Transmit> {
        self.payload.messages.expire(now);
        let (mut used, mut segment) = (0, 0);
        let full = self.datagram();
        let full = full - self.left_for_repair(full);
        for _ in 0..segments.max(1) {
            let most = if used == 0 { full } else { segment };
            let end = (used + most).min(buffer.len());
            if used > 0 && end < used + most {
                break;
            }
            let Some(space) = buffer.get_mut(used..end) else { break };
            let size = self.next_packet(now, space, used);
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
        (self.last_sent, self.keeps_memory) = (now, true);
        // `one` counts one of the datagrams.
        self.datagrams_sent += used.div_ceil(segment) as u64 - 1;
        Some(Transmit { segment, ..self.one(self.path.remote(), used, true) })
    }

    /// UDP payload of a full datagram at present, in bytes.
    pub(super) fn datagram(&self) -> usize {
        let suspicious = self.sender.backoffs() >= SUSPICIOUS;
        let full = usize::from(if suspicious { self.mtu.small() } else { self.mtu.size() });
        if self.sender.is_short_probe() { full.min(SHORT_PROBE_DATAGRAM) } else { full }
    }
    /// Whether a data packet may leave now.
    #[inline]
    pub(super) fn may_send(&mut self, now: Time) -> bool {
        if let Some(held) = self.held_until.filter(|_| !self.sender.is_forced()) {
            // If the rate has risen meanwhile, the packet leaves earlier.
            let due = self.sender.next_pace().map_or(held, |due| held.min(due + self.hold()));
            self.held_until = Some(due);
            if now < due {
                self.is_data_held = !self.payload.is_empty();
                return false;
            }
        }
        let permission = self.sender.permission(now);
        self.held_until = match permission {
            Permission::Paced(due) => Some(due + self.hold()),
            Permission::WindowFull | Permission::Now => None,
        };
        self.is_data_held = self.held_until.is_some() && !self.payload.is_empty();
        permission == Permission::Now
    }

    /// How long a packet that may leave is held, to send several in one call. The pacer's credit compensates for the
    /// delay.
    fn hold(&self) -> Duration {
        let rate = self.sender.pacing_rate().map_or(0, |r| r.as_bps());
        if rate < BURST_RATE {
            return Duration::ZERO;
        }
        let bits = (self.datagram() as u64 + u64::from(UDP_OVERHEAD)) * 8;
        let packet = Duration::from_secs_f64(bits as f64 / rate as f64);
        let most = self.sender.rtt().srtt().mul_f64(0.25).min(MAX_HOLD);
        let hold = packet.saturating_mul(MAX_HELD).min(most);
        Duration::from_nanos(hold.as_nanos().saturating_sub(packet.as_nanos()))
    }

    /// Whether a packet of `bytes` bytes, after `before` bytes of the same call, exceeds the limit for a client that
    /// has acknowledged no packet. The client's address is validated, but its requests may serve to flood a link.
    pub(super) fn is_before_first_ack(&self, before: usize, bytes: usize) -> bool {
        let syn = if self.without_syn { 0 } else { SYN };
        let came = self.bytes_received + syn + START_AND_FINISH;
        let is_short = bytes <= SHORT_PROBE_DATAGRAM;
        let sent = self.bytes_sent + (before + bytes) as u64;
        if self.is_too_early(sent) {
            return true;
        }
        let most = if is_short { MAX_UNHEARD_WITH_PROBES } else { MAX_UNHEARD };
        self.before_first_ack && sent + SERVERS_HANDSHAKE > most * came
    }

    /// Fills and seals one packet. Returns its size, 0 if no packet leaves. After other packets of the same call
    /// (`before` bytes) the packet should be as long as `space`.
    #[inline]
    fn next_packet(&mut self, now: Time, space: &mut [u8], before: usize) -> usize {
        let mut data = self.may_send(now) && !self.is_before_first_ack(before, space.len());
        if data && self.payload.is_empty() {
            self.sender.nothing_to_send();
            data = false;
        }
        if !data && !self.receiver.must_report(now) {
            return 0;
        }
        let number = self.sender.next_number();
        let acked = self.sender.highest_reported();
        let head = Sealer::header_len(number, acked);
        let Some(end) = space.len().checked_sub(TAG_BYTES) else { return 0 };
        let Some(area) = space.get_mut(head..end) else { return 0 };
        let Some(mut writer) = self.begin(now, area) else { return 0 };
        if data {
            self.say_uncounted(&mut writer);
        }
        let reported = self.receiver.should_piggyback(now)
            && report_frame::write(&mut self.receiver, now, &mut writer);
        let reported_end = writer.len();
        let mut frames = SentFrames::default();
        if data {
            self.fill(now, &mut writer, &mut frames, before > 0);
        }
        let (asks, length) = (writer.len() > reported_end, writer.len());
        if !asks && !reported {
            // The waiting data fit into no packet.
            self.sender.nothing_to_send();
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
            self.sender.sent(now, &mut self.payload, bytes, frames, again);
        } else {
            self.sender.sent_not_in_flight(now, &mut self.payload, bytes, frames, false);
        }
        if self.seal(number, acked, space.get_mut(..size), apart) { size } else { 0 }
    }

    /// Writes UNCOUNTED, unless SKIPPED covers it: how many numbers directly below this packet's do not count as
    /// missing.
    #[inline]
    pub(super) fn say_uncounted(&self, writer: &mut FrameWriter<'_>) {
        let below = self.sender.not_in_flight_below();
        if below > self.sender.skipped_below() {
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
            && self.receiver.has_news()
            && self.payload.is_empty()
            && report_frame::write(&mut self.receiver, now, writer)
    }

    /// Begins a payload: the prelude, and SKIPPED if numbers directly below were skipped.
    #[inline]
    pub(super) fn begin<'b>(&self, now: Time, area: &'b mut [u8]) -> Option<FrameWriter<'b>> {
        let number = self.sender.next_number();
        let prelude = Prelude::new(now, number, self.sender.least_unacked());
        let mut writer = FrameWriter::new(area, prelude).ok()?;
        let skipped = self.sender.skipped_below();
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
    ) {
        self.announce(writer);
        self.say_application(writer);
        self.say_new_path(writer);
        self.give_token(writer, frames);
        self.write_feedback(now, writer);
        self.wish_for_spacing(writer);
        let is_short = self.sender.is_short_probe();
        let payload = &mut self.payload;
        if payload.ping && writer.frame(&Frame::Ping).is_ok() {
            payload.ping = false;
        }
        if is_short {
            return;
        }
        while let Some(message) = payload.messages.peek() {
            let message_bytes = message.len() as u16;
            if writer.room() == message.len() + 1 {
                if writer.last_datagram(message).is_err() {
                    break;
                }
            } else if writer.frame(&Frame::Datagram(message)).is_err() {
                // A message that fits into no datagram would wait for ever, so it is dropped.
                let hopeless = message.len() + MESSAGE_OVERHEAD > usize::from(self.mtu.size());
                if !hopeless {
                    break;
                }
            }
            frames.messages += message_bytes;
            payload.messages.pop();
        }
        if writer.room() > 0 {
            payload.streams.fill(writer, &mut |piece| frames.push(piece));
        }
        let padding = writer.room();
        let is_padded = follows && padding <= MAX_MESSAGE_PADDING && !payload.messages.is_empty();
        // The first packet is always a full one: it measures the RTT of full packets, and its arrival shows that they
        // pass.
        if padding > 0 && (is_padded || self.sender.next_number() == 0) {
            let _ = writer.frame(&Frame::Padding(padding));
        }
    }

    /// Writes CONTROLLER, the label of this end's protocol, if it differs from the handshake's. Every packet has it
    /// until one is acknowledged.
    #[inline]
    fn announce(&mut self, writer: &mut FrameWriter<'_>) {
        let Some(label) = &self.announce else { return };
        if self.payload.announced {
            self.announce = None;
        } else {
            let body = label.as_bytes();
            // The first packets are empty, so it fits.
            let _ = writer.frame(&Frame::Extension { kind: CONTROLLER, body });
        }
    }

    /// Writes the feedback of the controller's sender side. Changed feedback is sent at most eight times per RTT. Some
    /// packets repeat it, because packets get lost.
    fn write_feedback(&mut self, now: Time, writer: &mut FrameWriter<'_>) {
        let feedback = self.sender.controller().feedback_to_receiver();
        if feedback.is_empty() {
            return;
        }
        let number = self.sender.next_number();
        let old = now.since(self.feedback_sent_at) >= self.sender.rtt().srtt().mul_f64(0.125);
        let again = number < FIRST_ADVISED || number.is_multiple_of(ADVISED_EVERY);
        if again || old && feedback != self.feedback_sent {
            let mut words = [0; 16];
            if writer.frame(&Frame::Feedback(feedback_bytes(&feedback, &mut words))).is_ok() {
                (self.feedback_sent, self.feedback_sent_at) = (feedback, now);
            }
        }
    }

    /// Writes REPORT_SPACING, the requested interval between reports in microseconds, when it is due.
    #[inline]
    fn wish_for_spacing(&self, writer: &mut FrameWriter<'_>) {
        let (spacing, is_due) = self.sender.report_spacing();
        if is_due {
            let mut bytes = [0; 8];
            let body = number_bytes(spacing.as_nanos() / 1000, &mut bytes);
            let _ = writer.frame(&Frame::Extension { kind: REPORT_SPACING, body });
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
        let soon = self.sender.flight() > 0
            && self.sender.has_arrived()
            // In an outage no probe passes, of any size.
            && self.sender.backoffs() == 0;
        if !soon || self.sender.skipped_below() > 0 {
            // The outcome would come late or never, or the probe would have SKIPPED, which must not be lost.
            return None;
        }
        let size = self.mtu.wanted(now)?;
        let number = self.sender.next_number();
        let head = Sealer::header_len(number, self.sender.highest_reported());
        let prelude = Prelude::new(now, number, self.sender.least_unacked()).len();
        let padding = usize::from(size).checked_sub(head + prelude + 1 + TAG_BYTES)?;
        let frames = [&Frame::Ping, &Frame::Padding(padding)];
        let sealed = self.seal_frames(now, buffer, &frames, Some(size), false)?;
        self.mtu.out = true;
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
        let number = self.sender.next_number();
        let acked = self.sender.highest_reported();
        let head = Sealer::header_len(number, acked);
        let most = usize::from(probe.unwrap_or(self.mtu.small())).min(buffer.len());
        let area = buffer.get_mut(head..most.checked_sub(TAG_BYTES)?)?;
        let mut writer = self.begin(now, area)?;
        if report {
            report_frame::write(&mut self.receiver, now, &mut writer);
        }
        for frame in frames {
            writer.frame(frame).ok()?;
        }
        let size = head + writer.len() + TAG_BYTES;
        let frames = SentFrames::bare(size as u16, probe.is_some());
        self.sender.sent_not_in_flight(
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
        self.sealer.set_random(self.nonces.header_bits());
        let sealed = self.sealer.seal_with(number, acked, datagram, tail);
        if sealed == Err(SealError::KeyUsedUp) || sealed == Err(SealError::Number) {
            // No further packet can be sealed, not even CLOSE.
            self.vanish(super::Closed::Fault { code: 6, why: "keys used up" });
        }
        if sealed.is_ok() {
            self.nonces.on_sealed(number, receipt_nonce(datagram));
            let (next, least_unacked) = (self.sender.next_number(), self.sender.least_unacked());
            self.nonces.forget(self.sender.lowest_concern(), next, least_unacked);
        }
        sealed.is_ok()
    }
}
