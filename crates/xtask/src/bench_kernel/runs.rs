//! Flows alone on an emulated link, for real and in simulation.

use super::{KernelBenchOptions, LoadedController};
use crate::all_cores;
use narrows_base::{Duration, Spec};
use narrows_lab::Question;
use narrows_scenario::Plan;
use narrows_sim::{NetworkSpec, RunResult};
use narrows_speed::KernelTcp;
use narrows_transport::Preset;
use std::fmt::Write as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// Bytes of a full IP packet.
const PACKET: u32 = 1500;
/// Of these, payload: 20 bytes of IP, 20 of TCP, 12 of timestamps are not.
const PAYLOAD: f64 = 1448.0 / 1500.0;
/// Seeds that the simulation is run with; the first is also the emulated link's.
const SEEDS: u64 = 8;

/// The links of the table.
const LINKS: [&str; 3] = [
    "12Mbit/s,20ms,queue=60kB",
    "5Mbit/s,50ms,queue=62500B,loss=1%",
    "20Mbit/s,10ms,queue=50kB,loss=0.1%",
];

/// TCP's list as far as protocols differ in their controllers, and rrtp's controller, which is simulated over rrtp.
const CONTROLLERS: [&str; 14] = [
    "reno",
    "cubic",
    "vegas",
    "veno",
    "westwood",
    "westwood+",
    "jersey",
    "stpd",
    "bbr",
    "bbr3",
    "illinois",
    "copa",
    "ledbat++",
    "rrtp",
];

/// Protocols that recover as in their papers, unlike in the kernel: simulated with the kernel's recovery.
const RECOVERY: [&str; 2] = ["westwood", "jersey"];

/// Means over the measured span.
#[derive(Clone, Copy)]
struct KernelRunFigures {
    goodput_bps: f64,
    rtt_s: f64,
    wait_s: f64,
    late_p99_s: f64,
}

fn plan(protocol: &str, link: &str, seconds: f64) -> Result<Plan, String> {
    let question = Question {
        link: link.into(),
        protocols: protocol.into(),
        duration: Duration::from_secs_f64(seconds),
        packet: PACKET,
        seeds: 1,
        preset: Preset::Linux,
        ..Question::default()
    };
    let (scenario, _) = question.scenario(Path::new("")).map_err(|e| e.to_string())?;
    Plan::new(scenario).map_err(|e| e.to_string())
}

fn figures(result: &RunResult, late_p99_s: f64) -> Result<KernelRunFigures, String> {
    let (group, link) =
        (result.groups.first().zip(result.links.first())).ok_or("nothing was counted")?;
    let bytes: u64 = group.flows.iter().map(|f| f.goodput_bytes).sum();
    let served = link.groups.first().map_or(0, |g| g.served) as f64;
    Ok(KernelRunFigures {
        goodput_bps: bytes as f64 * 8.0 / result.span_s,
        rtt_s: group.rtt.mean().unwrap_or(f64::NAN) * 1e-9,
        wait_s: link.queue_mean * result.span_s / served.max(1.0),
        late_p99_s,
    })
}

fn real(network: &NetworkSpec, congestion: &str) -> Result<KernelRunFigures, String> {
    let congestion = vec![congestion.to_string(); network.groups.len()];
    let run = KernelTcp { network, link: [0, 1], congestion: &congestion };
    let (result, late) = run.run(&AtomicBool::new(false))?.ok_or("stopped")?;
    figures(&result, late.p99_s)
}

/// The controller behind a protocol's name.
fn controller(protocol: &str) -> Result<String, String> {
    let spec = Spec::parse(protocol).map_err(|e| e.to_string())?;
    let entry = narrows_transport::protocol::find(&spec.name).map_err(|e| e.to_string())?;
    Ok(protocol.replacen(&spec.name, entry.controller, 1))
}

/// Inputs of one cell of a table.
struct KernelCell {
    protocol: String,
    link: String,
    /// Under Narrows' controller; otherwise under the kernel's own of this name.
    kernels: Option<&'static str>,
}

fn measure(cell: &KernelCell, seconds: f64) -> Result<(KernelRunFigures, f64), String> {
    let simulated_as = match RECOVERY.iter().find(|name| **name == cell.protocol) {
        Some(name) => format!("{name}(recovery=rack)"),
        None => cell.protocol.clone(),
    };
    let plan = plan(&simulated_as, &cell.link, seconds)?;
    let mut simulated = 0.0;
    for seed in 1..=SEEDS {
        let result = narrows_sim::run(&plan.network(0, seed, false), &mut |_| true);
        simulated += figures(&result.map_err(|e| e.to_string())?, 0.0)?.goodput_bps;
    }
    let network = plan.network(0, 1, false);
    let seen = match cell.kernels {
        Some(name) => real(&network, name)?,
        None => {
            let loaded = LoadedController::load(&controller(&cell.protocol)?)?;
            real(&network, &loaded.name)?
        }
    };
    Ok((seen, simulated / SEEDS as f64))
}

