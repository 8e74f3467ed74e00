//! TCP Vegas: Brakmo and Peterson, IEEE JSAC 13(8), 1995, as ns-2.35 runs it (`tcp-vegas.cc`).
//!
//! Measures delay: once per round trip it estimates how many of its packets are queued. Controls the window so that
//! this number is between `alpha` and `beta`. A loss reduces it by a quarter, decided segment by segment.
//!
//! All reductions are made in `on_loss`, because the rule refers to the lost segment, not to an episode: was the window
//! already reduced since it was sent? So `on_recovery_start` has no effect. The fine-grained retransmission timer is
//! recovery `vegas`, in the crate `sim`.
//!
//! Kept from ns-2 because the reference numbers contain it: the backlog is rounded to a whole packet, and windows are
//! reduced as whole segments. A round of one packet resets the base RTT. The RTT of the ACK that ends a round counts in
//! the next. With preset `ns2` the start is ns-2's, too: the SYN's round is the first, and only every other one
//! doubles. One packet follows, and its ACK sets the initial window.
//!
//! Departures from ns-2:
//!
//! - RTTs of ambiguous ACKs are left out. In ns-2, an ACK that fills a hole counts the age of the newest segment it
//!   covers.
//! - A round without samples does not change the base RTT. In ns-2, such a round sets it to the time between two ACKs,
//!   a packet's service time, and Vegas stays at two packets: at 10% loss that halves its goodput, see
//!   docs/validation.md.
//! - The window never falls below 1. In ns-2, duplicates after a timeout may set it to 0.
//! - A reduction leaves slow start at once. In ns-2, this requires a fourth duplicate.

use crate::linux;
use crate::undo::BeforeLosses;
use crate::{
    Ack, CongestionEvent, Controller, Dialect, Environment, LossFoundBy, RecoveryCause, SendLimits,
    variables,
};
use crate::{Sent, bounded};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, Settings, Status, Time, Variable};

/// Name, parameters and source.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "vegas",
    summary: "keeps one to three of its packets queued, measured by delay",
    source: "Brakmo and Peterson 1995, as in ns-2.35",
    senses: "delay, loss",
    sets: "window: +1 or -1 segment per RTT, cut by a quarter per loss",
    params: &[
        Param {
            name: "alpha",
            help: "grow while fewer packets than this are queued",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 10_000.0, default: 1.0 },
            origin: "ns-2 v_alpha_; Linux has 2",
        },
        Param {
            name: "beta",
            help: "shrink while more packets than this are queued",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 10_000.0, default: 3.0 },
            origin: "ns-2 v_beta_; Linux has 4",
        },
        Param {
            name: "gamma",
            help: "leave slow start once more packets than this are queued",
            kind: ParamKind::Number { unit: Unit::Packets, min: 0.0, max: 10_000.0, default: 1.0 },
            origin: "ns-2 v_gamma_",
        },
        Param {
            name: "cut",
            help: "share of the window given up at the first loss of a segment",
            kind: ParamKind::Number { unit: Unit::Fraction, min: 0.01, max: 0.99, default: 0.25 },
            origin: "ns-2 (1/4); 1/2 in the ST-PD thesis, chapter 4",
        },
        crate::linux::like(&["preset", "ns2", "linux"]),
    ],
    status: Status::Validated(
        "ns-2.35 Vegas up to 1% loss; differs at 10%, where ns-2's errs (docs/validation.md)",
    ),
};

/// The variables that it reports over time.
pub const VARIABLES: &[Variable] = &[variables::BACKLOG, variables::MIN_RTT];

