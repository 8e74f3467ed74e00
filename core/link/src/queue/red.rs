//! RED: early drops by the average queue (Floyd and Jacobson 1993), with ns-2's later additions.
//!
//! Averages, thresholds and counts are in packets, or with `mode=bytes` in bytes divided by the mean packet size. Choi
//! 2006 (section 6.2.2) prints ns-2's rule for the weight without its lower bound of 100 ms on the RTT. ns-2 has the
//! bound, and on the links of that paper it decides the weight. `rtt-floor=0s` is the printed rule. After a change of
//! the rate the weight stays, as in the paper, and thresholds derived from a target delay follow the rate.

use super::average::Averaged;
use super::discipline::{Discipline, LinkAhead, QueueEntry, QueueObserver};
use super::fifo::Fifo;
use super::packet::QueuedPacket;
use super::red_descriptor::EPISODE_S;
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

/// RED's parameters, resolved for a link.
#[derive(Clone, Debug)]
struct Law {
    min: f64,
    max: f64,
    weight: f64,
    mean_packet: f64,
    /// Target delay in seconds, if the thresholds are derived from it.
    target_s: Option<f64>,
    in_bytes: bool,
    gentle: bool,
    adaptive: bool,
    /// The smallest max-p that adaptation reaches.
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
        let min = s.number("min");
        let max = s.number("max");
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

    /// Adapts the thresholds to a new rate in bit/s.
    fn follow(&mut self, bps: f64) {
        self.packets_per_s = bps / (8.0 * self.mean_packet);
        if let Some(target_s) = self.target_s {
            // Choi 2006 eqs. 6.5 and 6.6, with the minimum of 5 packets from its footnote 10.
            self.min = (target_s * self.packets_per_s / 2.0).max(5.0);
            self.max = 3.0 * self.min;
        }
    }

    /// p_b: the probability by the average alone.
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

    /// p_a: the probability given `count` packets since the last drop, which makes the distance
    /// between drops uniform; in byte mode it is scaled by this packet's size relative to the mean.
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

/// The weight given by a number or by one of ns-2's conventions (RED in ns-2, 2001 and later; Choi 2006 eqs. 6.2 to 6.4
/// are -1 without the lower bound).
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
    /// Packets since the last drop, or bytes divided by the mean packet size.
    count: f64,
    /// Whether the average was above the lower threshold at the previous arrival.
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

    /// Adaptive RED (Floyd, Gummadi, Shenker 2001): keeps the average within the middle fifth
    /// between the thresholds.
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

    /// Whether this arrival is dropped or marked early; if so, the p_b that decided it.
    fn strikes(&mut self, queue: f64, share: f64) -> Option<f64> {
        let p = self.law.by_average(self.line.average, self.max_p);
        let spread = self.law.spread(p, self.count, share);
        if self.law.cautious {
            // The queue may have been empty for 50 ms before the average reflects it.
            let arrivals = self.law.packets_per_s * 0.05;
            if queue < self.line.average * math::pow(1.0 - self.law.weight, arrivals) {
                return None;
            }
        }
        self.stream.chance(spread).then_some(p)
    }

    /// Admits an arrival by dropping a random one of the waiting packets and the arrival. False if the arrival itself
    /// is dropped.
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
        // ns-2: no early drop if an arrival finds at most one packet, or in byte mode an empty queue.
        let few =
            if self.law.in_bytes { self.line.fifo.len() == 0 } else { self.line.fifo.len() <= 1 };
        if self.line.average < self.law.min || few {
            self.above = false;
        } else if !self.above {
            self.above = true;
            self.count = step;
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
