//! A path to the peer: the peer's address, packet numbers and keys, the packet sender (RTT, loss detection, pacer,
//! limiter, controller) and receiver, the datagram size, and what was measured.
//!
//! Streams and messages belong to the connection. What a path's packets carry is an argument of its methods
//! ([`ConnectionPayload`]).

mod address;
mod changes;
mod feedback;
mod hold;
mod learned;
mod mtu;
mod sizes;

pub(super) use address::{PathFrame, PathFrameTo, PeerAddress};
pub(super) use changes::PathChanges;
pub(super) use mtu::Mtu;

use super::nonces::{ReceivedNonces, SentNonces};
use super::payload::{ConnectionPayload, SHORT_PROBE_DATAGRAM, SentFrames, UDP_OVERHEAD};
use super::report_frame::PeerClock;
use feedback::SentFeedback;
use hold::Hold;
use learned::RecentRate;
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{Controller, HintSource, PathHints};
use narrows_recovery::packet_receiver::PacketReceiver;
use narrows_recovery::packet_sender::{AckReport, PacketSender, Permission};
use narrows_recovery::rtt::RtoConfig;
use narrows_recovery::scheduled_path::{ScheduledPath, permitted_rate};
use narrows_wire::frame::{REPORT_SPACING, number_bytes};
use narrows_wire::{Frame, FrameWriter, Opener, Sealer};
use sizes::{Outcomes, SizeOutcomes};

/// After this many consecutive PTOs datagrams are small, because their size may be the cause.
const SUSPICIOUS: u32 = 2;
/// The highest loss rate accepted in a peer's hints. A controller that allows for twice this rate still detects
/// overload on a path that delivers less than half.
const MAX_PEER_LOSS: f64 = 0.2;
/// A loss rate is reported from this number of packets on.
const ENOUGH: u64 = 200;

/// What a path is built from.
pub(super) struct PathParts {
    /// 0 for the path of the handshake.
    pub number: u8,
    pub address: PeerAddress,
    pub sealer: Sealer,
    pub opener: Opener,
    pub nonces: SentNonces,
    pub sender: PacketSender<SentFrames>,
    pub receiver: PacketReceiver<ReceivedNonces>,
    pub mtu: Mtu,
    /// Configuration of the RTT estimator after a change of path.
    pub rto: RtoConfig,
    /// Size on the wire of the full packet for which the sender's controller was built.
    pub nominal_packet: u32,
}

/// A path to the peer.
pub(super) struct Path {
    /// 0 for the path of the handshake.
    pub number: u8,
    pub address: PeerAddress,
    pub sealer: Sealer,
    pub opener: Opener,
    pub nonces: SentNonces,
    pub receiver: PacketReceiver<ReceivedNonces>,
    pub peer_clock: PeerClock,
    /// RTT, loss detection, pacer, limiter and controller.
    pub sender: PacketSender<SentFrames>,
    pub mtu: Mtu,
    pub changes: PathChanges,
    sizes: SizeOutcomes,
    learned: RecentRate,
    hold: Hold,
    feedback: SentFeedback,
    /// Sum and number of the round-trip times from reports.
    pub rtts: (Duration, u64),
    /// Configuration of the RTT estimator after a change of path.
    rto: RtoConfig,
    /// Size on the wire of the full packet for which the controller was built.
    nominal_packet: u32,
    /// Its state among several paths.
    pub scheduled: ScheduledPath,
    /// When its last packet was received, and when a reply was last requested on it.
    pub received: Time,
    pub asked: Time,
    /// UDP payload in bytes that it has sent, and received in authentic packets.
    pub bytes_sent: u64,
    pub bytes_received: u64,
}

impl Path {
    /// A path on which no packet was sent.
    pub fn new(now: Time, parts: PathParts) -> Path {
        let PathParts { number, address, sealer, opener, nonces, .. } = parts;
        let PathParts { sender, receiver, mtu, rto, nominal_packet, .. } = parts;
        Path {
            number,
            address,
            sealer,
            opener,
            nonces,
            receiver,
            peer_clock: PeerClock::default(),
            sender,
            changes: PathChanges::default(),
            sizes: SizeOutcomes::new(mtu.small()),
            mtu,
            learned: RecentRate::default(),
            hold: Hold::default(),
            feedback: SentFeedback::default(),
            rtts: (Duration::ZERO, 0),
            rto,
            nominal_packet,
            scheduled: ScheduledPath::default(),
            received: now,
            asked: now,
            bytes_sent: 0,
            bytes_received: 0,
        }
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        self.sender.memory()
            + self.receiver.memory()
            + self.receiver.received().memory()
            + self.nonces.memory()
    }
    /// Releases memory kept for later packets.
    pub fn release_memory(&mut self) {
        self.sender.release_memory();
        self.nonces.release_memory();
    }

