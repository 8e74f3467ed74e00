use super::*;
use crate::config::{LinkConfig, QueueConfig};
use crate::link::tests::packet;
use crate::queue::tests::{Count, ect, queued};
use crate::{Link, LinkChange, Meter, Trace};
use narrows_base::{Packet, RandomKey, Spec};
use std::sync::Arc;

const MS: u64 = 1_000_000;

fn link() -> LinkConfig {
    let mut config = LinkConfig::plain(Rate::from_bps(8_000_000), Duration::from_millis(10));
    config.queue = QueueConfig { limit: QueueLimit::Unlimited, aqm: Some(Spec::named("pie")) };
    config
}

fn pie(text: &str) -> Pie {
    let settings = Settings::read(&Spec::parse(text).unwrap(), PIE.params).unwrap();
    Pie::new(
        &settings,
        QueueLimit::Unlimited,
        LinkAhead::of(&link()),
        RandomKey::from_seed(2).stream(),
    )
}

#[test]
fn the_scaling_table_is_that_of_the_rfc() {
    for (p, divisor) in [
        (0.0, 2048.0),
        (9.9e-7, 2048.0),
        (1e-6, 512.0),
        (1e-5, 128.0),
        (1e-4, 32.0),
        (1e-3, 8.0),
        (1e-2, 2.0),
        (0.099, 2.0),
        (0.1, 1.0),
        (1.0, 1.0),
    ] {
        assert_eq!(scale(p), 1.0 / divisor, "{p}");
    }
}

#[test]
fn an_update_is_proportional_and_integral() {
    let mut q = pie("pie");
    let step = |q: &mut Pie, p: f64, old: f64, delay: f64| {
        q.p = p;
        q.delay_old_s = old;
        q.step(delay);
        q.p
    };
    let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
    // 0.125 * (25 - 15 ms) + 1.25 * (25 - 20 ms) = 0.0075, by the table.
    near(step(&mut q, 0.2, 0.020, 0.025), 0.2075);
    near(step(&mut q, 0.05, 0.020, 0.025), 0.053_75);
    near(step(&mut q, 0.0, 0.020, 0.025), 0.0075 / 2048.0);
    near(step(&mut q, 0.2, 0.015, 0.015), 0.2);
    // Up by at most 2 % at once, down freely; without any delay it fades.
    near(step(&mut q, 0.2, 0.0, 0.1), 0.22);
    near(step(&mut q, 0.2, 0.1, 0.0), 0.2 - 0.125 * 0.015 - 0.125);
    near(step(&mut q, 0.2, 0.0, 0.0), (0.2 - 0.125 * 0.015) * 0.98);
    near(step(&mut q, 1.0, 0.0, 1.0), 1.0);
    near(step(&mut q, 0.001, 1.0, 0.0), 0.0);
}

#[test]
fn a_burst_passes_and_idle_time_gives_the_allowance_back() {
    let mut q = pie("pie");
    let mut count = Count::default();
    for i in 0..400 {
        q.enqueue(Time::from_nanos(u64::from(i) * MS / 3), queued(i, 1000, 0), false, &mut count);
    }
    assert_eq!((count.dropped, q.waiting()), (0, 400), "133 ms of anything");
    for i in 400..1500 {
        q.enqueue(Time::from_nanos(u64::from(i) * MS / 3), queued(i, 1000, 0), false, &mut count);
    }
    assert!(count.dropped > 0 && q.allowance_s == 0.0);
    let end = Time::from_nanos(500 * MS);
    while q.dequeue(end, &mut count).is_some() {}
    // A day later, and not in a day's steps.
    q.catch_up(Time::from_nanos(86_400_000 * MS));
    assert_eq!((q.p, q.allowance_s), (0.0, 0.15));
    assert!(q.next_update > Time::from_nanos(86_400_000 * MS));
    assert!(q.next_update <= Time::from_nanos(86_400_015 * MS));
}

/// Mean and largest wait in seconds, and the share dropped, in the second half of a run with
/// 1.25 packets for every one that the link can send.
fn overload(config: &LinkConfig, ms: u64, flags: u8, change: Option<Rate>) -> Tally {
    let mut link = Link::new(config, RandomKey::from_seed(1)).unwrap();
    let mut tally = Tally { from: Time::from_nanos(ms / 2 * MS), ..Tally::default() };
    if let Some(rate) = change {
        link.change(Time::ZERO, &LinkChange::Rate(rate));
    }
    for i in 0..ms * 5 / 4 {
        let now = Time::from_nanos(i * MS * 4 / 5);
        while link.next_timeout() <= now {
            let at = link.next_timeout();
            while link.poll(at, &mut tally).is_some() {}
        }
        link.accept(now, Packet { flags, ..packet(i as u32, 1000) }, &mut tally);
    }
    tally
}

#[derive(Default)]
struct Tally {
    from: Time,
    offered: f64,
    dropped: f64,
    marked: f64,
    served: f64,
    wait_s: f64,
}
impl Meter<Packet> for Tally {
    fn offered(&mut self, now: Time, _p: &Packet) {
        self.offered += f64::from(now >= self.from);
    }
    fn dropped(&mut self, now: Time, _p: &Packet) {
        self.dropped += f64::from(now >= self.from);
    }
    fn marked(&mut self, now: Time, _p: &Packet) {
        self.marked += f64::from(now >= self.from);
    }
    fn served(&mut self, _p: &Packet, arrived: Time, start: Time, _end: Time) {
        if start >= self.from {
            self.served += 1.0;
            self.wait_s += start.since(arrived).as_secs_f64();
        }
    }
}

#[test]
fn under_constant_overload_the_wait_is_the_target() {
    let t = overload(&link(), 120_000, 0, None);
    let wait = t.wait_s / t.served;
    let share = t.dropped / t.offered;
    assert!((wait - 0.015).abs() < 0.001, "{wait}");
    assert!((share - 0.2).abs() < 0.005, "what does not fit: {share}");
    // Marks do not make unresponsive senders slower: beyond 10 % even ECT packets are dropped.
    let t = overload(&link(), 120_000, ect(), None);
    assert!((t.dropped / t.offered - 0.2).abs() < 0.01 && t.wait_s / t.served < 0.03);
}

#[test]
fn the_delay_follows_the_rate_and_a_trace() {
    // Half the rate from the start: the target is still a time, and 60 % must go.
    let mut slow = link();
    slow.changes = true;
    let t = overload(&slow, 60_000, 0, Some(Rate::from_bps(4_000_000)));
    assert!((t.wait_s / t.served - 0.015).abs() < 0.003, "{}", t.wait_s / t.served);
    assert!((t.dropped / t.offered - 0.6).abs() < 0.01, "{}", t.dropped / t.offered);
    // 1500 B in every millisecond and a half: as fast as the plain one, but the delay is measured by waits alone.
    let mut traced = link();
    let lines: String = (1..=1000).map(|i| format!("{}\n", i * 3 / 2)).collect();
    traced.trace = Some(Arc::new(Trace::parse(&lines).unwrap()));
    let t = overload(&traced, 60_000, 0, None);
    assert!((t.wait_s / t.served - 0.015).abs() < 0.005, "{}", t.wait_s / t.served);
}
