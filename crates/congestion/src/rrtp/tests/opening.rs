//! What one flight of the startup may lead to, and what others in the opening do to it.

use super::*;

/// A train's first packet has nothing of its own flow ahead of it but the four before. If it waits all the same, others
/// fill the link as well, and what the train's spacing tells is free for each of them: no product leaves by it, but
/// what is out goes on, without what was lost of it.
#[test]
fn a_train_that_meets_others_is_followed_by_no_jump() {
    let met = |rtt: f64| {
        let mut rrtp = build("rrtp");
        let mut scenario = Scenario::new(build("reno"));
        let mut answer = |seq: u64, now: f64, rtt: f64, round_start: bool| {
            let sent = Bottleneck::at(now - rtt);
            let (now, rtt) = (Bottleneck::at(now), Duration::from_secs_f64(rtt));
            let (bytes, lost, marked, radio) = (PACKET, false, false, false);
            let outcome = PacketOutcome { now, seq, sent, bytes, lost, marked, radio };
            rrtp.on_packet_outcome(&outcome);
            let ack = scenario.ack(1, false);
            rrtp.on_ack(&Ack { now, rtt, round_start, outstanding: 3, ..ack });
            (rrtp.send_limits(), outcome)
        };
        for (seq, now) in [(0, 50.0e-3), (1, 50.0e-3), (2, 50.0e-3), (3, 50.1e-3)] {
            answer(seq, now, 50e-3, seq == 0);
        }
        let (limits, outcome) = answer(4, 0.05 + rtt, rtt, true);
        rrtp.on_packet_outcome(&PacketOutcome { seq: 5, lost: true, ..outcome });
        let pace = limits.pacing_rate.map_or(0, |r| r.as_bps());
        (limits.cwnd, pace, rrtp.send_limits().cwnd)
    };
    let (window, pace, after_a_loss) = met(50e-3 + 3.4e-3);
    assert!(window == 64.0 && pace > 1_000_000_000 && after_a_loss == 64.0, "{window} {pace}");
    let (window, pace, after_a_loss) = met(50e-3 + 3.6e-3);
    assert!(window < 66.0 && pace < 14_000_000, "{window} {pace}");
    assert_eq!(after_a_loss, window.floor() - 1.0);
}

/// Between the trains of flows that begin together the link is free: each flight is at most four times the one before
/// that proved the rate, so that a product of thousands of packets is not sent by what 64 told.
#[test]
fn a_train_leads_to_no_more_than_four_times_its_packets() {
    let mut b = Bottleneck::new(PathHints::default());
    (b.per_second, b.room, b.turns, b.rtt) = (20_000.0, 4000, 0.2e-3, 0.2);
    let mut windows = Vec::new();
    for round in 1..=8 {
        b.run(0.2 * f64::from(round) + 0.1);
        windows.push(b.watch("own_window"));
    }
    let jumps = windows.windows(2).map(|w| w[1] / w[0]);
    assert!(windows.contains(&64.0) && windows.contains(&256.0), "{windows:?}");
    assert!(jumps.skip(1).all(|j| j < 4.5), "{windows:?}");
    assert!(windows[7] > 3000.0, "{windows:?}");
}
