//! The samples of a real run in the form of a simulation's result.

use super::{KernelTcp, KernelTcpFlow, LinkLook, TcpSample, TcpSamples};
use narrows_base::Time;
use narrows_emulator::WayStats;
use narrows_kernel::TcpInfo;
use narrows_sim::{
    FlowResult, GroupResult, LinkGroup, LinkResult, NetworkSpec, RunResult, SeriesTable, variation,
};

/// Differences of counts that only grow.
fn since(now: u64, before: u64) -> u64 {
    now.saturating_sub(before)
}

impl KernelTcp<'_> {
    /// Links that are metered, in the order of the specification; those that are not this one are empty.
    pub(super) fn result(&self, flows: &[KernelTcpFlow], seen: &TcpSamples) -> RunResult {
        let NetworkSpec { measure_from, end, .. } = *self.network;
        let mut result = RunResult::default();
        result.span_s = end.since(measure_from).as_secs_f64();
        let group = |(g, spec): (usize, &narrows_sim::GroupSpec)| {
            let mut group = GroupResult::default();
            group.name.clone_from(&spec.name);
            group.rtt = seen.rtt[g].clone();
            let own = flows.iter().enumerate().filter(|(_, f)| f.group() == g);
            group.flows = own.map(|(n, flow)| self.flow(n, flow, &seen.looks)).collect();
            group
        };
        result.groups = self.network.groups.iter().enumerate().map(group).collect();
        let metered = self.network.links.iter().enumerate().filter(|(_, l)| l.metered);
        result.links = metered.map(|(at, _)| self.link_result(at, &seen.link)).collect();
        if self.network.series.is_some() {
            result.series = self.series(flows, seen);
        }
        result
    }

    /// Result of connection `n` in the measured span.
    fn flow(&self, n: usize, flow: &KernelTcpFlow, looks: &[TcpSample]) -> FlowResult {
        let NetworkSpec { measure_from, end, .. } = *self.network;
        let own = || looks.iter().filter(|l| l.flow == n);
        let before = own().take_while(|l| l.at < measure_from).last();
        let before = before.map_or(TcpInfo::default(), |l| l.info);
        let last = own().next_back().map_or(TcpInfo::default(), |l| l.info);
        let arrived = flow.arrived();
        let arrivals = arrived.iter().map(|(at, n)| (at.since(measure_from).as_nanos(), *n));
        let mut result = FlowResult::default();
        (result.bins_1s, result.detail) = variation(arrivals, end.since(measure_from).as_nanos());
        result.start = flow.start();
        result.goodput_bytes = arrived.iter().map(|(_, n)| n).sum();
        result.sent_bytes = since(last.bytes_sent, before.bytes_sent);
        result.sent_packets = since(last.segments_sent.into(), before.segments_sent.into());
        result.retransmissions = since(last.retransmissions.into(), before.retransmissions.into());
        result.lost_packets = result.retransmissions;
        result.timeouts = since(last.timeouts.into(), before.timeouts.into());
        result
    }

    fn link_result(&self, at: usize, looks: &[LinkLook]) -> LinkResult {
        let NetworkSpec { measure_from, end, .. } = *self.network;
        let spec = &self.network.links[at];
        let mut result = LinkResult::default();
        result.name.clone_from(&spec.name);
        result.managed = spec.config.queue.aqm.is_some();
        let way = |look: &LinkLook| -> WayStats {
            if at == self.link[0] { look.stats.forward.clone() } else { look.stats.reverse.clone() }
        };
        let before = looks.iter().take_while(|l| l.at < measure_from).last().map(way);
        let before = before.unwrap_or_default().packets;
        let Some(last) = looks.last().map(way).filter(|_| self.link.contains(&at)) else {
            return result;
        };
        let last = last.packets;
        let span_s = end.since(measure_from).as_secs_f64();
        result.capacity_bits = self.capacity_bits(at);
        result.served_bits = since(last.served_bytes, before.served_bytes) as f64 * 8.0;
        // Little: the sum of all waits is the sum of all lengths over time.
        result.queue_mean = (last.waited_s - before.waited_s).max(0.0) / span_s;
        let measured = looks.iter().filter(|l| l.at >= measure_from);
        result.queue_max = measured.map(|l| l.most_waiting as u64).max().unwrap_or(0);
        // Packets are attributed to a group only if there is a single one.
        let mut group = LinkGroup::default();
        group.arriving_capacity_bits = result.capacity_bits;
        result.groups = vec![group; self.network.groups.len()];
        let whose = |g: &usize| {
            self.network.groups[*g]
                .flows
                .iter()
                .any(|f| f.forward.contains(&(at as u32)) || f.back.contains(&(at as u32)))
        };
        let groups: Vec<usize> = (0..self.network.groups.len()).filter(whose).collect();
        if let [one] = groups[..] {
            let group = &mut result.groups[one];
            group.offered = since(last.offered_packets, before.offered_packets);
            group.offered_bytes = since(last.offered_bytes, before.offered_bytes);
            group.dropped = since(last.dropped, before.dropped);
            group.marked = since(last.marked, before.marked);
            group.lost = since(last.lost, before.lost);
            group.served = since(last.served_packets, before.served_packets);
            group.served_bits = result.served_bits;
        }
        result
    }

    /// Over the measured span; a trace's opportunities are not counted here.
    fn capacity_bits(&self, at: usize) -> f64 {
        let NetworkSpec { measure_from, end, .. } = *self.network;
        let mut rate = self.network.links[at].config.rate;
        let mut from = measure_from;
        let mut bits = 0.0;
        let changes = self.network.changes.iter().filter(|c| c.1 == at);
        for (when, _, change) in changes {
            let narrows_link::LinkChange::Rate(next) = change else { continue };
            let until = (*when).clamp(measure_from, end);
            bits += rate.as_bps() as f64 * until.since(from).as_secs_f64();
            from = until;
            rate = *next;
        }
        bits + rate.as_bps() as f64 * end.since(from).as_secs_f64()
    }

    /// The kernel's columns, under the simulator's names.
    fn series(&self, flows: &[KernelTcpFlow], seen: &TcpSamples) -> Vec<SeriesTable> {
        let Some(spec) = &self.network.series else { return Vec::new() };
        let step = spec.interval.as_secs_f64().max(1e-3);
        let is_due = |at: Time, next: &mut f64| {
            let due = at.as_secs_f64() >= *next;
            if due {
                *next = at.as_secs_f64() + step;
            }
            due
        };
        let mut tables = Vec::new();
        let mut counts = vec![0; self.network.groups.len()];
        for (n, flow) in flows.iter().enumerate() {
            let number = counts[flow.group()];
            counts[flow.group()] += 1;
            if number >= spec.flows_per_group {
                continue;
            }
            let mut next = 0.0;
            let own = seen.looks.iter().filter(|l| l.flow == n);
            let rows: Vec<&TcpSample> = own.filter(|l| is_due(l.at, &mut next)).collect();
            let column = |of: fn(&TcpInfo) -> f64| rows.iter().map(|l| of(&l.info)).collect();
            let group = self.network.groups[flow.group()].name.clone();
            tables.push(SeriesTable {
                kind: "flow",
                name: format!("{group}.{number}"),
                group,
                time_s: rows.iter().map(|l| l.at.as_secs_f64()).collect(),
                columns: vec![
                    ("cwnd", column(|i| f64::from(i.cwnd))),
                    ("rtt_s", column(|i| f64::from(i.rtt_us) * 1e-6)),
                ],
            });
        }
        let mut next = 0.0;
        let rows: Vec<&LinkLook> = seen.link.iter().filter(|l| is_due(l.at, &mut next)).collect();
        let served = |l: &LinkLook| l.stats.forward.packets.served_bytes as f64 * 8.0;
        let mut throughput = vec![f64::NAN; rows.len().min(1)];
        throughput.extend(rows.windows(2).map(|w| {
            (served(w[1]) - served(w[0])) / w[1].at.since(w[0].at).as_secs_f64().max(1e-9)
        }));
        tables.push(SeriesTable {
            kind: "link",
            name: self.network.links[self.link[0]].name.clone(),
            group: String::new(),
            time_s: rows.iter().map(|l| l.at.as_secs_f64()).collect(),
            columns: vec![
                ("queue", rows.iter().map(|l| l.stats.forward.waiting as f64).collect()),
                ("throughput_bps", throughput),
            ],
        });
        tables
    }
}
