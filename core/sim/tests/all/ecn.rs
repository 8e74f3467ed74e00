//! Marks between an endpoint and a queue: ECN with RED and the congestion warning of TCP-Jersey.

use crate::two_links::{group, link, network};
use narrows_base::Duration;
use narrows_link::QueueLimit;
use narrows_sim::{FlowResult, LinkResult, run};

/// Two flows over 10 Mbit/s with an RTT of 40 ms and a queue of 200 packets, measured from 20 s to 120 s.
fn go(protocol: &str, aqm: Option<&str>, loss: &str) -> (Vec<FlowResult>, LinkResult) {
    go_with(2, 10_000_000, protocol, aqm, loss)
}
fn go_with(
    flows: u64,
    bps: u64,
    protocol: &str,
    aqm: Option<&str>,
    loss: &str,
) -> (Vec<FlowResult>, LinkResult) {
    let link = |aqm, loss| {
        link(bps as f64, Duration::from_millis(20), QueueLimit::Packets(200), aqm, loss)
    };
    let group = group("main", protocol, 1000, (0..flows).map(|i| 0.3 * i as f64));
    let spec = network([link(aqm, loss), link(None, "none")], vec![group], (20.0, 120.0), 5);
    let mut result = run(&spec, &mut |_| true).unwrap();
    (result.groups.remove(0).flows, result.links.remove(0))
}
fn used(link: &LinkResult) -> f64 {
    link.served_bits / link.capacity_bits
}
fn total(flows: &[FlowResult], what: fn(&FlowResult) -> u64) -> u64 {
    flows.iter().map(what).sum()
}

#[test]
fn marks_replace_drops_without_retransmissions() {
    // Measured: 204 reactions and 96.6 % of the link; 96 to 99 % with the other queues.
    for (protocol, aqm) in [
        ("newreno(ecn=on)", "red(ecn=on)"),
        ("sack(ecn=on)", "pie(ecn=on)"),
        ("cubic(ecn=on)", "codel(ecn=on)"),
    ] {
        let (flows, link) = go(protocol, Some(aqm), "none");
        let marks = total(&flows, |f| f.marks);
        let marked: u64 = link.groups.iter().map(|g| g.marked).sum();
        assert!(marks > 50 && marks <= marked, "{protocol}, {aqm}: {marks} of {marked}");
        assert_eq!(total(&flows, |f| f.retransmissions), 0, "{protocol}, {aqm}");
        assert!(used(&link) > 0.95, "{protocol}, {aqm}: {}", used(&link));
        assert!(link.queue_mean < 30.0, "{protocol}, {aqm}: {}", link.queue_mean);
    }
}

#[test]
fn a_sender_without_ecn_is_dropped_where_others_are_marked() {
    let (flows, link) = go("newreno", Some("red(ecn=on)"), "none");
    assert_eq!(total(&flows, |f| f.marks), 0);
    assert_eq!(link.groups.iter().map(|g| g.marked).sum::<u64>(), 0);
    assert!(total(&flows, |f| f.retransmissions) > 100);
}

/// The purpose of TCP-Jersey (Hu and Zha): behind its router it keeps its window at radio losses.
#[test]
fn jersey_with_marks_distinguishes_lossy_from_full_links() {
    let goodput = |protocol| total(&go(protocol, Some("cw"), "1%").0, |f| f.goodput_bytes);
    // Measured in Mbit/s: 9.03 of 9.6, and 4.76.
    let jersey = goodput("jersey");
    let newreno = goodput("newreno(ecn=on)");
    assert!(jersey as f64 > 1.7 * newreno as f64, "{jersey} {newreno}");
    let (flows, link) = go("jersey", Some("cw"), "none");
    assert_eq!(total(&flows, |f| f.retransmissions), 0);
    // The window is the rate times the RTT including the queueing delay, so the queue stays at the threshold, a quarter
    // of its capacity. Measured 46.0.
    assert!((40.0..50.0).contains(&link.queue_mean), "{}", link.queue_mean);
}

/// Without marks the paper's algorithm reduces only at timeouts. Measured: 75.5 % of the link and 56 timeouts. NewReno
/// fills it without a timeout, and so does the default: until a mark is seen, it takes a loss while packets queue for a
/// buffer overflow.
#[test]
fn jersey_without_marks_relies_on_timeouts_unless_losses_count() {
    let (flows, link) = go("jersey(unmarked=radio)", None, "none");
    let (plain, plain_link) = go("newreno", None, "none");
    let (own, own_link) = go("jersey", None, "none");
    assert!(total(&flows, |f| f.timeouts) > 20 && total(&plain, |f| f.timeouts) == 0);
    assert!(used(&link) < 0.9 && used(&plain_link) > 0.999, "{}", used(&link));
    assert!(total(&own, |f| f.timeouts) < 5 && used(&own_link) > 0.95, "{}", used(&own_link));
}

/// More flows than the path holds packets. Windows of one wait for their timers (RFC 3168 section 6.1.2), so the queue
/// stays short; without marks it fills and overflows. Measured: 15.9 packets wait instead of 173.6. It is not fair: a
/// window of two is RFC 5681's minimum after a reduction and does not wait, so seven of the thirty flows send eight
/// times as much as each of the others.
#[test]
fn a_crowd_at_windows_of_one_waits_its_turn() {
    let crowd = |ecn: &str| {
        let protocol = format!("newreno(ecn={ecn},initial-window=1)");
        go_with(30, 500_000, &protocol, Some("cw(packets=10)"), "none")
    };
    let (flows, link) = crowd("on");
    assert!(link.queue_mean < 20.0 && used(&link) > 0.99, "{}", link.queue_mean);
    assert_eq!(total(&flows, |f| f.retransmissions + f.timeouts), 0);
    let min = flows.iter().map(|f| f.goodput_bytes / 960).min().unwrap();
    assert!(min > 50, "a packet each 2 s at least: {min} in 100 s");
    let (flows, link) = crowd("off");
    assert!(link.queue_mean > 150.0, "{}", link.queue_mean);
    assert!(total(&flows, |f| f.retransmissions) > 500);
}
