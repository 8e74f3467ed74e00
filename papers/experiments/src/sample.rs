//! One simulation of an experiment, and the results that are kept.

use narrows_lab::measure::{GroupInputs, MEASURES};
use narrows_lab::response::{self, Response};
use narrows_scenario::plan::Plan;
use narrows_sim::SeriesTable;

/// Which simulations a quantity is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct SampleSelector {
    /// Number of the run.
    pub run: usize,
    /// Number of its varied value.
    pub value: usize,
    /// Number of its protocol.
    pub variant: usize,
}

/// Results of one simulation.
#[derive(Clone, Debug, Default)]
pub struct SimulationSample {
    /// The simulator's digest.
    pub digest: u64,
    /// Events that it handled.
    pub events: u64,
    /// Per group of flows: its name, and values in the order of [`MEASURES`].
    pub groups: Vec<(String, Vec<f64>)>,
    /// Time series.
    pub series: Vec<SeriesTable>,
}

impl SimulationSample {
    /// Runs one simulation.
    ///
    /// # Errors
    /// An error of the simulator.
    pub fn take(plan: &Plan, variant: usize, seed: u64) -> Result<SimulationSample, String> {
        let network = plan.network(variant, seed, true);
        let mut result = narrows_sim::run(&network, &mut |_| true).map_err(|e| e.to_string())?;
        let groups = (0..result.groups.len())
            .map(|group| {
                let others = plan.others(group);
                let link = &result.links[plan.bottleneck(group)];
                let response = Response::of(plan, variant, &result, group);
                let view =
                    GroupInputs { run: &result, group, link, others: &others, response: &response };
                let values = MEASURES.iter().map(|m| (m.of)(&view)).collect();
                (result.groups[group].name.clone(), values)
            })
            .collect();
        let all = 0..result.groups.len();
        let tables: Vec<SeriesTable> =
            all.filter_map(|group| response::over_time(plan, &result, group)).collect();
        result.series.extend(tables);
        Ok(SimulationSample {
            digest: result.digest,
            events: result.events,
            groups,
            series: result.series,
        })
    }

    /// A measure of a group; without a name, of the first group.
    pub fn measure(&self, group: Option<&str>, name: &str) -> f64 {
        let at = MEASURES.iter().position(|m| m.name == name);
        let group = match group {
            None => self.groups.first(),
            Some(wanted) => self.groups.iter().find(|g| g.0 == wanted),
        };
        at.zip(group).map_or(f64::NAN, |(at, group)| group.1[at])
    }
}
