//! `cargo xtask bench paths`: one stream over several paths, in virtual time.
//!
//! Each row runs with seeds 1 to N. Shares are of the sum of rate times (1 - loss) of all paths, after 5 s of 60. Beside the
//! default (rrtp on each path, scheduler `earliest`) stand the better path alone and rrtp+cubic with `minrtt`, as
//! MPTCP does.

mod calls;
mod files;
mod rest;

use crate::bench_paths_sockets::{SocketBench, SocketRow};
use narrows_base::{RandomKey, Spec, SpecError, Time};
use narrows_link::LinkChange;
use narrows_link::loss::LossSpec;
use narrows_scenario::BottleneckLink;
use narrows_sim::protocol::{FlowProtocol, Preset};
use narrows_sim::{
    FlowResult, FlowSpec, GroupSpec, LinkSpec, NetworkSpec, PathSpec, RunResult, SourceSpec, run,
};
use std::path::{Path, PathBuf};

/// Bytes of a packet on the wire.
const PACKET: u32 = 1500;
/// Simulated time, and the part at the start that is not measured, in seconds.
const SECONDS: f64 = 60.0;
const START_S: f64 = 5.0;

/// Two paths: rate, one-way delay, standard deviation of a normal jitter, and loss of each.
struct Profile {
    name: &'static str,
    paths: [PathText; 2],
}

struct PathText {
    mbps: f64,
    delay_ms: u32,
    jitter_ms: u32,
    loss: f64,
}

const fn path(mbps: f64, delay_ms: u32, jitter_ms: u32, loss: f64) -> PathText {
    PathText { mbps, delay_ms, jitter_ms, loss }
}

/// Of mqvpn's benchmark of 2026-06-18.
const PROFILES: [Profile; 16] = [
    Profile { name: "baseline", paths: [path(50.0, 20, 0, 0.0), path(50.0, 20, 0, 0.0)] },
    Profile { name: "rtt_40", paths: [path(50.0, 20, 0, 0.0), path(50.0, 40, 0, 0.0)] },
    Profile { name: "rtt_70", paths: [path(50.0, 20, 0, 0.0), path(50.0, 70, 0, 0.0)] },
    Profile { name: "rtt_120", paths: [path(50.0, 20, 0, 0.0), path(50.0, 120, 0, 0.0)] },
    Profile { name: "rtt_320", paths: [path(50.0, 20, 0, 0.0), path(50.0, 320, 0, 0.0)] },
    Profile { name: "jit_5", paths: [path(50.0, 20, 5, 0.0), path(50.0, 20, 5, 0.0)] },
    Profile { name: "jit_20", paths: [path(50.0, 20, 20, 0.0), path(50.0, 20, 20, 0.0)] },
    Profile { name: "loss_05", paths: [path(50.0, 20, 0, 0.005), path(50.0, 20, 0, 0.005)] },
    Profile { name: "loss_2", paths: [path(50.0, 20, 0, 0.02), path(50.0, 20, 0, 0.02)] },
    Profile { name: "bw_4to1", paths: [path(50.0, 20, 0, 0.0), path(12.0, 20, 0, 0.0)] },
    Profile { name: "bw_10to1", paths: [path(100.0, 20, 0, 0.0), path(10.0, 20, 0, 0.0)] },
    Profile { name: "dual_lte", paths: [path(40.0, 30, 5, 0.005), path(25.0, 45, 8, 0.005)] },
    Profile { name: "fiber_lte", paths: [path(300.0, 8, 0, 0.0), path(30.0, 40, 8, 0.005)] },
    Profile { name: "lte_starlink", paths: [path(40.0, 35, 8, 0.0), path(100.0, 50, 25, 0.01)] },
    Profile { name: "lte_geo", paths: [path(40.0, 35, 0, 0.0), path(20.0, 320, 20, 0.005)] },
    Profile { name: "congested", paths: [path(20.0, 50, 20, 0.02), path(15.0, 60, 25, 0.02)] },
];