/// Builds the controller.
pub fn build(settings: &Settings, environment: &Environment) -> Box<dyn Controller> {
    if linux::is_meant(settings, environment) {
        let or = |name: &str, usual: u64| {
            if settings.given(name) { settings.steps(name, 1) } else { usual }
        };
        return linux::vegas::build(
            linux::vegas::VegasThresholds {
                alpha: or("alpha", 2),
                beta: or("beta", 4),
                gamma: or("gamma", 1),
            },
            environment,
        );
    }
    // ns-2 sends one packet after the SYN and sets `initial_window` before the next ACK's growth.
    let after_syn = environment.dialect == Dialect::Ns2;
    let initial_window = bounded(environment.initial_window, 1.0);
    Box::new(Vegas {
        alpha: settings.number("alpha"),
        beta: settings.number("beta"),
        gamma: settings.number("gamma"),
        cut: settings.number("cut"),
        cwnd: if after_syn { 1.0 } else { initial_window },
        first_window: after_syn.then_some(initial_window),
        ssthresh: environment.initial_ssthresh,
        increment: 0.0,
        grow_this_round: !after_syn,
        changed: None,
        changed_before: None,
        before: BeforeLosses::default(),
        sequence: Sequence::default(),
        round: VegasRound::default(),
        base_rtt: f64::INFINITY,
        backlog: 0,
    })
}

#[derive(Clone, Debug)]
struct Vegas {
    alpha: f64,
    beta: f64,
    gamma: f64,
    cut: f64,
    cwnd: f64,
    /// The window to set at the first ACK, with preset `ns2`.
    first_window: Option<f64>,
    ssthresh: f64,
    /// Added to the window by every ACK of this round (`v_incr_`).
    increment: f64,
    /// Slow start doubles in every other round only (`v_inc_flag_`).
    grow_this_round: bool,
    /// Time of the last reduction of the window (`t_cwnd_changed_`); never at first.
    changed: Option<Time>,
    /// Time of the reduction before it, in case the last one is undone.
    changed_before: Option<Time>,
    before: BeforeLosses,
    sequence: Sequence,
    round: VegasRound,
    /// Smallest RTT in seconds (`v_baseRTT_`).
    base_rtt: f64,
    /// Packets queued, by the last round (`delta`).
    backlog: i64,
}

/// Position of the sender, counted in segments from its first.
#[derive(Clone, Debug, Default)]
struct Sequence {
    /// Acknowledged so far.
    acked: u64,
    /// Next to be sent (`t_seqno_`): a timeout sets it back to the first unacknowledged.
    next: u64,
    /// One past the highest ever sent.
    highest: u64,
}

/// One round trip: until the segment tagged at its start is acknowledged.
#[derive(Clone, Debug, Default)]
struct VegasRound {
    /// The tagged segment: the next to be sent when the round began (`v_begseq_`).
    tag: u64,
    /// When it began (`v_begtime_`).
    began: Time,
    rtt_sum: f64,
    rtt_count: u32,
}

impl Vegas {
    /// The measurement and decision at the end of a round.
    fn end_round(&mut self, now: Time) {
        let sampled = self.round.rtt_count > 0;
        let rtt = if sampled {
            self.round.rtt_sum / f64::from(self.round.rtt_count)
        } else {
            now.since(self.round.began).as_secs_f64()
        };
        let sent = self.sequence.next.saturating_sub(self.round.tag);
        if rtt > 0.0 {
            // A packet alone in its round had no queue of the flow itself.
            if sampled && (rtt < self.base_rtt || sent <= 1) || self.base_rtt.is_infinite() {
                self.base_rtt = rtt;
            }
            // delta = (expected - actual) baseRTT, with expected = in flight / baseRTT and
            // actual = sent since the tag / rtt; the segment now acknowledged is still counted.
            let in_flight = self.sequence.next.saturating_sub(self.sequence.acked) + 1;
            let backlog = in_flight as f64 - sent as f64 * self.base_rtt / rtt;
            self.backlog = (backlog + 0.5) as i64; // `as` truncates and saturates
            self.decide(self.backlog as f64);
        }
        self.round = VegasRound { tag: self.sequence.next, began: now, rtt_sum: 0.0, rtt_count: 0 };
    }

    /// A loss episode begins.
    fn keep(&mut self) {
        self.before.keep(self.cwnd, self.ssthresh);
        self.changed_before = self.changed;
    }

