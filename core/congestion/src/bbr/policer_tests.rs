//! The conditions for a policer: Linux's `tcp_bbr.c`, `bbr_lt_bw_sampling` and `bbr_lt_bw_interval_done`.

use super::*;
use narrows_base::Duration;

/// A flow that receives an ACK per round, each 100 ms after the last.
struct Flow {
    policer: PolicerDetector,
    seen: PolicerSample,
}

impl Flow {
    fn new() -> Flow {
        let seen = PolicerSample {
            now: Time::from_secs_f64(1.0),
            delivered: 1000,
            lost: 0,
            losses: false,
            app_limited: false,
            round_start: true,
            probing_bandwidth: true,
            packet_bits: 8000.0,
        };
        Flow { policer: PolicerDetector::default(), seen }
    }
    /// So many rounds of these deliveries and losses; whether the policed rate's time was over in one of them.
    fn rounds(&mut self, rounds: u32, delivered: u64, lost: u64) -> bool {
        let mut over = false;
        for _ in 0..rounds {
            self.seen.now += Duration::from_millis(100);
            self.seen.delivered += delivered;
            self.seen.lost += lost;
            self.seen.losses = lost > 0;
            over |= self.policer.on_ack(&self.seen);
        }
        over
    }
    fn rate(&self) -> Option<f64> {
        self.policer.rate()
    }
    /// Two stretches of four rounds: at these deliveries per round, a fifth lost.
    fn two_stretches(first: u64, second: u64) -> Flow {
        let mut flow = Flow::new();
        // The first loss shows that the tokens are used up; the stretch begins behind it.
        flow.rounds(1, 100, 1);
        flow.rounds(3, first, first / 4);
        flow.rounds(4, second, second / 4);
        flow
    }
}

fn is(rate: Option<f64>, expected: f64) -> bool {
    rate.is_some_and(|rate| (rate - expected).abs() < 1e-6 * expected)
}

/// The ACK with the first loss is the first of four rounds, but its delivered packets do not count in the stretch.
#[test]
fn two_stretches_of_one_rate_are_a_policer() {
    let mut flow = Flow::new();
    flow.rounds(5, 100, 0);
    assert_eq!(flow.rate(), None, "nothing was lost");
    flow.rounds(1, 100, 25);
    flow.rounds(3, 100, 25);
    assert_eq!(flow.rate(), None, "one stretch");
    flow.rounds(3, 110, 28);
    assert_eq!(flow.rate(), None, "three rounds of the second");
    flow.rounds(1, 110, 28);
    assert!(is(flow.rate(), 1050.0), "the mean of 1000 and 1100 per second: {:?}", flow.rate());
}

#[test]
fn rates_are_the_same_within_an_eighth_of_the_first() {
    for (second, same) in [(1120, true), (1128, false), (880, true), (872, false)] {
        let mut flow = Flow::two_stretches(1000, second);
        // 4 kbit/s are half a packet per second here.
        assert_eq!(flow.rate().is_some(), same, "{second}");
        flow.rounds(4, second, second / 4);
        assert!(flow.rate().is_some(), "the second stretch is a first one");
        assert!(same || is(flow.rate(), 10.0 * second as f64), "{:?}", flow.rate());
    }
}

/// On slow links an eighth is less than a packet.
#[test]
fn or_within_four_kilobits_per_second() {
    for (bits, same) in [(19.0, true), (21.0, false)] {
        let mut flow = Flow::new();
        flow.seen.packet_bits = bits;
        flow.rounds(1, 100, 1);
        flow.rounds(3, 80, 20);
        // 200 packets per second further.
        flow.rounds(4, 100, 25);
        assert_eq!(flow.rate().is_some(), same, "{bits}");
    }
}

/// 50/256 of the delivered packets must be lost. If a stretch loses less, a later loss may end it.
#[test]
fn a_fifth_must_be_lost() {
    for (lost, found) in [(50, true), (49, false)] {
        let mut flow = Flow::new();
        flow.rounds(1, 256, 1);
        flow.rounds(2, 0, 0);
        flow.rounds(1, 256, lost);
        flow.rounds(3, 0, 0);
        flow.rounds(1, 256, lost);
        // The first stretch lasts three tenths of a second, the second four.
        flow.rounds(3, 0, 0);
        flow.rounds(1, 256, lost);
        assert_eq!(flow.rate().is_some(), found, "{lost}");
    }
}

#[test]
fn long_or_application_limited_interval_gives_no_estimate() {
    let waits = |rounds: u32| {
        let mut flow = Flow::new();
        flow.rounds(1, 100, 1);
        flow.rounds(rounds, 100, 0);
        flow.rounds(1, 100, 100 * u64::from(rounds));
        flow.rounds(rounds + 1, 100, 0);
        flow.rounds(1, 100, 100 * u64::from(rounds));
        flow.rate().is_some()
    };
    assert!(waits(14), "sixteen rounds in the first, with that of its first loss");
    assert!(!waits(15), "then it begins anew with a loss");
    let mut flow = Flow::new();
    flow.rounds(1, 100, 25);
    flow.rounds(2, 100, 25);
    flow.seen.app_limited = true;
    flow.rounds(1, 100, 25);
    flow.seen.app_limited = false;
    flow.rounds(5, 100, 25);
    assert_eq!(flow.rate(), None, "a first loss, and four rounds of one stretch");
    flow.rounds(3, 100, 25);
    assert!(flow.rate().is_some());
}

/// A stretch without deliveries, or shorter than a millisecond, has no rate.
#[test]
fn a_stretch_needs_a_millisecond_and_a_delivery() {
    let quick = |step: Duration| {
        let mut flow = Flow::new();
        for _ in 0..9 {
            flow.seen.now += step;
            flow.seen.delivered += 100;
            flow.seen.lost += 25;
            flow.seen.losses = true;
            flow.policer.on_ack(&flow.seen);
        }
        flow.rate().is_some()
    };
    assert!(quick(Duration::from_micros(334)) && !quick(Duration::from_micros(100)));
    let mut flow = Flow::new();
    flow.rounds(1, 100, 25);
    flow.rounds(7, 0, 25);
    assert_eq!((flow.rate(), flow.policer.rate), (None, 0.0));
}

/// 48 rounds of probing bandwidth; then all is measured anew.
#[test]
fn the_policed_rate_is_used_for_48_rounds() {
    let mut flow = Flow::two_stretches(1000, 1000);
    flow.seen.probing_bandwidth = false;
    assert!(!flow.rounds(60, 100, 25));
    flow.seen.probing_bandwidth = true;
    flow.seen.round_start = false;
    assert!(!flow.rounds(60, 100, 25));
    flow.seen.round_start = true;
    assert!(!flow.rounds(47, 100, 25) && flow.rate().is_some());
    assert!(flow.rounds(1, 100, 25));
    assert_eq!((flow.rate(), flow.policer.rounds), (None, 0));
    assert!(!flow.rounds(4, 100, 25));
    assert_eq!(flow.rate(), None, "a first stretch");
    flow.rounds(4, 100, 25);
    assert!(is(flow.rate(), 1000.0));
}
