//! `cargo xtask bench hysteria`: rrtp beside Hysteria 2 on links that lose 1 to 30%, over real sockets and the same
//! relay.
//!
//! Both of Hysteria's modes are measured: BBR, its default, and "brutal", which needs the link's rate. Its program is
//! `tools/hysteria-speed`, built here if Go is installed. Otherwise its rows are left out, and the page gives the
//! reason.

use crate::command::cargo;
use crate::real::ask::MeasureOptions;
use crate::real::ledger::{LedgerKey, LedgerRow};
use crate::real::relayed::{json, relayed};
use crate::real::{Measurement, Ran, load, measure, runs_of, spread};
use crate::section;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// In the target folder.
const LEDGER: &str = "bench-hysteria.jsonl";
const PAGE: &str = "docs/benchmarks.md";
const TOOL: &str = "tools/hysteria-speed";
const RATE: &str = "20Mbit/s";
const RATE_BPS: f64 = 20e6;
const SECONDS: f64 = 12.0;
/// A queue of one BDP, and losses of data only.
const LOSSES: [&str; 6] = ["1%", "5%", "10%", "15%", "20%", "30%"];

#[derive(Clone, Copy, PartialEq)]
enum HysteriaSender {
    Ours { told: bool },
    Hysteria { told: bool },
}

/// Name, title, sender. Each sender of rrtp is compared with the one of Hysteria that has the same hints.
const SENDERS: [(&str, &str, HysteriaSender); 4] = [
    ("rrtp", "rrtp", HysteriaSender::Ours { told: false }),
    ("hysteria-bbr", "Hysteria 2, BBR", HysteriaSender::Hysteria { told: false }),
    ("rrtp-told", "rrtp, given the rate", HysteriaSender::Ours { told: true }),
    ("hysteria-brutal", "Hysteria 2, brutal", HysteriaSender::Hysteria { told: true }),
];

struct HysteriaPrograms {
    ours: String,
    /// Or the reason why it is missing.
    hysteria: Result<String, String>,
}

/// `bench hysteria`, with the flags of [`MeasureOptions`]; its links are the loss rates.
pub fn run(args: &[String]) -> Result<(), String> {
    let ask = MeasureOptions::read(args, &LOSSES, &SENDERS.map(|s| s.0))
        .map_err(|e| format!("bench hysteria: {e}"))?;
    let chosen = |name: &str| ask.protocols.as_ref().is_none_or(|p| p.iter().any(|p| p == name));
    let programs = build()?;
    if let Err(why) = &programs.hysteria {
        eprintln!("Hysteria's rows are left out: {why}");
    }
    let mut wanted = Vec::new();
    for seed in 1..=ask.runs {
        for loss in LOSSES.into_iter().filter(|l| ask.link(l)) {
            for (name, _, sender) in SENDERS.iter().filter(|s| chosen(s.0)) {
                if programs.hysteria.is_err() && matches!(sender, HysteriaSender::Hysteria { .. }) {
                    continue;
                }
                let seconds = SECONDS * ask.shorter;
                let key = LedgerKey { protocol: (*name).into(), link: loss.into(), seed, seconds };
                wanted.push(Measurement { key, rate_bps: RATE_BPS, alone: false });
            }
        }
    }
    let begun = load();
    let (rows, fault) =
        measure(&ask, LEDGER, &wanted, |_| Ok(()), |key, ()| transfer(&programs, key))?;
    let missing = programs.hysteria.err();
    section::write(
        PAGE,
        "hysteria",
        &text(&rows, ask.shorter, (begun, load()), missing.as_deref()),
    )?;
    fault.map_or(Ok(()), Err)
}

fn build() -> Result<HysteriaPrograms, String> {
    cargo(&["build", "--release", "-p", "narrows-cli", "--features", "full"])?;
    let target = crate::command::target();
    let hysteria = build_hysteria(&format!("{target}/hysteria-speed"));
    Ok(HysteriaPrograms { ours: format!("{target}/release/narrows"), hysteria })
}

/// Its path, or why it cannot be built.
fn build_hysteria(program: &str) -> Result<String, String> {
    let there = std::env::current_dir().map_err(|e| e.to_string())?.join(program);
    let built =
        Command::new("go").arg("build").arg("-o").arg(&there).arg(".").current_dir(TOOL).output();
    let out = built.map_err(|e| format!("go is not on this machine ({e})"))?;
    if !out.status.success() || !Path::new(program).exists() {
        let text = String::from_utf8_lossy(&out.stderr);
        let last = text.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
        return Err(format!("go build in {TOOL}: {}", last.trim()));
    }
    Ok(there.display().to_string())
}

