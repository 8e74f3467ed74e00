//! `narrows compare`: a dumbbell per protocol, with the same random draws for all.
//!
//! ```text
//!   main.0 ──access──╮                     ╭──egress── receiver
//!   main.1 ──access──┤                     ├──egress── receiver
//!                  left ════ bottleneck ═ right
//!   against.0 ───────╯                     ╰────────── reverse.0 (its data go the other way)
//! ```
//!
//! The flows under test are called `main` for every protocol: random draws depend on names, so every protocol gets the
//! same losses and start times.

use crate::recommendation::Aim;
use narrows_base::{Duration, Spec, SpecError};
use narrows_scenario::families::{one, protocols, several};
use narrows_scenario::link::BottleneckLink;
use narrows_scenario::link_direction::TraceStart;
use narrows_scenario::links;
use narrows_scenario::scenario::{DuplexLink, Flows, GroupProtocol, OwnLink, Scenario};
use narrows_scenario::timeline::Timeline;
use narrows_scenario::values;
use narrows_sim::SourceSpec;
use narrows_sim::protocol::{FlowProtocol, Preset};
use std::path::Path;

/// Checks the protocol of a command that takes one.
///
/// # Errors
/// Several protocols, an unknown name or a wrong parameter.
pub(crate) fn check_protocol(text: &str, preset: Preset) -> Result<(), SpecError> {
    FlowProtocol::read(&one(text)?, preset, Question::default().packet).map(|_| ())
}

/// Options of `compare`.
///
/// ```
/// use narrows_base::Duration;
/// use narrows_lab::collect::{OutcomeMetadata, collect};
/// use narrows_lab::compare::Question;
/// use narrows_lab::execute::{RunControl, execute};
/// use narrows_scenario::Plan;
/// use std::path::Path;
///
/// let question = Question {
///     link: "2Mbit/s,20ms,loss=1%".into(),
///     protocols: "cubic,bbr".into(),
///     duration: Duration::from_secs(5),
///     seeds: 2,
///     ..Question::default()
/// };
/// let (scenario, link) = question.scenario(Path::new("."))?;
/// let plan = Plan::new(scenario)?;
/// let control = RunControl::quiet(1);
/// let runs = execute(&plan, &control)?;
/// let link = link.to_string();
/// let about = OutcomeMetadata { command: "compare", link, ..OutcomeMetadata::default() };
/// let outcome = collect(&plan, about, &runs, Some(&control));
/// assert_eq!(outcome.results.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Question {
    /// A link's specification or name.
    pub link: String,
    /// Links of further paths between the same two ends.
    pub paths: Vec<String>,
    /// Families and names with parameters, separated by commas ([`narrows_scenario::families`]).
    pub protocols: String,
    /// The traffic of the flows under test.
    pub source: SourceSpec,
    /// Flows of the protocol under test.
    pub flows: usize,
    /// `NAME[:M]`: competitors on the same link.
    pub against: Option<String>,
    /// `NAME[:M]`: flows in the reverse direction.
    pub reverse: Option<String>,
    /// Simulated time.
    pub duration: Duration,
    /// Measures start at this time.
    pub warmup: Duration,
    /// Starts are drawn over this time; `None` is the link's base RTT.
    pub stagger: Option<Duration>,
    /// Bytes of a data packet.
    pub packet: u32,
    /// Number of seeds.
    pub seeds: u32,
    /// First seed.
    pub seed: u64,
    /// The TCP implementation that the endpoints imitate.
    pub preset: Preset,
    /// Changes and hints during a run.
    pub timeline: Timeline,
}

impl Default for Question {
    fn default() -> Question {
        Question {
            link: links::DEFAULT.into(),
            paths: Vec::new(),
            protocols: Aim::Bulk.protocols().into(),
            source: SourceSpec::bulk(),
            flows: 1,
            against: None,
            reverse: None,
            duration: Duration::from_secs(60),
            warmup: Duration::ZERO,
            stagger: None,
            packet: 1000,
            seeds: 10,
            seed: 1,
            preset: Preset::Linux,
            timeline: Timeline::default(),
        }
    }
}

