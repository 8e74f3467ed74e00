//! RED: early drops by an average of the queue (Floyd and Jacobson 1993), with ns-2's later rules.
//!
//! Averages, thresholds and counts are packets, or with `mode=bytes` bytes over the mean packet's.
//! S1 (section 6.2.2) prints ns-2's rule for the weight without its floor of 100 ms under the RTT;
//! ns-2 has it, and on S1's links it decides. `rtt-floor=0s` is S1 as printed.
//! After a change of the rate the weight stays, as S1 wants it, and thresholds that follow from a
//! delay follow the rate.

use super::average::Averaged;
use super::fifo::Fifo;
use super::red_descriptor::EPISODE_S;
use super::{Discipline, LinkAhead, QueueEntry, QueueObserver, QueuedPacket};
use crate::config::QueueLimit;
use narrows_base::{RandomStream, Rate, Settings, Time, math};

use super::red_descriptor::{RED, check};

/// RED's entry.
pub(super) const ENTRY: QueueEntry = QueueEntry {
    check,
    ..QueueEntry::new(&RED, |s| {
        Box::new(Red::new(s.settings, s.limit, s.link, s.random_key.stream()))
    })
};

/// What the parameters come to on a link.
#[derive(Clone, Debug)]
struct Law {
    min: f64,
    max: f64,
    weight: f64,
    mean_packet: f64,
    /// Target delay in seconds, if the thresholds follow from it.
    target_s: Option<f64>,
    in_bytes: bool,
    gentle: bool,
    adaptive: bool,
    /// Smallest max-p that adaptation reaches.
    bottom: f64,
    wait: bool,
    cautious: bool,
    random_victim: bool,
    ecn: bool,
    mark_p: f64,
    packets_per_s: f64,
}

impl Law {
    fn new(s: &Settings, ahead: LinkAhead) -> Law {
        let mean_packet = s.number("mean-packet");
        let packets_per_s = ahead.packets_per_s(mean_packet);
        let (min, max) = (s.number("min"), s.number("max"));
        let mut law = Law {
            min: if min > 0.0 { min } else { max / 3.0 },
            max: if max > 0.0 { max } else { 3.0 * min },
            weight: weight(s.number("weight"), s.number("rtt-floor"), ahead.delay_s, packets_per_s),
            mean_packet,
            target_s: (min == 0.0 && max == 0.0).then(|| s.number("target-delay")),
            in_bytes: s.choice("mode") == "bytes",
            gentle: s.choice("gentle") == "on",
            adaptive: s.choice("adaptive") == "on",
            bottom: (80_000.0 / ahead.bps).min(0.01),
            wait: s.choice("wait") == "on",
            cautious: s.choice("cautious") == "on",
            random_victim: s.choice("victim") == "random",
            ecn: s.choice("ecn") == "on",
            mark_p: s.number("mark-p"),
            packets_per_s,
        };
        law.follow(ahead.bps);
        law
    }

    /// The rate is this many bit/s now.
    fn follow(&mut self, bps: f64) {
        self.packets_per_s = bps / (8.0 * self.mean_packet);
        if let Some(target_s) = self.target_s {
            // S1 eqs. 6.5 and 6.6, with the 5 packets of its footnote 10.
            self.min = (target_s * self.packets_per_s / 2.0).max(5.0);
            self.max = 3.0 * self.min;
        }
    }

    /// The probability by the average alone: p_b.
    fn by_average(&self, average: f64, max_p: f64) -> f64 {
        let p = if average < self.max {
            max_p * (average - self.min) / (self.max - self.min)
        } else if self.gentle {
            max_p + (1.0 - max_p) * (average - self.max) / self.max
        } else {
            1.0
        };
        p.clamp(0.0, 1.0)
    }

    /// The probability with `count` packets since the last drop: p_a, which makes the distance
    /// between drops uniform; and in byte mode with this packet's share of a mean one.
    fn spread(&self, p: f64, count: f64, share: f64) -> f64 {
        let passed = count * p;
        let spread = match self.wait {
            true if passed < 1.0 => 0.0,
            true if passed < 2.0 => p / (2.0 - passed),
            false if passed < 1.0 => p / (1.0 - passed),
            _ => 1.0,
        };
        if self.in_bytes && spread < 1.0 { (spread * share).min(1.0) } else { spread.min(1.0) }
    }
}

/// The weight that a number or one of ns-2's conventions means (its RED, 2001 and later; S1
/// eqs. 6.2 to 6.4 are -1 without the floor).
fn weight(given: f64, floor_s: f64, delay_s: f64, packets_per_s: f64) -> f64 {
    let over = |packets: f64| 1.0 - math::exp(-1.0 / packets);
    if given > 0.0 {
        given
    } else if given == 0.0 {
        over(packets_per_s)
    } else if given == -1.0 {
        let rtt_s = (3.0 * (delay_s + 1.0 / packets_per_s)).max(floor_s);
        over(10.0 * rtt_s * packets_per_s)
    } else {
        over(packets_per_s / 10.0)
    }
}

