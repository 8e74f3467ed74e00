use super::*;
use crate::config::LinkConfig;
use crate::queue::tests::{Count, ect, queued};
use narrows_base::{Duration, RandomKey, Spec};

const SECOND: u64 = 1_000_000_000;

/// A link of Choi 2006 with 10 ms of delay.
fn ahead(mbps: f64) -> LinkAhead {
    let rate = Rate::from_bps_f64(mbps * 1e6);
    LinkAhead::of(&LinkConfig::plain(rate, Duration::from_millis(10)))
}

fn red(text: &str, limit: QueueLimit, mbps: f64) -> Red {
    let spec = Spec::parse(text).unwrap();
    let settings = Settings::read(&spec, RED.params).unwrap();
    check(&settings).unwrap();
    Red::new(&settings, limit, ahead(mbps), RandomKey::from_seed(3).stream())
}

/// Distances between strikes in arrivals, without the first few, over `n` arrivals of `size` bytes. `hold` packets
/// wait, and the average starts there.
fn distances(red: &mut Red, hold: usize, n: u32, size: u16, flags: u8) -> Vec<u32> {
    for i in 0..hold as u32 {
        red.line.fifo.push(Time::ZERO, queued(i, size, 0));
    }
    red.line.average = red.line.queue();
    red.line.idle_since = None;
    let mut out = Vec::new();
    let mut since = 0;
    for i in 0..n {
        let mut count = Count::default();
        let now = Time::from_nanos(u64::from(i) * 1000);
        let p = queued(i, size, flags);
        if red.enqueue(now, p, false, &mut count) {
            red.dequeue(now, &mut count);
        }
        since += 1;
        if count.dropped + count.marked > 0 {
            out.push(since);
            since = 0;
        }
    }
    out.split_off(2)
}

fn mean(x: &[u32]) -> f64 {
    x.iter().map(|x| f64::from(*x)).sum::<f64>() / x.len() as f64
}

#[test]
fn the_weight_follows_ns2_and_without_its_floor_s1() {
    // Values of 1 - exp(-1 / (10 rtt ptc)) by hand, 1000 B packets, 10 ms.
    for (mbps, floor, none) in [
        (0.1, 0.0292, 0.0292),
        (1.0, 0.00797, 0.0147),
        (5.0, 0.00160, 0.00459),
        (20.0, 0.00040, 0.00128),
    ] {
        let w = |text| red(text, QueueLimit::Unlimited, mbps).law.weight;
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < 0.006;
        assert!(near(w("red(mean-packet=1000B)"), floor), "{mbps}");
        assert!(near(w("red(mean-packet=1000B,rtt-floor=0s)"), none), "{mbps}");
    }
    // The scripts of Choi 2006 left the mean packet at 500 B.
    for (mbps, w) in [(0.1, 0.0263), (1.0, 0.00399), (5.0, 0.00080), (20.0, 0.00020)] {
        let law = red("red", QueueLimit::Unlimited, mbps).law;
        assert!((law.weight / w - 1.0).abs() < 0.006, "{mbps}: {}", law.weight);
    }
    // 1 Mbit/s is 125 packets per second; the remaining cases are time constants of 1 s and of 100 ms.
    let w = |text| red(text, QueueLimit::Unlimited, 1.0).law.weight;
    assert!((w("red(weight=0,mean-packet=1000B)") - 0.007_968).abs() < 1e-6);
    assert!((w("red(weight=-2,mean-packet=1000B)") - 0.076_884).abs() < 1e-6);
    assert_eq!(w("red(weight=0.002)"), 0.002);
}

#[test]
fn thresholds_follow_from_the_target_delay_and_the_rate() {
    let mut red = red("red(mean-packet=1000B)", QueueLimit::Unlimited, 20.0);
    // 5 ms of 2500 packets/s are 12.5 packets; half of them, and three times that.
    assert_eq!((red.law.min, red.law.max), (6.25, 18.75));
    let weight = red.law.weight;
    red.change_rate(Time::ZERO, Rate::from_bps(1_000_000));
    assert_eq!((red.law.min, red.law.max), (5.0, 15.0), "never below 5");
    assert_eq!(red.law.weight, weight, "the weight stays");
    let given = |text| {
        let law = self::red(text, QueueLimit::Unlimited, 20.0).law;
        (law.min, law.max)
    };
    assert_eq!(given("red(min=4)"), (4.0, 12.0));
    assert_eq!(given("red(max=12)"), (4.0, 12.0));
    assert_eq!(given("red(min=4,max=6)"), (4.0, 6.0));
}

