//! `cargo xtask bench hysteria`: rrtp beside Hysteria 2 on links that lose 1 to 30%, over real sockets and the same
//! relay.
//!
//! Both of Hysteria's modes are measured: BBR, its default, and "brutal", which needs the link's rate. Its program is
//! `tools/hysteria-speed`, built here if Go is installed. Otherwise its rows are left out, and the page gives the
//! reason.

use crate::command::cargo;
use crate::real::ask::MeasureOptions;
use crate::real::ledger::{LedgerKey, LedgerRow};
use crate::real::senders::{self, ComparedSender, HowSent, SpeedPrograms, sender, table};
use crate::real::{MeasuredLink, link, load, measure, wanted};
use crate::section;
use std::path::Path;
use std::process::Command;

/// In the target folder.
const LEDGER: &str = "bench-hysteria.jsonl";
const PAGE: &str = "docs/benchmarks.md";
const TOOL: &str = "tools/hysteria-speed";
const SECONDS: f64 = 12.0;

const fn lossy(name: &'static str, spec: &'static str) -> MeasuredLink {
    link(name, spec, 20e6, 1500, SECONDS, &["--rate", "20Mbit/s"])
}

/// A queue of one BDP, and losses of data only.
const LINKS: [MeasuredLink; 6] = [
    lossy("1%", "20Mbit/s,25ms,queue=125kB,loss=1%,reverse-loss=0%"),
    lossy("5%", "20Mbit/s,25ms,queue=125kB,loss=5%,reverse-loss=0%"),
    lossy("10%", "20Mbit/s,25ms,queue=125kB,loss=10%,reverse-loss=0%"),
    lossy("15%", "20Mbit/s,25ms,queue=125kB,loss=15%,reverse-loss=0%"),
    lossy("20%", "20Mbit/s,25ms,queue=125kB,loss=20%,reverse-loss=0%"),
    lossy("30%", "20Mbit/s,25ms,queue=125kB,loss=30%,reverse-loss=0%"),
];

/// Each sender of rrtp is compared with the one of Hysteria that has the same hints.
const SENDERS: [ComparedSender; 4] = [
    sender("rrtp", "rrtp", HowSent::Ours { protocol: "rrtp", told: false }),
    sender("hysteria-bbr", "Hysteria 2, BBR", HowSent::Hysteria { told: false }),
    sender("rrtp-told", "rrtp, given the rate", HowSent::Ours { protocol: "rrtp", told: true }),
    sender("hysteria-brutal", "Hysteria 2, brutal", HowSent::Hysteria { told: true }),
];

/// `bench hysteria`, with the flags of [`MeasureOptions`]; its links are the loss rates.
pub fn run(args: &[String]) -> Result<(), String> {
    let names = SENDERS.map(|s| s.name);
    let ask = MeasureOptions::read(args, &LINKS.map(|l| l.name), &names)
        .map_err(|e| format!("bench hysteria: {e}"))?;
    let programs = build()?;
    if let Err(why) = &programs.theirs {
        eprintln!("Hysteria's rows are left out: {why}");
    }
    let here = |s: &&ComparedSender| {
        let needs_theirs = matches!(s.how, HowSent::Hysteria { .. });
        ask.protocol(s.name) && (programs.theirs.is_ok() || !needs_theirs)
    };
    let chosen: Vec<&str> = SENDERS.iter().filter(here).map(|s| s.name).collect();
    let wanted = wanted(&ask, &LINKS, &chosen);
    let begun = load();
    let one = |key: &LedgerKey, (): &()| {
        senders::run(&programs, (&SENDERS, &LINKS), key, |_| Err("an unknown link".into()))
    };
    let (rows, fault) = measure(&ask, LEDGER, &wanted, |_| Ok(()), one)?;
    let missing = programs.theirs.err();
    section::write(
        PAGE,
        "hysteria",
        &text(&rows, ask.shorter, (begun, load()), missing.as_deref()),
    )?;
    fault.map_or(Ok(()), Err)
}

fn build() -> Result<SpeedPrograms, String> {
    cargo(&["build", "--release", "-p", "narrows-cli", "--features", "full"])?;
    let target = crate::command::target();
    let theirs = build_hysteria(&format!("{target}/hysteria-speed"));
    Ok(SpeedPrograms { ours: format!("{target}/release/narrows"), theirs })
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
        LINKS[0].spec,
        table(rows, &LINKS, &SENDERS, shorter, true),
        load.0,
        load.1
    )
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
        let table = table(&rows, &LINKS, &SENDERS, 1.0, true);
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
