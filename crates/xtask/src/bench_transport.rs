//! `cargo xtask bench transport`: our transport beside quinn over loopback and through the same relay.
//!
//! Both programs have both ends in one process; the relay is in this one, and links and losses are the
//! same. quinn's program is `tools/quinn-speed`, outside the workspace.

use narrows_drive::relay::{Relay, RelayStats};
use narrows_lab::Link;
use serde_json::Value;
use std::fmt::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;

const PAGE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- begin transport -->\n";
const END: &str = "<!-- end transport -->\n";
/// Datagrams' bytes of IP and UDP headers.
const HEADERS: u64 = 28;
/// Loopback: in turns, so often.
const TURNS: usize = 5;
/// Later than this on one packet in a hundred, the relay spoils the figure.
const LATE_S: f64 = 1e-3;

struct Net {
    name: &'static str,
    spec: &'static str,
    bps: f64,
    rate: &'static str,
    rtt: &'static str,
    seconds: u32,
}

const NETS: [Net; 4] = [
    Net {
        name: "i",
        spec: "20Mbit/s,25ms,queue=125kB,loss=1%",
        bps: 20e6,
        rate: "20Mbit/s",
        rtt: "50ms",
        seconds: 30,
    },
    Net {
        name: "ii",
        spec: "1.5Mbit/s,250ms,queue=93750B,loss=1%",
        bps: 1.5e6,
        rate: "1.5Mbit/s",
        rtt: "500ms",
        seconds: 60,
    },
    Net {
        name: "iii",
        spec: "144kbit/s,75ms,queue=2700B,loss=1%",
        bps: 144e3,
        rate: "144kbit/s",
        rtt: "150ms",
        seconds: 60,
    },
    Net {
        name: "iv",
        spec: "100Mbit/s,50ms,queue=1250kB,loss=0.1%",
        bps: 100e6,
        rate: "100Mbit/s",
        rtt: "100ms",
        seconds: 30,
    },
];

#[derive(Clone, Copy)]
enum Sender {
    Rrtp,
    Told,
    Quinn(&'static str),
}

const SENDERS: [(&str, Sender); 4] = [
    ("rrtp", Sender::Rrtp),
    ("rrtp, told rate and RTT", Sender::Told),
    ("quinn, CUBIC", Sender::Quinn("cubic")),
    ("quinn, BBR", Sender::Quinn("bbr")),
];

/// What one run gave.
#[derive(Clone, Copy)]
struct Sample {
    /// Of the link's rate.
    filled: f64,
    offered: f64,
    queue_s: f64,
    late_s: f64,
}

struct Programs {
    ours: String,
    quinn: String,
}

/// `bench transport [--runs N]`.
pub fn run(args: &[String]) -> Result<(), String> {
    let runs: u64 = match args {
        [flag, n] if flag == "--runs" => n.parse().map_err(|_| format!("--runs '{n}'"))?,
        [] => 3,
        _ => return Err("bench transport knows --runs N".into()),
    };
    let programs = build()?;
    let begun = crate::truth::load();
    let cpu = loopback(&programs)?;
    let links = through_links(&programs, runs)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let section = format!(
        "{BEGIN}## Transport, beside quinn\n\n\
Over loopback, 1 GB from memory to memory, encrypted (AES-256-GCM; quinn: what TLS 1.3 agrees with ring), \
both ends in one process: processor seconds per gigabyte, both sides together, medians of {TURNS} runs \
in turns (least to most). Datagrams have at most 1472 bytes in ours; quinn finds the loopback's MTU by its own \
default (at most 1452).\n\n| sender | CPU s per GB | Mbit/s |\n|---|---|---|\n{cpu}\n\
Through the relay, the handshake included, {runs} seed(s) at most (medians): the share of the link's rate that \
arrived in order as application bytes, UDP payload offered to the link for each of these bytes, and the mean \
time of a packet in the queue.\n\n\
| link | sender | filled | least to most | offered | mean queue ms | relay late ms (p99, worst run) |\n\
|---|---|---|---|---|---|---|\n{links}\n\
Links: {}. Again: `cargo xtask bench transport` (`--runs N`), after `cargo build --release` in \
`tools/quinn-speed` with the same target folder. Measured on {cores} cores that others used too, load {begun:.1} at the beginning and {:.1} at the end; a run \
whose relay was later than 1 ms on one packet in a hundred was repeated up to twice, and left out if it stayed late.\n\n{END}",
        NETS.iter().map(|n| format!("{} `{}`", n.name, n.spec)).collect::<Vec<_>>().join("; "),
        crate::truth::load()
    );
    let page = std::fs::read_to_string(PAGE).map_err(|e| format!("{PAGE}: {e}"))?;
    let page = match (page.split_once(BEGIN), page.split_once(END)) {
        (Some((before, _)), Some((_, after))) => format!("{before}{section}{after}"),
        _ => format!("{}\n\n{section}", page.trim_end()),
    };
    std::fs::write(PAGE, page).map_err(|e| format!("{PAGE}: {e}"))?;
    eprintln!("wrote {PAGE}");
    Ok(())
}

/// The section as it stands, for whoever writes the rest of the page.
pub fn kept() -> String {
    let page = std::fs::read_to_string(PAGE).unwrap_or_default();
    let section = page.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END));
    section.map_or_else(String::new, |(text, _)| format!("\n{BEGIN}{text}{END}"))
}

