//! The packet ledger: packet numbers, packets in flight, and packets of unknown outcome (RFC 9002 appendix A.1,
//! `sent_packets`).

use super::delivery::Stamp;
use super::late::LostPackets;
use super::sent_packet::{PacketClass, SentPacket};
use super::skips::Skips;
use narrows_base::{Duration, Time};
use std::collections::VecDeque;
use std::ops::Range;

/// Limit on packets of unknown outcome. Beyond it the oldest are declared lost, so that memory is bounded if no
/// acknowledgements arrive.
pub const MAX_SENT_PACKETS: usize = 1 << 16;

/// The lowest packet of unknown outcome, now resolved: it arrived or was declared lost.
pub(super) struct ResolvedPacket<L> {
    pub seq: u64,
    pub packet: SentPacket<L>,
}

/// Packets by number. Numbers are never reused.
#[derive(Debug)]
pub(super) struct PacketLedger<L> {
    next_packet_number: u64,
    /// Lowest number of unknown outcome; `packets` begins there.
    least_unacked: u64,
    packets: VecDeque<SentPacket<L>>,
    /// Lower packets that were declared lost and may be late.
    pub lost: LostPackets<L>,
    /// How many of `packets` are not in flight.
    not_in_flight: u64,
    /// Packets that neither arrived nor were declared lost: on the present path, and on earlier ones.
    packets_in_flight: u64,
    old_path: u64,
    /// The first number on the present path, and when that path began.
    path_start: u64,
    path_since: Time,
    /// The highest reported number plus one.
    reported: u64,
    /// Counted packets that arrived on the present path.
    arrived: u64,
    /// Losses directly after a packet that met no long queue, and all packets directly after such a one; and whether
    /// the last packet that arrived met no long queue.
    short_queue: (u64, u64),
    short_before: bool,
    /// Chooses the numbers to skip, if enabled; and how many were skipped directly below the next packet.
    skips: Option<Box<Skips>>,
    skipped_below: u64,
    /// How many numbers directly below the next packet are not in flight or were skipped.
    not_in_flight_below: u64,
    /// Number of packets examined because of reports.
    #[cfg(any(test, feature = "inspect"))]
    pub looked_at: u64,
}

impl<L> PacketLedger<L> {
    /// An empty ledger.
    pub fn new() -> PacketLedger<L> {
        PacketLedger {
            next_packet_number: 0,
            least_unacked: 0,
            packets: VecDeque::new(),
            lost: LostPackets::new(),
            not_in_flight: 0,
            packets_in_flight: 0,
            old_path: 0,
            path_start: 0,
            path_since: Time::ZERO,
            reported: 0,
            arrived: 0,
            short_queue: (0, 0),
            short_before: false,
            skips: None,
            skipped_below: 0,
            not_in_flight_below: 0,
            #[cfg(any(test, feature = "inspect"))]
            looked_at: 0,
        }
    }

    /// The next packet's number.
    #[inline]
    pub fn next_packet_number(&self) -> u64 {
        self.next_packet_number
    }
    #[inline]
    pub fn least_unacked(&self) -> u64 {
        self.least_unacked
    }
    /// The lowest number about which a report may have news: its outcome is unknown, or it was declared lost and may be
    /// late.
    #[inline]
    pub fn lowest_wanted(&self) -> u64 {
        self.lost.lowest().unwrap_or(self.least_unacked)
    }
    /// The highest reported number plus one.
    #[inline]
    pub fn reported(&self) -> u64 {
        self.reported
    }
    #[inline]
    pub fn not_in_flight(&self) -> u64 {
        self.not_in_flight
    }
    /// Packets that neither arrived nor count as lost (RFC 9002 bytes_in_flight).
    #[inline]
    pub fn packets_in_flight(&self) -> u64 {
        self.packets_in_flight
    }
    /// The same, including packets on an earlier path.
    #[inline]
    pub fn in_flight_anywhere(&self) -> u64 {
        self.packets_in_flight + self.old_path
    }
    #[inline]
    pub fn arrived(&self) -> u64 {
        self.arrived
    }
    /// Losses directly after a packet that met no long queue, and the number of all packets
    /// directly after such a one.
    pub fn losses_at_short_queue(&self) -> (u64, u64) {
        self.short_queue
    }
    #[inline]
    pub fn skipped_below(&self) -> u64 {
        self.skipped_below
    }
    #[inline]
    pub fn not_in_flight_below(&self) -> u64 {
        self.not_in_flight_below
    }
    #[inline]
    pub fn is_full(&self) -> bool {
        self.packets.len() > MAX_SENT_PACKETS
    }
    /// Releases unused memory.
    pub fn release_memory(&mut self) {
        self.packets.shrink_to_fit();
        self.lost.release_memory();
    }
    /// Heap memory, in bytes.
    pub fn memory(&self) -> usize {
        self.packets.capacity() * size_of::<SentPacket<L>>()
            + self.lost.memory()
            + self.skips.as_ref().map_or(0, |s| s.memory())
    }

