//! Streams over several paths.

use narrows_base::{Duration, Rate, Spec, Time, math};
use narrows_link::{LinkChange, LinkConfig, LossSpec, QueueConfig, QueueLimit};
use narrows_multipath::{COUPLING_NAMES, SCHEDULER_NAMES};
use narrows_sim::protocol::{FlowProtocol, Preset};
use narrows_sim::{
    FlowSpec, GroupSpec, LinkSpec, NetworkSpec, PathSpec, RunResult, SimError, Simulation,
    SourceSpec, run,
};

/// One flow for ten seconds over paths of these rates in Mbit/s and one-way delays in ms, with a queue of 100 packets.
fn network(protocol: &str, paths: &[(u64, u64)]) -> NetworkSpec {
    let mut links = Vec::new();
    for (n, (mbps, ms)) in paths.iter().enumerate() {
        for side in ["there", "back"] {
            let rate = Rate::from_bps(mbps * 1_000_000);
            let mut config = LinkConfig::plain(rate, Duration::from_millis(*ms));
            config.queue = QueueConfig { limit: QueueLimit::Packets(100), aqm: None };
            config.changes = true;
            let name = format!("{side}.{n}");
            links.push(LinkSpec { name, config: config.into(), metered: side == "there" });
        }
    }
    let path = |n: usize| (vec![2 * n as u32], vec![2 * n as u32 + 1]);
    let further = (1..paths.len()).map(path);
    let further = further.map(|(forward, back)| PathSpec { forward, back }).collect();
    let (forward, back) = path(0);
    let flow = FlowSpec { further, ..FlowSpec::new(forward, back) };
    let protocol =
        FlowProtocol::read(&Spec::parse(protocol).unwrap(), Preset::Linux, 1500).unwrap();
    let main =
        GroupSpec { name: "main".into(), protocol, source: SourceSpec::bulk(), flows: vec![flow] };
    NetworkSpec {
        seed: 1,
        end: Time::from_secs_f64(10.0),
        measure_from: Time::from_secs_f64(2.0),
        links,
        groups: vec![main],
        ..NetworkSpec::default()
    }
}

fn result(spec: &NetworkSpec) -> RunResult {
    run(spec, &mut |_| true).unwrap()
}

fn mbps(result: &RunResult) -> f64 {
    result.groups[0].flows[0].goodput_bytes as f64 * 8.0 / result.span_s / 1e6
}

fn lose_all(at: f64, link: usize) -> (Time, usize, LinkChange) {
    let loss = LossSpec::parse_all("100%").unwrap();
    (Time::from_secs_f64(at), link, LinkChange::Loss(loss))
}

#[test]
fn multipath_over_two_paths_carries_their_sum() {
    let one = result(&network("rrtp", &[(20, 20)]));
    let two = result(&network("rrtp", &[(20, 20), (10, 60)]));
    assert!(mbps(&two) > 1.4 * mbps(&one), "{} {}", mbps(&two), mbps(&one));
    let flow = &two.groups[0].flows[0];
    let paths = flow.multipath.as_ref().unwrap();
    let share = paths.paths[1].sent_bytes as f64 / flow.sent_bytes as f64;
    assert!((0.25..0.5).contains(&share), "{share}");
    assert_eq!(paths.duplicate_bytes, 0);
    assert!(one.groups[0].flows[0].multipath.is_none());
}

#[test]
fn multipath_transfer_repeats_to_the_bit() {
    let mut digests = std::collections::BTreeSet::new();
    for scheduler in SCHEDULER_NAMES {
        let mut spec = network(&format!("rrtp(scheduler={scheduler})"), &[(20, 20), (2, 300)]);
        let transfer = Spec::parse("transfer(size=2MB)").unwrap();
        spec.groups[0].source = SourceSpec::read(&transfer).unwrap();
        let first = result(&spec);
        assert_eq!(first.digest, result(&spec).digest, "{scheduler}");
        assert!(first.groups[0].flows[0].done.is_some(), "{scheduler}");
        digests.insert(first.digest);
    }
    assert!(digests.len() > 2, "schedulers choose alike: {digests:?}");
}

#[test]
fn multipath_redundant_sends_every_byte_twice() {
    let both = result(&network("rrtp(scheduler=redundant)", &[(10, 20), (10, 20)]));
    let flow = &both.groups[0].flows[0];
    let duplicates = flow.multipath.as_ref().unwrap().duplicate_bytes as f64;
    let delivered = flow.goodput_bytes as f64 * 10.0 / 8.0;
    assert!(duplicates > 0.9 * delivered, "{duplicates} of {delivered}");
}

/// Longest time in ms without delivery between 4 s and 9 s.
fn longest_gap(spec: &NetworkSpec) -> u64 {
    let mut simulation = Simulation::new(spec).unwrap();
    let mut longest = 0;
    let mut gap = 0;
    let mut before = 0;
    for ms in 1..9000 {
        let until = Time::ZERO + Duration::from_millis(ms);
        simulation.advance(until, &mut |_| true).unwrap();
        gap = if simulation.delivered(0) > before { 0 } else { gap + 1 };
        before = simulation.delivered(0);
        if ms > 4000 {
            longest = longest.max(gap);
        }
    }
    longest
}

