//! Options of `sweep`.

use crate::Question;
use crate::measure::MEASURES;
use crate::options::run::link_for_file;
use crate::options::values::{FLOWS, SEEDS, number, seed, time};
use crate::options::{RARE, TimelineOptions};
use crate::sweep::{self, Base, Grid};
use clap::Args;
use narrows_base::{Duration, SpecError};
use narrows_scenario::{links, scenario_file};
use narrows_sim::SourceSpec;
use narrows_sim::protocol::Preset;
use std::path::{Path, PathBuf};

/// The varied parameters, their base, and the displayed measure.
#[derive(Args, Clone, Debug)]
// The command's own struct, which contains this one, has the same name.
#[group(skip)]
pub struct Sweep {
    /// The scenario's file; without it, --link sets the base
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: Option<PathBuf>,
    /// A bottleneck as in `narrows compare` [default: wireless]
    #[arg(long, value_name = "SPEC|NAME", conflicts_with = "scenario", allow_hyphen_values = true)]
    pub link: Option<String>,
    /// Parameter to vary: a,b,c or low..high:N or low..high:log:N; repeat for more dimensions
    #[arg(long, value_name = "NAME=VALUES", allow_hyphen_values = true)]
    pub vary: Vec<String>,
    /// Repeat every point with K seeds; means come with 95% intervals
    #[arg(long, value_name = "K", default_value_t = 3, value_parser = number(SEEDS))]
    pub seeds: u32,
    /// First seed
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "S", default_value_t = 1, value_parser = seed())]
    pub seed: u64,
    /// Measure in the table and the maps [default: theta with competitors, else utilisation]
    #[arg(long, value_name = "NAME")]
    pub measure: Option<String>,
    /// Group of flows to measure [default: the first that has competitors, or the first]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "NAME")]
    pub group: Option<String>,
    /// With --link: protocols, as in compare [default: cubic]
    #[arg(long, value_name = "LIST", conflicts_with = "scenario")]
    pub protocols: Option<String>,
    /// With --link: flows of each protocol [default: 1]
    #[arg(long, value_name = "N", conflicts_with = "scenario", value_parser = number(FLOWS))]
    pub flows: Option<usize>,
    /// With --link: competitors on the same link, M flows (default N)
    #[arg(long, value_name = "NAME[:M]", conflicts_with = "scenario")]
    pub against: Option<String>,
    /// With --link: flows that send in the reverse direction, M flows (default N)
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "NAME[:M]", conflicts_with = "scenario")]
    pub reverse: Option<String>,
    /// With --link: simulated time [default: 60s, above 10 Mbit/s down to 10s]
    #[arg(long, value_name = "TIME", conflicts_with = "scenario", value_parser = time)]
    pub duration: Option<Duration>,
    /// With --link: start measuring at this time [default: 0s]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "TIME", conflicts_with = "scenario", value_parser = time)]
    pub warmup: Option<Duration>,
    /// With --link: draw the starts of all flows over this time [default: a base RTT]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "TIME", conflicts_with = "scenario", value_parser = time)]
    pub stagger: Option<Duration>,
    /// With --link: data packet's size on the wire [default: 1500B, with --preset ns2 1000B]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "SIZE", conflicts_with = "scenario", value_parser = scenario_file::packet)]
    pub packet: Option<u32>,
    /// With --link: endpoint, as in compare [default: linux]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "linux|rfc|ns2", conflicts_with = "scenario", value_parser = scenario_file::preset)]
    pub preset: Option<Preset>,
    /// Changes during a run.
    #[command(flatten)]
    pub timeline: TimelineOptions,
}

impl Sweep {
    /// The base of the variation.
    ///
    /// # Errors
    /// A scenario file that cannot be read.
    pub fn base(&self) -> Result<Base, SpecError> {
        if let Some(path) = &self.scenario {
            return Base::load(path).map_err(|e| link_for_file("sweep", path, e));
        }
        let link = self.link.clone().unwrap_or_else(|| links::DEFAULT.into());
        let preset = self.preset.unwrap_or(Preset::Linux);
        let usual = Question::usual(&link, preset, &SourceSpec::bulk(), Path::new(""));
        Ok(Base::Link(Box::new(Question {
            link,
            protocols: self.protocols.clone().unwrap_or_else(|| "cubic".into()),
            flows: self.flows.unwrap_or(1),
            against: self.against.clone(),
            reverse: self.reverse.clone(),
            duration: self.duration.unwrap_or(usual.duration),
            warmup: self.warmup.unwrap_or(usual.warmup),
            stagger: self.stagger,
            packet: self.packet.unwrap_or(usual.packet),
            ..usual
        })))
    }

    /// The points, all of them checked, and the measure and group for tables.
    ///
    /// # Errors
    /// One line with the option, the fault and the permitted values.
    pub fn read(&self, base: Base) -> Result<(sweep::CheckedSweep, TableSelection), SpecError> {
        let base = base.with_timeline(self.timeline.to_timeline());
        let measure = self.measure.as_deref().map(measure).transpose()?;
        let sweep = sweep::CheckedSweep::new(Grid::read(base, &self.vary)?, self.seed, self.seeds)?;
        let group = self.group.as_deref().map(|g| group(&sweep, g)).transpose()?;
        let measure = measure.unwrap_or_else(|| sweep.usual_measure());
        let group = group.unwrap_or_else(|| sweep.usual_group());
        Ok((sweep, TableSelection { measure, group }))
    }
}

/// Selection for tables and maps.
#[derive(Clone, Copy, Debug)]
pub struct TableSelection {
    /// Index in [`MEASURES`].
    pub measure: usize,
    /// Index of the group.
    pub group: usize,
}

fn measure(name: &str) -> Result<usize, SpecError> {
    let names: Vec<&str> = MEASURES.iter().map(|m| m.name).collect();
    let found = names.iter().position(|n| *n == name);
    found.ok_or_else(|| SpecError::unknown("measure", name, &names).at("--measure"))
}

fn group(sweep: &sweep::CheckedSweep, name: &str) -> Result<usize, SpecError> {
    let names: Vec<&str> = sweep.groups.iter().map(String::as_str).collect();
    let found = names.iter().position(|n| *n == name);
    found.ok_or_else(|| SpecError::unknown("group", name, &names).at("--group"))
}
