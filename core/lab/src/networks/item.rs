//! One item of the benchmark: a network, the flows that share it, its length and its repetitions.

use crate::Question;
use narrows_base::{Duration, Spec, SpecError};
use narrows_link::LinkChange;
use narrows_scenario::access_link::AccessLink;
use narrows_scenario::scenario::{GroupProtocol, OwnLink, Scheduled};
use narrows_scenario::{BottleneckLink, Plan, Scenario};
use narrows_sim::SourceSpec;
use narrows_sim::protocol::Preset;
use std::path::Path;

/// Bytes of a data packet on the wire.
pub const PACKET: u32 = 1500;

/// Parts of the benchmark.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum BenchPart {
    /// One flow on a network that was drawn.
    Networks,
    /// One flow on a network of a type of access that people have.
    Access,
    /// One flow on a network whose forward path becomes longer or shorter.
    Routes,
    /// Several flows beside several.
    Mixes,
    /// One flow beside one of another protocol, or alone.
    Pairs,
    /// A transfer that ends, on a network of constant rate.
    Transfers,
    /// A transfer that ends, on a network of a type of access that people have.
    AccessTransfers,
    /// One flow on a recorded link.
    Traces,
    /// One flow under named conditions.
    Named,
}

impl BenchPart {
    /// All parts, in the order of the table.
    pub const ALL: [BenchPart; 9] = [
        BenchPart::Networks,
        BenchPart::Access,
        BenchPart::Routes,
        BenchPart::Mixes,
        BenchPart::Pairs,
        BenchPart::Transfers,
        BenchPart::AccessTransfers,
        BenchPart::Traces,
        BenchPart::Named,
    ];

    /// Its name, as in `--only`.
    pub fn name(self) -> &'static str {
        match self {
            BenchPart::Networks => "networks",
            BenchPart::Access => "access",
            BenchPart::Routes => "routes",
            BenchPart::Mixes => "mixes",
            BenchPart::Pairs => "pairs",
            BenchPart::Transfers => "transfers",
            BenchPart::AccessTransfers => "access-transfers",
            BenchPart::Traces => "traces",
            BenchPart::Named => "named",
        }
    }
}

/// Flows beside those under test.
#[derive(Clone, Debug)]
pub struct Neighbours {
    /// A protocol, or `itself` for the one under test.
    pub other: String,
    /// Number of flows.
    pub count: usize,
    /// Start of the flows under test, and of the remaining flows, in seconds.
    pub starts_s: (f64, f64),
    /// Access links of both; their delays are drawn per flow.
    pub access: (Option<String>, Option<String>),
}

/// A network that is simulated with each protocol.
#[derive(Clone, Debug)]
pub struct BenchNetwork {
    /// Part of the benchmark in whose table it counts.
    pub part: BenchPart,
    /// Unique within the part.
    pub name: String,
    /// Properties by which scores are grouped.
    pub classes: Vec<&'static str>,
    /// The link, the flows under test and the length of a run, without the protocol.
    pub question: Question,
    /// Changes of the link, each with its time since the start.
    pub changes: Vec<(Duration, LinkChange)>,
    /// Share of the capacity that remains after losses, outages and a policer.
    pub passes: f64,
    /// Flows beside those under test, in mixes.
    pub neighbours: Option<Neighbours>,
    /// New web transfers per second beside the flow.
    pub web: Option<f64>,
    /// The first seed.
    pub seed: u64,
    /// Number of seeds.
    pub seeds: u32,
}

impl BenchNetwork {
    pub(super) fn new(part: BenchPart, name: &str, link: &str, duration_s: f64) -> BenchNetwork {
        BenchNetwork {
            part,
            name: name.into(),
            classes: Vec::new(),
            question: question(link, duration_s),
            changes: Vec::new(),
            passes: 1.0,
            neighbours: None,
            web: None,
            seed: 1,
            seeds: 1,
        }
    }

    /// Its part and name, as in [`Results`](super::Results).
    pub fn key(&self) -> String {
        format!("{} {}", self.part.name(), self.name)
    }

