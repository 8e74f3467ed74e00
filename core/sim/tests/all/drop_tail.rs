//! Flows alone on a plain drop-tail queue: the cost of a lost retransmission.

use crate::two_links::{group, link, network};
use narrows_base::Duration;
use narrows_link::QueueLimit;
use narrows_sim::{RunResult, run};

/// One flow for 60 s; `queue` in packets of 1000 bytes.
fn alone(protocol: &str, mbps: f64, one_way_ms: u64, queue: u64) -> RunResult {
    let delay = Duration::from_millis(one_way_ms);
    let link = link(mbps * 1e6, delay, QueueLimit::Packets(queue), None, "none");
    let group = group("main", protocol, 1000, [0.0]);
    let spec = network([link.clone(), link], vec![group], (0.0, 60.0), 1);
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