    fn decide(&mut self, backlog: f64) {
        if self.cwnd < self.ssthresh {
            // Slow start holds the window every other round, so that the round in between measures a steady sender.
            self.grow_this_round = !self.grow_this_round;
            self.increment = 0.0;
            if self.grow_this_round && backlog > self.gamma {
                self.ssthresh = 2.0;
                self.cwnd = (self.cwnd - self.cwnd / 8.0).max(2.0);
            } else if self.grow_this_round {
                self.increment = 1.0;
            }
        } else if backlog > self.beta {
            self.cwnd = (self.cwnd - 1.0).max(2.0);
            self.increment = 0.0;
        } else if backlog < self.alpha {
            self.increment = 1.0 / self.cwnd;
        } else {
            self.increment = 0.0;
        }
    }
}

impl Controller for Vegas {
    fn on_sent(&mut self, sent: &Sent) {
        let s = &mut self.sequence;
        if s.highest == 0 {
            self.round.began = sent.now;
        }
        if !sent.retransmission {
            s.highest = s.highest.saturating_add(1);
            s.next = s.highest;
        } else if s.next < s.highest {
            s.next += 1; // going back over what a timeout gave up
        }
    }

    fn on_ack(&mut self, ack: &Ack) {
        if ack.cumulative.newly_acked == 0 {
            return;
        }
        if let Some(window) = self.first_window.take() {
            self.cwnd = window;
        }
        let s = &mut self.sequence;
        s.acked = s.acked.saturating_add(ack.cumulative.newly_acked);
        s.next = s.next.max(s.acked);
        s.highest = s.highest.max(s.next);
        if s.acked > self.round.tag {
            self.end_round(ack.now);
        }
        if self.increment >= 1.0 && self.cwnd >= self.ssthresh {
            self.increment = 0.0;
        }
        // No growth for a sender that cannot keep up with its window.
        let in_flight = self.sequence.next - self.sequence.acked;
        if self.increment > 0.0 && ack.marks == 0 && self.cwnd - (in_flight as f64 + 1.0) <= 2.0 {
            self.cwnd = bounded(self.cwnd + ack.counted as f64 * self.increment, 1.0);
        }
        let rtt = ack.rtt.as_secs_f64();
        if ack.cumulative.rtt_unambiguous && rtt > 0.0 {
            self.round.rtt_sum += rtt;
            self.round.rtt_count = self.round.rtt_count.saturating_add(1);
            self.base_rtt = self.base_rtt.min(rtt);
        }
    }

    fn on_congestion_event(&mut self, event: &CongestionEvent) {
        match event {
            CongestionEvent::Losses(loss) => {
                if loss.new_episode && loss.found_by != LossFoundBy::Timeout {
                    self.keep();
                }
                // A timeout is reported as a restart. For a segment sent before the last reduction, the window was
                // already reduced.
                if loss.found_by == LossFoundBy::Timeout
                    || self.changed.is_some_and(|t| t >= loss.sent)
                {
                    return;
                }
                let window = self.cwnd.floor();
                self.cwnd = if window <= 3.0 {
                    2.0
                } else if loss.transmissions > 1 {
                    (window / 2.0).floor()
                } else {
                    window - (window * self.cut).floor()
                };
                self.ssthresh = 2.0;
                self.changed = Some(loss.now);
            }
            // As the loss of a first copy (RFC 3168): Brakmo and Peterson knew no marks.
            CongestionEvent::RecoveryStart(r) if r.cause == RecoveryCause::EcnCe => {
                self.before.on_recovery(r, self.cwnd, self.ssthresh);
                let window = self.cwnd.floor();
                self.cwnd = (window - (window * self.cut).floor()).max(2.0);
                self.ssthresh = 2.0;
                self.changed = Some(r.now);
            }
            CongestionEvent::SlowStartRestart(restart) => {
                // `slowdown` halves ssthresh at every timeout, the repeated ones too; the window begins
                // at `v_slowstart_` = 2.
                if restart.backoffs <= 1 {
                    self.keep();
                }
                self.ssthresh = (self.cwnd / 2.0).floor().max(2.0);
                self.cwnd = 2.0;
                self.changed = Some(restart.now);
                self.sequence.next = self.sequence.acked;
            }
            CongestionEvent::SpuriousLosses(spurious) => {
                let undone = self.before.undo(spurious, self.cwnd, self.ssthresh);
                if let Some((cwnd, ssthresh)) = undone {
                    self.cwnd = cwnd;
                    self.ssthresh = ssthresh;
                    self.changed = self.changed_before;
                }
            }
            _ => {}
        }
    }

