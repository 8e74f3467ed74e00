//! The receiving side: reassembly, acknowledgements, SACK blocks, delayed ACKs.

use super::config::TcpConfig;
use super::ecn::ReceiverEcn;
use crate::ranges::Ranges;
use narrows_base::{Packet, Time};

/// How long acknowledgements of segments out of order wait for more of them at most.
const MAX_SACK_DELAY: narrows_base::Duration = narrows_base::Duration::from_millis(1);

/// Acknowledgements of segments out of order since the cumulative one stands at `next`.
#[derive(Clone, Copy, Debug, Default)]
struct Compression {
    next: u64,
    sent: u32,
}

/// A TCP receiver. Every packet may be answered with one acknowledgement.
#[derive(Clone, Debug)]
pub struct Receiver {
    flow: u32,
    ack_bytes: u16,
    ack_every: u32,
    delay: narrows_base::Duration,
    payload: u32,
    /// Next segment expected.
    next: u64,
    /// What is held out of order.
    held: Ranges,
    /// Held segments shorter than a full one: (segment, missing bytes).
    short: Vec<(u64, u32)>,
    /// A segment of each of the blocks reported last, newest first (RFC 2018 section 4).
    recent: [u64; 3],
    /// In-order application bytes so far.
    delivered: u64,
    /// Packets in order since the last ACK, and the first of them.
    unacked: u32,
    echo: (Time, u32),
    ack_due: Time,
    /// Segments still to be acknowledged one by one, at once.
    quick: u32,
    /// Linux: how many acknowledgements of segments out of order may be sent before they are held back for up to a
    /// millisecond, and from which segment on that counts.
    compression: Option<Compression>,
    ecn: ReceiverEcn,
    /// Whether ACKs carry `arrived`, when the packet that came last did.
    stamps: bool,
    arrived: Time,
    /// ACK packets sent: their number for losses.
    acks: u32,
    random_key: u64,
}

impl Receiver {
    /// For one flow; `random_key` is the flow's key for losses on the way back.
    pub fn new(config: &TcpConfig, flow: u32, random_key: u64) -> Receiver {
        Receiver {
            flow,
            ack_bytes: config.ack_bytes.min(65_535) as u16,
            ack_every: config.ack_every.max(1),
            delay: config.delayed_ack,
            payload: config.payload(),
            next: 0,
            held: Ranges::default(),
            short: Vec::new(),
            recent: [u64::MAX; 3],
            delivered: 0,
            unacked: 0,
            echo: (Time::ZERO, 0),
            ack_due: Time::NEVER,
            quick: config.quick_acks,
            compression: (config.quick_acks > 0).then(Compression::default),
            ecn: ReceiverEcn::new(config.ecn),
            stamps: config.receiver_stamps,
            arrived: Time::ZERO,
            acks: 0,
            random_key: random_key ^ 0xAC0_AC0,
        }
    }

