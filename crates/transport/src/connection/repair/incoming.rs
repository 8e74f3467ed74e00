//! Repair packets that come, and what they rebuild.

use super::kept::KeptPackets;
use super::loss_share::LossShare;
use crate::connection::Connection;
use crate::connection::receive::Said;
use narrows_base::replay::WINDOW;
use narrows_base::{Duration, Time};
use narrows_wire::repair::{add_symbol, frames_of_symbol};
use narrows_wire::{Frame, Frames, Repair};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Copies are kept where so much is missing: a little less than the 3% from which senders repair.
const MIN_MISSING: f64 = 0.025;
/// A hole counts for so many losses at most.
const MAX_HOLE: u64 = 64;
/// Copies are kept for so long beside a round trip.
const KEPT_FOR: Duration = Duration::from_millis(250);

/// What a REPAIR brings.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    /// All that it repairs has come, or more is missing than one packet.
    Nothing,
    /// The frames of the missing packet.
    Rebuilt(Vec<u8>),
    /// It is not the XOR of what it names.
    Wrong,
}

/// What an end keeps in order to rebuild lost packets.
#[derive(Default, Debug)]
pub(in super::super) struct Incoming {
    share: LossShare,
    /// One above the highest number that came.
    next: u64,
    kept: KeptPackets,
    /// Numbers of packets that were rebuilt and may still come.
    rebuilt: VecDeque<u64>,
    /// Packets that were rebuilt.
    pub count: u64,
}

impl Incoming {
    fn is_keeping(&self) -> bool {
        self.share.share() >= MIN_MISSING
    }
    /// Whether this packet, which came only now, was rebuilt before.
    #[inline]
    pub fn was_rebuilt(&self, number: u64) -> bool {
        number < self.next && self.rebuilt.contains(&number)
    }
    /// A packet came; of the numbers directly below its own so many do not count. `frames` if they may be needed.
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

    /// A REPAIR came in packet `number`.
    pub(super) fn rebuild(
        &mut self,
        number: u64,
        repair: &Repair<'_>,
        is_new: impl Fn(u64) -> bool,
    ) -> Outcome {
        let mut missing = repair.numbers(number).filter(|n| self.kept.get(*n).is_none());
        let (Some(lost), None) = (missing.next(), missing.next()) else { return Outcome::Nothing };
        if !self.is_keeping() || !is_new(lost) || self.rebuilt.contains(&lost) {
            return Outcome::Nothing;
        }
        let mut symbol = repair.code.to_vec();
        for frames in repair.numbers(number).filter_map(|n| self.kept.get(n)) {
            add_symbol(&mut symbol, frames);
        }
        let frames = frames_of_symbol(&symbol).filter(|_| symbol.len() == repair.code.len());
        let Some(frames) = frames else { return Outcome::Wrong };
        if self.rebuilt.len() >= WINDOW as usize {
            self.rebuilt.pop_front();
        }
        self.rebuilt.push_back(lost);
        self.count += 1;
        Outcome::Rebuilt(frames.to_vec())
    }

    pub fn memory(&self) -> usize {
        self.kept.memory() + self.rebuilt.capacity() * size_of::<u64>()
    }
    pub fn release_memory(&mut self) {
        self.kept.clear();
    }
}

/// Whether a frame means the same in a packet that was rebuilt: it belongs to streams and messages and not to the packet,
/// its number, its time or its address.
fn is_for_streams_or_messages(frame: &Frame<'_>) -> bool {
    match frame {
        Frame::Datagram(_)
        | Frame::Stream { .. }
        | Frame::MaxData(_)
        | Frame::MaxStream { .. }
        | Frame::MaxStreams { .. }
        | Frame::Blocked { .. }
        | Frame::StreamBlocked { .. }
        | Frame::StreamsBlocked { .. }
        | Frame::ResetStream { .. }
        | Frame::Stop { .. } => true,
        Frame::Padding(_)
        | Frame::Ping
        | Frame::Report(_)
        | Frame::Feedback(_)
        | Frame::PathChallenge(_)
        | Frame::PathResponse(_)
        | Frame::Close { .. }
        | Frame::Extension { .. } => false,
    }
}

impl Connection {
    /// A REPAIR in packet `number`. Skipped, as an unknown extension is, if repair was not agreed.
    pub(in super::super) fn on_repair(
        &mut self,
        now: Time,
        from: SocketAddr,
        number: u64,
        body: &[u8],
    ) {
        let Some(repairs) = &mut self.repairs else { return };
        let repair = match Repair::read(body) {
            Ok(repair) => repair,
            Err(malformed) => return self.fault(now, 1, malformed.what),
        };
        let opener = &self.opener;
        let frames = match repairs.incoming.rebuild(number, &repair, |n| opener.is_new(n)) {
            Outcome::Nothing => return,
            Outcome::Wrong => return self.fault(now, 1, "a repair that is not of what it names"),
            Outcome::Rebuilt(frames) => frames,
        };
        let mut said = Said::default();
        for frame in Frames::bare(&frames) {
            match frame {
                Ok(frame) => {
                    said.note(&frame, frames.len());
                    if is_for_streams_or_messages(&frame) {
                        // Which ECN field the packet had is not known.
                        self.on_frame(now, from, 0, &frame);
                    }
                }
                Err(malformed) => self.fault(now, 1, malformed.what),
            }
        }
        self.on_said(now, &said);
    }
}