    /// Whether all flows use the protocol under test.
    pub(super) fn beside_itself(&self) -> bool {
        self.neighbours.as_ref().is_some_and(|n| n.other == "itself")
    }

    /// Which of these protocols the flow beside has.
    pub(super) fn counterpart(&self, protocols: &[String]) -> Option<usize> {
        let other = &self.neighbours.as_ref()?.other;
        protocols.iter().position(|protocol| protocol == other)
    }

    /// The item in one line.
    pub fn describe(&self) -> String {
        let mut text = format!("{} for {}", self.question.link, self.question.duration);
        if !self.changes.is_empty() {
            text += &format!(", {} changes of the rate", self.changes.len());
        }
        if let Some(n) = &self.neighbours {
            text += &format!(", {} beside {} {}", self.question.flows, n.count, n.other);
            text += &format!(" from {:.1} s and {:.1} s", n.starts_s.0, n.starts_s.1);
            for (of, access) in [("own", &n.access.0), ("their", &n.access.1)] {
                if let Some(access) = access {
                    text += &format!(", {of} access {access}");
                }
            }
        }
        if let Some(rate) = self.web {
            text += &format!(", {rate:.2} web transfers per second beside");
        }
        text
    }

    /// The plan with this protocol under test.
    ///
    /// # Errors
    /// A link or protocol that does not parse; the message names the item.
    pub fn plan(&self, protocol: &str) -> Result<Plan, String> {
        let plan = self.scenario(protocol).and_then(|(scenario, _)| Plan::new(scenario));
        plan.map_err(|e| format!("{}: {e}", self.key()))
    }

    /// The scenario with these protocols under test, each in runs of its own, and the link.
    ///
    /// # Errors
    /// A protocol that does not exist, or several on a network with flows of the same one.
    pub fn scenario(&self, protocols: &str) -> Result<(Scenario, BottleneckLink), SpecError> {
        let (mut scenario, link) = self.similar(protocols).scenario(Path::new(""))?;
        if let (Some(n), [own, others, ..]) = (&self.neighbours, &mut scenario.flows[..]) {
            let sides = [(own, n.starts_s.0, &n.access.0), (others, n.starts_s.1, &n.access.1)];
            for (flows, start_s, access) in sides {
                flows.start = Duration::from_secs_f64(start_s);
                if let Some(text) = access {
                    let side = AccessLink::parse(text)?;
                    flows.access = Some(OwnLink { side, stream: "access" });
                }
            }
        }
        if let (Some(rate), Some(own)) = (self.web, scenario.flows.first()) {
            let mut web = own.clone();
            web.name = "web".into();
            web.speaks = GroupProtocol::One(Spec::named("cubic"));
            web.source = SourceSpec::read(&Spec::parse(&format!("web(rate={rate:.6})"))?)?;
            scenario.flows.push(web);
        }
        let scheduled = self.changes.iter().map(|(at, change)| Scheduled {
            at: *at,
            link: "bottleneck".into(),
            change: change.clone(),
            line: 0,
        });
        scenario.changes.extend(scheduled);
        Ok((scenario, link))
    }

    /// Its name for [`find`](super::draw::find); `seed` is that of the draws.
    pub fn address(&self, seed: u64) -> String {
        format!("{}/{seed}/{}", self.part.name(), self.name)
    }

    /// The question of `compare` that is nearest to the network with these protocols: without changes, starts and
    /// access links of either side, and web traffic.
    pub fn similar(&self, protocols: &str) -> Question {
        let against = self.neighbours.as_ref().map(|n| match n.other.as_str() {
            "itself" => format!("{protocols}:{}", n.count),
            other => format!("{other}:{}", n.count),
        });
        Question {
            protocols: protocols.into(),
            against,
            seed: self.seed,
            seeds: self.seeds,
            ..self.question.clone()
        }
    }
}

/// The question of a run, without the protocol.
fn question(link: &str, duration_s: f64) -> Question {
    Question {
        link: link.into(),
        duration: Duration::from_secs_f64(duration_s),
        packet: PACKET,
        preset: Preset::Linux,
        ..Question::default()
    }
}
