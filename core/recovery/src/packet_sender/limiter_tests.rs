use super::*;
use narrows_base::Rate;

const FULL: u32 = 1000;
const RTT: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}

/// RTT 100 ms: a window of 1 s with twelve slots of 83 ms.
fn limiter() -> Limiter {
    let mut limiter = Limiter::new(FULL);
    limiter.on_rtt(at(0), RTT);
    limiter
}

/// Sends all that is permitted now; returns the number of packets.
fn burst(limiter: &mut Limiter, now: Time) -> u64 {
    let mut sent = 0;
    while limiter.decision(now) == LimiterDecision::Free && sent < 100_000 {
        limiter.on_sent(now, FULL);
        sent += 1;
    }
    sent
}

fn arrive(limiter: &mut Limiter, now: Time, sent: Time, packets: u64) {
    (0..packets).for_each(|_| limiter.on_arrived(now, sent, FULL as u16));
    limiter.on_report(now);
}

/// Round trips in which everything sent arrives at once; returns the packets sent in each.
fn rounds(limiter: &mut Limiter, n: u64) -> Vec<u64> {
    let mut sizes = Vec::new();
    for round in 0..n {
        let now = at(100 * round);
        sizes.push(burst(limiter, now));
        arrive(limiter, at(100 * (round + 1)), now, sizes[round as usize]);
    }
    sizes
}

/// A train, and twice the packets that the first ten show beyond themselves: three times the nine behind the first.
const SECOND: u64 = 64 + 2 * (3 * 9 - 10);
/// Limit on the extra packets per second.
const MOST: u64 = 2 * 512;

#[test]
fn flight_is_ten_packets_then_train_then_measured_rate() {
    let sizes = rounds(&mut limiter(), 3);
    assert_eq!(sizes[..2], [10, SECOND]);
    // Arrivals count at most three times for a window, without their first packet.
    let most = 64 + 2 * 3 * (10 + SECOND - 1);
    assert!((2 * 3 * (SECOND - 1)..=most).contains(&sizes.iter().sum()), "{sizes:?}");
}

/// The RTT is a third of the window: twice the arrivals of one round trip are permitted in each of three.
#[test]
fn long_path_may_more_than_double_per_rtt() {
    let rtt = Duration::from_millis(600);
    let mut limiter = Limiter::new(FULL);
    limiter.on_rtt(at(0), rtt);
    let mut sizes = Vec::new();
    let mut all = 0;
    for round in 0..4 {
        let now = at(600 * round);
        sizes.push(burst(&mut limiter, now));
        all += sizes[round as usize];
        arrive(&mut limiter, at(600 * (round + 1)), now, sizes[round as usize]);
        // A path that carries no more delivers three times the arrivals of the last round trip.
        assert!(round == 0 || all <= 64 + 6 * sizes[round as usize - 1].max(10), "{sizes:?}");
    }
    assert_eq!(sizes[..2], [10, SECOND]);
    assert!(sizes[2] > 3 * SECOND && sizes[3] > 2 * sizes[2], "{sizes:?}");
}

#[test]
fn a_train_that_arrives_slowly_permits_as_much_less() {
    let mut limiter = limiter();
    burst(&mut limiter, at(0));
    arrive(&mut limiter, at(100), at(0), 10);
    assert_eq!(burst(&mut limiter, at(100)), SECOND);
    // 48 packets in 800 ms are 60 in a second: twice that, the first ten and a train may leave.
    arrive(&mut limiter, at(900), at(100), 48);
    let more = burst(&mut limiter, at(900));
    assert!((40..=120).contains(&more), "{more}");
}

/// A path that passes a burst at once and then carries little shows a rate that it does not have. The credit for that
/// rate is bounded.
#[test]
fn simultaneous_burst_permits_at_most_a_thousand_packets() {
    let mut limiter = Limiter::new(FULL);
    limiter.on_rtt(at(0), Duration::from_millis(1));
    let mut sent = 0;
    for ms in 0..3 {
        let now = burst(&mut limiter, at(ms));
        sent += now;
        arrive(&mut limiter, at(ms + 1), at(ms), now.min(100));
    }
    assert!(sent > 500 && sent <= 10 + 2 * 174 + MOST, "{sent}");
}

