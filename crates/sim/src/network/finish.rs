//! From a network at its end to what was measured.

use super::Network;
use crate::flow::Span;
use crate::result::{GroupResult, RunResult};
use crate::spec::NetworkSpec;
use narrows_base::Time;
use narrows_path::queue;

impl Network {
    pub(super) fn finish(mut self, spec: &NetworkSpec) -> RunResult {
        let interval_s = spec.series.as_ref().map_or(1.0, |s| s.interval.as_secs_f64());
        let mut groups: Vec<GroupResult> = spec
            .groups
            .iter()
            .zip(self.rtts)
            .map(|(g, rtt)| GroupResult { name: g.name.clone(), flows: Vec::new(), rtt })
            .collect();
        let mut delivered_packets = 0;
        let span = Span { from: self.from, end: self.end, keep: self.keep };
        let flows = self.flows.iter_mut().zip(&self.routes).zip(&self.applications);
        for ((flow, route), a) in flows {
            delivered_packets += flow.receiver.delivered_packets();
            let mut stats = std::mem::take(&mut flow.stats);
            let result = stats.result(flow, a, span);
            groups[route.group as usize].flows.push(result);
        }
        let mut series: Vec<_> =
            self.flow_series.into_iter().map(|s| s.table(&self.time_s)).collect();
        for one in self.queue_series {
            let meter = &self.meters[self.nodes[one.link].meter as usize];
            let name = &spec.links[one.link].name;
            series.push(one.table(name, meter, &self.time_s, interval_s));
        }
        let metered = spec.links.iter().enumerate().filter(|(_, l)| l.metered);
        let links = metered
            .zip(&mut self.meters)
            .map(|((i, l), m)| {
                let managed = queue::is_managed(&l.config.queue);
                m.result(&l.name, managed, capacity_bits(spec, i))
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

/// Bits that a link could have served in the measured span, its changes and its trace considered.
fn capacity_bits(spec: &NetworkSpec, link: usize) -> f64 {
    let config = &spec.links[link].config;
    let (from, end) = (spec.measure_from, spec.end);
    if let Some(trace) = &config.trace {
        return trace.bytes_between(from, end) * 8.0;
    }
    let (mut rate, mut since, mut bits) = (config.rate, Time::ZERO, 0.0);
    let part = |a: Time, b: Time| b.min(end).since(a.max(from)).as_secs_f64();
    let mut changes: Vec<_> = spec.changes.iter().filter(|c| c.1 == link).collect();
    changes.sort_by_key(|c| c.0);
    for (at, _, change) in changes {
        if let narrows_path::Change::Rate(new) = change {
            bits += part(since, *at) * rate.as_bps() as f64;
            (rate, since) = (*new, *at);
        }
    }
    bits + part(since, end) * rate.as_bps() as f64
}
