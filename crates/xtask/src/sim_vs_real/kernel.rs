//! `cargo xtask sim-vs-real --kernel`: the kernel's own TCP over emulated links, beside preset `linux` in simulation.

use super::page::{goodput_verdict, rtt_verdict, write_kernel};
use super::{ComparedLink, NETS, both};
use crate::real::ask::MeasureOptions;
use crate::real::ledger::{LedgerKey, LedgerRow};
use crate::real::{LATE_S, Measurement, kernel_tcp, measure, runs_of};
use narrows_emulator::LinkOptions;
use narrows_lab::stats::estimate;
use narrows_speed::SimVsReal;
use narrows_transport::Preset;
use std::fmt::Write as _;

const LEDGER: &str = "sim-vs-real-kernel.jsonl";
/// Names in the kernel and in simulation.
const ALGORITHMS: [&str; 3] = ["reno", "cubic", "bbr"];
/// A link of 100 Mbit/s runs alone, slower ones beside each other.
const BUDGET_BPS: f64 = 100e6;
/// The kernel's packets, also on the slow link.
const PACKET: u32 = 1500;

/// `sim-vs-real --kernel`, with the flags of [`MeasureOptions`].
pub fn run(args: &[String]) -> Result<(), String> {
    let mut ask = MeasureOptions::read(args, &NETS.map(|n| n.name), &ALGORITHMS)
        .map_err(|e| format!("sim-vs-real --kernel: {e}"))?;
    if !args.iter().any(|a| a == "--budget") {
        ask.budget_bps = BUDGET_BPS;
    }
    let chosen = |name: &str| ask.protocols.as_ref().is_none_or(|p| p.iter().any(|p| p == name));
    let mut wanted = Vec::new();
    for net in NETS.iter().filter(|n| ask.link(n.name)) {
        for seed in 1..=ask.runs {
            for name in ALGORITHMS.iter().filter(|name| chosen(name)) {
                let seconds = net.seconds * ask.shorter;
                let (protocol, link) = ((*name).to_string(), net.name.to_string());
                let key = LedgerKey { protocol, link, seed, seconds };
                wanted.push(Measurement { key, rate_bps: net.bps, alone: false });
            }
        }
    }
    let of = |key: &LedgerKey| -> Result<SimVsReal, String> {
        let net = NETS.iter().find(|n| n.name == key.link).ok_or("an unknown link")?;
        Ok(simulation(net, &key.protocol, ask.shorter))
    };
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
    write_kernel(&section(&rows, ask.shorter))?;
    eprintln!("wrote docs/sim-vs-real.md");
    fault.map_or(Ok(()), Err)
}

fn simulation(net: &ComparedLink, protocol: &str, shorter: f64) -> SimVsReal {
    SimVsReal {
        protocol: protocol.into(),
        link: net.spec.into(),
        packet: PACKET,
        seconds: net.seconds * shorter,
        preset: Preset::Linux,
    }
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
            let of = |name: &str| {
                let pick = |who: &str| {
                    estimate(in_time.iter().map(|r| r.figure(&format!("{who}_{name}"))))
                };
                (pick("sim"), pick("real"))
            };
            let (g, r, q, o) = (of("goodput_bps"), of("rtt_s"), of("wait_s"), of("offered"));
            let (goodput, rtt) = (goodput_verdict(g.0, g.1), rtt_verdict(r.0, r.1));
            all += 1;
            agree += usize::from(goodput != "**no**" && rtt == "yes");
            let _ = writeln!(
                table,
                "| {name} | {} | {:.3} | {:.3} | {:.3} | {:.1} | {:.1} | {:.1} | {:.1} | {:.3} | {:.3} | {goodput} | {rtt} | {:.2} | {} |",
                net.name,
                g.0.mean * 1e-6,
                g.1.mean * 1e-6,
                g.1.mean / g.0.mean,
                r.0.mean * 1e3,
                r.1.mean * 1e3,
                q.0.mean * 1e3,
                q.1.mean * 1e3,
                o.0.mean,
                o.1.mean,
                estimate(in_time.iter().map(|r| r.late_mean_s)).mean * 1e3,
                in_time.len(),
            );
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
