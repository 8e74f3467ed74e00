//! One sender of layers, receivers behind links of different rates, and no packets in reverse.

use narrows_base::{Duration, Rate, Spec, Time};
use narrows_link::{LinkConfig, QueueConfig, QueueLimit};
use narrows_sim::protocol::{FlowProtocol, Preset};
use narrows_sim::{
    FlowSpec, GroupSpec, LinkSpec, NetworkSpec, RunResult, SimError, SourceSpec, run,
};

fn link(name: &str, kbps: u64, packets: u64) -> LinkSpec {
    let mut config = LinkConfig::plain(Rate::from_bps(kbps * 1000), Duration::from_millis(15));
    config.queue = QueueConfig { limit: QueueLimit::Packets(packets), aqm: None };
    LinkSpec { name: name.into(), config: config.into(), metered: true }
}
fn group(name: &str, protocol: &str, forward: &[u32]) -> GroupSpec {
    let source = "multicast(count=4,rate=200kbit/s)";
    GroupSpec {
        name: name.into(),
        protocol: FlowProtocol::read(&Spec::parse(protocol).unwrap(), Preset::Rfc, 1000).unwrap(),
        source: SourceSpec::read(&Spec::parse(source).unwrap()).unwrap(),
        flows: vec![FlowSpec::new(forward.to_vec(), forward.to_vec())],
    }
}
fn spec(links: Vec<LinkSpec>, groups: Vec<GroupSpec>) -> NetworkSpec {
    NetworkSpec {
        seed: 1,
        end: Time::from_secs_f64(120.0),
        measure_from: Time::from_secs_f64(20.0),
        links,
        groups,
        ..NetworkSpec::default()
    }
}
/// Mean layers shown, and the share of frozen frames, of a group's flow.
fn shown(r: &RunResult, group: usize) -> (f64, f64) {
    let f = r.groups[group].flows[0].frames.as_ref().unwrap();
    (f.layers as f64 / f.due as f64, f.frozen as f64 / f.due as f64)
}

/// 200, 600, 1400 and 3000 kbit/s: each receiver joins the layers that its link carries, and a link has one copy of
/// each packet.
#[test]
fn receivers_join_the_groups_that_their_links_carry() {
    let links = vec![
        link("trunk", 10_000, 100),
        link("slow", 300, 20),
        link("middle", 1000, 30),
        link("fast", 3000, 60),
    ];
    let protocol = "tear";
    let groups = vec![
        group("slow", protocol, &[0, 1]),
        group("middle", protocol, &[0, 2]),
        group("fast", protocol, &[0, 3]),
    ];
    let r = run(&spec(links.clone(), groups), &mut |_| true).unwrap();
    let got: Vec<(f64, f64)> = (0..3).map(|g| shown(&r, g)).collect();
    for (g, (layers, frozen)) in got.iter().enumerate() {
        let carried = (g + 1) as f64;
        assert!((carried - 0.35..carried + 0.2).contains(layers), "{protocol} {got:?}");
        assert!(*frozen < 0.1, "{protocol} {got:?}");
    }
    let mbps = |l: usize| r.links[l].served_bits / 100.0 / 1e6;
    assert!((3.0..3.4).contains(&mbps(0)), "the first link carries every layer, once: {}", mbps(0));
    assert!(mbps(2) < 0.8 && mbps(3) < 2.2, "{} {}", mbps(2), mbps(3));
    // No packets in reverse.
    assert!(r.groups.iter().all(|g| g.rtt.count() == 0));
}

#[test]
fn single_receiver_gets_only_the_groups_it_joined() {
    let links = vec![link("trunk", 10_000, 100), link("slow", 300, 20)];
    let r = run(&spec(links, vec![group("one", "tear", &[0, 1])]), &mut |_| true).unwrap();
    let (layers, frozen) = shown(&r, 0);
    assert!((0.9..1.1).contains(&layers) && frozen < 0.05, "{layers} {frozen}");
}

/// TEAR's `yield` sends less after a loss until the queue has drained. Without feedback no sender sends less, so the
/// receiver would leave layers for nothing.
#[test]
fn receiver_does_not_yield_to_its_own_senders_queue() {
    let links = vec![link("trunk", 10_000, 100), link("cable", 2000, 20)];
    let source = |text| SourceSpec::read(&Spec::parse(text).unwrap()).unwrap();
    let thin = "multicast(count=8,rate=180kbit/s,growth=1,rtt=60ms)";
    let beside_tcp = |protocol| {
        let media = GroupSpec { source: source(thin), ..group("media", protocol, &[0, 1]) };
        let tcp = GroupSpec { source: source("bulk"), ..group("tcp", "sack", &[0, 1]) };
        let r = run(&spec(links.clone(), vec![media, tcp]), &mut |_| true).unwrap();
        shown(&r, 0)
    };
    let (layers, frozen) = beside_tcp("tear");
    assert!(layers > 2.5 && frozen < 0.05, "half of the link carries five: {layers} {frozen}");
    assert_eq!((layers, frozen), beside_tcp("tear(yield=off)"));
}

/// A fork behind a fork: two receivers share a second link, and one of them is at its end.
#[test]
fn a_tree_may_fork_again() {
    let links =
        vec![link("a", 10_000, 100), link("b", 2000, 60), link("c", 300, 20), link("d", 5000, 60)];
    let groups = vec![
        group("end of b", "tear", &[0, 1]),
        group("behind b", "tear", &[0, 1, 2]),
        group("beside", "tear", &[0, 3]),
    ];
    let r = run(&spec(links, groups), &mut |_| true).unwrap();
    let got: Vec<(f64, f64)> = (0..3).map(|g| shown(&r, g)).collect();
    assert!(got[0].0 > 2.5 && got[1].0 < 1.3 && got[2].0 > 3.0, "{got:?}");
    assert!(got[1].0 > 0.7, "{got:?}");
}

#[test]
fn non_tree_topology_or_other_protocol_is_refused() {
    let links = vec![link("a", 10_000, 100), link("b", 2000, 60)];
    let refused = |groups| match run(&spec(links.clone(), groups), &mut |_| true) {
        Err(SimError::Spec(e)) => e.to_string(),
        other => panic!("{other:?}"),
    };
    let e = refused(vec![group("one", "tear", &[0]), group("two", "tear", &[1])]);
    assert!(
        e.contains("groups[1].flows[0].forward[0]") && e.contains("share no first link"),
        "{e}"
    );
    let e = refused(vec![group("one", "tear-wireless", &[0])]);
    assert!(
        e.contains("groups[0].protocol") && e.contains("expected tear, not tear-wireless"),
        "{e}"
    );
}
