//! `cargo xtask bench paths`: one stream over several paths, in virtual time.
//!
//! Each row runs with seeds 1 to N. Shares are of the sum of rate times (1 - loss) of all paths, after 5 s of 60. Beside the
//! default (rrtp on each path, scheduler `earliest`) stand the better path alone and rrtp+cubic with `minrtt`, as
//! MPTCP does.

mod calls;
mod files;
mod rest;
mod runs;

use crate::bench_paths_sockets::{SocketBench, SocketRow};
use crate::files::{entries, read};
use crate::flags::Flags;
use narrows_base::{RandomKey, Time};
use narrows_link::LinkChange;
use narrows_link::loss::LossSpec;
use narrows_sim::NetworkSpec;
use runs::*;
use std::path::PathBuf;

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
    let rates: Vec<f64> = paths.iter().map(|p| p.mbps).collect();
    row(name, &links(paths, order), &rates, Some(capacity(paths)), bench)
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
        let mut spec = stream(&links, "rrtp", seed)?;
        spec.measure_from = Time::ZERO;
        let from = Time::from_secs_f64(20.0);
        let to = Time::from_secs_f64(40.0);
        let failing = if matches!(fault, Fault::Both) { 0..2 } else { 0..1 };
        for link in failing {
            let [begin, end] = match fault {
                Fault::Both | Fault::Forward => [all_lost()?, LinkChange::Loss(Vec::new())],
                Fault::Large => [LinkChange::Mtu(576), LinkChange::Mtu(65_535)],
            };
            spec.changes.push((from, link, begin));
            spec.changes.push((to, link, end));
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
        let mut spec = stream(&links, "rrtp", seed)?;
        spec.changes.push((Time::from_secs_f64(at), 4, all_lost()?));
        spec.measure_from = Time::from_secs_f64(at + START_S);
        mbps += measured(&result(&spec)?, &[50.0; 3]).mbps / seeds as f64;
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

/// The files of a folder that have packets' times in milliseconds.
fn traces_of(folder: &str) -> Result<Vec<PathBuf>, String> {
    let is_trace =
        |path: &PathBuf| read(path).is_ok_and(|text| narrows_link::Trace::parse(&text).is_ok());
    let mut files = entries(folder.as_ref()).map_err(|e| format!("--traces {e}"))?;
    files.retain(is_trace);
    match files.len() {
        0 | 1 => Err(format!("--traces {folder}: two recordings are needed")),
        _ => Ok(files),
    }
}

/// `cargo xtask bench paths [--seeds N] [--protocol P] [--traces DIR] [sockets] [ROW…]`.
pub fn run_bench(args: &[String]) -> Result<(), String> {
    let mut bench = Bench { ours: "rrtp".into(), seeds: 5, rows: Vec::new(), traces: Vec::new() };
    let mut flags = Flags::new(args);
    while let Some(flag) = flags.advance() {
        match flag {
            "--seeds" => bench.seeds = flags.number(1..=1000)?,
            "--protocol" => bench.ours = flags.value()?.into(),
            "--traces" => bench.traces = traces_of(flags.value()?)?,
            row => bench.rows.push(row.into()),
        }
    }
    if bench.rows.first().is_some_and(|row| row == "sockets") {
        bench.rows.remove(0);
        let sockets = SocketBench::new()?;
        for Profile { name, paths } in PROFILES.iter().filter(|profile| bench.wants(profile.name)) {
            let lines = [paths[0].keys(), paths[1].keys()];
            sockets.row(&SocketRow { name, lines, capacity: capacity(paths) })?;
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
            described(&name, &pair, "kept", &Bench { seeds: 1, ..bench.clone() })?;
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
    FURTHER.iter().filter(|(name, _)| bench.wants(name)).try_for_each(|(_, rows)| rows(&bench))
}

type Rows = fn(&Bench) -> Result<(), String>;

const FURTHER: [(&str, Rows); 5] = [
    ("short", files::short_files),
    ("design", files::design),
    ("calls", calls::calls),
    ("shared", rest::shared),
    ("recorded", rest::recorded),
];

const FAILS: &str = "| path fails | longest gap, ms | other's full rate after, s | both again after, s |\n\
                     |---|---|---|---|";
