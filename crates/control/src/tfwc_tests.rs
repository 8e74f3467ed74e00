//! TFWC on an ideal line: S1 section 6.1 and appendix C, and what S1 leaves open.

use super::*;
use crate::story::build_in;
use narrows_base::{Duration, Spec};
use proptest::prelude::*;
use std::collections::VecDeque;

/// A `Tfwc` from what a user would write.
fn tfwc(spec: &str) -> Tfwc {
    let spec = Spec::parse(spec).unwrap();
    let settings = Settings::read(&spec, CARD.params).unwrap();
    Tfwc::new(&settings, &Environment::default())
}

/// A line of constant round-trip time that loses the packets it is told to, and the endpoint's
/// bookkeeping: every arrival is reported, a packet's fate is known four numbers later.
struct Line {
    t: Tfwc,
    now: Time,
    rtt: Duration,
    next: u64,
    head: u64,
    unresolved: u64,
    /// Number, send time, arrived.
    pending: VecDeque<(u64, Time, bool)>,
    wire: VecDeque<(u64, Time)>,
    lost: Box<dyn FnMut(u64) -> bool>,
    /// Packets leave at least so far apart, as a link would space them.
    gap: Duration,
    free: Time,
    paced: Time,
}

impl Line {
    fn new(spec: &str, lost: impl FnMut(u64) -> bool + 'static) -> Line {
        Line {
            t: tfwc(spec),
            now: Time::ZERO,
            rtt: Duration::from_millis(100),
            next: 0,
            head: 0,
            unresolved: 0,
            pending: VecDeque::new(),
            wire: VecDeque::new(),
            lost: Box::new(lost),
            gap: Duration::ZERO,
            free: Time::ZERO,
            paced: Time::ZERO,
        }
    }
    fn flight(&self) -> u64 {
        self.next - self.head
    }
    fn send(&mut self) {
        loop {
            let allowance = self.t.allowance();
            if self.flight() >= allowance.window as u64 {
                return;
            }
            if let Some(rate) = allowance.rate {
                if self.now < self.paced {
                    return;
                }
                self.paced = self.now + Duration::from_secs_f64(8000.0 / rate.as_bps() as f64);
            }
            let number = self.next;
            self.next += 1;
            self.pending.push_back((number, self.now, false));
            if !(self.lost)(number) {
                self.free = self.free.max(self.now) + self.gap;
                self.wire.push_back((number, self.free.max(self.now) + self.rtt));
            }
            self.t.on_sent(&Sent {
                now: self.now,
                bytes: 1000,
                outstanding: self.flight(),
                retransmission: false,
                last_waiting: false,
            });
        }
    }
    /// The next thing that happens: a report, the timer or a packet's turn.
    fn step(&mut self) {
        self.send();
        let report = self.wire.front().map_or(Time::NEVER, |w| w.1);
        let paced = if self.t.spacing.is_some() { self.paced } else { Time::NEVER };
        let due = report.min(self.t.next_tick()).min(paced);
        assert!(!due.is_never(), "nothing will ever happen again");
        self.now = self.now.max(due);
        if due == report {
            let (number, _) = self.wire.pop_front().unwrap();
            self.report(number);
        } else if due == self.t.next_tick() {
            self.t.on_tick(self.now);
        }
    }
    fn report(&mut self, number: u64) {
        let at = (number - self.unresolved) as usize;
        self.pending[at].2 = true;
        let sent = self.pending[at].1;
        let prior_outstanding = self.flight();
        let head = self.head.max(number + 1);
        let newly_acked = head - self.head;
        self.head = head;
        while self.unresolved + 4 < self.head {
            let (seq, sent, arrived) = self.pending.pop_front().unwrap();
            self.unresolved += 1;
            let lost = !arrived;
            self.t.on_fate(&Fate { now: self.now, seq, sent, bytes: 1000, lost, marked: false });
        }
        let rtt = self.now.since(sent);
        self.t.on_ack(&Ack {
            now: self.now,
            rtt,
            rtt_unambiguous: true,
            srtt: rtt,
            rttvar: Duration::ZERO,
            min_rtt: self.rtt,
            arrived: None,
            newly_acked,
            newly_sacked: 0,
            newly_delivered: 1,
            duplicate: false,
            sent_since: 0,
            flight: self.flight(),
            outstanding: self.flight(),
            prior_outstanding,
            window_limited: true,
            in_repair: false,
            round: 0,
            round_start: false,
            marks: 0,
            rate: None,
        });
    }
    fn until(&mut self, packets: u64) -> &mut Line {
        while self.unresolved < packets {
            self.step();
        }
        self
    }
    fn closed(&self) -> Vec<f64> {
        self.t.intervals.closed().to_vec()
    }
    fn ali(&self) -> f64 {
        self.t.intervals.average()
    }
}

/// S1 figure 6.2 and appendix C.1.2: a loss in every N packets, and the history's fields are N.
#[test]
fn periodic_losses_fill_the_history() {
    for period in [100, 50, 20, 10] {
        let mut line = Line::new("tfwc", move |n| n > 0 && n % period == 0);
        line.until(20 * period + 5);
        assert_eq!(line.closed(), [period as f64; 8], "period {period}");
        assert_eq!(line.ali(), period as f64);
    }
}

/// S1 figure 6.5 and its case 3: one loss somewhere in every block of N.
#[test]
fn one_random_loss_per_block_averages_the_block() {
    for block in [100, 20, 10] {
        let luck = narrows_base::Luck::seed(3).named("block");
        let mut line =
            Line::new("tfwc", move |n| n % block == (luck.draw(n / block) * block as f64) as u64);
        let (mut sum, mut closed, mut events) = (0.0, 0.0, 0u64);
        line.until(20 * block);
        for _ in 0..2000 * block {
            let before = line.unresolved;
            line.step();
            if line.unresolved > before {
                sum += line.ali();
                if line.t.intervals.open() == 1.0 {
                    closed += line.closed()[0];
                    events += 1;
                }
            }
        }
        println!("block {block}: {} {}", sum / (2000.0 * block as f64), closed / events as f64);
    }
}
#[test]
fn other_patterns() {
    for (name, lost) in [
        ("adjacent", (|n: u64| n % 100 < 2 && n > 2) as fn(u64) -> bool),
        ("OX", |n| n % 100 == 1),
        ("OXOX", |n| n % 100 == 1 || n % 100 == 3),
        ("XO..OX", |n| n > 0 && (n % 100 == 0 || n % 100 == 99)),
        ("XO..X.O", |n| n > 0 && (n % 100 == 0 || n % 100 == 50)),
        ("alternate", |n| n > 10 && n % 2 == 0),
    ] {
        let mut line = Line::new("tfwc", lost);
        line.until(3000);
        println!(
            "{name}: {} {:?} {} {}",
            line.ali(),
            line.closed(),
            line.t.equation_window,
            line.t.cwnd
        );
    }
}
#[test]
fn windows() {
    for p in [100, 20, 10] {
        let mut line = Line::new("tfwc", move |n| n > 0 && n % p == 0);
        line.until(20 * p);
        let (mut low, mut high) = (f64::MAX, 0.0f64);
        for _ in 0..2 * p {
            line.step();
            low = low.min(line.t.equation_window);
            high = high.max(line.t.equation_window);
        }
        println!("{p}: {low} {high} {} {:?}", line.t.cwnd, line.t.allowance());
    }
}
