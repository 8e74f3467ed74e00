//! Common settings of environments, read and checked once.

use crate::env::action::Action;
use crate::env::controller::StepController;
use crate::env::distribution::LinkDistribution;
use crate::env::episode::Episode;
use crate::env::observation::Observation;
use crate::env::reward::Reward;
use crate::env::step::EpisodeStep;
use narrows_base::{Duration, RandomKey, Spec, SpecError, Time, units};
use narrows_congestion::{Controller, Environment as Known};
use narrows_link::LinkConfig;
use narrows_scenario::BottleneckLink;
use narrows_scenario::families::several;
use narrows_scenario::link_direction::TraceStart;
use narrows_sim::protocol::{FlowProtocol, Preset};
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SourceSpec};
use std::path::PathBuf;
use std::sync::Arc;

/// The link of [`EnvironmentSettings::default`]: another one for each episode.
pub const DEFAULT_LINK: &str = "1Mbit/s..100Mbit/s log,5ms..100ms";
/// Most competitors on a link.
pub const MAX_COMPETITORS: usize = 1000;
/// Most steps of an episode.
pub const MAX_STEPS: u32 = 100_000_000;
/// Most simulated time of a step.
const MAX_STEP: Duration = Duration::from_secs(3600);
/// Most round trips of a step.
const MAX_RTTS: f64 = 1000.0;

/// The name under which environments draw.
pub(crate) const ENVIRONMENT: &str = "environment";

/// Which endpoints the flow has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Transport {
    /// TCP with selective acknowledgements, as the preset has it.
    #[default]
    Tcp,
    /// The preset of rrtp.
    Rrtp,
}

/// How long a step is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum StepLength {
    /// So many base RTTs of the episode's link.
    Rtts(f64),
    /// A fixed duration.
    Time(Duration),
}

impl StepLength {
    /// Reads `1rtt`, `0.5rtt` or a time such as `10ms`.
    ///
    /// # Errors
    /// Names the fault in the text and the expected form.
    pub fn parse(text: &str) -> Result<StepLength, SpecError> {
        let wrong = || SpecError::new(format!("a step is written as 1rtt or 10ms, not '{text}'"));
        let length = match text.trim().strip_suffix("rtt") {
            Some(number) => StepLength::Rtts(number.trim().parse().map_err(|_| wrong())?),
            None => StepLength::Time(units::duration(text).map_err(|_| wrong())?),
        };
        let possible = match length {
            StepLength::Rtts(n) => n > 0.0 && n <= MAX_RTTS,
            StepLength::Time(d) => d > Duration::ZERO && d <= MAX_STEP,
        };
        if possible {
            return Ok(length);
        }
        Err(SpecError::new(format!(
            "'{text}': a step is longer than 0, at most {MAX_RTTS}rtt or {MAX_STEP}"
        )))
    }
}

/// Settings of an environment, as users write them.
#[derive(Clone, Debug)]
pub struct EnvironmentSettings {
    /// The link, with ranges where something is drawn ([`LinkDistribution`]).
    pub link: String,
    /// Where trace files are found.
    pub folder: PathBuf,
    /// Bytes of a data packet on the wire.
    pub packet: u32,
    /// Preset of the TCP endpoints.
    pub preset: Preset,
    /// Which endpoints the flow has.
    pub transport: Transport,
    /// A listed protocol that decides in the actions' place: a baseline in the same measures.
    pub protocol: Option<String>,
    /// `NAME[:M]`: competitors on the same link.
    pub against: Option<String>,
    /// Limits that a policy sets: names of [`ACTIONS`](crate::env::ACTIONS).
    pub actions: Vec<String>,
    /// Values that a policy observes: names of [`OBSERVATIONS`](crate::env::OBSERVATIONS).
    pub observations: Vec<String>,
    /// Terms of the reward: names of [`REWARDS`](crate::env::REWARDS) and their weights.
    pub rewards: Vec<(String, f64)>,
    /// Length of a step.
    pub step: StepLength,
    /// Steps of an episode.
    pub steps: u32,
}

