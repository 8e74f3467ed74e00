//! Namespaces, links and commands as the flags ask for them.

use super::LinkArgs;
use super::attend::{Running, attend};
use crate::failure::Failure;
use crate::relay::{configs, describe};
use crate::terminal;
use crate::transport::PACKET;
use narrows_base::{SpecError, Time};
use narrows_emulator::{
    Behind, EmulatedLink, Error, LinkEnd, LinkOptions, Namespace, Signals, Topology, TopologyLink,
    clean, spawn,
};
use narrows_link::Change;
use narrows_scenario::{Link, Scenario, scenario_file};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Input(e.to_string())
    }
}

pub fn link(a: &LinkArgs) -> Result<(), Failure> {
    if a.clean {
        return remove_leftovers(a.quiet);
    }
    let plan = Plan::read(a)?;
    // Before any thread: each thread has its own mask of signals, and user namespaces are for one thread only.
    let signals = Signals::take()?;
    if !narrows_emulator::is_root() {
        plan.without_root()?;
        narrows_emulator::become_root_of_own()?;
    }
    match plan {
        Plan::Between { names: [x, y], options, what } => {
            let (x, y) = (Namespace::named(&x)?, Namespace::named(&y)?);
            let link = EmulatedLink::between(&x, &y, *options)?;
            if !a.quiet {
                let end = |n: &Namespace, e: &LinkEnd| {
                    format!("{} {} {}", n.label(), e.interface, list(&e.addresses))
                };
                note(&format!("{what}\nA: {}\nB: {}", end(&x, link.a()), end(&y, link.b())));
            }
            attend(a, &signals, Running { links: vec![("link", &link)], commands: Vec::new() })
        }
        Plan::Behind { options, what } => {
            let behind = Behind::new(*options)?;
            let Some(link) = behind.link() else { return Ok(()) };
            let host = first(&link.b().addresses);
            if !a.quiet {
                note(&format!(
                    "{what}\nthe host is {host}, this end {}",
                    list(&link.a().addresses)
                ));
            }
            let mut command = words(&a.command);
            command.env("NARROWS_HOST", host.to_string());
            let child = spawn(&mut command, behind.namespace(), behind.files())?;
            let commands = vec![(name(&a.command), child)];
            attend(a, &signals, Running { links: vec![("link", link)], commands })
        }
        Plan::Far { options, far, what } => {
            let wire = TopologyLink {
                name: "link".into(),
                from: "near".into(),
                to: "far".into(),
                options: *options,
            };
            let topology = Topology::new(vec![wire])?;
            let addresses = |node: &str| -> Vec<IpAddr> {
                topology.nodes().find(|(n, _)| *n == node).map_or(Vec::new(), |(_, a)| a.to_vec())
            };
            let there = addresses("far");
            if !a.quiet {
                note(&format!("{what}\nfar: {}; near: {}", list(&there), list(&addresses("near"))));
            }
            let start = |node: &str, mut command: Command| -> Result<Child, Failure> {
                let place = topology.namespace(node).ok_or(Failure::Interrupted)?;
                command.env("NARROWS_FAR", first(&there).to_string());
                Ok(spawn(&mut command, place, topology.files())?)
            };
            let far = ("far".to_string(), start("far", shell(&far))?);
            let near = match start("near", words(&a.command)) {
                Ok(child) => (name(&a.command), child),
                Err(e) => {
                    super::attend::end(vec![far]);
                    return Err(e);
                }
            };
            let links = topology.links().iter().map(|(n, l)| (n.as_str(), l)).collect();
            attend(a, &signals, Running { links, commands: vec![far, near] })
        }
        Plan::Scenario { wires, commands, what } => {
            let topology = Topology::new(wires)?;
            if !a.quiet {
                let nodes = topology.nodes().map(|(n, a)| format!("{n}: {}", list(a)));
                note(&format!("{what}\n{}", nodes.collect::<Vec<_>>().join("\n")));
            }
            let mut running = Vec::new();
            for (node, text) in commands {
                let place = topology.namespace(&node).ok_or(Failure::Interrupted)?;
                match spawn(&mut shell(&text), place, topology.files()) {
                    Ok(child) => running.push((node, child)),
                    Err(e) => {
                        super::attend::end(running);
                        return Err(e.into());
                    }
                }
            }
            let links = topology.links().iter().map(|(n, l)| (n.as_str(), l)).collect();
            attend(a, &signals, Running { links, commands: running })
        }
    }
}

/// What is to be made; all that can be wrong in the flags is found before anything is.
enum Plan {
    Between { names: [String; 2], options: Box<LinkOptions>, what: String },
    Behind { options: Box<LinkOptions>, what: String },
    Far { options: Box<LinkOptions>, far: String, what: String },
    Scenario { wires: Vec<TopologyLink>, commands: Vec<(String, String)>, what: String },
}

