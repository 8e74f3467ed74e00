//! Packets that leave: filled, told to the carrier, sealed in place.

use super::arrivals::feedback_bytes;
use super::cargo::Load;
use super::messages::MESSAGE_OVERHEAD;
use super::path::Errand;
use super::{Connection, Transmit, UDP_OVERHEAD};
use crate::carrier::{Cargo, Permission};
use crate::streams::Piece;
use narrows_base::{Duration, Time};
use narrows_wire::frame::{ASIDE, CONTROLLER, SKIPPED, number_bytes};
use narrows_wire::packet::TAG_BYTES;
use narrows_wire::seal::receipt_nonce;
use narrows_wire::{Frame, FrameWriter, Prelude, SealError, Sealer};

/// ECN bits of packets that routers may mark: ECT(0).
const ECT0: u8 = 2;
/// A connection that is paced waits for so much to send at most, so that one call sends several
/// packets; only above [`BURST_RATE`].
const LONGEST_HOLD: Duration = Duration::from_micros(500);
/// Packets of one call at most that are waited for.
const MOST_HELD: u64 = 40;
/// Below it (bit/s) packets leave one by one.
const BURST_RATE: u64 = 5_000_000;
/// After so many probe timeouts in a row it may be the size: packets are small.
const SUSPICIOUS: u32 = 2;
/// Packets that repeat the sender side's advice: the first, and one of so many.
const FIRST_ADVISED: u64 = 10;
const ADVISED_EVERY: u64 = 16;
/// Bytes that a server sends for each that came, until something is acknowledged. With reports and
/// CLOSE, which are beside it, it stays below 40.
const MAX_UNHEARD: u64 = 34;
/// UDP payload of SYN, START and the shortest FINISH; and of what answers them.
const CLIENTS_HANDSHAKE: u64 = 64 + 90 + 73;
const SERVERS_HANDSHAKE: u64 = 57 + 240;
/// A packet with a challenge or its response.
const ERRAND_BYTES: usize = 9 + 8 + 9 + TAG_BYTES;

impl Connection {
    /// The next datagram, or up to `segments` of equal size in a row.
    pub fn transmit(&mut self, now: Time, buffer: &mut [u8], segments: usize) -> Option<Transmit> {
        if !self.is_open() {
            let size = self.transmit_close(now, buffer)?;
            return Some(self.one(self.path.remote(), size, false));
        }
        let timeout = self.carrier.probe_timeout();
        if let Some((to, errand)) = self.path.errand(now, ERRAND_BYTES, timeout) {
            let frame = match errand {
                Errand::Challenge(data) => Frame::PathChallenge(data),
                Errand::Response(data) => Frame::PathResponse(data),
            };
            let size = self.seal_aside(now, buffer, &frame)?;
            return Some(self.one(to, size, false));
        }
        if let Some(size) = self.mtu_probe(now, buffer) {
            return Some(self.one(self.path.remote(), size, false));
        }
        self.transmit_data(now, buffer, segments)
    }

    fn one(&mut self, to: std::net::SocketAddr, size: usize, ecn: bool) -> Transmit {
        self.bytes_sent += size as u64;
        let ecn = if ecn && self.ecn { ECT0 } else { 0 };
        Transmit { to, size, segment: size, ecn }
    }

    fn transmit_data(&mut self, now: Time, buffer: &mut [u8], segments: usize) -> Option<Transmit> {
        self.carrier.cargo_mut().messages.expire(now);
        let (full, mut used, mut segment) = (self.datagram(), 0, 0);
        for _ in 0..segments.max(1) {
            let end = (used + full).min(buffer.len());
            if used > 0 && end < used + full {
                break;
            }
            let Some(space) = buffer.get_mut(used..end) else { break };
            let size = self.next_packet(now, space);
            if used == 0 {
                segment = size;
            }
            used += size;
            if size < full {
                break;
            }
        }
        if used == 0 {
            return None;
        }
        self.last_sent = now;
        Some(Transmit { segment, ..self.one(self.path.remote(), used, true) })
    }

    /// Bytes of a full datagram now.
    pub(super) fn datagram(&self) -> usize {
        let suspicious = self.carrier.backoffs() >= SUSPICIOUS;
        usize::from(if suspicious { self.mtu.small() } else { self.mtu.size() })
    }
    /// Whether a packet of data may leave.
    #[inline]
    fn may_send(&mut self, now: Time) -> bool {
        if let Some(held) = self.held_until.filter(|_| !self.carrier.is_forced()) {
            // A rate that rose meanwhile counts at once.
            let due = self.carrier.next_pace().map_or(held, |due| held.min(due + self.hold()));
            self.held_until = Some(due);
            if now < due {
                self.is_data_held = !self.carrier.cargo_mut().is_empty();
                return false;
            }
        }
        let permission = self.carrier.permission(now);
        self.held_until = match permission {
            Permission::Paced(due) => Some(due + self.hold()),
            Permission::WindowFull | Permission::Now => None,
        };
        self.is_data_held = self.held_until.is_some() && !self.carrier.cargo_mut().is_empty();
        permission == Permission::Now
    }