/// Packets of Linux's TCP on Ethernet, in bytes.
const USUAL_PACKET: u32 = 1500;
/// Bits that a comparison of some 17 protocols sends over a fast link: with these it takes about two seconds on two cores.
const USUAL_BITS: f64 = 6e9;
/// Seeds on a link on which ten would take longer.
const FEWER_SEEDS: u32 = 5;
/// The shortest run: thousands of round trips on a local network, and 100 of 100 ms.
const SHORTEST_RUN_S: f64 = 10.0;

impl Question {
    /// The defaults of the commands for a link: packets of 1500 bytes (1000 in preset `ns2`, as ns-2 has), and above
    /// 10 Mbit/s less simulated time and fewer seeds, if endless flows fill it. An invalid link has the defaults of a
    /// slow one.
    pub fn usual(link: &str, preset: Preset, source: &SourceSpec, folder: &Path) -> Question {
        let mut usual = Question { preset, ..Question::default() };
        if preset != Preset::Ns2 {
            usual.packet = USUAL_PACKET;
        }
        let bps = BottleneckLink::parse(link, folder).map_or(0.0, |l| l.forward.mean_bps());
        let longest = usual.duration.as_secs_f64();
        if source.is_endless() && bps * longest * f64::from(usual.seeds) > USUAL_BITS {
            usual.seeds = FEWER_SEEDS;
            let seconds = USUAL_BITS / (bps * f64::from(FEWER_SEEDS));
            usual.duration = Duration::from_secs(seconds.clamp(SHORTEST_RUN_S, longest) as u64);
        }
        usual
    }

    /// The scenario to run, and the link with its queues resolved; trace files are found from `folder`.
    ///
    /// # Errors
    /// One line that names the flag and gives the expected form.
    pub fn scenario(&self, folder: &Path) -> Result<(Scenario, BottleneckLink), SpecError> {
        self.varied(&[], folder)
    }

    /// The same, with these keys of the link in place of its own.
    ///
    /// # Errors
    /// As [`Question::scenario`].
    pub fn varied(
        &self,
        keys: &[(&str, &str)],
        folder: &Path,
    ) -> Result<(Scenario, BottleneckLink), SpecError> {
        let link =
            BottleneckLink::parse_with(&self.link, keys, folder).map_err(|e| e.at("--link"))?;
        let link = self.with_drawn_times(link.resolved(self.packet));
        let stagger = self.stagger.unwrap_or(match self.preset {
            Preset::Rfc | Preset::Linux => link.base_rtt(),
            Preset::Ns2 => Duration::ZERO,
        });
        let own = |side: Option<narrows_scenario::access_link::AccessLink>, stream| {
            side.map(|side| OwnLink { side, stream })
        };
        let access = own(link.access, "access");
        let egress = own(link.egress, "egress");
        let flows = |name: &str, speaks, count| Flows {
            name: name.to_string(),
            speaks,
            count,
            from: "left".into(),
            to: "right".into(),
            paths: Vec::new(),
            start: Duration::ZERO,
            stagger,
            stop: None,
            source: SourceSpec::bulk(),
            host_delay: link.host_delay.unwrap_or_default(),
            access,
            egress,
            line: 0,
        };
        let read = |spec: &Spec| FlowProtocol::read(spec, self.preset, self.packet);
        read(&Spec::named("reno")).map_err(|e| e.at("--packet"))?;
        if self.flows == 0 {
            return Err(SpecError::new("--flows must be at least 1"));
        }
        let main = flows("main", GroupProtocol::Each, self.flows);
        let mut groups = vec![Flows { source: self.source.clone(), ..main }];
        if let Some(text) = &self.against {
            let (spec, count) = several(text, self.flows)
                .and_then(|x| read(&x.0).map(|_| x))
                .map_err(|e| e.at("--against"))?;
            groups.push(flows("against", GroupProtocol::One(spec), count));
        }
        if let Some(text) = &self.reverse {
            let (spec, count) = several(text, self.flows)
                .and_then(|x| read(&x.0).map(|_| x))
                .map_err(|e| e.at("--reverse"))?;
            // The network is the same; reverse flows begin behind an egress link.
            groups.push(Flows {
                from: "right".into(),
                to: "left".into(),
                access: egress,
                egress: access,
                ..flows("reverse", GroupProtocol::One(spec), count)
            });
        }
        let mut s = Scenario::named("compare");
        s.seed = self.seed;
        s.seeds = self.seeds;
        s.duration = self.duration;
        s.warmup = self.warmup;
        s.preset = self.preset;
        s.packet = self.packet;
        s.protocols = protocols(&self.protocols).map_err(|e| e.at("--protocols"))?;
        for spec in &s.protocols {
            read(spec).map_err(|e| e.at("--protocols"))?;
        }
        s.links = vec![DuplexLink {
            name: "bottleneck".into(),
            from: "left".into(),
            to: "right".into(),
            forward: link.forward.clone(),
            reverse: link.reverse.clone(),
            line: 0,
        }];
        let mut paths = vec![vec!["bottleneck".to_string()]];
        for (n, text) in self.paths.iter().enumerate() {
            let link = BottleneckLink::parse(text, folder).map_err(|e| e.at("--path"))?;
            if link.access.is_some() || link.egress.is_some() {
                let e = SpecError::new("a path has no access= or egress=: add their delay to it");
                return Err(e.at("--path"));
            }
            let link = self.with_drawn_times(link.resolved(self.packet));
            let name = format!("path-{}", n + 2);
            s.links.push(DuplexLink {
                name: name.clone(),
                from: "left".into(),
                to: "right".into(),
                forward: link.forward,
                reverse: link.reverse,
                line: 0,
            });
            paths.push(vec![name]);
        }
        if paths.len() > 1 {
            groups[0].paths = paths;
        }
        // Utilisation and losses are the given link's, even behind a slower access link.
        s.bottleneck = Some("bottleneck".into());
        s.flows = groups;
        self.timeline.add_to(&mut s)?;
        Ok((s, link))
    }
}

