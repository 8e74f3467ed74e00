//! TFWC through the simulator: S1's validation (section 6.1, appendix C) and a first look at its
//! fairness (section 6.2).

use narrows_base::{Duration, Luck, Rate, Spec, Time};
use narrows_flow::{Preset, Protocol};
use narrows_path::{Limit, LinkConfig, LossSpec, QueueConfig};
use narrows_sim::{
    FlowSpec, GroupSpec, LinkSpec, NetworkSpec, RunResult, SeriesSpec, SourceSpec, Table, run,
};

fn link(name: &str, mbps: f64, delay: Duration, room: u64, loss: &str) -> LinkSpec {
    let mut config = LinkConfig::plain(Rate::from_bps_f64(mbps * 1e6), delay);
    config.queue = QueueConfig { limit: Limit::Packets(room), aqm: None };
    config.loss = LossSpec::parse_all(loss).unwrap();
    LinkSpec { name: name.into(), config: config.into(), metered: true }
}
fn ms(x: f64) -> Duration {
    Duration::from_secs_f64(x * 1e-3)
}
fn group(name: &str, protocol: &str, flows: Vec<FlowSpec>) -> GroupSpec {
    let spec = Spec::parse(protocol).unwrap();
    GroupSpec {
        name: name.into(),
        protocol: Protocol::read(&spec, Preset::Ns2, 1000).unwrap(),
        source: SourceSpec::bulk(),
        flows,
    }
}
fn flow(start: f64, forward: &[u32], back: &[u32]) -> FlowSpec {
    FlowSpec {
        start: Time::from_secs_f64(start),
        stop: Time::NEVER,
        forward: forward.to_vec(),
        back: back.to_vec(),
    }
}
fn go(spec: &NetworkSpec) -> RunResult {
    run(spec, &mut |_| true).unwrap()
}

/// S1 figure 6.1: one flow, a path on which nothing is lost but what the loss process takes; round
/// trips of 100 ms. From 20 s to the end, as series.
fn validation(protocol: &str, loss: &str, seconds: f64) -> Table {
    let spec = NetworkSpec {
        seed: 1,
        end: Time::from_secs_f64(seconds),
        measure_from: Time::ZERO,
        links: vec![
            link("there", 1000.0, ms(50.0), 1_000_000, loss),
            link("back", 1000.0, ms(50.0), 1_000_000, "none"),
        ],
        groups: vec![group("main", protocol, vec![flow(0.0, &[0], &[1])])],
        changes: Vec::new(),
        series: Some(SeriesSpec {
            interval: ms(37.0),
            from: Time::from_secs_f64(20.0),
            links: vec![0],
            flows_per_group: 1,
        }),
    };
    let result = go(&spec);
    result.series.into_iter().find(|t| t.kind == "flow").unwrap()
}
fn tail<'a>(table: &'a Table, column: &str) -> &'a [f64] {
    let all = table.column(column).unwrap();
    &all[all.len() / 2..]
}
fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}
fn range(x: &[f64]) -> (f64, f64) {
    (x.iter().copied().fold(f64::MAX, f64::min), x.iter().copied().fold(f64::MIN, f64::max))
}

#[test]
fn explore_ali() {
    for loss in [
        "periodic(100)",
        "periodic(20)",
        "periodic(10)",
        "periodic(2)",
        "periodic(100)+periodic(period=100,offset=1)",
        "periodic(100,place=random)",
        "periodic(20,place=random)",
        "periodic(10,place=random)",
        "1%",
        "5%",
        "10%",
    ] {
        let t = validation("tfwc", loss, 600.0);
        println!(
            "{loss}: ali {:.2} {:?} W {:.3} {:?} cwnd {:?} rate {:.2} thr {:.0}",
            mean(tail(&t, "loss_interval")),
            range(tail(&t, "loss_interval")),
            mean(tail(&t, "equation_window")),
            range(tail(&t, "equation_window")),
            range(tail(&t, "cwnd")),
            mean(tail(&t, "rate_mode")),
            mean(tail(&t, "throughput_bps")),
        );
    }
}

/// n TCP and n others on S1's DSL line, half as many TCP flows the other way; access links of 0.5
/// to 2 ms. Theta: TCP's share of the bottleneck (S1 equation 6.1).
fn theta(
    protocol: &str,
    n: u32,
    mbps: f64,
    room: u64,
    seed: u64,
    seconds: f64,
) -> (f64, RunResult) {
    let mut dice = Luck::seed(seed).named("s1").stream();
    let mut links = vec![
        link("there", mbps, ms(10.0), room, "none"),
        link("back", mbps, ms(10.0), room, "none"),
    ];
    let mut flows = |n: u32, bottleneck: u32, back: u32| {
        (0..n)
            .map(|_| {
                let access = links.len() as u32;
                links.push(link(
                    &format!("access.{access}"),
                    15.0,
                    ms(dice.uniform(0.5, 2.0)),
                    1000,
                    "none",
                ));
                let start = dice.uniform(1.0, 5.0);
                flow(start, &[access, bottleneck], &[back])
            })
            .collect::<Vec<_>>()
    };
    let (tcp, other, reverse) = (flows(n, 0, 1), flows(n, 0, 1), flows(n.div_ceil(2), 1, 0));
    let spec = NetworkSpec {
        seed,
        end: Time::from_secs_f64(seconds),
        measure_from: Time::from_secs_f64(20.0),
        links,
        groups: vec![
            group("tcp", "sack", tcp),
            group("other", protocol, other),
            group("reverse", "sack", reverse),
        ],
        changes: Vec::new(),
        series: None,
    };
    let result = go(&spec);
    let bits = |g: usize| result.links[0].groups[g].served_bits;
    (bits(0) / (bits(0) + bits(1)), result)
}

#[test]
fn explore_theta() {
    for protocol in [
        "sack",
        "tfwc",
        "tfwc(rate-mode=off)",
        "tfwc(rate-style=later,rate-threshold=2.5,history=ewma16,rounding=down,backoff=2srtt,rtt-gain=0.1)",
    ] {
        for (n, mbps, room) in [
            (1, 1.0, 5),
            (4, 1.0, 5),
            (1, 0.2, 3),
            (4, 0.2, 3),
            (1, 5.0, 14),
            (4, 5.0, 14),
            (4, 20.0, 55),
            (1, 20.0, 55),
        ] {
            let all: Vec<f64> =
                (1..=5).map(|s| theta(protocol, n, mbps, room, s, 200.0).0).collect();
            let (_, r) = theta(protocol, n, mbps, room, 1, 200.0);
            println!(
                "{protocol} {n} {mbps} {room}: {:.3} {all:.3?} loss {:?} sent {:?}",
                mean(&all),
                r.links[0]
                    .groups
                    .iter()
                    .map(|g| (1000.0 * g.dropped as f64 / g.offered as f64).round() / 1000.0)
                    .collect::<Vec<_>>(),
                r.groups
                    .iter()
                    .map(|g| g.flows.iter().map(|f| f.sent_packets).collect::<Vec<_>>())
                    .collect::<Vec<_>>()
            );
        }
    }
}
