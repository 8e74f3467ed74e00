//! Properties of the engine: repeatable, unchanged by observation, and right in closed form.

use narrows_base::{Duration, Rate, Spec, Time};
use narrows_link::{LinkChange, LinkConfig, LossSpec, QueueConfig, QueueLimit};
use narrows_sim::protocol::{Family, every};
use narrows_sim::protocol::{FlowProtocol, Preset};
use narrows_sim::{
    FlowSpec, GroupSpec, LinkSpec, NetworkSpec, RunResult, SeriesSpec, SimError, SourceSpec, run,
};

fn protocol(text: &str) -> FlowProtocol {
    FlowProtocol::read(&Spec::parse(text).unwrap(), Preset::Rfc, 1000).unwrap()
}
fn link(name: &str, mbps: f64, ms: u64, room: u64, loss: &str) -> LinkSpec {
    let rate = Rate::from_bps_f64(mbps * 1e6);
    let mut config = LinkConfig::plain(rate, Duration::from_millis(ms));
    config.queue = QueueConfig { limit: QueueLimit::Packets(room), aqm: None };
    config.loss = LossSpec::parse_all(loss).unwrap();
    LinkSpec { name: name.into(), config: config.into(), metered: true }
}
fn group(
    name: &str,
    spec: &str,
    source: &str,
    starts: &[f64],
    forward: &[u32],
    back: &[u32],
) -> GroupSpec {
    GroupSpec {
        name: name.into(),
        protocol: protocol(spec),
        source: SourceSpec::read(&Spec::parse(source).unwrap()).unwrap(),
        flows: starts
            .iter()
            .map(|s| FlowSpec {
                start: Time::from_secs_f64(*s),
                ..FlowSpec::new(forward.to_vec(), back.to_vec())
            })
            .collect(),
    }
}
/// One bottleneck in each direction.
fn network(groups: Vec<GroupSpec>, loss: &str, seconds: f64) -> NetworkSpec {
    NetworkSpec {
        seed: 7,
        end: Time::from_secs_f64(seconds),
        links: vec![link("there", 2.0, 30, 20, loss), link("back", 2.0, 30, 20, "none")],
        groups,
        ..NetworkSpec::default()
    }
}
fn go(spec: &NetworkSpec) -> RunResult {
    run(spec, &mut |_| true).unwrap()
}
fn config(link: &mut LinkSpec) -> &mut LinkConfig {
    std::sync::Arc::make_mut(&mut link.config)
}
fn series() -> SeriesSpec {
    SeriesSpec {
        interval: Duration::from_millis(50),
        from: Time::ZERO,
        links: vec![0, 1],
        flows_per_group: 10,
    }
}

#[test]
fn every_protocol_repeats_itself_to_the_digest() {
    for p in every() {
        let spec =
            network(vec![group("main", p.name, "bulk", &[0.0, 0.5], &[0], &[1])], "1%", 20.0);
        let a = go(&spec);
        let b = go(&spec);
        assert_eq!((a.digest, a.events), (b.digest, b.events), "{}", p.name);
        let other = go(&NetworkSpec { seed: 8, ..spec });
        assert_ne!(a.digest, other.digest, "{}: another seed is another run", p.name);
    }
}

#[test]
fn observer_does_not_change_a_run() {
    for p in every() {
        let mut spec = network(vec![group("main", p.name, "bulk", &[0.0], &[0], &[1])], "1%", 20.0);
        let plain = go(&spec);
        spec.series = Some(series());
        let watched = go(&spec);
        assert_eq!(plain.digest, watched.digest, "{}", p.name);
        let flows = |r: &RunResult| format!("{:?} {:?}", r.groups[0].flows, r.links);
        assert_eq!(flows(&plain), flows(&watched), "{}", p.name);
    }
}

#[test]
fn another_flow_changes_no_flows_draws() {
    // With so little traffic that flows never share a queue, one flow's run must not change at all.
    let quiet = |n: usize| {
        let mut groups =
            vec![group("main", "reno", "cbr(rate=20kbit/s,size=100B)", &[0.0], &[0], &[1])];
        if n == 2 {
            groups.push(group(
                "other",
                "reno",
                "cbr(rate=20kbit/s,size=100B)",
                &[0.0171],
                &[0],
                &[1],
            ));
        }
        let r = go(&network(groups, "5%", 60.0));
        r.groups[0].flows[0].retransmissions
    };
    assert!(quiet(1) > 10);
    assert_eq!(quiet(1), quiet(2));
}

