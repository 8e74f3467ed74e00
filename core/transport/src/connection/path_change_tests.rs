//! A new path starts with a new congestion state at both ends.

use super::pair_tests::{Net, Pair, config};
use super::{Connection, ConnectionConfig, ConnectionEvent};
use crate::streams::{Read, Side};
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::PathHints;
use std::collections::BTreeMap;

/// The server sends to the client at the highest permitted rate.
struct Download {
    pair: Pair,
    id: u64,
    came: u64,
    /// The longest smoothed RTT of the server since it was last set to zero.
    srtt: Duration,
}

impl Download {
    fn new(protocol: &str, net: Net) -> Download {
        let mut pair = Pair::new(&config(protocol), net, 1);
        let id = pair.server.open(true).unwrap();
        Download { pair, id, came: 0, srtt: Duration::ZERO }
    }

    fn run(&mut self, until: Time, mut stop: impl FnMut(&mut Pair) -> bool) -> bool {
        let id = self.id;
        let mut buffer = vec![0; 1 << 16];
        let came = &mut self.came;
        let srtt = &mut self.srtt;
        self.pair.run(until, |pair| {
            while pair.server.write(id, &[7; 4096]).unwrap() > 0 {}
            while pair.client.accept().is_some() {}
            while let Ok(Read::Bytes(n)) = pair.client.read(id, &mut buffer) {
                *came += n as u64;
            }
            *srtt = (*srtt).max(pair.server.stats().srtt);
            stop(pair)
        })
    }
    fn run_for(&mut self, seconds: f64) {
        let until = self.pair.now + Duration::from_secs_f64(seconds);
        self.run(until, |_| false);
    }

    /// The client sends data from a new address, until the server has validated it.
    fn moves(&mut self, to: &str) {
        self.pair.client_at = to.parse().unwrap();
        let id = self.pair.client.open(true).unwrap();
        self.pair.client.write(id, b"here").unwrap();
        self.pair.events.clear();
        let until = self.pair.now + Duration::from_secs(20);
        let there = self.pair.client_at;
        let moved =
            self.run(until, |p| p.events.contains(&(Side::Server, ConnectionEvent::Moved(there))));
        assert!(moved, "{to}");
    }
}

fn watched(connection: &Connection) -> BTreeMap<&'static str, f64> {
    let mut all = BTreeMap::new();
    connection.path.receiver.receiver_side().unwrap().watch(&mut |name, x| {
        all.insert(name, x);
    });
    all
}

const ELSEWHERE: &str = "203.0.113.9:5000";

#[test]
fn new_address_gets_initial_window_new_port_continues() {
    for protocol in ["rrtp", "rrtp+cubic", "rrtp+bbr", "rrtp+tfrc", "rrtp+tfwc", "tear-reliable"] {
        for (to, is_new) in [(ELSEWHERE, true), ("192.0.2.1:6000", false)] {
            let mut d = Download::new(protocol, Net { queue: 50_000, ..Net::good() });
            d.run_for(4.0);
            let before = d.pair.server.stats();
            assert!(before.flight > 30, "{protocol}: {before:?}");
            // A longer and slower path.
            d.pair.net = Net {
                delay: Duration::from_millis(100),
                rate: Rate::from_bps(1_000_000),
                ..Net::good()
            };
            d.moves(to);
            let at = d.pair.now;
            let sent = d.pair.server.stats().counters.sent;
            let until = at + Duration::from_millis(150);
            d.run(until, |_| false);
            let after = d.pair.server.stats();
            // No packet sent since then can have been reported.
            let flight = after.counters.sent - sent;
            if is_new {
                assert!(after.flight <= 20 && flight <= 20, "{protocol}: {after:?}");
                assert_eq!(after.datagram, 1200, "{protocol}");
                // The RTT is unknown if the challenge was sent twice.
                let known = after.srtt > Duration::ZERO;
                assert!(
                    !known || after.srtt >= Duration::from_millis(200),
                    "{protocol}: {after:?}"
                );
                assert_eq!(d.pair.server.learned().rate, None, "{protocol}");
            } else {
                assert!(after.min_rtt < Duration::from_millis(50), "{protocol}: {after:?}");
            }
        }
    }
}

/// Measurements between two visits of an address belong to another path, whether or not the congestion state was reset.
#[test]
fn measurements_of_connection_that_moved_are_not_learned() {
    for seconds_elsewhere in [0.2, 4.0] {
        let mut download = Download::new("rrtp", Net::good());
        let home = download.pair.client_at.to_string();
        download.run_for(2.0);
        assert!(download.pair.server.learned().rate.is_some());
        download.moves(ELSEWHERE);
        download.run_for(seconds_elsewhere);
        download.moves(&home);
        download.run_for(4.0);
        for end in [&download.pair.server, &download.pair.client] {
            assert_eq!(end.learned(), PathHints::default(), "{seconds_elsewhere} s elsewhere");
        }
    }
}

