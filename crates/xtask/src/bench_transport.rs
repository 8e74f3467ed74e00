//! `cargo xtask bench transport`: rrtp beside quinn over loopback and through the same relay.
//!
//! Both programs have both ends in one process; the relay is in this one, and links and losses are the
//! same. quinn's program is `tools/quinn-speed`, outside the workspace.

mod page;

use crate::command::cargo;
use crate::real::ask::MeasureOptions;
use crate::real::ledger::LedgerKey;
use crate::real::relayed::{figure, json, relayed};
use crate::real::{Measurement, Ran, load, measure};
use std::path::Path;

pub use page::kept;

/// In the target folder.
const LEDGER: &str = "bench-transport.jsonl";
/// Over loopback: in turns, so often.
const TURNS: u64 = 5;
/// Name of the row without a relay.
const LOOPBACK: &str = "loopback";
/// Name of the row with many connections at once.
const CROWD: &str = "crowd";
const CONNECTIONS: &str = "100";
/// Approximate time of a gigabyte over loopback, s, and the time that a crowd sends.
const LOOPBACK_S: f64 = 4.0;

struct BenchLink {
    name: &'static str,
    spec: &'static str,
    bps: f64,
    rate: &'static str,
    rtt: &'static str,
    seconds: f64,
}

const NETS: [BenchLink; 4] = [
    BenchLink {
        name: "i",
        spec: "20Mbit/s,25ms,queue=125kB,loss=1%",
        bps: 20e6,
        rate: "20Mbit/s",
        rtt: "50ms",
        seconds: 30.0,
    },
    BenchLink {
        name: "ii",
        spec: "1.5Mbit/s,250ms,queue=93750B,loss=1%",
        bps: 1.5e6,
        rate: "1.5Mbit/s",
        rtt: "500ms",
        seconds: 60.0,
    },
    BenchLink {
        name: "iii",
        spec: "144kbit/s,75ms,queue=2700B,loss=1%",
        bps: 144e3,
        rate: "144kbit/s",
        rtt: "150ms",
        seconds: 60.0,
    },
    BenchLink {
        name: "iv",
        spec: "100Mbit/s,50ms,queue=1250kB,loss=0.1%",
        bps: 100e6,
        rate: "100Mbit/s",
        rtt: "100ms",
        seconds: 30.0,
    },
];