impl Default for EnvironmentSettings {
    fn default() -> EnvironmentSettings {
        let names = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        EnvironmentSettings {
            link: DEFAULT_LINK.into(),
            folder: PathBuf::new(),
            packet: 1000,
            preset: Preset::Linux,
            transport: Transport::Tcp,
            protocol: None,
            against: None,
            actions: names(&["window_change"]),
            observations: names(&[
                "rate_ratio",
                "rtt_ratio",
                "rtt_gradient",
                "loss",
                "delivery_ratio",
                "bdp_ratio",
            ]),
            rewards: vec![
                ("throughput".into(), 1.0),
                ("delay".into(), -0.2),
                ("loss".into(), -1.0),
            ],
            step: StepLength::Rtts(1.0),
            steps: 400,
        }
    }
}

/// Settings that have been read and checked; environments share one.
#[derive(Clone, Debug)]
pub struct Task {
    links: LinkDistribution,
    packet: u32,
    protocol: FlowProtocol,
    opening_rtts: u32,
    against: Option<(FlowProtocol, usize)>,
    actions: Vec<&'static Action>,
    observations: Vec<&'static Observation>,
    rewards: Vec<(&'static Reward, f64)>,
    step: StepLength,
    steps: u32,
    initial_window: f64,
}

impl Task {
    /// Reads and checks settings.
    ///
    /// # Errors
    /// One line that names the setting and the expected value.
    pub fn new(s: &EnvironmentSettings) -> Result<Task, SpecError> {
        let links = LinkDistribution::parse(&s.link, &s.folder).map_err(|e| e.at("link"))?;
        let read = |spec: &Spec| FlowProtocol::read(spec, s.preset, s.packet);
        let rrtp = s.transport == Transport::Rrtp;
        let own = read(&Spec::named(if rrtp { "rrtp+reno" } else { "reno" }));
        let own = own.map_err(|e| e.at("packet"))?;
        let (protocol, opening_rtts) = match &s.protocol {
            None => {
                let make = |known: &Known, _| {
                    Box::new(StepController::new(known.initial_window, None)) as Box<dyn Controller>
                };
                (own.wrapped(make), if rrtp { 3 } else { 2 })
            }
            Some(text) => {
                let listed = Spec::parse(text).and_then(|spec| read(&spec));
                let listed = listed.map_err(|e| e.at("protocol"))?;
                let wrap = |known: &Known, listed| {
                    Box::new(StepController::new(known.initial_window, Some(listed)))
                        as Box<dyn Controller>
                };
                (listed.wrapped(wrap), 2)
            }
        };
        let competitors = |text: &String| {
            let (spec, flows) = several(text, 1)?;
            if flows > MAX_COMPETITORS {
                let e = format!("{flows} flows are too many; a link has at most {MAX_COMPETITORS}");
                return Err(SpecError::new(e));
            }
            Ok((read(&spec)?, flows))
        };
        let against =
            s.against.as_ref().map(competitors).transpose().map_err(|e| e.at("against"))?;
        let actions = s.actions.iter().map(|n| Action::find(n)).collect::<Result<Vec<_>, _>>()?;
        Action::check(&actions)?;
        let observations =
            s.observations.iter().map(|n| Observation::find(n)).collect::<Result<Vec<_>, _>>()?;
        if observations.is_empty() {
            return Err(SpecError::new("observations: there is none"));
        }
        let mut rewards = Vec::new();
        for (name, weight) in &s.rewards {
            if !weight.is_finite() {
                let e =
                    format!("reward '{name}': its weight is {weight}, which is no finite number");
                return Err(SpecError::new(e));
            }
            rewards.push((Reward::find(name)?, *weight));
        }
        if !(1..=MAX_STEPS).contains(&s.steps) {
            return Err(SpecError::new(format!(
                "steps: {} is not a number of steps from 1 to {MAX_STEPS}",
                s.steps
            )));
        }
        let key = RandomKey::from_seed(0);
        let hints = protocol.hints();
        let task = Task {
            links,
            packet: s.packet,
            initial_window: protocol.environment(s.packet, key, hints).initial_window,
            protocol,
            opening_rtts,
            against,
            actions,
            observations,
            rewards,
            step: s.step,
            steps: s.steps,
        };
        task.episode(key)?;
        Ok(task)
    }

