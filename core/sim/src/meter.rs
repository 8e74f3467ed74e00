//! Counters of a link, per group of flows.

use crate::packet_log::{PacketEvent, PacketEventKind};
use crate::result::{LINK_TICK_S, LinkGroup, LinkResult, LinkTicks, MAX_BINS, QueueAverage};
use narrows_base::{Packet, Time};
use narrows_link::Meter;

/// Counts of one link over the measured span and over the current sample interval.
#[derive(Debug)]
pub(crate) struct LinkMeter {
    from: Time,
    until: Time,
    groups: Vec<LinkGroup>,
    served_bits: f64,
    /// Sum of waiting time: packets times nanoseconds.
    waiting: f64,
    /// On a link that serves packet by packet: the present number of waiting packets, and since
    /// when.
    level: Option<(Time, usize)>,
    queue_max: usize,
    average: Averages,
    /// Bits of all groups, offered and served, at the end of each tick of [`LINK_TICK_S`].
    offered_ticks: Ticks,
    served_ticks: Ticks,
    /// Counts per sample interval, if sampled.
    pub bins: Option<Bins>,
    /// Data packets (flow and number) that the queue dropped and that have not been classified yet; kept only if a
    /// receiver classifies losses.
    pub drops: Option<Vec<(u32, u64)>>,
    /// Data packets that the queue dropped or the link lost, if single packets are logged.
    pub packet_log: Option<Vec<PacketEvent>>,
}

/// The queue's own average, sampled at arrivals.
#[derive(Debug)]
struct Averages {
    min: f64,
    max: f64,
    sum: f64,
    count: u64,
}

impl Averages {
    const NONE: Averages = Averages { min: f64::INFINITY, max: 0.0, sum: 0.0, count: 0 };

    fn result(&self) -> Option<QueueAverage> {
        let mean = self.sum / self.count as f64;
        (self.count > 0).then_some(QueueAverage { min: self.min, mean, max: self.max })
    }
}

/// Length of a tick, in nanoseconds.
const TICK_NS: u64 = (LINK_TICK_S * 1e9) as u64;

/// Cumulative counts of each group at the end of each tick. A packet costs one comparison.
#[derive(Debug)]
struct Ticks {
    /// When the current tick ends; never if ticks are not kept.
    next: u64,
    counts: Vec<f64>,
}

impl Ticks {
    fn new(from: Time, keep: bool) -> Ticks {
        let next = if keep { from.as_nanos().saturating_add(TICK_NS) } else { u64::MAX };
        Ticks { next, counts: Vec::new() }
    }
    /// Time has reached `t`; `count` is a group's cumulative count before `t`.
    #[cold]
    #[inline(never)]
    fn pass(&mut self, t: u64, groups: &[LinkGroup], count: fn(&LinkGroup) -> f64) {
        while self.next <= t && self.next < u64::MAX {
            self.counts.extend(groups.iter().map(count));
            self.next = self.next.saturating_add(TICK_NS);
        }
    }
    /// A group's count in each tick.
    fn of(&self, group: usize, groups: usize) -> Vec<f64> {
        let mut before = 0.0;
        let counts = self.counts.iter().skip(group).step_by(groups.max(1));
        counts.map(|c| c - std::mem::replace(&mut before, *c)).collect()
    }
}

