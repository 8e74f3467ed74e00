//! A criterion: a section of RFC 9743, a network, and figures.

use crate::compare::Question;
use crate::measure::{self, Better};
use narrows_base::{Duration, SpecError};
use narrows_link::LinkChange;
use narrows_scenario::Scenario;
use narrows_scenario::access_link::AccessLink;
use narrows_scenario::scenario::{GroupProtocol, OwnLink, Scheduled};
use narrows_sim::SourceSpec;
use narrows_sim::protocol::Preset;
use std::path::Path;

/// Sections of the RFC that are measured.
pub const SECTIONS: [(&str, &str); 17] = [
    ("5.1.1", "Protection against congestion collapse"),
    ("5.1.2", "Protection against bufferbloat"),
    ("5.1.3", "Protection against high packet loss"),
    ("5.1.4", "Fairness within the proposed algorithm"),
    ("5.1.5", "Short flows"),
    ("5.2.1", "Existing general-purpose congestion control"),
    ("5.2.2", "Real-time congestion control"),
    ("5.2.3", "Short and long flows"),
    ("6.1", "Paths with tail-drop queues"),
    ("6.4", "Wireless paths"),
    ("7.1", "Active queue management"),
    ("7.2", "Paths with varying delay"),
    ("7.3", "Internet of Things"),
    ("7.4", "Paths with high delay"),
    ("7.6", "Extreme packet reordering"),
    ("7.7", "Transient events"),
    ("7.9", "Data centers"),
];

/// Sections that cannot be simulated, and where they are answered.
pub const NOT_SIMULATED: [(&str, &str, &str); 5] = [
    ("5.3.1", "Differences with congestion control principles", "for the author to explain"),
    ("5.3.2", "Incremental deployment", "for the author to explain"),
    ("6.2", "Tunnel behavior", "ECN is the only signal of routers here"),
    ("7.5", "Misbehaving nodes", "depends on the transport; for rrtp see docs/security.md"),
    ("7.8", "Multipath transport", "one path only"),
];

/// A measure of a group of flows.
#[derive(Clone, Debug)]
pub struct CriterionMeasure {
    /// Description for tables.
    pub title: &'static str,
    /// Group of flows: 0 is the controller's, 1 the others.
    pub group: usize,
    /// Name of the measure.
    pub measure: &'static str,
    /// Whether it is divided by the measured time.
    pub per_second: bool,
    /// Whether less is better, if the measure itself has no direction.
    pub(super) less: bool,
}

impl CriterionMeasure {
    /// Which direction is better.
    pub fn more_is_better(&self) -> bool {
        !self.less && measure::find(self.measure).is_none_or(|m| m.better != Better::Less)
    }
    /// Whether it is a time until an event.
    pub fn is_a_time(&self) -> bool {
        matches!(self.measure, "completion_s" | "takeup_s" | "halving_s")
    }
    /// Its value with a unit.
    pub fn text(&self, x: f64) -> String {
        let unit = measure::find(self.measure).map_or("", |m| m.unit);
        match (unit, self.per_second) {
            _ if !x.is_finite() => "-".into(),
            (_, true) => format!("{x:.1}/s"),
            ("bit/s", _) if x.abs() >= 9.95e7 => format!("{:.1} Mbit/s", x * 1e-6),
            ("bit/s", _) if x.abs() >= 9.95e5 => format!("{:.2} Mbit/s", x * 1e-6),
            ("bit/s", _) => format!("{:.1} kbit/s", x * 1e-3),
            ("s", _) if x < 0.00995 => format!("{:.2} ms", x * 1e3),
            ("s", _) if x < 10.0 => format!("{:.0} ms", x * 1e3),
            ("s", _) => format!("{x:.1} s"),
            ("fraction", _) if self.measure.ends_with("rate") => format!("{:.2}%", x * 100.0),
            _ => format!("{x:.3}"),
        }
    }
}

pub(super) const fn own(title: &'static str, measure: &'static str) -> CriterionMeasure {
    CriterionMeasure { title, group: 0, measure, per_second: false, less: false }
}
pub(super) const fn others(title: &'static str, measure: &'static str) -> CriterionMeasure {
    CriterionMeasure { group: 1, ..own(title, measure) }
}

