//! Checks every field of a [`NetworkSpec`] before anything is built from it.

use crate::protocol::{DatagramConfig, StreamRecovery};
use crate::spec::{FlowSpec, GroupSpec, NetworkSpec, SeriesSpec};
use narrows_base::field::{at_most, whole};
use narrows_base::{Duration, FieldError, RandomKey, Time};
use narrows_link::MAX_TIME;

/// Most flows in one run; a million need about 2 GB.
pub const MAX_FLOWS: usize = 1_000_000;
/// Most links in one run: enough for a million flows with four links each.
pub const MAX_LINKS: usize = 8_000_000;
/// Most groups of flows in one run: each keeps a histogram of RTTs.
pub const MAX_GROUPS: usize = 10_000;
/// Most links of a route: packets count them in eight bits.
pub const MAX_HOPS: usize = 200;
/// Most paths of a flow.
pub const MAX_PATHS: usize = 16;
/// Most changes in one run.
pub const MAX_CHANGES: usize = 1_000_000;
/// Most sample times of one run.
pub const MAX_SAMPLES: u64 = 1_000_000;
/// Most samples of all sampled flows and links together; one is about ten numbers of eight bytes.
pub const MAX_ROWS: u64 = 20_000_000;
/// Most pairs of a metered link and a group; each pair has its own counters.
const MAX_METERED: usize = 4_000_000;

/// Checks all fields.
pub(crate) fn network(spec: &NetworkSpec) -> Result<(), FieldError> {
    span("end", spec.end)?;
    if spec.measure_from >= spec.end {
        let why = format!(
            "measuring begins at {:?}, which is not before the end at {:?}",
            spec.measure_from, spec.end
        );
        return Err(FieldError::new("measure_from", why));
    }
    links(spec)?;
    if spec.groups.len() > MAX_GROUPS {
        return Err(too_many("groups", spec.groups.len(), "groups", MAX_GROUPS));
    }
    let flows: usize = spec.groups.iter().map(|g| g.flows.len()).sum();
    if flows > MAX_FLOWS {
        return Err(too_many("groups", flows, "flows", MAX_FLOWS));
    }
    let metered = spec.links.iter().filter(|l| l.metered).count();
    if metered.saturating_mul(spec.groups.len()) > MAX_METERED {
        let why = format!(
            "{metered} metered links times {} groups are more than {MAX_METERED}",
            spec.groups.len()
        );
        return Err(FieldError::new("links", why));
    }
    if let Some((a, b)) = twice(spec.groups.iter().map(|g| g.name.as_str())) {
        return Err(alike("groups", a, b, &spec.groups[a].name));
    }
    for (i, g) in spec.groups.iter().enumerate() {
        group(spec, g).map_err(|e| e.within(&format!("groups[{i}]")))?;
    }
    multicast(spec)?;
    changes(spec)?;
    spec.series.as_ref().map_or(Ok(()), |s| series(spec, s).map_err(|e| e.within("series")))
}

/// Checks that a time lies within a run.
fn span(field: &str, t: Time) -> Result<(), FieldError> {
    at_most(field, t.since(Time::ZERO), MAX_TIME)
}

fn too_many(field: &str, n: usize, what: &str, max: usize) -> FieldError {
    FieldError::new(field, format!("{n} {what} are more than {max}"))
}

fn alike(list: &str, a: usize, b: usize, name: &str) -> FieldError {
    let why =
        format!("{list}[{a}] is called '{name}', too; random draws and results go by the name");
    FieldError::new(format!("{list}[{b}].name"), why)
}

/// Indices of two equal names, if there are any. Millions of names are compared by keys of eight
/// bytes.
fn twice<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Option<(usize, usize)> {
    let key = |name: &str| RandomKey::from_seed(0).named(name).bits();
    let mut keys: Vec<u64> = names.clone().map(key).collect();
    keys.sort_unstable();
    let same = keys.windows(2).find(|w| w[0] == w[1])?[0];
    let mut found = names.enumerate().filter(|(_, name)| key(name) == same).map(|(i, _)| i);
    Some((found.next()?, found.next()?))
}

fn links(spec: &NetworkSpec) -> Result<(), FieldError> {
    if spec.links.len() > MAX_LINKS {
        return Err(too_many("links", spec.links.len(), "links", MAX_LINKS));
    }
    for (i, link) in spec.links.iter().enumerate() {
        let part = || format!("links[{i}].config");
        link.config.check().map_err(|e| e.within(&part()))?;
    }
    match twice(spec.links.iter().map(|l| l.name.as_str())) {
        Some((a, b)) => Err(alike("links", a, b, &spec.links[a].name)),
        None => Ok(()),
    }
}

fn group(spec: &NetworkSpec, g: &GroupSpec) -> Result<(), FieldError> {
    g.protocol.check().map_err(|e| e.within("protocol"))?;
    for (n, f) in g.flows.iter().enumerate() {
        flow(spec, f).map_err(|e| e.within(&format!("flows[{n}]")))?;
        if !f.further.is_empty() {
            paths(g).map_err(|e| e.within(&format!("flows[{n}]")))?;
        }
    }
    Ok(())
}