/// Data lost with the old path are retransmitted, and their loss is no congestion on the new path.
#[test]
fn losses_on_the_old_path_are_no_congestion() {
    for protocol in ["rrtp", "rrtp+cubic", "rrtp+reno", "rrtp+bbr", "rrtp+tfwc", "rrtp+tfrc"] {
        let net = Net { queue: 1_000_000, ..Net::good() };
        let mut d = Download::new(protocol, net);
        d.run_for(3.0);
        let before = d.pair.server.stats().counters;
        assert_eq!((before.lost, before.episodes), (0, 0), "{protocol}");
        d.moves(ELSEWHERE);
        let came = d.came;
        d.run_for(3.0);
        let after = d.pair.server.stats().counters;
        assert!(after.lost > 20, "{protocol}: what was on its way to the old address: {after:?}");
        assert_eq!(after.episodes, 0, "{protocol}: {after:?}");
        // Bytes arrive in order, so the lost ones were retransmitted.
        assert!(d.came > came + 500_000, "{protocol}: {} then {}", came, d.came);
    }
}

/// The last packets before the change, lost with the old path, are retransmitted although no other data wait.
#[test]
fn losses_on_the_old_path_are_retransmitted_without_reports() {
    // Without MTU probes, whose arrival would reveal the losses.
    let small = ConnectionConfig { max_datagram: 1200, ..config("rrtp+cubic") };
    let mut pair = Pair::new(&small, Net::good(), 1);
    pair.transfer(Side::Server, 100_000, 10.0).unwrap();
    pair.client_at = ELSEWHERE.parse().unwrap();
    let hello = pair.client.open(true).unwrap();
    pair.client.write(hello, b"here").unwrap();
    // Just before the response to the challenge arrives, the old address is unreachable.
    pair.run_for(0.059);
    assert_ne!(pair.server.remote(), pair.client_at);
    let id = pair.server.open(true).unwrap();
    pair.server.write(id, &[1; 2000]).unwrap();
    pair.server.finish(id).unwrap();
    pair.run_for(0.005);
    assert_eq!(pair.server.remote(), pair.client_at);
    let until = pair.now + Duration::from_secs(10);
    let mut buffer = [0; 4000];
    let mut came = 0;
    assert!(pair.run(until, |p| {
        while p.client.accept().is_some() {}
        while let Ok(Read::Bytes(n)) = p.client.read(id, &mut buffer) {
            came += n;
        }
        came == 2000
    }));
}

#[test]
fn reports_of_the_old_path_give_no_rtt() {
    for protocol in ["rrtp", "rrtp+cubic", "rrtp+bbr"] {
        let slow = Net { delay: Duration::from_millis(200), ..Net::good() };
        let mut d = Download::new(protocol, slow);
        d.run_for(5.0);
        d.pair.net.delay = Duration::from_millis(10);
        // Packets on the old path arrive, and their reports return over the new one.
        d.pair.old_at = Some(d.pair.client_at);
        d.moves(ELSEWHERE);
        d.srtt = Duration::ZERO;
        d.run_for(1.0);
        let stats = d.pair.server.stats();
        assert!(
            d.srtt > Duration::ZERO && d.srtt < Duration::from_millis(100),
            "{protocol}: {:?}",
            d.srtt
        );
        assert!(stats.min_rtt >= Duration::from_millis(20), "{protocol}: {stats:?}");
    }
}

/// The end that moved replaces its receiver side, too, after NEW_PATH.
#[test]
fn the_receiver_half_begins_anew_at_the_end_that_moved() {
    let mut d = Download::new("rrtp+tfrc", Net { loss: 0.03, ..Net::good() });
    d.run_for(5.0);
    assert!(watched(&d.pair.client)["receiver_loss_event_rate"] > 0.0);
    d.pair.net.loss = 0.0;
    d.moves(ELSEWHERE);
    d.run_for(0.3);
    assert_eq!(watched(&d.pair.client)["receiver_loss_event_rate"], 0.0);
    // A change of port alone is no new path.
    let mut d = Download::new("rrtp+tfrc", Net { loss: 0.03, ..Net::good() });
    d.run_for(5.0);
    d.pair.net.loss = 0.0;
    d.moves("192.0.2.1:6000");
    d.run_for(0.3);
    assert!(watched(&d.pair.client)["receiver_loss_event_rate"] > 0.0);
}

/// A peer that announces path changes all the time does not get an initial window for each.
#[test]
fn constantly_changing_path_is_not_reset_each_time() {
    let mut d = Download::new("rrtp+cubic", Net::good());
    d.run_for(2.0);
    let mut begun = 0;
    for times in 1..=500 {
        let before = d.pair.server.path.sender.packets_in_flight();
        let now = d.pair.now;
        let next = d.pair.server.path.receiver.next_number();
        d.pair.server.on_new_path(now, times, next);
        begun += u32::from(before > 0 && d.pair.server.path.sender.packets_in_flight() == 0);
        d.run_for(0.01);
    }
    assert!((2..=5).contains(&begun), "{begun} in 5 s");
}
