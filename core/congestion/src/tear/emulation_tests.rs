//! Each row of the state machine, as timed scenarios. By default the RTT is 125 ms, the deviation 1/64 s (both exact in
//! the packets' floats), and a packet arrives every 10 ms.

use super::super::smoothing::{SHIFTS, TEAR};
use super::*;
use crate::Feedback;

struct Scenario {
    m: TcpEmulation,
    now: Time,
    /// Flag of the next packet: the application has no more data.
    idle: bool,
    marked: bool,
}

const GAP: Duration = Duration::from_millis(10);

impl Scenario {
    fn new(ssthresh: f64) -> Scenario {
        let m = TcpEmulation::new(ssthresh, EpochHistory::new(TEAR, false), None);
        Scenario { m, now: Time::ZERO, idle: false, marked: false }
    }
    /// In CONGESTION-AVOIDANCE with a window of `cwnd` at the begin of a round; `expected` next.
    fn avoiding(cwnd: f64) -> Scenario {
        let mut s = Scenario::new(2.0);
        s.packets(0..3);
        assert_eq!(s.m.state, EmulationState::Avoidance);
        s.m.cwnd = cwnd;
        s.m.begin_round();
        s
    }
    fn arrive(&mut self, seq: u64) {
        self.now += GAP;
        let idle = f64::from(u8::from(self.idle));
        self.m.on_arrival(&Arrival {
            now: self.now,
            seq,
            sent: self.now,
            bytes: 1000,
            marked: self.marked,
            feedback: Feedback::of(&[0.125, 0.015_625, 0.125, idle]),
        });
    }
    fn packets(&mut self, seqs: impl IntoIterator<Item = u64>) {
        seqs.into_iter().for_each(|s| self.arrive(s));
    }
    fn wait(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
        self.m.on_time(self.now);
    }
    fn state(&self) -> EmulationState {
        self.m.state
    }
}

fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-9, "{a} is not {b}");
}

#[test]
fn the_first_packet_starts_slow_start() {
    let mut s = Scenario::new(64.0);
    assert_eq!(s.state(), EmulationState::SlowStartReady);
    s.arrive(0);
    assert_eq!(s.state(), EmulationState::SlowStart);
    near(s.m.cwnd, 2.0);
}

/// Rounds of 1, 2, 4 and 8 arrivals.
#[test]
fn slow_start_doubles_per_round() {
    let mut s = Scenario::new(64.0);
    let mut seq = 0;
    for window in [2.0, 4.0, 8.0, 16.0] {
        for _ in 0..s.m.last_cwnd {
            s.arrive(seq);
            seq += 1;
        }
        near(s.m.cwnd, window);
        assert_eq!(s.m.last_cwnd, window as u64, "a round ended");
    }
}

#[test]
fn beyond_ssthresh_congestion_avoidance_begins_an_epoch() {
    let mut s = Scenario::new(8.0);
    s.packets(0..7);
    assert_eq!((s.state(), s.m.history.rounds()), (EmulationState::SlowStart, 3));
    s.arrive(7);
    assert_eq!((s.state(), s.m.history.rounds()), (EmulationState::Avoidance, 0));
}

#[test]
fn congestion_avoidance_adds_one_per_round() {
    let mut s = Scenario::avoiding(10.0);
    s.packets(3..12);
    near(s.m.cwnd, 10.9);
    assert_eq!(s.m.last_cwnd, 10);
    s.arrive(12);
    near(s.m.cwnd, 11.0);
    assert_eq!(s.m.last_cwnd, 11);
    s.packets(13..24);
    near(s.m.cwnd, 12.0);
}

#[test]
fn a_missing_number_opens_a_gap_from_either_state() {
    let mut s = Scenario::avoiding(10.0);
    s.arrive(4);
    assert_eq!(s.state(), EmulationState::Gap);
    let mut s = Scenario::new(64.0);
    s.packets([0, 2]);
    assert_eq!(s.state(), EmulationState::Gap);
    near(s.m.cwnd, 2.0);
}