impl PathText {
    fn link(&self, order: &str) -> String {
        let mut text = format!("{}Mbit/s,{}ms", self.mbps, self.delay_ms);
        if self.jitter_ms > 0 {
            text += &format!(",jitter=normal({}ms,order={order})", self.jitter_ms);
        }
        if self.loss > 0.0 {
            text += &format!(",loss={:.2}%", self.loss * 100.0);
        }
        text
    }
    /// The link's keys in a scenario file.
    fn keys(&self) -> String {
        let mut keys = format!("rate = \"{}Mbit/s\"\ndelay = \"{}ms\"\n", self.mbps, self.delay_ms);
        if self.jitter_ms > 0 {
            keys += &format!("jitter = \"normal({}ms,order=kept)\"\n", self.jitter_ms);
        }
        if self.loss > 0.0 {
            keys += &format!("loss = \"{:.2}%\"\n", self.loss * 100.0);
        }
        keys
    }
    /// Rate times (1 - loss), in Mbit/s.
    fn capacity(&self) -> f64 {
        self.mbps * (1.0 - self.loss)
    }
}

/// A run's network: two directed links per path, all groups over all paths.
fn network(
    links: &[String],
    groups: &[(&str, &str, SourceSpec)],
    seed: u64,
) -> Result<NetworkSpec, SpecError> {
    let mut list = Vec::new();
    for (n, text) in links.iter().enumerate() {
        let link = BottleneckLink::parse(text, Path::new(""))?;
        let rtt = link.base_rtt();
        for (side, way, metered) in [("there", &link.forward, true), ("back", &link.reverse, false)]
        {
            let config = way.config(rtt, PACKET, true).into();
            list.push(LinkSpec { name: format!("{side}.{n}"), config, metered });
        }
    }
    let paths = |n: usize| (vec![2 * n as u32], vec![2 * n as u32 + 1]);
    let mut made = Vec::new();
    for (name, protocol, source) in groups {
        let (forward, back) = paths(0);
        let further = (1..links.len()).map(paths);
        let further = further.map(|(forward, back)| PathSpec { forward, back }).collect();
        let flow = FlowSpec { start: Time::ZERO, stop: Time::NEVER, forward, back, further };
        made.push(GroupSpec {
            name: (*name).into(),
            protocol: FlowProtocol::read(&Spec::parse(protocol)?, Preset::Linux, PACKET)?,
            source: source.clone(),
            flows: vec![flow],
        });
    }
    Ok(NetworkSpec {
        seed,
        end: Time::from_secs_f64(SECONDS),
        measure_from: Time::from_secs_f64(START_S),
        links: list,
        groups: made,
        changes: Vec::new(),
        reconfigurations: Vec::new(),
        series: None,
    })
}

/// Means over seeds of one protocol over some links.
#[derive(Clone, Copy, Default)]
struct Measured {
    mbps: f64,
    /// Share of the bytes on the first path.
    first: f64,
    /// Mean queueing delay of all links, weighted by their bits, in ms.
    queue_ms: f64,
    /// Largest of all seeds, in KiB.
    reorder_kib: f64,
    /// Bytes that arrived more than once, as a share of those delivered.
    extra: f64,
}

fn measured(result: &RunResult, links: &[f64]) -> Measured {
    let flow: &FlowResult = &result.groups[0].flows[0];
    let bits: f64 = result.links.iter().map(|l| l.served_bits).sum();
    let queue = |(link, mbps): (&narrows_sim::LinkResult, &f64)| {
        link.queue_mean * f64::from(PACKET) * 8.0 / (mbps * 1e3) * link.served_bits / bits.max(1.0)
    };
    let mut measured = Measured {
        mbps: flow.goodput_bytes as f64 * 8.0 / result.span_s / 1e6,
        queue_ms: result.links.iter().zip(links).map(queue).sum(),
        first: 1.0,
        ..Measured::default()
    };
    if let Some(paths) = &flow.multipath {
        let sent: u64 = paths.paths.iter().map(|p| p.sent_bytes).sum();
        measured.first = paths.paths[0].sent_bytes as f64 / sent.max(1) as f64;
        measured.reorder_kib = paths.max_reorder_bytes as f64 / 1024.0;
        let delivered = flow.goodput_bytes as f64 * SECONDS / (SECONDS - START_S);
        measured.extra = paths.duplicate_bytes as f64 / delivered.max(1.0);
    }
    measured
}

fn mean(all: &[Measured]) -> Measured {
    let n = all.len().max(1) as f64;
    let of = |f: fn(&Measured) -> f64| all.iter().map(f).sum::<f64>() / n;
    Measured {
        mbps: of(|m| m.mbps),
        first: of(|m| m.first),
        queue_ms: of(|m| m.queue_ms),
        reorder_kib: all.iter().map(|m| m.reorder_kib).fold(0.0, f64::max),
        extra: of(|m| m.extra),
    }
}

