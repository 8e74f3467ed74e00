//! The loop, and thresholds that fit the path.

use super::super::emulation::{EmulationState, TcpEmulation};
use super::super::sender_state::SenderState;
use super::super::smoothing::{EpochHistory, SHIFTS};
use super::*;
use crate::Feedback;
use narrows_base::{Duration, Time};

/// A path with a one-way delay that the test sets; times in milliseconds.
struct Scenario {
    h: Hysteresis,
    now: f64,
    seq: u64,
    /// Between packets.
    gap: f64,
    /// Least round trip, half of it the way there.
    rtt: f64,
    /// Sender's clock minus the receiver's.
    clock: f64,
}

impl Scenario {
    fn new(rtt: f64, gap: f64) -> Scenario {
        let mut s = Scenario { h: Hysteresis::adaptive(), now: 5e6, seq: 0, gap, rtt, clock: -4e6 };
        s.run(4.0, 0.0);
        s
    }
    fn packet(&mut self, queued: f64) {
        self.now += self.gap;
        let at = |ms: f64| Time::from_secs_f64(ms * 1e-3);
        let arrival = Arrival::new(
            at(self.now),
            self.seq,
            at(self.now - self.rtt / 2.0 - queued + self.clock),
            1000,
        );
        self.seq += 1;
        let rtt = (self.rtt + queued) * 1e-3;
        let state = SenderState { srtt: rtt, deviation: 0.0, rtt, idle: false };
        self.h.observe(&arrival, &state, Some(self.gap * 1e-3));
    }
    /// So many RTTs (four packets at least) at this queueing delay.
    fn run(&mut self, rtts: f64, queued: f64) -> bool {
        for _ in 0..((rtts * (self.rtt + queued) / self.gap) as u64).max(4) {
            self.packet(queued);
        }
        self.h.is_down()
    }
    fn ms(&self) -> (f64, f64, f64) {
        let (d, r1, r2) = self.h.judged();
        let round = |x: f64| (x * 1e6).round() / 1e3;
        (round(d), round(r1), round(r2))
    }
}

#[test]
fn fixed_thresholds_keep_the_mode_between_them() {
    let mut s = Scenario::new(1.0, 10.0);
    s.h = Hysteresis::fixed(0.8, 1.2);
    for (rtt, down) in
        [(500.0, false), (1100.0, false), (1201.0, true), (900.0, true), (799.0, false)]
    {
        s.rtt = rtt;
        s.packet(0.0);
        assert_eq!(s.h.is_down(), down, "{rtt} ms");
    }
}

/// Reported smoothed RTT 125 ms; the last sample is above R2, then in between, then below R1.
#[test]
fn down_cuts_once_per_rtt_until_below_r1() {
    let mut m =
        TcpEmulation::new(2.0, EpochHistory::new(SHIFTS, false), Some(Hysteresis::fixed(0.8, 1.2)));
    let mut now = Time::ZERO;
    let mut seq = 0;
    let mut run = |m: &mut TcpEmulation, ms: u64, rtt: f64| {
        let mut min = m.cwnd;
        let mut cuts = 0;
        for _ in 0..ms {
            now += Duration::from_millis(1);
            m.on_arrival(&Arrival {
                now,
                seq,
                sent: now,
                bytes: 1000,
                marked: false,
                feedback: Feedback::of(&[0.125, 0.0, rtt]),
            });
            seq += 1;
            cuts += u32::from(m.cwnd < 0.6 * min);
            min = m.cwnd;
        }
        cuts
    };
    assert_eq!(run(&mut m, 400, 0.5), 0);
    let before = m.cwnd;
    assert_eq!(run(&mut m, 300, 1.1), 0, "between, from below: it grows");
    assert!(m.cwnd > before);
    // 500 ms hold four waits of 125 ms, and the packets between them.
    assert_eq!(run(&mut m, 500, 1.3), 3);
    assert_eq!(run(&mut m, 126, 1.0), 1, "between, from above: it is cut on");
    run(&mut m, 126, 0.7);
    let before = m.cwnd;
    assert_eq!(run(&mut m, 300, 0.7), 0);
    assert_eq!(m.state, EmulationState::Avoidance);
    assert!(m.cwnd > before);
}