#[derive(Clone, Copy, PartialEq)]
enum TransportSender {
    /// The rrtp endpoint with this protocol.
    Ours(&'static str),
    /// The rrtp endpoint with hints: the link's rate and RTT.
    Told,
    /// quinn with a congestion control.
    Quinn(&'static str),
}

/// Name, title, sender, whether over loopback, whether through links.
const SENDERS: [(&str, &str, TransportSender, bool, bool); 5] = [
    ("rrtp", "rrtp", TransportSender::Ours("rrtp"), true, true),
    ("rrtp-told", "rrtp, given rate and RTT", TransportSender::Told, false, true),
    ("rrtp+cubic", "rrtp+cubic", TransportSender::Ours("rrtp+cubic"), true, false),
    ("quinn-cubic", "quinn, CUBIC", TransportSender::Quinn("cubic"), true, true),
    ("quinn-bbr", "quinn, BBR", TransportSender::Quinn("bbr"), false, true),
];

struct TransportPrograms {
    ours: String,
    quinn: String,
}

/// `bench transport`, with the flags of [`MeasureOptions`].
pub fn run(args: &[String]) -> Result<(), String> {
    let links: Vec<&str> =
        [LOOPBACK, CROWD].into_iter().chain(NETS.iter().map(|n| n.name)).collect();
    let ask = MeasureOptions::read(args, &links, &SENDERS.map(|s| s.0))
        .map_err(|e| format!("bench transport: {e}"))?;
    let chosen = |name: &str| ask.protocols.as_ref().is_none_or(|p| p.iter().any(|p| p == name));
    let mut wanted = Vec::new();
    let mut want = |link: &str, sender: &str, seed, seconds, rate_bps| {
        let key = LedgerKey { protocol: sender.into(), link: link.into(), seed, seconds };
        wanted.push(Measurement { key, rate_bps, alone: [LOOPBACK, CROWD].contains(&link) });
    };
    // In turns, so that other load on the machine affects all alike.
    for turn in 1..=TURNS {
        for link in [LOOPBACK, CROWD].into_iter().filter(|l| ask.link(l)) {
            for (name, ..) in SENDERS.iter().filter(|s| s.3 && chosen(s.0)) {
                want(link, name, turn, LOOPBACK_S, 0.0);
            }
        }
    }
    for net in NETS.iter().filter(|n| ask.link(n.name)) {
        for seed in 1..=ask.runs {
            for (name, _, _, _, through) in SENDERS.iter().filter(|s| chosen(s.0)) {
                if *through {
                    want(net.name, name, seed, net.seconds * ask.shorter, net.bps);
                }
            }
        }
    }
    let programs = build()?;
    let begun = load();
    let (rows, fault) = measure(
        &ask,
        LEDGER,
        &wanted,
        |_| Ok(()),
        |key, ()| {
            let sender = SENDERS.iter().find(|s| s.0 == key.protocol).ok_or("an unknown sender")?.2;
            match NETS.iter().find(|n| n.name == key.link) {
                None => loopback(&programs, sender, key.link == CROWD),
                Some(net) => through(&programs, net, sender, key),
            }
        },
    )?;
    page::write(&rows, ask.shorter, (begun, load()))?;
    fault.map_or(Ok(()), Err)
}

fn build() -> Result<TransportPrograms, String> {
    cargo(&["build", "--release", "-p", "narrows-cli", "--features", "full"])?;
    let target = crate::command::target();
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
    Ok(TransportPrograms { ours: format!("{target}/release/narrows"), quinn })
}

/// Processor time of a gigabyte over loopback.
fn loopback(
    programs: &TransportPrograms,
    sender: TransportSender,
    crowd: bool,
) -> Result<Ran, String> {
    let seconds = LOOPBACK_S.to_string();
    let duration = format!("{seconds}s");
    let v = match sender {
        TransportSender::Quinn(control) => {
            let crowded = ["--seconds", &seconds, "--connections", CONNECTIONS];
            let how = if crowd { &crowded[..] } else { &["--bytes", "1000000000"] };
            json(&programs.quinn, &[how, &["--control", control]].concat())?
        }
        TransportSender::Ours(protocol) => {
            let crowded = ["--duration", &duration, "--connections", CONNECTIONS];
            let how = if crowd { &crowded[..] } else { &["--bytes", "1GB"] };
            let what = ["speed", "--protocol", protocol, "--json"];
            json(&programs.ours, &[&what, how].concat())?
        }
        TransportSender::Told => return Err("hints are not used over loopback".into()),
    };
    let (bytes, seconds) = (figure(&v, "bytes")?, figure(&v, "seconds")?);
    let cost = figure(&v, "cpu_seconds")? / (bytes * 1e-9);
    let rate = bytes * 8.0 / seconds;
    let figures = [("cpu_s_per_gb".to_string(), cost), ("rate_bps".into(), rate)].into();
    let line = format!("{cost:.2} CPU s per GB, {:.0} Mbit/s", rate * 1e-6);
    Ok(Ran { figures, late_mean_s: 0.0, line })
}

/// A transfer through a relay of its own.
fn through(
    programs: &TransportPrograms,
    net: &BenchLink,
    sender: TransportSender,
    key: &LedgerKey,
) -> Result<Ran, String> {
    let seconds = key.seconds.to_string();
    relayed(net.spec, net.bps, key.seed, |server, through| match sender {
        TransportSender::Quinn(control) => {
            let way = ["--listen", server, "--connect", through];
            let what = ["--seconds", &seconds, "--control", control];
            json(&programs.quinn, &[way, what].concat())
        }
        ours => {
            let duration = format!("{seconds}s");
            let protocol = if let TransportSender::Ours(name) = ours { name } else { "rrtp" };
            let mut args = vec!["speed", "--listen", server, "--through", through];
            args.extend(["--protocol", protocol, "--duration", &duration, "--json"]);
            if ours == TransportSender::Told {
                args.extend(["--rate", net.rate, "--rtt", net.rtt]);
            }
            json(&programs.ours, &args)
        }
    })
}
