//! Cost of media protocols per delivered packet beside TCP, and the time of the surfaces of Choi 2006.

use crate::command::cargo;
use crate::real::{alternate, spread};
use std::fmt::Write as _;
use std::process::Command;
use std::time::Instant;

/// In turns with the first.
const PROTOCOLS: [&str; 9] = [
    "reno",
    "tfrc",
    "tfwc",
    "tear",
    "tear-wireless",
    "rap",
    "scream",
    "fixed(rate=9.9Mbit/s)",
    "jersey",
];

/// The section of the page; `cost` gives CPU nanoseconds per delivered packet of ten flows at
/// 100 Mbit/s that speak a protocol.
///
/// # Errors
/// A run that fails.
pub fn section(
    rounds: usize,
    mut cost: impl FnMut(&str) -> Result<f64, String>,
) -> Result<String, String> {
    let costs = alternate(rounds, &PROTOCOLS, |protocol| cost(protocol))?;
    let mut rows = String::new();
    for (protocol, list) in PROTOCOLS.iter().zip(&costs).skip(1) {
        let ratios = list.iter().zip(&costs[0]).map(|(ns, tcp)| ns / tcp);
        let (middle, least, most) = spread(ratios);
        let _ = writeln!(rows, "| {protocol} | {middle:.2} ({least:.2} to {most:.2}) |");
        eprintln!("{protocol}: {middle:.2} times TCP");
    }
    let (wall, runs) = surfaces()?;
    Ok(format!(
        "## Media protocols\n\n\
CPU time per delivered packet over that of `reno` in case b, median of {rounds} alternating runs (smallest to largest). Each\n\
paced packet costs an event; a report per round trip saves some.\n\
\n\
| protocol | times reno |\n|---|---|\n{rows}\n\
The fairness surfaces of Choi 2006 took {wall:.0} s of wall time on {} cores, start and files included. They are {runs} runs by\n\
two `narrows sweep` commands (see `scenarios/dsl-fairness.toml`): 8 bandwidths by 8 numbers of flows, TFRC and TFWC,\n\
drop-tail and RED, 3 seeds of 200 simulated seconds.\n\
\n\
",
        std::thread::available_parallelism().map_or(1, usize::from)
    ))
}

fn surfaces() -> Result<(f64, usize), String> {
    cargo(&["build", "--release", "-p", "narrows-cli", "--features", "full"])?;
    let target = crate::command::target();
    let out = std::path::Path::new(&target).join("narrows-bench-surface");
    let start = Instant::now();
    for aqm in ["droptail", "red(cautious=on)"] {
        let done = Command::new(format!("{target}/release/narrows"))
            .args(["sweep", "scenarios/dsl-fairness.toml", "--group", "media", "--fresh"])
            .args(["--vary", "flows.media.protocol=tfrc,tfwc"])
            .args(["--vary", "link.dsl.rate=0.1Mbit/s..20Mbit/s:log:8"])
            .args(["--vary", "n=1..100:log:8", "--vary", &format!("link.dsl.aqm={aqm}")])
            .arg("--out")
            .arg(out.join(aqm.get(..3).unwrap_or(aqm)))
            .output()
            .map_err(|e| format!("narrows sweep: {e}"))?;
        if !done.status.success() {
            return Err(String::from_utf8_lossy(&done.stderr).into_owned());
        }
    }
    let wall = start.elapsed().as_secs_f64();
    let _ = std::fs::remove_dir_all(out);
    eprintln!("S1's surfaces: {wall:.1} s");
    Ok((wall, 2 * 2 * 8 * 8 * 3))
}
