//! The receiving side: reassembly, acknowledgements, SACK blocks, delayed ACKs.

mod blocks;

use super::ecn::ReceiverEcn;
use crate::protocol::{RecoveryKind, TcpConfig};
use blocks::SackBlocks;
use narrows_base::{Duration, Packet, Time};
use narrows_recovery::ranges::Ranges;

/// Longest delay of acknowledgements of segments out of order: a twentieth of the RTT, and at most this (Linux,
/// `tcp_comp_sack_delay_ns`); and the most that are delayed (`tcp_comp_sack_nr`).
const MAX_SACK_DELAY: Duration = Duration::from_millis(1);
const MAX_COMPRESSED: u32 = 44;

/// Acknowledgements of segments out of order since the cumulative one has been `next`.
#[derive(Clone, Copy, Debug)]
struct Compression {
    next: u64,
    sent: u32,
    /// Segments that wait for an acknowledgement.
    waiting: u32,
    opened: Time,
    delay: Duration,
}

impl Compression {
    fn new() -> Compression {
        Compression { next: 0, sent: 0, waiting: 0, opened: Time::NEVER, delay: MAX_SACK_DELAY }
    }

    /// The first data packet answers the SYN's acknowledgement, which measures the RTT.
    fn on_first(&mut self, now: Time, is_opening: bool) {
        if is_opening {
            self.opened = now;
        } else if !self.opened.is_never() {
            let twentieth = now.since(self.opened).as_nanos() / 20;
            self.delay = MAX_SACK_DELAY.min(Duration::from_nanos(twentieth));
            self.opened = Time::NEVER;
        }
    }
}

/// A TCP receiver. It answers each packet with at most one acknowledgement.
#[derive(Clone, Debug)]
pub struct TcpReceiver {
    flow: u32,
    ack_bytes: u16,
    ack_every: u32,
    delay: Duration,
    payload: u32,
    /// Next segment expected.
    next: u64,
    /// Segments held out of order.
    held: Ranges,
    /// Held segments shorter than a full one: (segment, missing bytes).
    short: Vec<(u64, u32)>,
    blocks: SackBlocks,
    /// In-order application bytes so far.
    delivered: u64,
    /// Packets in order since the last ACK, and the first of them.
    unacked: u32,
    echo: (Time, u32),
    ack_due: Time,
    /// Number of segments still to be acknowledged one by one.
    quick: u32,
    /// Linux: state of delayed acknowledgements of segments out of order.
    compression: Option<Compression>,
    ecn: ReceiverEcn,
    /// Whether ACKs carry `arrived`, the arrival time of the last packet.
    stamps: bool,
    arrived: Time,
    /// ACK packets sent, which number them for random losses.
    acks: u32,
    random_key: u64,
}

impl TcpReceiver {
    /// For one flow; `random_key` is the flow's key for losses on the return path.
    pub fn new(config: &TcpConfig, flow: u32, random_key: u64) -> TcpReceiver {
        TcpReceiver {
            flow,
            ack_bytes: config.ack_bytes.min(65_535) as u16,
            ack_every: config.ack_every.max(1),
            delay: config.delayed_ack,
            payload: config.payload(),
            next: 0,
            held: Ranges::default(),
            short: Vec::new(),
            blocks: SackBlocks::new(config.recovery == RecoveryKind::Rack),
            delivered: 0,
            unacked: 0,
            echo: (Time::ZERO, 0),
            ack_due: Time::NEVER,
            quick: config.quick_acks,
            compression: (config.quick_acks > 0).then(Compression::new),
            ecn: ReceiverEcn::new(config.ecn),
            stamps: config.receiver_stamps,
            arrived: Time::ZERO,
            acks: 0,
            random_key: random_key ^ 0xAC0_AC0,
        }
    }