#[test]
fn series_add_up_to_the_totals() {
    let mut spec =
        network(vec![group("main", "reno", "bulk", &[0.0, 1.0], &[0], &[1])], "1%", 30.0);
    spec.series = Some(series());
    let r = go(&spec);
    let table = r.series.iter().find(|t| t.name == "there").unwrap();
    let sum = |c: &str| table.column(c).unwrap().iter().sum::<f64>();
    assert_eq!(sum("drops"), r.links[0].groups[0].dropped as f64);
    assert_eq!(sum("losses"), r.links[0].groups[0].lost as f64);
    let bits = sum("throughput_bps") * 0.05;
    assert!((bits / r.links[0].served_bits - 1.0).abs() < 0.001, "{bits}");
    let highest = table.column("queue_max").unwrap().iter().copied().fold(0.0, f64::max);
    assert_eq!(highest, r.links[0].queue_max as f64);
    assert!(highest <= 20.0);
    let samples = table.column("queue").unwrap();
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    assert!((mean - r.links[0].queue_mean).abs() < 1.0, "{mean} {}", r.links[0].queue_mean);
    let l = &r.links[0].groups[0];
    assert_eq!(l.offered, l.dropped + l.served + waiting_at_end(&r), "no packet from nowhere");
}

/// Bins of a tenth of a second do not change other measurements: these numbers are those of the engine without them.
/// They were measured again when Reno's reduction changed, when reports of media were sent at other times (they share
/// the return path with Reno's ACKs), and when limited transmit left FlightSize.
#[test]
fn measuring_over_time_changes_neither_the_run_nor_the_counts() {
    let groups = vec![
        group("main", "reno-1990", "bulk", &[0.0, 0.5], &[0], &[1]),
        group("media", "fixed(rate=300kbit/s)", "bulk", &[1.0], &[0], &[1]),
    ];
    let r = go(&network(groups, "1%", 20.5));
    let f = &r.groups[0].flows[1];
    let (mean, deviation) = f.bins_1s.unwrap();
    assert_eq!(r.digest, 0x6fc50a0a545da595);
    assert_eq!((f.goodput_bytes, r.links[0].served_bits), (1_605_120, 33_008_640.0));
    assert_eq!((mean, deviation), (79_584.0, 49_846.006_700_637_52));
}

#[test]
fn a_links_ticks_add_up_to_its_counts() {
    let groups = vec![
        group("main", "reno", "bulk", &[0.0, 0.5], &[0], &[1]),
        group("late", "cubic", "bulk", &[7.3], &[0], &[1]),
    ];
    let mut spec = network(groups, "1%", 20.0);
    spec.measure_from = Time::from_secs_f64(3.0);
    let r = go(&spec);
    let link = &r.links[0];
    for (group, ticks) in link.groups.iter().zip(&link.ticks) {
        assert_eq!((ticks.offered.len(), ticks.served.len()), (170, 170));
        let close = |ticks: &[f64], all: f64| (ticks.iter().sum::<f64>() / all - 1.0).abs() < 1e-12;
        assert!(close(&ticks.offered, group.offered_bytes as f64 * 8.0));
        assert!(close(&ticks.served, group.served_bits));
    }
    // The late flow opens at 7.3 s: its first data arrive a round trip later.
    let first = link.ticks[1].offered.iter().position(|b| *b > 0.0);
    assert_eq!(first, Some(43));
    // No tick serves more than the link can, except for a packet that spans the tick's start.
    for t in 0..170 {
        let served: f64 = link.ticks.iter().map(|g| g.served[t]).sum();
        assert!(served <= 2e5 + 8000.0, "{t}: {served}");
    }
}

/// Data that arrived before the measured span does not count in it, even if the gap before it is filled later. Of a
/// packet that is half sent when the span begins, half counts.
#[test]
fn warm_up_is_excluded_from_the_measured_interval() {
    let group = group("main", "stpd", "bulk", &[0.0], &[0], &[1]);
    let mut spec = network(vec![group], "2%", 12.0);
    config(&mut spec.links[0]).queue.limit = QueueLimit::Packets(60);
    let mut all = 0.0;
    for at in 0..200 {
        spec.measure_from = Time::from_secs_f64(2.0 + 0.05 * f64::from(at));
        spec.end = spec.measure_from + Duration::from_millis(300);
        let r = go(&spec);
        let max = r.links[0].capacity_bits;
        assert!(r.links[0].served_bits <= max, "{at}: {} {max}", r.links[0].served_bits);
        // A packet at either end.
        let goodput = r.groups[0].flows[0].goodput_bytes as f64 * 8.0;
        assert!(goodput <= max * 0.96 + 8000.0, "{at}: {goodput} {max}");
        all += goodput;
    }
    assert!(all > 0.5 * 200.0 * 0.3 * 2e6, "the link was in use: {all}");
}