impl Plan {
    fn read(a: &LinkArgs) -> Result<Plan, Failure> {
        if let Some(file) = &a.scenario {
            return Plan::scenario(a, file);
        }
        let text = a.link.as_deref().unwrap_or_default();
        let (there, back) = directions(text, a.back.as_deref())?;
        let (forward, backward) = configs(&there, &back);
        let what = format!("out: {}; back: {}", describe(&there), describe(&back));
        let options =
            LinkOptions { seed: a.seed.unwrap_or(1), ..LinkOptions::new(forward, backward) };
        let options = Box::new(options);
        if let Some(names) = &a.between {
            let names =
                names.split_once(':').filter(|(x, y)| !x.is_empty() && !y.is_empty() && x != y);
            let (x, y) = names.ok_or_else(|| {
                Failure::Input("--between: expected A:B, two names of `ip netns`".into())
            })?;
            return Ok(Plan::Between { names: [x.into(), y.into()], options, what });
        }
        if a.command.is_empty() {
            return Err(Failure::Input(
                "no command: give one behind `--` (a shell: `-- bash`), or --between A:B".into(),
            ));
        }
        Ok(match &a.far {
            Some(far) => Plan::Far { options, far: far.clone(), what },
            None => Plan::Behind { options, what },
        })
    }

    fn scenario(a: &LinkArgs, file: &Path) -> Result<Plan, Failure> {
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
                wires.iter().flat_map(|w| [w.from.as_str(), w.to.as_str()]).collect();
            if !known.contains(&node) {
                return Err(SpecError::unknown("node", node, &known).at("--at").into());
            }
            commands.push((node.to_string(), command.to_string()));
        }
        let what = format!("{}: {} links", file.display(), wires.len());
        Ok(Plan::Scenario { wires, commands, what })
    }

    /// What to do for somebody who is not root; an error where it cannot be done.
    fn without_root(&self) -> Result<(), Failure> {
        match self {
            Plan::Between { .. } => Err(Failure::Input(
                "--between needs root: named namespaces belong to it (without root: --far, --scenario)".into(),
            )),
            Plan::Behind { .. } => Err(through_pasta()),
            Plan::Far { .. } | Plan::Scenario { .. } => Ok(()),
        }
    }
}

/// Starts this command again inside pasta, which makes a namespace with a way out and needs no root. Returns
/// only what went wrong.
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

/// Both ways of the specifications.
fn directions(
    there: &str,
    back: Option<&str>,
) -> Result<
    (
        narrows_scenario::link_direction::LinkDirection,
        narrows_scenario::link_direction::LinkDirection,
    ),
    Failure,
> {
    let read = |flag: &str, text: &str| -> Result<Link, SpecError> {
        Link::parse(text, Path::new("")).and_then(Link::folded).map_err(|e| e.at(flag))
    };
    let forward = read("the link", there)?;
    let back = match back {
        Some(text) => read("--back", text)?.forward,
        None => forward.back,
    };
    Ok((forward.forward, back))
}

/// A scenario's links, with what is scheduled for them.
fn wires(scenario: &Scenario, seed: u64) -> Vec<TopologyLink> {
    let changes = |name: &str| -> Vec<(Time, Change)> {
        let mut own: Vec<_> = (scenario.changes.iter().filter(|c| c.link == name))
            .map(|c| (Time::ZERO + c.at, c.change.clone()))
            .collect();
        own.sort_by_key(|(at, _)| *at);
        own
    };
    let wire = |w: &narrows_scenario::scenario::DuplexLink| {
        let rtt = w.there.delay + w.back.delay;
        let both = [changes(&w.name), changes(&format!("{}.back", w.name))];
        let [there, back] = &both;
        let config = |way: &narrows_scenario::link_direction::LinkDirection, changes: &Vec<_>| {
            way.config(rtt, PACKET, !changes.is_empty())
        };
        let options = LinkOptions {
            seed,
            name: w.name.clone(),
            ..LinkOptions::new(config(&w.there, there), config(&w.back, back))
        };
        let options = LinkOptions { changes: both, ..options };
        TopologyLink { name: w.name.clone(), from: w.from.clone(), to: w.to.clone(), options }
    };
    scenario.links.iter().map(wire).collect()
}

fn remove_leftovers(quiet: bool) -> Result<(), Failure> {
    let cleaned = clean()?;
    if !quiet {
        note(&format!(
            "removed what {} killed runs left: {} programs, forwarding in {} namespaces",
            cleaned.links, cleaned.programs, cleaned.forwarding
        ));
    }
    Ok(())
}

fn words(command: &[String]) -> Command {
    let mut words = command.iter();
    let mut command = Command::new(words.next().map(PathBuf::from).unwrap_or_default());
    command.args(words);
    command
}

fn name(command: &[String]) -> String {
    command.first().cloned().unwrap_or_default()
}

fn shell(text: &str) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(text);
    command
}

fn first(addresses: &[IpAddr]) -> IpAddr {
    addresses.first().copied().unwrap_or(std::net::Ipv4Addr::UNSPECIFIED.into())
}

fn list(addresses: &[IpAddr]) -> String {
    addresses.iter().map(IpAddr::to_string).collect::<Vec<_>>().join(" ")
}

/// Lines for the user.
fn note(lines: &str) {
    lines.lines().for_each(terminal::note);
}