    /// The lowest packet of unknown outcome.
    #[inline]
    pub fn front(&self) -> Option<&SentPacket<L>> {
        self.packets.front()
    }
    /// The oldest packet in flight.
    pub fn oldest_in_flight(&self) -> Option<&SentPacket<L>> {
        self.packets.iter().find(|p| !p.arrived && p.class == PacketClass::InFlight)
    }
    /// Packet `n`, if its outcome is unknown.
    #[inline]
    pub fn get(&self, n: u64) -> Option<&SentPacket<L>> {
        let place = n.checked_sub(self.least_unacked).and_then(|n| usize::try_from(n).ok());
        place.and_then(|n| self.packets.get(n))
    }
    /// Whether a packet above the lowest one of unknown outcome was reported.
    #[inline]
    pub fn waits_for_late(&self) -> bool {
        !self.packets.is_empty() && self.least_unacked + 1 < self.reported
    }
    /// Packets in flight, on any path, that have not arrived, oldest first.
    pub fn missing(&self) -> impl Iterator<Item = &SentPacket<L>> {
        let is_tracked = |s| matches!(s, PacketClass::InFlight | PacketClass::OldPath);
        self.packets.iter().filter(move |p| !p.arrived && is_tracked(p.class))
    }

    /// The packets of [`missing`](PacketLedger::missing) from number `from` on, with their numbers.
    pub fn missing_from(&self, from: u64) -> impl Iterator<Item = (u64, &SentPacket<L>)> {
        let first = from.max(self.least_unacked);
        let start = usize::try_from(first - self.least_unacked).unwrap_or(usize::MAX);
        let packets = (first..).zip(self.packets.range(start.min(self.packets.len())..));
        packets.filter(|(_, p)| !p.arrived && p.class == PacketClass::InFlight)
    }

    /// From now on some packet numbers are skipped, chosen by random bits that the peer cannot
    /// predict.
    pub fn skip_numbers(&mut self, draws: impl FnMut() -> u64 + Send + Sync + 'static) {
        self.skips = Some(Box::new(Skips::new(draws)));
    }
    /// Skips one number in `mean` on average.
    #[cfg(any(test, feature = "inspect"))]
    pub fn skip_often(&mut self, mean: f64) {
        self.skips.iter_mut().for_each(|s| s.set_mean(mean));
    }
    /// How many of `[from, to)` were skipped.
    #[inline]
    pub fn skipped(&self, from: u64, to: u64) -> u64 {
        self.skips.as_ref().map_or(0, |s| s.count(from, to))
    }
    /// Decides, after a packet was sent, whether the next number is skipped.
    #[inline]
    pub fn is_next_skipped(&mut self) -> bool {
        let lowest = self.lowest_wanted();
        self.skips.as_mut().is_some_and(|s| s.is_next_skipped(self.next_packet_number, lowest))
    }

    /// A packet is sent.
    #[inline]
    pub fn push(&mut self, now: Time, stamp: Stamp, payload: L, bytes: u32, class: PacketClass) {
        let is_counted = class.is_counted();
        self.next_packet_number += 1;
        self.lost.forget_below(self.next_packet_number.saturating_sub(MAX_SENT_PACKETS as u64));
        self.packets_in_flight += u64::from(is_counted);
        self.not_in_flight += u64::from(!is_counted);
        self.skipped_below = u64::from(class == PacketClass::Skipped);
        self.not_in_flight_below = if is_counted { 0 } else { self.not_in_flight_below + 1 };
        self.packets.push_back(SentPacket {
            sent: now,
            stamp,
            payload,
            bytes: bytes as u16,
            class,
            arrived: false,
            marked: false,
            radio: false,
            short_queue: false,
        });
    }

    /// Drops untracked packets, so that they do not delay the outcome of others.
    pub fn drop_untracked(&mut self) {
        while self.packets.front().is_some_and(|p| p.class.is_untracked()) {
            self.packets.pop_front();
            self.least_unacked += 1;
            self.not_in_flight -= 1;
        }
    }

