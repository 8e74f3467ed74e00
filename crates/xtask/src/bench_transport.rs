//! `cargo xtask bench transport`: rrtp beside quinn over loopback and through the same relay.
//!
//! Both programs have both ends in one process; the relay is in this one, and links and losses are the
//! same. quinn's program is `tools/quinn-speed`, outside the workspace.

mod page;

use crate::command::cargo;
use crate::real::ask::MeasureOptions;
use crate::real::ledger::LedgerKey;
use crate::real::senders::{self, ComparedSender, HowSent, SpeedPrograms, figure, json, sender};
use crate::real::{MeasuredLink, Measurement, Ran, link, load, measure, wanted};
use std::path::Path;

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

#[rustfmt::skip]
const NETS: [MeasuredLink; 4] = [
    link("i", "20Mbit/s,25ms,queue=125kB,loss=1%", 20e6, 1500, 30.0, &["--rate", "20Mbit/s", "--rtt", "50ms"]),
    link("ii", "1.5Mbit/s,250ms,queue=93750B,loss=1%", 1.5e6, 1500, 60.0, &["--rate", "1.5Mbit/s", "--rtt", "500ms"]),
    link("iii", "144kbit/s,75ms,queue=2700B,loss=1%", 144e3, 1500, 60.0, &["--rate", "144kbit/s", "--rtt", "150ms"]),
    link("iv", "100Mbit/s,50ms,queue=1250kB,loss=0.1%", 100e6, 1500, 30.0, &["--rate", "100Mbit/s", "--rtt", "100ms"]),
];

const fn ours(protocol: &'static str, told: bool) -> HowSent {
    HowSent::Ours { protocol, told }
}

const SENDERS: [ComparedSender; 5] = [
    sender("rrtp", "rrtp", ours("rrtp", false)),
    sender("rrtp-told", "rrtp, given rate and RTT", ours("rrtp", true)),
    sender("rrtp+cubic", "rrtp+cubic", ours("rrtp+cubic", false)),
    sender("quinn-cubic", "quinn, CUBIC", HowSent::Quinn("cubic")),
    sender("quinn-bbr", "quinn, BBR", HowSent::Quinn("bbr")),
];
/// Senders over loopback, and through links.
const OVER_LOOPBACK: [&str; 3] = ["rrtp", "rrtp+cubic", "quinn-cubic"];
const THROUGH: [&str; 4] = ["rrtp", "rrtp-told", "quinn-cubic", "quinn-bbr"];

/// `bench transport`, with the flags of [`MeasureOptions`].
pub fn run(args: &[String]) -> Result<(), String> {
    let links: Vec<&str> =
        [LOOPBACK, CROWD].into_iter().chain(NETS.iter().map(|n| n.name)).collect();
    let ask = MeasureOptions::read(args, &links, &SENDERS.map(|s| s.name))
        .map_err(|e| format!("bench transport: {e}"))?;
    let mut all = Vec::new();
    // In turns, so that other load on the machine affects all alike.
    for turn in 1..=TURNS {
        for link in [LOOPBACK, CROWD].into_iter().filter(|l| ask.link(l)) {
            for protocol in OVER_LOOPBACK.into_iter().filter(|s| ask.protocol(s)) {
                let (protocol, link) = (protocol.into(), link.into());
                let key = LedgerKey { protocol, link, seed: turn, seconds: LOOPBACK_S };
                all.push(Measurement { key, rate_bps: 0.0, alone: true });
            }
        }
    }
    let through: Vec<&str> = THROUGH.into_iter().filter(|s| ask.protocol(s)).collect();
    all.extend(wanted(&ask, &NETS, &through));
    let programs = build()?;
    let begun = load();
    let one = |key: &LedgerKey, (): &()| {
        let over_loopback = |how| loopback(&programs, how, key.link == CROWD);
        senders::run(&programs, (&SENDERS, &NETS), key, over_loopback)
    };
    let (rows, fault) = measure(&ask, LEDGER, &all, |_| Ok(()), one)?;
    page::write(&rows, ask.shorter, (begun, load()))?;
    fault.map_or(Ok(()), Err)
}

fn build() -> Result<SpeedPrograms, String> {
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
    Ok(SpeedPrograms { ours: format!("{target}/release/narrows"), theirs: Ok(quinn) })
}

/// Processor time of a gigabyte over loopback.
fn loopback(programs: &SpeedPrograms, how: HowSent, crowd: bool) -> Result<Ran, String> {
    let seconds = LOOPBACK_S.to_string();
    let duration = format!("{seconds}s");
    let v = match how {
        HowSent::Quinn(control) => {
            let crowded = ["--seconds", &seconds, "--connections", CONNECTIONS];
            let how = if crowd { &crowded[..] } else { &["--bytes", "1000000000"] };
            json(
                programs.theirs.as_ref().map_err(Clone::clone)?,
                &[how, &["--control", control]].concat(),
            )?
        }
        HowSent::Ours { protocol, told: false } => {
            let crowded = ["--duration", &duration, "--connections", CONNECTIONS];
            let how = if crowd { &crowded[..] } else { &["--bytes", "1GB"] };
            let what = ["speed", "--protocol", protocol, "--json"];
            json(&programs.ours, &[&what, how].concat())?
        }
        _ => return Err("hints are not used over loopback".into()),
    };
    let (bytes, seconds) = (figure(&v, "bytes")?, figure(&v, "seconds")?);
    let cost = figure(&v, "cpu_seconds")? / (bytes * 1e-9);
    let rate = bytes * 8.0 / seconds;
    let figures = [("cpu_s_per_gb".to_string(), cost), ("rate_bps".into(), rate)].into();
    let line = format!("{cost:.2} CPU s per GB, {:.0} Mbit/s", rate * 1e-6);
    Ok(Ran { figures, late_mean_s: 0.0, line })
}
