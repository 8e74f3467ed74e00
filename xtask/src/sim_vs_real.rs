//! `cargo xtask sim-vs-real`: the same transfers in simulation and over real sockets, side by side.
//!
//! Real time needs an idle machine: a run with a late relay is repeated alone. If it is late again, it is reported but
//! not checked.

mod page;
mod rows;

use crate::real::ask::MeasureOptions;
use crate::real::ledger::{Figures, LedgerKey};
use crate::real::{Ran, measure, wanted};
use narrows_base::Duration;
use narrows_net::relay::Lateness;
use narrows_speed::{MeasuredRun, SimVsReal};
use rows::{NETS, PROTOCOLS};

/// In the target folder.
const LEDGER: &str = "sim-vs-real.jsonl";

/// `sim_vs_real`, with the flags of [`MeasureOptions`].
pub fn run(args: &[String]) -> Result<(), String> {
    let ask = MeasureOptions::read(args, &NETS.map(|n| n.name), &[])
        .map_err(|e| format!("sim-vs-real: {e}"))?;
    let protocols = ask
        .protocols
        .as_ref()
        .map_or(PROTOCOLS.to_vec(), |list| list.iter().map(String::as_str).collect());
    let wanted = wanted(&ask, &NETS, &protocols);
    for key in &wanted {
        sim_vs_real(key)?.check()?;
    }
    let (rows, fault) = measure(&ask, LEDGER, &wanted, |key| {
        let compared = sim_vs_real(key)?;
        let sim = compared.simulated(key.seed)?;
        let (real, late) = compared.real(key.seed)?;
        Ok(both(&sim, &real, late))
    })?;
    page::write(&rows, ask.shorter, &|row| {
        let late = Duration::from_secs_f64(row.late_mean_s);
        sim_vs_real(&row.key)?.simulated_late(row.key.seed, late)
    })?;
    fault.map_or(Ok(()), Err)
}

fn sim_vs_real(key: &LedgerKey) -> Result<SimVsReal, String> {
    let net = NETS.iter().find(|n| n.name == key.link).ok_or("an unknown link")?;
    Ok(SimVsReal {
        protocol: key.protocol.clone(),
        link: net.spec.into(),
        packet: net.packet,
        seconds: key.seconds,
    })
}

/// The figures of both, and a line.
fn both(sim: &MeasuredRun, real: &MeasuredRun, late: Lateness) -> Ran {
    let mut figures = Figures::new();
    for (who, seen) in [("sim", sim), ("real", real)] {
        let values = [seen.goodput_bps, seen.rtt_s, seen.wait_s, seen.offered];
        for (name, value) in ["goodput_bps", "rtt_s", "wait_s", "offered"].into_iter().zip(values) {
            figures.insert(format!("{who}_{name}"), value);
        }
    }
    figures.insert("late_p99_s".into(), late.p99_s);
    let line = format!(
        "{:.3} and {:.3} Mbit/s ({:.3}), RTT {:.1} and {:.1} ms, queue {:.1} and {:.1} ms, \
         offered {:.3} and {:.3}",
        sim.goodput_bps * 1e-6,
        real.goodput_bps * 1e-6,
        real.goodput_bps / sim.goodput_bps,
        sim.rtt_s * 1e3,
        real.rtt_s * 1e3,
        sim.wait_s * 1e3,
        real.wait_s * 1e3,
        sim.offered,
        real.offered,
    );
    Ran { figures, late_mean_s: late.mean_s, line }
}
