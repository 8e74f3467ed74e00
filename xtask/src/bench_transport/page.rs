//! The section of `docs/benchmarks.md`.

use super::rows::{
    CONNECTIONS, CROWD, HYSTERIA, LOOPBACK, LOOPBACK_S, LOSSY, NETS, SENDERS, TURNS,
};
use crate::command::cores;
use crate::real::ledger::LedgerRow;
use crate::real::senders::{ComparedSender, table};
use crate::real::{LATE_S, spread};
use std::fmt::Write as _;

pub const PAGE: &str = "docs/benchmarks.md";

/// Method of measurements in real time, here and in `docs/sim-vs-real.md`.
const METHOD: &str = "\
### In real time

Runs through the relay take real time. They run one after another, each with its own relay and sockets.

Each run records the relay's mean lateness: how much later than the link specifies datagrams leave it. A run with more
than 0.25 ms is repeated once. The less late of the two counts.

Each run is kept, with its commit, in `bench-transport.jsonl` or `sim-vs-real.jsonl` in the target folder. After an
interruption, `--resume` continues. `--again` repeats the runs selected by `--links` and `--protocols`.

";

/// The machine's load at the beginning and at the end of the measurement.
pub struct LoadAround {
    pub before: f64,
    pub after: f64,
}

/// The section of the links beside Hysteria.
pub fn lossy(
    rows: &[LedgerRow],
    shorter: f64,
    load: &LoadAround,
    missing: Option<&String>,
) -> String {
    let cores = cores();
    let missing = missing
        .map_or(String::new(), |why| format!("Hysteria's rows are not measured here: {why}.\n\n"));
    format!(
        "## Beside Hysteria 2\n\n\
One transfer of {:.0} s over real sockets and the relay, handshake included. The link of the first rows is\n\
`{}`. Figures are medians over seeds (smallest to largest) of\n\
application bytes that arrived in order, *offered* UDP payload bytes for each of them, and the mean queueing time. A\n\
full queue takes 50 ms.\n\
\n\
Hysteria's BBR is its default and gets no rate. \"brutal\" is given the link's rate, as is *rrtp, given rate and RTT*\n\
(no RTT here). Hysteria carries the stream as a proxy; its server counts the bytes to be forwarded.\n\
\n\
{missing}| loss | sender | Mbit/s | offered | mean queue ms | relay late ms (mean, worst run) | seeds |\n\
|---|---|---|---|---|---|---|\n{}\n\
Run `cargo xtask bench transport --links 1%,5%,10%,15%,20%,30%` (needs Go to build `{HYSTERIA}`). Measured on\n\
{cores} cores, load {:.1} at the beginning and {:.1} at the end, [one run at a time](#in-real-time).\n\
\n\
",
        LOSSY[0].seconds * shorter,
        LOSSY[0].spec,
        table(rows, &LOSSY, &SENDERS, shorter, true),
        load.before,
        load.after
    )
}

/// The section of the other links.
pub fn text(rows: &[LedgerRow], shorter: f64, load: &LoadAround) -> String {
    let cores = cores();
    let seconds =
        NETS.iter().map(|n| format!("{} `{}` for {} s", n.name, n.spec, n.seconds * shorter));
    format!(
        "## Transport, beside quinn\n\n\
One GB from memory to memory over loopback, encrypted, both ends in one process. CPU is that of both ends, the median\n\
of {TURNS} alternating runs (smallest to largest). rrtp uses AES-256-GCM and datagrams of at most 1472 bytes. quinn uses\n\
the cipher that TLS 1.3 negotiates with ring, and its default MTU discovery (at most 1452). In rows of {CONNECTIONS}\n\
connections, all of one socket send for {LOOPBACK_S} s.\n\
\n\
| sender | connections | CPU s per GB | Mbit/s |\n|---|---|---|---|\n{}\n\
Through the relay, handshake included, medians over seeds (smallest to largest):\n\
\n\
- *filled*: share of the link's rate that arrived in order as application bytes\n\
- *offered*: UDP payload offered to the link for each of these bytes\n\
- *mean queue*: mean time of a packet in the queue\n\
\n\
| link | sender | filled | offered | mean queue ms | relay late ms (mean, worst run) | seeds |\n\
|---|---|---|---|---|---|---|\n{}\n\
Links: {}.\n\
\n\
Run `cargo xtask bench transport` (`--runs N`, `--links`, `--protocols`; `--resume` continues after an interruption).\n\
Measured on {cores} cores, load {:.1} at the beginning and {:.1} at the end, [one run at a\n\
time](#in-real-time). A run with its relay late by more than {:.2} ms on average was repeated. If all of a row's runs\n\
stayed late, the row is marked.\n\
\n\
{METHOD}",
        loopback(rows),
        table(rows, &NETS, &SENDERS, shorter, false),
        seconds.collect::<Vec<_>>().join("; "),
        load.before,
        load.after,
        LATE_S * 1e3
    )
}

fn loopback(rows: &[LedgerRow]) -> String {
    let mut out = String::new();
    for ComparedSender { name, title, .. } in SENDERS {
        for (link, connections) in [(LOOPBACK, "1"), (CROWD, CONNECTIONS)] {
            let mine = || rows.iter().filter(|r| r.key.link == link && r.key.protocol == name);
            if mine().next().is_some() {
                let (cost, min, max) = spread(mine().map(|r| r.figure("cpu_s_per_gb")));
                let rate = spread(mine().map(|r| r.figure("rate_bps"))).0 * 1e-6;
                let _ = writeln!(
                    out,
                    "| {title} | {connections} | **{cost:.2}** ({min:.2} to {max:.2}) | {rate:.0} |"
                );
            }
        }
    }
    out
}
