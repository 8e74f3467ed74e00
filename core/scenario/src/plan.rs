//! A checked scenario with routes and protocols, which can run with any seed.

mod steps;

pub use steps::ShareChange;

use crate::link_direction::{LinkDirection, QueueSize, TraceStart};
use crate::route::Map;
use crate::scenario::{Flows, GroupProtocol, OwnLink, Scenario, at_line};
use crate::values::{MAX_DELAY, loss_text, queue_text, rate_text};
use narrows_base::rate::MAX_RATE;
use narrows_base::{Duration, RandomKey, SpecError, Time};
use narrows_congestion::PathHints;
use narrows_link::{Impairments, LinkChange, LinkConfig};
use narrows_sim::protocol::FlowProtocol;
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, PathSpec, SeriesSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Limit on the links of a route; the simulator's own limit is ten more.
const MAX_ROUTE: usize = 190;

/// A scenario that can be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario that was checked.
    pub scenario: Scenario,
    groups: Vec<Group>,
    /// Groups with results.
    pub reported: Vec<usize>,
    /// Metered directed links, ascending.
    metered: Vec<u32>,
    changes: Vec<(Time, usize, LinkChange)>,
    reconfigurations: Vec<(Time, usize, PathHints)>,
}

#[derive(Clone, Debug)]
struct Group {
    /// One per variant.
    protocols: Vec<FlowProtocol>,
    forward: Vec<u32>,
    back: Vec<u32>,
    /// Paths after the first.
    further: Vec<PathSpec>,
    bottleneck: u32,
}

impl Plan {
    /// Checks a scenario.
    ///
    /// # Errors
    /// One line with the place (the line of its file, if it has one) and the error.
    pub fn new(scenario: Scenario) -> Result<Plan, SpecError> {
        check_times(&scenario)?;
        check_names(&scenario)?;
        for wire in &scenario.links {
            for way in [&wire.forward, &wire.reverse] {
                way.carries(scenario.packet).map_err(|e| at_line(wire.line, e))?;
            }
        }
        let map = Map::new(&scenario.links);
        let names = LinkNames::of(&scenario);
        let mut groups = Vec::new();
        for flows in &scenario.flows {
            groups.push(group(&scenario, &map, &names, flows).map_err(|e| at_line(flows.line, e))?);
        }
        if groups.is_empty() {
            return Err(SpecError::new("there are no flows; a scenario needs [[flows]]"));
        }
        let each = |f: &Flows| f.speaks == GroupProtocol::Each;
        let varies = scenario.flows.iter().any(each);
        if varies && scenario.protocols.is_empty() {
            return Err(SpecError::new("protocol = \"each\" needs protocols = [\"…\"] at the top"));
        }
        if !varies && !scenario.protocols.is_empty() {
            return Err(SpecError::new("protocols = […] needs flows with protocol = \"each\""));
        }
        let reported = (0..groups.len()).filter(|g| !varies || each(&scenario.flows[*g])).collect();
        let total = scenario.flows.iter().fold(0usize, |n, f| n.saturating_add(f.count));
        if total > narrows_sim::spec::MAX_FLOWS {
            return Err(SpecError::new(format!(
                "{total} flows are too many; a run holds {}",
                narrows_sim::spec::MAX_FLOWS
            )));
        }
        let mut metered: Vec<u32> = groups.iter().map(|g: &Group| g.bottleneck).collect();
        for name in &scenario.probe.links {
            metered.push(names.direction(name).map_err(|e| at_line(scenario.probe.line, e))?);
        }
        metered.sort_unstable();
        metered.dedup();
        let mut changes = Vec::new();
        for c in &scenario.changes {
            let link = names.direction(&c.link).map_err(|e| at_line(c.line, e))?;
            if c.at > scenario.duration {
                let e =
                    format!("a change at {} comes after the end at {}", c.at, scenario.duration);
                return Err(at_line(c.line, SpecError::new(e)));
            }
            if matches!(c.change, LinkChange::Rate(_)) && way(&scenario, link).trace.is_some() {
                let e = format!("link '{}' follows a trace, so its rate cannot be changed", c.link);
                return Err(at_line(c.line, SpecError::new(e)));
            }
            if let LinkChange::Mtu(mtu) = c.change {
                let mut changed = way(&scenario, link).clone();
                changed.impairments.mtu = Some(mtu);
                changed.carries(scenario.packet).map_err(|e| at_line(c.line, e))?;
            }
            changes.push((time(c.at), link as usize, c.change.clone()));
        }
        changes.sort_by_key(|c| c.0);
        let reconfigurations = reconfigurations(&scenario)?;
        let plan = Plan { groups, reported, metered, changes, reconfigurations, scenario };
        Ok(plan)
    }