/// A transfer from the client to the server.
fn transfer(programs: &HysteriaPrograms, key: &LedgerKey) -> Result<Ran, String> {
    let sender = SENDERS.iter().find(|s| s.0 == key.protocol).ok_or("an unknown sender")?.2;
    let seconds = key.seconds.to_string();
    relayed(&link(&key.link), RATE_BPS, key.seed, |server, through| match sender {
        HysteriaSender::Ours { told } => {
            let duration = format!("{seconds}s");
            let mut args = vec!["speed", "--listen", server, "--through", through];
            args.extend(["--protocol", "rrtp", "--duration", &duration, "--json"]);
            if told {
                args.extend(["--rate", RATE]);
            }
            json(&programs.ours, &args)
        }
        HysteriaSender::Hysteria { told } => {
            let rate = if told { RATE_BPS } else { 0.0 }.to_string();
            let args =
                ["-listen", server, "-connect", through, "-seconds", &seconds, "-rate", &rate];
            json(programs.hysteria.as_ref().map_err(Clone::clone)?, &args)
        }
    })
}

fn link(loss: &str) -> String {
    format!("{RATE},25ms,queue=125kB,loss={loss},reverse-loss=0%")
}

fn text(rows: &[LedgerRow], shorter: f64, load: (f64, f64), missing: Option<&str>) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let missing = missing
        .map_or(String::new(), |why| format!("Hysteria's rows are not measured here: {why}.\n\n"));
    format!(
        "## Beside Hysteria 2\n\n\
One transfer of {:.0} s over real sockets and the relay, handshake included. The link of the first rows is\n\
`{}`. Figures are medians over seeds (smallest to largest) of\n\
application bytes that arrived in order, *offered* UDP payload bytes for each of them, and the mean queueing time. A\n\
full queue takes 50 ms.\n\
\n\
Hysteria's BBR is its default and gets no rate. \"brutal\" is given the link's rate, as is rrtp in the row above it.\n\
Hysteria carries the stream as a proxy; its server counts the bytes to be forwarded.\n\
\n\
{missing}| loss | sender | Mbit/s | offered | mean queue ms | relay late ms (mean, worst run) | seeds |\n\
|---|---|---|---|---|---|---|\n{}\n\
Run `cargo xtask bench hysteria` (`--runs N`, `--links 5%,10%`, `--protocols`; needs Go to build\n\
`{TOOL}`). Measured on {cores} cores, load {:.1} at the beginning and {:.1} at the end, with several runs at once\n\
[within a budget](#in-real-time).\n\
\n\
",
        SECONDS * shorter,
        link(LOSSES[0]),
        table(rows, shorter),
        load.0,
        load.1
    )
}

fn table(rows: &[LedgerRow], shorter: f64) -> String {
    let mut out = String::new();
    for loss in LOSSES {
        for (name, title, _) in SENDERS {
            let (tried, in_time) = runs_of(rows, (loss, name), SECONDS * shorter);
            let (here, mark) = if in_time.is_empty() { (tried, " (late)") } else { (in_time, "") };
            if here.is_empty() {
                continue;
            }
            let of = |what: &str, scale: f64, digits: usize| {
                let (m, least, most) = spread(here.iter().map(|r| r.figure(what) * scale));
                format!("{m:.digits$} ({least:.digits$} to {most:.digits$})")
            };
            let late = spread(here.iter().map(|r| r.late_mean_s * 1e3)).2;
            let _ = writeln!(
                out,
                "| {loss} | {title} | {} | {} | {} | {late:.2}{mark} | {} |",
                of("filled", RATE_BPS * 1e-6, 1),
                of("offered", 1.0, 3),
                of("queue_s", 1e3, 1),
                here.len()
            );
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(protocol: &str, seed: u64, filled: f64, late_mean_s: f64) -> LedgerRow {
        let key =
            LedgerKey { protocol: protocol.into(), link: "10%".into(), seed, seconds: SECONDS };
        let figures = [("filled", filled), ("offered", 1.2), ("queue_s", 0.004)];
        let figures = figures.map(|(name, x)| (name.to_string(), x)).into();
        LedgerRow { commit: String::new(), key, attempt: 1, late_mean_s, figures, load: 0.0 }
    }

    /// A run with a late relay counts only if the row has no other runs.
    #[test]
    fn a_line_has_the_runs_in_time_and_says_where_there_are_none() {
        let rows = [
            row("rrtp", 1, 0.8, 0.0),
            row("rrtp", 2, 0.7, 0.0),
            row("rrtp", 3, 0.1, 0.01),
            row("hysteria-bbr", 1, 0.6, 0.01),
        ];
        let table = table(&rows, 1.0);
        assert!(table.contains("| 10% | rrtp | 15.0 (14.0 to 16.0) | 1.200"), "{table}");
        assert!(table.contains("| 10% | Hysteria 2, BBR | 12.0") && table.contains("(late)"));
        assert_eq!(table.lines().count(), 2, "{table}");
    }

    #[test]
    fn without_go_the_page_says_why_rows_are_missing() {
        let page = text(&[row("rrtp", 1, 0.8, 0.0)], 1.0, (0.0, 0.0), Some("go is not there"));
        assert!(page.contains("not measured here: go is not there."), "{page}");
    }
}