#[test]
fn silence_permits_no_packets() {
    let mut limiter = limiter();
    assert_eq!(burst(&mut limiter, at(0)), 10);
    for ms in [500, 5_000, 500_000] {
        limiter.on_pto();
        assert_eq!(burst(&mut limiter, at(ms)), 0);
    }
}

/// A user's hint counts fully for one window, a stored measurement by half, and a peer's hint not at all.
#[test]
fn hinted_window_is_sent_at_once_up_to_its_trust() {
    // 100 packets in a round trip of 100 ms.
    let hints = PathHints { rate: Some(Rate::from_bps(8_000_000)), ..PathHints::default() };
    for (source, least, most) in
        [(HintSource::User, 92, 100), (HintSource::Stored, 45, 52), (HintSource::Peer, 10, 10)]
    {
        let mut limiter = limiter();
        limiter.on_hints(&hints, source);
        let sent = burst(&mut limiter, at(0)) + burst(&mut limiter, at(84));
        assert!((least..=most).contains(&sent), "{source:?}: {sent}");
        // After a PTO no hint counts.
        let mut limiter = self::limiter();
        limiter.on_hints(&hints, source);
        limiter.on_pto();
        assert_eq!(burst(&mut limiter, at(0)), 10, "{source:?}");
    }
}

/// After a pause an application continues at the rate that the path carried (RFC 7661), for some minutes. Unused credit
/// from before the pause does not add to that.
#[test]
fn pause_keeps_the_arrivals_of_one_rtt() {
    let steady = || {
        let mut limiter = limiter();
        // 40 packets each 100 ms for ten seconds.
        for round in 0..100 {
            let now = at(100 * round);
            let mut sent = 0;
            while sent < 40 && limiter.decision(now) == LimiterDecision::Free {
                limiter.on_sent(now, FULL);
                sent += 1;
            }
            arrive(&mut limiter, at(100 * round + 99), now, sent);
        }
        limiter
    };
    for pause in [500, 5_000, 100_000] {
        let sent = burst(&mut steady(), at(10_000 + pause));
        assert!((40..=170).contains(&sent), "{pause}: {sent}");
    }
}

/// With one report in a round trip that a queue has made long, its credit is not cut to the arrivals of the shortest
/// round trip, so a steady sender is not held back.
#[test]
fn rare_reports_permit_twice_their_acked_packets() {
    let mut limiter = limiter();
    let mut pending = Vec::new();
    let mut sent = 0;
    // Ten packets per second, which all arrive; a report every two seconds.
    for ms in (0..60_000u64).step_by(100) {
        if limiter.decision(at(ms)) == LimiterDecision::Free {
            limiter.on_sent(at(ms), FULL);
            pending.push(at(ms));
            sent += u64::from(ms >= 10_000);
        }
        if ms % 2000 == 1900 {
            for left in pending.drain(..) {
                limiter.on_arrived(at(ms), left, FULL as u16);
            }
            limiter.on_report(at(ms));
        }
    }
    // All packets of the last fifty seconds.
    assert_eq!(sent, 500);
}

/// A receiver that holds acknowledgements back and releases them together pretends a higher rate than the packets were
/// sent at.
#[test]
fn acknowledgements_that_come_together_are_no_rate() {
    let mut limiter = limiter();
    let mut sent_packets = Vec::new();
    let mut last = 0;
    // A path of 100 packets per second; each second's packets are acknowledged at once.
    for ms in (0..20_000u64).step_by(10) {
        if limiter.decision(at(ms)) == LimiterDecision::Free {
            limiter.on_sent(at(ms), FULL);
            sent_packets.push(at(ms));
        }
        if ms % 1000 == 990 {
            for sent in sent_packets.drain(..) {
                limiter.on_arrived(at(ms), sent, FULL as u16);
            }
            limiter.on_report(at(ms));
            last = ms;
        }
    }
    // A second's packets are acknowledged together; in the next second at most twice as many, and ten, may leave.
    let sent: u64 = (0..100).map(|i| burst(&mut limiter, at(last + 10 * i))).sum();
    assert!(sent <= 2 * 100 + 10, "{sent}");
}

