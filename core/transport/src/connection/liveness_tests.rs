//! Timers with little or no traffic: idle timeout, keep-alive, outages, and clocks that jump.

use super::Closed;
use super::pair_tests::{Net, Pair, config};
use crate::streams::Side;
use narrows_base::{Duration, Rate};

#[test]
fn an_idle_connection_is_silent_and_reports_are_not_answered() {
    let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
    pair.transfer(Side::Client, 5000, 5.0).unwrap();
    pair.run_for(2.0);
    let sent = pair.log.len();
    assert!(sent < 40, "{sent}");
    pair.run_for(30.0);
    assert_eq!(pair.log.len(), sent);
    assert_eq!(pair.client.stats().flight, 0);
}

#[test]
fn idle_endpoint_wakes_rarely_even_with_short_rtt() {
    let protocols = ["rrtp+tfrc", "tear-reliable", "rrtp", "rrtp+bbr", "rrtp+cubic"];
    for (protocol, unheard) in protocols.iter().flat_map(|p| [(*p, false), (*p, true)]) {
        let near = Net {
            delay: Duration::from_micros(1),
            rate: Rate::from_bps(u64::MAX / 1000),
            ..Net::good()
        };
        let mut pair = Pair::new(&config(protocol), near, 1);
        pair.transfer(Side::Client, 3000, 5.0).unwrap();
        pair.transfer(Side::Server, 3000, 5.0).unwrap();
        // Either without data, or with data that never arrive.
        if unheard {
            let id = pair.client.open(true).unwrap();
            pair.client.write(id, &[1; 3000]).unwrap();
        }
        let mut wakes = 0;
        let mut now = pair.now;
        let mut buffer = [0; 1500];
        while !pair.client.next_timeout().is_never() {
            now = now.max(pair.client.next_timeout());
            pair.client.on_timeout(now);
            while pair.client.transmit(now, &mut buffer, 1).is_some() {}
            wakes += 1;
            assert!(wakes < 5000, "{protocol}: {wakes} until {now:?}");
        }
    }
}

#[test]
fn the_idle_timeout_ends_it_and_keep_alive_prevents_that() {
    let mut quiet = config("rrtp+cubic");
    quiet.idle_timeout = Duration::from_secs(10);
    let mut pair = Pair::new(&quiet, Net::good(), 1);
    pair.run_for(30.0);
    assert_eq!(pair.closed(Side::Client), Some(&Closed::TimedOut));
    assert!(pair.client.is_drained() && pair.server.is_drained());
    let alive = super::ConnectionConfig { keep_alive: Duration::from_secs(3), ..quiet.clone() };
    let mut pair = Pair::of(&alive, &quiet, Net::good(), 1);
    pair.run_for(60.0);
    assert_eq!((pair.closed(Side::Client), pair.closed(Side::Server)), (None, None));
    assert!(pair.log.len() < 100, "{}", pair.log.len());
}

#[test]
fn outage_of_30_seconds_is_survived_and_forgotten_soon() {
    // TEAR's receiver side has lowered the rate by then, and raises it slowly.
    let protocols =
        [("rrtp+cubic", 34), ("rrtp+bbr", 34), ("rrtp+stpd", 34), ("tear-reliable", 60)];
    for (protocol, patience) in protocols {
        let mut pair = Pair::new(&config(protocol), Net::good(), 1);
        pair.transfer(Side::Client, 300_000, 10.0).unwrap();
        let now = pair.now;
        let sent = pair.log.len();
        pair.outage_until = now + Duration::from_secs(30);
        let took = pair.transfer(Side::Client, 300_000, 120.0).unwrap();
        assert!(took < Duration::from_secs(patience), "{protocol}: {took:?}");
        let silent = |t| t > now + Duration::from_secs(2) && t < pair.outage_until;
        let vain = pair.log[sent..].iter().filter(|l| silent(l.0)).count();
        assert!((10..40).contains(&vain), "{protocol}: {vain} packets into the void");
    }
}

/// The client's packets during an outage of `seconds` that begins now, with data to send: seconds since its beginning,
/// and UDP payloads.
fn probes(pair: &mut Pair, seconds: u64) -> Vec<(f64, usize)> {
    let begin = pair.now;
    let sent = pair.log.len();
    pair.outage_until = begin + Duration::from_secs(seconds);
    let id = pair.client.open(true).unwrap();
    pair.client.write(id, &[1; 300_000]).unwrap();
    pair.run_for(seconds as f64);
    let own = pair.log[sent..].iter().filter(|l| l.1 == Side::Client);
    own.map(|l| (l.0.since(begin).as_secs_f64(), l.2)).collect()
}

