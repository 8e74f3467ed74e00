//! The receiving side of datagrams: what came, the ACK vector, reports.

use super::config::DatagramConfig;
use super::header::{self, Runs};
use crate::ranges::Ranges;
use narrows_base::{Packet, Time, luck};
use narrows_control::{Advice, Arrival, ReceiverHalf};

/// Numbers below the highest by more than this are too late to be told from duplicates.
const MEMORY: u64 = 4096;
/// Ranges kept at most, whatever a peer or a path does.
const MOST_RANGES: usize = 256;

/// A datagram receiver. Every packet may be answered with one report.
pub struct Receiver {
    half: Option<Box<dyn ReceiverHalf>>,
    flow: u32,
    report_bytes: u16,
    /// What came, at most `MEMORY` below the highest.
    seen: Ranges,
    /// Below it everything is a duplicate or too late.
    floor: u64,
    /// One above the highest number that came.
    next: u64,
    /// Lowest number whose fate the sender does not know: ack of ack.
    unresolved: u64,
    /// Send time of the packet that came last, and when it came.
    echo: (Time, Time),
    delivered: u64,
    packets: u64,
    marks: u32,
    reports: u32,
    luck: u64,
}

impl Receiver {
    /// For one flow; `luck` is the flow's key for losses on the way back. Without a receiver half
    /// every packet is answered.
    pub fn new(
        config: &DatagramConfig,
        half: Option<Box<dyn ReceiverHalf>>,
        flow: u32,
        luck: u64,
    ) -> Receiver {
        Receiver {
            half,
            flow,
            report_bytes: config.report_bytes.min(65_535) as u16,
            seen: Ranges::default(),
            floor: 0,
            next: 0,
            unresolved: 0,
            echo: (Time::ZERO, Time::ZERO),
            delivered: 0,
            packets: 0,
            marks: 0,
            reports: 0,
            luck: luck ^ 0xAC0_AC0,
        }
    }

    /// A data packet arrived; the report to send now, if any.
    #[inline]
    pub fn on_packet(&mut self, now: Time, p: &Packet) -> Option<Packet> {
        if p.has(Packet::CORRUPT) || p.seq >= u64::MAX / 2 {
            return None;
        }
        let (unresolved, advice) = header::read_data(p);
        let mut duplicate = true;
        if p.seq >= self.floor {
            self.seen.insert(p.seq, p.seq + 1, |_, _| duplicate = false);
        }
        if !duplicate {
            self.delivered += u64::from(p.payload());
            self.packets += 1;
        }
        if p.seq >= self.next {
            self.next = p.seq + 1;
            self.floor = self.floor.max(self.next.saturating_sub(MEMORY));
            while self.seen.len() > MOST_RANGES {
                let Some((_, to)) = self.seen.iter().next() else { break };
                self.floor = self.floor.max(to);
                self.seen.trim_below(to);
            }
            self.seen.trim_below(self.floor);
        }
        self.unresolved = self.unresolved.max(unresolved.min(self.next));
        let marked = p.has(Packet::CE);
        self.marks = self.marks.wrapping_add(u32::from(marked && !duplicate));
        self.echo = (p.stamp, now);
        let report = match &mut self.half {
            None => true,
            Some(half) => half.on_arrival(&Arrival {
                now,
                seq: p.seq,
                sent: p.stamp,
                bytes: u32::from(p.size),
                marked,
                duplicate,
                advice,
            }),
        };
        report.then(|| self.report(now))
    }

    #[inline]
    fn report(&mut self, now: Time) -> Packet {
        let advice = self.half.as_mut().map_or(Advice::NONE, |h| h.advice(now));
        self.reports = self.reports.wrapping_add(1);
        let head = self.next - 1;
        let floor = self.unresolved.max(self.floor).min(head);
        let runs = Runs::over(floor, head, self.seen.iter().rev(), header::room(&advice));
        let mut packet = Packet {
            seq: self.next,
            // The receiver's delay is taken off at once.
            stamp: self.echo.0 + now.since(self.echo.1),
            number: 0,
            luck: luck::mix(self.luck.wrapping_add(u64::from(self.reports))) as u32,
            sack: [(0, 0); 3],
            flow: self.flow,
            size: self.report_bytes,
            hop: 0,
            flags: Packet::ACK,
        };
        header::write_report(&mut packet, &runs, &advice, self.marks);
        packet
    }

    /// When [`on_due`](Receiver::on_due) is wanted.
    #[inline]
    pub fn next_due(&self) -> Time {
        match &self.half {
            Some(half) if self.next > 0 => half.next_tick(),
            _ => Time::NEVER,
        }
    }

    /// The receiver half's tick; the report to send now, if any.
    pub fn on_due(&mut self, now: Time) -> Option<Packet> {
        if self.next == 0 {
            return None;
        }
        let half = self.half.as_mut()?;
        if now < half.next_tick() || !half.on_tick(now) {
            return None;
        }
        Some(self.report(now))
    }

    /// Application bytes so far, duplicates not counted.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Packets so far, duplicates not counted.
    pub fn delivered_packets(&self) -> u64 {
        self.packets
    }
    /// The receiver half, to be watched.
    pub fn half(&self) -> Option<&dyn ReceiverHalf> {
        self.half.as_deref()
    }
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Receiver(flow {}, next {}, {} came)", self.flow, self.next, self.packets)
    }
}
