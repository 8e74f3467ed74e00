//! TEAR in the simulator.

use narrows_base::{Duration, Rate, Spec, Time};
use narrows_flow::{Preset, Protocol};
use narrows_path::{Limit, LinkConfig, LossSpec, QueueConfig};
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, RunResult, SourceSpec, run};

/// A bottleneck there and back: Mbit/s, one-way ms, packets of buffer, loss there.
#[derive(Clone, Copy)]
struct Net {
    mbps: f64,
    ms: u64,
    room: u64,
    loss: &'static str,
    jitter_ms: u64,
}

fn link(name: &str, net: &Net, loss: &str, jitter_ms: u64) -> LinkSpec {
    let rate = Rate::from_bps_f64(net.mbps * 1e6);
    let mut config = LinkConfig::plain(rate, Duration::from_millis(net.ms));
    config.queue = QueueConfig { limit: Limit::Packets(net.room), aqm: None };
    config.loss = LossSpec::parse_all(loss).unwrap();
    config.impairments.jitter = Duration::from_millis(jitter_ms);
    LinkSpec { name: name.into(), config: config.into(), metered: true }
}

/// Groups (protocol, flows) side by side, starts 100 ms apart; measured after 30 s.
fn go(net: Net, groups: &[(&str, usize)], seconds: f64, seed: u64) -> RunResult {
    run(&spec(net, groups, seconds, seed), &mut |_| true).unwrap()
}

fn spec(net: Net, groups: &[(&str, usize)], seconds: f64, seed: u64) -> NetworkSpec {
    let mut started = 0;
    let groups = groups
        .iter()
        .enumerate()
        .map(|(i, (spec, n))| GroupSpec {
            name: format!("g{i}"),
            protocol: Protocol::read(&Spec::parse(spec).unwrap(), Preset::Rfc, 1000).unwrap(),
            source: SourceSpec::read(&Spec::parse("bulk").unwrap()).unwrap(),
            flows: (0..*n)
                .map(|_| {
                    started += 1;
                    FlowSpec {
                        start: Time::from_secs_f64(0.1 * f64::from(started)),
                        stop: Time::NEVER,
                        forward: vec![0],
                        back: vec![1],
                    }
                })
                .collect(),
        })
        .collect();
    NetworkSpec {
        seed,
        end: Time::from_secs_f64(seconds),
        measure_from: Time::from_secs_f64(30.0),
        links: vec![
            link("there", &net, net.loss, net.jitter_ms),
            link("back", &net, "none", net.jitter_ms),
        ],
        groups,
        changes: Vec::new(),
        series: None,
    }
}

/// Goodput of a group in kbit/s, all flows, and the mean coefficient of variation over 1 s.
fn group(r: &RunResult, g: usize) -> (f64, f64) {
    let flows = &r.groups[g].flows;
    let bits = flows.iter().map(|f| f.goodput_bytes as f64 * 8.0).sum::<f64>();
    let cov = flows.iter().filter_map(|f| f.bins_1s).map(|(m, s)| s / m).sum::<f64>();
    (bits / r.span_s / 1e3, cov / flows.len() as f64)
}

