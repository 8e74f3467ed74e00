//! The plan by the flags. All errors in the flags are found before anything is created.

use super::args::LinkArgs;
use super::on_page::LinkPage;
use super::recorded::Recorded;
use crate::failure::Failure;
use crate::record::RecordArgs;
use crate::relay::{configs, directions, links};
use crate::transport::PACKET;
use narrows_base::{SpecError, Time};
use narrows_emulator::{LinkOptions, TopologyLink};
use narrows_link::LinkChange;
use narrows_net::Clock;
use narrows_scenario::link_direction::LinkDirection;
use narrows_scenario::plan::back_name;
use narrows_scenario::scenario::DuplexLink;
use narrows_scenario::{Scenario, scenario_file};
use std::path::Path;
use std::process::Command;

/// The links to create.
pub enum LinkPlan {
    Between { names: [String; 2], single: Box<Single> },
    Behind { single: Box<Single> },
    Far { far: String, single: Box<Single> },
    Scenario { wires: Vec<(TopologyLink, [LinkDirection; 2])>, commands: Vec<(String, String)> },
}

/// A single link, with the text of both directions.
pub struct Single {
    pub options: LinkOptions,
    pub ways: [LinkDirection; 2],
}

impl LinkPlan {
    pub fn read(a: &LinkArgs) -> Result<LinkPlan, Failure> {
        if let Some(file) = &a.scenario {
            return LinkPlan::scenario(a, file);
        }
        let text = a.link.as_deref().unwrap_or_default();
        let (there, back) = links(["the link", "--back"], text, a.back.as_deref())?;
        let seed = a.seed.unwrap_or(1);
        let (forward, backward) = configs(&there, &back, seed);
        let options = LinkOptions { seed, ..LinkOptions::new(forward, backward) };
        let single = Box::new(Single { options, ways: [there, back] });
        if let Some(names) = &a.between {
            let names =
                names.split_once(':').filter(|(x, y)| !x.is_empty() && !y.is_empty() && x != y);
            let (x, y) = names.ok_or_else(|| {
                Failure::Input("--between: expected A:B, two names of `ip netns`".into())
            })?;
            return Ok(LinkPlan::Between { names: [x.into(), y.into()], single });
        }
        if a.command.is_empty() {
            return Err(Failure::Input(
                "no command: give one behind `--` (a shell: `-- bash`), or --between A:B".into(),
            ));
        }
        Ok(match &a.far {
            Some(far) => LinkPlan::Far { far: far.clone(), single },
            None => LinkPlan::Behind { single },
        })
    }

    fn scenario(a: &LinkArgs, file: &Path) -> Result<LinkPlan, Failure> {
        let scenario = scenario_file::load(file)?;
        let seed = a.seed.unwrap_or(scenario.seed);
        let wires = wires(&scenario, seed);
        if wires.is_empty() {
            return Err(Failure::Input(format!("{}: there are no links", file.display())));
        }
        let mut commands = Vec::new();
        for at in &a.at {
            let (node, command) = at
                .split_once('=')
                .ok_or_else(|| Failure::Input(format!("--at {at:?}: expected NODE=COMMAND")))?;
            let known: Vec<&str> =
                wires.iter().flat_map(|(w, _)| [w.from.as_str(), w.to.as_str()]).collect();
            if !known.contains(&node) {
                return Err(SpecError::unknown("node", node, &known).at("--at").into());
            }
            commands.push((node.to_string(), command.to_string()));
        }
        Ok(LinkPlan::Scenario { wires, commands })
    }

    /// Begins a recording for each link, if `--record` is set.
    pub fn record(&mut self, wanted: &RecordArgs) -> Result<Vec<Recorded>, Failure> {
        let begin = |below, options: &mut LinkOptions, ways: &[LinkDirection; 2]| {
            let [there, back] = ways;
            Recorded::begin(wanted, below, options, [there, back])
        };
        match self {
            LinkPlan::Between { single, .. }
            | LinkPlan::Behind { single }
            | LinkPlan::Far { single, .. } => {
                Ok(vec![begin(None, &mut single.options, &single.ways)?])
            }
            LinkPlan::Scenario { wires, .. } => wires
                .iter_mut()
                .map(|(wire, ways)| begin(Some(wire.name.as_str()), &mut wire.options, ways))
                .collect(),
        }
    }