/// The late packet and the two held behind it count as three arrivals.
#[test]
fn a_late_packet_fills_the_gap() {
    let mut s = Scenario::avoiding(10.0);
    s.packets([4, 5]);
    assert_eq!(s.state(), EmulationState::Gap);
    near(s.m.cwnd, 10.0);
    s.arrive(3);
    assert_eq!((s.state(), s.m.expected, s.m.arrived), (EmulationState::Avoidance, 6, 3));
    near(s.m.cwnd, 10.3);
}

/// As many rounds as the held packets fill, each with its own divisor.
#[test]
fn rounds_complete_within_a_filled_gap() {
    let mut s = Scenario::avoiding(2.0);
    s.packets([4, 5, 6]);
    s.arrive(3);
    // Two arrivals at 1/2, then two at 1/3.
    near(s.m.cwnd, 3.0 + 2.0 / 3.0);
    assert_eq!(s.state(), EmulationState::Avoidance);
}

#[test]
fn a_second_hole_stays_a_gap() {
    let mut s = Scenario::avoiding(10.0);
    s.packets([4, 6, 3]);
    assert_eq!((s.state(), s.m.expected), (EmulationState::Gap, 5));
    near(s.m.cwnd, 10.2);
    s.packets([7, 8]);
    assert_eq!(s.state(), EmulationState::FastRecovery);
}

#[test]
fn three_packets_above_a_gap_halve_after_an_rtt() {
    let mut s = Scenario::avoiding(10.0);
    s.packets([4, 5]);
    assert_eq!(s.state(), EmulationState::Gap, "two may be reordering");
    s.arrive(6);
    assert_eq!(s.state(), EmulationState::FastRecovery);
    s.packets([7, 9, 11]);
    near(s.m.cwnd, 10.0);
    assert_eq!(s.state(), EmulationState::FastRecovery, "an RTT's packets and losses are ignored");
    s.wait(94);
    assert_eq!(s.state(), EmulationState::FastRecovery);
    s.wait(1);
    assert_eq!(s.state(), EmulationState::AvoidanceReady);
    near(s.m.cwnd, 5.0);
    // The hole below the next packet belongs to the loss event that has been handled.
    s.packets([2, 14]);
    assert_eq!((s.state(), s.m.expected), (EmulationState::Avoidance, 15));
    near(s.m.cwnd, 5.2);
}

/// A reduction is undone when the packet arrives after all. The next missing packet is given as much time.
#[test]
fn a_packet_that_was_only_late_takes_its_loss_back() {
    let mut s = Scenario::new(64.0);
    s.packets((0..20).chain(21..24));
    let window = s.m.cwnd;
    assert_eq!(s.state(), EmulationState::FastRecovery);
    s.arrive(20);
    assert_eq!((s.state(), s.m.cwnd, s.m.ssthresh()), (EmulationState::SlowStart, window, 64.0));
    // Thirty milliseconds late: a quarter of the round trip is waited for.
    s.packets((24..30).chain(31..35));
    assert_eq!(s.state(), EmulationState::Gap);
    s.arrive(35);
    assert_eq!(s.state(), EmulationState::FastRecovery);
    // Also when the reduction has been made.
    s.wait(125);
    s.packets(36..38);
    assert_eq!((s.state(), s.m.growth), (EmulationState::Avoidance, Growth::Avoidance));
    s.arrive(30);
    assert_eq!((s.state(), s.m.ssthresh()), (EmulationState::SlowStart, 64.0));
}

/// Jayaram 2001 does not treat late packets.
#[test]
fn as_printed_late_packet_keeps_the_window() {
    let mut s = Scenario::new(64.0);
    s.m = s.m.undoing(false);
    s.packets((0..20).chain(21..24));
    s.arrive(20);
    assert_eq!(s.state(), EmulationState::FastRecovery);
    s.wait(125);
    near(s.m.cwnd, 10.5);
}