/// The end of an outage is noticed within two seconds. The probes use at most 400 bit/s of a path that may now belong
/// to another user, less than RFC 9002's back-off would.
#[test]
fn silent_known_path_is_probed_every_two_seconds() {
    for protocol in ["rrtp", "rrtp+cubic", "rrtp+bbr", "rrtp+stpd"] {
        let mut pair = Pair::new(&config(protocol), Net::good(), 1);
        pair.transfer(Side::Client, 300_000, 10.0).unwrap();
        let probes = probes(&mut pair, 40);
        let late: Vec<&(f64, usize)> = probes.iter().filter(|p| p.0 > 4.0).collect();
        let gaps: Vec<f64> = late.windows(2).map(|w| w[1].0 - w[0].0).collect();
        assert!(gaps.iter().all(|g| (1.99..2.01).contains(g)), "{protocol}: {probes:?}");
        // Including IPv6 and UDP headers.
        assert!(late.iter().all(|p| p.1 + 48 <= 100), "{protocol}: {late:?}");
        // The first probes carry data; otherwise a lost tail would take another round trip.
        assert!(probes.iter().any(|p| p.0 > 0.05 && p.1 > 400), "{protocol}: {probes:?}");
        pair.run_for(3.5);
        assert_eq!(pair.client.stats().flight, 0, "{protocol}: all arrived soon after it");
    }
}

/// A message that has expired when its turn comes is no probe.
#[test]
fn a_path_is_probed_while_only_expired_messages_wait() {
    let mut pair = Pair::new(&config("tear-reliable"), Net::good(), 1);
    pair.transfer(Side::Client, 300_000, 10.0).unwrap();
    let begin = pair.now;
    let sent = pair.log.len();
    pair.outage_until = begin + Duration::from_secs(40);
    for _ in 0..40 {
        pair.client.send_message(pair.now, &[1; 500], Duration::from_millis(100)).unwrap();
        pair.run_for(1.0);
    }
    let late = pair.log[sent..].iter().filter(|l| l.0.since(begin).as_secs_f64() > 20.0);
    let probes = late.filter(|l| l.1 == Side::Client).count();
    assert!((8..=40).contains(&probes), "{probes} in twenty seconds");
}

/// A path that never acknowledged a packet is backed off from as in RFC 9002, because its address may be a victim's.
#[test]
fn a_path_that_never_acknowledged_is_probed_ever_more_seldom() {
    for protocol in ["rrtp", "rrtp+cubic", "rrtp+bbr"] {
        let mut patient = config(protocol);
        patient.idle_timeout = Duration::from_secs(240);
        let mut pair = Pair::new(&patient, Net::good(), 1);
        let probes = probes(&mut pair, 220);
        let late: Vec<f64> = probes.iter().map(|p| p.0).filter(|t| *t > 1.0).collect();
        let gaps: Vec<f64> = late.windows(2).map(|w| w[1] - w[0]).collect();
        // Up to an eighth of the idle timeout, so that the end of an outage is noticed in time.
        let doubles = |w: &[f64]| w[1] > 1.99 * w[0] || (29.9..30.1).contains(&w[1]);
        assert!(gaps.windows(2).all(doubles) && gaps.len() >= 5, "{protocol}: {gaps:?}");
    }
}

/// The controller may set a rate of a packet in twenty seconds. With data to send the connection must still not run
/// into an idle timeout of eight seconds.
#[test]
fn low_rate_sender_with_data_does_not_time_out() {
    let mut slow = config("rrtp+fixed(rate=500bit/s)");
    slow.idle_timeout = Duration::from_secs(8);
    let mut pair = Pair::new(&slow, Net::good(), 1);
    pair.transfer(Side::Client, 20_000, 300.0).unwrap();
    assert_eq!((pair.closed(Side::Client), pair.closed(Side::Server)), (None, None));
    // Without data it times out as usual.
    pair.run_for(10.0);
    assert_eq!(pair.closed(Side::Client), Some(&Closed::TimedOut));
}

