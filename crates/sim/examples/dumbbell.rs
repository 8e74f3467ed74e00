//! N flows over one bottleneck: how the engine is driven without the laboratory, and what
//! `cargo xtask bench` times. Arguments: flows, Mbit/s, seconds, protocol, `idle` (flows that
//! never start).
//!
//! `cargo run --release -p narrows-sim --example dumbbell -- 10 100 60`

use narrows_base::{Duration, Rate, Spec, Time};
use narrows_flow::{Preset, Protocol};
use narrows_path::{Limit, LinkConfig, QueueConfig};
use narrows_sim::{FlowResult, FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SourceSpec};
use std::sync::Arc;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, default: u64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (n, mbps, seconds) = (number(0, 10), number(1, 100), number(2, 60));
    let protocol = args.get(3).map_or("sack", String::as_str);
    let idle = args.iter().any(|a| a == "idle");
    let spec = network(n, mbps, seconds, protocol, idle);

    let before = cpu_seconds();
    let result = narrows_sim::run(&spec, &mut |_| true).expect("a legal network");
    let cpu = cpu_seconds();
    let sum = |f: fn(&FlowResult) -> u64| result.groups[0].flows.iter().map(f).sum::<u64>();
    println!(
        "delivered={} sent={} retransmitted={} timeouts={} dropped={} queue_mean={:.2} events={} \
         cpu_s={cpu:.4} spec_cpu_s={before:.4} peak_kib={} digest={:016x}",
        result.delivered_packets,
        sum(|f| f.sent_packets),
        sum(|f| f.retransmissions),
        sum(|f| f.timeouts),
        result.links[0].groups[0].dropped,
        result.links[0].queue_mean,
        result.events,
        peak_kib(),
        result.digest,
    );
}

/// The dumbbell: base round-trip propagation of 24 ms, a queue of one bandwidth-delay product.
fn network(n: u64, mbps: u64, seconds: u64, protocol: &str, idle: bool) -> NetworkSpec {
    let room = (mbps * 24_000).div_ceil(8_000);
    let link = |name: String, config: &Arc<LinkConfig>, metered| LinkSpec {
        name,
        config: config.clone(),
        metered,
    };
    let gigabit = Rate::from_bps(1_000_000_000);
    let gigabit = Arc::new(LinkConfig::plain(gigabit, Duration::from_millis(1)));
    let rate = Rate::from_bps(mbps * 1_000_000);
    let mut there = LinkConfig::plain(rate, Duration::from_millis(10));
    let back = there.clone();
    there.queue = QueueConfig { limit: Limit::Packets(room), aqm: None };
    let mut links = vec![
        link("there".into(), &Arc::new(there), true),
        link("back".into(), &Arc::new(back), false),
    ];
    let mut flows = Vec::new();
    for i in 0..n {
        for side in ["in", "out", "ack-in", "ack-out"] {
            links.push(link(format!("{side}.{i}"), &gigabit, false));
        }
        let first = 2 + 4 * i as u32;
        flows.push(FlowSpec {
            start: if idle { Time::NEVER } else { Time::from_secs_f64(i as f64 / n as f64) },
            stop: Time::NEVER,
            forward: vec![first, 0, first + 1],
            back: vec![first + 2, 1, first + 3],
        });
    }
    let spec = Spec::parse(protocol).expect("a protocol");
    NetworkSpec {
        seed: 1,
        end: Time::from_secs_f64(seconds as f64),
        measure_from: Time::ZERO,
        links,
        groups: vec![GroupSpec {
            name: "main".into(),
            protocol: Protocol::read(&spec, Preset::Ns2, 1000).expect("a listed protocol"),
            source: SourceSpec::bulk(),
            flows,
        }],
        changes: Vec::new(),
        series: None,
    }
}

/// CPU time of this process so far; 0 where the system does not tell.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns: f64 = text.split(' ').next().and_then(|w| w.parse().ok()).unwrap_or(0.0);
    ns * 1e-9
}

/// Most memory that this process ever had, in KiB; 0 where the system does not tell.
fn peak_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
