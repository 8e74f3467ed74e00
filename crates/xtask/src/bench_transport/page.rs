//! The section of `docs/benchmarks.md`.

use super::{CONNECTIONS, CROWD, LOOPBACK, LOOPBACK_S, NETS, SENDERS, TURNS};
use crate::real::ledger::Row;
use crate::real::{LATE_S, section, spread};
use std::fmt::Write as _;

const PAGE: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- begin transport -->\n";

/// How whatever takes real time is measured, here and in `docs/sim-vs-real.md`.
const METHOD: &str = "\
### In real time

What goes through the relay takes as long as it says, and on slow links almost no processor time. So several runs go on at \
once, each with a relay and sockets of its own, as long as the sum of their links' rates stays below a budget \
(`--budget`, 45 Mbit/s unless told; a run counts at least 1 Mbit/s). The longest begin first; what is above the budget, and \
everything over loopback, has the machine to itself. Simulations are done before the first real run begins. Of every run \
the relay's mean lateness is kept: by how much datagrams left it later than the link says. A run with more than 0.25 ms is repeated once, \
alone, at the end, and the less late of the two counts.

Each run becomes a line of `bench-transport.jsonl` or `sim-vs-real.jsonl` in the target folder as soon as it ends, with the commit \
(and a mark of what was changed since). After a kill the same command with `--resume` goes on where it was; `--again` \
measures what `--links` and `--protocols` choose once more and keeps the rest.

";

/// Writes the section; the rest of the page stays.
pub fn write(rows: &[Row], shorter: f64, load: (f64, f64)) -> Result<(), String> {
    section::write(PAGE, "transport", &text(rows, shorter, load))
}

/// The section as it stands and the notes behind it, for whoever writes the page before them.
pub fn kept() -> String {
    let page = std::fs::read_to_string(PAGE).unwrap_or_default();
    page.split_once(BEGIN).map_or_else(String::new, |(_, rest)| format!("\n{BEGIN}{rest}"))
}

fn text(rows: &[Row], shorter: f64, load: (f64, f64)) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let seconds =
        NETS.iter().map(|n| format!("{} `{}` for {} s", n.name, n.spec, n.seconds * shorter));
    format!(
        "## Transport, beside quinn\n\n\
Over loopback, 1 GB from memory to memory, encrypted (AES-256-GCM; quinn: what TLS 1.3 agrees with ring), \
both ends in one process: processor seconds per gigabyte, both sides together, medians of {TURNS} runs \
in turns (least to most). Datagrams have at most 1472 bytes in ours; quinn finds the loopback's MTU by its own \
default (at most 1452). The second line of each is {CONNECTIONS} connections of one socket that all send for \
{LOOPBACK_S} s.\n\n| sender | connections | CPU s per GB | Mbit/s |\n|---|---|---|---|\n{}\n\
Through the relay, the handshake included, medians over seeds (least to most): the share of the link's rate that \
arrived in order as application bytes, UDP payload offered to the link for each of these bytes, and the mean \
time of a packet in the queue.\n\n\
| link | sender | filled | offered | mean queue ms | relay late ms (mean, worst run) | seeds |\n\
|---|---|---|---|---|---|---|\n{}\n\
Links: {}. Again: `cargo xtask bench transport` (`--runs N`, `--links`, `--protocols`; `--resume` goes on where it was \
killed), after `cargo build --release` in `tools/quinn-speed` with the same target folder. Measured on {cores} cores, \
load {:.1} at the beginning and {:.1} at the end, several runs at once [as far as a budget goes](#in-real-time); a run whose \
relay was late by more than {:.2} ms on average was repeated alone. Where it stayed late, the row is marked and says less.\n\n{METHOD}",
        loopback(rows),
        links(rows, shorter),
        seconds.collect::<Vec<_>>().join("; "),
        load.0,
        load.1,
        LATE_S * 1e3
    )
}

fn loopback(rows: &[Row]) -> String {
    let mut out = String::new();
    for (name, title, ..) in SENDERS {
        for (link, connections) in [(LOOPBACK, "1"), (CROWD, CONNECTIONS)] {
            let mine = || rows.iter().filter(|r| r.key.link == link && r.key.protocol == name);
            if mine().next().is_some() {
                let (cost, least, most) = spread(mine().map(|r| r.figure("cpu_s_per_gb")));
                let rate = spread(mine().map(|r| r.figure("rate_bps"))).0 * 1e-6;
                let _ = writeln!(
                    out,
                    "| {title} | {connections} | **{cost:.2}** ({least:.2} to {most:.2}) | {rate:.0} |"
                );
            }
        }
    }
    out
}

fn links(rows: &[Row], shorter: f64) -> String {
    let mut out = String::new();
    for net in &NETS {
        for (name, title, ..) in SENDERS {
            let mine = |r: &&Row| {
                r.key.link == net.name
                    && r.key.protocol == name
                    && (r.key.seconds - net.seconds * shorter).abs() < 1e-6
            };
            let tried: Vec<&Row> = rows.iter().filter(mine).collect();
            let in_time: Vec<&Row> =
                tried.iter().copied().filter(|r| r.late_mean_s <= LATE_S).collect();
            let (here, mark) = if in_time.is_empty() { (tried, " (late)") } else { (in_time, "") };
            if here.is_empty() {
                continue;
            }
            let of = |what: &str, scale: f64, digits: usize| {
                let (m, least, most) = spread(here.iter().map(|r| r.figure(what) * scale));
                (format!("{m:.digits$}"), format!("{least:.digits$} to {most:.digits$}"))
            };
            let (filled, offered, queue) =
                (of("filled", 1.0, 3), of("offered", 1.0, 3), of("queue_s", 1e3, 1));
            let late = spread(here.iter().map(|r| r.late_mean_s * 1e3)).2;
            let _ = writeln!(
                out,
                "| {} | {title} | **{}** ({}) | {} ({}) | {} ({}) | {late:.2}{mark} | {} |",
                net.name,
                filled.0,
                filled.1,
                offered.0,
                offered.1,
                queue.0,
                queue.1,
                here.len()
            );
        }
    }
    out
}