    fn send_limits(&self) -> SendLimits {
        SendLimits::unpaced(self.cwnd).with_ssthresh(self.ssthresh)
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("backlog", self.backlog as f64);
        if self.base_rtt.is_finite() {
            put("min_rtt_s", self.base_rtt);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::scenario::{build, build_in, lost};
    use crate::scenario_path::SimplePath;
    use crate::{Dialect, Environment, LossFoundBy};
    use narrows_base::{Duration, Time};

    /// N1 of ns-2.35 (docs/validation.md): 10 Mbit/s and 0.2 ms, then 1.5 Mbit/s and 20 ms.
    fn n1(limit: usize) -> SimplePath {
        let ns2 =
            Environment { initial_window: 2.0, dialect: Dialect::Ns2, ..Environment::default() };
        let mut path = SimplePath::new(build_in("vegas", &ns2));
        path.rate_bps = 1.5e6;
        path.delay = Duration::from_micros(41_445);
        path.queue_limit = limit - 1;
        path
    }

    #[test]
    fn alone_it_settles_with_a_packet_or_two_waiting() {
        for (limit, window, dropped) in [(14, 10.5, 0), (4, 11.82, 3)] {
            let mut path = n1(limit);
            path.run(Time::from_secs_f64(10.0));
            path.least_window = f64::INFINITY;
            path.most_window = 0.0;
            assert!(path.utilisation(Time::from_secs_f64(30.0)) > 0.9999);
            assert_eq!(path.least_window, path.most_window, "steady");
            assert!((path.window() - window).abs() < 0.005, "limit {limit}: {}", path.window());
            assert_eq!(path.dropped, dropped, "limit {limit}");
        }
    }

    #[test]
    fn slow_start_doubles_in_every_other_round() {
        let mut path = SimplePath::new(build("vegas"));
        path.rate_bps = 1e9;
        path.delay = Duration::from_millis(100);
        let mut windows = Vec::new();
        for round in 1..=5 {
            path.run(Time::from_secs_f64(0.1 * f64::from(round) + 0.05));
            windows.push(path.window());
        }
        assert_eq!(windows, [4.0, 8.0, 8.0, 16.0, 16.0]);
    }

    #[test]
    fn loss_reduces_by_quarter_and_lost_retransmission_by_half() {
        let ms = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let environment = Environment { initial_window: 21.7, ..Environment::default() };
        let mut vegas = build_in("vegas", &environment);
        vegas.on_congestion_event(&crate::CongestionEvent::Losses(lost(
            ms(500),
            ms(400),
            1,
            LossFoundBy::Clock,
        )));
        assert_eq!(vegas.send_limits().cwnd, 16.0, "21 - 21/4");
        vegas.on_congestion_event(&crate::CongestionEvent::Losses(lost(
            ms(510),
            ms(410),
            1,
            LossFoundBy::Duplicates,
        )));
        assert_eq!(vegas.send_limits().cwnd, 16.0, "sent before the cut");
        vegas.on_congestion_event(&crate::CongestionEvent::Losses(lost(
            ms(700),
            ms(505),
            2,
            LossFoundBy::Clock,
        )));
        assert_eq!(vegas.send_limits().cwnd, 8.0, "the repair was lost too");
    }

    #[test]
    fn a_timeout_begins_at_two() {
        let mut path = SimplePath::new(build("vegas"));
        path.lose = |number| (40..60).contains(&number);
        path.run(Time::from_secs_f64(20.0));
        assert!(path.timeouts > 0);
        assert!(path.least_window >= 2.0, "{}", path.least_window);
    }
}