#[test]
fn a_duplicate_above_the_gap_counts_once() {
    let mut s = Scenario::avoiding(10.0);
    s.packets([4, 4, 4, 5]);
    assert_eq!(s.state(), EmulationState::Gap);
}

#[test]
fn fast_recovery_from_slow_start_sets_ssthresh() {
    let mut s = Scenario::new(64.0);
    s.packets(0..15);
    near(s.m.cwnd, 16.0);
    s.packets([16, 17, 18]);
    assert_eq!(s.state(), EmulationState::FastRecovery);
    s.wait(125);
    assert_eq!(s.state(), EmulationState::AvoidanceReady);
    near(s.m.cwnd, 8.0);
    near(s.m.ssthresh, 8.0);
}

/// TCP could have sent only lastCwnd - 1 packets behind the lost one.
#[test]
fn a_window_below_four_can_only_time_out() {
    for (window, after) in [(3.0, EmulationState::Gap), (4.0, EmulationState::FastRecovery)] {
        let mut s = Scenario::avoiding(window);
        s.packets([4, 5, 6]);
        assert_eq!(s.state(), after, "{window}");
    }
}

#[test]
fn packets_far_above_the_gap_cause_no_loss() {
    let mut s = Scenario::avoiding(5.0);
    s.packets([8, 9, 10, 1 << 40, u64::MAX / 2]);
    assert_eq!(s.state(), EmulationState::Gap);
    // T_timeout from the last packet in order, not from those in the gap.
    s.wait(137);
    assert_eq!(s.state(), EmulationState::Gap);
    s.wait(1);
    assert_eq!(s.state(), EmulationState::Timeout);
    s.wait(125);
    assert_eq!(s.m.expected, u64::MAX / 2 + 1);
}

/// RTT + 4 DEV where packets are frequent, T_ia lastCwnd + 2 DEV where they are not.
#[test]
fn the_silence_allowed_follows_the_arrivals() {
    let s = Scenario::avoiding(5.0);
    near(s.m.timeout(), 0.1875);
    let s = Scenario::avoiding(20.0);
    near(s.m.timeout(), 0.01 * 20.0 + 0.031_25);
}

#[test]
fn silence_times_out_in_both_growing_states() {
    for mut s in [Scenario::avoiding(10.0), Scenario::new(64.0)] {
        s.packets(3..5);
        s.wait(187);
        assert!(matches!(s.state(), EmulationState::Avoidance | EmulationState::SlowStart));
        s.wait(1);
        assert_eq!(s.state(), EmulationState::Timeout);
    }
}

#[test]
fn a_timeout_waits_an_rtt_and_begins_anew() {
    let mut s = Scenario::avoiding(10.0);
    s.wait(188);
    assert_eq!(s.state(), EmulationState::Timeout);
    s.arrive(3);
    near(s.m.cwnd, 10.0);
    s.wait(115);
    assert_eq!(s.state(), EmulationState::SlowStartReady);
    near(s.m.cwnd, 1.0);
    near(s.m.ssthresh, 5.0);
    s.arrive(4);
    assert_eq!(s.state(), EmulationState::SlowStart);
    near(s.m.cwnd, 2.0);
}

#[test]
fn ssthresh_is_two_at_least() {
    let mut s = Scenario::avoiding(1.0);
    s.wait(1000);
    near(s.m.ssthresh, 2.0);
}

/// T_timeout doubles with every timeout until a round completes.
#[test]
fn timeouts_back_off_until_a_clean_round() {
    let mut s = Scenario::avoiding(4.0);
    s.wait(188);
    s.wait(125);
    near(s.m.timeout(), 0.375);
    // No round ends: no packets arrive.
    s.m.state = EmulationState::SlowStart;
    s.m.due = s.now;
    s.wait(0);
    s.wait(125);
    near(s.m.timeout(), 0.75);
    s.arrive(3);
    near(s.m.backoff, 1.0);
    for _ in 0..20 {
        s.m.end_timeout();
    }
    near(s.m.backoff, MAX_BACKOFF);
}

