//! Builds a network in Rust, runs it and reads typed results: two flows share a bottleneck of 2 Mbit/s. `cargo run -p
//! narrows --example topology`.

use narrows::base::{Duration, Rate, Spec, Time};
use narrows::link::{LinkConfig, QueueConfig, QueueLimit};
use narrows::sim::protocol::{FlowProtocol, Preset};
use narrows::sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SeriesSpec, SourceSpec, run};
use std::error::Error;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    // Forward: 2 Mbit/s, 30 ms, a queue of 60 packets. Reverse: the same without a queue limit.
    let back = LinkConfig::plain(Rate::from_bps(2_000_000), Duration::from_millis(30));
    let queue = QueueConfig { limit: QueueLimit::Packets(60), aqm: None };
    let there = LinkConfig { queue, ..back.clone() };
    let link = |name: &str, config| LinkSpec {
        name: name.into(),
        config: Arc::new(config),
        metered: true,
    };
    // Links are named by their index in the list below.
    let flow =
        |start| FlowSpec { start: Time::from_secs_f64(start), ..FlowSpec::new(vec![0], vec![1]) };
    let group = |name: &str, flow| -> Result<GroupSpec, Box<dyn Error>> {
        let protocol = FlowProtocol::read(&Spec::parse(name)?, Preset::Rfc, 1000)?;
        Ok(GroupSpec { name: name.into(), protocol, source: SourceSpec::bulk(), flows: vec![flow] })
    };
    let network = NetworkSpec {
        seed: 1,
        end: Time::from_secs_f64(60.0),
        measure_from: Time::from_secs_f64(10.0),
        links: vec![link("there", there), link("back", back)],
        groups: vec![group("cubic", flow(0.0))?, group("vegas", flow(1.0))?],
        series: Some(SeriesSpec {
            interval: Duration::from_millis(500),
            from: Time::ZERO,
            flows_per_group: 1,
            links: vec![0],
        }),
        ..NetworkSpec::default()
    };
    let result = run(&network, &mut |_simulated_time| true)?;

    for group in &result.groups {
        let bits: u64 = group.flows.iter().map(|f| 8 * f.goodput_bytes).sum();
        let mbps = bits as f64 / result.span_s / 1e6;
        let rtt_ms = group.rtt.quantile(0.5).unwrap_or_default() as f64 / 1e6;
        println!("{}: {mbps:.2} Mbit/s, median RTT {rtt_ms:.0} ms", group.name);
    }
    let bottleneck = &result.links[0];
    println!(
        "{:.0}% used, {:.1} packets wait on average",
        100.0 * bottleneck.served_bits / bottleneck.capacity_bits,
        bottleneck.queue_mean
    );
    // Time series: a table per sampled flow and link, a column per quantity.
    let flow = result.series.iter().find(|t| t.kind == "flow").ok_or("no flow was sampled")?;
    let cwnd = flow.column("cwnd").ok_or("TCP has a window")?;
    let largest = cwnd.iter().copied().fold(0.0, f64::max);
    println!("{}: largest cwnd {largest:.0} segments in {} samples", flow.name, flow.time_s.len());
    Ok(())
}