/// A protocol over some links with seeds 1 to `seeds`.
fn over(links: &[String], rates: &[f64], protocol: &str, seeds: u64) -> Result<Measured, String> {
    let mut all = Vec::new();
    for seed in 1..=seeds {
        let groups = [("main", protocol, SourceSpec::bulk())];
        let spec = network(links, &groups, seed).map_err(|e| e.to_string())?;
        all.push(measured(&run(&spec, &mut |_| true).map_err(|e| e.to_string())?, rates));
    }
    Ok(mean(&all))
}

const PEER: &str = "rrtp+cubic(scheduler=minrtt,coupling=uncoupled)";

/// One row: the default over both paths, each path alone, and the peer. Shares are of `sum` in Mbit/s, or without one of
/// the paths' own deliveries.
fn row(
    name: &str,
    links: &[String],
    rates: &[f64],
    sum: Option<f64>,
    bench: &Bench,
) -> Result<(), String> {
    let both = over(links, rates, &bench.ours, bench.seeds)?;
    let mut best: f64 = 0.0;
    let mut all = 0.0;
    for (link, rate) in links.iter().zip(rates) {
        let one = over(std::slice::from_ref(link), &[*rate], &bench.ours, bench.seeds)?;
        best = best.max(one.mbps);
        all += one.mbps;
    }
    let peer = over(links, rates, PEER, bench.seeds)?;
    let sum = sum.unwrap_or(all);
    println!(
        "| {name} | {:.2} | {:.2} | {:.2} | {:.0} | {:.1} | {:.1} | {:.0} | {:.2} |",
        both.mbps / sum,
        best / sum,
        peer.mbps / sum,
        both.first * 100.0,
        both.queue_ms,
        peer.queue_ms,
        both.reorder_kib,
        both.extra * 100.0
    );
    Ok(())
}

/// A row of two described paths.
fn described(name: &str, paths: &[PathText], order: &str, bench: &Bench) -> Result<(), String> {
    let links: Vec<String> = paths.iter().map(|p| p.link(order)).collect();
    let rates: Vec<f64> = paths.iter().map(|p| p.mbps).collect();
    let sum: f64 = paths.iter().map(PathText::capacity).sum();
    row(name, &links, &rates, Some(sum), bench)
}

/// Pairs of bad links of 20 Mbit/s.
const BAD: [(&str, &str, &str); 4] = [
    ("bursts of losses", "20Mbit/s,20ms,loss=ge(g=0.13%,h=12.5%)", "20Mbit/s,40ms"),
    ("policer of 10 Mbit/s", "20Mbit/s,20ms,policer=10Mbit/s/100kB", "20Mbit/s,40ms"),
    ("jitter beyond the other's RTT", "20Mbit/s,60ms,jitter=normal(20ms)", "20Mbit/s,10ms"),
    ("short queue, 1% lost", "20Mbit/s,20ms,queue=10p,loss=1%", "20Mbit/s,80ms,queue=10p"),
];

const HEAD: &str = "| paths | share of the sum | better path alone | peer | first path, % | queue, ms | peer's | \
                    reorder memory, KiB | extra bytes, % |\n|---|---|---|---|---|---|---|---|---|";

/// The failure of the first of two paths.
#[derive(Clone, Copy)]
enum Fault {
    Both,
    Forward,
    Large,
}

/// Loss of everything.
fn all_lost() -> Result<LinkChange, String> {
    let loss = LossSpec::parse_all("100%").map_err(|e| e.to_string())?;
    Ok(LinkChange::Loss(loss))
}

/// Two paths of 50 Mbit/s and 20 ms; the first fails from 20 s to 40 s. Prints the longest gap in delivery, the time
/// from the failure until the other's rate is reached, and the time from the return until both are used again.
fn fails(name: &str, fault: Fault, seeds: u64) -> Result<(), String> {
    let links = vec!["50Mbit/s,20ms".to_string(), "50Mbit/s,20ms".to_string()];
    let mut gap: f64 = 0.0;
    let mut full: f64 = 0.0;
    let mut again: f64 = 0.0;
    for seed in 1..=seeds {
        let groups = [("main", "rrtp", SourceSpec::bulk())];
        let mut spec = network(&links, &groups, seed).map_err(|e| e.to_string())?;
        spec.measure_from = Time::ZERO;
        let from = Time::from_secs_f64(20.0);
        let to = Time::from_secs_f64(40.0);
        let forward: [LinkChange; 2] = match fault {
            Fault::Both | Fault::Forward => [all_lost()?, LinkChange::Loss(Vec::new())],
            Fault::Large => [LinkChange::Mtu(576), LinkChange::Mtu(65_535)],
        };
        let [begin, end] = forward;
        spec.changes.push((from, 0, begin));
        spec.changes.push((to, 0, end));
        if matches!(fault, Fault::Both) {
            spec.changes.push((from, 1, all_lost()?));
            spec.changes.push((to, 1, LinkChange::Loss(Vec::new())));
        }
        let curve = delivery(&spec)?;
        gap = gap.max(longest_gap(&curve, 20.0, 40.0));
        full = full.max(reaches(&curve, 20.0, 0.9 * 50.0 * 0.945));
        again = again.max(reaches(&curve, 40.0, 0.9 * 100.0 * 0.945));
    }
    println!("| {name} | {:.0} | {full:.2} | {again:.2} |", gap * 1e3);
    Ok(())
}

