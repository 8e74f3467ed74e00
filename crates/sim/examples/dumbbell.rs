//! N flows over one bottleneck, as a program of thirty lines: how the engine is driven without
//! the laboratory. `cargo run --release -p narrows-sim --example dumbbell -- 10 100 60`

use narrows_base::{Duration, Rate, Spec, Time};
use narrows_flow::{Preset, Protocol};
use narrows_path::{Limit, LinkConfig, QueueConfig};
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SourceSpec};

fn main() {
    let mut args = std::env::args().skip(1);
    let mut next = |default: u64| args.next().and_then(|a| a.parse().ok()).unwrap_or(default);
    let (n, mbps, seconds) = (next(10), next(100), next(60));
    let name = args.next().unwrap_or_else(|| "sack".into());
    let room = (mbps * 24_000).div_ceil(8_000);
    let link = |name: String, config: LinkConfig, metered| LinkSpec { name, config, metered };
    let gigabit = LinkConfig::plain(Rate::from_bps(1_000_000_000), Duration::from_millis(1));
    let rate = Rate::from_bps(mbps * 1_000_000);
    let mut there = LinkConfig::plain(rate, Duration::from_millis(10));
    let back = there.clone();
    there.queue = QueueConfig { limit: Limit::Packets(room), aqm: None };
    let mut links = vec![link("there".into(), there, true), link("back".into(), back, false)];
    let mut flows = Vec::new();
    for i in 0..n {
        for side in ["in", "out", "ack-in", "ack-out"] {
            links.push(link(format!("{side}.{i}"), gigabit.clone(), false));
        }
        let first = 2 + 4 * i as u32;
        flows.push(FlowSpec {
            start: Time::from_secs_f64(i as f64 / n as f64),
            stop: Time::NEVER,
            forward: vec![first, 0, first + 1],
            back: vec![first + 2, 1, first + 3],
        });
    }
    let protocol = Protocol::read(&Spec::parse(&name).expect("a protocol"), Preset::Ns2, 1000);
    let spec = NetworkSpec {
        seed: 1,
        end: Time::from_secs_f64(seconds as f64),
        measure_from: Time::ZERO,
        links,
        groups: vec![GroupSpec {
            name: "main".into(),
            protocol: protocol.expect("a listed protocol"),
            source: SourceSpec::bulk(),
            flows,
        }],
        changes: Vec::new(),
        series: None,
    };
    let started = std::time::Instant::now();
    let result = narrows_sim::run(&spec, &mut |_| true).expect("a legal network");
    let took = started.elapsed().as_secs_f64();
    let flows = &result.groups[0].flows;
    let sum = |f: fn(&narrows_sim::FlowResult) -> u64| flows.iter().map(f).sum::<u64>();
    println!(
        "delivered {} sent {} retransmitted {} timeouts {} dropped {} queue {:.2} events/packet {:.2} \
         {:.0} packets/s digest {:016x}",
        result.delivered_packets,
        sum(|f| f.sent_packets),
        sum(|f| f.retransmissions),
        sum(|f| f.timeouts),
        result.links[0].groups[0].dropped,
        result.links[0].queue_mean,
        result.events as f64 / result.delivered_packets as f64,
        result.delivered_packets as f64 / took,
        result.digest,
    );
}