fn waiting_at_end(r: &RunResult) -> u64 {
    let l = &r.links[0].groups[0];
    let left = l.offered - l.dropped - l.served;
    assert!(left <= 21, "{left} were neither dropped nor served");
    left
}

#[test]
fn a_lossless_unlimited_path_takes_the_time_that_arithmetic_says() {
    // 100 segments of 960 B; 2 Mbit/s: 4 ms each; the handshake takes 60.32 ms, then the window is 4, 8, 16, 32, 40 and
    // each round trip is 64.16 ms.
    let mut spec = network(
        vec![group("main", "reno", "transfer(size=96000B)", &[0.0], &[0], &[1])],
        "none",
        5.0,
    );
    config(&mut spec.links[0]).queue.limit = QueueLimit::Unlimited;
    let r = go(&spec);
    let done = r.groups[0].flows[0].done.unwrap().as_secs_f64();
    let opening = 0.060 + 2.0 * 40.0 * 8.0 / 2e6;
    let round = 0.060 + 0.004 + 40.0 * 8.0 / 2e6;
    // Rounds of 4, 8 and 16 are idle at their ends (16 x 4 ms is just under a round trip).
    let expected = opening + 3.0 * round + 72.0 * 0.004 + 0.030;
    assert!((done - expected).abs() < 0.002, "{done} {expected}");
    assert_eq!(r.groups[0].flows[0].goodput_bytes, 96_000);
}

#[test]
fn an_acknowledgement_queue_slows_the_other_direction() {
    let alone = go(&network(vec![group("main", "reno", "bulk", &[0.0], &[0], &[1])], "none", 60.0));
    let both = go(&network(
        vec![
            group("main", "reno", "bulk", &[0.0], &[0], &[1]),
            group("reverse", "reno", "bulk", &[0.1], &[1], &[0]),
        ],
        "none",
        60.0,
    ));
    let goodput = |r: &RunResult| r.groups[0].flows[0].goodput_bytes;
    assert!(goodput(&both) < goodput(&alone) * 95 / 100, "{} {}", goodput(&both), goodput(&alone));
    assert!(both.links[1].groups[1].served > 1000 && both.links[1].groups[0].served == 0);
}

#[test]
fn scheduled_changes_happen_and_count_as_capacity() {
    let mut spec = network(vec![group("main", "sack", "bulk", &[0.0], &[0], &[1])], "none", 40.0);
    config(&mut spec.links[0]).changes = true;
    spec.changes = vec![(Time::from_secs_f64(20.0), 0, LinkChange::Rate(Rate::from_bps(500_000)))];
    let r = go(&spec);
    assert_eq!(r.links[0].capacity_bits, 20.0 * 2e6 + 20.0 * 5e5);
    let used = r.links[0].served_bits / r.links[0].capacity_bits;
    assert!((0.9..=1.0).contains(&used), "{used}");
}

#[test]
fn web_transfers_are_connections_of_their_own() {
    let spec = network(
        vec![group("web", "newreno", "web(rate=5,mean=8kB)", &[0.0], &[0], &[1])],
        "none",
        60.0,
    );
    let r = go(&spec);
    let flows = &r.groups[0].flows;
    assert!((200..400).contains(&flows.len()), "{}", flows.len());
    let done = flows.iter().filter(|f| f.done.is_some()).count();
    assert!(done * 10 > flows.len() * 9, "{done} of {}", flows.len());
}

/// Jitter, reordering, duplication and corruption on every link.
fn faults(spec: &mut NetworkSpec) {
    for l in &mut spec.links {
        let l = config(l);
        l.impairments.jitter = Duration::from_millis(3);
        l.impairments.reorder = 0.02;
        l.impairments.reorder_by = Duration::from_millis(20);
        l.impairments.duplicate = 0.02;
        l.impairments.corrupt = 0.02;
    }
}

