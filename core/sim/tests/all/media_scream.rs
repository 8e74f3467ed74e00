//! SCReAM through the engine: alone in a drop-tail queue, and in an L4S queue.

use crate::two_links::{group, link, network};
use narrows_base::Duration;
use narrows_link::QueueLimit;
use narrows_sim::run;

/// One flow on 20 Mbit/s at an RTT of 25 ms, from 20 s to 60 s: its share, the packets in the queue on average, and
/// those dropped.
fn alone(protocol: &str, aqm: Option<&str>) -> (f64, f64, u64) {
    let link = |aqm| link(2e7, Duration::from_millis(25), QueueLimit::Packets(250), aqm, "none");
    let group = group("main", protocol, 1000, [0.0]);
    let spec = network([link(aqm), link(None)], vec![group], (20.0, 60.0), 5);
    let link = run(&spec, &mut |_| true).unwrap().links.remove(0);
    let used = link.served_bits / link.capacity_bits;
    (used, link.queue_mean, link.groups[0].dropped)
}

/// In a queue of 100 ms it slows down at a queueing delay of 30 ms, half of its target: 75 packets. In DualPI2 marks
/// keep it far below that, but only if its packets are ECT(1): other packets use a queue that is held at 15 ms.
#[test]
fn scream_keeps_half_its_target_delay_and_l4s_marks() {
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
