//! Simulates networks with each protocol.

use super::item::{BenchNetwork, BenchPart};
use super::measure::{self, SimulatedSeed};
use super::scores::{MIX_RIVAL, Results, TRACE_RIVAL, TRANSFER_RIVALS};
use crate::execute::{RunControl, combined};
use crate::parallel::parallel;
use crate::stats::quantile;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The work of a network is that of this protocol.
const REFERENCE: &str = "rrtp";

/// What [`simulate`] found.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    /// Figures of each network with each protocol.
    pub results: Results,
    /// Digests by network, then by protocol: those of `compare` with the network's seeds.
    pub digests: BTreeMap<String, BTreeMap<String, u64>>,
}

/// One simulation.
struct SeedRun {
    /// Index of the network.
    network: usize,
    protocol: String,
    seed: u64,
    /// Packets, about.
    cost: f64,
}

/// Leaves out the fifth of each part that needs the most time: it takes three quarters of all.
///
/// # Errors
/// A network that does not parse; the message names it.
pub fn without_longest(items: Vec<BenchNetwork>) -> Result<Vec<BenchNetwork>, String> {
    let mut work = Vec::new();
    for item in items {
        work.push((item.plan(REFERENCE)?.work(), item));
    }
    let most = |part: BenchPart| {
        let of_part = work.iter().filter(|w| w.1.part == part).map(|w| w.0);
        let mut sorted: Vec<f64> = of_part.collect();
        sorted.sort_by(f64::total_cmp);
        quantile(&sorted, 0.8)
    };
    let most = BenchPart::ALL.map(|part| (part, most(part)));
    work.retain(|(cost, item)| most.iter().any(|(part, most)| *part == item.part && cost <= most));
    Ok(work.into_iter().map(|w| w.1).collect())
}

/// The protocols with which an item runs: these, and those with which they are compared. Of two pairs that differ in
/// their order, one runs.
fn protocols_of(item: &BenchNetwork, protocols: &[String]) -> Vec<String> {
    let mut list = protocols.to_vec();
    let mut rival = |name: &str| {
        if !protocols.iter().any(|p| p == name) {
            list.push(name.into());
        }
    };
    match item.part {
        BenchPart::Transfers | BenchPart::AccessTransfers => {
            TRANSFER_RIVALS.iter().for_each(|r| rival(r));
        }
        BenchPart::Traces => rival(TRACE_RIVAL),
        BenchPart::Mixes => rival(MIX_RIVAL),
        BenchPart::Pairs => {
            list.truncate(item.counterpart(protocols).map_or(list.len(), |i| i + 1))
        }
        BenchPart::Networks | BenchPart::Access | BenchPart::Routes | BenchPart::Named => {}
    }
    list
}

/// All simulations of these protocols, and of those with which they are compared. The longest are first, so that no core
/// is left with one at the end.
fn seed_runs(items: &[BenchNetwork], protocols: &[String]) -> Result<Vec<SeedRun>, String> {
    let mut runs = Vec::new();
    for (network, item) in items.iter().enumerate() {
        // A plan holds its trace; the traces of all runs would not fit into memory together.
        let cost = item.plan(REFERENCE)?.work();
        for protocol in protocols_of(item, protocols) {
            for i in 0..item.seeds {
                let protocol = protocol.clone();
                runs.push(SeedRun { network, protocol, seed: item.seed + u64::from(i), cost });
            }
        }
    }
    runs.sort_by(|a, b| b.cost.total_cmp(&a.cost));
    Ok(runs)
}

/// Simulates each network with each protocol, and with those with which its part compares them. `None` if it was
/// interrupted.
///
/// # Errors
/// A network or a protocol that does not parse, or an error of the simulator; the message names the network.
pub fn simulate(
    items: &[BenchNetwork],
    protocols: &[String],
    control: &RunControl<'_>,
) -> Result<Option<Simulated>, String> {
    let runs = seed_runs(items, protocols)?;
    let all: f64 = runs.iter().map(|r| r.cost).sum();
    let done = Mutex::new(0.0);
    let found = parallel(runs.len(), control.jobs, |i| {
        let run = &runs[i];
        let item = &items[run.network];
        let measured = measure::run(item, &item.plan(&run.protocol)?, run.seed, control.stop)?;
        let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
        *done += run.cost;
        (control.progress)(*done / all);
        Ok(measured)
    })?;
    let mut by_seed: BTreeMap<(usize, String), BTreeMap<u64, SimulatedSeed>> = BTreeMap::new();
    for (run, measured) in runs.into_iter().zip(found) {
        let Some(measured) = measured else { return Ok(None) };
        by_seed.entry((run.network, run.protocol)).or_default().insert(run.seed, measured);
    }
    let mut simulated = Simulated::default();
    for ((network, protocol), of_seeds) in by_seed {
        let key = items[network].key();
        let of_seeds: Vec<SimulatedSeed> = of_seeds.into_values().collect();
        let digests: Vec<u64> = of_seeds.iter().map(|run| run.digest).collect();
        let of_item = simulated.digests.entry(key.clone()).or_default();
        of_item.insert(protocol.clone(), combined(&digests));
        let of_item = simulated.results.entry(key).or_default();
        of_item.insert(protocol, measure::medians(&of_seeds));
    }
    Ok(Some(simulated))
}