/// Counts per sample interval. A computed link reports departures ahead of time, so the bins extend
/// beyond the present.
#[derive(Debug)]
pub(crate) struct Bins {
    start: u64,
    interval: u64,
    pub counts: Vec<Bin>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bin {
    pub bits: f64,
    pub drops: u32,
    pub losses: u32,
    pub queue_max: u32,
}

impl Bins {
    pub fn new(start: Time, interval: u64, end: Time) -> Bins {
        let n = end.since(start).as_nanos() / interval.max(1) + 2;
        let counts = vec![Bin::default(); usize::try_from(n).unwrap_or(0)];
        Bins { start: start.as_nanos(), interval: interval.max(1), counts }
    }
    /// The bin that ends at or after `t`. Bin k covers the interval before sample k.
    #[inline]
    pub fn at(&mut self, t: Time) -> Option<&mut Bin> {
        let offset = t.as_nanos().checked_sub(self.start);
        let index = offset.map_or(0, |o| o.div_ceil(self.interval));
        self.counts.get_mut(index as usize)
    }
}

impl LinkMeter {
    pub fn new(from: Time, until: Time, groups: usize) -> LinkMeter {
        let ticks = until.since(from).as_nanos() / TICK_NS;
        let keep = ticks.saturating_mul(groups as u64) <= MAX_BINS;
        LinkMeter {
            from,
            until,
            groups: vec![LinkGroup::default(); groups],
            served_bits: 0.0,
            waiting: 0.0,
            level: None,
            queue_max: 0,
            average: Averages::NONE,
            offered_ticks: Ticks::new(from, keep),
            served_ticks: Ticks::new(from, keep),
            bins: None,
            drops: None,
            packet_log: None,
        }
    }
    #[inline]
    fn counts(&self, t: Time) -> bool {
        t >= self.from && t <= self.until
    }
    /// Packet-nanoseconds of `level` until `now`, within the measured span.
    #[inline]
    fn area(&self, now: Time) -> f64 {
        self.level.map_or(0.0, |(since, packets)| {
            let a = since.max(self.from);
            let b = now.min(self.until);
            b.since(a).as_nanos() as f64 * packets as f64
        })
    }
    pub fn result(&mut self, name: &str, managed: bool, capacity_bits: f64) -> LinkResult {
        let span = self.until.since(self.from).as_nanos().max(1);
        let end = self.until.as_nanos();
        let groups = self.groups.len();
        self.offered_ticks.pass(end, &self.groups, |g| g.offered_bytes as f64 * 8.0);
        self.served_ticks.pass(end, &self.groups, |g| g.served_bits);
        let kept = |g| LinkTicks {
            offered: self.offered_ticks.of(g, groups),
            served: self.served_ticks.of(g, groups),
        };
        LinkResult {
            name: name.to_string(),
            capacity_bits,
            served_bits: self.served_bits,
            queue_mean: (self.waiting + self.area(self.until)) / span as f64,
            queue_max: self.queue_max as u64,
            managed,
            average: self.average.result(),
            groups: self.groups.clone(),
            ticks: (0..groups).map(kept).collect(),
        }
    }
}

/// The link's counters, and the group of each flow.
pub(crate) struct At<'a> {
    pub meter: &'a mut LinkMeter,
    pub group: u32,
}

impl At<'_> {
    #[inline]
    fn group(&mut self, packet: &Packet) -> Option<&mut LinkGroup> {
        if packet.has(Packet::ACK) {
            return None;
        }
        self.meter.groups.get_mut(self.group as usize)
    }
    fn log(&mut self, at: Time, packet: &Packet, kind: PacketEventKind) {
        if let Some(log) = self.meter.packet_log.as_mut().filter(|_| !packet.has(Packet::ACK)) {
            log.push(PacketEvent { at, flow: packet.flow, number: packet.seq, kind });
        }
    }
}