    /// How long a packet that could leave waits for others, so that they leave in one call. The
    /// pacer's credit gives the time back.
    fn hold(&self) -> Duration {
        let rate = self.carrier.pacing_rate().map_or(0, |r| r.as_bps());
        if rate < BURST_RATE {
            return Duration::ZERO;
        }
        let bits = (self.datagram() as u64 + u64::from(UDP_OVERHEAD)) * 8;
        let packet = Duration::from_secs_f64(bits as f64 / rate as f64);
        let most = self.carrier.rtt().srtt().mul_f64(0.25).min(LONGEST_HOLD);
        let hold = packet.saturating_mul(MOST_HELD).min(most);
        Duration::from_nanos(hold.as_nanos().saturating_sub(packet.as_nanos()))
    }

    /// Whether a packet of so many bytes would be too much for a client that has acknowledged nothing: its
    /// address is its own, but what it asked for may be meant to fill somebody's link.
    fn is_unheard(&self, bytes: usize) -> bool {
        let came = self.bytes_received + CLIENTS_HANDSHAKE;
        self.unheard && self.bytes_sent + bytes as u64 + SERVERS_HANDSHAKE > MAX_UNHEARD * came
    }

    /// Fills and seals one packet; its size, 0 if nothing leaves.
    #[inline]
    fn next_packet(&mut self, now: Time, space: &mut [u8]) -> usize {
        let mut data = self.may_send(now) && !self.is_unheard(space.len());
        if data && self.carrier.cargo_mut().is_empty() {
            self.carrier.nothing_to_send();
            data = false;
        }
        if !data && !self.arrivals.must_report(now) {
            return 0;
        }
        let number = self.carrier.next_number();
        let acked = self.carrier.highest_reported();
        let head = Sealer::header_len(number, acked);
        let Some(end) = space.len().checked_sub(TAG_BYTES) else { return 0 };
        let Some(area) = space.get_mut(head..end) else { return 0 };
        let Some(mut writer) = self.begin(now, area) else { return 0 };
        if data && self.carrier.aside_below() > self.carrier.skipped_below() {
            let mut bytes = [0; 8];
            let body = number_bytes(self.carrier.aside_below(), &mut bytes);
            // At the beginning of a packet there is room.
            let _ = writer.frame(&Frame::Extension { kind: ASIDE, body });
        }
        let reported = self.arrivals.would_report(now) && self.arrivals.write(now, &mut writer);
        let before = writer.len();
        let mut load = Load::default();
        if data {
            self.fill(now, &mut writer, &mut load);
        }
        let (asks, length) = (writer.len() > before, writer.len());
        if !asks && !reported {
            // Something waits that fits into no packet.
            self.carrier.nothing_to_send();
            return 0;
        }
        let apart = load.last().filter(|_| writer.apart() > 0);
        let size = head + length + TAG_BYTES;
        load.size = size as u16;
        let bytes = size as u32 + UDP_OVERHEAD;
        if asks {
            let again = self.carrier.cargo_mut().repays(&load);
            self.carrier.sent(now, bytes, load, again);
        } else {
            self.carrier.sent_aside(now, bytes, load, false);
        }
        if self.seal(number, acked, space.get_mut(..size), apart) { size } else { 0 }
    }

