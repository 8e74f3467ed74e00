//! `cargo xtask sim-vs-real`: the same transfers in simulation and over real sockets, side by side.
//!
//! Real time needs an idle machine: a run with a late relay is repeated alone. If it is late again, it is reported but
//! not checked. Slow links run beside each other, within a budget.

#[cfg(target_os = "linux")]
mod kernel;
mod page;

use crate::real::ask::MeasureOptions;
use crate::real::ledger::{Figures, LedgerKey};
use crate::real::{Measurement, Ran, measure};
use narrows_base::Duration;
use narrows_net::relay::Lateness;
use narrows_speed::{MeasuredRun, SimVsReal};
use narrows_transport::Preset;

const PAGE: &str = "docs/sim-vs-real.md";
/// In the target folder.
const LEDGER: &str = "sim-vs-real.jsonl";

/// A link: name, specification, its rate, bytes of a packet, seconds.
struct ComparedLink {
    name: &'static str,
    spec: &'static str,
    bps: f64,
    packet: u32,
    seconds: f64,
}

const fn net(
    name: &'static str,
    spec: &'static str,
    bps: f64,
    packet: u32,
    seconds: f64,
) -> ComparedLink {
    ComparedLink { name, spec, bps, packet, seconds }
}

const NETS: [ComparedLink; 6] = [
    net("i", "20Mbit/s,25ms,queue=125kB,loss=1%", 20e6, 1500, 20.0),
    net("ii", "1.5Mbit/s,250ms,queue=93750B,loss=1%", 1.5e6, 1500, 60.0),
    net("iii", "144kbit/s,75ms,queue=2700B,loss=1%", 144e3, 1228, 60.0),
    net("iv", "100Mbit/s,50ms,queue=1250kB,loss=0.1%", 100e6, 1500, 20.0),
    net("clean", "10Mbit/s,20ms,queue=50kB", 10e6, 1500, 20.0),
    net("bursts", "10Mbit/s,20ms,queue=50kB,loss=ge(g=0.13%,h=12.5%)", 10e6, 1500, 20.0),
];

const PROTOCOLS: [&str; 13] = [
    "rrtp",
    "rrtp-lasthop",
    "tear-reliable",
    "rrtp+bbr",
    "rrtp+cubic",
    "rrtp+reno",
    "rrtp+vegas",
    "rrtp+stpd",
    "rrtp+westwood+",
    "tfrc",
    "tfwc",
    "tear",
    "tear-wireless",
];

/// `sim_vs_real`, with the flags of [`MeasureOptions`].
pub fn run(args: &[String]) -> Result<(), String> {
    #[cfg(target_os = "linux")]
    if let Some((flag, rest)) = args.split_first()
        && flag == "--kernel"
    {
        return kernel::run(rest);
    }
    let ask = MeasureOptions::read(args, &NETS.map(|n| n.name), &[])
        .map_err(|e| format!("sim-vs-real: {e}"))?;
    let usual = || PROTOCOLS.map(str::to_string).to_vec();
    let protocols = ask.protocols.clone().unwrap_or_else(usual);
    let mut wanted = Vec::new();
    for net in NETS.iter().filter(|n| ask.link(n.name)) {
        for seed in 1..=ask.runs {
            for protocol in &protocols {
                sim_vs_real(net, protocol, ask.shorter).check()?;
                let seconds = net.seconds * ask.shorter;
                let key =
                    LedgerKey { protocol: protocol.clone(), link: net.name.into(), seed, seconds };
                wanted.push(Measurement { key, rate_bps: net.bps, alone: false });
            }
        }
    }
    let of = |key: &LedgerKey| -> Result<SimVsReal, String> {
        let net = NETS.iter().find(|n| n.name == key.link).ok_or("an unknown link")?;
        Ok(sim_vs_real(net, &key.protocol, ask.shorter))
    };
    let (rows, fault) = measure(
        &ask,
        LEDGER,
        &wanted,
        |key| of(key)?.simulated(key.seed),
        |key, sim| beside(sim, &of(key)?, key.seed),
    )?;
    page::write(&rows, ask.shorter, &|row| {
        let late = Duration::from_secs_f64(row.late_mean_s);
        of(&row.key)?.simulated_late(row.key.seed, late)
    })?;
    eprintln!("wrote {PAGE}");
    fault.map_or(Ok(()), Err)
}

fn sim_vs_real(net: &ComparedLink, protocol: &str, shorter: f64) -> SimVsReal {
    SimVsReal {
        protocol: protocol.into(),
        link: net.spec.into(),
        packet: net.packet,
        seconds: net.seconds * shorter,
        preset: Preset::Rfc,
    }
}

/// Repeats a simulated run with real sockets.
fn beside(sim: &MeasuredRun, sim_vs_real: &SimVsReal, seed: u64) -> Result<Ran, String> {
    let (real, late) = sim_vs_real.real(seed)?;
    Ok(both(sim, &real, late))
}

/// The figures of both, and a line.
fn both(sim: &MeasuredRun, real: &MeasuredRun, late: Lateness) -> Ran {
    let mut figures = Figures::new();
    for (who, seen) in [("sim", sim), ("real", real)] {
        for (name, value) in named(seen) {
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

fn named(s: &MeasuredRun) -> [(&'static str, f64); 4] {
    [
        ("goodput_bps", s.goodput_bps),
        ("rtt_s", s.rtt_s),
        ("wait_s", s.wait_s),
        ("offered", s.offered),
    ]
}