#[test]
fn average_after_a_step_is_exponential_and_decays_idle() {
    let mut red = red("red(weight=0.01,mean-packet=1000B)", QueueLimit::Unlimited, 8.0);
    for i in 0..4 {
        red.line.fifo.push(Time::ZERO, queued(i, 1000, 0));
    }
    red.line.idle_since = None;
    for i in 0..100 {
        red.enqueue(Time::ZERO, queued(i, 1000, 0), false, &mut ());
        red.dequeue(Time::ZERO, &mut ());
    }
    let expected = 4.0 * (1.0 - (0..100).fold(1.0, |a, _| a * 0.99));
    assert!((red.line.average - expected).abs() < 1e-9, "{}", red.line.average);
    while red.dequeue(Time::from_nanos(SECOND), &mut ()).is_some() {}
    // 1000 packets per second: 250 of them in 250.9 ms, then the arrival itself finds 0.
    red.pass(Time::from_nanos(SECOND + 250_900_000), queued(0, 1000, 0), &mut ());
    let decayed = expected * (0..251).fold(1.0, |a, _| a * 0.99);
    assert!((red.line.average - decayed).abs() < 1e-9, "{} {decayed}", red.line.average);
}

#[test]
fn distances_between_drops_are_uniform() {
    // p_b = 0.1 * (20 - 10) / (30 - 10) = 1/20. Without waiting the distance is uniform on
    // 1..=19, with waiting on 20..=39.
    for (wait, low, high) in [("off", 1, 19), ("on", 20, 39)] {
        let text = format!("red(min=10,max=30,wait={wait})");
        let d = distances(&mut red(&text, QueueLimit::Unlimited, 8.0), 20, 400_000, 1000, 0);
        assert_eq!((d.iter().min(), d.iter().max()), (Some(&low), Some(&high)), "{wait}");
        assert!((mean(&d) / (f64::from(low + high) / 2.0) - 1.0).abs() < 0.02, "{}", mean(&d));
        for value in low..=high {
            let share = d.iter().filter(|x| **x == value).count() as f64 / d.len() as f64;
            let even = 1.0 / f64::from(high - low + 1);
            assert!((share / even - 1.0).abs() < 0.15, "{wait}: {value} has {share}, not {even}");
        }
    }
}

#[test]
fn gentle_rises_to_one_at_twice_the_maximum() {
    let law = |text| red(text, QueueLimit::Unlimited, 8.0).law;
    let gentle = law("red(min=10,max=30,max-p=0.1)");
    let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
    assert!(close(gentle.by_average(10.0, 0.1), 0.0));
    assert!(close(gentle.by_average(30.0, 0.1), 0.1));
    assert!(close(gentle.by_average(45.0, 0.1), 0.55));
    assert!(close(gentle.by_average(60.0, 0.1), 1.0));
    let classic = law("red(min=10,max=30,max-p=0.1,gentle=off)");
    assert!(close(classic.by_average(29.999_999, 0.1), 0.099_999_995));
    assert_eq!(classic.by_average(30.0, 0.1), 1.0);
    // At 45 of 10..30 with gentle, waiting: the second arrival after a drop has passed 1.
    let mut at45 = red("red(min=10,max=30)", QueueLimit::Unlimited, 8.0);
    let d = distances(&mut at45, 45, 20_000, 1000, 0);
    assert_eq!((d.iter().min(), d.iter().max()), (Some(&2), Some(&3)));
    let second = d.iter().filter(|x| **x == 2).count() as f64 / d.len() as f64;
    assert!((second - 0.55 / 0.9).abs() < 0.02, "{second}");
}

#[test]
fn byte_mode_drops_by_size() {
    // Half and double the mean packet; 40 kB wait either way: average 40 of 20..60, p_b = 1/20, counted in bytes, so
    // the distance in bytes is the same as for mean packets.
    let text = "red(min=20,max=60,mode=bytes,mean-packet=1000B,wait=off)";
    let d = |size: u16| {
        let mut red = red(text, QueueLimit::Unlimited, 8.0);
        let d = distances(&mut red, 40_000 / usize::from(size), 200_000, size, 0);
        assert!((red.line.average - 40.0).abs() < 1e-6, "{}", red.line.average);
        1.0 / mean(&d)
    };
    let small = d(500);
    let one = d(1000);
    let large = d(2000);
    assert!((one * 10.0 - 1.0).abs() < 0.02, "uniform on 1..=19: {one}");
    assert!(small < 0.56 * one && large > 1.6 * one, "{small} {one} {large}");
    // In packet mode the size has no effect.
    let d = |size: u16| {
        let mut red = red("red(min=20,max=60,wait=off)", QueueLimit::Unlimited, 8.0);
        distances(&mut red, 40, 20_000, size, 0)
    };
    assert_eq!(d(500), d(2000));
}