    /// Whether it may carry data: its address is validated, and the peer answers on it.
    #[inline]
    pub fn is_usable(&self) -> bool {
        let is_answered = !self.scheduled.liveness.is_silent();
        self.address.is_validated() && is_answered && !self.is_closed()
    }
    /// Computes its state for the scheduler, if that is outdated.
    pub fn refresh(&mut self, now: Time, payload: &mut ConnectionPayload) {
        if !self.is_usable() {
            self.hold = Hold::default();
            return self.scheduled.exclude();
        }
        if !self.scheduled.is_outdated(now) {
            return;
        }
        let is_permitted = self.may_send(now, payload);
        let held = self.hold.until.unwrap_or(Time::NEVER);
        let bytes = self.datagram() as u32 + UDP_OVERHEAD;
        let sendable = if is_permitted { now } else { held };
        self.scheduled.refresh(now, &self.sender, bytes, sendable);
    }
    /// When it counts as silent, or when a silent path is to be probed. It needs another path, on which the data leave
    /// meanwhile (`elsewhere`), and never comes while all data have arrived.
    pub fn silence_due(&self, elsewhere: bool, all_arrived: bool) -> Time {
        let is_silent = self.scheduled.liveness.is_silent();
        let is_out = self.is_closed() || !self.address.is_validated();
        if all_arrived || is_out || !elsewhere && !is_silent {
            return Time::NEVER;
        }
        self.scheduled.liveness.due(self.sender.pto())
    }

    /// Passes the full packet size to the packet sender, once path MTU discovery has settled it.
    pub fn set_scale(&mut self, now: Time) {
        let full = if self.mtu.is_settled() {
            u32::from(self.mtu.size()) + UDP_OVERHEAD
        } else {
            self.nominal_packet
        };
        self.sender.scale_bytes(now, full, self.nominal_packet);
    }

    /// UDP payload of a full datagram at present, in bytes.
    pub fn datagram(&self) -> usize {
        let suspicious = self.sender.backoffs() >= SUSPICIOUS;
        let full = usize::from(if suspicious { self.mtu.small() } else { self.mtu.size() });
        if self.sender.is_short_probe() { full.min(SHORT_PROBE_DATAGRAM) } else { full }
    }

    /// The rate that the controller permits, including IP and UDP headers; `None` if it is not known.
    pub fn permitted_rate(&self) -> Option<Rate> {
        let bytes = self.datagram() as u32 + UDP_OVERHEAD;
        let limits = self.sender.send_limits();
        let rate = permitted_rate(&limits, self.sender.rtt().srtt(), bytes)?;
        Some(Rate::from_bps_f64(rate * 8.0))
    }

    /// Whether a data packet may leave now.
    #[inline]
    pub fn may_send(&mut self, now: Time, payload: &mut ConnectionPayload) -> bool {
        if let Some(held) = self.hold.until.filter(|_| !self.sender.is_forced()) {
            // If the rate has risen meanwhile, the packet leaves earlier.
            let due = self.sender.next_pace().map_or(held, |due| held.min(due + self.hold()));
            self.hold.until = Some(due);
            if now < due {
                self.hold.has_data = !payload.is_empty();
                return false;
            }
        }
        let permission = self.sender.permission(now);
        self.hold.until = match permission {
            Permission::Paced(due) => Some(due + self.hold()),
            Permission::WindowFull | Permission::Now => None,
        };
        self.hold.has_data = self.hold.until.is_some() && !payload.is_empty();
        permission == Permission::Now
    }
    fn hold(&self) -> Duration {
        let rate = self.sender.pacing_rate().map_or(0, |r| r.as_bps());
        hold::length(
            rate,
            self.datagram() as u64 + u64::from(UDP_OVERHEAD),
            self.sender.rtt().srtt(),
        )
    }
    /// Whether data wait for the pacer, or to leave together.
    pub fn holds_data(&self) -> bool {
        self.hold.has_data
    }