    /// Limits that a policy sets.
    pub fn actions(&self) -> &[&'static Action] {
        &self.actions
    }
    /// Values that a policy observes.
    pub fn observations(&self) -> &[&'static Observation] {
        &self.observations
    }
    /// Steps of an episode.
    pub fn steps(&self) -> u32 {
        self.steps
    }
    /// Flows of an environment: its own and its competitors.
    pub fn flows(&self) -> usize {
        1 + self.against.as_ref().map_or(0, |(_, flows)| *flows)
    }

    /// The reward of a step.
    pub(crate) fn reward(&self, step: &EpisodeStep) -> f64 {
        self.rewards.iter().map(|(term, weight)| weight * (term.read)(step)).sum()
    }

    /// The network of the first episode of an environment with this seed, for [`narrows_sim::run`] to simulate as a
    /// whole. Stepping is compared with it.
    ///
    /// # Errors
    /// The drawn link is invalid.
    pub fn network(&self, seed: u64) -> Result<NetworkSpec, SpecError> {
        let key = RandomKey::from_seed(seed).named(ENVIRONMENT).numbered(0);
        self.episode(key).map(|(network, _, _)| network)
    }

    /// The network of an episode, its link, and when its first step begins.
    pub(crate) fn episode(
        &self,
        key: RandomKey,
    ) -> Result<(NetworkSpec, Episode, Time), SpecError> {
        let link = self.links.draw(key.named("link"))?.folded()?.resolved(self.packet);
        let mut episode = Episode::new(&link, self.packet, self.initial_window);
        let rtt = Duration::from_secs_f64(episode.base_rtt_s);
        episode.step = match self.step {
            StepLength::Rtts(n) => link.base_rtt().mul_f64(n).max(rtt.mul_f64(1e-3)),
            StepLength::Time(d) => d,
        };
        let begin = Time::ZERO + rtt.saturating_mul(u64::from(self.opening_rtts));
        let end = begin + episode.step.saturating_mul(u64::from(self.steps));
        // Only steps measure.
        let measure_from = Time::from_nanos(end.as_nanos() - 1);
        link.forward.carries(self.packet).and_then(|()| link.reverse.carries(self.packet))?;
        let links = [("link", &link.forward), ("link.back", &link.reverse)].map(|(name, way)| {
            let mut config = way.config(link.base_rtt(), self.packet, false);
            if let Some(trace) = &config.trace {
                let offset = match way.trace_start.unwrap_or(TraceStart::Random) {
                    TraceStart::At(offset) => offset,
                    TraceStart::Random => trace.period().mul_f64(key.named("trace").draw(0)),
                };
                config.trace = Some(Arc::new(trace.entered_at(offset)));
            }
            LinkSpec { name: name.to_string(), config: Arc::new(config), metered: false }
        });
        let mut spec = NetworkSpec {
            seed: key.named("network").bits(),
            end,
            measure_from,
            links: links.into(),
            groups: Vec::with_capacity(2),
            ..NetworkSpec::default()
        };
        let host = link.host_delay.filter(|d| *d > Duration::ZERO);
        let mut group = |name: &str, protocol: &FlowProtocol, flows, late: bool| {
            let flow = |n: u64| {
                let mut forward = vec![0];
                if let Some(host) = host {
                    forward.insert(0, spec.links.len() as u32);
                    let mut config =
                        LinkConfig::plain(narrows_base::rate::MAX_RATE, Duration::ZERO);
                    config.impairments.jitter = host;
                    let name = format!("{name}.{n}.host");
                    let config = Arc::new(config);
                    spec.links.push(LinkSpec { name, config, metered: false });
                }
                // Competitors begin anywhere in the first round trip.
                let start = if late { key.named("start").draw(n) } else { 0.0 };
                let start = Time::ZERO + rtt.mul_f64(start);
                FlowSpec { start, ..FlowSpec::new(forward, vec![1]) }
            };
            let flows = (0..flows as u64).map(flow).collect();
            let name = name.to_string();
            let protocol = protocol.clone();
            spec.groups.push(GroupSpec { name, protocol, source: SourceSpec::bulk(), flows });
        };
        group("agent", &self.protocol, 1, false);
        if let Some((protocol, flows)) = &self.against {
            group("against", protocol, *flows, true);
        }
        Ok((spec, episode, begin))
    }

    /// The link of an episode, as text.
    pub(crate) fn link(&self, key: RandomKey) -> Result<BottleneckLink, SpecError> {
        self.links.draw(key.named("link"))
    }
}
