//! The two modes on a bottleneck of this file: a queue, a fixed delay, and somebody else's window. Here: how it begins.

mod losses;
mod opening;
mod path_changes;
mod queues;

use crate::scenario::{Scenario, build, build_in};
use crate::{Ack, CongestionEvent, Controller, Dispersion, Environment, Feedback};
use crate::{PacketOutcome, PathEvent, PathHints, RateSample, SlowStartRestart};
use narrows_base::random::mix;
use narrows_base::{Duration, Rate, Time};
use std::collections::VecDeque;

const PACKET: u32 = 1000;

/// A thousand packets per second, 50 ms there and back, drop-tail.
struct Bottleneck {
    controller: Box<dyn Controller>,
    per_second: f64,
    rtt: f64,
    room: usize,
    /// Of every so many of our packets one is lost by the radio; 0 none. They are lost so many in a row.
    radio: u64,
    burst: u64,
    /// … at random, from one of several streams.
    random: bool,
    stream: u64,
    /// Each answer is up to so many seconds late, in order; and the state of its draws.
    jitter: f64,
    draw: u64,
    /// Our host looks for answers so often.
    turns: f64,
    /// The other sender's window, packets; a packet each leaves when one is answered.
    other: usize,
    /// … which is ten Renos': it grows by ten packets per round trip, and a drop takes a twentieth of it.
    renos: bool,
    /// When we begin.
    begins: f64,
    /// The application writes so many packets every so many seconds; without it, always more than may leave.
    writes: Option<(u64, f64)>,
    /// Packets written and not sent; the deliveries until which what arrives is the application's rate.
    written: u64,
    limited_until: u64,
    window_limited: bool,
    now: f64,
    /// When the link has sent everything that waits.
    free: f64,
    /// Our packets on the way: number, when it left, when it is answered (or known to be lost), what
    /// became of it, what had been delivered when it left, and whether the application was the limit then.
    flying: VecDeque<(u64, f64, f64, What, u64, f64, bool)>,
    others: VecDeque<f64>,
    next: u64,
    delivered: u64,
    delivered_at: f64,
    round: u64,
    round_end: u64,
    last_sent: f64,
    base: f64,
    /// Queueing delays that our packets met, since asked last.
    delays: Vec<f64>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum What {
    Arrives,
    Radio,
    Dropped,
}

impl Bottleneck {
    fn new(hints: PathHints) -> Bottleneck {
        let environment = Environment { packet_bytes: PACKET, hints, ..Environment::default() };
        Bottleneck {
            controller: build_in("rrtp", &environment),
            per_second: 1000.0,
            rtt: 0.05,
            room: 50,
            radio: 0,
            burst: 1,
            random: false,
            stream: 0,
            jitter: 0.0,
            draw: 1,
            turns: 1e-4,
            other: 0,
            renos: false,
            begins: 0.0,
            writes: None,
            written: 0,
            limited_until: 0,
            window_limited: true,
            now: 0.0,
            free: 0.0,
            flying: VecDeque::new(),
            others: VecDeque::new(),
            next: 0,
            delivered: 0,
            delivered_at: 0.0,
            round: 0,
            round_end: 0,
            last_sent: -1.0,
            base: f64::INFINITY,
            delays: Vec::new(),
        }
    }
    fn at(s: f64) -> Time {
        Time::from_secs_f64(s)
    }
    /// A packet enters the queue: when it is answered; `None` if there is no room.
    fn enter(&mut self) -> Option<f64> {
        let waits = (self.free - self.now).max(0.0);
        if waits * self.per_second > self.room as f64 {
            return None;
        }
        self.free = self.now.max(self.free) + 1.0 / self.per_second;
        Some(self.free + self.rtt)
    }
    fn watch(&self, name: &str) -> f64 {
        let mut value = f64::NAN;
        self.controller.watch(&mut |n, x| {
            if n == name {
                value = x;
            }
        });
        value
    }
    fn default_mode(&self) -> bool {
        self.watch("rrtp_state") == 1.0
    }
    fn competitive(&self) -> bool {
        self.watch("rrtp_state") == 2.0
    }
    fn radio_loses(&self) -> bool {
        let run = self.next / self.burst;
        let draw =
            if self.random { mix(run + 1000 * self.radio + (self.stream << 32)) } else { run };
        self.radio > 0 && draw % self.radio == 7 % self.radio
    }
    fn send_what_may_leave(&mut self) {
        loop {
            let a = self.controller.send_limits();
            let gap = a.pacing_rate.map_or(0.0, |r| f64::from(PACKET) * 8.0 / r.as_bps() as f64);
            if (self.flying.len() as f64) >= a.cwnd.floor() {
                self.window_limited = true;
                return;
            }
            if self.now < self.last_sent + gap {
                return;
            }
            if self.writes.is_some() {
                if self.written == 0 {
                    self.window_limited = false;
                    self.limited_until = self.delivered + (self.flying.len() as u64).max(1);
                    return;
                }
                self.written -= 1;
            }
            // A step late costs no rate.
            self.last_sent = (self.last_sent + gap).max(self.now - 1e-3);
            let delay = (self.free - self.now).max(0.0);
            let (what, due) = match self.enter() {
                None => (What::Dropped, self.free + self.rtt),
                Some(due) if self.radio_loses() => (What::Radio, due),
                Some(due) => (What::Arrives, due),
            };
            self.draw = self.draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let late = self.jitter * (self.draw >> 11) as f64 / (1u64 << 53) as f64;
            let due = (due + late).max(self.flying.back().map_or(0.0, |p| p.2));
            self.delays.push(delay);
            let stamp = (self.delivered, self.delivered_at);
            let limited = self.delivered < self.limited_until;
            self.flying.push_back((self.next, self.now, due, what, stamp.0, stamp.1, limited));
            self.next += 1;
        }
    }
    fn answer(&mut self) {
        while self.flying.front().is_some_and(|p| p.2 <= self.now) {
            let Some((seq, sent, _, what, prior, prior_at, limited)) = self.flying.pop_front()
            else {
                return;
            };
            let lost = what != What::Arrives;
            self.controller.on_packet_outcome(&PacketOutcome {
                now: Self::at(self.now),
                seq,
                sent: Self::at(sent),
                bytes: PACKET,
                lost,
                marked: false,
                radio: false,
            });
            if lost {
                continue;
            }
            self.delivered += 1;
            self.delivered_at = self.now;
            let rtt = self.now - sent;
            self.base = self.base.min(rtt);
            let round_start = seq >= self.round_end;
            if round_start {
                self.round += 1;
                self.round_end = self.next;
            }
            let flight = self.flying.len() as u64;
            self.controller.on_ack(&Ack {
                now: Self::at(self.now),
                rtt: Duration::from_secs_f64(rtt),
                rtt_unambiguous: true,
                srtt: Duration::from_secs_f64(rtt),
                rttvar: Duration::ZERO,
                min_rtt: Duration::from_secs_f64(self.base),
                arrived: None,
                forward_delay: None,
                newly_acked: 1,
                counted: 1,
                newly_sacked: 0,
                newly_delivered: 1,
                duplicate: false,
                sent_since: flight,
                flight,
                outstanding: flight,
                prior_outstanding: flight + 1,
                window_limited: self.window_limited,
                in_recovery: false,
                round: self.round,
                round_start,
                marks: 0,
                rate: (self.now - prior_at >= self.base && prior_at > 0.0).then(|| RateSample {
                    delivered: self.delivered - prior,
                    interval: Duration::from_secs_f64(self.now - prior_at),
                    prior_delivered: prior,
                    total_delivered: self.delivered,
                    app_limited: limited,
                }),
                feedback: Feedback::NONE,
            });
        }
    }
    /// Runs to then, in steps of a tenth of a millisecond; packets delivered per second.
    fn run(&mut self, until: f64) -> f64 {
        let (from, before) = (self.now, self.delivered);
        self.delays.clear();
        while self.now < until {
            self.now += 1e-4;
            if self.now % self.turns < 1e-4 {
                self.answer();
            }
            while self.others.front().is_some_and(|due| *due <= self.now) {
                self.others.pop_front();
            }
            while self.others.len() < self.other {
                // Whatever is dropped is sent again a little later.
                let due = self.enter();
                if due.is_none() && self.renos {
                    self.other -= self.other / 20;
                }
                self.others.push_back(due.unwrap_or(self.now + 0.01));
            }
            if self.renos && self.now % 0.09 < 1e-4 {
                self.other += 10;
            }
            if let Some((packets, every)) = self.writes
                && self.now % every < 1e-4
            {
                self.written += packets;
            }
            if self.now >= self.begins {
                self.send_what_may_leave();
            }
        }
        (self.delivered - before) as f64 / (self.now - from)
    }
    /// So many packets were lost, and nothing arrived meanwhile.
    fn silence(&mut self, packets: u64) {
        let (now, sent) = (Self::at(self.now), Self::at(self.now - 0.3));
        for seq in self.next..self.next + packets {
            let (bytes, lost, marked, radio) = (PACKET, true, false, false);
            let outcome = PacketOutcome { now, seq, sent, bytes, lost, marked, radio };
            self.controller.on_packet_outcome(&outcome);
        }
        self.controller.on_congestion_event(&restart(now));
    }
    fn mean_delay(&self) -> f64 {
        self.delays.iter().sum::<f64>() / self.delays.len() as f64
    }
}

fn told(bps: u64) -> PathHints {
    let rtt = Some(Duration::from_millis(50));
    PathHints { rate: Some(Rate::from_bps(bps)), rtt, loss: None }
}

fn restart(now: Time) -> CongestionEvent {
    let (min_rtt, srtt) = (Duration::from_millis(50), Duration::from_millis(55));
    let (flight, timeout, backoffs) = (400, true, 1);
    let restart = SlowStartRestart { now, flight, timeout, backoffs, min_rtt, srtt };
    CongestionEvent::SlowStartRestart(restart)
}

#[test]
fn the_first_flights_spacing_saves_the_search() {
    let mut b = Bottleneck::new(PathHints::default());
    // A round trip for four packets; the next one carries what the link holds.
    b.run(0.05);
    assert_eq!((b.next, b.delivered), (4, 0));
    b.run(0.11);
    let rate = b.run(0.2);
    assert!(rate > 950.0, "{rate}");
}

#[test]
fn what_was_told_is_sent_from_the_first_packet_on() {
    let mut b = Bottleneck::new(told(8_000_000));
    b.run(0.0502);
    assert!(b.next >= 50, "{} packets left in the first round trip", b.next);
    assert!(b.run(5.0) > 980.0);
    // Eight times too much and an eighth of what there is are found out.
    for bps in [64_000_000, 1_000_000] {
        let mut b = Bottleneck::new(told(bps));
        b.run(5.0);
        assert!(b.run(10.0) > 970.0, "{bps}");
        assert!(b.default_mode() && b.mean_delay() < 0.008, "{bps}: {}", b.mean_delay());
    }
}

/// Four packets come in two looks, so that their spacing is no rate or far too high a one.
#[test]
fn a_train_finds_the_rate_where_a_flight_comes_at_once() {
    for rtt in [50.0e-3, 50.05e-3, 50.1e-3] {
        let mut b = Bottleneck::new(PathHints::default());
        (b.per_second, b.room, b.turns, b.rtt) = (20_000.0, 1000, 0.2e-3, rtt);
        // The flight, the train, the train that verifies it, and a little more: doubling from four
        // reaches 256.
        b.run(0.3);
        let window = b.watch("own_window");
        assert!((500.0..1300.0).contains(&window), "{rtt}: {window}");
        let reached = b.run(0.5);
        assert!(reached > 0.7 * 20_000.0, "{rtt}: {reached}");
        assert!(b.mean_delay() < 0.02, "{rtt}: {}", b.mean_delay());
    }
}

/// Three packets told of by one report and a fourth just after: no rate, but a fast path.
#[test]
fn a_flight_that_comes_at_once_is_followed_by_a_train() {
    let mut rrtp = build("rrtp");
    let mut scenario = Scenario::new(build("reno"));
    for (seq, now) in [(0, 50.0e-3), (1, 50.0e-3), (2, 50.0e-3), (3, 50.1e-3)] {
        let now = Bottleneck::at(now);
        let (bytes, lost, marked, radio) = (PACKET, false, false, false);
        rrtp.on_packet_outcome(&PacketOutcome {
            now,
            seq,
            sent: Time::ZERO,
            bytes,
            lost,
            marked,
            radio,
        });
        rrtp.on_ack(&Ack { outstanding: 3 - seq, ..scenario.ack(1, false) });
    }
    let a = rrtp.send_limits();
    assert!(a.cwnd == 64.0 && a.pacing_rate.is_some_and(|r| r.as_bps() > 1_000_000_000), "{a:?}");
}

/// A climb by quarters ends with a queue of a tenth of the product, and the question needs a little
/// more: without it, one lost packet in a thousand held this path at nine tenths for seconds.
#[test]
fn a_queue_too_short_to_ask_with_grows_until_it_suffices() {
    for radio in [0, 300, 1000] {
        for per_second in [9_000.0, 10_000.0, 11_000.0, 12_500.0] {
            let mut b = Bottleneck::new(PathHints::default());
            (b.per_second, b.room, b.turns, b.radio) = (per_second, 1000, 0.2e-3, radio);
            b.run(2.0);
            assert!(b.default_mode(), "{radio} {per_second}");
        }
    }
}

/// One of the four is lost. What came behind it shows the rate as soon as the loss is known, which no acknowledgement
/// may follow for a round trip: on 1.5 Mbit/s and 500 ms the next flights of four packets took seconds.
#[test]
fn a_first_flight_that_lost_a_packet_tells_the_rate() {
    let mut rrtp = build("rrtp");
    let mut scenario = Scenario::new(build("reno"));
    let ack = |now: f64| {
        let rtt = Duration::from_secs_f64(now);
        Ack { now: Bottleneck::at(now), rtt, outstanding: 1, ..scenario.ack(1, false) }
    };
    let acks = [0.516, 0.524, 0.532].map(ack);
    let told = |rrtp: &mut dyn Controller, seq, now: f64| {
        let (now, sent) = (Bottleneck::at(now), Time::ZERO);
        let (bytes, lost, marked, radio) = (1500, seq == 1, false, false);
        rrtp.on_packet_outcome(&PacketOutcome { now, seq, sent, bytes, lost, marked, radio });
    };
    told(&mut *rrtp, 0, 0.516);
    acks.iter().for_each(|ack| rrtp.on_ack(ack));
    (1..4).for_each(|seq| told(&mut *rrtp, seq, 0.6));
    // Two packets each 8 ms and a round trip of 516 ms.
    let window = rrtp.send_limits().cwnd;
    assert!(window > 60.0 && window < 70.0, "{window}");
}

/// Each report of a flight that did not leave together would set a packet free, and the next flight
/// would not either.
#[test]
fn a_flight_that_tells_nothing_is_followed_by_one_that_leaves_together() {
    let mut rrtp = build("rrtp");
    let mut scenario = Scenario::new(build("reno"));
    let mut windows = Vec::new();
    for outstanding in [3, 2, 1, 0] {
        let ack = Ack { outstanding, ..scenario.ack(1, false) };
        rrtp.on_ack(&ack);
        windows.push(rrtp.send_limits().cwnd);
    }
    assert_eq!(windows, [1.0, 1.0, 4.0, 4.0]);
}

/// What the startup's packets told can be forged by whoever answered them, so no more than ten packets leave
/// by it, at that rate, until the first acknowledgement. Then it replaces what the first flight would have
/// told: a slow path's window is known, a faster one is asked by a train at that rate, and where hosts cannot
/// tell them apart at once.
#[test]
fn what_a_connections_opening_tells_counts_from_the_first_acknowledgement_on() {
    let spaced = |rtt_ms, took_us| {
        let environment = Environment { packet_bytes: PACKET, ..Environment::default() };
        let mut controller = build_in("rrtp", &environment);
        assert_eq!(controller.send_limits().cwnd, 4.0);
        let dispersion = Dispersion {
            rtt: Duration::from_millis(rtt_ms),
            bits: 12_000.0,
            took: Duration::from_micros(took_us),
        };
        controller.on_path_event(Time::ZERO, &PathEvent::Dispersion(dispersion));
        controller
    };
    let allowed = |controller: &dyn Controller| {
        let a = controller.send_limits();
        (a.cwnd, a.pacing_rate.map_or(0, |r| r.as_bps()))
    };
    let after = |rtt_ms, took_us| {
        let mut controller = spaced(rtt_ms, took_us);
        let mut scenario = Scenario::new(build("reno"));
        let rtt = Duration::from_millis(rtt_ms);
        controller.on_ack(&Ack { rtt, ..scenario.ack(1, false) });
        allowed(&*controller)
    };
    assert_eq!(allowed(&*spaced(500, 12_000)), (10.0, 1_000_000));
    assert_eq!(allowed(&*spaced(500, 6_000)), (10.0, 2_000_000));
    assert_eq!(allowed(&*spaced(50, 499)).0, 10.0);
    // What fits into that is sent at once: 5 ms at 125 packets a second and a first flight are.
    assert_eq!(allowed(&*spaced(5, 12_000)).0, 4.0);
    // 1 Mbit/s is 125 packets a second: 62.5 in half a second, and a quarter faster than that.
    let (window, rate) = after(500, 12_000);
    assert!((window - 62.5).abs() < 1e-6, "{window}");
    assert!((rate as f64 / 1.25e6 - 1.0).abs() < 1e-6, "{rate}");
    assert_eq!(after(500, 6_000), (64.0, 2_000_000));
    let (window, rate) = after(50, 499);
    assert!(window == 64.0 && rate > 1_000_000_000, "{window} {rate}");
    // No window falls below the first flight.
    assert_eq!(allowed(&*spaced(1, 12_000)).0, 4.0);
}
