use super::*;
use crate::fuzz::report;

fn rate(s: &TearSender) -> f64 {
    s.send_limits().pacing_rate.map_or(0.0, |r| r.as_bps() as f64 / 8000.0)
}
fn at(ms: u64) -> Time {
    Time::ZERO + Duration::from_millis(ms)
}
fn receive_report(s: &mut TearSender, ms: u64, packets_per_second: f64) {
    let rtt = Duration::from_millis(100);
    let feedback = Feedback::of(&[packets_per_second]);
    let mut ack = report(at(ms), feedback, rtt);
    ack.estimate.rttvar = Duration::from_millis(5);
    s.on_ack(&ack);
}
fn sent(s: &mut TearSender, ms: u64) {
    let now = at(ms);
    s.on_sent(&Sent::new(now, 1000, 1));
}

#[test]
fn it_starts_with_one_packet_per_rtt() {
    let mut s = TearSender::new(1000);
    assert_eq!(rate(&s), 1.0);
    // The receiver has no RTT yet and reports no rate.
    receive_report(&mut s, 100, 0.0);
    assert_eq!(rate(&s), 10.0);
    receive_report(&mut s, 200, 0.0);
    assert_eq!(rate(&s), 10.0);
}

#[test]
fn report_sets_the_rate_and_at_most_doubles_it() {
    let mut s = TearSender::new(1000);
    receive_report(&mut s, 100, 0.0);
    for (says, is) in [(15.0, 15.0), (1e9, 30.0), (f64::NAN, 30.0), (45.0, 45.0), (4.0, 4.0)] {
        receive_report(&mut s, 200, says);
        assert_eq!(rate(&s), is, "{says}");
    }
}

#[test]
fn silence_of_four_rtts_after_a_packet_halves() {
    let mut s = TearSender::new(1000);
    receive_report(&mut s, 100, 0.0);
    receive_report(&mut s, 200, 20.0);
    assert!(s.next_tick().is_never(), "nothing is under way");
    sent(&mut s, 250);
    sent(&mut s, 300);
    assert_eq!(s.next_tick(), at(650));
    receive_report(&mut s, 600, 20.0);
    assert!(s.next_tick().is_never(), "the report came");
    sent(&mut s, 700);
    s.on_tick(at(1099));
    assert_eq!(rate(&s), 20.0);
    s.on_tick(at(1100));
    assert_eq!(rate(&s), 10.0);
    // The next packet begins the next wait; a slow flow waits for two of its packets.
    sent(&mut s, 1200);
    assert_eq!(s.next_tick(), at(1600));
    receive_report(&mut s, 1300, 1.0);
    sent(&mut s, 1400);
    assert_eq!(s.next_tick(), at(3400));
}

#[test]
fn it_never_stops() {
    let mut s = TearSender::new(1000);
    receive_report(&mut s, 100, 1e-30);
    assert_eq!(rate(&s), 0.125);
    for i in 1..100 {
        sent(&mut s, i * 100_000);
        s.on_tick(at(i * 100_000 + 50_000));
        assert_eq!(rate(&s), 0.125);
    }
}
