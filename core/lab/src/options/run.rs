//! Options of `run`.

use crate::collect::OutcomeMetadata;
use crate::options::TimelineOptions;
use crate::options::values::{SEEDS, number, seed};
use crate::recommendation::Aim;
use clap::Args;
use narrows_base::SpecError;
use narrows_scenario::{BottleneckLink, Plan, Scenario, scenario_file};
use std::path::{Path, PathBuf};

/// A scenario, and the number of its runs.
#[derive(Args, Clone, Debug)]
// The command's own struct, which contains this one, has the same name.
#[group(skip)]
pub struct Run {
    /// The scenario's file
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Seeds, instead of the scenario's number
    #[arg(long, value_name = "K", value_parser = number(SEEDS))]
    pub seeds: Option<u32>,
    /// First seed, instead of the scenario's
    #[arg(long, value_name = "S", value_parser = seed())]
    pub seed: Option<u64>,
    /// Changes during a run.
    #[command(flatten)]
    pub timeline: TimelineOptions,
}

/// The error of a scenario's file, or of a link in its place, which this command takes.
pub(crate) fn link_for_file(command: &str, file: &Path, e: SpecError) -> SpecError {
    match file.to_str().filter(|_| !file.exists()) {
        Some(link) if BottleneckLink::parse(link, Path::new("")).is_ok() => SpecError::new(
            format!("'{link}' is a link, not a scenario's file: narrows {command} --link {link}"),
        ),
        _ => e,
    }
}

impl Run {
    /// The file's scenario, with the options in place of the file's values.
    ///
    /// # Errors
    /// One line with the file, its line, the fault and the permitted values.
    pub fn load(&self) -> Result<Scenario, SpecError> {
        let scenario = scenario_file::load(&self.scenario);
        self.with(scenario.map_err(|e| link_for_file("compare", &self.scenario, e))?)
    }

    /// The scenario, with the options in place of its values.
    ///
    /// # Errors
    /// One line with the option, the fault and the permitted values.
    pub fn with(&self, mut scenario: Scenario) -> Result<Scenario, SpecError> {
        scenario.seeds = self.seeds.unwrap_or(scenario.seeds);
        scenario.seed = self.seed.unwrap_or(scenario.seed);
        self.timeline.to_timeline().add_to(&mut scenario)?;
        Ok(scenario)
    }

    /// The checked scenario, and the description for its results.
    ///
    /// # Errors
    /// Those of a plan, with the file.
    pub fn plan(
        &self,
        scenario: Scenario,
        command_line: String,
    ) -> Result<(Plan, OutcomeMetadata), SpecError> {
        let link = scenario.name.clone();
        let plan = Plan::new(scenario).map_err(|e| e.at(&self.scenario.display().to_string()))?;
        let path = plan.describe();
        Ok((plan, OutcomeMetadata { command: "run", command_line, link, path, aim: Aim::Bulk }))
    }
}