    /// Records a packet in flight of `bytes` bytes on the wire; `again` if it repeats lost data.
    #[inline]
    pub fn sent(
        &mut self,
        now: Time,
        payload: &mut ConnectionPayload,
        bytes: u32,
        frames: SentFrames,
        again: bool,
    ) {
        let mut outcomes = Outcomes { payload, sizes: &mut self.sizes };
        self.sender.sent(now, &mut outcomes, bytes, frames, again);
        self.scheduled.on_sent(now);
    }
    /// Records a packet that is not in flight; `is_probe` if it is a probe of the path MTU.
    pub fn sent_not_in_flight(
        &mut self,
        now: Time,
        payload: &mut ConnectionPayload,
        bytes: u32,
        frames: SentFrames,
        is_probe: bool,
    ) {
        let mut outcomes = Outcomes { payload, sizes: &mut self.sizes };
        self.sender.sent_not_in_flight(now, &mut outcomes, bytes, frames, is_probe);
    }
    /// Handles an authentic packet of the peer.
    #[inline]
    pub fn on_peer_alive(&mut self, now: Time, payload: &mut ConnectionPayload) {
        self.sender.on_peer_alive(now, &Outcomes { payload, sizes: &mut self.sizes });
    }

    /// Handles a report. Returns whether the path drops full packets, so that it is unusable.
    #[inline]
    pub fn on_report(
        &mut self,
        now: Time,
        payload: &mut ConnectionPayload,
        ack_report: &AckReport,
        arrived: impl Iterator<Item = (u64, u64)>,
        radio: impl Iterator<Item = (u64, u64)>,
    ) -> bool {
        self.rtts = (self.rtts.0 + ack_report.rtt, self.rtts.1 + 1);
        let mut outcomes = Outcomes { payload, sizes: &mut self.sizes };
        let sample = self.sender.on_report(now, &mut outcomes, ack_report, arrived, radio);
        let outstanding = self.sender.packets_in_flight() > 0;
        self.scheduled.liveness.on_answer(now, outstanding);
        if let Some(sample) = sample {
            let bytes = u32::from(self.mtu.size()) + UDP_OVERHEAD;
            self.scheduled.on_rate(&sample, bytes);
            let srtt = self.sender.rtt().srtt();
            if self.learned.on_sample(now, &sample, bytes, srtt)
                && let Some(rate) = self.learned.rate()
            {
                self.mtu.on_rate(rate);
            }
        }
        if let Some((size, arrived)) = self.sizes.probed() {
            self.mtu.on_probe(now, size, arrived);
        }
        self.seek_larger(now, payload);
        let pto = self.sender.pto();
        if self.sizes.is_black_hole(now, pto) {
            self.mtu.on_black_hole(now);
        }
        if self.sizes.is_too_small(now, pto) {
            return true;
        }
        self.set_scale(now);
        false
    }

    /// Sends a PING on this path if a larger size is being probed and no packet is in flight. Only later packets reveal
    /// a probe's outcome.
    pub fn seek_larger(&mut self, now: Time, payload: &mut ConnectionPayload) {
        if self.mtu.is_sought(now) && self.sender.packets_in_flight() == 0 {
            payload.ping = true;
            self.sender.force();
        }
    }
    /// The size of a probe of a larger datagram, if one is due.
    pub fn next_mtu_probe(&mut self, now: Time) -> Option<u16> {
        let soon = self.sender.packets_in_flight() > 0
            && self.sender.has_arrived()
            // In an outage no probe passes, of any size.
            && self.sender.backoffs() == 0;
        if !soon || self.sender.skipped_below() > 0 {
            // The outcome would come late or never, or the probe would have SKIPPED, which must not be lost.
            return None;
        }
        self.mtu.wanted(now)
    }