    /// The simulator's specification of this variant and seed.
    pub fn network(&self, variant: usize, seed: u64, series: bool) -> NetworkSpec {
        let s = &self.scenario;
        let mut links = Vec::with_capacity(2 * s.links.len());
        let changing: BTreeSet<usize> = self.changes.iter().map(|c| c.1).collect();
        for (w, wire) in s.links.iter().enumerate() {
            // In a scenario, a link's BDP is computed from its own two delays.
            let rtt = wire.forward.delay + wire.reverse.delay;
            for (side, way, name) in
                [(0, &wire.forward, wire.name.clone()), (1, &wire.reverse, back_name(&wire.name))]
            {
                let index = 2 * w + side;
                let mut config = way.config(rtt, s.packet, changing.contains(&index));
                if let Some(start) = way.trace_start {
                    start.enter(&mut config, &name, seed);
                }
                let metered = self.metered.binary_search(&(index as u32)).is_ok();
                links.push(LinkSpec { name, config: config.into(), metered });
            }
        }
        let groups = (s.flows.iter().zip(&self.groups))
            .map(|(flows, group)| {
                let host = host(flows.host_delay);
                let flow = |i| flow(flows, group, i, seed, host.as_ref(), &mut links);
                GroupSpec {
                    name: flows.name.clone(),
                    protocol: group.protocols[variant.min(group.protocols.len() - 1)].clone(),
                    source: flows.source.clone(),
                    flows: (0..flows.count).map(flow).collect(),
                }
            })
            .collect();
        NetworkSpec {
            seed,
            end: time(s.duration),
            measure_from: time(s.warmup),
            links,
            groups,
            changes: self.changes.clone(),
            reconfigurations: self.reconfigurations.clone(),
            series: series.then(|| SeriesSpec {
                interval: s.probe.interval.unwrap_or(usual_interval(s.duration)),
                from: Time::ZERO,
                links: self.metered.iter().map(|l| *l as usize).collect(),
                flows_per_group: s.probe.flows,
            }),
        }
    }

    /// Whether the network has random draws; draws of protocols do not count.
    pub fn draws(&self) -> bool {
        let s = &self.scenario;
        // Any queue management or loss process counts, even if it has no random draws.
        let drawn = |way: &LinkDirection| {
            !way.loss.is_empty()
                || way.aqm.is_some()
                || Impairments { policer: None, mtu: None, ..way.impairments }
                    != Impairments::default()
                || way.trace_start == Some(TraceStart::Random)
        };
        let ranges = |own: &Option<OwnLink>| own.is_some_and(|own| own.side.is_range());
        s.links.iter().any(|wire| drawn(&wire.forward) || drawn(&wire.reverse))
            || s.changes.iter().any(|c| matches!(c.change, LinkChange::Loss(_)))
            || s.flows.iter().any(|f| {
                f.stagger > Duration::ZERO
                    || f.host_delay > Duration::ZERO
                    || ranges(&f.access)
                    || ranges(&f.egress)
                    || !(f.source.is_endless() || f.source.is_transfer())
            })
    }

