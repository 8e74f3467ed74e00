//! Linux's TCP and rrtp in Narrows' simulator.

use crate::transfer::{Outcome, Test};
use narrows_base::Duration;
use narrows_lab::compare::Question;
use narrows_scenario::Plan;
use std::error::Error;
use std::path::Path;

/// Protocols that the table has beside the stacks.
pub const PROTOCOLS: [&str; 4] = ["cubic", "bbr", "bbr3", "rrtp"];

/// One transfer. The time of the handshake counts.
///
/// # Errors
/// An invalid link, or an error of the simulator.
pub fn run(protocol: &str, test: &Test) -> Result<Outcome, Box<dyn Error>> {
    let seconds = Duration::from_nanos(u64::try_from(test.limit.as_nanos())?);
    let question = Question {
        link: test.link.clone(),
        protocols: protocol.into(),
        duration: seconds,
        seeds: 1,
        seed: test.seed,
        packet: 1500,
        ..Question::default()
    };
    let (scenario, _) = question.scenario(Path::new(""))?;
    let plan = Plan::new(scenario)?;
    let run = narrows_sim::run(&plan.network(0, test.seed, false), &mut |_| true)?;
    let flow = &run.groups[0].flows[0];
    let link = &run.links[plan.bottleneck(0)];
    let here = link.groups.first().copied().unwrap_or_default();
    let wanted = test.bytes.min(flow.goodput_bytes);
    let took = test.limit.as_secs_f64() * wanted as f64 / flow.goodput_bytes.max(1) as f64;
    let rtt = run.groups[0].rtt.mean().unwrap_or_default();
    let packet_bits = 8.0 * f64::from(question.packet);
    Ok(Outcome {
        goodput_bps: wanted as f64 * 8.0 / took,
        is_done: flow.goodput_bytes >= test.bytes,
        rtt: std::time::Duration::from_nanos(rtt as u64),
        queueing: link.queue_mean * packet_bits * run.span_s / link.capacity_bits.max(1.0),
        dropped: here.dropped,
        lost: here.dropped,
        sent: here.offered,
    })
}
