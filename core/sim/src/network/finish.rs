//! Computes the results of a network at the end of its run.

use super::Network;
use crate::flow::MeasuredSpan;
use crate::histogram::Histogram;
use crate::result::{GroupResult, RunResult};
use crate::spec::{GroupSpec, NetworkSpec};
use narrows_base::{Duration, Time};
use narrows_link::{LinkChange, queue};

impl Network {
    pub(super) fn finish(mut self, spec: &NetworkSpec) -> RunResult {
        let interval_s = spec.series.as_ref().map_or(1.0, |s| s.interval.as_secs_f64());
        let mut groups: Vec<GroupResult> = spec
            .groups
            .iter()
            .zip(self.rtts)
            .map(|(g, rtt)| GroupResult {
                name: g.name.clone(),
                flows: Vec::new(),
                rtt,
                frame_delay: Histogram::default(),
            })
            .collect();
        let mut delivered_packets = 0;
        let span = MeasuredSpan { from: self.from, end: self.end, keep: self.keep };
        let flows = self.flows.iter_mut().zip(&self.routes).zip(&mut self.applications);
        for ((flow, route), a) in flows {
            delivered_packets += flow.receiver.delivered_packets();
            let mut stats = std::mem::take(&mut flow.stats);
            let result = stats.result(flow, a, span);
            let group = &mut groups[route.group as usize];
            if let Some(frames) = &result.frames {
                group.frame_delay.add(&frames.delay);
            }
            group.flows.push(result);
        }
        let mut series: Vec<_> =
            self.series.flows.into_iter().map(|s| s.table(&self.series.time_s)).collect();
        for one in self.series.queues {
            let meter = &self.meters[self.nodes[one.link].meter as usize];
            let name = &spec.links[one.link].name;
            series.push(one.table(name, meter, &self.series.time_s, interval_s));
        }
        let metered = spec.links.iter().enumerate().filter(|(_, l)| l.metered);
        let links = metered
            .zip(&mut self.meters)
            .map(|((i, l), m)| {
                let managed = queue::is_managed(&l.config.queue);
                let capacity = capacity_bits(spec, i, spec.measure_from, spec.end);
                let mut result = m.result(&l.name, managed, capacity);
                for (found, group) in result.groups.iter_mut().zip(&spec.groups) {
                    found.arriving_capacity_bits = arriving_capacity_bits(spec, i, group, capacity);
                }
                result
            })
            .collect();
        RunResult {
            digest: self.digest,
            events: self.events,
            delivered_packets,
            span_s: self.end.since(self.from).as_secs_f64(),
            groups,
            links,
            series,
        }
    }
}

/// Bits that a link could have served between two times, according to its rate changes and its
/// trace.
fn capacity_bits(spec: &NetworkSpec, link: usize, from: Time, end: Time) -> f64 {
    let config = &spec.links[link].config;
    if let Some(trace) = &config.trace {
        return trace.bytes_between(from, end) * 8.0;
    }
    let mut rate = config.rate;
    let mut since = Time::ZERO;
    let mut bits = 0.0;
    let part = |a: Time, b: Time| b.min(end).since(a.max(from)).as_secs_f64();
    let mut changes: Vec<_> = spec.changes.iter().filter(|c| c.1 == link).collect();
    changes.sort_by_key(|c| c.0);
    for (at, _, change) in changes {
        if let LinkChange::Rate(new) = change {
            bits += part(since, *at) * rate.as_bps() as f64;
            rate = *new;
            since = *at;
        }
    }
    bits + part(since, end) * rate.as_bps() as f64
}

/// Computes [`LinkGroup::arriving_capacity_bits`](crate::LinkGroup::arriving_capacity_bits): equal to `capacity`, the
/// link's capacity over the span itself, if the rate never changes.
fn arriving_capacity_bits(
    spec: &NetworkSpec,
    link: usize,
    group: &GroupSpec,
    capacity: f64,
) -> f64 {
    let changes = |c: &(Time, usize, LinkChange)| c.1 == link && matches!(c.2, LinkChange::Rate(_));
    if spec.links[link].config.trace.is_none() && !spec.changes.iter().any(changes) {
        return capacity;
    }
    let mut sum = 0.0;
    let mut flows = 0.0;
    // Many flows share the same path from here.
    let mut last: Option<(&[u32], f64)> = None;
    for flow in &group.flows {
        let Some(at) = flow.forward.iter().position(|l| *l as usize == link) else { continue };
        let rest = &flow.forward[at..];
        let bits = match last {
            Some((way, bits)) if way == rest => bits,
            _ => {
                let earlier = |t: Time| {
                    let delay: Duration = rest
                        .iter()
                        .fold(Duration::ZERO, |sum, l| sum + delay(spec, *l as usize, t));
                    Time::ZERO + t.since(Time::ZERO + delay)
                };
                capacity_bits(spec, link, earlier(spec.measure_from), earlier(spec.end))
            }
        };
        last = Some((rest, bits));
        sum += bits;
        flows += 1.0;
    }
    if flows > 0.0 { sum / flows } else { capacity }
}

/// A link's propagation delay for a packet that arrives at `t`.
fn delay(spec: &NetworkSpec, link: usize, t: Time) -> Duration {
    let mut last = (Time::ZERO, spec.links[link].config.delay);
    for (at, of, change) in &spec.changes {
        if let LinkChange::Delay(new) = change
            && *of == link
            && (last.0..t).contains(at)
        {
            last = (*at, *new);
        }
    }
    last.1
}