/// A timeout and the end of its wait depend on time alone, even if ticks are late.
#[test]
fn late_ticks_do_not_change_the_timeout() {
    let mut s = Scenario::avoiding(10.0);
    s.wait(10_000);
    assert_eq!(s.state(), EmulationState::SlowStartReady);
    assert_eq!(s.m.due(), Time::NEVER);
}

/// A round ends with window 11 and an RTT; the timeout adds 11 in an RTO of 1 s.
#[test]
fn a_timeout_counts_its_window_over_an_rto() {
    let mut s = Scenario::new(2.0);
    s.packets(0..3);
    s.m.history = EpochHistory::new(SHIFTS, false);
    s.m.cwnd = 10.0;
    s.m.begin_round();
    s.packets(3..13);
    near(s.m.rate(), 88.0);
    s.wait(1000);
    near(s.m.rate(), 22.0 / 1.125);
}

#[test]
fn epoch_ended_before_its_first_round_still_counts() {
    let mut s = Scenario::avoiding(10.0);
    s.m.history = EpochHistory::new(TEAR, false);
    s.m.history.round(40.0, 0.125);
    s.m.history.next_epoch();
    s.packets([4, 5, 6]);
    s.wait(125);
    s.arrive(9);
    // 40 and 10 packets per RTT, halves.
    near(s.m.rate(), 200.0);
}

#[test]
fn the_rate_before_the_first_round_is_window_over_rtt() {
    let mut s = Scenario::new(64.0);
    assert_eq!(s.m.rate(), 0.0);
    s.m.last_cwnd = 8;
    s.m.state = EmulationState::SlowStart;
    s.packets(0..2);
    near(s.m.rate(), 24.0);
}

#[test]
fn a_mark_is_a_loss_without_a_gap() {
    let mut s = Scenario::avoiding(10.0);
    s.marked = true;
    s.arrive(3);
    assert_eq!(s.state(), EmulationState::FastRecovery);
    let mut s = Scenario::avoiding(10.0);
    s.arrive(4);
    s.marked = true;
    s.arrive(5);
    assert_eq!(s.state(), EmulationState::FastRecovery, "in a gap too");
}

/// Idle time of the application is neither congestion nor a reason to grow.
#[test]
fn an_idle_application_neither_grows_nor_times_out() {
    let mut s = Scenario::avoiding(10.0);
    s.idle = true;
    s.packets(3..30);
    near(s.m.cwnd, 10.0);
    s.wait(60_000);
    assert_eq!(s.state(), EmulationState::Avoidance);
    // A gap after the idle time still waits for its timeout.
    s.idle = false;
    s.arrive(31);
    assert_eq!(s.state(), EmulationState::Gap);
    s.wait(5_000);
    assert_ne!(s.state(), EmulationState::Gap);
}

#[test]
fn old_packets_and_duplicates_keep_the_window() {
    let mut s = Scenario::avoiding(10.0);
    s.packets([0, 1, 2, 2, 0]);
    near(s.m.cwnd, 10.0);
    assert_eq!((s.m.expected, s.m.arrived), (3, 0));
}

/// Delay in place of loss: holes have no effect, the loop decides.
#[test]
fn by_delay_losses_keep_the_window() {
    let delay = Some(Hysteresis::fixed(0.8, 1.2));
    let mut s = Scenario::avoiding(10.0);
    s.m.delay = delay;
    s.packets([4, 6, 8, 10, 12, 400]);
    assert_eq!(s.state(), EmulationState::Avoidance);
    near(s.m.cwnd, 10.6);
    s.wait(188);
    assert_eq!(s.state(), EmulationState::Timeout, "silence still counts");
}