    /// The protocol of a group in a variant.
    pub fn protocol(&self, group: usize, variant: usize) -> &FlowProtocol {
        let p = &self.groups[group].protocols;
        &p[variant.min(p.len() - 1)]
    }
    /// The index of the group's bottleneck among the metered links of a result.
    pub fn bottleneck(&self, group: usize) -> usize {
        let link = self.groups[group].bottleneck;
        self.metered.iter().position(|m| *m == link).unwrap_or(0)
    }
    /// The name of the group's bottleneck.
    pub fn bottleneck_name(&self, group: usize) -> String {
        name_of(&self.scenario, self.groups[group].bottleneck)
    }
    /// The amount of work of a run: packets that its bottlenecks could carry, and its flows.
    pub fn work(&self) -> f64 {
        let s = &self.scenario;
        let links: BTreeSet<u32> = self.groups.iter().map(|g| g.bottleneck).collect();
        let bps: f64 = links.into_iter().map(|l| way(s, l).mean_bps()).sum();
        let flows: usize = s.flows.iter().map(|f| f.count).sum();
        bps * s.duration.as_secs_f64() / (8.0 * f64::from(s.packet.max(1))) + 100.0 * flows as f64
    }
    /// One line for readers: the groups of flows, and each bottleneck.
    pub fn describe(&self) -> String {
        let s = &self.scenario;
        let flows: usize = s.flows.iter().map(|f| f.count).sum();
        let many = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let mut text = format!("{}, {}", many(s.links.len(), "link"), many(flows, "flow"));
        let mut named = BTreeSet::new();
        for group in &self.reported {
            let link = self.groups[*group].bottleneck;
            if named.insert(link) {
                let w = way(s, link);
                let rtt = s.links[link as usize / 2].forward.delay
                    + s.links[link as usize / 2].reverse.delay;
                let room = queue_text(QueueSize::Fixed(w.limit(rtt, s.packet)));
                let managed = w.aqm.as_ref().map_or(String::new(), |aqm| format!(" under {aqm}"));
                text += &format!(
                    "; bottleneck {}: {}, {}, queue {room}{managed}, loss {}",
                    name_of(s, link),
                    rate_text(w.rate),
                    w.delay,
                    loss_text(&w.loss)
                );
            }
        }
        text
    }
    /// Groups with data through the same bottleneck in the same direction as this group's.
    pub fn others(&self, group: usize) -> Vec<usize> {
        let link = self.groups[group].bottleneck;
        (0..self.groups.len())
            .filter(|g| *g != group && self.groups[*g].forward.contains(&link))
            .collect()
    }
}

/// New hints with their time and group, by time.
fn reconfigurations(s: &Scenario) -> Result<Vec<(Time, usize, PathHints)>, SpecError> {
    let mut out = Vec::new();
    for r in &s.reconfigurations {
        let names: Vec<&str> = s.flows.iter().map(|f| f.name.as_str()).collect();
        let Some(group) = names.iter().position(|n| *n == r.flows) else {
            return Err(at_line(r.line, SpecError::unknown("group of flows", &r.flows, &names)));
        };
        if r.at > s.duration {
            let e = format!("a reconfiguration at {} comes after the end at {}", r.at, s.duration);
            return Err(at_line(r.line, SpecError::new(e)));
        }
        out.push((time(r.at), group, r.hints));
    }
    out.sort_by_key(|r| r.0);
    Ok(out)
}

/// The default interval: a 600th of the run, at least 10 ms.
fn usual_interval(duration: Duration) -> Duration {
    Duration::from_nanos((duration.as_nanos() / 600).max(10_000_000))
}

/// The name of a wire's other direction.
pub fn back_name(name: &str) -> String {
    format!("{name}.back")
}

fn time(d: Duration) -> Time {
    Time::ZERO + d
}

fn way(s: &Scenario, link: u32) -> &LinkDirection {
    let wire = &s.links[link as usize / 2];
    if link.is_multiple_of(2) { &wire.forward } else { &wire.reverse }
}

fn name_of(s: &Scenario, link: u32) -> String {
    let name = &s.links[link as usize / 2].name;
    if link.is_multiple_of(2) { name.clone() } else { back_name(name) }
}

/// Directed links by name.
struct LinkNames(BTreeMap<String, u32>);

impl LinkNames {
    fn of(s: &Scenario) -> LinkNames {
        let count = 2 * s.links.len() as u32;
        LinkNames((0..count).map(|l| (name_of(s, l), l)).collect())
    }
    fn direction(&self, name: &str) -> Result<u32, SpecError> {
        self.0.get(name).copied().ok_or_else(|| {
            let names: Vec<&str> = self.0.keys().map(String::as_str).collect();
            SpecError::unknown("link", name, &names)
        })
    }
}