#[test]
#[ignore]
fn explore() {
    let show = |name: &str, net: Net, groups: &[(&str, usize)]| {
        let r = go(net, groups, 330.0, 1);
        print!("{name:42}");
        for (g, (p, n)) in groups.iter().enumerate() {
            let (kbps, cov) = group(&r, g);
            let l = &r.links[0].groups[g];
            print!(
                " | {n} {p}: {kbps:.0} kbit/s CoV {cov:.2} drop {:.2}% rtt {:.0}ms",
                100.0 * l.dropped as f64 / l.offered as f64,
                r.groups[g].rtt.mean().unwrap_or(0.0) / 1e6
            );
        }
        println!(
            " | used {:.3} queue {:.1}",
            r.links[0].served_bits / r.links[0].capacity_bits,
            r.links[0].queue_mean
        );
    };
    let net = |mbps, ms, room, loss| Net { mbps, ms, room, loss, jitter_ms: 0 };
    let protocols: Vec<String> = std::env::var("P")
        .map_or(vec!["tear".into(), "tear-wireless".into(), "newreno".into()], |p| {
            p.split(';').map(String::from).collect()
        });
    for p in &protocols {
        let p = p.as_str();
        show("alone 1.5M 30ms 1BDP", net(1.5, 30, 12, "none"), &[(p, 1)]);
        show("alone 10M 10ms 25", net(10.0, 10, 25, "none"), &[(p, 1)]);
        show("alone 10M 10ms 8", net(10.0, 10, 8, "none"), &[(p, 1)]);
        show("alone 10M 10ms 200", net(10.0, 10, 200, "none"), &[(p, 1)]);
        show("alone 10M 10ms 25 1%", net(10.0, 10, 25, "1%"), &[(p, 1)]);
        show("alone 10M 10ms 25 10%", net(10.0, 10, 25, "10%"), &[(p, 1)]);
        show("alone 1.5M 10ms 10", net(1.5, 10, 10, "none"), &[(p, 1)]);
        show("alone 144k 250ms 20", net(0.144, 250, 20, "none"), &[(p, 1)]);
        show("alone 144k 250ms 20 3%", net(0.144, 250, 20, "3%"), &[(p, 1)]);
        show(
            "144k 250ms jitter 150",
            Net { jitter_ms: 150, ..net(0.144, 250, 20, "none") },
            &[(p, 1)],
        );
        show("10M 10ms jitter 10", Net { jitter_ms: 10, ..net(10.0, 10, 25, "none") }, &[(p, 1)]);
        show("S4-F4.1 100ms 5%", net(10.0, 100, 500, "2.5%"), &[(p, 1)]);
        show("1+1 sack 1.5M 30ms 12", net(1.5, 30, 12, "none"), &[(p, 1), ("sack", 1)]);
        show("1+1 newreno 10M 20ms 50", net(10.0, 20, 50, "none"), &[(p, 1), ("newreno", 1)]);
        show("4+4 sack 10M 20ms 50", net(10.0, 20, 50, "none"), &[(p, 4), ("sack", 4)]);
        show("4 alone 10M 20ms 50", net(10.0, 20, 50, "none"), &[(p, 4)]);
        show("1+4 sack 10M 20ms 50", net(10.0, 20, 50, "none"), &[(p, 1), ("sack", 4)]);
    }
}

#[test]
#[ignore]
fn trace() {
    let p = std::env::var("P").unwrap_or("tear".into());
    let args: Vec<f64> = std::env::var("NET")
        .unwrap_or("10,10,25".into())
        .split(',')
        .map(|x| x.parse().unwrap())
        .collect();
    let net =
        Net { mbps: args[0], ms: args[1] as u64, room: args[2] as u64, loss: "none", jitter_ms: 0 };
    let groups: Vec<(&str, usize)> = p.split(';').map(|p| (p, 1)).collect();
    let end = args.get(3).copied().unwrap_or(40.0);
    let step = args.get(4).copied().unwrap_or(100.0);
    let mut spec = spec(net, &groups, end, 1);
    spec.series = Some(narrows_sim::SeriesSpec {
        interval: Duration::from_millis(step as u64),
        from: Time::from_secs_f64(args.get(5).copied().unwrap_or(0.0)),
        links: vec![0],
        flows_per_group: 1,
    });
    let r = run(&spec, &mut |_| true).unwrap();
    let t = &r.series[0];
    let l = r.series.iter().find(|t| t.name == "there").unwrap();
    let col = |n: &str, i: usize| t.column(n).map_or(f64::NAN, |c| c[i]);
    for i in 0..t.time_s.len() {
        println!(
            "{:6.2} rate {:6.0} got {:6.0} rtt {:5.1} cwnd {:6.2} ssth {:5.1} st {} d {:5.1} r1 {:5.1} r2 {:5.1} down {} | q {} drops {}",
            t.time_s[i],
            col("rate_bps", i) / 1e3,
            col("throughput_bps", i) / 1e3,
            col("rtt_s", i) * 1e3,
            col("tear_cwnd", i),
            col("tear_ssthresh", i),
            col("tear_state", i),
            col("tear_delay_s", i) * 1e3,
            col("tear_r1_s", i) * 1e3,
            col("tear_r2_s", i) * 1e3,
            col("tear_down", i),
            l.column("queue").unwrap()[i],
            l.column("drops").unwrap()[i]
        );
    }
}
