//! Options of `compare`.

use crate::collect::OutcomeMetadata;
use crate::networks::draw;
use crate::options::values::{FLOWS, SEEDS, number, seed, time};
use crate::options::{RARE, TimelineOptions};
use crate::recommendation::Aim;
use crate::{Question, compare};
use clap::Args;
use narrows_base::{Duration, SpecError};
use narrows_scenario::{BottleneckLink, Scenario, scenario_file};
use narrows_sim::SourceSpec;
use narrows_sim::protocol::Preset;
use std::path::Path;

/// The protocols that are compared over several paths: the default, and controllers with the scheduler of MPTCP.
const MULTIPATH: &str = "rrtp,rrtp+bbr(scheduler=minrtt),rrtp+cubic(scheduler=minrtt)";

/// A comparison of protocols on one link.
#[derive(Args, Clone, Debug)]
// The command's own struct, which contains this one, has the same name.
#[group(skip)]
pub struct Compare {
    /// RATE,DELAY[,key=value]* or a name from `narrows list links`
    #[arg(long, value_name = "SPEC|NAME", default_value = narrows_scenario::links::DEFAULT, allow_hyphen_values = true)]
    pub link: String,
    /// The link of one of several paths between the same two ends; the first one's utilisation is shown. Only streams over
    /// rrtp have several
    #[arg(
        long = "path",
        value_name = "SPEC|NAME",
        conflicts_with = "link",
        allow_hyphen_values = true
    )]
    pub paths: Vec<String>,
    /// A network of the atlas instead of a link, with its flows, changes and seeds, as in networks/1/17 or mixes/1/42
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "PART/SEED/NUMBER", conflicts_with_all = [
        "link", "paths", "source", "flows", "against", "reverse", "duration", "warmup", "stagger", "packet", "seed", "preset",
    ])]
    pub network: Option<String>,
    /// Protocols, as in 'vegas(alpha=1,beta=3),stpd', and families: tcp, media, papers, all,
    /// family:rrtp
    /// [default: tcp,rrtp; for calls media; for live media,cubic,bbr,rrtp]
    #[arg(long, value_name = "LIST")]
    pub protocols: Option<String>,
    /// Application to optimise for: bulk, calls, live or web
    #[arg(long = "for", value_name = "AIM", default_value = "bulk", value_parser = Aim::parse)]
    pub aim: Aim,
    /// Traffic of each flow, as in 'transfer(size=1MB)': see `narrows list sources` [default: bulk; for web web]
    #[arg(long, value_name = "SOURCE", value_parser = compare::source)]
    pub source: Option<SourceSpec>,
    /// Flows of each protocol
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = number(FLOWS))]
    pub flows: usize,
    /// Competitors on the same link, M flows (default N)
    #[arg(long, value_name = "NAME[:M]")]
    pub against: Option<String>,
    /// Flows that send in the reverse direction, M flows (default N)
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "NAME[:M]")]
    pub reverse: Option<String>,
    /// Simulated time [default: 60s, above 10 Mbit/s down to 10s; 20s with --real]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub duration: Option<Duration>,
    /// Start measuring at this time
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "TIME", default_value = "0s", value_parser = time)]
    pub warmup: Duration,
    /// Draw the starts of all flows over this time [default: a base RTT; 0s with --preset ns2]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "TIME", value_parser = time)]
    pub stagger: Option<Duration>,
    /// Data packet's size on the wire; an ACK has 52 bytes, 40 in other presets than linux
    /// [default: 1500B, with --preset ns2 1000B; always 1500B with --real]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "SIZE", value_parser = scenario_file::packet)]
    pub packet: Option<u32>,
    /// Repeat every run with K seeds; means come with 95% intervals [default: 10, above 10 Mbit/s 5; 3 with --real]
    #[arg(long, value_name = "K", value_parser = number(SEEDS))]
    pub seeds: Option<u32>,
    /// First seed
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "S", default_value_t = 1, value_parser = seed())]
    pub seed: u64,
    /// TCP's endpoint: linux (as Linux 6.1), rfc (as the RFCs) or ns2 (exactly as ns-2.35) [default: linux]
    #[arg(long, hide_short_help = true, help_heading = RARE, value_name = "linux|rfc|ns2", value_parser = scenario_file::preset)]
    pub preset: Option<Preset>,
    /// Changes during a run.
    #[command(flatten)]
    pub timeline: TimelineOptions,
}

