//! PIE: a drop probability controlled by the queueing delay with a proportional-integral controller
//! (RFC 8033).
//!
//! The delay is the queue over the link's rate, as in RFC 8034 for a known rate. In front of a trace, which has no
//! constant rate, it is the wait of the packet that left last (RFC 8033 section 4.2 allows both). The probability is
//! updated only when a packet arrives or leaves, since its inputs do not change in between.

use super::discipline::{Discipline, ECN, LinkAhead, QueueEntry, QueueObserver};
use super::fifo::Fifo;
use super::packet::QueuedPacket;
use crate::config::QueueLimit;
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, Param, RandomStream, Rate, Settings, Status, Time};

/// PIE's descriptor.
const PIE: Descriptor = Descriptor {
    name: "pie",
    summary: "drops arrivals with a probability that holds the waiting time at a target",
    source: "RFC 8033",
    senses: "waiting time and its trend",
    sets: "the probability of drops or marks at the tail",
    params: &[
        seconds("target", "waiting time to hold", 0.015, "RFC 8033 section 4.2: QDELAY_REF"),
        seconds("update", "time between updates", 0.015, "RFC 8033 section 4.2: T_UPDATE"),
        seconds("burst", "burst let through after a calm", 0.15, "RFC 8033 section 4.4: MAX_BURST"),
        Param {
            name: "alpha",
            help: "probability added per update for each second of delay beyond the target",
            kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 100.0, default: 0.125 },
            origin: "RFC 8033 section 4.2",
        },
        Param {
            name: "beta",
            help: "probability added per update for each second by which the delay grew",
            kind: ParamKind::Number { unit: Unit::None, min: 0.0, max: 100.0, default: 1.25 },
            origin: "RFC 8033 section 4.2",
        },
        ECN,
        Param {
            name: "mark-p",
            help: "beyond this probability even ECN-capable packets are dropped",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.0, max: 1.0, default: 0.1 },
            origin: "RFC 8033 section 5.1: mark_ecnth",
        },
    ],
    status: Status::Validated(
        "holds its target under constant rates and under TCPs (docs/validation.md)",
    ),
};

const fn seconds(
    name: &'static str,
    help: &'static str,
    default: f64,
    origin: &'static str,
) -> Param {
    let kind = ParamKind::Number { unit: Unit::Seconds, min: 1e-4, max: 100.0, default };
    Param { name, help, kind, origin }
}

/// PIE's entry.
pub(super) const ENTRY: QueueEntry = QueueEntry::new(&PIE, |s| {
    Box::new(Pie::new(s.settings, s.limit, s.link, s.random_key.stream()))
});

/// Scale of an adjustment while the probability is below the given bound: small probabilities must
/// change in small steps (RFC 8033 section 4.2).
const SCALES: [(f64, f64); 6] =
    [(1e-6, 2048.0), (1e-5, 512.0), (1e-4, 128.0), (1e-3, 32.0), (1e-2, 8.0), (1e-1, 2.0)];

fn scale(p: f64) -> f64 {
    SCALES.iter().find(|(below, _)| p < *below).map_or(1.0, |(_, divisor)| 1.0 / divisor)
}

/// A queue under PIE.
pub(super) struct Pie {
    target_s: f64,
    update: Duration,
    burst_s: f64,
    alpha: f64,
    beta: f64,
    ecn: bool,
    mark_p: f64,
    stream: RandomStream,
    fifo: Fifo,
    /// Seconds per byte; `None` in front of a trace.
    byte_s: Option<f64>,
    /// Waiting time of the last departed packet in seconds.
    last_wait_s: f64,
    mtu: u32,
    next_update: Time,
    p: f64,
    delay_old_s: f64,
    /// The remaining burst allowance in seconds.
    allowance_s: f64,
    /// Sum of probabilities since the last drop, which spaces drops (RFC 8033 section 5.4).
    passed: f64,
}