    /// What begins every payload: the prelude, and which numbers below were left out.
    #[inline]
    fn begin<'b>(&self, now: Time, area: &'b mut [u8]) -> Option<FrameWriter<'b>> {
        let number = self.carrier.next_number();
        let prelude = Prelude::new(now, number, self.carrier.least_unacked());
        let mut writer = FrameWriter::new(area, prelude).ok()?;
        let skipped = self.carrier.skipped_below();
        if skipped > 0 {
            let mut bytes = [0; 8];
            let body = number_bytes(skipped, &mut bytes);
            writer.frame(&Frame::Extension { kind: SKIPPED, body }).ok()?;
        }
        Some(writer)
    }

    /// Writes what waits.
    fn fill(&mut self, now: Time, writer: &mut FrameWriter<'_>, load: &mut Load) {
        self.announce(writer);
        self.say_new_path(writer);
        self.advise(now, writer);
        let cargo = self.carrier.cargo_mut();
        if cargo.ping && writer.frame(&Frame::Ping).is_ok() {
            cargo.ping = false;
        }
        while let Some(message) = cargo.messages.peek() {
            let message_bytes = message.len() as u16;
            if writer.room() == message.len() + 1 {
                if writer.last_datagram(message).is_err() {
                    break;
                }
            } else if writer.frame(&Frame::Datagram(message)).is_err() {
                // One that was too long from the beginning, or became so, would stay for ever.
                let hopeless = message.len() + MESSAGE_OVERHEAD > usize::from(self.mtu.size());
                if !hopeless {
                    break;
                }
            }
            load.messages += message_bytes;
            cargo.messages.pop();
        }
        if writer.room() > 0 {
            cargo.streams.fill(writer, &mut |piece| load.push(piece));
        }
        // The first packet is a full one whatever it carries: its round-trip time is the path's, and
        // it shows that such packets pass.
        if self.carrier.next_number() == 0 && writer.room() > 0 {
            let padding = writer.room();
            let _ = writer.frame(&Frame::Padding(padding));
        }
    }

    /// What this end sends with, if the peer believes otherwise: in every packet until one of them
    /// has arrived.
    #[inline]
    fn announce(&mut self, writer: &mut FrameWriter<'_>) {
        let Some(label) = &self.announce else { return };
        if self.carrier.has_arrived() {
            self.announce = None;
        } else {
            let body = label.as_bytes();
            // The first packets are empty: there is room.
            let _ = writer.frame(&Frame::Extension { kind: CONTROLLER, body });
        }
    }

    /// What the sender side of the controller says: when it changed, eight times a round trip, and
    /// now and then again, since packets get lost.
    fn advise(&mut self, now: Time, writer: &mut FrameWriter<'_>) {
        let feedback = self.carrier.controller().feedback_to_receiver();
        if feedback.is_empty() {
            return;
        }
        let number = self.carrier.next_number();
        let old = now.since(self.advised_at) >= self.carrier.rtt().srtt().mul_f64(0.125);
        let again = number < FIRST_ADVISED || number.is_multiple_of(ADVISED_EVERY);
        if again || old && feedback != self.advised {
            let mut words = [0; 16];
            if writer.frame(&Frame::Feedback(feedback_bytes(&feedback, &mut words))).is_ok() {
                (self.advised, self.advised_at) = (feedback, now);
            }
        }
    }

    /// A packet with one frame, beside the window and the pacer.
    pub(super) fn seal_aside(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        frame: &Frame<'_>,
    ) -> Option<usize> {
        self.seal_frames(now, buffer, &[frame], None, false)
    }

    /// Asks whether larger packets pass, if that is to be known now.
    fn mtu_probe(&mut self, now: Time, buffer: &mut [u8]) -> Option<usize> {
        let soon = self.carrier.flight() > 0 && self.carrier.has_arrived();
        if !soon || self.carrier.skipped_below() > 0 {
            // Its fate would not be known soon, or ever; or it would have to say which number was left out, and be lost.
            return None;
        }
        let size = self.mtu.wanted(now)?;
        let number = self.carrier.next_number();
        let head = Sealer::header_len(number, self.carrier.highest_reported());
        let prelude = Prelude::new(now, number, self.carrier.least_unacked()).len();
        let padding = usize::from(size).checked_sub(head + prelude + 1 + TAG_BYTES)?;
        let frames = [&Frame::Ping, &Frame::Padding(padding)];
        let sealed = self.seal_frames(now, buffer, &frames, Some(size), false)?;
        self.mtu.out = true;
        Some(sealed)
    }

    /// A packet with these frames, behind a report if one is wanted and there is anything to say;
    /// `None`, and nothing is used up but the wish to report, if they do not fit.
    pub(super) fn seal_frames(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        frames: &[&Frame<'_>],
        probe: Option<u16>,
        report: bool,
    ) -> Option<usize> {
        let number = self.carrier.next_number();
        let acked = self.carrier.highest_reported();
        let head = Sealer::header_len(number, acked);
        let most = usize::from(probe.unwrap_or(self.mtu.small())).min(buffer.len());
        let area = buffer.get_mut(head..most.checked_sub(TAG_BYTES)?)?;
        let mut writer = self.begin(now, area)?;
        if report {
            self.arrivals.write(now, &mut writer);
        }
        for frame in frames {
            writer.frame(frame).ok()?;
        }
        let size = head + writer.len() + TAG_BYTES;
        let load = Load::bare(size as u16, probe.is_some());
        self.carrier.sent_aside(now, size as u32 + UDP_OVERHEAD, load, probe.is_some());
        self.seal(number, acked, buffer.get_mut(..size), None).then_some(size)
    }

    /// `apart` is the piece of a stream that still lies in its buffer.
    #[inline]
    fn seal(
        &mut self,
        number: u64,
        acked: Option<u64>,
        datagram: Option<&mut [u8]>,
        apart: Option<Piece>,
    ) -> bool {
        let Some(datagram) = datagram else { return false };
        let streams = &self.carrier.cargo().streams;
        let tail = apart.as_ref().map_or(&[][..], |piece| streams.bytes(piece));
        self.sealer.set_random(self.nonces.header_bits());
        let sealed = self.sealer.seal_with(number, acked, datagram, tail);
        if sealed == Err(SealError::KeyUsedUp) || sealed == Err(SealError::Number) {
            // Not even CLOSE can be sealed any more.
            self.vanish(super::Closed::Fault { code: 6, why: "keys used up" });
        }
        if sealed.is_ok() {
            self.nonces.on_sealed(number, receipt_nonce(datagram));
            let (next, least_unacked) = (self.carrier.next_number(), self.carrier.least_unacked());
            self.nonces.forget(self.carrier.lowest_concern(), next, least_unacked);
        }
        sealed.is_ok()
    }
}
