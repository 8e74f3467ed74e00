//! Flows alone on a plain drop-tail queue: the cost of a lost retransmission.

use narrows_base::{Duration, Rate, Spec, Time};
use narrows_link::{LinkConfig, QueueConfig, QueueLimit};
use narrows_sim::{FlowSpec, GroupSpec, LinkSpec, NetworkSpec, RunResult, SourceSpec, run};
use narrows_transport::{Preset, Protocol};

/// One flow for 60 s; `queue` in packets of 1000 bytes.
fn alone(protocol: &str, mbps: f64, one_way_ms: u64, queue: u64) -> RunResult {
    let link = |name: &str| {
        let rate = Rate::from_bps_f64(mbps * 1e6);
        let mut config = LinkConfig::plain(rate, Duration::from_millis(one_way_ms));
        config.queue = QueueConfig { limit: QueueLimit::Packets(queue), aqm: None };
        LinkSpec { name: name.into(), config: config.into(), metered: true }
    };
    let flow = FlowSpec { start: Time::ZERO, stop: Time::NEVER, forward: vec![0], back: vec![1] };
    let group = GroupSpec {
        name: "main".into(),
        protocol: Protocol::read(&Spec::parse(protocol).unwrap(), Preset::Rfc, 1000).unwrap(),
        source: SourceSpec::read(&Spec::parse("bulk").unwrap()).unwrap(),
        flows: vec![flow],
    };
    let spec = NetworkSpec {
        seed: 1,
        end: Time::from_secs_f64(60.0),
        measure_from: Time::ZERO,
        links: vec![link("there"), link("back")],
        groups: vec![group],
        changes: Vec::new(),
        reconfigurations: Vec::new(),
        series: None,
    };
    run(&spec, &mut |_| true).unwrap()
}

/// Slow start overshoots, and some of the retransmissions are lost again. While the timer runs, duplicates release new
/// data, and FlightSize grows to many times the BDP. A threshold computed from it made slow start overshoot again, and
/// so on without end.
#[test]
fn an_opening_that_overshoots_does_not_repeat_itself_for_ever() {
    for (protocol, mbps, one_way_ms, queue) in [
        ("cubic", 10.0, 20, 50),
        ("cubic", 100.0, 50, 1250),
        ("cubic", 2.0, 30, 20),
        ("newreno", 100.0, 50, 1250),
    ] {
        let r = alone(protocol, mbps, one_way_ms, queue);
        let link = &r.links[0];
        let used = link.served_bits / link.capacity_bits;
        let lost = link.groups[0].dropped as f64 / link.groups[0].offered as f64;
        let timeouts = r.groups[0].flows[0].timeouts;
        let what = format!("{protocol} at {mbps} Mbit/s: {used} in use, {lost} lost");
        assert!(used > 0.9 && lost < 0.02 && timeouts <= 2, "{what}, {timeouts} timeouts");
    }
}