#[test]
fn multipath_delivers_on_after_path_dies() {
    let mut spec = network("rrtp", &[(20, 20), (20, 20)]);
    spec.changes = vec![lose_all(5.0, 0), lose_all(5.0, 1)];
    assert!(longest_gap(&spec) <= 200, "{} ms", longest_gap(&spec));
    let mut large = network("rrtp", &[(20, 20), (20, 20)]);
    large.changes = vec![(Time::from_secs_f64(5.0), 0, LinkChange::Mtu(576))];
    assert!(longest_gap(&large) <= 200, "{} ms", longest_gap(&large));
}

#[test]
fn multipath_uses_path_again_after_outage() {
    let mut spec = network("rrtp", &[(20, 20), (20, 20)]);
    let back = Time::from_secs_f64(5.0);
    spec.changes = vec![lose_all(3.0, 0), (back, 0, LinkChange::Loss(Vec::new()))];
    spec.measure_from = Time::from_secs_f64(6.0);
    assert!(mbps(&result(&spec)) > 30.0, "{}", mbps(&result(&spec)));
}

#[test]
fn multipath_with_swallowing_path_keeps_rate_of_others() {
    let two = mbps(&result(&network("rrtp", &[(20, 20), (20, 20)])));
    for at in [0.0, 1.0] {
        let mut three = network("rrtp", &[(20, 20), (20, 20), (20, 20)]);
        three.changes = vec![lose_all(at, 4)];
        let three = mbps(&result(&three));
        assert!(three > 0.97 * two, "from {at} s: {three} of {two}");
    }
}

/// Goodput of a coupled flow over that of a flow over one path that starts later. Both paths share a bottleneck of 20
/// Mbit/s with RED: the equations assume that all packets are lost with the same probability.
fn ratio_to_single_path(coupling: &str, later_ms: u64) -> f64 {
    let mut spec = network(&format!("rrtp+reno(coupling={coupling})"), &[(20, 50)]);
    let mut bottleneck = LinkConfig::plain(Rate::from_bps(20_000_000), Duration::from_millis(50));
    let aqm = Some(Spec::parse("red").unwrap());
    bottleneck.queue = QueueConfig { limit: QueueLimit::Packets(100), aqm };
    spec.links[0].config = bottleneck.into();
    spec.end = Time::from_secs_f64(120.0);
    spec.measure_from = Time::from_secs_f64(20.0);
    ratio_beside(spec, "rrtp+reno", later_ms)
}

/// The goodput of the network's flow, with a second path over its first link, over that of one with this protocol beside
/// it that starts later.
fn ratio_beside(mut spec: NetworkSpec, protocol: &str, later_ms: u64) -> f64 {
    spec.groups[0].flows[0].further = vec![PathSpec { forward: vec![0], back: vec![1] }];
    let mut single = network(protocol, &[(20, 20)]).groups.remove(0);
    single.name = "single".into();
    single.flows[0].start = Time::ZERO + Duration::from_millis(later_ms);
    spec.groups.push(single);
    let result = result(&spec);
    let goodput = |n: usize| result.groups[n].flows[0].goodput_bytes as f64;
    goodput(0) / goodput(1)
}

#[test]
fn multipath_coupled_takes_share_of_one_flow_at_bottleneck() {
    for coupling in COUPLING_NAMES {
        let later = (1..=16).map(|n| 100 * n);
        let ratios: Vec<f64> = later.map(|later| ratio_to_single_path(coupling, later)).collect();
        let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
        let expected = if *coupling == "uncoupled" { 1.8..2.2 } else { 0.8..1.25 };
        assert!(expected.contains(&mean), "{coupling}: {ratios:?}");
    }
}

/// Of two paths of `rrtp` over one bottleneck, beside a flow that starts later: the ratio of the goodputs.
fn rrtp_ratio_to_single_path(coupling: &str, later_ms: u64) -> f64 {
    let mut spec = network(&format!("rrtp(coupling={coupling})"), &[(20, 40)]);
    spec.end = Time::from_secs_f64(60.0);
    spec.measure_from = Time::from_secs_f64(10.0);
    ratio_beside(spec, "rrtp", later_ms)
}

#[test]
fn multipath_rrtp_takes_share_of_one_flow_at_bottleneck() {
    let mean = |coupling: &str| {
        let logarithm = |n: u64| math::ln(rrtp_ratio_to_single_path(coupling, 37 * n));
        math::exp((1..=12).map(logarithm).sum::<f64>() / 12.0)
    };
    let shared = mean("shared");
    let uncoupled = mean("uncoupled");
    assert!((0.75..1.33).contains(&shared) && uncoupled > 1.5, "{shared}, {uncoupled} uncoupled");
}

#[test]
fn multipath_coupled_uses_both_disjoint_paths() {
    for coupling in COUPLING_NAMES {
        let both = network(&format!("rrtp+reno(coupling={coupling})"), &[(20, 20), (20, 20)]);
        let both = mbps(&result(&both));
        assert!(both > 32.0, "{coupling}: {both} Mbit/s");
    }
}

#[test]
fn coupling_of_other_controllers_is_refused() {
    for protocol in
        ["rrtp(coupling=lia)", "rrtp+cubic(coupling=olia)", "rrtp+reno(coupling=lia,like=linux)"]
    {
        let refused = FlowProtocol::read(&Spec::parse(protocol).unwrap(), Preset::Linux, 1500);
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("rrtp+reno"), "{refused}");
    }
}

#[test]
fn multipath_of_tcp_is_refused() {
    let Err(SimError::Spec(e)) = run(&network("cubic", &[(20, 20), (20, 20)]), &mut |_| true)
    else {
        panic!("accepted");
    };
    assert_eq!(e.field, "groups[0].flows[0].further");
}