/// Seconds between samples of delivered bytes.
const STEP_S: f64 = 0.01;

/// In-order bytes delivered at each step.
fn delivery(spec: &NetworkSpec) -> Result<Vec<f64>, String> {
    let mut simulation = narrows_sim::Simulation::new(spec).map_err(|e| e.to_string())?;
    let steps = (SECONDS / STEP_S) as usize;
    let mut curve = Vec::with_capacity(steps);
    for step in 1..=steps {
        let until = Time::from_secs_f64(step as f64 * STEP_S);
        simulation.advance(until, &mut |_| true).map_err(|e| e.to_string())?;
        curve.push(simulation.delivered(0) as f64);
    }
    Ok(curve)
}

/// The longest time without delivery between two times, in seconds.
fn longest_gap(curve: &[f64], from: f64, to: f64) -> f64 {
    let part = &curve[(from / STEP_S) as usize..(to / STEP_S) as usize];
    let mut longest = 0;
    let mut now = 0;
    for pair in part.windows(2) {
        now = if pair[1] > pair[0] { 0 } else { now + 1 };
        longest = longest.max(now);
    }
    f64::from(longest) * STEP_S
}

/// Seconds over which a delivery rate is measured.
const WINDOW_S: f64 = 0.2;

/// Seconds from `from` until the delivery rate over the following window reaches this many Mbit/s.
fn reaches(curve: &[f64], from: f64, mbps: f64) -> f64 {
    let window = (WINDOW_S / STEP_S) as usize;
    let first = (from / STEP_S) as usize;
    let rate = |at: usize| (curve[at + window] - curve[at]) * 8.0 / WINDOW_S / 1e6;
    let found = (first..curve.len() - window).find(|at| rate(*at) >= mbps);
    found.map_or(f64::INFINITY, |at| (at - first) as f64 * STEP_S)
}

/// A third path that swallows everything from the start, or from 10 s on: the share of the others' sum.
fn swallows(name: &str, at: f64, seeds: u64) -> Result<(), String> {
    let links: Vec<String> = vec!["50Mbit/s,20ms".to_string(); 3];
    let mut mbps = 0.0;
    let two = over(&links[..2], &[50.0, 50.0], "rrtp", seeds)?;
    for seed in 1..=seeds {
        let groups = [("main", "rrtp", SourceSpec::bulk())];
        let mut spec = network(&links, &groups, seed).map_err(|e| e.to_string())?;
        spec.changes.push((Time::from_secs_f64(at), 4, all_lost()?));
        spec.measure_from = Time::from_secs_f64(at + START_S);
        let result = run(&spec, &mut |_| true).map_err(|e| e.to_string())?;
        mbps += measured(&result, &[50.0; 3]).mbps / seeds as f64;
    }
    println!("| {name} | {:.3} |", mbps / two.mbps);
    Ok(())
}

/// A pair of paths drawn by a seed: rates log-uniform from 2 to 100 Mbit/s, one-way delays log-uniform from 5 to 300 ms,
/// every second path with up to 3% loss, every third with jitter up to half its delay.
fn drawn(seed: u64) -> [PathText; 2] {
    let mut stream = RandomKey::from_seed(seed).named("pairs").stream();
    let mut unit = || stream.unit();
    let mut one = || {
        let mut between = |low: f64, high: f64| low * narrows_base::math::pow(high / low, unit());
        let mbps = (between(2.0, 100.0) * 10.0).round() / 10.0;
        let delay_ms = between(5.0, 300.0).round();
        let loss = if unit() < 0.5 { (unit() * 300.0).round() / 1e4 } else { 0.0 };
        let jitter = if unit() < 1.0 / 3.0 { (unit() * delay_ms / 2.0).min(40.0) } else { 0.0 };
        path(mbps, delay_ms as u32, jitter as u32, loss)
    };
    [one(), one()]
}