    /// Resolves the lowest packet: it is lost unless it arrived.
    #[inline]
    pub fn resolve(&mut self) -> Option<ResolvedPacket<L>> {
        let mut packet = self.packets.pop_front()?;
        let seq = self.least_unacked;
        self.least_unacked += 1;
        match packet.class {
            PacketClass::InFlight => {
                // The loss ratio counts each packet by the queue that the packet before it met, whether it arrived or
                // not.
                self.short_queue.1 += u64::from(self.short_before);
                if packet.arrived {
                    self.short_before = packet.short_queue;
                } else {
                    self.packets_in_flight -= 1;
                    self.short_queue.0 += u64::from(self.short_before);
                    packet.short_queue = self.short_before;
                }
            }
            class => {
                self.not_in_flight -= 1;
                self.old_path -= u64::from(class == PacketClass::OldPath && !packet.arrived);
            }
        }
        Some(ResolvedPacket { seq, packet })
    }

    /// A report covers numbers below `end`.
    #[inline]
    pub fn report(&mut self, end: u64) {
        self.reported = self.reported.max(end);
    }
    /// The indices in `packets` of the numbers `[from, to)`.
    #[inline]
    fn places(&mut self, from: u64, to: u64) -> Range<usize> {
        let to = ((to.saturating_sub(self.least_unacked)) as usize).min(self.packets.len());
        let from = (from.max(self.least_unacked) - self.least_unacked) as usize;
        let places = from.min(to)..to;
        #[cfg(any(test, feature = "inspect"))]
        {
            self.looked_at += places.len() as u64;
        }
        places
    }
    /// `[from, to)` arrived: calls `news` for each packet newly known to have arrived, and returns how many of them are
    /// counted. They stay in flight until [`leave_flight`](PacketLedger::leave_flight). Packets sent less than
    /// `short_queue` ago met no long queue.
    #[inline]
    pub fn take_arrived(
        &mut self,
        (from, to): (u64, u64),
        (now, short_queue): (Time, Duration),
        mut news: impl FnMut(u64, &SentPacket<L>),
    ) -> u64 {
        let mut fresh = 0;
        let places = self.places(from, to);
        let first = self.least_unacked + places.start as u64;
        for (seq, p) in (first..).zip(self.packets.range_mut(places)) {
            if p.arrived {
                continue;
            }
            p.arrived = true;
            p.short_queue = now.since(p.sent) < short_queue;
            fresh += u64::from(p.class.is_counted());
            self.old_path -= u64::from(p.class == PacketClass::OldPath);
            news(seq, p);
        }
        fresh
    }
    /// Packets declared lost arrived after all; `at_short_queue` of them followed one that met no
    /// long queue.
    pub fn take_back_losses(&mut self, packets: u64, at_short_queue: u64) {
        self.arrived += packets;
        self.short_queue.0 -= at_short_queue;
    }
    /// `fresh` counted packets arrived.
    #[inline]
    pub fn leave_flight(&mut self, fresh: u64) {
        self.packets_in_flight -= fresh;
        self.arrived += fresh;
    }
    /// The receiver attributes the loss of `[from, to)` to the radio link.
    #[inline]
    pub fn take_radio(&mut self, from: u64, to: u64) {
        let places = self.places(from, to);
        self.packets.range_mut(places).for_each(|p| p.radio = true);
    }
    /// `new` packets with CE marks are newly reported: assigned to the newest arrived packets below `end`, which is
    /// exact if every packet is reported.
    pub fn take_marks(&mut self, new: u32, end: u64) {
        let places = self.places(0, end);
        let arrived = self.packets.range_mut(places).rev().filter(|p| p.arrived);
        arrived.take(new as usize).for_each(|p| p.marked = true);
    }

    /// Packets take another path from now on; those sent before are no longer in flight.
    pub fn renew(&mut self, now: Time) {
        for p in &mut self.packets {
            if p.class.is_counted() {
                p.class = PacketClass::OldPath;
                self.not_in_flight += 1;
                self.old_path += u64::from(!p.arrived);
            }
        }
        self.packets_in_flight = 0;
        self.arrived = 0;
        self.lost.clear();
        self.path_start = self.next_packet_number;
        self.path_since = now;
    }
    /// Whether packet `highest` was sent on the present path.
    #[inline]
    pub fn is_of_this_path(&self, highest: u64) -> bool {
        highest >= self.path_start
    }
    /// Whether packets sent a round trip ago were sent on the present path.
    #[inline]
    pub fn is_on_path_since(&self, now: Time, rtt: Duration) -> bool {
        now.since(self.path_since) >= rtt
    }
}
