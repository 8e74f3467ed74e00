//! The figures of an item's runs.

use super::item::{BenchNetwork, BenchPart, PACKET};
use crate::stats::{jain, quantile};
use narrows_scenario::Plan;
use narrows_sim::{RunResult, SimError};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Figures by name, each with its unit in the name; medians over the seeds of a network. Those without a unit are
/// shares.
pub type Figures = BTreeMap<String, f64>;

/// One run.
pub struct SimulatedSeed {
    pub figures: Figures,
    /// The simulator's digest.
    pub digest: u64,
}

/// A flow with less than this part of an equal share over the measured span, of 18 to 108 s, starves.
const STARVED: f64 = 0.1;
/// Smallest share of the capacity in means of logarithms. A flow that delivered less counts with this share.
const LEAST_GOODPUT: f64 = 1e-3;

/// Runs one seed and measures it; `None` if `stop` was set.
///
/// # Errors
/// An error of the simulator; the message names the network.
pub fn run(
    item: &BenchNetwork,
    plan: &Plan,
    seed: u64,
    stop: &AtomicBool,
) -> Result<Option<SimulatedSeed>, String> {
    let network = plan.network(0, seed, false);
    let result = match narrows_sim::run(&network, &mut |_| !stop.load(Ordering::Relaxed)) {
        Ok(result) => result,
        Err(SimError::Interrupted) => return Ok(None),
        Err(e) => return Err(format!("{}: {e}", item.key())),
    };
    let mut figures = match item.part {
        BenchPart::Transfers | BenchPart::AccessTransfers => transfer(item, &result),
        BenchPart::Mixes | BenchPart::Pairs => mix(plan, &result),
        BenchPart::Networks
        | BenchPart::Access
        | BenchPart::Routes
        | BenchPart::Traces
        | BenchPart::Named => alone(item, plan, &result),
    };
    figures.insert("events", result.events as f64);
    let figures = figures.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    Ok(Some(SimulatedSeed { figures, digest: result.digest }))
}

type Named = BTreeMap<&'static str, f64>;

fn alone(item: &BenchNetwork, plan: &Plan, run: &RunResult) -> Named {
    let link = &run.links[plan.bottleneck(0)];
    let here = link.groups.first().copied().unwrap_or_default();
    let beside: f64 = link.groups.iter().skip(1).map(|g| g.served_bits).sum();
    let flow = &run.groups[0].flows[0];
    let payload = flow.sent_bytes as f64 / here.offered_bytes.max(1) as f64;
    let capacity = (here.arriving_capacity_bits * item.passes - beside).max(1.0);
    let goodput = 8.0 * flow.goodput_bytes as f64 / payload.max(0.5) / capacity;
    let least_s = base_rtt_s(item);
    let rtt = &run.groups[0].rtt;
    let rtt_s = |q: f64| rtt.quantile(q).map_or(f64::NAN, |ns| ns as f64 * 1e-9);
    let mean_s = rtt.mean().map_or(f64::NAN, |ns| ns * 1e-9);
    let packet_bits = 8.0 * f64::from(item.question.packet);
    let queue_ms = 1e3 * link.queue_mean * packet_bits * run.span_s / link.capacity_bits.max(1.0);
    let power = goodput.max(LEAST_GOODPUT).ln() - 0.5 * (mean_s / least_s).max(1.0).ln();
    Named::from([
        ("goodput", goodput),
        ("queue ms", queue_ms),
        ("rtt ms", 1e3 * mean_s),
        ("rtt p95 ms", 1e3 * rtt_s(0.95)),
        ("late p95 ms", 1e3 * (rtt_s(0.95) - least_s)),
        ("dropped", here.dropped as f64 / here.offered.max(1) as f64),
        ("power", if mean_s.is_finite() { power } else { LEAST_GOODPUT.ln() }),
    ])
}

/// Seconds of a round trip through empty queues, transmission of one packet included.
fn base_rtt_s(item: &BenchNetwork) -> f64 {
    let link = narrows_scenario::link::BottleneckLink::parse(
        &item.question.link,
        std::path::Path::new(""),
    );
    link.map_or(f64::NAN, |link| {
        let packet_s = 8.0 * f64::from(item.question.packet) / link.forward.mean_bps();
        link.base_rtt().as_secs_f64() + packet_s
    })
}

fn mix(plan: &Plan, run: &RunResult) -> Named {
    let link = &run.links[plan.bottleneck(0)];
    let bytes = |group: usize| -> Vec<f64> {
        let flows = run.groups.get(group).map_or(&[][..], |g| &g.flows);
        flows.iter().map(|f| f.goodput_bytes as f64).collect()
    };
    let own = bytes(0);
    // None in a pair of which one flow is alone.
    let others = bytes(1);
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len().max(1) as f64;
    let all: Vec<f64> = own.iter().chain(&others).copied().collect();
    let equal = link.capacity_bits / 8.0 / all.len() as f64;
    let starved = |x: &[f64]| x.iter().filter(|b| **b < STARVED * equal).count() as f64;
    let per_second = link.capacity_bits / run.span_s.max(1e-9);
    let served: f64 = link.groups.iter().map(|g| g.served_bits).sum();
    Named::from([
        ("equal Mbit/s", 8e-6 * equal / run.span_s),
        ("own Mbit/s", 8e-6 * mean(&own) / run.span_s),
        ("others Mbit/s", 8e-6 * mean(&others) / run.span_s),
        ("starved", starved(&others) / others.len() as f64),
        ("own starved", starved(&own) / own.len() as f64),
        ("jain", jain(&all)),
        ("used", served / link.capacity_bits.max(1.0)),
        ("queue ms", 1e3 * link.queue_mean * 8.0 * f64::from(PACKET) / per_second),
    ])
}

fn transfer(item: &BenchNetwork, run: &RunResult) -> Named {
    let flow = &run.groups[0].flows[0];
    let most = item.question.duration.as_secs_f64();
    let took = flow.done.map_or(most, |done| done.since(flow.start).as_secs_f64());
    Named::from([
        ("completion ms", 1e3 * took),
        ("not done", f64::from(u8::from(flow.done.is_none()))),
        ("sent over wanted", flow.sent_bytes as f64 / flow.wanted_bytes.max(1) as f64),
    ])
}

/// The median of each figure, and under `worst goodput` the least goodput.
pub fn medians(runs: &[SimulatedSeed]) -> Figures {
    let mut values: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for run in runs {
        // A missing figure, such as the RTT of a run without arrivals, is left out.
        for (name, value) in run.figures.iter().filter(|(_, value)| value.is_finite()) {
            values.entry(name).or_default().push(*value);
        }
    }
    let mut medians = Figures::new();
    for (name, mut list) in values {
        list.sort_by(f64::total_cmp);
        if name == "goodput" && list.len() > 1 {
            medians.insert("worst goodput".into(), list[0]);
        }
        medians.insert(name.into(), quantile(&list, 0.5));
    }
    medians
}
