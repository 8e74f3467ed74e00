//! Creates the namespaces, links and commands of a plan.

use super::args::LinkArgs;
use super::attend::{RunningLinks, attend};
use super::guard::LinkGuard;
use super::labelled::Labelled;
use super::on_page::{LinkPage, PageLink};
use super::plan::LinkPlan;
use super::recorded::Recorded;
use crate::failure::Failure;
use crate::{metrics, terminal};
use narrows_emulator::{
    Behind, EmulatedLink, Error, LinkEnd, Namespace, Programs, SignalReceiver, Topology,
    TopologyLink, clean,
};
use narrows_live::MetricsListener;
use narrows_live::metrics::link::LinkMetrics;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

impl From<Error> for Failure {
    fn from(e: Error) -> Failure {
        Failure::Input(e.to_string())
    }
}

pub fn link(a: &LinkArgs) -> Result<(), Failure> {
    if a.clean {
        return remove_leftovers(a.quiet);
    }
    let mut plan = LinkPlan::read(a)?;
    let root = narrows_emulator::is_root();
    if !root {
        let flag = match (&a.page.live, &a.metrics.address) {
            (Some(_), _) => Some("--live"),
            (None, Some(_)) => Some("--metrics"),
            (None, None) => None,
        };
        if let Some(flag) = flag.filter(|_| matches!(plan, LinkPlan::Behind { .. })) {
            return Err(Failure::Input(format!(
                "{flag}: without root a way out goes through pasta, where no browser reaches the page: use --far or root"
            )));
        }
        plan.without_root()?;
    }
    let mut page = LinkPage::bind(&a.page)?;
    page.iter_mut().for_each(|page| plan.show(page));
    let metrics = a.metrics.bind()?;
    // Started as the present user (in a user namespace there is no other), and before signals are blocked.
    let _guard = LinkGuard::start();
    // Before any thread is started: each thread has a signal mask of its own, and only a single-threaded process can
    // enter a user namespace.
    let signals = SignalReceiver::take()?;
    if !root {
        narrows_emulator::become_root_of_own()?;
    }
    // After the user namespace, since recordings start threads.
    let recorded = plan.record(&a.record)?;
    let done = run(a, plan, &signals, &recorded, page, metrics);
    recorded.into_iter().fold(done, |done, recorded| recorded.finish(done))
}

/// Creates the planned links and waits for their end.
fn run(
    a: &LinkArgs,
    plan: LinkPlan,
    signals: &SignalReceiver,
    recorded: &[Recorded],
    page: Option<LinkPage>,
    metrics: Option<MetricsListener>,
) -> Result<(), Failure> {
    let mut labelled = Labelled::default();
    let attend = |links: Vec<(&str, &EmulatedLink)>, programs, labelled| {
        let _page = page.map(|page| page.open(&links)).transpose()?;
        if metrics.is_some() {
            metrics::serve(metrics, vec![counted(&links)])?;
        }
        recorded.iter().zip(&links).for_each(|(recorded, (_, link))| recorded.watch(link));
        attend(a, signals, RunningLinks { links, programs, labelled })
    };
    let what = plan.what(a);
    match plan {
        LinkPlan::Between { names: [x, y], single } => {
            let options = single.options;
            let x = Namespace::named(&x)?;
            let y = Namespace::named(&y)?;
            let link = EmulatedLink::between(&x, &y, options)?;
            if !a.quiet {
                let end = |n: &Namespace, e: &LinkEnd| {
                    format!("{} {} {}", n.label(), e.interface, list(&e.addresses))
                };
                note(&format!("{what}\nA: {}\nB: {}", end(&x, link.a()), end(&y, link.b())));
            }
            attend(vec![("link", &link)], Programs::new()?, labelled)
        }
        LinkPlan::Behind { single } => {
            let behind = Behind::new(single.options)?;
            let Some(link) = behind.link() else { return Ok(()) };
            let host = first(&link.b().addresses);
            let mut command = words(&a.command);
            command.env("NARROWS_HOST", host.to_string());
            let mut programs = Programs::new()?;
            let name = name(&a.command);
            programs.start(&name, &mut command, behind.namespace(), behind.files())?;
            if !a.quiet {
                note(&format!(
                    "{what}\nthe host is {host}, this end {}",
                    list(&link.a().addresses)
                ));
            }
            attend(vec![("link", link)], programs, labelled)
        }
        LinkPlan::Far { far, single } => {
            let wire = TopologyLink {
                name: "link".into(),
                from: "near".into(),
                to: "far".into(),
                options: single.options,
            };
            let topology = Topology::new(vec![wire])?;
            let addresses = |node: &str| -> Vec<IpAddr> {
                topology.nodes().find(|(n, _)| *n == node).map_or(Vec::new(), |(_, a)| a.to_vec())
            };
            let there = addresses("far");
            let mut programs = Programs::new()?;
            let near = name(&a.command);
            for (node, label, mut command) in
                [("far", "far", shell(&far)), ("near", &near, words(&a.command))]
            {
                let place = topology.namespace(node).ok_or(Failure::Interrupted)?;
                command.env("NARROWS_FAR", first(&there).to_string());
                if node == "far" {
                    labelled.command(label, &mut command)?;
                }
                programs.start(label, &mut command, place, topology.files())?;
            }
            if !a.quiet {
                note(&format!("{what}\nfar: {}; near: {}", list(&there), list(&addresses("near"))));
            }
            let links = topology.links().iter().map(|(n, l)| (n.as_str(), l)).collect();
            attend(links, programs, labelled)
        }
        LinkPlan::Scenario { wires, commands } => {
            let topology = Topology::new(wires.into_iter().map(|(wire, _)| wire).collect())?;
            let mut programs = Programs::new()?;
            let last = commands.len().saturating_sub(1);
            for (n, (node, text)) in commands.into_iter().enumerate() {
                let place = topology.namespace(&node).ok_or(Failure::Interrupted)?;
                let mut command = shell(&text);
                if n < last {
                    labelled.command(&node, &mut command)?;
                }
                programs.start(&node, &mut command, place, topology.files())?;
            }
            if !a.quiet {
                let nodes = topology.nodes().map(|(n, a)| format!("{n}: {}", list(a)));
                note(&format!("{what}\n{}", nodes.collect::<Vec<_>>().join("\n")));
            }
            let links = topology.links().iter().map(|(n, l)| (n.as_str(), l)).collect();
            attend(links, programs, labelled)
        }
    }
}

/// The metrics of these links.
fn counted(links: &[(&str, &EmulatedLink)]) -> Arc<LinkMetrics> {
    let counted = LinkMetrics::default();
    for (name, link) in links {
        counted.add(name, Arc::new(PageLink(link.observer())));
    }
    Arc::new(counted)
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

/// Prints lines for the user.
fn note(lines: &str) {
    lines.lines().for_each(terminal::note);
}