/// The protocol and the links of a run.
#[derive(Clone)]
struct Bench {
    /// The protocol under test.
    ours: String,
    /// Seeds, from 1 on.
    seeds: u64,
    /// Beginnings of the names of rows; all if empty.
    rows: Vec<String>,
    /// Recorded links.
    traces: Vec<PathBuf>,
}

impl Bench {
    fn wants(&self, name: &str) -> bool {
        self.rows.is_empty() || self.rows.iter().any(|r| name.starts_with(r.as_str()))
    }
}

/// The files of a folder that have packets' times in milliseconds.
fn traces_of(folder: &str) -> Result<Vec<PathBuf>, String> {
    let failed = |e: std::io::Error| format!("--traces {folder}: {e}");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        if narrows_link::Trace::parse(&text).is_ok() {
            files.push(path);
        }
    }
    files.sort();
    if files.len() < 2 {
        Err(format!("--traces {folder}: two recordings are needed"))
    } else {
        Ok(files)
    }
}

/// `cargo xtask bench paths [--seeds N] [--protocol P] [--traces DIR] [sockets] [ROW…]`.
pub fn run_bench(args: &[String]) -> Result<(), String> {
    let mut bench = Bench { ours: "rrtp".into(), seeds: 5, rows: Vec::new(), traces: Vec::new() };
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--seeds" => {
                let text = value()?;
                let number = text.parse().ok().filter(|n| (1..=1000).contains(n));
                bench.seeds =
                    number.ok_or_else(|| format!("--seeds {text}: expected 1 to 1000"))?;
            }
            "--protocol" => bench.ours = value()?.clone(),
            "--traces" => bench.traces = traces_of(value()?)?,
            row => bench.rows.push(row.to_string()),
        }
    }
    if bench.rows.first().is_some_and(|row| row == "sockets") {
        bench.rows.remove(0);
        let sockets = SocketBench::new()?;
        for Profile { name, paths } in PROFILES.iter().filter(|profile| bench.wants(profile.name)) {
            let capacity = paths.iter().map(PathText::capacity).sum();
            let lines = [paths[0].keys(), paths[1].keys()];
            sockets.row(&SocketRow { name, lines, capacity })?;
        }
        return Ok(());
    }
    println!("{HEAD}");
    for profile in &PROFILES {
        if bench.wants(profile.name) {
            described(profile.name, &profile.paths, "kept", &bench)?;
        }
        let mixed = format!("reordered {}", profile.name);
        if profile.paths.iter().any(|p| p.jitter_ms > 0) && bench.wants(&mixed) {
            described(&mixed, &profile.paths, "mixed", &bench)?;
        }
    }
    for (name, first, second) in BAD {
        let row_name = format!("bad: {name}");
        if bench.wants(&row_name) {
            let links = [first.to_string(), second.to_string()];
            row(&row_name, &links, &[20.0, 20.0], None, &bench)?;
        }
    }
    if bench.wants("drawn") {
        for seed in 1..=20 {
            let pair = drawn(seed);
            let name = format!("drawn {seed}: {} + {}", pair[0].link("kept"), pair[1].link("kept"));
            described(
                &name,
                &pair,
                "kept",
                &Bench { seeds: 1, rows: Vec::new(), ..bench.clone() },
            )?;
        }
    }
    if bench.wants("fails") {
        println!("\n{FAILS}");
        fails("both ways", Fault::Both, bench.seeds)?;
        fails("forward only", Fault::Forward, bench.seeds)?;
        fails("large packets only", Fault::Large, bench.seeds)?;
    }
    if bench.wants("swallows") {
        println!("\n| third path swallows everything | share of the others |\n|---|---|");
        swallows("from the start", 0.0, bench.seeds)?;
        swallows("from 10 s on", 10.0, bench.seeds)?;
    }
    if bench.wants("short") {
        files::short_files(&bench)?;
    }
    if bench.wants("design") {
        files::design(&bench)?;
    }
    if bench.wants("calls") {
        calls::calls(&bench)?;
    }
    if bench.wants("shared") {
        rest::shared(&bench)?;
    }
    if bench.wants("recorded") && !bench.traces.is_empty() {
        rest::recorded(&bench.traces, &bench)?;
    }
    Ok(())
}

const FAILS: &str = "| path fails | longest gap, ms | other's full rate after, s | both again after, s |\n\
                     |---|---|---|---|";
