//! Admission, turns, and which requests give way.

use super::*;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::mpsc;

fn source(address: &str, key: u8) -> RequestSource {
    RequestSource::new(Some(address.parse::<IpAddr>().unwrap()), Some([key; 32]), false)
}
fn listed(address: &str, key: u8) -> RequestSource {
    RequestSource::new(Some(address.parse::<IpAddr>().unwrap()), Some([key; 32]), true)
}
fn table() -> RequestTable {
    RequestTable::new(MAX_REQUESTS, MAX_RUNNING, IDLE.as_millis() as u64)
}

/// Admits as many requests as possible from one address, each with its own id.
fn flood(
    table: &mut RequestTable,
    now: u64,
    address: &str,
    keys: std::ops::Range<u8>,
    each: usize,
) -> Vec<u64> {
    let all = keys.flat_map(|key| (0..each).map(move |_| key));
    let admitted = all.filter_map(|key| table.admit(now, source(address, key)));
    admitted.map(|(id, _)| id).collect()
}

#[test]
fn nine_connections_of_128_streams_do_not_shut_others_out() {
    let mut t = table();
    let held = flood(&mut t, 0, "192.0.2.9", 0..9, 128);
    assert_eq!(t.len(), MAX_REQUESTS.network, "one address never has all places");
    // A client elsewhere is admitted at once, also when the rest is taken by others.
    let (_, gone) = t.admit(0, source("198.51.100.1", 77)).unwrap();
    assert!(gone.is_empty());
    flood(&mut t, 0, "203.0.113.1", 10..19, 128);
    assert_eq!(t.len(), MAX_REQUESTS.all);
    let (_, gone) = t.admit(0, source("198.51.100.2", 78)).unwrap();
    assert_eq!(gone.len(), 1, "who holds most gives way, moving or not");
    // Behind the attacker's own address, the key with the most requests gives way.
    let (mine, gone) = t.admit(0, source("192.0.2.9", 99)).unwrap();
    assert!(gone.iter().all(|id| held.contains(id)) && !gone.is_empty(), "{gone:?}");
    // The attacker does not get the slot back.
    for now in [0, 500, 5000] {
        t.moved(now, mine, now * 100);
        for _ in 0..300 {
            if let Some((_, gone)) = t.admit(now, source("192.0.2.9", 1)) {
                assert!(
                    !gone.contains(&mine),
                    "a client that moves was thrown out for one that holds more"
                );
            }
        }
    }
}

#[test]
fn requests_of_many_keys_give_way_without_progress() {
    let mut t = table();
    for n in 0..MAX_REQUESTS.network as u32 {
        let mut key = [0; 32];
        key[..4].copy_from_slice(&n.to_be_bytes());
        let one = RequestSource::new(Some("192.0.2.9".parse().unwrap()), Some(key), false);
        t.admit(0, one).unwrap();
    }
    let newcomer = source("192.0.2.9", 200);
    assert!(t.admit(10, newcomer.clone()).is_none(), "all requests are equally idle");
    let (_, gone) = t.admit(1000, newcomer).unwrap();
    assert_eq!(gone.len(), 1);
}

#[test]
fn listed_clients_give_way_only_to_listed_ones() {
    let mut t = RequestTable::new(RequestLimits { key: 9, network: 9, all: 3 }, MAX_RUNNING, 1000);
    for n in 0..3 {
        t.admit(0, listed(&format!("192.0.2.{n}"), n)).unwrap();
    }
    assert!(t.admit(60_000, source("198.51.100.1", 9)).is_none());
    assert!(t.admit(60_000, listed("198.51.100.1", 9)).is_some());
    // In the opposite case at once, even if the other request moves.
    let mut t = RequestTable::new(RequestLimits { key: 9, network: 9, all: 1 }, MAX_RUNNING, 1000);
    let (stranger, _) = t.admit(0, source("192.0.2.1", 1)).unwrap();
    t.moved(0, stranger, 1 << 20);
    assert_eq!(t.admit(1, listed("198.51.100.1", 9)).unwrap().1, [stranger]);
}

/// An IPv6 host has a /64, a customer a /56, a site a /48: none of them gets more than one IPv4 address.
#[test]
fn ipv6_addresses_are_counted_by_their_networks() {
    let mut t = table();
    for n in 0..2000_u32 {
        let address = format!("2001:db8:1:{:x}::{n:x}", n % 700);
        t.admit(0, source(&address, (n % 250) as u8));
    }
    assert_eq!(t.len(), MAX_REQUESTS.network);
    assert!(t.admit(0, source("2001:db8:2::1", 1)).unwrap().1.is_empty());
}

#[test]
fn turns_go_to_fewest_requests_and_idle_answers_end() {
    let limits = RequestLimits { key: 2, network: 3, all: 4 };
    let mut t = RequestTable::new(MAX_REQUESTS, limits, 1000);
    let ask = |t: &mut RequestTable, now, address: &str, key| {
        let (id, _) = t.admit(now, source(address, key)).unwrap();
        t.wait(now, id);
        id
    };
    let hostile: Vec<u64> = (0..8).map(|i| ask(&mut t, 0, "192.0.2.9", i / 3)).collect();
    let mut running = Vec::new();
    while let (Some(id), _) = t.turn(0) {
        t.run(0, id);
        running.push(id);
    }
    // Key by key, and no more of one address than its limit.
    assert_eq!(running, [hostile[0], hostile[3], hostile[6]]);
    let honest = ask(&mut t, 0, "198.51.100.1", 50);
    assert_eq!(t.turn(0), (Some(honest), None), "before those who asked first");
    t.run(0, honest);
    t.moved(500, honest, 100_000);
    // Behind the same address: no request is idle, and no key holds more.
    let neighbour = ask(&mut t, 500, "192.0.2.9", 60);
    assert_eq!(t.turn(500), (None, None));
    // Now they are idle: all three end, since more than three wait, and the conforming client moves on.
    let victims: Vec<u64> = std::iter::from_fn(|| match t.turn(1000) {
        (None, victim) => victim,
        (Some(_), _) => panic!("no request has ended yet"),
    })
    .collect();
    assert_eq!(victims.iter().collect::<BTreeSet<_>>(), running.iter().collect());
    t.remove(victims[0]);
    assert_eq!(t.turn(1002).0, Some(neighbour));
}