impl Question {
    /// Names and values of the options of `compare` for this question.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = vec![
            ("link", self.link.clone()),
            ("protocols", self.protocols.clone()),
            ("source", self.source.text().to_string()),
            ("flows", self.flows.to_string()),
            ("duration", values::time_text(self.duration)),
            ("warmup", values::time_text(self.warmup)),
            ("packet", format!("{}B", self.packet)),
            ("seeds", self.seeds.to_string()),
            ("seed", self.seed.to_string()),
            ("preset", self.preset.name().to_string()),
        ];
        let each = |name: &'static str, texts: &[String]| -> Vec<(&'static str, String)> {
            texts.iter().map(|text| (name, text.clone())).collect()
        };
        options.extend(each("path", &self.paths));
        options.extend(self.against.iter().map(|text| ("against", text.clone())));
        options.extend(self.reverse.iter().map(|text| ("reverse", text.clone())));
        options.extend(self.stagger.iter().map(|time| ("stagger", values::time_text(*time))));
        options.extend(each("change", &self.timeline.changes));
        options.extend(each("reconfigure", &self.timeline.reconfigurations));
        options
    }

    /// Host delays and trace starts that are not given are drawn, so that results do not depend on exact coincidences.
    /// In preset `ns2` they are not drawn, as in ns-2's simulations.
    fn with_drawn_times(&self, mut link: BottleneckLink) -> BottleneckLink {
        if self.preset == Preset::Ns2 {
            return link;
        }
        link.host_delay.get_or_insert(link.usual_host_delay(self.packet));
        for way in [&mut link.forward, &mut link.reverse] {
            if way.trace.is_some() {
                way.trace_start.get_or_insert(TraceStart::Random);
            }
        }
        link
    }
}

/// A traffic source as in scenarios: `bulk`, `transfer(size=1MB)`, ….
///
/// # Errors
/// An unknown source, or a parameter that it does not have.
pub fn source(text: &str) -> Result<SourceSpec, SpecError> {
    SourceSpec::read(&Spec::parse(text)?)
}