/// A queue under RED.
pub(super) struct Red {
    law: Law,
    max_p: f64,
    /// When adaptation last moved max-p.
    adapted: Time,
    /// Packets since the last drop, or bytes over the mean packet's.
    count: f64,
    /// Whether the average was already above the lower threshold at the arrival before.
    above: bool,
    stream: RandomStream,
    line: Averaged,
}

impl Red {
    pub fn new(s: &Settings, limit: QueueLimit, ahead: LinkAhead, stream: RandomStream) -> Red {
        let law = Law::new(s, ahead);
        let per_packet = law.in_bytes.then_some(law.mean_packet);
        Red {
            law,
            max_p: s.number("max-p"),
            adapted: Time::ZERO,
            count: 0.0,
            above: false,
            stream,
            line: Averaged::new(Fifo::new(limit), per_packet),
        }
    }

    /// Adaptive RED (Floyd, Gummadi, Shenker 2001): keeps the average in the middle fifth.
    #[inline]
    fn adapt(&mut self, now: Time) {
        if !self.law.adaptive || now.since(self.adapted).as_secs_f64() <= EPISODE_S {
            return;
        }
        let part = 0.4 * (self.law.max - self.law.min);
        if self.line.average < self.law.min + part && self.max_p > self.law.bottom {
            self.max_p *= 0.9;
            self.adapted = now;
        } else if self.line.average > self.law.max - part && self.max_p < 0.5 {
            self.max_p += (self.max_p / 4.0).min(0.01);
            self.adapted = now;
        }
    }

    /// Whether this arrival is struck early; then with which p_b.
    fn strikes(&mut self, queue: f64, share: f64) -> Option<f64> {
        let p = self.law.by_average(self.line.average, self.max_p);
        let spread = self.law.spread(p, self.count, share);
        if self.law.cautious {
            // The queue may have been empty for 50 ms, and the average not know it yet.
            let arrivals = self.law.packets_per_s * 0.05;
            if queue < self.line.average * math::pow(1.0 - self.law.weight, arrivals) {
                return None;
            }
        }
        self.stream.chance(spread).then_some(p)
    }

    /// Makes room for an arrival by dropping one of those that wait, drawn with the arrival
    /// among them; false if the arrival itself must go.
    fn evict(&mut self, size: u32, observer: &mut dyn QueueObserver) -> bool {
        while !self.line.fifo.has_room(size) {
            let n = self.line.fifo.len();
            let victim = (self.stream.unit() * (n + 1) as f64) as usize;
            let Some(packet) = self.line.fifo.remove(victim) else { return false };
            observer.dropped(&packet);
        }
        true
    }
}

impl Discipline for Red {
    fn enqueue(
        &mut self,
        now: Time,
        mut packet: QueuedPacket,
        idle: bool,
        observer: &mut dyn QueueObserver,
    ) -> bool {
        let queue = self.line.arrival(now, self.law.weight, self.law.packets_per_s);
        self.adapt(now);
        let size = packet.size;
        let share = f64::from(size) / self.law.mean_packet;
        let step = if self.law.in_bytes { share } else { 1.0 };
        self.count += step;
        let full = !idle && !self.line.fifo.has_room(size);
        // ns-2: an arrival that finds at most one packet (in byte mode none) is never struck.
        let few =
            if self.law.in_bytes { self.line.fifo.len() == 0 } else { self.line.fifo.len() <= 1 };
        if self.line.average < self.law.min || few {
            self.above = false;
        } else if !self.above {
            (self.above, self.count) = (true, step);
        } else if !full && let Some(p) = self.strikes(queue, share) {
            self.count = 0.0;
            let marks = self.law.ecn && p <= self.law.mark_p && p < 1.0 && packet.ect;
            if !marks {
                observer.dropped(&packet);
                return false;
            }
            packet.marked = true;
            observer.marked(&packet);
        }
        if full {
            self.count = 0.0;
            if !self.law.random_victim || !self.evict(size, observer) {
                observer.dropped(&packet);
                return false;
            }
        }
        self.line.fifo.push(now, packet);
        true
    }
    fn dequeue(
        &mut self,
        now: Time,
        _observer: &mut dyn QueueObserver,
    ) -> Option<(Time, QueuedPacket)> {
        self.line.pop(now)
    }
    fn waiting(&self) -> usize {
        self.line.fifo.len()
    }
    fn change_rate(&mut self, _now: Time, rate: Rate) {
        self.law.follow((rate.as_bps() as f64).max(1.0));
    }
    fn average(&self) -> Option<f64> {
        Some(self.line.average)
    }
}

#[cfg(test)]
#[path = "red_tests.rs"]
mod tests;
