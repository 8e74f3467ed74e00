//! `cargo xtask bench small`: cost of a small request, stream or message with rrtp and with quinn, in one process, in
//! turns. The program is `tools/small-requests`, outside the workspace.

use crate::flags::Flags;
use crate::real::spread;
use narrows_lab::stats;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

const PROGRAM: &str = "tools/small-requests/Cargo.toml";
const PAGE: &str = "docs/benchmarks.md";
/// Default number of turns of each row.
const TURNS: u32 = 20;

/// A row's name and its operation.
const ROWS: [(&str, &str); 8] = [
    ("request", "request and response of 1 KiB each, on a bidirectional stream"),
    ("requests-64", "the same, 64 at once"),
    ("byte", "stream of one byte, and one in reply"),
    ("bytes-64", "the same, 64 at once"),
    ("message", "message of 100 bytes, and one in reply"),
    ("messages-64", "the same, 64 at once"),
    ("handshake", "handshake and close"),
    ("bulk", "64 KiB of a bulk transfer"),
];
const WHO: [(&str, &str); 3] =
    [("quinn", "quinn"), ("rrtp", "rrtp, task"), ("rrtp-thread", "rrtp, thread")];

/// Cost of one turn of a row: CPU, latency, context switches, datagrams of the client.
type Cost = [f64; 4];
const FIGURES: [&str; 4] = ["cpu_us", "latency_us", "switches", "datagrams"];

#[derive(Default)]
struct Costs {
    /// By row, sender and turn.
    turns: BTreeMap<(String, String), BTreeMap<u64, Cost>>,
    /// Bytes of an idle connection.
    idle: BTreeMap<String, f64>,
}

/// `bench small`, perhaps with `--turns N`.
pub fn run(args: &[String]) -> Result<(), String> {
    let (mut turns, mut flags) = (TURNS, Flags::new(args));
    while let Some(flag) = flags.advance() {
        match flag {
            "--turns" => turns = flags.number(1..=10_000)?,
            _ => return flags.unknown("--turns N"),
        }
    }
    crate::cargo(&["build", "--release", "--locked", "--manifest-path", PROGRAM])?;
    let target = std::env::var("CARGO_TARGET_DIR");
    let target = target.unwrap_or_else(|_| "tools/small-requests/target".into());
    let out = Command::new(format!("{target}/release/small-requests"))
        .arg(turns.to_string())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| format!("small-requests: {e}"))?;
    if !out.status.success() {
        return Err(format!("small-requests failed: {}", out.status));
    }
    let mut costs = Costs::default();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        costs.add(line).ok_or_else(|| format!("small-requests: unexpected line '{line}'"))?;
    }
    crate::section::write(PAGE, "small", &section(&costs, turns))
}

impl Costs {
    fn add(&mut self, line: &str) -> Option<()> {
        let v: Value = serde_json::from_str(line).ok()?;
        let who = v.get("who")?.as_str()?.to_string();
        let row = v.get("row")?.as_str()?.to_string();
        if let Some(bytes) = v.get("bytes").and_then(Value::as_f64) {
            self.idle.insert(who, bytes);
            return Some(());
        }
        let mut cost = Cost::default();
        for (place, name) in cost.iter_mut().zip(FIGURES) {
            *place = v.get(name)?.as_f64()?;
        }
        self.turns.entry((row, who)).or_default().insert(v.get("turn")?.as_u64()?, cost);
        Some(())
    }

    fn of(&self, row: &str, who: &str) -> Option<&BTreeMap<u64, Cost>> {
        self.turns.get(&(row.to_string(), who.to_string()))
    }

    fn median(&self, row: &str, who: &str, figure: usize) -> f64 {
        let turns = self.of(row, who).into_iter().flat_map(BTreeMap::values);
        spread(turns.filter_map(|cost| cost.get(figure).copied())).0
    }

    /// The geometric mean of the ratios to quinn in each turn, and its 95% interval.
    fn ratio(&self, row: &str, who: &str, figure: usize) -> Option<(f64, f64, f64)> {
        let (ours, theirs) = (self.of(row, who)?, self.of(row, "quinn")?);
        let logs: Vec<f64> = ours
            .iter()
            .filter_map(|(turn, cost)| {
                Some((cost.get(figure)? / theirs.get(turn)?.get(figure)?).ln())
            })
            .collect();
        let of_logs = stats::estimate(logs);
        let (mean, half) = (of_logs.mean, of_logs.half()?);
        Some((mean.exp(), (mean - half).exp(), (mean + half).exp()))
    }
}

fn section(costs: &Costs, turns: u32) -> String {
    let mut rows = String::new();
    for (row, title) in ROWS {
        for (who, name) in WHO {
            let ratio = |figure| match costs.ratio(row, who, figure) {
                _ if who == "quinn" => "1".to_string(),
                Some((mean, low, high)) => format!("**{mean:.2}** ({low:.2} to {high:.2})"),
                None => "-".into(),
            };
            let median = |figure| costs.median(row, who, figure);
            let datagrams = match row {
                "handshake" => "-".to_string(),
                _ => format!("{:.2}", median(3)),
            };
            let _ = writeln!(
                rows,
                "| {} | {name} | {:.1} | {} | {:.0} | {} | {:.2} | {datagrams} |",
                if who == "quinn" { title } else { "" },
                median(0),
                ratio(0),
                median(1),
                ratio(1),
                median(2),
            );
        }
    }
    let idle: Vec<String> = WHO
        .iter()
        .filter_map(|(who, name)| Some(format!("{name} {:.0}", costs.idle.get(*who)? / 1000.0)))
        .collect();
    format!(
        "## Small requests, beside quinn\n\n\
Both transports run in one process over loopback, alternating. Client and server each have a thread with a tokio\n\
runtime (`current_thread`). Figures are for one operation, both ends together, medians of {turns} turns of 0.3 s. Run\n\
`cargo xtask bench small` (`--turns N`).\n\
\n\
- *CPU* is user and system time. *Latency* is the time until the operation has ended.\n\
- *Datagrams* are those that the client sent. rrtp's before the keys are established are not counted, so the handshake\n\
\x20 row has none.\n\
- *Ratio* is to quinn: the geometric mean over turns with its 95% interval.\n\
- *rrtp, task*: a task of the runtime drives the endpoint, as in quinn (`Driver::Tokio`, selected here by the default\n\
\x20 `Driver::Auto`).\n\
- *rrtp, thread*: the endpoint has its own thread (`Driver::Thread`), which receives each datagram and wakes the\n\
\x20 runtime's thread. This adds two context switches per datagram, so a single request costs more.\n\
- rrtp's limit on handshakes from one address (200 a second) is off, since quinn has none. rrtp's handshakes begin\n\
\x20 with an address token; quinn's server does not validate the address.\n\
\n\
| operation | sender | CPU µs | ratio | latency µs | ratio | switches | datagrams |\n\
|---|---|---|---|---|---|---|---|\n{rows}\n\
An idle connection holds, both ends and the server's three tasks together, in resident kB: {}.\n\
\n\
",
        idle.join(", ")
    )
}
