//! N flows over one bottleneck: drives the engine without the lab crate. Arguments: flows, Mbit/s, seconds,
//! protocol, `idle` (flows that never start). `tools/ns2/dumbbell.tcl` is the same in ns-2.
//!
//! `cargo run --release -p narrows-sim --example dumbbell -- 10 100 60`

use narrows_base::{Spec, Time};
use narrows_sim::FlowResult;
use narrows_sim::protocol::{FlowProtocol, Preset};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number =
        |i: usize, default: u64| args.get(i).and_then(|a| a.parse().ok()).unwrap_or(default);
    let n = number(0, 10);
    let mbps = number(1, 100);
    let seconds = number(2, 60);
    let protocol = args.get(3).map_or("reno", String::as_str);
    let idle = args.iter().any(|a| a == "idle");
    let protocol = Spec::parse(protocol).expect("a protocol");
    let protocol = FlowProtocol::read(&protocol, Preset::Ns2, 1000).expect("a listed protocol");
    let mut spec = narrows_sim::dumbbell(n as u32, mbps, seconds, protocol);
    if idle {
        spec.groups[0].flows.iter_mut().for_each(|f| f.start = Time::NEVER);
    }

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

/// CPU time of this process so far in seconds; 0 if the system does not report it.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let ns: f64 = text.split(' ').next().and_then(|w| w.parse().ok()).unwrap_or(0.0);
    ns * 1e-9
}

/// Peak memory of this process in KiB; 0 if the system does not report it.
fn peak_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