/// 20 ms: three packets of 1 ms are more than 0.12 RTT. 600 ms: they are not.
#[test]
fn thresholds_fit_the_path() {
    for (rtt, gap, r1) in [(20.0, 1.0, 3.0), (600.0, 20.0, 72.0)] {
        let mut s = Scenario::new(rtt, gap);
        assert_eq!(s.ms(), (0.0, r1, 2.0 * r1));
        assert!(!s.run(3.0, 1.9 * r1), "{rtt} ms: between, from below");
        assert!(s.run(3.0, 2.1 * r1), "{rtt} ms: above R2");
        assert!(s.run(3.0, 1.1 * r1), "{rtt} ms: between, from above");
        assert!(!s.run(3.0, 0.9 * r1), "{rtt} ms: below R1");
    }
}

/// Delays that are random for every packet, up to the path's own, have no effect.
#[test]
fn a_jittery_path_is_not_a_queue() {
    let mut s = Scenario::new(20.0, 1.0);
    for i in 0..20_000_u64 {
        s.packet(((i * 7919) % 20) as f64);
        assert!(!s.h.is_down(), "packet {i}: {:?}", s.ms());
    }
}

/// The flow's own queue: the reduction halves the arrivals, and the queue is empty before the wait is over.
#[test]
fn a_delay_that_yields_is_ours() {
    let mut s = Scenario::new(100.0, 2.0);
    assert!(s.run(2.0, 60.0));
    assert!((s.h.drain() - 250.0).abs() < 1.0, "half of 500 per second, at once");
    let wait = s.h.begin_cut(0.16);
    assert!((wait - 0.64).abs() < 1e-9, "two RTTs and twice the longer of RTT and delay");
    s.gap = 4.0;
    s.run(1.0, 40.0);
    assert!(!s.h.has_yielded());
    s.run(2.0, 0.0);
    assert!(s.h.has_yielded());
    assert!(s.h.drain().is_infinite());
    assert!((s.h.cut(80.0, 0.1) - 40.0).abs() < 1e-9);
    assert_eq!(s.ms().1, 12.0, "no allowance is left");
}

#[test]
fn a_delay_that_does_not_yield_is_allowed_and_forgotten() {
    let mut s = Scenario::new(100.0, 2.0);
    assert!(s.run(2.0, 60.0));
    s.h.begin_cut(0.16);
    s.gap = 4.0;
    s.run(5.0, 55.0);
    // 500 per second arrived: 80 per RTT of 160 ms, not half of the window.
    assert!((s.h.cut(100.0, 0.16) - 80.0).abs() < 1.0);
    let (_, r1, r2) = s.ms();
    assert_eq!((r1, r2), (67.0, 79.0), "up by the 55 ms that stayed");
    assert!(!s.run(10.0, 70.0), "and so it stays on");
    // A new route: in half a minute its delay is the base.
    s.run(230.0, 55.0);
    let (delay, r1, _) = s.ms();
    assert_eq!(delay, 0.0);
    assert!(r1 < 45.0, "{r1}");
}

#[test]
fn beside_anothers_queue_a_loss_counts_once() {
    let mut s = Scenario::new(100.0, 2.0);
    s.seq += 1;
    s.run(1.0, 0.0);
    assert!(!s.h.wants_cut(), "without an allowance losses change nothing");
    s.run(2.0, 60.0);
    s.h.begin_cut(0.16);
    s.run(5.0, 60.0);
    s.h.cut(100.0, 0.16);
    s.seq += 1;
    s.packet(60.0);
    assert!(!s.h.wants_cut(), "it may be late");
    s.run(0.0, 60.0);
    assert!(s.h.wants_cut());
    s.h.begin_cut(0.16);
    s.h.cut(100.0, 0.16);
    assert!(!s.h.wants_cut());
    s.run(2.0, 10.0);
    s.seq += 1;
    s.run(1.0, 10.0);
    assert!(!s.h.wants_cut(), "nor far below the allowance");
}

#[test]
fn a_fifth_missing_is_congestion_and_a_tenth_is_not() {
    for (every, cut) in [(10, false), (3, true)] {
        let mut s = Scenario::new(20.0, 1.0);
        let mut wanted = false;
        for i in 0..4000 {
            s.seq += u64::from(i % every == 0);
            s.packet(0.0);
            wanted |= s.h.wants_cut();
        }
        assert_eq!(wanted, cut, "one in {every}");
    }
}