    /// A data packet arrived; the acknowledgement to send now, if any.
    #[inline]
    pub fn on_packet(&mut self, now: Time, p: &Packet) -> Option<Packet> {
        if p.has(Packet::CORRUPT) {
            return None;
        }
        self.arrived = now;
        if p.seq >= self.next {
            self.ecn.arrived(p);
        }
        let in_order = p.seq == self.next;
        if in_order && self.held.is_empty() {
            // The usual case: nothing is missing.
            self.next += 1;
            self.count(p);
            if self.unacked == 0 {
                // RFC 7323 section 4.3: echo the first packet that this ACK answers.
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
        self.out_of_order(p, in_order);
        if self.compression.is_some() && !self.is_due_out_of_order(now, p, before) {
            return None;
        }
        self.echo = (p.stamp, p.number);
        Some(self.acknowledge(p))
    }

    /// Whether a segment beside a hole is acknowledged at once: the first four at each cumulative acknowledgement
    /// are, and whatever fills a hole; others within a millisecond (Linux, `tcp_comp_sack_delay_ns`).
    fn is_due_out_of_order(&mut self, now: Time, p: &Packet, before: u64) -> bool {
        let due = now + MAX_SACK_DELAY;
        let Some(c) = &mut self.compression else { return true };
        if self.held.is_empty() || p.seq < before {
            return true;
        }
        if c.next != self.next {
            *c = Compression { next: self.next, sent: 0 };
        }
        if c.sent < 3 {
            c.sent += 1;
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
            self.remember(p.seq);
        }
    }

    #[inline]
    fn count(&mut self, p: &Packet) {
        self.delivered += u64::from(p.payload());
    }

    fn remember(&mut self, seq: u64) {
        let Some((from, to)) = self.held.find(seq) else { return };
        let mut kept = [u64::MAX; 3];
        kept[0] = seq;
        let mut n = 1;
        for old in self.recent {
            if n < 3 && old >= self.next && !(from..to).contains(&old) && old != u64::MAX {
                kept[n] = old;
                n += 1;
            }
        }
        self.recent = kept;
    }

    /// The delayed acknowledgement's time.
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
        self.acks = self.acks.wrapping_add(1);
        let sack = if self.held.is_empty() { [(0, 0); 3] } else { self.blocks() };
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

    fn blocks(&self) -> [(u32, u32); 3] {
        let mut out = [(0, 0); 3];
        let mut n = 0;
        for seq in self.recent {
            if seq == u64::MAX {
                break;
            }
            let Some((from, to)) = self.held.find(seq) else { continue };
            let offset = |x: u64| u32::try_from(x - self.next).unwrap_or(u32::MAX);
            let block = (offset(from), offset(to));
            if !out[..n].contains(&block) {
                out[n] = block;
                n += 1;
            }
        }
        out
    }

    /// In-order application bytes so far.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Distinct application bytes that came, in order or not.
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
mod tests {
    use super::*;
    use crate::tcp::config::Preset;
    use narrows_base::Duration;

    fn data(seq: u64) -> Packet {
        Packet {
            seq,
            stamp: Time::from_nanos(seq * 10),
            number: seq as u32,
            random_key: 0,
            sack: [(if seq == 0 { 0 } else { 960 }, 0), (0, 0), (0, 0)],
            flow: 0,
            size: 1000,
            hop: 0,
            flags: if seq == 0 { Packet::SYN } else { 0 },
        }
    }
    fn receiver(ack_every: u32) -> Receiver {
        let config = TcpConfig { ack_every, ..TcpConfig::preset(Preset::Rfc) };
        Receiver::new(&config, 0, 1)
    }

    #[test]
    fn the_first_block_holds_the_segment_that_came_last() {
        let mut r = receiver(1);
        for s in 0..3 {
            r.on_packet(Time::ZERO, &data(s));
        }
        let ack = r.on_packet(Time::ZERO, &data(5)).unwrap();
        assert_eq!((ack.seq, ack.sack[0]), (3, (2, 3)));
        let ack = r.on_packet(Time::ZERO, &data(8)).unwrap();
        assert_eq!(ack.sack, [(5, 6), (2, 3), (0, 0)]);
        let ack = r.on_packet(Time::ZERO, &data(6)).unwrap();
        assert_eq!(ack.sack, [(2, 4), (5, 6), (0, 0)]);
        // The hole is filled: everything up to 7 is in order.
        r.on_packet(Time::ZERO, &data(3));
        let ack = r.on_packet(Time::ZERO, &data(4)).unwrap();
        assert_eq!((ack.seq, ack.sack[0]), (7, (1, 2)));
        assert_eq!(r.delivered(), 6 * 960);
    }

    #[test]
    fn short_segments_are_counted_by_their_bytes_whatever_the_order() {
        let mut r = receiver(1);
        let mut short = data(2);
        short.sack[0].0 = 100;
        short.size = 140;
        for p in [data(0), short, data(3), data(1)] {
            r.on_packet(Time::ZERO, &p);
        }
        assert_eq!(r.delivered(), 960 + 100 + 960);
        // Out of order a segment has come, but nothing is delivered.
        short.seq = 6;
        r.on_packet(Time::ZERO, &data(5));
        r.on_packet(Time::ZERO, &short);
        assert_eq!((r.delivered(), r.received()), (960 + 100 + 960, 2 * 960 + 100 + 960 + 100));
    }

    #[test]
    fn delayed_acks_answer_every_second_packet_or_after_a_while() {
        let mut r = receiver(2);
        assert!(r.on_packet(Time::ZERO, &data(0)).is_some(), "the opening is answered at once");
        assert!(r.on_packet(Time::ZERO, &data(1)).is_none());
        let ack = r.on_packet(Time::ZERO, &data(2)).unwrap();
        assert_eq!((ack.seq, ack.number), (3, 1), "the first of the two is echoed");
        assert!(r.on_packet(Time::from_nanos(5), &data(3)).is_none());
        let due = Time::from_nanos(5) + Duration::from_millis(100);
        assert_eq!(r.next_timeout(), due);
        assert_eq!(r.on_timeout(due).unwrap().seq, 4);
        assert!(r.next_timeout().is_never());
        assert!(r.on_packet(due, &data(9)).is_some(), "out of order: at once");
    }

    #[test]
    fn linux_acknowledges_the_first_segments_singly_and_compresses_sacks() {
        let mut r = Receiver::new(&TcpConfig::preset(Preset::Linux), 0, 1);
        let acked: Vec<bool> =
            (0..=20).map(|s| r.on_packet(Time::ZERO, &data(s)).is_some()).collect();
        assert!(acked[..=16].iter().all(|a| *a), "sixteen after the opening");
        assert_eq!(acked[17..], [false, true, false, true]);
        let acked: Vec<bool> =
            (30..36).map(|s| r.on_packet(Time::ZERO, &data(s)).is_some()).collect();
        assert_eq!(acked, [true, true, true, false, false, false]);
        assert_eq!(r.next_timeout(), Time::ZERO + Duration::from_millis(1));
        let ack = r.on_timeout(r.next_timeout()).unwrap();
        assert_eq!((ack.seq, ack.sack[0]), (21, (9, 15)));
    }

    #[test]
    fn damaged_packets_are_thrown_away() {
        let mut r = receiver(1);
        let mut p = data(0);
        p.flags |= Packet::CORRUPT;
        assert!(r.on_packet(Time::ZERO, &p).is_none());
        assert_eq!(r.next_expected(), 0);
    }
}
