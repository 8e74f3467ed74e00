//! `cargo xtask truth`: the same transfers in simulation and over real sockets, side by side.
//!
//! Real time needs a machine that has time: a run whose relay was late is repeated, and what stays
//! late is left out, and counted. Slow links cost nothing and run beside fast ones, as far as a budget goes.

use narrows_lab::outcome::Estimate;
use narrows_lab::real::{Seen, Twin};
use narrows_lab::stats::{differ, estimate};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::sync::{Condvar, Mutex};

const PAGE: &str = "docs/sim-vs-real.md";
const NOTES: &str = "<!-- notes: kept when the page is written again -->\n";

/// A link: name, specification, bytes of a packet, seconds, and what share of a core a real run
/// takes, in hundredths.
struct Net {
    name: &'static str,
    spec: &'static str,
    packet: u32,
    seconds: f64,
    cost: u32,
}

const fn net(name: &'static str, spec: &'static str, packet: u32, seconds: f64, cost: u32) -> Net {
    Net { name, spec, packet, seconds, cost }
}

const NETS: [Net; 6] = [
    net("i", "20Mbit/s,25ms,queue=125kB,loss=1%", 1500, 20.0, 40),
    net("ii", "1.5Mbit/s,250ms,queue=93750B,loss=1%", 1500, 60.0, 10),
    net("iii", "144kbit/s,75ms,queue=2700B,loss=1%", 1228, 60.0, 5),
    net("iv", "100Mbit/s,50ms,queue=1250kB,loss=0.1%", 1500, 20.0, 100),
    net("clean", "10Mbit/s,20ms,queue=50kB", 1500, 20.0, 25),
    net("bursts", "10Mbit/s,20ms,queue=50kB,loss=ge(g=0.13%,h=12.5%)", 1500, 20.0, 25),
];
/// What may be taken at once, in hundredths of a core.
const BUDGET: u32 = 130;

const PROTOCOLS: [&str; 9] = [
    "rrtp",
    "rrtp-lasthop",
    "tear-reliable",
    "rrtp+bbr",
    "rrtp+cubic",
    "rrtp+reno",
    "rrtp+vegas",
    "rrtp+stpd",
    "rrtp+westwood+",
];
/// A relay that was later than this on one packet in a hundred says nothing about the protocol.
const LATE_S: f64 = 1e-3;
/// So often a run is tried until the relay was in time.
const TRIES: usize = 3;

#[derive(Clone, Serialize, Deserialize)]
struct Point {
    protocol: String,
    net: String,
    seed: u64,
    /// Goodput bit/s, RTT s, queue s, offered over delivered: simulated, real.
    sim: [f64; 4],
    real: [f64; 4],
    late_p99_s: f64,
    load: f64,
}

fn four(s: &Seen) -> [f64; 4] {
    [s.goodput_bps, s.rtt_s, s.wait_s, s.offered]
}

/// `truth [--protocols A,B] [--links i,iv] [--seeds N] [--shorter F] [--from FILE]`.
pub fn run(args: &[String]) -> Result<(), String> {
    let flag = |name: &str| {
        args.iter().position(|a| a == name).map(|i| {
            args.get(i + 1).cloned().ok_or_else(|| format!("{name} wants a value after it"))
        })
    };
    let list = |name: &str| -> Result<Option<Vec<String>>, String> {
        Ok(flag(name).transpose()?.map(|l| l.split(',').map(str::to_string).collect()))
    };
    let number = |name: &str, usual: f64| -> Result<f64, String> {
        let text = flag(name).transpose()?;
        text.map_or(Ok(usual), |t| t.parse().map_err(|_| format!("{name} '{t}' is no number")))
    };
    let known = ["--protocols", "--links", "--seeds", "--shorter", "--kept"];
    if let Some(odd) = args.iter().step_by(2).find(|a| !known.contains(&a.as_str())) {
        return Err(format!("truth knows {}; not '{odd}'", known.join(", ")));
    }
    let protocols = list("--protocols")?
        .unwrap_or_else(|| PROTOCOLS.iter().map(|p| (*p).to_string()).collect());
    let links = list("--links")?;
    let seeds = number("--seeds", 3.0)? as u64;
    let shorter = number("--shorter", 1.0)?;
    let nets: Vec<&Net> = NETS
        .iter()
        .filter(|n| links.as_ref().is_none_or(|l| l.iter().any(|l| l == n.name)))
        .collect();
    // What was measured is kept, so that a part can be measured again when the machine has time.
    let kept = flag("--kept").transpose()?;
    let mut points: Vec<Point> = match kept.as_ref().map(std::fs::read_to_string) {
        Some(Ok(text)) => serde_json::from_str(&text).map_err(|e| e.to_string())?,
        _ => Vec::new(),
    };
    let mut jobs = Vec::new();
    for protocol in &protocols {
        for net in &nets {
            for seed in 1..=seeds {
                points.retain(|p| {
                    (&p.protocol, p.net.as_str(), p.seed) != (protocol, net.name, seed)
                });
                jobs.push((protocol.clone(), *net, seed));
            }
        }
    }
    // The longest first, so that the short ones fill the gaps.
    jobs.sort_by(|a, b| b.1.seconds.total_cmp(&a.1.seconds).then(a.2.cmp(&b.2)));
    points.extend(measure(jobs, shorter)?);
    if let Some(path) = &kept {
        let text = serde_json::to_string(&points).map_err(|e| e.to_string())?;
        std::fs::write(path, text).map_err(|e| format!("{path}: {e}"))?;
    }
    let old = std::fs::read_to_string(PAGE).unwrap_or_default();
    let notes = old.split_once(NOTES).map_or("", |(_, n)| n);
    let text = page(&points, shorter) + NOTES + notes;
    std::fs::write(PAGE, text).map_err(|e| format!("{PAGE}: {e}"))?;
    eprintln!("wrote {PAGE}");
    Ok(())
}

