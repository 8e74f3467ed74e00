//! Incoming packets: opened in place, checked, parsed.

use super::announced::UNKNOWN_PROTOCOL;
use super::application::NO_COMMON_PROTOCOL;
use super::nonces::Proof;
use super::payload::{SHORT_PROBE_DATAGRAM, UDP_OVERHEAD, USUAL_DATAGRAM};
use super::report_frame::feedback_of;
use super::{Closed, Connection};
use narrows_base::{Duration, Time};
use narrows_recovery::packet_receiver::ReceivedPacket;
use narrows_recovery::packet_sender::{AckReport, ForwardTime, MARKS};
use narrows_wire::frame::{
    APPLICATION, CONTROLLER, NEW_PATH, PATH_ID, PATH_LEADER, PATH_STATUS, REPAIR, REPORT_SPACING,
    SKIPPED, TOKEN, UNCOUNTED, number,
};
use narrows_wire::seal::OpenedPacket;
use narrows_wire::seal::receipt_nonce;
use narrows_wire::{Frame, Frames, Report, prelude};
use std::net::SocketAddr;

/// ECN field of a packet that a router marked: CE.
const CE: u8 = 3;

/// The peer's announcements in one packet: its protocol and its application protocol. Every packet with streams,
/// messages or a PING carries them while they are pending, except MTU probes and short probes, which have no space.
#[derive(Clone, Copy, Default)]
pub(super) struct PeerAnnouncements {
    is_probe: bool,
    carries: bool,
    is_named: bool,
    has_application: bool,
}

/// An authentic packet, as it came.
#[derive(Clone, Copy)]
pub(super) struct OpenedDatagram<'p> {
    /// UDP payload in bytes.
    pub size: usize,
    pub nonce: u8,
    pub packet: OpenedPacket<'p>,
    /// Whether its number is the highest so far.
    pub is_newest: bool,
}

impl PeerAnnouncements {
    /// Adds one frame of a datagram of `size` bytes.
    #[inline]
    pub fn note(&mut self, frame: &Frame<'_>, size: usize) {
        self.is_probe |= matches!(frame, Frame::Padding(_)) && size > USUAL_DATAGRAM as usize;
        self.is_named |= matches!(frame, Frame::Extension { kind: CONTROLLER, .. });
        self.has_application |= matches!(frame, Frame::Extension { kind: APPLICATION, .. });
        self.carries |= match frame {
            Frame::Stream { .. } | Frame::Datagram(_) => true,
            Frame::Ping => size > SHORT_PROBE_DATAGRAM,
            _ => false,
        };
    }
}

impl Connection {
    /// Opens a short packet for this connection in place, and handles it. Returns whether it was authentic; otherwise
    /// it only counts as refused.
    pub fn receive(&mut self, now: Time, from: SocketAddr, ecn: u8, datagram: &mut [u8]) -> bool {
        let size = datagram.len();
        let nonce = receipt_nonce(datagram);
        let highest = self.path.opener.highest();
        match self.path.opener.open(datagram) {
            Ok(packet) => {
                let is_newest = highest.is_none_or(|h| packet.number > h);
                self.on_opened(now, from, ecn, &OpenedDatagram { size, nonce, packet, is_newest });
                true
            }
            Err(why) => {
                self.on_refused(now, &why);
                false
            }
        }
    }