    /// A data packet arrived. Returns the acknowledgement to send now, if any.
    #[inline]
    pub fn on_packet(&mut self, now: Time, p: &Packet) -> Option<Packet> {
        if p.has(Packet::CORRUPT) {
            return None;
        }
        self.arrived = now;
        if p.seq >= self.next {
            self.ecn.arrived(p);
        }
        if let Some(compression) = &mut self.compression {
            compression.on_first(now, p.has(Packet::SYN));
        }
        let in_order = p.seq == self.next;
        if in_order && self.held.is_empty() {
            // The usual case: no segments are missing.
            self.next += 1;
            self.count(p);
            if self.unacked == 0 {
                // RFC 7323 section 4.3: echo the first packet that this ACK acknowledges.
                self.echo = (p.stamp, p.number);
            }
            self.unacked += 1;
            let quick = self.quick > 0 && !p.has(Packet::SYN);
            self.quick -= u32::from(quick);
            if self.unacked >= self.ack_every || quick || p.has(Packet::SYN) {
                return Some(self.acknowledge(p));
            }
            if self.ack_due.is_never() {
                self.ack_due = now + self.delay;
            }
            return None;
        }
        let before = self.next;
        // A delayed acknowledgement leaves before another block displaces one of its blocks.
        let waiting = (self.compression.is_some_and(|c| c.waiting > 0)
            && p.seq > before
            && self.blocks.displaces(p.seq, before, &self.held))
        .then(|| self.build_ack(0));
        self.out_of_order(p, in_order);
        if self.compression.is_some() && !self.is_due_out_of_order(now, p, before) {
            return waiting;
        }
        self.echo = (p.stamp, p.number);
        Some(self.acknowledge(p))
    }

    /// Whether a segment out of order is acknowledged at once. The first four after each advance of the cumulative
    /// acknowledgement are, and each that fills a hole; others are delayed by up to a millisecond.
    fn is_due_out_of_order(&mut self, now: Time, p: &Packet, before: u64) -> bool {
        let Some(c) = &mut self.compression else { return true };
        let due = now + c.delay;
        if self.held.is_empty() || p.seq < before {
            return true;
        }
        if c.next != self.next {
            c.next = self.next;
            c.sent = 0;
        }
        if c.sent < 3 {
            c.sent += 1;
            return true;
        }
        c.waiting += 1;
        if c.waiting > MAX_COMPRESSED {
            return true;
        }
        if self.unacked == 0 {
            self.echo = (p.stamp, p.number);
            self.unacked = 1;
        }
        self.ack_due = self.ack_due.min(due);
        false
    }

    fn out_of_order(&mut self, p: &Packet, in_order: bool) {
        if in_order {
            self.next += 1;
            self.count(p);
            if let Some(end) = self.held.take_from(self.next) {
                self.delivered += (end - self.next) * u64::from(self.payload);
                for (_, missing) in self.short.extract_if(.., |s| s.0 < end) {
                    self.delivered -= u64::from(missing);
                }
                self.next = end;
            }
        } else if p.seq > self.next {
            let mut new = false;
            self.held.insert(p.seq, p.seq + 1, |_, _| new = true);
            if new && p.payload() < self.payload {
                self.short.push((p.seq, self.payload - p.payload()));
            }
            if !new {
                self.blocks.on_duplicate(p.seq);
            }
            self.blocks.remember(p.seq, self.next, &self.held);
        } else if !p.has(Packet::SYN) {
            self.blocks.on_duplicate(p.seq);
        }
    }

    #[inline]
    fn count(&mut self, p: &Packet) {
        self.delivered += u64::from(p.payload());
    }

    /// When the delayed acknowledgement is due.
    #[inline]
    pub fn next_timeout(&self) -> Time {
        self.ack_due
    }

    /// The delayed acknowledgement, if it is due.
    pub fn on_timeout(&mut self, now: Time) -> Option<Packet> {
        if now < self.ack_due {
            return None;
        }
        Some(self.build_ack(0))
    }

    #[inline]
    fn acknowledge(&mut self, p: &Packet) -> Packet {
        self.build_ack(p.flags & Packet::SYN)
    }

    #[inline]
    fn build_ack(&mut self, flags: u8) -> Packet {
        self.unacked = 0;
        self.ack_due = Time::NEVER;
        if let Some(compression) = &mut self.compression {
            compression.waiting = 0;
        }
        self.acks = self.acks.wrapping_add(1);
        let sack = self.blocks.take(self.next, &self.held);
        let mut ack = Packet {
            seq: self.next,
            stamp: self.echo.0,
            number: self.echo.1,
            random_key: narrows_base::random::mix(
                self.random_key.wrapping_add(u64::from(self.acks)),
            ) as u32,
            sack,
            flow: self.flow,
            size: self.ack_bytes,
            hop: 0,
            flags: Packet::ACK | flags | self.ecn.ack_flags(),
        };
        if self.stamps {
            ack.set_arrived(self.arrived);
        }
        ack
    }

    /// In-order application bytes so far.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Distinct application bytes received, in order or not.
    pub fn received(&self) -> u64 {
        let held: u64 = self.held.iter().map(|(from, to)| to - from).sum();
        let missing: u64 = self.short.iter().map(|s| u64::from(s.1)).sum();
        self.delivered + (held * u64::from(self.payload)).saturating_sub(missing)
    }
    /// Next segment expected.
    pub fn next_expected(&self) -> u64 {
        self.next
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