impl Meter<Packet> for At<'_> {
    #[inline]
    fn offered(&mut self, now: Time, packet: &Packet) {
        if self.meter.counts(now) {
            if now.as_nanos() >= self.meter.offered_ticks.next {
                let LinkMeter { offered_ticks, groups, .. } = &mut *self.meter;
                offered_ticks.pass(now.as_nanos(), groups, |g| g.offered_bytes as f64 * 8.0);
            }
            if let Some(g) = self.group(packet) {
                g.offered += 1;
                g.offered_bytes += u64::from(packet.size);
            }
        }
    }
    fn dropped(&mut self, now: Time, packet: &Packet) {
        if self.meter.counts(now)
            && let Some(g) = self.group(packet)
        {
            g.dropped += 1;
        }
        if let Some(drops) = self.meter.drops.as_mut().filter(|_| !packet.has(Packet::ACK)) {
            drops.push((packet.flow, packet.seq));
        }
        self.log(now, packet, PacketEventKind::Dropped);
        if let Some(bin) = self.meter.bins.as_mut().and_then(|b| b.at(now)) {
            bin.drops += 1;
        }
    }
    fn marked(&mut self, now: Time, packet: &Packet) {
        if self.meter.counts(now)
            && let Some(g) = self.group(packet)
        {
            g.marked += 1;
        }
    }
    fn averaged(&mut self, now: Time, packets: f64) {
        if self.meter.counts(now) {
            let a = &mut self.meter.average;
            a.min = a.min.min(packets);
            a.max = a.max.max(packets);
            a.sum += packets;
            a.count += 1;
        }
    }
    #[inline]
    fn queued(&mut self, now: Time, waiting: usize) {
        if waiting > self.meter.queue_max && self.meter.counts(now) {
            self.meter.queue_max = waiting;
        }
        if let Some(bin) = self.meter.bins.as_mut().and_then(|b| b.at(now)) {
            bin.queue_max = bin.queue_max.max(waiting as u32);
        }
    }
    #[inline]
    fn waiting(&mut self, now: Time, packets: usize) {
        self.meter.waiting += self.meter.area(now);
        self.meter.level = Some((now, packets));
    }
    #[inline(always)]
    fn served(&mut self, packet: &Packet, arrived: Time, start: Time, end: Time) {
        let bits = f64::from(packet.size) * 8.0;
        if start > arrived && self.meter.level.is_none() {
            let a = arrived.max(self.meter.from);
            let b = start.min(self.meter.until);
            self.meter.waiting += b.since(a).as_nanos() as f64;
        }
        if self.meter.counts(end) {
            if end.as_nanos() >= self.meter.served_ticks.next {
                let LinkMeter { served_ticks, groups, .. } = &mut *self.meter;
                served_ticks.pass(end.as_nanos(), groups, |g| g.served_bits);
            }
            // Of a transmission that began before the measured span, only the rest counts.
            let from = self.meter.from;
            let bits = if start < from {
                bits * end.since(from).as_secs_f64() / end.since(start).as_secs_f64()
            } else {
                bits
            };
            self.meter.served_bits += bits;
            if let Some(g) = self.group(packet) {
                g.served += 1;
                g.served_bits += bits;
            }
        }
        if let Some(bin) = self.meter.bins.as_mut().and_then(|b| b.at(end)) {
            bin.bits += bits;
        }
    }
    fn lost(&mut self, at: Time, packet: &Packet) {
        if self.meter.counts(at)
            && let Some(g) = self.group(packet)
        {
            g.lost += 1;
        }
        if let Some(bin) = self.meter.bins.as_mut().and_then(|b| b.at(at)) {
            bin.losses += 1;
        }
        self.log(at, packet, PacketEventKind::Lost);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_averages_count_in_the_measured_span_alone() {
        let at = |s: u64| Time::from_nanos(s * 1_000_000_000);
        let mut meter = LinkMeter::new(at(10), at(20), 2);
        let data = Packet {
            seq: 1,
            number: 1,
            size: 1000,
            flags: Packet::ECT | Packet::CE,
            ..Packet::default()
        };
        for (s, average) in [(5, 90.0), (11, 2.0), (12, 7.0), (13, 3.0), (25, 0.0)] {
            let mut here = At { meter: &mut meter, group: 1 };
            here.marked(at(s), &data);
            here.marked(at(s), &Packet { flags: Packet::ACK, ..data });
            here.averaged(at(s), average);
        }
        let r = meter.result("l", true, 1.0);
        assert_eq!((r.groups[0].marked, r.groups[1].marked), (0, 3), "data alone");
        assert_eq!(r.average, Some(QueueAverage { min: 2.0, mean: 4.0, max: 7.0 }));
        assert_eq!(LinkMeter::new(at(0), at(1), 1).result("l", true, 1.0).average, None);
    }
}