/// Moving answers end only as far as necessary: one, until its thread is free.
#[test]
fn of_answers_that_move_one_after_the_other_ends() {
    let limits = RequestLimits { key: 3, network: 3, all: 4 };
    let mut t = RequestTable::new(MAX_REQUESTS, limits, 1000);
    for _ in 0..3 {
        let (id, _) = t.admit(0, source("192.0.2.9", 1)).unwrap();
        t.wait(0, id);
        assert_eq!(t.turn(0).0, Some(id));
        t.run(0, id);
    }
    for key in [2, 3] {
        let (id, _) = t.admit(0, source("192.0.2.9", key)).unwrap();
        t.wait(0, id);
    }
    let (None, Some(victim)) = t.turn(1) else { panic!("who holds three gives way") };
    assert_eq!(t.turn(2), (None, None));
    t.remove(victim);
    assert!(t.turn(3).0.is_some());
}

#[test]
fn request_over_its_time_is_named() {
    let mut t = table();
    let (reading, _) = t.admit(0, source("192.0.2.1", 1)).unwrap();
    let (waiting, _) = t.admit(0, source("192.0.2.1", 1)).unwrap();
    let (running, _) = t.admit(0, source("192.0.2.1", 1)).unwrap();
    t.wait(0, waiting);
    t.run(0, running);
    t.moved(100, running, 999);
    assert!(t.late(9, 10, 20, 30).is_empty());
    assert_eq!(t.late(10, 10, 20, 30), [(reading, RequestStage::Reading)]);
    // A few bytes do not count as moving.
    let all = t.late(30, 10, 20, 30);
    assert_eq!(all.len(), 3);
    assert!(
        all.contains(&(running, RequestStage::Running))
            && all.contains(&(waiting, RequestStage::Waiting))
    );
}

/// With any number of requests the threads stay within the limit, and each request is answered or refused.
#[test]
fn threads_are_bounded_and_every_request_is_answered() {
    let limits = RequestLimits { key: 64, network: 64, all: 64 };
    let few = RequestLimits { key: 4, network: 4, all: 4 };
    let requests = Requests::new(limits, few, Duration::from_secs(3600));
    let (open, gate) = mpsc::channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let (tell, results) = mpsc::channel();
    for n in 0..64 {
        let slot = requests.admit(source("192.0.2.1", n)).unwrap();
        let gate = Arc::clone(&gate);
        let tell = tell.clone();
        requests.run(slot, move |slot| {
            let _ = gate.lock().unwrap().recv();
            tell.send(slot.is_ok()).unwrap();
        });
    }
    assert_eq!(requests.len(), 64);
    assert!(requests.threads() <= 4);
    assert!(requests.admit(source("192.0.2.1", 65)).is_err(), "no request is idle yet");
    drop(open);
    assert_eq!((0..64).filter(|_| results.recv().unwrap()).count(), 64);
    assert!(requests.threads() <= 4);
    while !requests.is_empty() {
        std::thread::yield_now();
    }
}

/// A waiting request whose slot is revoked gets the error, and its slot is free.
#[test]
fn evicted_waiting_request_is_answered() {
    let two = RequestLimits { key: 2, network: 2, all: 2 };
    let requests = Requests::new(two, RequestLimits { key: 1, network: 1, all: 1 }, Duration::ZERO);
    let (open, gate) = mpsc::channel::<()>();
    let (tell, results) = mpsc::channel();
    let first = requests.admit(source("192.0.2.1", 1)).unwrap();
    let view = first.view();
    requests.run(first, move |_slot| {
        let _ = gate.recv();
    });
    let waits = requests.admit(source("192.0.2.1", 1)).unwrap();
    requests.run(waits, move |slot| tell.send(slot.err().map(|e| e.kind)).unwrap());
    // Two listed clients take both slots: that of the running request, and that of the waiting one.
    let newcomers: Vec<_> =
        (2..4).filter_map(|n| requests.admit(listed("198.51.100.1", n)).ok()).collect();
    assert_eq!(newcomers.len(), 2);
    assert_eq!(results.recv().unwrap(), Some(ErrorKind::Busy));
    assert_eq!(view.given_up().map(|e| e.kind), Some(ErrorKind::Busy));
    drop(open);
    drop(newcomers);
    while !requests.is_empty() {
        std::thread::yield_now();
    }
}

#[test]
fn requests_of_clients_that_are_not_admitted_any_more_end() {
    let requests = Requests::new(MAX_REQUESTS, MAX_RUNNING, IDLE);
    let of = |key: u8| RequestSource::new(None, Some([key; 32]), true);
    let stays = requests.admit(of(1)).unwrap();
    let goes = requests.admit(of(2)).unwrap();
    let unknown = requests.admit(RequestSource::new(None, None, false)).unwrap();
    requests.end_others(|key| *key == [1; 32]);
    assert!(stays.given_up().is_none() && unknown.given_up().is_none());
    assert_eq!(goes.given_up().unwrap().kind, ErrorKind::Refused);
}
