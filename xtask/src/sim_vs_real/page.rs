//! `docs/sim-vs-real.md`.

use super::rows::{NETS, PROTOCOLS};
use crate::real::ledger::LedgerRow;
use crate::real::{LATE_S, runs_of};
use narrows_lab::outcome::Estimate;
use narrows_lab::stats::{differ, estimate};
use narrows_speed::MeasuredRun;
use std::fmt::Write as _;

const PAGE: &str = "docs/sim-vs-real.md";

/// A run simulated once more, over a link that is late as its relay was.
pub type Late<'a> = &'a dyn Fn(&LedgerRow) -> Result<MeasuredRun, String>;

/// Writes the section of transfers; the rest of the page stays.
pub fn write(rows: &[LedgerRow], shorter: f64, late: Late<'_>) -> Result<(), String> {
    crate::files::write_section(PAGE, "transfers", &page(rows, shorter, late)?)
}

/// The figures of a row, each simulated and real.
pub struct BesideRow {
    goodput: (Estimate, Estimate),
    rtt: (Estimate, Estimate),
    wait: (Estimate, Estimate),
    offered: (Estimate, Estimate),
    late_s: f64,
    runs: usize,
}

impl BesideRow {
    pub fn of(here: &[&LedgerRow]) -> BesideRow {
        let of = |name: &str| {
            let pick =
                |side: &str| estimate(here.iter().map(|r| r.figure(&format!("{side}_{name}"))));
            (pick("sim"), pick("real"))
        };
        BesideRow {
            goodput: of("goodput_bps"),
            rtt: of("rtt_s"),
            wait: of("wait_s"),
            offered: of("offered"),
            late_s: estimate(here.iter().map(|r| r.late_mean_s)).mean,
            runs: here.len(),
        }
    }

    fn verdicts(&self) -> (&'static str, &'static str) {
        (goodput_verdict(self.goodput.0, self.goodput.1), rtt_verdict(self.rtt.0, self.rtt.1))
    }

    pub fn agrees(&self) -> bool {
        let (goodput, rtt) = self.verdicts();
        goodput != "**no**" && rtt == "yes"
    }

    /// Cells of goodput and RTT.
    fn compared(&self) -> String {
        let g = self.goodput;
        let r = self.rtt;
        format!(
            "{:.3} | {:.3} | {:.3} | {:.1} | {:.1}",
            g.0.mean * 1e-6,
            g.1.mean * 1e-6,
            g.1.mean / g.0.mean,
            r.0.mean * 1e3,
            r.1.mean * 1e3
        )
    }

    /// A line of the table; runs that were late have no verdict.
    pub fn line(&self, protocol: &str, link: &str, judged: bool) -> String {
        let (goodput, rtt) = if judged { self.verdicts() } else { ("late", "late") };
        let q = self.wait;
        let o = self.offered;
        format!(
            "| {protocol} | {link} | {} | {:.1} | {:.1} | {:.3} | {:.3} | {goodput} | {rtt} | {:.2} | {} |\n",
            self.compared(),
            q.0.mean * 1e3,
            q.1.mean * 1e3,
            o.0.mean,
            o.1.mean,
            self.late_s * 1e3,
            self.runs,
        )
    }
}

/// How the goodputs agree.
fn goodput_verdict(sim: Estimate, real: Estimate) -> &'static str {
    if (real.mean / sim.mean - 1.0).abs() <= 0.05 {
        "yes"
    } else if sim.ci95().is_some() && !differ(sim, real) {
        "by the interval"
    } else {
        "**no**"
    }
}

fn rtt_verdict(sim: Estimate, real: Estimate) -> &'static str {
    let off = (real.mean - sim.mean).abs();
    if off <= (0.05 * sim.mean).max(1e-3) { "yes" } else { "**no**" }
}

/// A line of the second table, and whether it agrees.
fn beside_late(name: &str, here: &[&LedgerRow], late: Late<'_>) -> Result<(String, bool), String> {
    let seen = here.iter().map(|row| late(row)).collect::<Result<Vec<MeasuredRun>, String>>()?;
    let mut row = BesideRow::of(here);
    row.goodput.0 = estimate(seen.iter().map(|s| s.goodput_bps));
    row.rtt.0 = estimate(seen.iter().map(|s| s.rtt_s));
    let (goodput, rtt) = row.verdicts();
    let line = format!("| {name} | {} | {goodput} | {rtt} |\n", row.compared());
    Ok((line, row.agrees()))
}

/// All protocols with rows: the usual ones in their order, then further ones by name.
fn protocols(rows: &[LedgerRow]) -> Vec<&str> {
    let mut others: Vec<&str> = rows.iter().map(|r| r.key.protocol.as_str()).collect();
    others.retain(|p| !PROTOCOLS.contains(p));
    others.sort_unstable();
    others.dedup();
    PROTOCOLS.into_iter().chain(others).collect()
}

