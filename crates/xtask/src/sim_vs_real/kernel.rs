//! `cargo xtask sim-vs-real --kernel`: the kernel's own TCP over emulated links, beside preset `linux` in simulation.

use super::page::BesideRow;
use super::{NETS, PAGE, both, sim_vs_real};
use crate::real::ask::MeasureOptions;
use crate::real::ledger::{LedgerKey, LedgerRow};
use crate::real::{LATE_S, kernel_tcp, measure, runs_of, wanted};
use narrows_emulator::LinkOptions;
use narrows_lab::stats::estimate;
use narrows_transport::Preset;

const LEDGER: &str = "sim-vs-real-kernel.jsonl";
/// Names in the kernel and in simulation.
const ALGORITHMS: [&str; 3] = ["reno", "cubic", "bbr"];
/// A link of 100 Mbit/s runs alone, slower ones beside each other.
const BUDGET_BPS: f64 = 100e6;

/// `sim-vs-real --kernel`, with the flags of [`MeasureOptions`].
pub fn run(args: &[String]) -> Result<(), String> {
    let mut ask = MeasureOptions::read(args, &NETS.map(|n| n.name), &ALGORITHMS)
        .map_err(|e| format!("sim-vs-real --kernel: {e}"))?;
    if !args.iter().any(|a| a == "--budget") {
        ask.budget_bps = BUDGET_BPS;
    }
    let chosen: Vec<&str> = ALGORITHMS.into_iter().filter(|name| ask.protocol(name)).collect();
    let wanted = wanted(&ask, &NETS, &chosen);
    let of = |key: &LedgerKey| sim_vs_real(key, Preset::Linux);
    let (rows, fault) = measure(
        &ask,
        LEDGER,
        &wanted,
        |key| of(key)?.simulated(key.seed),
        |key, sim| {
            let [there, back] = of(key)?.ways()?;
            let options = LinkOptions { seed: key.seed, ..LinkOptions::new(there, back) };
            let (real, late) = kernel_tcp::transfer(&key.protocol, options, key.seconds)?;
            Ok(both(sim, &real, late))
        },
    )?;
    crate::section::write(PAGE, "kernel", &section(&rows, ask.shorter))?;
    fault.map_or(Ok(()), Err)
}

fn section(rows: &[LedgerRow], shorter: f64) -> String {
    let (mut table, mut agree, mut all, mut late) = (String::new(), 0, 0, 0);
    for name in ALGORITHMS {
        for net in &NETS {
            let (tried, in_time) = runs_of(rows, (net.name, name), net.seconds * shorter);
            late += tried.len() - in_time.len();
            if in_time.is_empty() {
                continue;
            }
            let row = BesideRow::of(&in_time);
            all += 1;
            agree += usize::from(row.agrees());
            table += &row.line(name, net.name, true);
        }
    }
    let loads = estimate(rows.iter().map(|r| r.load)).mean;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "## The kernel's TCP through `narrows link`\n\n\
The TCP of Linux {} between two namespaces joined by [an emulated link](link.md), beside preset `linux`\n\
in simulation, on the same links. All packets have 1500 bytes.\n\
\n\
- One connection sends from its start. *Goodput* counts the bytes that the receiver has read by the end, from the\n\
\x20 moment when the sender begins to connect.\n\
- *RTT* is that of timestamps and their echoes at the sender's end of the link, a mean over ACKs.\n\
- *Offered* is bytes of IP packets for each byte that arrived. Agreement is as above.\n\
\n\
**{agree} of {all} agree.** Mbit/s, and milliseconds; simulated, then real; means over seeds.\n\n\
| TCP | link | goodput | real | ratio | RTT | real | queue | real | offered | real | goodput agrees | RTT agrees | emulator late ms | seeds |\n\
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n{table}\n\
Run as root: `cargo xtask sim-vs-real --kernel`. Measured on {cores} cores at a mean load of {loads:.1}. {late} runs are left out,\n\
because their emulator was late by more than {:.2} ms on average twice.\n\
\n\
",
        version.trim(),
        LATE_S * 1e3
    )
}