/// Lost, duplicated, reordered and damaged packets and reports, and an outage of ten seconds: every media protocol
/// continues, and recovers its rate after the outage.
#[test]
fn media_protocols_live_through_faults() {
    for p in every().filter(|p| p.family == Family::Media) {
        let run = |seconds| {
            let group = group("main", p.name, "bulk", &[0.0], &[0], &[1]);
            let loss = "3%+outage(at=20s,for=10s)";
            let mut spec = network(vec![group], loss, seconds);
            for l in &mut spec.links {
                config(l).loss = LossSpec::parse_all(loss).unwrap();
            }
            faults(&mut spec);
            go(&spec).groups[0].flows[0].goodput_bytes
        };
        let before = run(100.0);
        let after = run(200.0);
        assert!(after > before + 100_000, "{}: {before} B at 100 s, {after} at 200 s", p.name);
    }
}

#[test]
fn link_faults_lose_no_bytes() {
    for p in every().filter(|p| p.family != Family::Media) {
        let mut spec = network(
            vec![group("main", p.name, "transfer(size=300kB)", &[0.0], &[0], &[1])],
            "3%+outage(at=2s,for=300ms)",
            300.0,
        );
        faults(&mut spec);
        let f = &go(&spec).groups[0].flows[0];
        assert_eq!(f.goodput_bytes, 300_000, "{}", p.name);
        assert!(f.done.is_some());
    }
}

/// The same for streams over the datagram endpoint with rare reports, faults and outages in both directions, and
/// heavier loss: all bytes are delivered.
#[test]
fn streams_with_rare_reports_lose_no_bytes() {
    for p in every().filter(|p| p.family == Family::Rrtp) {
        let protocol = format!("{}(ack-every=32,ecn=on)", p.name);
        let group = group("main", &protocol, "transfer(size=300kB)", &[0.0], &[0], &[1]);
        let mut spec = network(vec![group], "none", 900.0);
        for l in &mut spec.links {
            config(l).loss = LossSpec::parse_all("5%+outage(at=1s,for=5s)").unwrap();
        }
        faults(&mut spec);
        let f = &go(&spec).groups[0].flows[0];
        assert_eq!(f.goodput_bytes, 300_000, "{}", p.name);
        assert!(f.done.is_some());
    }
}

/// Without random loss a controller fills the link over the datagram endpoint as over TCP, for any way of counting
/// acknowledgements.
#[test]
fn controllers_behave_alike_over_rrtp_and_tcp() {
    for (tcp, controller) in [("sack", "reno"), ("vegas", "vegas"), ("stpd", "stpd")] {
        let used = |protocol: &str| {
            let group = group("main", protocol, "bulk", &[0.0], &[0], &[1]);
            let r = go(&network(vec![group], "none", 60.0));
            (r.links[0].served_bits / r.links[0].capacity_bits, r.links[0].queue_mean)
        };
        let over_rrtp = used(&format!("rrtp+{controller}"));
        let over_tcp = used(tcp);
        assert!(
            (over_rrtp.0 - over_tcp.0).abs() < 0.02,
            "{controller}: {over_rrtp:?} {over_tcp:?}"
        );
        assert!((over_rrtp.1 - over_tcp.1).abs() < 2.0, "{controller}: {over_rrtp:?} {over_tcp:?}");
    }
}

#[test]
fn absurd_but_legal_values_run() {
    for (mbps, ms, room, loss) in [
        (1e-6, 1, 5, "none"),
        (400_000.0, 1, 1000, "none"),
        (2.0, 30, 0, "none"),
        (2.0, 30, 10, "100%"),
    ] {
        for protocol in ["cubic", "rrtp+cubic"] {
            let group = group("main", protocol, "bulk", &[0.0], &[0], &[1]);
            let mut spec = network(vec![group], loss, 0.2);
            spec.links[0] = link("there", mbps, ms, room, loss);
            spec.links[1] = link("back", mbps, ms, room, "none");
            let r = go(&spec);
            assert!(r.links[0].served_bits <= r.links[0].capacity_bits + 8000.0);
        }
    }
}

#[test]
fn a_run_can_be_stopped() {
    let spec =
        network(vec![group("main", "reno", "bulk", &[0.0; 50], &[0], &[1])], "none", 100_000.0);
    assert_eq!(run(&spec, &mut |_| false).unwrap_err(), SimError::Interrupted);
}