fn build() -> Result<Programs, String> {
    crate::cargo(&["build", "--release", "-p", "narrows"])?;
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".into());
    let quinn = std::env::var("QUINN_SPEED").unwrap_or_else(|_| {
        let own = format!("{target}/release/quinn-speed");
        match Path::new(&own).exists() {
            true => own,
            false => "tools/quinn-speed/target/release/quinn-speed".into(),
        }
    });
    if !Path::new(&quinn).exists() {
        return Err(format!(
            "{quinn} is not there: build it with `cargo build --release --manifest-path \
             tools/quinn-speed/Cargo.toml`, or say with QUINN_SPEED where it is"
        ));
    }
    Ok(Programs { ours: format!("{target}/release/narrows"), quinn })
}

fn json(program: &str, args: &[&str]) -> Result<Value, String> {
    let out = Command::new(program).args(args).output().map_err(|e| format!("{program}: {e}"))?;
    let text = String::from_utf8_lossy(&out.stdout);
    serde_json::from_str(&text)
        .map_err(|_| format!("{program}: {text}{}", String::from_utf8_lossy(&out.stderr)))
}

fn figure(v: &Value, key: &str) -> Result<f64, String> {
    v.get(key).and_then(Value::as_f64).ok_or_else(|| format!("no {key} in {v}"))
}

/// Rows of processor time over loopback.
fn loopback(programs: &Programs) -> Result<String, String> {
    let bytes = ["--bytes", "1000000000"];
    let who: [(&str, &str, Vec<&str>); 3] = [
        ("rrtp", &programs.ours, vec!["speed", "--bytes", "1GB", "--json"]),
        (
            "rrtp+cubic",
            &programs.ours,
            vec!["speed", "--protocol", "rrtp+cubic", "--bytes", "1GB", "--json"],
        ),
        ("quinn, CUBIC", &programs.quinn, bytes.to_vec()),
    ];
    let mut samples = vec![Vec::new(); who.len()];
    for _ in 0..TURNS {
        for ((name, program, args), list) in who.iter().zip(&mut samples) {
            let v = json(program, args)?;
            let gigabytes = figure(&v, "bytes")? * 1e-9;
            let rate = figure(&v, "bytes")? * 8e-6 / figure(&v, "seconds")?;
            let cost = figure(&v, "cpu_seconds")? / gigabytes;
            eprintln!("{name}: {cost:.2} CPU s per GB, {rate:.0} Mbit/s");
            list.push((cost, rate));
        }
    }
    let mut rows = String::new();
    for ((name, ..), list) in who.iter().zip(samples) {
        let (cost, least, most) = spread(list.iter().map(|s| s.0));
        let rate = spread(list.iter().map(|s| s.1)).0;
        let _ = writeln!(rows, "| {name} | **{cost:.2}** ({least:.2} to {most:.2}) | {rate:.0} |");
    }
    Ok(rows)
}

/// Median, least, most.
fn spread(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let mut v: Vec<f64> = values.collect();
    v.sort_by(f64::total_cmp);
    let at = |i: usize| v.get(i).copied().unwrap_or(f64::NAN);
    (at(v.len() / 2), at(0), at(v.len().saturating_sub(1)))
}

/// Rows of the four links: the fast ones one after another, the slow ones beside them.
fn through_links(programs: &Programs, runs: u64) -> Result<String, String> {
    let rows: Mutex<Vec<(usize, usize, String)>> = Mutex::default();
    let lanes: [&[usize]; 3] = [&[0, 3], &[1], &[2]];
    std::thread::scope(|scope| {
        let lanes: Vec<_> = lanes
            .iter()
            .map(|lane| {
                scope.spawn(|| lane.iter().try_for_each(|i| one(programs, *i, runs, &rows)))
            })
            .collect();
        let lost = |_| Err("a measuring thread died".to_string());
        lanes.into_iter().try_for_each(|l| l.join().unwrap_or_else(lost))
    })?;
    let mut rows = rows.into_inner().unwrap_or_default();
    rows.sort();
    Ok(rows.into_iter().map(|r| r.2).collect())
}