    /// Handles the content of an authentic packet.
    pub(super) fn on_opened(
        &mut self,
        now: Time,
        from: SocketAddr,
        ecn: u8,
        datagram: &OpenedDatagram<'_>,
    ) {
        let OpenedDatagram { size, nonce, packet: opened, is_newest } = *datagram;
        self.traffic.bytes_received += size as u64;
        self.path.bytes_received += size as u64;
        self.path.received = now;
        self.path.scheduled.is_stale = true;
        self.confirm();
        if !self.is_open() {
            self.life.on_late_packet();
        } else {
            self.timeouts.received = now;
            self.timeouts.keeps_memory = true;
            self.path.on_peer_alive(now, &mut self.payload);
            self.path.address.on_packet(now, from, size, is_newest);
        }
        let Ok((prelude, frames)) = Frames::read(opened.payload) else {
            return self.fault(now, 1, "a payload without a prelude");
        };
        let mut ack_eliciting = false;
        let mut uncounted = 0;
        let mut said = PeerAnnouncements::default();
        let mut repair = None;
        let was_rebuilt =
            self.repairs.as_ref().is_some_and(|r| r.incoming.was_rebuilt(opened.number));
        let bytes = frames.bytes();
        for frame in frames {
            if let Ok(frame) = &frame {
                said.note(frame, size);
            }
            match frame {
                Ok(Frame::Extension { kind: REPAIR, body }) if self.is_open() => {
                    ack_eliciting = true;
                    repair = Some(body);
                }
                // Its message was already delivered; streams detect duplicates themselves.
                Ok(Frame::Datagram(_)) if was_rebuilt => ack_eliciting = true,
                Ok(Frame::Extension { kind: SKIPPED | UNCOUNTED, body }) => {
                    uncounted = uncounted.max(number(body).unwrap_or(0));
                }
                Ok(Frame::Extension { kind: NEW_PATH, body }) if self.is_open() => {
                    self.on_new_path(now, number(body).unwrap_or(0), opened.number);
                }
                Ok(Frame::Report(ref report)) if self.is_open() => {
                    self.on_report(now, report, prelude.stamp);
                }
                Ok(frame) => {
                    ack_eliciting |= !matches!(
                        frame,
                        Frame::Report(_) | Frame::Padding(_) | Frame::Close { .. }
                    );
                    self.on_frame(now, from, ecn, &frame);
                }
                Err(malformed) => self.fault(now, 1, malformed.what),
            }
        }
        self.on_said(now, &said);
        if let Some(repairs) = self.repairs.as_mut().filter(|_| ack_eliciting) {
            let frames = (repair.is_none() && !was_rebuilt).then_some(bytes);
            let rtt = self.path.sender.rtt().srtt();
            repairs.incoming.on_packet(now, opened.number, uncounted, frames, rtt);
        }
        if let Some(body) = repair.filter(|_| self.is_open()) {
            self.on_repair(now, from, opened.number, body);
        }
        if self.is_open() {
            let came = ReceivedPacket {
                number: opened.number,
                nonce,
                sent: self.path.peer_clock.sent(prelude.stamp),
                least_unacked: prelude.least_unacked(opened.number),
                bytes: size as u32 + UDP_OVERHEAD,
                marked: ecn == CE,
                ack_eliciting,
                uncounted,
            };
            self.path.receiver.on_packet(now, &came, self.path.sender.rtt().srtt());
            if self.payload.streams.round_ended(now) {
                let longest = self.paths().map(|path| path.sender.rtt().srtt()).max();
                self.payload.streams.grow(now, longest.unwrap_or_default());
            }
        }
    }

    /// Evaluates the announcements after all frames of a packet were read.
    pub(super) fn on_said(&mut self, now: Time, said: &PeerAnnouncements) {
        if said.carries && !said.is_probe {
            if !said.is_named {
                // The peer sends with the protocol in its parameters.
                self.on_unknown(now);
            }
            if !said.has_application {
                self.on_no_application(now);
            }
        }
    }

    #[inline]
    pub(super) fn on_frame(&mut self, now: Time, from: SocketAddr, ecn: u8, frame: &Frame<'_>) {
        if let Frame::Close { code, reason } = *frame {
            return self.on_close(now, code, reason);
        }
        if !self.is_open() {
            return;
        }
        match *frame {
            Frame::Feedback(bytes) => self.path.receiver.on_feedback(feedback_of(bytes)),
            Frame::Datagram(message) if message.len() > usize::from(self.message_limits.ours) => {
                self.fault(now, 1, "a message longer than permitted");
            }
            Frame::Datagram(message) => self.inbox.push(now, ecn, message),
            Frame::PathChallenge(data) => self.path.address.on_challenge(from, data),
            Frame::PathResponse(data) => {
                let before = self.path.address.remote();
                let was_validated = self.path.address.is_validated();
                match self.path.address.on_response(now, &data) {
                    Some(rtt) if was_validated => self.on_move(now, before, rtt),
                    Some(rtt) => self.on_validated(now, rtt),
                    None => {}
                }
            }
            Frame::Extension { kind: CONTROLLER, body } => self.on_controller(now, body),
            Frame::Extension { kind: APPLICATION, body } => self.on_application(now, body),
            Frame::Extension { kind: TOKEN, body } => self.on_token(body),
            Frame::Extension { kind: PATH_ID, body } => self.on_path_id(now, body),
            Frame::Extension { kind: PATH_STATUS, body } => self.on_path_status(now, body),
            Frame::Extension { kind: PATH_LEADER, body } => self.on_path_leader(now, body),
            Frame::Extension { kind: REPORT_SPACING, body } => {
                let asked = Duration::from_micros(number(body).unwrap_or(0));
                self.path.receiver.on_spacing(asked, self.path.sender.rtt().srtt());
            }
            // Reports are handled in `receive`, with their packet's stamp.
            Frame::Report(_)
            | Frame::Padding(_)
            | Frame::Ping
            | Frame::Extension { .. }
            | Frame::Close { .. } => {}
            _ => {
                let taken = self.payload.streams.on_frame(frame);
                if let Err(violation) = taken {
                    self.fault(now, violation.code, violation.why);
                }
            }
        }
    }

