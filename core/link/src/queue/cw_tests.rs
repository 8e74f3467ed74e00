use super::*;
use crate::config::LinkConfig;
use crate::queue::tests::{Count, ect, queued};
use narrows_base::{Duration, Spec};

fn cw(text: &str, limit: QueueLimit) -> Cw {
    let settings = Settings::read(&Spec::parse(text).unwrap(), CW.params).unwrap();
    let config = LinkConfig::plain(Rate::from_bps(8_000_000), Duration::from_millis(10));
    Cw::new(&settings, limit, LinkAhead::of(&config))
}

/// Marks and drops among 1000 arrivals at a queue of `hold` packets, once the average has settled.
fn settled(cw: &mut Cw, hold: usize, flags: u8) -> (u32, u32) {
    for i in 0..hold as u32 {
        cw.line.fifo.push(Time::ZERO, queued(i, 1000, 0));
    }
    cw.line.idle_since = None;
    let mut count = Count::default();
    for i in 0..1200 {
        if i == 200 {
            count = Count::default();
        }
        let p = queued(i, 1000, flags);
        if cw.enqueue(Time::ZERO, p, false, &mut count) {
            cw.dequeue(Time::ZERO, &mut count);
        }
    }
    (count.marked, count.dropped)
}

#[test]
fn only_packets_above_the_threshold_are_marked() {
    for limit in [QueueLimit::Packets(200), QueueLimit::Unlimited, QueueLimit::Bytes(200_000)] {
        assert_eq!(settled(&mut cw("cw", limit), 51, ect()), (1000, 0));
        assert_eq!(settled(&mut cw("cw", limit), 50, ect()), (0, 0));
        assert_eq!(settled(&mut cw("cw", limit), 150, 0), (0, 0), "others pass unmarked");
    }
    assert_eq!(settled(&mut cw("cw(packets=5)", QueueLimit::Bytes(200_000)), 6, ect()), (1000, 0));
    assert_eq!(settled(&mut cw("cw(threshold=50%)", QueueLimit::Packets(200)), 99, ect()), (0, 0));
}

#[test]
fn it_drops_only_where_there_is_no_room() {
    let mut cw = cw("cw", QueueLimit::Packets(8));
    let mut count = Count::default();
    for i in 0..20 {
        cw.enqueue(Time::ZERO, queued(i, 1000, 0), false, &mut count);
    }
    assert_eq!((cw.waiting(), count.dropped), (8, 12));
}

#[test]
fn average_has_a_weight_of_a_fifth_and_decays_idle() {
    let mut cw = cw("cw", QueueLimit::Packets(200));
    for i in 0..10 {
        cw.enqueue(Time::ZERO, queued(i, 1000, 0), false, &mut ());
    }
    // Arrivals found 0..=9: 9 - 4 (1 - 0.8^9) by summing.
    let by_hand = (0..10).fold(0.0, |a, q| a + 0.2 * (f64::from(q) - a));
    assert!(
        (cw.line.average - by_hand).abs() < 1e-12 && (by_hand - 5.537).abs() < 1e-3,
        "{by_hand}"
    );
    while cw.dequeue(Time::ZERO, &mut ()).is_some() {}
    cw.pass(Time::from_nanos(5_000_000), queued(0, 1000, 0), &mut ());
    assert!(
        (cw.line.average - by_hand * (0..6).fold(1.0, |a, _| a * 0.8)).abs() < 1e-12,
        "5 of 1 ms, and the arrival"
    );
}