fn one(
    programs: &Programs,
    i: usize,
    runs: u64,
    rows: &Mutex<Vec<(usize, usize, String)>>,
) -> Result<(), String> {
    let Some(net) = NETS.get(i) else { return Ok(()) };
    let mut samples = vec![Vec::new(); SENDERS.len()];
    for seed in 1..=runs {
        for ((name, sender), list) in SENDERS.iter().zip(&mut samples) {
            let sample = in_time(programs, net, *sender, seed)?;
            eprintln!(
                "{} {name} seed {seed}: {:.4} filled, offered {:.3}, queue {:.2} ms, late {:.2} ms",
                net.name,
                sample.filled,
                sample.offered,
                sample.queue_s * 1e3,
                sample.late_s * 1e3
            );
            list.push(sample);
        }
    }
    for (k, ((name, _), mut list)) in SENDERS.iter().zip(samples).enumerate() {
        list.retain(|s: &Sample| s.late_s <= LATE_S);
        if list.is_empty() {
            let row =
                format!("| {} | {name} | not measured: the relay was late | | | | |\n", net.name);
            if let Ok(mut rows) = rows.lock() {
                rows.push((i, k, row));
            }
            continue;
        }
        let (filled, least, most) = spread(list.iter().map(|s| s.filled));
        let row = format!(
            "| {} | {name} | **{filled:.3}** | {least:.3} to {most:.3} | {:.3} | {:.1} | {:.2} |\n",
            net.name,
            spread(list.iter().map(|s| s.offered)).0,
            spread(list.iter().map(|s| s.queue_s)).0 * 1e3,
            spread(list.iter().map(|s| s.late_s)).2 * 1e3,
        );
        if let Ok(mut rows) = rows.lock() {
            rows.push((i, k, row));
        }
    }
    Ok(())
}

/// A run whose relay was in time, or the best of three.
fn in_time(programs: &Programs, net: &Net, sender: Sender, seed: u64) -> Result<Sample, String> {
    let mut best: Option<Sample> = None;
    for _ in 0..3 {
        let sample = measure(programs, net, sender, seed)?;
        if best.is_none_or(|b| sample.late_s < b.late_s) {
            best = Some(sample);
        }
        if sample.late_s <= LATE_S {
            break;
        }
    }
    best.ok_or_else(|| "was not tried".into())
}

fn measure(programs: &Programs, net: &Net, sender: Sender, seed: u64) -> Result<Sample, String> {
    let link = Link::parse(net.spec, Path::new("")).map_err(|e| e.to_string())?;
    let rtt = link.forward.delay + link.back.delay;
    let config = |way: &narrows_lab::way::Way| way.config(rtt, 1500, false);
    let server = free_port()?;
    let any: SocketAddr = (std::net::Ipv4Addr::LOCALHOST, 0).into();
    let relay = Relay::bind(any, server, &config(&link.forward), &config(&link.back), seed)
        .map_err(|e| e.to_string())?;
    let (server, through) = (server.to_string(), relay.local_addr().to_string());
    let seconds = net.seconds.to_string();
    let v = match sender {
        Sender::Quinn(control) => json(
            &programs.quinn,
            &[
                "--listen",
                &server,
                "--connect",
                &through,
                "--seconds",
                &seconds,
                "--control",
                control,
            ],
        )?,
        ours => {
            let duration = format!("{seconds}s");
            let mut args =
                vec!["speed", "--listen", &server, "--through", &through, "--duration", &duration];
            if matches!(ours, Sender::Told) {
                args.extend(["--rate", net.rate, "--rtt", net.rtt]);
            }
            args.push("--json");
            json(&programs.ours, &args)?
        }
    };
    let stats: RelayStats = relay.stop();
    let bytes = figure(&v, "bytes")?;
    let way = stats.there;
    let payload = way.offered_bytes.saturating_sub(HEADERS * way.offered_packets);
    Ok(Sample {
        filled: bytes * 8.0 / figure(&v, "seconds")? / net.bps,
        offered: payload as f64 / bytes.max(1.0),
        queue_s: way.mean_wait_s(),
        late_s: stats.lateness.p99_s,
    })
}

/// A port of the system's choice, free a moment ago.
fn free_port() -> Result<SocketAddr, String> {
    let socket = UdpSocket::bind((std::net::Ipv4Addr::LOCALHOST, 0)).map_err(|e| e.to_string())?;
    socket.local_addr().map_err(|e| e.to_string())
}
