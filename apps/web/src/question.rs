//! A question of the page: the options of `narrows compare`, by their names.

use narrows_base::{Duration, SpecError, Time};
use narrows_lab::Question;
use narrows_lab::collect::OutcomeMetadata;
use narrows_lab::compare::source;
use narrows_lab::execute::RunControl;
use narrows_lab::options::words::command_line;
use narrows_lab::options::{Compare, TimelineOptions, values};
use narrows_lab::recommendation::Aim;
use narrows_scenario::{Plan, links, scenario_file, text_file};
use serde::Deserialize;
use std::collections::BTreeMap;

/// Most packets that a run may send: some ten seconds of work in a browser.
const MAX_PACKETS: f64 = 2e7;
/// Most flows of a run. Each costs memory, and the page shows a few.
const MAX_FLOWS: usize = 2000;
/// Most protocols of a comparison.
const MAX_PROTOCOLS: usize = 100;
/// Most seeds of an answer.
pub const MAX_SEEDS: u32 = 100;

/// The options that the page has, and the files that they name.
#[derive(Deserialize, Clone, Debug, Default, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PageQuestion {
    /// Name and value of each option, without the leading dashes.
    pub options: Vec<(String, String)>,
    /// Texts of trace files by name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Only the first so many seconds, for a first picture.
    #[serde(default)]
    pub first_s: Option<f64>,
}

/// A question that can be run.
#[derive(Debug)]
pub struct PlannedQuestion {
    /// All protocols and seeds.
    pub plan: Plan,
    /// Its description for the report.
    pub about: OutcomeMetadata,
    /// The defaults of its link.
    pub usual: Question,
}

impl PageQuestion {
    /// The checked question.
    ///
    /// # Errors
    /// The line that the command prints.
    pub fn plan(&self) -> Result<PlannedQuestion, String> {
        for (name, text) in &self.files {
            text_file::provide(name, text);
        }
        let options = compare(&self.options)?;
        let usual = options.usual();
        let line = command_line("compare", &self.options);
        let (mut scenario, about) = options.scenario(&usual, line).map_err(|e| e.to_string())?;
        if let Some(first_s) = self.first_s.filter(|s| *s > 0.0) {
            let first = Time::from_secs_f64(first_s).since(Time::ZERO);
            scenario.duration = scenario.duration.min(first);
            scenario.warmup = scenario.warmup.min(first.mul_f64(0.5));
            scenario.changes.retain(|change| change.at <= first);
            scenario.reconfigurations.retain(|hints| hints.at <= first);
        }
        let plan = Plan::new(scenario).map_err(|e| e.to_string())?;
        bounded(&plan).map_err(|e| e.to_string())?;
        Ok(PlannedQuestion { plan, about, usual })
    }
}

/// A run is never interrupted: the page ends the worker instead.
pub fn untimed() -> RunControl<'static> {
    RunControl::quiet(1)
}

/// The options as `compare` has them. clap would read them, too, and would be a sixth of the module.
fn compare(given: &[(String, String)]) -> Result<Compare, String> {
    let mut options = Compare {
        link: links::DEFAULT.into(),
        paths: Vec::new(),
        network: None,
        protocols: None,
        aim: Aim::Bulk,
        source: None,
        flows: 1,
        against: None,
        reverse: None,
        duration: None,
        warmup: Duration::ZERO,
        stagger: None,
        packet: None,
        seeds: None,
        seed: 1,
        preset: None,
        timeline: TimelineOptions::default(),
    };
    for (name, value) in given {
        set(&mut options, name, value).map_err(|e| format!("--{name}: {e}"))?;
    }
    Ok(options)
}

fn set(options: &mut Compare, name: &str, value: &str) -> Result<(), String> {
    let text = || value.to_string();
    match name {
        "link" => options.link = text(),
        "network" => options.network = Some(text()),
        "protocols" => options.protocols = Some(text()),
        "for" => options.aim = Aim::parse(value).map_err(|e| e.to_string())?,
        "source" => options.source = Some(source(value).map_err(|e| e.to_string())?),
        "flows" => options.flows = values::number(1..=MAX_FLOWS)(value)?,
        "against" => options.against = Some(text()),
        "reverse" => options.reverse = Some(text()),
        "duration" => options.duration = Some(values::time(value)?),
        "warmup" => options.warmup = values::time(value)?,
        "stagger" => options.stagger = Some(values::time(value)?),
        "packet" => options.packet = Some(scenario_file::packet(value).map_err(|e| e.to_string())?),
        "seeds" => options.seeds = Some(values::number(1..=MAX_SEEDS)(value)?),
        "seed" => options.seed = values::number(0..=i64::MAX as u64)(value)?,
        "preset" => options.preset = Some(scenario_file::preset(value).map_err(|e| e.to_string())?),
        "change" => options.timeline.change.push(text()),
        "reconfigure" => options.timeline.reconfigure.push(text()),
        _ => return Err("the page does not have this option".into()),
    }
    Ok(())
}

/// Refuses questions that a browser would not finish.
fn bounded(plan: &Plan) -> Result<(), SpecError> {
    let s = &plan.scenario;
    let flows: usize = s.flows.iter().map(|f| f.count).sum();
    let work = plan.work();
    let why = if flows > MAX_FLOWS {
        format!("{flows} flows are too many for a page, which takes {MAX_FLOWS}")
    } else if work > MAX_PACKETS {
        format!(
            "a run would send up to {:.0} million packets, a page takes {:.0} million: shorten --duration",
            work / 1e6,
            MAX_PACKETS / 1e6
        )
    } else if s.protocols.len() > MAX_PROTOCOLS {
        format!(
            "{} protocols are too many for a page, which takes {MAX_PROTOCOLS}",
            s.protocols.len()
        )
    } else if s.seeds > MAX_SEEDS {
        format!("{} seeds are too many for a page, which takes {MAX_SEEDS}", s.seeds)
    } else {
        return Ok(());
    };
    Err(SpecError::new(format!("{why}, or use the command")))
}