/// A keep-alive packet leaves when it is due, regardless of the pacer.
#[test]
fn keep_alive_leaves_whatever_the_rate_is() {
    let mut slow = config("rrtp+fixed(rate=500bit/s)");
    slow.idle_timeout = Duration::from_secs(8);
    slow.keep_alive = Duration::from_secs(3);
    let mut pair = Pair::new(&slow, Net::good(), 1);
    pair.run_for(100.0);
    assert_eq!((pair.closed(Side::Client), pair.closed(Side::Server)), (None, None));
}

/// An RTT sample that contains a clock jump is not the path's: later losses are repaired as soon as before.
#[test]
fn a_leap_of_the_clock_does_not_rule_the_timers() {
    for (protocol, busy) in [("rrtp+cubic", true), ("rrtp+cubic", false), ("rrtp+tfrc", true)] {
        let mut lasting = config(protocol);
        lasting.idle_timeout = Duration::ZERO;
        let mut pair = Pair::new(&lasting, Net::good(), 1);
        pair.transfer(Side::Client, 200_000, 60.0).unwrap();
        let id = pair.client.open(true).unwrap();
        if busy {
            pair.client.write(id, &[1; 100_000]).unwrap();
            pair.run_for(0.02);
        } else {
            pair.run_for(5.0);
        }
        pair.now += Duration::from_secs(500);
        pair.client.write(id, &[1; 100_000]).unwrap();
        pair.run_for(0.5);
        for side in [Side::Client, Side::Server] {
            let timeout = pair.end(side).path.sender.pto();
            assert!(timeout < Duration::from_secs(1), "{protocol}, {busy}, {side:?}: {timeout:?}");
            let srtt = pair.end(side).stats().srtt;
            assert!(srtt < Duration::from_millis(200), "{protocol}, {busy}, {side:?}: {srtt:?}");
        }
    }
}

/// A peer whose process was stopped for a minute replies afterwards. The RTT sample of a minute must not delay the
/// repair of the next loss by minutes.
#[test]
fn path_stall_does_not_cause_timeouts_of_minutes() {
    let mut lasting = config("rrtp+cubic");
    lasting.idle_timeout = Duration::from_secs(300);
    let mut pair = Pair::new(&lasting, Net::good(), 1);
    pair.transfer(Side::Client, 200_000, 60.0).unwrap();
    pair.net.delay = Duration::from_secs(60);
    let id = pair.client.open(true).unwrap();
    pair.client.write(id, &[1; 100_000]).unwrap();
    // Packets keep their order, because an overtaken report gives no sample.
    pair.run_for(59.9);
    pair.net.delay = Net::good().delay;
    pair.run_for(0.5);
    assert!(pair.client.stats().rtt_sum > Duration::from_secs(60), "reports came late");
    let timeout = pair.client.path.sender.pto();
    assert!(timeout <= Duration::from_secs(10), "{timeout:?}");
}

/// After a clock jump an end estimates an RTT of minutes. Its closing state must not last as long.
#[test]
fn clock_leap_does_not_prolong_the_close() {
    let mut pair = Pair::new(&config("rrtp+cubic"), Net::good(), 1);
    pair.run_for(1.0);
    let now = pair.now;
    for end in [&mut pair.client, &mut pair.server] {
        end.path.sender.seed_rtt(now, Duration::from_secs(500));
    }
    pair.client.close(now, 256, "done");
    pair.run_for(11.0);
    assert!(pair.client.is_drained(), "the end that closes");
    assert!(pair.server.is_drained(), "the end that is told");
}

/// The peer's packets take 10 s: an idle timeout of 15 s must not end a connection whose ends answer each other.
#[test]
fn idle_timeout_lasts_for_three_probe_timeouts() {
    let mut short = config("rrtp");
    short.idle_timeout = Duration::from_secs(15);
    short.keep_alive = Duration::from_secs(4);
    let far = Net { delay: Duration::from_secs(10), ..Net::good() };
    let mut pair = Pair::new(&short, far, 1);
    pair.run_for(100.0);
    assert!(pair.client.is_open() && pair.server.is_open(), "{:?}", pair.events);
    // A timeout of the smallest round trip itself would expire before each report.
    assert!(pair.client.path.sender.pto() > Duration::from_secs(20));
    let before = pair.client.stats().counters.timeouts;
    pair.transfer(Side::Client, 100_000, 200.0).unwrap();
    assert!(pair.client.stats().counters.timeouts <= before + 1);
}