impl Compare {
    /// The defaults for this link and preset.
    pub fn usual(&self) -> Question {
        let source = self.source().unwrap_or_else(|_| SourceSpec::bulk());
        let preset = self.preset.unwrap_or(Preset::Linux);
        Question::usual(self.first_link(), preset, &source, Path::new(""))
    }

    /// The link of the only or first path.
    fn first_link(&self) -> &str {
        self.paths.first().unwrap_or(&self.link)
    }

    /// The protocols: as given, else those of the aim, or with several paths streams over rrtp.
    fn protocols(&self) -> &str {
        let usual = if self.paths.len() > 1 { MULTIPATH } else { self.aim.protocols() };
        self.protocols.as_deref().unwrap_or(usual)
    }

    fn source(&self) -> Result<SourceSpec, SpecError> {
        self.source.clone().map_or_else(|| compare::source(self.aim.source()), Ok)
    }

    /// The comparison; `usual` has the defaults.
    ///
    /// # Errors
    /// The source of an aim does not exist.
    pub fn question(&self, usual: &Question) -> Result<Question, SpecError> {
        Ok(Question {
            link: self.first_link().to_string(),
            paths: self.paths.iter().skip(1).cloned().collect(),
            protocols: self.protocols().to_string(),
            source: self.source()?,
            flows: self.flows,
            against: self.against.clone(),
            reverse: self.reverse.clone(),
            duration: self.duration.unwrap_or(usual.duration),
            warmup: self.warmup,
            stagger: self.stagger,
            packet: self.packet.unwrap_or(usual.packet),
            seeds: self.seeds.unwrap_or(usual.seeds),
            seed: self.seed,
            preset: self.preset.unwrap_or(usual.preset),
            timeline: self.timeline.to_timeline(),
        })
    }

    /// The comparison as a scenario, and the description for its results. Traces are found from the current folder.
    ///
    /// # Errors
    /// One line with the option, the fault and the permitted values.
    pub fn scenario(
        &self,
        usual: &Question,
        command_line: String,
    ) -> Result<(Scenario, OutcomeMetadata), SpecError> {
        let network = self.network.as_deref().map(draw::find).transpose();
        if let Some(network) = network.map_err(|e| e.at("--network"))? {
            let (mut scenario, link) = network.scenario(self.protocols())?;
            scenario.seeds = self.seeds.unwrap_or(network.seeds);
            let timeline = self.timeline.to_timeline();
            timeline.add_to(&mut scenario)?;
            let name = self.network.as_deref().unwrap_or_default();
            let path = format!("{name}: {}{timeline}", network.describe());
            return Ok((scenario, self.about(command_line, &link, path, &network.question)));
        }
        let question = self.question(usual)?;
        let (scenario, link) = question.scenario(Path::new(""))?;
        let paths = question.paths.iter().map(|p| format!("; further path {p}"));
        let path = format!(
            "{}{}{}",
            link.describe(question.packet),
            paths.collect::<String>(),
            question.timeline
        );
        let about = self.about(command_line, &link, path, &question);
        Ok((scenario, about))
    }

    fn about(
        &self,
        command_line: String,
        link: &BottleneckLink,
        path: String,
        question: &Question,
    ) -> OutcomeMetadata {
        let packets = format!("packets of {} B; {}", question.packet, question.preset.describe());
        OutcomeMetadata {
            command: "compare",
            command_line,
            link: link.to_string(),
            path: format!("{path}; {packets}"),
            aim: self.aim,
        }
    }
}