fn check_times(s: &Scenario) -> Result<(), SpecError> {
    if s.duration == Duration::ZERO {
        return Err(SpecError::new("the duration must be longer than 0s"));
    }
    if s.duration > MAX_DELAY {
        return Err(SpecError::new(format!(
            "a duration of {} is longer than ten years",
            s.duration
        )));
    }
    if s.warmup >= s.duration {
        return Err(SpecError::new(format!(
            "the warm-up ({}) must be shorter than the duration ({}), or the measured span is empty",
            s.warmup, s.duration
        )));
    }
    if s.probe.interval == Some(Duration::ZERO) {
        return Err(at_line(
            s.probe.line,
            SpecError::new("the probe's interval must be longer than 0s"),
        ));
    }
    if let Some(i) = s.probe.interval
        && s.duration.as_nanos() / i.as_nanos() > 1_000_000
    {
        let e = format!("an interval of {i} makes more than a million samples");
        return Err(at_line(s.probe.line, SpecError::new(e)));
    }
    if s.seeds == 0 {
        return Err(SpecError::new("at least one seed is needed"));
    }
    Ok(())
}

fn check_names(s: &Scenario) -> Result<(), SpecError> {
    let mut seen = BTreeSet::new();
    for wire in &s.links {
        for name in [wire.name.clone(), back_name(&wire.name)] {
            if !seen.insert(name.clone()) {
                let e = format!("two links are called '{name}'; give one of them another name");
                return Err(at_line(wire.line, SpecError::new(e)));
            }
        }
        if wire.from == wire.to {
            let e = format!("a link joins two nodes, not '{}' with itself", wire.from);
            return Err(at_line(wire.line, SpecError::new(e)));
        }
    }
    let mut seen = BTreeSet::new();
    for flows in &s.flows {
        if !seen.insert(flows.name.as_str()) {
            let e =
                format!("two groups of flows are called '{}'; give one another name", flows.name);
            return Err(at_line(flows.line, SpecError::new(e)));
        }
    }
    Ok(())
}

fn group(
    s: &Scenario,
    map: &Map<'_>,
    names: &LinkNames,
    flows: &Flows,
) -> Result<Group, SpecError> {
    if flows.count == 0 {
        return Err(SpecError::new("count must be at least 1"));
    }
    if flows.stop.is_some_and(|stop| stop <= flows.start) {
        return Err(SpecError::new(format!("'{}' stops before it starts", flows.name)));
    }
    if flows.start + flows.stagger > MAX_DELAY {
        return Err(SpecError::new(format!("'{}' starts after more than ten years", flows.name)));
    }
    let read = |spec| FlowProtocol::read(spec, s.preset, s.packet);
    let protocols = match &flows.speaks {
        GroupProtocol::One(spec) => vec![read(spec)?],
        GroupProtocol::Each => s.protocols.iter().map(read).collect::<Result<_, _>>()?,
    };
    let mut further = Vec::new();
    for path in &flows.paths {
        further.push(named_path(s, names, flows, path)?);
    }
    let (forward, back) = if further.is_empty() {
        (map.route(&flows.from, &flows.to)?, map.route(&flows.to, &flows.from)?)
    } else {
        let PathSpec { forward, back } = further.remove(0);
        (forward, back)
    };
    if !further.is_empty() {
        if flows.access.is_some() || flows.egress.is_some() {
            let e = "access and egress are links of one path: with paths = […], add them to each";
            return Err(SpecError::new(e));
        }
        for protocol in &protocols {
            if !protocol.datagram().is_some_and(|c| c.reliable) {
                let name = protocol.label();
                let e = format!("{name} has one path: several need rrtp, as in rrtp or rrtp+cubic");
                return Err(SpecError::new(e));
            }
        }
    }
    if forward.len().max(back.len()) > MAX_ROUTE {
        return Err(SpecError::new(format!(
            "the route from '{}' to '{}' has more than {MAX_ROUTE} links",
            flows.from, flows.to
        )));
    }
    let slowest = forward
        .iter()
        .copied()
        .min_by(|a, b| way(s, *a).mean_bps().total_cmp(&way(s, *b).mean_bps()));
    let mut bottleneck = slowest.unwrap_or(0);
    if let Some(name) = &s.bottleneck {
        let wanted = names.direction(name)?;
        if forward.contains(&wanted) {
            bottleneck = wanted;
        }
    }
    Ok(Group { protocols, forward, back, further, bottleneck })
}