/// A network, and its figures.
#[derive(Clone, Debug)]
pub struct Criterion {
    /// Section of RFC 9743.
    pub section: &'static str,
    /// Description of the network.
    pub what: String,
    /// The figures to measure on it.
    pub figures: Vec<CriterionMeasure>,
    question: Question,
    changes: Vec<(Duration, LinkChange, bool)>,
    second: Second,
}

/// The second group's differences from the flows under test.
#[derive(Clone, Debug, Default)]
struct Second {
    /// Uses the protocol of the flows under test.
    same: bool,
    start: Duration,
    source: Option<SourceSpec>,
    access: Option<&'static str>,
}

impl Criterion {
    /// Its scenario with these protocols in turn.
    ///
    /// # Errors
    /// Unknown protocols.
    pub fn scenario(
        &self,
        protocols: String,
        seeds: u32,
        seed: u64,
    ) -> Result<Scenario, SpecError> {
        let question = Question { protocols, seeds, seed, ..self.question.clone() };
        let (mut scenario, _) = question.scenario(Path::new(""))?;
        for (at, change, both_ways) in &self.changes {
            let links = ["bottleneck", "bottleneck.back"];
            for link in links.into_iter().take(if *both_ways { 2 } else { 1 }) {
                let at = *at;
                let change = change.clone();
                scenario.changes.push(Scheduled { at, link: link.into(), change, line: 0 });
            }
        }
        if let Some(group) = scenario.flows.get_mut(1) {
            if self.second.same {
                group.speaks = GroupProtocol::Each;
            }
            group.start = self.second.start;
            if let Some(source) = &self.second.source {
                group.source = source.clone();
            }
            if let Some(text) = self.second.access {
                let side = AccessLink::parse(text)?;
                group.access = Some(OwnLink { side, stream: "access" });
            }
        }
        Ok(scenario)
    }

    pub(super) fn flows(mut self, flows: usize) -> Criterion {
        self.question.flows = flows;
        self
    }
    pub(super) fn beside(mut self, who: &str) -> Criterion {
        self.question.against = Some(who.into());
        self
    }
    /// Beside flows of the same controller that begin later, or have links of their own.
    pub(super) fn beside_itself(
        mut self,
        flows: usize,
        start_s: u64,
        access: Option<&'static str>,
    ) -> Criterion {
        self.question.against = Some(format!("reno:{flows}"));
        self.second =
            Second { same: true, start: Duration::from_secs(start_s), source: None, access };
        self
    }
    pub(super) fn others_send(mut self, source: SourceSpec) -> Criterion {
        self.second.source = Some(source);
        self
    }
    pub(super) fn others_start(mut self, start_s: u64) -> Criterion {
        self.second.start = Duration::from_secs(start_s);
        self
    }
    pub(super) fn sends(mut self, source: SourceSpec) -> Criterion {
        self.question.source = source;
        self
    }
    pub(super) fn seconds(mut self, from: u64, until: u64) -> Criterion {
        self.question.warmup = Duration::from_secs(from);
        self.question.duration = Duration::from_secs(until);
        self
    }
    pub(super) fn change(mut self, at_s: u64, change: LinkChange) -> Criterion {
        self.changes.push((Duration::from_secs(at_s), change, false));
        self
    }
    pub(super) fn change_both(mut self, at_s: u64, change: LinkChange) -> Criterion {
        self.changes.push((Duration::from_secs(at_s), change, true));
        self
    }
}

pub(super) fn on(
    section: &'static str,
    what: &str,
    link: &str,
    figures: &[CriterionMeasure],
) -> Criterion {
    let question = Question {
        link: link.into(),
        duration: Duration::from_secs(30),
        packet: 1500,
        preset: Preset::Rfc,
        ..Question::default()
    };
    Criterion {
        section,
        what: what.into(),
        figures: figures.to_vec(),
        question,
        changes: Vec::new(),
        second: Second::default(),
    }
}