/// Checks that receivers of one multicast have a tree of links, and that their controller is TEAR.
fn multicast(spec: &NetworkSpec) -> Result<(), FieldError> {
    let mut roots: Vec<(&str, u32)> = Vec::new();
    for (i, g) in spec.groups.iter().enumerate() {
        if g.source.multicast().is_none() {
            continue;
        }
        let name = g.protocol.label().split('(').next().unwrap_or_default();
        // tear-wireless sends little more than the arriving rate, and would never reach the next layer.
        if !["tear", "tear-paper"].contains(&name) {
            let why =
                format!("a multicast's receivers go by TEAR's rate: expected tear, not {name}");
            return Err(FieldError::new(format!("groups[{i}].protocol"), why));
        }
        for (n, f) in g.flows.iter().enumerate() {
            let Some(first) = f.forward.first() else { continue };
            let root = roots.iter().find(|r| r.0 == g.source.text());
            if root.is_some_and(|r| r.1 != *first) {
                let why = "receivers of one multicast share no first link: they begin at one node, and access \
                           links and host delays are each flow's own";
                return Err(FieldError::new(format!("groups[{i}].flows[{n}].forward[0]"), why));
            }
            if root.is_none() {
                roots.push((g.source.text(), *first));
            }
        }
    }
    Ok(())
}

fn flow(spec: &NetworkSpec, f: &FlowSpec) -> Result<(), FieldError> {
    if f.stop < f.start {
        let why = format!("{:?} is before the start at {:?}", f.stop, f.start);
        return Err(FieldError::new("stop", why));
    }
    route(spec, &f.forward, &f.back)?;
    if f.further.len() >= MAX_PATHS {
        return Err(too_many("further", f.further.len() + 1, "paths", MAX_PATHS));
    }
    for (i, path) in f.further.iter().enumerate() {
        route(spec, &path.forward, &path.back).map_err(|e| e.within(&format!("further[{i}]")))?;
    }
    Ok(())
}

fn route(spec: &NetworkSpec, forward: &[u32], back: &[u32]) -> Result<(), FieldError> {
    for (field, route) in [("forward", forward), ("back", back)] {
        whole(&format!("{field}.len()"), route.len() as u64, 1, MAX_HOPS as u64)?;
        if let Some(i) = route.iter().position(|l| *l as usize >= spec.links.len()) {
            return Err(no_link(format!("{field}[{i}]"), route[i] as usize, spec));
        }
    }
    Ok(())
}

/// Checks that a group's protocol can use several paths.
fn paths(g: &GroupSpec) -> Result<(), FieldError> {
    let is_stream = |c: &DatagramConfig| c.reliable && c.recovery == StreamRecovery::Rfc9002;
    if g.protocol.datagram().is_some_and(is_stream) && g.source.multicast().is_none() {
        return Ok(());
    }
    let name = g.protocol.label();
    let why =
        format!("{name} has one path: expected a stream over rrtp, such as rrtp or rrtp+cubic");
    Err(FieldError::new("further", why))
}

fn no_link(field: String, link: usize, spec: &NetworkSpec) -> FieldError {
    let why = match spec.links.len() {
        0 => format!("there is no link {link}: there are none"),
        n => format!("there is no link {link}: the last is {}", n - 1),
    };
    FieldError::new(field, why)
}

fn changes(spec: &NetworkSpec) -> Result<(), FieldError> {
    if spec.changes.len() > MAX_CHANGES {
        return Err(too_many("changes", spec.changes.len(), "changes", MAX_CHANGES));
    }
    for (i, (at, link, change)) in spec.changes.iter().enumerate() {
        let field = format!("changes[{i}]");
        let Some(target) = spec.links.get(*link) else {
            return Err(no_link(field, *link, spec));
        };
        if !target.config.changes {
            let why = format!(
                "the link '{}' changes at {at:?}, but its config.changes is not set",
                target.name
            );
            return Err(FieldError::new(field, why));
        }
        change.check().map_err(|e| e.within(&field))?;
    }
    let count = spec.reconfigurations.len();
    if count > MAX_CHANGES {
        return Err(too_many("reconfigurations", count, "reconfigurations", MAX_CHANGES));
    }
    for (i, (_, group, hints)) in spec.reconfigurations.iter().enumerate() {
        let field = format!("reconfigurations[{i}]");
        if *group >= spec.groups.len() {
            return Err(FieldError::new(field, format!("there is no group {group}")));
        }
        if hints.loss.is_some_and(|loss| !(0.0..=1.0).contains(&loss)) {
            return Err(FieldError::new(field, "a loss is from 0 to 1"));
        }
    }
    Ok(())
}

fn series(spec: &NetworkSpec, s: &SeriesSpec) -> Result<(), FieldError> {
    if s.interval == Duration::ZERO {
        return Err(FieldError::new("interval", "samples need some time between them, not 0s"));
    }
    if s.from > spec.end {
        let why = format!("{:?} is after the end at {:?}", s.from, spec.end);
        return Err(FieldError::new("from", why));
    }
    let samples = spec.end.since(s.from).as_nanos() / s.interval.as_nanos() + 1;
    let sampled: usize = spec.groups.iter().map(|g| g.flows.len().min(s.flows_per_group)).sum();
    let rows = samples.saturating_mul((sampled + s.links.len()) as u64);
    if samples > MAX_SAMPLES || rows > MAX_ROWS {
        let why = format!(
            "{} makes {samples} samples of {sampled} flows and {} links; {MAX_SAMPLES} sample times \
             and {MAX_ROWS} samples in all are the most",
            s.interval,
            s.links.len()
        );
        return Err(FieldError::new("interval", why));
    }
    let mut seen = vec![false; spec.links.len()];
    for (i, link) in s.links.iter().enumerate() {
        let field = format!("links[{i}]");
        let Some(target) = spec.links.get(*link) else { return Err(no_link(field, *link, spec)) };
        if !target.metered {
            let why = format!("the link '{}' is sampled but not metered", target.name);
            return Err(FieldError::new(field, why));
        }
        if std::mem::replace(&mut seen[*link], true) {
            let why = format!("the link '{}' is sampled twice", target.name);
            return Err(FieldError::new(field, why));
        }
    }
    Ok(())
}