    /// When to call [`on_timeout`](Path::on_timeout). A tick of the controller comes no earlier than `earliest`.
    pub fn next_timeout(&self, earliest: Time) -> Time {
        if self.is_closed() {
            return Time::NEVER;
        }
        let held = self.hold.until.unwrap_or(Time::NEVER);
        self.sender.next_timeout(earliest).min(held).min(self.address.next_timeout())
    }
    /// When a report is due.
    pub fn report_due(&self) -> Time {
        if self.is_closed() { Time::NEVER } else { self.receiver.next_timeout() }
    }
    /// A timer fired. If it was the PTO, a probe is sent next. `may_be_long` returns whether a datagram of this size may
    /// leave.
    pub fn on_timeout(
        &mut self,
        now: Time,
        payload: &mut ConnectionPayload,
        may_be_long: impl FnOnce(usize) -> bool,
    ) {
        let mut outcomes = Outcomes { payload: &mut *payload, sizes: &mut self.sizes };
        if !self.sender.on_timeout(now, &mut outcomes) {
            return;
        }
        // PTO expired: a probe must be sent. The datagram size may be too large.
        let oldest = self.sender.oldest_in_flight().map_or(0, |frames| frames.size);
        if self.sizes.on_timeout(oldest) || !may_be_long(self.datagram()) {
            self.sender.shorten_probe();
        }
        payload.messages.expire(now);
        payload.ping |= self.sender.is_short_probe() || payload.is_empty();
    }

    /// Takes path hints from `source`.
    pub fn on_hints(&mut self, now: Time, hints: &PathHints, source: HintSource) {
        let mut hints = *hints;
        if source == HintSource::Peer {
            hints = self.bounded(&hints);
        } else if let Some(rate) = hints.rate {
            self.mtu.on_rate(rate);
            self.set_scale(now);
        }
        self.sender.on_path_hints(now, &hints, source);
    }
    /// Bounds a peer's hints. The RTT is at most the measured one, and the loss rate at most [`MAX_PEER_LOSS`]. The
    /// packet sender limits the rate.
    fn bounded(&self, hints: &PathHints) -> PathHints {
        let rtt = self.sender.rtt();
        let measured = if rtt.min() < Duration::MAX { rtt.min() } else { rtt.srtt() };
        let rtt = hints.rtt.filter(|_| measured > Duration::ZERO).map(|rtt| rtt.min(measured));
        PathHints {
            rate: hints.rate,
            rtt,
            loss: hints.loss.map(|loss| loss.clamp(0.0, MAX_PEER_LOSS)),
        }
    }
    /// Path hints for the next connection to the same peer.
    pub fn learned(&self) -> PathHints {
        if !self.changes.is_one_path() {
            return PathHints::default();
        }
        let min = self.sender.rtt().min();
        let (lost, packets) = self.sender.losses_at_short_queue();
        PathHints {
            rate: self.learned.rate().map(|r| r.min(self.sender.max_delivered())),
            rtt: (min < Duration::MAX).then_some(min),
            loss: (packets >= ENOUGH).then(|| lost as f64 / packets as f64),
        }
    }

    /// Resets the congestion state for a new path, under a new controller.
    pub fn renew(
        &mut self,
        now: Time,
        payload: &mut ConnectionPayload,
        controller: Box<dyn Controller>,
    ) {
        let outcomes = Outcomes { payload: &mut *payload, sizes: &mut self.sizes };
        self.sender.renew(now, &outcomes, controller, &self.rto);
        self.learned = RecentRate::default();
        self.feedback.forget();
        self.hold.until = None;
        self.sizes.on_new_path();
        // A PING measures the new RTT soon, even if this end has no data to send.
        payload.ping = true;
    }

    /// Writes the feedback of the controller's sender side, if it is due.
    pub fn write_feedback(&mut self, now: Time, writer: &mut FrameWriter<'_>) {
        let feedback = self.sender.controller().feedback_to_receiver();
        if !feedback.is_empty() {
            let number = self.sender.next_number();
            let srtt = self.sender.rtt().srtt();
            self.feedback.write(now, feedback, (number, srtt), writer);
        }
    }
    /// Writes REPORT_SPACING, the requested interval between reports in microseconds, when it is due.
    #[inline]
    pub fn write_spacing(&self, writer: &mut FrameWriter<'_>) {
        let (spacing, is_due) = self.sender.report_spacing();
        if is_due {
            let mut bytes = [0; 8];
            let body = number_bytes(spacing.as_nanos() / 1000, &mut bytes);
            let _ = writer.frame(&Frame::Extension { kind: REPORT_SPACING, body });
        }
    }
}
