//! The opening of a simulated connection, as `endpoint` opens real ones: SYN, SYN-ECHO, START, START-ECHO,
//! FINISH; each with its bytes on the wire and its repetitions, so that a simulated transfer pays two
//! round trips before its first byte, and has a first sample of them.
//!
//! The server here takes no data before FINISH. A real one keeps a few packets that overtake it.

use crate::packet_pair::{PROBE_BYTES, PacketPair};
use crate::repeat::{FIRST_REPEAT, Repeat};
use narrows_base::{Duration, Packet, Time};
use narrows_congestion::{Dispersion, PathHints};

/// IP and UDP headers.
const HEADERS: u16 = 28;
/// UDP payload of SYN, START and FINISH. `docs/rrtp.md`; of FINISH with the parameters of a
/// connection by `drive`.
const CLIENT: [u16; 3] = [64, 90, FINISH];
const FINISH: u16 = 140;
/// UDP payload of SYN-ECHO and START-ECHO.
const SERVER: [u16; 2] = [57, 200];

/// The client's side.
#[derive(Debug)]
pub(super) struct Handshake {
    /// Which packet is sent until it is answered: SYN, START or FINISH.
    stage: u8,
    repeat: Repeat,
    /// Packets sent so far: they draw their losses by their number, before data.
    sent: u64,
    rtt: Option<Duration>,
    packet_pair: PacketPair,
}

impl Handshake {
    /// `told` is what is known of the path.
    pub fn new(told: &PathHints) -> Handshake {
        let wait = told.rtt.map_or(FIRST_REPEAT, |rtt| rtt.mul_f64(1.5)).max(FIRST_REPEAT);
        let (repeat, packet_pair) =
            (Repeat::new(Time::ZERO, wait), PacketPair::new(told.rate.is_none()));
        Handshake { stage: 0, repeat, sent: 0, rtt: None, packet_pair }
    }
    /// Begins.
    pub fn open(&mut self, now: Time) {
        self.repeat.due = now;
    }
    /// Whether data may leave: FINISH left.
    pub fn is_open(&self) -> bool {
        self.stage == 3 || (self.stage == 2 && self.repeat.is_sent())
    }
    /// Packets that it sent.
    pub fn sent(&self) -> u64 {
        self.sent
    }
    /// When a packet is to be sent (again).
    pub fn due(&self) -> Time {
        match self.stage {
            3 => Time::NEVER,
            0 if self.sounds() => Time::ZERO,
            _ => self.repeat.due,
        }
    }
    fn sounds(&self) -> bool {
        self.packet_pair.is_due() && self.stage == 0 && self.repeat.is_sent()
    }
    /// The packet that is due: its stage and its size; the rest is the sender's.
    pub fn packet(&mut self, now: Time) -> (u64, u16) {
        self.sent += 1;
        if self.sounds() {
            self.packet_pair.on_sent();
            return (0, PROBE_BYTES + HEADERS);
        }
        self.repeat.on_sent(now);
        let bytes = CLIENT.get(usize::from(self.stage)).copied().unwrap_or(FINISH);
        (u64::from(self.stage), bytes + HEADERS)
    }
    /// The server answered; the round-trip time when the keys are there.
    pub fn on_answer(&mut self, now: Time, packet: &Packet) -> Option<Duration> {
        if packet.seq == 0 {
            self.packet_pair.on_answer(now);
        }
        if packet.seq != u64::from(self.stage) || self.stage > 1 {
            return None;
        }
        let sample = self.repeat.sample(now);
        self.rtt = match (self.rtt, sample) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.repeat = Repeat::after(now, self.repeat.took(now));
        self.stage += 1;
        self.rtt.filter(|_| self.stage == 2)
    }
    /// What the answers' spacing tells, once the keys are there.
    pub fn spacing(&self) -> Option<Dispersion> {
        self.packet_pair.spacing(self.rtt?)
    }
    /// A report came: the server has the keys.
    pub fn on_report(&mut self) {
        if self.stage == 2 {
            self.stage = 3;
        }
    }
}

/// The server's answer to a packet of a handshake, as stage and size; none to FINISH.
pub(super) fn answer(packet: &Packet) -> Option<u16> {
    SERVER.get(usize::try_from(packet.seq).ok()?).map(|bytes| bytes + HEADERS)
}

/// Whether this is FINISH.
pub(super) fn is_finish(packet: &Packet) -> bool {
    packet.seq == 2
}

#[cfg(test)]
#[path = "handshake_tests.rs"]
mod tests;