#[test]
fn adaptation_moves_max_p_to_hold_the_average_midway() {
    let text = "red(min=10,max=30,adaptive=on)";
    let after = |average: f64, steps: u64| {
        let mut red = red(text, QueueLimit::Unlimited, 8.0);
        red.line.average = average;
        for i in 1..=steps {
            red.line.average = average;
            red.line.idle_since = None;
            red.adapt(Time::from_nanos(i * SECOND * 51 / 100));
        }
        red.max_p
    };
    assert!((after(25.0, 1) - 0.11).abs() < 1e-12, "above 22: by 0.01");
    assert!((after(15.0, 1) - 0.09).abs() < 1e-12, "below 18: to nine tenths");
    assert_eq!(after(20.0, 10), 0.1, "midway it stays");
    assert!((0.5..0.51).contains(&after(25.0, 200)), "to about a half");
    assert!((0.009..=0.01).contains(&after(15.0, 200)), "to about a hundredth");
    let mut red = red(text, QueueLimit::Unlimited, 8.0);
    for i in 1..50 {
        red.line.average = 25.0;
        red.line.idle_since = None;
        red.adapt(Time::from_nanos(i * SECOND / 100));
    }
    assert_eq!(red.max_p, 0.1, "not within half a second");
}

#[test]
fn ecn_capable_packets_are_marked_instead_of_dropped() {
    let run = |text: &str, hold: usize, flags: u8| {
        let mut red = red(text, QueueLimit::Unlimited, 8.0);
        for i in 0..hold as u32 {
            red.line.fifo.push(Time::ZERO, queued(i, 1000, 0));
        }
        red.line.average = hold as f64;
        red.line.idle_since = None;
        let mut count = Count::default();
        for i in 0..10_000 {
            let p = queued(i, 1000, flags);
            if red.enqueue(Time::ZERO, p, false, &mut count) {
                red.dequeue(Time::ZERO, &mut count);
            }
        }
        (count.dropped, count.marked)
    };
    let text = "red(min=10,max=30)";
    let (dropped, marked) = run(text, 20, ect());
    assert!(dropped == 0 && marked > 300, "{dropped} {marked}");
    assert_eq!(run(text, 20, 0), (marked, 0), "the same ones are dropped");
    assert_eq!(run("red(min=10,max=30,ecn=off)", 20, ect()), (marked, 0));
    // Beyond mark-p even ECT packets are dropped; with mark-p=1 only where p is 1.
    let (dropped, marked) = run(text, 40, ect());
    // p_b = 0.4: the third arrival after a drop goes with probability 1/2, else the fourth.
    assert!((2_800..2_900).contains(&dropped) && marked == 0, "{dropped} {marked}");
    assert_eq!(run("red(min=10,max=30,mark-p=1)", 40, ect()), (0, dropped));
    let (dropped, _) = run("red(min=10,max=30,mark-p=1)", 70, ect());
    assert!(dropped > 9000, "{dropped}");
}

#[test]
fn random_victim_is_any_waiting_packet_or_the_arrival() {
    let mut red = red("red(min=100,max=300,victim=random)", QueueLimit::Packets(9), 8.0);
    let mut count = Count::default();
    for i in 0..10_000 {
        red.enqueue(Time::ZERO, queued(i, 1000, 0), false, &mut count);
        assert!(red.waiting() <= 9);
    }
    // Each arrival drops exactly one packet; a tenth of the drops are arrivals.
    assert_eq!((count.dropped, red.waiting()), (9_991, 9));
    let last: Vec<u64> = (0..9)
        .filter_map(|_| red.dequeue(Time::ZERO, &mut ()))
        .map(|p| u64::from(p.1.number()))
        .collect();
    assert!(last.windows(2).all(|w| w[0] < w[1]), "in order: {last:?}");
    assert!(last[0] > 9_800, "the oldest do not stay: {last:?}");
}

#[test]
fn a_cautious_queue_spares_arrivals_after_it_has_emptied() {
    let drops = |text| {
        let mut red = red(text, QueueLimit::Unlimited, 0.8);
        red.line.average = 25.0;
        red.line.idle_since = None;
        let mut count = Count::default();
        for i in 0..200 {
            red.enqueue(Time::ZERO, queued(i, 1000, 0), false, &mut count);
            if red.waiting() > 5 {
                red.dequeue(Time::ZERO, &mut count);
            }
            red.line.average = 25.0;
        }
        count.dropped
    };
    // 200 packets/s: 10 in 50 ms, so the queue may be at (1-w)^10 = 0.95 of the average.
    assert_eq!(drops("red(min=10,max=30,weight=0.005,cautious=on)"), 0);
    assert!(drops("red(min=10,max=30,weight=0.005)") > 5);
}