/// A stored path of 100 packets in a round trip of 100 ms, with this share of losses, and its first flight.
fn resumed(loss: f64) -> (Limiter, u64) {
    let mut limiter = Limiter::new(FULL);
    let rate = Some(Rate::from_bps(8_000_000));
    let hints = PathHints { rate, rtt: Some(RTT), loss: Some(loss) };
    limiter.on_hints(&hints, HintSource::Stored);
    limiter.on_rtt(at(0), RTT);
    let sent = burst(&mut limiter, at(0));
    (limiter, sent)
}

/// RFC 9959 sections 3.2 and 4.2.1: with at most half of the stored RTT, or more than ten times it, the path is another one.
#[test]
fn a_path_with_another_round_trip_time_is_not_resumed() {
    for (ms, least, most) in
        [(40, 10, 10), (50, 10, 10), (60, 20, 50), (1000, 20, 50), (1100, 10, 10)]
    {
        let mut limiter = Limiter::new(FULL);
        let hints = PathHints { rate: Some(Rate::from_bps(8_000_000)), rtt: Some(RTT), loss: None };
        limiter.on_hints(&hints, HintSource::Stored);
        limiter.on_rtt(at(0), Duration::from_millis(ms));
        let sent = burst(&mut limiter, at(0));
        assert!((least..=most).contains(&sent), "{ms} ms: {sent}");
    }
}

/// RFC 9959 section 3.3: at most half of the stored window leaves before the first acknowledgement.
#[test]
fn half_of_the_stored_window_leaves_unvalidated() {
    let (mut limiter, mut sent) = resumed(0.0);
    for ms in 1..100 {
        sent += burst(&mut limiter, at(ms));
    }
    assert!((45..=50).contains(&sent), "{sent}");
}

/// RFC 9959 sections 3.4 and 3.6: once a packet that left after the flight is acknowledged, a loss of the flight is the
/// controller's affair.
#[test]
fn a_validated_flight_does_not_retreat() {
    let (mut limiter, sent) = resumed(0.0);
    arrive(&mut limiter, at(100), at(0), sent);
    assert!(burst(&mut limiter, at(100)) > 0);
    arrive(&mut limiter, at(200), at(100), 1);
    assert!(!limiter.on_lost(at(201), at(0)));
    assert!(burst(&mut limiter, at(201)) > 0);
}

/// RFC 9959 section 3.5: after a loss or a mark, nothing leaves until a later packet (the repair) is acknowledged. Then half
/// of what arrived may leave.
#[test]
fn congested_flight_retreats_to_half_the_arrivals() {
    for is_marked in [false, true] {
        let (mut limiter, _) = resumed(0.0);
        arrive(&mut limiter, at(100), at(0), 20);
        let retreats =
            if is_marked { limiter.on_marks(at(100)) } else { limiter.on_lost(at(100), at(0)) };
        assert!(retreats);
        assert_eq!(burst(&mut limiter, at(100)), 0);
        arrive(&mut limiter, at(150), at(0), 4);
        assert_eq!(burst(&mut limiter, at(150)), 0, "the rest of the flight gives no credit");
        // The repair. Its acknowledgement is late, so that the limits by time do not count the flight any more.
        limiter.on_sent(at(150), FULL);
        arrive(&mut limiter, at(1200), at(150), 1);
        assert_eq!(burst(&mut limiter, at(1200)), 12);
        assert!(!limiter.on_lost(at(1210), at(0)), "once");
    }
}

/// Losses that the stored path had do not count as congestion; more than three standard deviations above them do.
#[test]
fn losses_of_the_stored_path_are_no_congestion() {
    let (mut limiter, sent) = resumed(0.1);
    let bound = 0.1 * sent as f64 + 3.0 * (0.1 * sent as f64).sqrt();
    let lost = (1..=sent).find(|_| limiter.on_lost(at(100), at(0)));
    assert_eq!(lost, Some(bound as u64 + 1));
}