type Job = (String, &'static Net, u64);

/// Runs them all, several at a time within the budget.
fn measure(jobs: Vec<(String, &Net, u64)>, shorter: f64) -> Result<Vec<Point>, String> {
    let jobs: Vec<Job> = jobs
        .into_iter()
        .filter_map(|(p, n, s)| Some((p, NETS.iter().find(|m| m.name == n.name)?, s)))
        .collect();
    let state = Mutex::new((jobs, 0u32));
    let freed = Condvar::new();
    let done = Mutex::new(Vec::new());
    let fault = Mutex::new(None);
    let held = |e: std::sync::PoisonError<_>| e.into_inner();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                loop {
                    let mut s = state.lock().unwrap_or_else(held);
                    let job = loop {
                        if s.0.is_empty() {
                            return;
                        }
                        let used = s.1;
                        let fits = s.0.iter().position(|j| used == 0 || used + j.1.cost <= BUDGET);
                        if let Some(i) = fits {
                            let job = s.0.remove(i);
                            s.1 += job.1.cost;
                            break job;
                        }
                        s = freed.wait(s).unwrap_or_else(held);
                    };
                    drop(s);
                    let cost = job.1.cost;
                    match twice(&job, shorter) {
                        Ok(point) => done.lock().map(|mut d| d.push(point)).unwrap_or(()),
                        Err(why) => {
                            if let Ok(mut f) = fault.lock() {
                                *f = Some(format!("{} on {}: {why}", job.0, job.1.name));
                            }
                        }
                    }
                    state.lock().unwrap_or_else(held).1 -= cost;
                    freed.notify_all();
                }
            });
        }
    });
    match fault.into_inner() {
        Ok(Some(why)) => Err(why),
        _ => Ok(done.into_inner().unwrap_or_default()),
    }
}

/// The machine's load over the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|w| w.parse().ok()).unwrap_or(f64::NAN)
}

fn twice((protocol, net, seed): &Job, shorter: f64) -> Result<Point, String> {
    let twin = Twin {
        protocol: protocol.clone(),
        link: net.spec.into(),
        packet: net.packet,
        seconds: net.seconds * shorter,
    };
    let sim = twin.simulated(*seed)?;
    let mut best: Option<Point> = None;
    for _ in 0..TRIES {
        let (real, late) = twin.real(*seed)?;
        if best.as_ref().is_none_or(|b| late.p99_s < b.late_p99_s) {
            best = Some(Point {
                protocol: protocol.clone(),
                net: net.name.into(),
                seed: *seed,
                sim: four(&sim),
                real: four(&real),
                late_p99_s: late.p99_s,
                load: load(),
            });
        }
        if late.p99_s <= LATE_S {
            break;
        }
    }
    let point = best.ok_or("was not tried")?;
    eprintln!(
        "{protocol} {} seed {seed}: {:.3} and {:.3} Mbit/s ({:.3}), RTT {:.1} and {:.1} ms, queue {:.1} \
         and {:.1} ms, offered {:.3} and {:.3}; late {:.2} ms, load {:.1}",
        net.name,
        point.sim[0] * 1e-6,
        point.real[0] * 1e-6,
        point.real[0] / point.sim[0],
        point.sim[1] * 1e3,
        point.real[1] * 1e3,
        point.sim[2] * 1e3,
        point.real[2] * 1e3,
        point.sim[3],
        point.real[3],
        point.late_p99_s * 1e3,
        point.load
    );
    Ok(point)
}