fn page(rows: &[LedgerRow], shorter: f64, again: Late<'_>) -> Result<String, String> {
    let mut out = String::from(
        "\
# Simulation beside real sockets\n\n\
Each row is one transfer, simulated and over real sockets. In reality, sealed packets pass the relay, which drives the\n\
same link with the same losses in real time.\n\
\n\
- The client sends one stream. Media (tfrc, tfwc, tear, tear-wireless) send one sequence of unreliable messages of\n\
\x20 1400 bytes (1128 on iii). No hints are given.\n\
- *Goodput* counts bytes in order, or all messages that arrived, from the moment when the client begins to connect. It\n\
\x20 agrees within 5%, or *by the interval*: within the joint 95% interval over seeds.\n\
- *RTT* is the mean. It agrees within 5% or 1 ms.\n\
- *Offered* is UDP payload bytes for each application byte that arrived. Packets have at most 1500 bytes on the link.\n\
\n\
| link | | seconds |\n|---|---|---|\n",
    );
    for n in &NETS {
        let _ = writeln!(out, "| {} | `{}` | {} |", n.name, n.spec, n.seconds * shorter);
    }
    let mut agreeing = String::new();
    let mut table = String::new();
    let mut agree = 0;
    let mut all = 0;
    let mut late = 0;
    let mut others = String::new();
    let mut machine = 0;
    for protocol in protocols(rows) {
        let mut cells = [const { String::new() }; NETS.len()];
        for (cell, n) in cells.iter_mut().zip(&NETS) {
            let (tried, in_time) = runs_of(rows, n.name, protocol, n.seconds * shorter);
            late += tried.len() - in_time.len();
            if tried.is_empty() {
                continue;
            }
            let judged = !in_time.is_empty();
            let here = if judged { &in_time } else { &tried };
            let row = BesideRow::of(here);
            let agrees = judged && row.agrees();
            all += usize::from(judged);
            agree += usize::from(agrees);
            if agrees {
                let ratio = |e: (Estimate, Estimate)| e.1.mean / e.0.mean;
                let mbps = row.goodput.1.mean * 1e-6;
                let ms = row.rtt.1.mean * 1e3;
                let goodput = ratio(row.goodput);
                let rtt = ratio(row.rtt);
                *cell = format!("{mbps:.3} ({goodput:.3}), {ms:.1} ({rtt:.3})");
                continue;
            }
            *cell = "below".into();
            if judged {
                let (line, agrees) = beside_late(&format!("{protocol} | {}", n.name), here, again)?;
                others += &line;
                machine += usize::from(agrees);
            }
            table += &row.line(protocol, n.name, judged);
        }
        if cells.iter().any(|c| !c.is_empty()) {
            let _ = writeln!(agreeing, "| {protocol} | {} |", cells.join(" | "));
        }
    }
    let loads = estimate(rows.iter().map(|r| r.load)).mean;
    let cores = crate::command::cores();
    let nets = NETS.map(|n| n.name).join(" | ");
    let _ = write!(
        out,
        "\n**{agree} of {all} agree.** These have here, as means over seeds, the real goodput in Mbit/s and the real RTT in ms,\n\
each with its ratio to the simulated one:\n\n\
| protocol | {nets} |\n|{}\n{agreeing}\n\
The others; simulated, then real:\n\n\
| protocol | link | goodput | real | ratio | RTT | real | queue | real | offered | real | goodput agrees | RTT agrees | relay late ms | seeds |\n\
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n{table}\n\
Run `cargo xtask sim-vs-real` (`--protocols`, `--links`, `--runs` select a part; `--resume` continues after an\n\
interruption). Measured on {cores} cores at a mean load of {loads:.1} (these runs included), [one run at a\n\
time](benchmarks.md#in-real-time). A run with its relay late by more than {:.2} ms on average was repeated; {late}\n\
runs stayed late and do not count.\n\
\n\
",
        "---|".repeat(NETS.len() + 1),
        LATE_S * 1e3
    );
    if !others.is_empty() {
        let _ = write!(
            out,
            "## The machine as a part of the path\n\nThe relay and the hosts wake up late; simulated ones do not. Rows that disagree above are simulated once more, over a\n\
link that is late in both directions. Its lateness is uniform, keeps the order, and is twice that of the relay in the\n\
same run, for the relay and for the sending host. **{machine} of {} agree.**\n\
\n\
| protocol | link | goodput, late | real | ratio | RTT, late | real | goodput agrees | RTT agrees |\n\
|---|---|---|---|---|---|---|---|---|\n{others}\n",
            all - agree
        );
    }
    Ok(out)
}