impl Pie {
    pub fn new(s: &Settings, limit: QueueLimit, ahead: LinkAhead, stream: RandomStream) -> Pie {
        let update = Duration::from_secs_f64(s.number("update"));
        Pie {
            target_s: s.number("target"),
            update,
            burst_s: s.number("burst"),
            alpha: s.number("alpha"),
            beta: s.number("beta"),
            ecn: s.choice("ecn") == "on",
            mark_p: s.number("mark-p"),
            stream,
            fifo: Fifo::new(limit),
            byte_s: ahead.steady.then(|| 8.0 / ahead.bps.max(1.0)),
            last_wait_s: 0.0,
            mtu: 0,
            next_update: Time::ZERO + update,
            p: 0.0,
            delay_old_s: 0.0,
            allowance_s: s.number("burst"),
            passed: 0.0,
        }
    }

    fn delay_s(&self) -> f64 {
        match self.byte_s {
            Some(byte_s) => self.fifo.bytes() as f64 * byte_s,
            None if self.fifo.len() == 0 => 0.0,
            None => self.last_wait_s,
        }
    }

    /// Applies all updates that were due by `now`.
    #[inline]
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let before = (self.p, self.delay_old_s, self.allowance_s);
            self.step(self.delay_s());
            self.next_update += self.update;
            if before == (self.p, self.delay_old_s, self.allowance_s) {
                // Further updates would change no state: skip to the last one that is due.
                let behind = now.since(self.next_update).as_nanos() / self.update.as_nanos().max(1);
                self.next_update += self.update.saturating_mul(behind);
            }
        }
    }

    /// One update (RFC 8033 section 4.2, with the limit of section 5.5 on its size).
    fn step(&mut self, delay_s: f64) {
        let error =
            self.alpha * (delay_s - self.target_s) + self.beta * (delay_s - self.delay_old_s);
        let mut change = error * scale(self.p);
        if self.p >= 0.1 {
            change = change.min(0.02);
        }
        self.p += change;
        if delay_s == 0.0 && self.delay_old_s == 0.0 {
            self.p *= 0.98;
        }
        self.p = self.p.clamp(0.0, 1.0);
        self.allowance_s = (self.allowance_s - self.update.as_secs_f64()).max(0.0);
        let half = self.target_s / 2.0;
        if self.p == 0.0 && delay_s < half && self.delay_old_s < half {
            self.allowance_s = self.burst_s;
        }
        self.delay_old_s = delay_s;
    }

    /// Whether this arrival is dropped or marked (RFC 8033 sections 4.1 and 5.4).
    fn strikes(&mut self) -> bool {
        if self.allowance_s > 0.0 {
            return false;
        }
        let calm = self.delay_old_s < self.target_s / 2.0 && self.p < 0.2;
        if calm || self.fifo.bytes() <= 2 * u64::from(self.mtu) {
            return false;
        }
        if self.p == 0.0 {
            self.passed = 0.0;
        }
        self.passed += self.p;
        if self.passed < 0.85 {
            return false;
        }
        let hit = self.passed >= 8.5 || self.stream.chance(self.p);
        if hit {
            self.passed = 0.0;
        }
        hit
    }
}

impl Discipline for Pie {
    fn enqueue(
        &mut self,
        now: Time,
        mut packet: QueuedPacket,
        idle: bool,
        observer: &mut dyn QueueObserver,
    ) -> bool {
        self.catch_up(now);
        self.mtu = self.mtu.max(packet.size);
        if !idle && !self.fifo.has_room(packet.size) {
            self.passed = 0.0;
            observer.dropped(&packet);
            return false;
        }
        if self.strikes() {
            if !self.ecn || self.p > self.mark_p || !packet.ect {
                observer.dropped(&packet);
                return false;
            }
            packet.marked = true;
            observer.marked(&packet);
        }
        self.fifo.push(now, packet);
        true
    }
    fn dequeue(
        &mut self,
        now: Time,
        _observer: &mut dyn QueueObserver,
    ) -> Option<(Time, QueuedPacket)> {
        self.catch_up(now);
        let head = self.fifo.pop()?;
        self.last_wait_s = now.since(head.0).as_secs_f64();
        Some(head)
    }
    fn waiting(&self) -> usize {
        self.fifo.len()
    }
    fn change_rate(&mut self, now: Time, rate: Rate) {
        self.catch_up(now);
        if self.byte_s.is_some() {
            self.byte_s = Some(8.0 / (rate.as_bps() as f64).max(1.0));
        }
    }
}

#[cfg(test)]
#[path = "pie_tests.rs"]
mod tests;