/// A path through these links: each begins where the one before it ends.
fn named_path(
    s: &Scenario,
    names: &LinkNames,
    flows: &Flows,
    path: &[String],
) -> Result<PathSpec, SpecError> {
    let mut forward = Vec::new();
    let mut node = flows.from.as_str();
    for name in path {
        let link = names.direction(name)?;
        let wire = &s.links[link as usize / 2];
        let ends =
            if link.is_multiple_of(2) { [&wire.from, &wire.to] } else { [&wire.to, &wire.from] };
        if ends[0] != node {
            let e = format!("link '{name}' of a path begins at '{}', not at '{node}'", ends[0]);
            return Err(SpecError::new(e));
        }
        node = ends[1];
        forward.push(link);
    }
    if node != flows.to || forward.is_empty() {
        let e = format!("a path ends at '{node}', not at '{}'", flows.to);
        return Err(SpecError::new(e));
    }
    // The other direction of link 2n is 2n + 1.
    let back = forward.iter().rev().map(|link| link ^ 1).collect();
    Ok(PathSpec { forward, back })
}

/// A sending host: a link of the highest rate, which delays each packet by a random time and keeps their order. The
/// engine computes it without events, as every link that one flow enters.
fn host(delay: Duration) -> Option<Arc<LinkConfig>> {
    (delay > Duration::ZERO).then(|| {
        let mut config = LinkConfig::plain(MAX_RATE, Duration::ZERO);
        config.impairments.jitter = delay;
        Arc::new(config)
    })
}

/// Flow number `i` of its group, with links of its own appended to `links`.
fn flow(
    flows: &Flows,
    group: &Group,
    i: usize,
    seed: u64,
    host: Option<&Arc<LinkConfig>>,
    links: &mut Vec<LinkSpec>,
) -> FlowSpec {
    let name = format!("{}.{i}", flows.name);
    let mut forward = Vec::new();
    let mut back = Vec::new();
    let mut own = |own: &Option<OwnLink>, place: &str| {
        own.map(|own| {
            let (rate, delay) = own.side.draw(seed, own.stream, &name);
            let there = links.len() as u32;
            // Thousands of flows may have equal links of their own; these share a configuration.
            let alike = |l: &&LinkSpec| l.config.is_plain(rate, delay);
            let config = match links.iter().rev().take(4).find(alike) {
                Some(link) => link.config.clone(),
                None => Arc::new(LinkConfig::plain(rate, delay)),
            };
            for name in [format!("{name}.{place}"), format!("{name}.{place}.back")] {
                links.push(LinkSpec { name, config: config.clone(), metered: false });
            }
            there
        })
    };
    let access = own(&flows.access, "access");
    let egress = own(&flows.egress, "egress");
    if let Some(host) = host {
        forward.push(links.len() as u32);
        links.push(LinkSpec { name: format!("{name}.host"), config: host.clone(), metered: false });
    }
    forward.extend(access);
    forward.extend(&group.forward);
    forward.extend(egress);
    back.extend(egress.map(|l| l + 1));
    back.extend(&group.back);
    back.extend(access.map(|l| l + 1));
    let mut further = group.further.clone();
    for (n, path) in further.iter_mut().enumerate() {
        if let Some(host) = host {
            path.forward.insert(0, links.len() as u32);
            let name = format!("{name}.host.{}", n + 1);
            links.push(LinkSpec { name, config: host.clone(), metered: false });
        }
    }
    let late = RandomKey::from_seed(seed).named("start").named(&name).draw(0);
    let start = time(flows.start + flows.stagger.mul_f64(late));
    FlowSpec { start, stop: flows.stop.map_or(Time::NEVER, time), forward, back, further }
}