    /// Adds all links to a page.
    pub fn show(&mut self, page: &mut LinkPage) {
        match self {
            LinkPlan::Between { single, .. }
            | LinkPlan::Behind { single }
            | LinkPlan::Far { single, .. } => {
                let Single { options, ways: [there, back] } = &mut **single;
                page.add("link", options, [there, back]);
            }
            LinkPlan::Scenario { wires, .. } => {
                for (wire, [there, back]) in wires {
                    page.add(&wire.name, &mut wire.options, [there, back]);
                }
            }
        }
    }

    /// One line that describes the links.
    pub fn what(&self, a: &LinkArgs) -> String {
        match self {
            LinkPlan::Between { single, .. }
            | LinkPlan::Behind { single }
            | LinkPlan::Far { single, .. } => {
                directions(single.ways.each_ref(), "--back", a.back.is_some())
            }
            LinkPlan::Scenario { wires, .. } => {
                let file = a.scenario.as_ref().map(|f| f.display().to_string()).unwrap_or_default();
                format!("{file}: {} links", wires.len())
            }
        }
    }

    /// Prepares a run by a user other than root; an error if that is impossible.
    pub fn without_root(&self) -> Result<(), Failure> {
        match self {
            LinkPlan::Between { .. } => Err(Failure::Input(
                "--between needs root: named namespaces belong to it (without root: --far, --scenario)".into(),
            )),
            LinkPlan::Behind { .. } => Err(through_pasta()),
            LinkPlan::Far { .. } | LinkPlan::Scenario { .. } => Ok(()),
        }
    }
}

/// Starts this command again inside pasta, which makes a namespace with access to other networks and needs no root.
/// Returns only if that fails.
fn through_pasta() -> Failure {
    use std::os::unix::process::CommandExt as _;
    let own = std::env::current_exe();
    let Ok(own) = own else { return Failure::Input("cannot find this program's file".into()) };
    let mut command = Command::new("pasta");
    command.args(["--config-net", "--quiet", "--"]).arg(own).args(std::env::args_os().skip(1));
    let e = command.exec();
    match e.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::PermissionDenied => Failure::Input(
            "the way out to other networks needs root, or pasta (package passt); commands at both ends need \
             neither: --far COMMAND"
                .into(),
        ),
        _ => Failure::Input(format!("cannot start pasta: {e}")),
    }
}

/// A scenario's links, with their scheduled changes.
fn wires(scenario: &Scenario, seed: u64) -> Vec<(TopologyLink, [LinkDirection; 2])> {
    let clock = Clock::new();
    let changes = |name: &str| -> Vec<(Time, LinkChange)> {
        let mut own: Vec<_> = (scenario.changes.iter().filter(|c| c.link == name))
            .map(|c| (Time::ZERO + c.at, c.change.clone()))
            .collect();
        own.sort_by_key(|(at, _)| *at);
        own
    };
    let wire = |w: &DuplexLink| {
        let rtt = w.forward.delay + w.reverse.delay;
        let both = [changes(&w.name), changes(&format!("{}.back", w.name))];
        let [there, back] = &both;
        let config = |way: &LinkDirection, name: &str, changes: &Vec<_>| {
            let mut config = way.config(rtt, PACKET, !changes.is_empty());
            if let Some(start) = way.trace_start {
                start.enter(&mut config, name, seed);
            }
            config
        };
        let forward = config(&w.forward, &w.name, there);
        let backward = config(&w.reverse, &back_name(&w.name), back);
        let options =
            LinkOptions { seed, name: w.name.clone(), ..LinkOptions::new(forward, backward) };
        let options = LinkOptions { changes: both, clock, ..options };
        let name = w.name.clone();
        let from = w.from.clone();
        let to = w.to.clone();
        let ways = [&w.forward, &w.reverse].map(|way| way.clone().resolved(rtt, PACKET));
        (TopologyLink { name, from, to, options }, ways)
    };
    scenario.links.iter().map(wire).collect()
}
