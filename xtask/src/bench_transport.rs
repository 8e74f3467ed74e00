//! `cargo xtask bench transport`: rrtp beside quinn and Hysteria 2, over loopback and through the same relay.
//!
//! Each program has both ends in one process; the relay is in this one, and links and losses are the same. The others'
//! programs are `tools/quinn-speed` and `tools/hysteria-speed`, outside the workspace.

mod page;
mod rows;

use crate::command::cargo;
use crate::files::write_section;
use crate::real::ask::MeasureOptions;
use crate::real::ledger::{LedgerKey, load};
use crate::real::senders::{self, HowSent, SpeedPrograms, figure, json};
use crate::real::{Ran, measure, wanted};
use page::LoadAround;
use rows::*;
use std::path::Path;
use std::process::Command;

/// In the target folder.
const LEDGER: &str = "bench-transport.jsonl";
const QUINN: &str = "tools/quinn-speed";

/// Senders over loopback, through links, and beside Hysteria.
const OVER_LOOPBACK: [&str; 3] = ["rrtp", "rrtp+cubic", "quinn-cubic"];
const THROUGH: [&str; 4] = ["rrtp", "rrtp-told", "quinn-cubic", "quinn-bbr"];
const OVER_LOSSY: [&str; 4] = ["rrtp", "rrtp-told", "hysteria-bbr", "hysteria-brutal"];

/// `bench transport`, with the flags of [`MeasureOptions`].
pub fn run(args: &[String]) -> Result<(), String> {
    let relayed = [&NETS[..], &LOSSY].concat();
    let links: Vec<&str> =
        [LOOPBACK, CROWD].into_iter().chain(relayed.iter().map(|n| n.name)).collect();
    let ask = MeasureOptions::read(args, &links, &SENDERS.map(|s| s.name))
        .map_err(|e| format!("bench transport: {e}"))?;
    let programs = build(LOSSY.iter().any(|l| ask.link(l.name)))?;
    let mut all = Vec::new();
    // In turns, so that other load on the machine affects all alike.
    for turn in 1..=TURNS {
        for link in [LOOPBACK, CROWD].into_iter().filter(|l| ask.link(l)) {
            for protocol in OVER_LOOPBACK.into_iter().filter(|s| ask.protocol(s)) {
                let protocol = protocol.into();
                let link = link.into();
                all.push(LedgerKey { protocol, link, seed: turn, seconds: LOOPBACK_S });
            }
        }
    }
    for (links, senders) in [(&NETS[..], THROUGH), (&LOSSY[..], OVER_LOSSY)] {
        let is_built = |s: &str| programs.hysteria.is_ok() || !s.starts_with("hysteria");
        let senders = senders.into_iter().filter(|s| ask.protocol(s) && is_built(s));
        all.extend(wanted(&ask, links, &senders.collect::<Vec<_>>()));
    }
    let before = load();
    let one = |key: &LedgerKey| {
        let over_loopback = |how| loopback(&programs, how, key.link == CROWD);
        senders::run(&programs, &SENDERS, &relayed, key, over_loopback)
    };
    let (rows, fault) = measure(&ask, LEDGER, &all, one)?;
    let chosen = |links: &[&str]| links.iter().any(|l| ask.link(l));
    let around = LoadAround { before, after: load() };
    if chosen(&[&[LOOPBACK, CROWD], &NETS.map(|n| n.name)[..]].concat()) {
        write_section(page::PAGE, "transport", &page::text(&rows, ask.shorter, &around))?;
    }
    if chosen(&LOSSY.map(|n| n.name)) {
        let missing = programs.hysteria.as_ref().err();
        let section = page::lossy(&rows, ask.shorter, &around, missing);
        write_section(page::PAGE, "hysteria", &section)?;
    }
    fault.map_or(Ok(()), Err)
}

/// Builds the programs; Hysteria's only `with_hysteria`, and if Go is installed.
fn build(with_hysteria: bool) -> Result<SpeedPrograms, String> {
    cargo(&["build", "--release", "-p", "narrows-cli", "--features", "full"])?;
    let target = std::path::absolute(crate::command::target()).map_err(|e| e.to_string())?;
    let manifest = format!("{QUINN}/Cargo.toml");
    let folder = format!("--target-dir={}", target.display());
    cargo(&["build", "--release", "--locked", "--manifest-path", &manifest, &folder])?;
    let program = |name: &str| target.join(name).display().to_string();
    let hysteria = match with_hysteria {
        true => build_hysteria(program("hysteria-speed")),
        false => Err("its links were not chosen".into()),
    };
    if let (true, Err(why)) = (with_hysteria, &hysteria) {
        eprintln!("Hysteria's rows are left out: {why}");
    }
    let quinn = program("release/quinn-speed");
    Ok(SpeedPrograms { ours: program("release/narrows"), quinn, hysteria })
}

/// Its path, or why it cannot be built.
fn build_hysteria(program: String) -> Result<String, String> {
    let mut go = Command::new("go");
    let built = go.args(["build", "-o", &program, "."]).current_dir(HYSTERIA).output();
    let out = built.map_err(|e| format!("go is not on this machine ({e})"))?;
    if !out.status.success() || !Path::new(&program).exists() {
        let text = String::from_utf8_lossy(&out.stderr);
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
        return Err(format!("go build in {HYSTERIA}: {}", last.trim()));
    }
    Ok(program)
}

/// Processor time of a gigabyte over loopback.
fn loopback(programs: &SpeedPrograms, how: HowSent, crowd: bool) -> Result<Ran, String> {
    let seconds = LOOPBACK_S.to_string();
    let duration = format!("{seconds}s");
    let v = match how {
        HowSent::Quinn(control) => {
            let crowded = ["--seconds", &seconds, "--connections", CONNECTIONS];
            let how = if crowd { &crowded[..] } else { &["--bytes", "1000000000"] };
            json(&programs.quinn, &[how, &["--control", control]].concat())?
        }
        HowSent::Ours { protocol, hinted: false } => {
            let crowded = ["--duration", &duration, "--connections", CONNECTIONS];
            let how = if crowd { &crowded[..] } else { &["--duration", "1GB"] };
            let what = ["speed", "--protocol", protocol, "--json"];
            json(&programs.ours, &[&what, how].concat())?
        }
        _ => return Err("hints are not used over loopback".into()),
    };
    let bytes = figure(&v, "bytes")?;
    let seconds = figure(&v, "seconds")?;
    let cost = figure(&v, "cpu_seconds")? / (bytes * 1e-9);
    let rate = bytes * 8.0 / seconds;
    let figures = [("cpu_s_per_gb".to_string(), cost), ("rate_bps".into(), rate)].into();
    let line = format!("{cost:.2} CPU s per GB, {:.0} Mbit/s", rate * 1e-6);
    Ok(Ran { figures, late_mean_s: 0.0, line })
}
