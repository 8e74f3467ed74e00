//! Bytes to events. Every byte string is a case; a missing byte is 0.

use super::{FuzzCase, FuzzEvent, NumberStep};
use crate::{Dialect, Environment};

/// Events of one case at most.
const MAX_EVENTS: usize = 300;

struct InputBytes<'a>(&'a [u8]);

impl InputBytes<'_> {
    fn next(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }
    fn flag(&mut self) -> bool {
        self.next() & 1 != 0
    }
    /// Any number of up to `bits` bits; every length is as likely as every other.
    fn wide(&mut self, bits: u8) -> u64 {
        let length = self.next() % (bits + 1);
        let drawn = (0..length.div_ceil(8)).fold(0_u64, |n, _| (n << 8) | u64::from(self.next()));
        if length == 64 { drawn } else { drawn & ((1 << length) - 1) }
    }
    /// Nanoseconds: often those of a network, sometimes zero or hours.
    fn nanos(&mut self) -> u64 {
        match self.next() {
            b @ 0..128 => (u64::from(b) + 1) * 1_600_000,
            128..160 => 0,
            _ => self.wide(44),
        }
    }
    /// A round trip of at most 8.6 s: at the worst loss rate TCP's equation allows a packet
    /// each 240 round trips, which is within the hour.
    fn rtt(&mut self) -> u64 {
        self.nanos() & ((1 << 33) - 1)
    }
    /// Mostly 0, 1 or 2, sometimes a hundred thousand.
    fn count(&mut self) -> u64 {
        match self.next() {
            b @ 0..205 => u64::from(b) % 3,
            _ => self.wide(17),
        }
    }
    /// Words of a peer that may write anything.
    fn words(&mut self) -> Vec<u32> {
        (0..self.next() % 5)
            .map(|_| match self.next() % 8 {
                0 => f32::NAN.to_bits(),
                1 => f32::INFINITY.to_bits(),
                2 => f32::MAX.to_bits(),
                3 => (-1.0_f32).to_bits(),
                4 => f32::MIN_POSITIVE.to_bits(),
                5 => self.wide(32) as u32,
                // A share, a time, a count, a rate.
                6 => (f32::from(self.next()) / 256.0).to_bits(),
                _ => (self.wide(40) as f32).to_bits(),
            })
            .collect()
    }

    fn event(&mut self) -> FuzzEvent {
        match self.next() % 32 {
            0..=4 => FuzzEvent::Sent { retransmission: self.flag(), last_waiting: self.flag() },
            5..=11 => FuzzEvent::Ack {
                advance: self.count(),
                sacked: self.count(),
                rtt: self.rtt(),
                flags: self.next(),
                sampled: self.count(),
                arrived: self.wide(64),
            },
            12..=13 => FuzzEvent::Loss {
                segments: 1 + self.count(),
                age: self.nanos(),
                transmissions: 1 + u32::from(self.next() % 4),
                how: self.next(),
            },
            14 => FuzzEvent::RecoveryStart,
            15 => FuzzEvent::RecoveryEnd,
            16 => FuzzEvent::SlowStartRestart {
                timeout: self.flag(),
                backoffs: 1 + u32::from(self.next() % 10),
            },
            17 => FuzzEvent::EcnCe,
            18..=20 => {
                let drawn = self.next();
                FuzzEvent::PacketOutcome { lost: drawn & 3 == 0, marked: drawn & 4 != 0 }
            }
            21 => FuzzEvent::Feedback { words: self.words(), rtt: self.rtt() },
            22 => FuzzEvent::Tick,
            23 => FuzzEvent::ReceiverTick,
            24 => FuzzEvent::Report { rtt: self.rtt() },
            25 => FuzzEvent::SpuriousLoss { packets: 1 + self.count(), undo: self.flag() },
            _ => {
                let step = match self.next() % 16 {
                    0..=8 => NumberStep::Next,
                    9..=11 => NumberStep::Ahead(self.count()),
                    12 => NumberStep::Ahead(self.wide(40)),
                    13 if self.next() == 255 => NumberStep::Ahead(u64::MAX),
                    _ => NumberStep::Behind(self.wide(12)),
                };
                FuzzEvent::Arrival {
                    step,
                    marked: self.flag(),
                    sent_ago: if self.flag() { self.nanos() } else { 50_000_000 },
                    words: if self.flag() { self.words() } else { Vec::new() },
                }
            }
        }
    }
}

impl FuzzCase {
    /// The case that the bytes describe.
    pub fn from_bytes(bytes: &[u8]) -> FuzzCase {
        let mut bytes = InputBytes(bytes);
        let environment = Environment {
            initial_window: match bytes.next() {
                0..100 => 4.0,
                100..200 => 1.0,
                _ => 1.0 + bytes.wide(30) as f64,
            },
            initial_ssthresh: if bytes.flag() { f64::INFINITY } else { 2.0 },
            packet_bytes: if bytes.flag() { 1000 } else { 1 + bytes.wide(16) as u32 }.min(65_535),
            dialect: match (bytes.flag(), bytes.flag()) {
                (false, false) => Dialect::Rfc,
                (true, _) => Dialect::Ns2,
                (false, true) => Dialect::Linux,
            },
            ..Environment::default()
        };
        let mut events = Vec::new();
        while !bytes.0.is_empty() && events.len() < MAX_EVENTS {
            events.push((bytes.nanos(), bytes.event()));
        }
        FuzzCase { environment, events }
    }
}
