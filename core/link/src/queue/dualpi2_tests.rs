use super::*;
use crate::queue::tests::{Count, ect, queued};
use narrows_base::Spec;

const MS: u64 = 1_000_000;

fn dualpi2(text: &str) -> DualPi2 {
    let settings = Settings::read(&Spec::parse(text).unwrap(), DUALPI2.params).unwrap();
    DualPi2::new(&settings, QueueLimit::Unlimited)
}

fn l4s(number: u32) -> QueuedPacket {
    QueuedPacket { l4s: true, ..queued(number, 1000, ect()) }
}

/// The wait at the head marks by a ramp from 0.8 ms to 1.2 ms. A packet is not marked if the queue behind it is empty.
#[test]
fn the_low_delay_queue_marks_by_its_wait() {
    let q = |wait_us: u64, behind: bool| {
        let mut q = dualpi2("dualpi2");
        let mut count = Count::default();
        for i in 0..100 {
            let at = Time::from_nanos(u64::from(i) * 3 * MS);
            q.enqueue(at, l4s(i), false, &mut count);
            if behind {
                q.enqueue(at + Duration::from_micros(wait_us), l4s(1000 + i), false, &mut ());
            }
            q.dequeue(at + Duration::from_micros(wait_us), &mut count);
            if behind {
                q.dequeue(at + Duration::from_micros(wait_us), &mut ());
            }
        }
        count.marked
    };
    assert_eq!(q(800, true), 0);
    assert!((48..=51).contains(&q(1000, true)), "{}", q(1000, true));
    assert!(q(1300, true) >= 99);
    assert_eq!(q(1300, false), 0);
}

/// The marks of the L queue are coupled to the drops of the C queue: k p beside p squared.
#[test]
fn marks_and_drops_are_coupled() {
    let mut q = dualpi2("dualpi2");
    q.p = 0.2;
    let mut low = Count::default();
    let mut classic = Count::default();
    let mut packet = l4s(1);
    for _ in 0..1000 {
        packet.marked = false;
        q.passes_low(0.0, &mut packet, &mut low);
        let mut plain = queued(2, 1000, 0);
        q.passes_classic(&mut plain, &mut classic);
    }
    assert_eq!((low.marked, low.dropped), (400, 0));
    assert!((39..=40).contains(&classic.dropped), "{classic:?}");
    // ECT(0) is marked instead, until the queue is overloaded: then both lose packets.
    let mut other = Count::default();
    for _ in 0..100 {
        q.passes_classic(&mut queued(2, 1000, ect()), &mut other);
    }
    assert_eq!((other.marked, other.dropped), (4, 0));
    q.p = 0.9;
    let mut over = Count::default();
    for _ in 0..100 {
        packet.marked = false;
        q.passes_low(0.0, &mut packet, &mut over);
        q.passes_classic(&mut queued(2, 1000, ect()), &mut other);
    }
    assert_eq!(over.dropped, 25);
    assert!(other.dropped >= 24 && other.marked == 4, "{other:?}");
}

/// The L queue goes first, and the C queue still gets a tenth of the bytes.
#[test]
fn a_full_low_delay_queue_leaves_a_tenth() {
    let mut q = dualpi2("dualpi2");
    for i in 0..1000 {
        q.enqueue(Time::ZERO, l4s(i), false, &mut ());
        q.enqueue(Time::ZERO, queued(10_000 + i, 1000, 0), false, &mut ());
    }
    let low = (0..500).filter(|_| q.dequeue(Time::ZERO, &mut ()).unwrap().1.l4s).count();
    assert_eq!(low, 450);
}

/// The controller of the probability: 0.16 per second beyond the target and 3.2 per second of growth.
#[test]
fn an_update_is_proportional_and_integral() {
    let mut q = dualpi2("dualpi2");
    q.enqueue(Time::ZERO, queued(1, 1000, 0), false, &mut ());
    q.catch_up(Time::from_nanos(15 * MS));
    assert!((q.p - 3.2 * 0.015).abs() < 1e-12, "{}", q.p);
    q.catch_up(Time::from_nanos(30 * MS));
    assert!((q.p - (3.2 * 0.030 + 0.16 * 0.015)).abs() < 1e-12, "{}", q.p);
    assert_eq!(q.dequeue(Time::from_nanos(30 * MS), &mut ()).unwrap().1.number(), 1);
    // Long idle time is made up for at once.
    q.catch_up(Time::from_nanos(1_000_000_000 * MS));
    assert_eq!((q.p, q.previous_s), (0.0, 0.0));
}