/// The link's share that payload can have.
fn share(figures: &KernelRunFigures, rate_bps: f64, loss: f64) -> f64 {
    figures.goodput_bps / (rate_bps * PAYLOAD * (1.0 - loss))
}

/// Checks of the goals for single links.
pub fn goals(ask: &KernelBenchOptions) -> Result<String, String> {
    let cell = |protocol: &str, link: &str, kernels| KernelCell {
        protocol: protocol.into(),
        link: link.into(),
        kernels,
    };
    let lossy = "20Mbit/s,25ms,queue=125kB,loss=1%";
    let cells = [
        (cell("rrtp", lossy, None), 20e6, 0.01),
        (cell("cubic", lossy, Some("cubic")), 20e6, 0.01),
        (cell("stpd", "12Mbit/s,20ms,queue=60kB", None), 12e6, 0.0),
        (cell("stpd", "12Mbit/s,20ms,queue=60kB,loss=1%", None), 12e6, 0.01),
    ];
    let mut text = "| link | congestion control | of the link | in simulation | mean RTT | mean time in the queue | emulator late (p99) |\n\
                    |---|---|---|---|---|---|---|\n"
        .to_string();
    for (cell, rate, loss) in cells {
        let (seen, simulated) = measure(&cell, ask.seconds)?;
        eprintln!("{} on {}: {:.2} Mbit/s", cell.protocol, cell.link, seen.goodput_bps * 1e-6);
        let own = cell.kernels.map_or("", |_| " (the kernel's own)");
        let _ = writeln!(
            text,
            "| {} | {}{own} | {:.3} | {:.3} | {:.1} ms | {:.1} ms | {:.2} ms |",
            cell.link,
            cell.protocol,
            share(&seen, rate, loss),
            share(&KernelRunFigures { goodput_bps: simulated, ..seen }, rate, loss),
            seen.rtt_s * 1e3,
            seen.wait_s * 1e3,
            seen.late_p99_s * 1e3,
        );
    }
    Ok(format!(
        "One flow for {} s. *Of the link* is goodput over what TCP's payload can have of the rate, losses taken off.\n\n{text}",
        ask.seconds
    ))
}

/// Every controller beside its simulation.
pub fn table(ask: &KernelBenchOptions) -> Result<String, String> {
    let usual = || CONTROLLERS.map(String::from).to_vec();
    let protocols = ask.controllers.clone().unwrap_or_else(usual);
    let cells: Vec<KernelCell> = (protocols.iter())
        .flat_map(|p| {
            LINKS.map(|link| KernelCell { protocol: p.clone(), link: link.into(), kernels: None })
        })
        .collect();
    let done = all_cores::map(&cells, ask.at_once, |cell| {
        let wrong = |e| format!("{}: {e}", cell.protocol);
        let (seen, simulated) = measure(cell, ask.seconds).map_err(wrong)?;
        let (real, simulated_mbps) = (seen.goodput_bps * 1e-6, simulated * 1e-6);
        let (protocol, link) = (&cell.protocol, &cell.link);
        eprintln!("{protocol} on {link}: {real:.2} Mbit/s, simulated {simulated_mbps:.2}");
        Ok((seen, simulated))
    })?;
    let mut text = "| controller |".to_string();
    LINKS.iter().for_each(|link| {
        let _ = write!(text, " {link}: real | simulated | ratio |");
    });
    text += "\n|---|";
    text += &"---|".repeat(3 * LINKS.len());
    text.push('\n');
    let mut near = 0;
    for (protocol, row) in protocols.iter().zip(done.chunks(LINKS.len())) {
        let _ = write!(text, "| {protocol} |");
        for (seen, simulated) in row {
            let ratio = seen.goodput_bps / simulated;
            near += u32::from((ratio - 1.0).abs() <= 0.1);
            let _ = write!(
                text,
                " {:.2} | {:.2} | {ratio:.2} |",
                seen.goodput_bps * 1e-6,
                simulated * 1e-6
            );
        }
        text.push('\n');
    }
    Ok(format!(
        "Goodput in Mbit/s, one flow alone for {} s, handshake included; the simulation (preset `linux`, recovery by RACK-TLP) is \
         the mean of {SEEDS} seeds. {near} of {} are within 10%.\n\n{text}",
        ask.seconds,
        cells.len()
    ))
}

/// The delay of records before their answers.
pub fn delay(ask: &KernelBenchOptions) -> Result<String, String> {
    let network =
        plan("rrtp", "20Mbit/s,25ms,queue=125kB,loss=1%", ask.seconds)?.network(0, 1, false);
    let loaded = LoadedController::load("rrtp")?;
    real(&network, &loaded.name)?;
    let s = loaded.agent.status().statistics;
    Ok(format!(
        "From record to answer, `rrtp` at 20 Mbit/s for {} s, {} records: p50 {:.3} ms, p99 {:.3} ms, at most {:.1} ms.\n",
        ask.seconds,
        s.records(),
        s.delay_s(0.5) * 1e3,
        s.delay_s(0.99) * 1e3,
        s.max_s() * 1e3
    ))
}
