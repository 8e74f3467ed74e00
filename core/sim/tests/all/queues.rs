//! Managed queues at a bottleneck that Reno fills, and their measurements.

use crate::two_links::{group, link, network};
use narrows_base::{Duration, Time};
use narrows_link::QueueLimit;
use narrows_sim::{LinkResult, RunResult, SeriesSpec, run};

/// Four Renos over 10 Mbit/s with an RTT of 40 ms and a queue of two BDPs, measured from 20 s to 120 s.
fn go(aqm: Option<&str>) -> RunResult {
    let link = |aqm| link(1e7, Duration::from_millis(20), QueueLimit::Packets(100), aqm, "none");
    let main = group("main", "reno", 1000, (0..4).map(|i| 0.3 * f64::from(i)));
    let mut spec = network([link(aqm), link(None)], vec![main], (20.0, 120.0), 3);
    spec.series = Some(SeriesSpec {
        interval: Duration::from_millis(500),
        from: Time::ZERO,
        links: vec![0],
        flows_per_group: 0,
    });
    run(&spec, &mut |_| true).unwrap()
}

fn used(link: &LinkResult) -> f64 {
    link.served_bits / link.capacity_bits
}

#[test]
fn managed_queues_are_shorter_and_the_link_stays_busy() {
    let tail = go(None).links.remove(0);
    assert!(tail.queue_mean > 50.0 && used(&tail) > 0.999, "{tail:?}");
    // Measured: 9.0 packets and 95.7 %, 9.0 and 96.7 %, 8.6 and 100.0 %, 20.4 and 98.6 %, of
    // drop-tail's 70.4 and 100 %.
    for (aqm, shorter) in [("red", 0.25), ("codel", 0.25), ("fq-codel", 0.25), ("pie", 0.5)] {
        let l = go(Some(aqm)).links.remove(0);
        assert!(l.queue_mean < shorter * tail.queue_mean, "{aqm}: {}", l.queue_mean);
        assert!(used(&l) > 0.93, "{aqm}: {}", used(&l));
        assert!(l.managed && l.groups[0].dropped > tail.groups[0].dropped, "{aqm}");
        // No endpoint here uses ECN.
        assert_eq!(l.groups[0].marked, 0, "{aqm}");
    }
}

#[test]
fn drop_tail_by_name_is_the_plain_queue() {
    let plain = go(None);
    let named = go(Some("droptail"));
    assert_eq!((plain.digest, plain.events), (named.digest, named.events));
    assert!(!named.links[0].managed && named.links[0].average.is_none());
}

#[test]
fn a_queue_that_only_warns_leaves_senders_without_ecn_alone() {
    let plain = go(None);
    let cw = go(Some("cw"));
    assert_eq!(plain.digest, cw.digest);
    assert_eq!(plain.links[0].queue_mean, cw.links[0].queue_mean);
}

#[test]
fn the_average_that_a_queue_keeps_is_measured_and_sampled() {
    let r = go(Some("red"));
    let average = r.links[0].average.unwrap();
    assert!(0.0 < average.min && average.min < average.mean && average.mean < average.max);
    // Smoother than the queue, and near it.
    assert!(average.max < r.links[0].queue_max as f64);
    let between = average.mean / r.links[0].queue_mean;
    assert!((0.5..2.0).contains(&between), "{average:?} {}", r.links[0].queue_mean);
    let column = r.series[0].column("queue_average").unwrap();
    assert_eq!(column.len(), r.series[0].time_s.len());
    let measured: Vec<f64> = column[41..].to_vec();
    assert!(measured.iter().all(|a| (average.min..=average.max).contains(a)), "{average:?}");
    for aqm in ["codel", "fq-codel", "pie", "droptail"] {
        let r = go(Some(aqm));
        assert!(
            r.links[0].average.is_none() && r.series[0].column("queue_average").is_none(),
            "{aqm}"
        );
    }
}