/// How the goodputs agree.
fn goodput_verdict(sim: Estimate, real: Estimate) -> &'static str {
    if (real.mean / sim.mean - 1.0).abs() <= 0.05 {
        "yes"
    } else if sim.ci95.is_some() && !differ(sim, real) {
        "by the interval"
    } else {
        "**no**"
    }
}

fn page(points: &[Point], shorter: f64) -> String {
    let mut out = String::from(
        "<!-- written by `cargo xtask truth`; what follows the notes' mark is kept -->\n\n\
# Simulation beside real sockets\n\n\
The same transfer twice: in simulation, and with real sockets, sealed packets and the relay in \
between, which drives the same links with the same losses in real time. One stream, from the client, \
nothing told; goodput counts bytes in order from the moment when the client begins to connect. Packets \
have at most 1500 bytes on the link. Goodput agrees if it is within 5%, or (said so) within the joint \
95% interval over seeds; mean round-trip time if it is within 5% or 1 ms. Offered: UDP payload bytes for \
each application byte that arrived.\n\n| link | | seconds |\n|---|---|---|\n",
    );
    for n in &NETS {
        let _ = writeln!(out, "| {} | `{}` | {} |", n.name, n.spec, n.seconds * shorter);
    }
    let (mut rows, mut agree, mut all, mut late) = (String::new(), 0, 0, 0);
    for protocol in PROTOCOLS {
        for n in &NETS {
            let tried = points.iter().filter(|p| p.protocol == protocol && p.net == n.name);
            let here: Vec<&Point> = tried.clone().filter(|p| p.late_p99_s <= LATE_S).collect();
            let seeds = here.len();
            late += tried.count() - seeds;
            if here.is_empty() {
                continue;
            }
            let of = |i: usize| {
                let pick = move |f: fn(&Point) -> &[f64; 4]| {
                    estimate(here.iter().map(move |p| f(p).get(i).copied().unwrap_or(f64::NAN)))
                };
                (pick(|p| &p.sim), pick(|p| &p.real))
            };
            let (g, r, q, o) = (of.clone()(0), of.clone()(1), of.clone()(2), of(3));
            let goodput = goodput_verdict(g.0, g.1);
            let off = (r.1.mean - r.0.mean).abs();
            let rtt = if off <= (0.05 * r.0.mean).max(1e-3) { "yes" } else { "**no**" };
            all += 1;
            agree += usize::from(!goodput.starts_with("**no") && rtt == "yes");
            let _ = writeln!(
                rows,
                "| {protocol} | {} | {:.3} | {:.3} | {:.3} | {:.1} | {:.1} | {:.1} | {:.1} | {:.3} | {:.3} | {goodput} | {rtt} | {seeds} |",
                n.name,
                g.0.mean * 1e-6,
                g.1.mean * 1e-6,
                g.1.mean / g.0.mean,
                r.0.mean * 1e3,
                r.1.mean * 1e3,
                q.0.mean * 1e3,
                q.1.mean * 1e3,
                o.0.mean,
                o.1.mean,
            );
        }
    }
    let loads = estimate(points.iter().map(|p| p.load)).mean;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let _ = write!(
        out,
        "\n**{agree} of {all} agree.** Mbit/s, and milliseconds; simulated, then real; means over seeds.\n\n\
| protocol | link | goodput | real | ratio | RTT | real | queue | real | offered | real | goodput agrees | RTT agrees | seeds |\n\
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n{rows}\n\
Again: `cargo xtask truth` (`--protocols`, `--links`, `--seeds` choose a part; `--kept FILE` keeps what was \
measured). Measured on {cores} cores, which others shared, at a load of {loads:.1} on average (these runs \
included). A run whose relay forwarded one packet in a hundred more than 1 ms late was repeated up to {} \
times; {late} runs stayed late and are left out: they say nothing about a protocol.\n\n",
        TRIES - 1,
    );
    out
}