    /// Handles a report in a packet that left at `stamp` by the peer's clock.
    fn on_report(&mut self, now: Time, report: &Report<'_>, stamp: u32) {
        if !self.path.sender.is_possible(report.highest, report.arrived()) {
            return self.fault(now, 1, "a report of a packet that was never sent");
        }
        let proof = self.path.nonces.check(report.arrived(), report.nonce_sum);
        if proof == Proof::Wrong {
            return self.fault(now, 1, "a report of packets that did not arrive");
        }
        if !self.path.sender.is_relevant(report.highest) {
            return;
        }
        if proof == Proof::Forgotten {
            self.traffic.unproved += 1;
            return;
        }
        let now_us = now.as_nanos() / 1000;
        let sent_us = prelude::nearest(report.echo, now_us).min(now_us);
        let elapsed = now.since(Time::from_nanos(sent_us * 1000));
        let delay = Duration::from_micros(report.delay.min(u64::from(prelude::STAMPS)));
        // A delay longer than the elapsed time is invalid and is not subtracted.
        let rtt = if delay < elapsed {
            Duration::from_nanos(elapsed.as_nanos() - delay.as_nanos())
        } else {
            elapsed.max(Duration::from_micros(1))
        };
        let ack_report = AckReport {
            largest_acked: report.highest,
            rtt,
            forward: ForwardTime::between(report.echo, stamp, report.delay),
            marks: (report.marks.unwrap_or(0) % u64::from(MARKS)) as u32,
            feedback: feedback_of(report.feedback),
        };
        self.path.sealer.acknowledged(report.highest);
        let radio = report.missing().filter(|m| m.2).map(|(from, to, _)| (from, to));
        let payload = &mut self.payload;
        let was_usable = self.path.is_usable();
        let is_too_small = self.path.on_report(now, payload, &ack_report, report.arrived(), radio);
        if self.path.is_usable() != was_usable {
            self.share_rate_limit();
        }
        self.on_path_delay(now);
        self.traffic.before_first_ack &= !self.path.sender.has_arrived();
        if is_too_small {
            self.end_on_small_path(now);
        }
    }

    /// Handles APPLICATION, in which the server names its choice among the client's offers.
    pub(super) fn on_application(&mut self, now: Time, name: &[u8]) {
        if !self.agreement.on_choice(name) {
            self.fault(now, 1, "an application protocol that was not offered");
        }
    }
    /// Closes a client's connection if a packet without the server's choice arrived.
    fn on_no_application(&mut self, now: Time) {
        if let Some(reason) = self.agreement.missing_choice() {
            let why = Closed::NoCommonProtocol { reason: reason.clone() };
            self.begin_closing(now, NO_COMMON_PROTOCOL, &reason, why);
        }
    }

    /// Closes the connection if the peer announced a protocol unknown to this end. Without a
    /// receiver side the peer's sending might never work, with no visible reason.
    pub(super) fn on_unknown(&mut self, now: Time) {
        let Some(label) = self.protocols.unknown.take() else { return };
        let reason = format!("the protocol '{label}' is unknown here");
        let label = label.into();
        self.begin_closing(now, UNKNOWN_PROTOCOL, &reason, Closed::UnknownProtocol { label });
    }
}
