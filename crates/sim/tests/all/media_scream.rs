//! SCReAM through the engine: alone in a drop-tail queue, and in an L4S queue.

use narrows_base::{Duration, Rate, Spec, Time};
use narrows_link::{LinkConfig, QueueConfig, QueueLimit};
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, SourceSpec, run};
use narrows_transport::{Preset, Protocol};

/// One flow on 20 Mbit/s at an RTT of 25 ms, from 20 s to 60 s: its share, the packets in the queue on average, and
/// those dropped.
fn alone(protocol: &str, aqm: Option<&str>) -> (f64, f64, u64) {
    let link = |name: &str, aqm: Option<&str>, metered| {
        let mut config = LinkConfig::plain(Rate::from_bps(20_000_000), Duration::from_millis(25));
        let aqm = aqm.map(|aqm| Spec::parse(aqm).unwrap());
        config.queue = QueueConfig { limit: QueueLimit::Packets(250), aqm };
        LinkSpec { name: name.into(), config: config.into(), metered }
    };
    let flow = FlowSpec { start: Time::ZERO, stop: Time::NEVER, forward: vec![0], back: vec![1] };
    let spec = NetworkSpec {
        seed: 5,
        end: Time::from_secs_f64(60.0),
        measure_from: Time::from_secs_f64(20.0),
        links: vec![link("there", aqm, true), link("back", None, false)],
        groups: vec![GroupSpec {
            name: "main".into(),
            protocol: Protocol::read(&Spec::parse(protocol).unwrap(), Preset::Rfc, 1000).unwrap(),
            source: SourceSpec::bulk(),
            flows: vec![flow],
        }],
        changes: Vec::new(),
        reconfigurations: Vec::new(),
        series: None,
    };
    let link = run(&spec, &mut |_| true).unwrap().links.remove(0);
    let used = link.served_bits / link.capacity_bits;
    (used, link.queue_mean, link.groups[0].dropped)
}

/// In a queue of 100 ms it slows down at a queueing delay of 30 ms, half of its target: 75 packets. In DualPI2 marks
/// keep it far below that, but only if its packets are ECT(1): other packets use a queue that is held at 15 ms.
#[test]
fn it_keeps_to_half_its_target_delay_and_to_an_l4s_queues_marks() {
    let (used, queue, dropped) = alone("scream", None);
    assert!(
        used > 0.9 && (25.0..80.0).contains(&queue) && dropped == 0,
        "{used} {queue} {dropped}"
    );
    let (used, queue, dropped) = alone("scream(l4s=on)", Some("dualpi2"));
    assert!(used > 0.6 && queue < 8.0 && dropped == 0, "{used} {queue} {dropped}");
    let (_, classic, _) = alone("scream", Some("dualpi2"));
    assert!(classic > 2.0 * queue, "{classic} {queue}");
}
