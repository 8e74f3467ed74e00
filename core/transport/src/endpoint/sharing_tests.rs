//! Floods of connections, and their effect on conforming clients.

use super::attackers::{ATTACKER, Attackers, NEIGHBOUR, close_code, connect, is_alive, net, speak};
use super::hostile_tests::sizes;
use super::stub::{CLIENT, SERVER, StubConnection, StubNetwork, key};
use super::{Clients, Handle};
use crate::connection::{Closed, ConnectionEvent};
use narrows_base::{Duration, Time};
use narrows_wire::packet::ParsedPacket;
use std::net::SocketAddr;

/// Connections with a complete handshake.
fn connected(net: &StubNetwork<StubConnection>) -> Vec<Handle> {
    let complete = net.events.iter().filter(|e| matches!(e.2, ConnectionEvent::Connected(_)));
    complete.map(|e| e.1).collect()
}

/// Ten seconds of 70 connections per second from one address, each with its own key, as in an attack that once excluded
/// all other clients. Active clients keep their connections. New clients at other addresses, and at the attacker's,
/// connect as fast as usual. The server stays within its limits.
#[test]
fn flood_from_one_address_leaves_places_for_the_rest() {
    let mut net = net(1, Clients::Any);
    let mut attackers = Attackers::new();
    let talker = connect(&mut net, CLIENT);
    let near_talker = connect(&mut net, NEIGHBOUR);
    net.run_for(0.2);
    let mut newcomers = Vec::new();
    for n in 0..700 {
        let from = attackers.place(ATTACKER);
        assert!(attackers.connect(&mut net, from, 100 + (n % 100) as u8).is_some());
        net.run_for(1.0 / 70.0);
        if n % 35 == 0 {
            speak(&mut net, CLIENT, talker);
            speak(&mut net, NEIGHBOUR, near_talker);
        }
        if n % 70 == 20 {
            newcomers = vec![
                (CLIENT, connect(&mut net, CLIENT)),
                (NEIGHBOUR, connect(&mut net, NEIGHBOUR)),
            ];
        }
        // Two round trips later they are connected, and send data. They close after half a second.
        if n % 70 == 27 {
            for (from, handle) in newcomers.clone() {
                assert!(is_alive(&mut net, from, handle), "{n}: {from} did not get in");
                (0..9).for_each(|_| speak(&mut net, from, handle));
            }
        }
        if n % 70 == 60 {
            let now = net.now;
            for (from, handle) in newcomers.drain(..) {
                assert!(is_alive(&mut net, from, handle), "{n}: {from} was put out");
                net.at(from).close(now, handle, 0, "");
            }
        }
        let server = net.at(SERVER);
        assert!(server.connections() <= 32 && server.table.slots() <= 96);
        assert!(server.counts.len() <= 2 && server.counts.gone == 0);
    }
    assert!(is_alive(&mut net, CLIENT, talker) && is_alive(&mut net, NEIGHBOUR, near_talker));
    // One network has at most half of the places.
    assert!(net.at(SERVER).connections() <= 17 + 1);
}

/// Even without the limit per network, the network with most idle places gives way, not a conforming client that is
/// idle.
#[test]
fn idle_client_stays_while_another_network_holds_more() {
    let mut net = net(2, Clients::Any);
    net.at(SERVER).config.limits.connections_of_source = 32;
    let mut attackers = Attackers::new();
    let idle = connect(&mut net, CLIENT);
    net.run_for(0.2);
    for n in 0..200 {
        let from = attackers.place(ATTACKER);
        assert!(attackers.connect(&mut net, from, (n % 100) as u8 + 100).is_some());
        net.run_for(0.01);
    }
    assert_eq!(net.at(SERVER).connections(), 32);
    assert!(is_alive(&mut net, CLIENT, idle));
}

/// A few bytes now and then do not count as activity.
#[test]
fn connections_that_trickle_give_way_to_a_neighbour() {
    let mut net = net(3, Clients::Any);
    let mut attackers = Attackers::new();
    for n in 0..16 {
        let from = attackers.place(ATTACKER);
        attackers.connect(&mut net, from, 100 + n).expect("there is room");
    }
    for _ in 0..30 {
        for handle in connected(&net) {
            net.at(SERVER).connection(handle).unwrap().moved += 10;
        }
        net.run_for(0.5);
    }
    let neighbour = connect(&mut net, NEIGHBOUR);
    net.run_for(0.2);
    assert!(is_alive(&mut net, NEIGHBOUR, neighbour));
    let gone =
        net.events.iter().filter(|e| e.2 == ConnectionEvent::Closed(Closed::GaveWay)).count();
    assert_eq!(gone, 1);
}

/// An attacker sends a few bytes on each of its connections and floods with new ones. Another client at its address
/// still has time for its first request.
#[test]
fn a_newcomer_is_not_put_out_before_its_first_request() {
    let mut net = net(10, Clients::Any);
    let mut attackers = Attackers::new();
    let mut neighbour = None;
    for n in 0..160u32 {
        let from = attackers.place(ATTACKER);
        attackers.connect(&mut net, from, 100 + (n % 100) as u8);
        net.run_for(0.05);
        let all: Vec<Handle> = net.events.iter().map(|e| e.1).collect();
        let near: SocketAddr = NEIGHBOUR.parse().unwrap();
        for handle in all {
            let now = net.now;
            let endpoint = net.at(SERVER);
            if let Some(c) = endpoint.connection(handle).filter(|c| c.remote != near) {
                c.moved += 1;
                endpoint.facts(now, handle);
            }
        }
        if n == 100 {
            neighbour = Some(connect(&mut net, NEIGHBOUR));
        }
        // Half a second, as on a long path.
        if n == 110 {
            assert!(is_alive(&mut net, NEIGHBOUR, neighbour.unwrap()));
            (0..9).for_each(|_| speak(&mut net, NEIGHBOUR, neighbour.unwrap()));
        }
    }
    assert!(is_alive(&mut net, NEIGHBOUR, neighbour.unwrap()));
}

/// A network of hosts with one connection each: active clients are not affected, and a new active client connects.
#[test]
fn flood_from_many_addresses_evicts_no_active_connection() {
    let mut net = net(4, Clients::Any);
    let mut attackers = Attackers::new();
    let talker = connect(&mut net, CLIENT);
    net.run_for(0.1);
    let mut newcomer = None;
    for n in 0..400u32 {
        let from = SocketAddr::new(std::net::Ipv4Addr::from_bits(0x0a00_0000 + n * 999).into(), 7);
        attackers.connect(&mut net, from, 100 + (n % 100) as u8);
        net.run_for(0.02);
        speak(&mut net, CLIENT, talker);
        match n {
            100 => newcomer = Some(connect(&mut net, NEIGHBOUR)),
            105.. => speak(&mut net, NEIGHBOUR, newcomer.unwrap()),
            _ => {}
        }
    }
    assert!(is_alive(&mut net, CLIENT, talker));
    assert!(is_alive(&mut net, NEIGHBOUR, newcomer.unwrap()));
    assert_eq!(net.at(SERVER).connections(), 32);
}

/// A connection that gives way gets one CLOSE, and a RESET for later packets.
#[test]
fn evicted_connection_gets_the_reason() {
    let mut net = net(5, Clients::Any);
    let mut attackers = Attackers::new();
    let from = attackers.place(ATTACKER);
    let (mut first, _) = attackers.connect(&mut net, from, 100).unwrap();
    for n in 1..=16 {
        net.run_for(0.01);
        let from = attackers.place(ATTACKER);
        attackers.connect(&mut net, from, 100 + n).unwrap();
    }
    let told = attackers.inboxes.remove(&from).expect("something came");
    assert_eq!(close_code(&mut first, &told), Some(8));
    let mut ping = [0; 8 + 5 + 16];
    ping[12] = 1;
    first.sealer.seal(0, None, &mut ping).unwrap();
    let answer = attackers.say(&mut net, from, &ping);
    assert!(matches!(ParsedPacket::read(&answer[0]), Ok(ParsedPacket::Reset { .. })));
}

/// If all places are taken by connections that move data, no connection gives way, even if no packet has come since the
/// application received the data. A new client gets BUSY, retries, and gets the first place that becomes free.
#[test]
fn active_connections_stay_and_newcomers_get_busy() {
    let mut net = net(6, Clients::Any);
    let mut attackers = Attackers::new();
    for n in 0..32u8 {
        let from = attackers.place(&format!("10.0.0.{n}"));
        attackers.connect(&mut net, from, 100 + n).expect("there is room");
    }
    let all: Vec<Handle> = net.events.iter().map(|e| e.1).collect();
    let keep_moving = |net: &mut StubNetwork<StubConnection>, seconds: u32, left: usize| {
        for _ in 0..seconds * 2 {
            let now = net.now;
            for handle in &all[..left] {
                let endpoint = net.at(SERVER);
                endpoint.connection(*handle).unwrap().moved += 1000;
                endpoint.connection(*handle).unwrap().idle_until = now + Duration::from_secs(30);
            }
            net.run_for(0.5);
        }
    };
    keep_moving(&mut net, 10, 32);
    let refused = connect(&mut net, CLIENT);
    keep_moving(&mut net, 16, 32);
    assert!(!is_alive(&mut net, CLIENT, refused));
    assert_eq!(net.closed(CLIENT), Some(Closed::Busy));
    assert!(net.events.iter().all(|e| e.2 != ConnectionEvent::Closed(Closed::GaveWay)));
    let patient = connect(&mut net, CLIENT);
    keep_moving(&mut net, 5, 32);
    let now = net.now;
    net.at(SERVER).close(now, all[31], 0, "");
    keep_moving(&mut net, 5, 31);
    assert!(is_alive(&mut net, CLIENT, patient));
}

/// Makes all connections of the server move data: `bytes` for each client address.
fn move_data(net: &mut StubNetwork<StubConnection>, bytes: impl Fn(SocketAddr) -> u64) {
    let now = net.now;
    for handle in connected(net) {
        let endpoint = net.at(SERVER);
        if let Some(c) = endpoint.connection(handle) {
            c.moved += bytes(c.remote);
            c.idle_until = now + Duration::from_secs(30);
            endpoint.facts(now, handle);
        }
    }
}

/// Two addresses hold all places, and move just enough in each of their connections to count as active. A client at
/// another address connects, and so does one at one of these addresses. An old connection that moves much more is kept.
#[test]
fn little_traffic_in_each_does_not_keep_all_places() {
    let mut net = net(11, Clients::Any);
    let mut attackers = Attackers::new();
    let talker = connect(&mut net, NEIGHBOUR);
    net.run_for(0.2);
    for n in 0..31u8 {
        let from = attackers.place(if n < 15 { ATTACKER } else { "198.51.100.66" });
        attackers.connect(&mut net, from, 100 + n).expect("there is room");
    }
    let near: SocketAddr = NEIGHBOUR.parse().unwrap();
    let mut newcomers = None;
    for n in 0..60 {
        move_data(&mut net, |remote| if remote == near { 10_000 } else { 1000 });
        let now = net.now;
        let near_talker = net.at(NEIGHBOUR).connection(talker).unwrap();
        near_talker.idle_until = now + Duration::from_secs(30);
        if n == 40 {
            let far = connect(&mut net, CLIENT);
            let behind = connect(&mut net, NEIGHBOUR);
            newcomers = Some((far, behind));
        }
        net.run_for(0.5);
    }
    let (far, behind) = newcomers.unwrap();
    assert!(is_alive(&mut net, CLIENT, far));
    assert!(is_alive(&mut net, NEIGHBOUR, behind));
    assert!(is_alive(&mut net, NEIGHBOUR, talker));
    let gone =
        net.events.iter().filter(|e| e.2 == ConnectionEvent::Closed(Closed::GaveWay)).count();
    assert_eq!(gone, 2);
}

/// All connections of an address move just enough to count as active, and each that gives way reconnects at once.
/// Another client at that address is not displaced before it could move data.
#[test]
fn returning_slow_connections_do_not_evict_a_newcomer() {
    let mut net = net(12, Clients::Any);
    let mut attackers = Attackers::new();
    for n in 0..16u8 {
        let from = attackers.place(ATTACKER);
        attackers.connect(&mut net, from, 100 + n).expect("there is room");
    }
    let near: SocketAddr = NEIGHBOUR.parse().unwrap();
    let mut behind = None;
    for n in 0..50u8 {
        move_data(&mut net, |remote| if remote == near { 0 } else { 1000 });
        if n == 44 {
            behind = Some(connect(&mut net, NEIGHBOUR));
        }
        if n == 45 {
            let from = attackers.place(ATTACKER);
            attackers.connect(&mut net, from, 200).expect("one that moves little gives way");
        }
        net.run_for(0.5);
    }
    assert!(is_alive(&mut net, NEIGHBOUR, behind.unwrap()));
}

/// An address opens 50 connections per second, each of which moves `each` bytes at once. More of them than there are
/// places count as new at the same time. They give way in the order of arrival. So another client at that address has a
/// round trip, and the time for its first response. Returns whether it kept its connection.
fn a_neighbour_among_newcomers_that_move(seed: u64, each: u64) -> bool {
    let mut net = net(seed, Clients::Any);
    let mut attackers = Attackers::new();
    let near: SocketAddr = NEIGHBOUR.parse().unwrap();
    let mut behind = None;
    for n in 0..120u32 {
        let from = attackers.place(ATTACKER);
        attackers.connect(&mut net, from, 100 + (n % 100) as u8);
        let now = net.now;
        let all = net.events.iter().map(|e| e.1).collect::<Vec<_>>();
        for handle in all {
            let endpoint = net.at(SERVER);
            let Some(c) = endpoint.connection(handle).filter(|c| c.remote != near) else {
                continue;
            };
            c.moved = c.moved.max(each);
            c.idle_until = now + Duration::from_secs(30);
            endpoint.facts(now, handle);
        }
        match n {
            60 => behind = Some(connect(&mut net, NEIGHBOUR)),
            // About 120 ms after its FINISH.
            70 if !is_alive(&mut net, NEIGHBOUR, behind.unwrap()) => return false,
            70.. => (0..9).for_each(|_| speak(&mut net, NEIGHBOUR, behind.unwrap())),
            _ => {}
        }
        net.run_for(0.02);
    }
    is_alive(&mut net, NEIGHBOUR, behind.unwrap())
}

#[test]
fn slightly_active_newcomers_do_not_evict_the_next() {
    assert!(a_neighbour_among_newcomers_that_move(13, 1000));
}

#[test]
fn active_newcomers_leave_room_for_the_next() {
    assert!(a_neighbour_among_newcomers_that_move(14, 10_000));
}

/// Listed keys give way last, and unlisted clients do not get all places.
#[test]
fn listed_keys_keep_a_quarter_of_the_places() {
    let listed = [*key(1).public()].into();
    let mut net = net(9, Clients::Preferring(listed));
    let mut attackers = Attackers::new();
    let first = connect(&mut net, CLIENT);
    net.run_for(0.1);
    for n in 0..100u32 {
        let from = attackers.place(&format!("10.0.0.{n}"));
        attackers.connect(&mut net, from, 100 + n as u8).expect("strangers are let in");
        // They move data, so that none gives way.
        let now = net.now;
        for handle in connected(&net).into_iter().skip(2) {
            if let Some(c) = net.at(SERVER).connection(handle) {
                c.moved += 9000;
                net.at(SERVER).facts(now, handle);
            }
        }
        if net.at(SERVER).connections() == 25 {
            break;
        }
    }
    assert!(is_alive(&mut net, CLIENT, first));
    let from = attackers.place("10.0.1.1");
    assert!(
        attackers
            .connect(&mut net, from, 99)
            .is_some_and(|(mut keys, said)| { close_code(&mut keys, &said) == Some(8) })
    );
    for _ in 0..7 {
        let handle = connect(&mut net, CLIENT);
        net.run_for(0.1);
        assert!(is_alive(&mut net, CLIENT, handle));
    }
    assert!(sizes(net.at(SERVER))[0] >= 32);
    assert!(net.now < Time::from_secs_f64(110.0));
}

/// A new list closes only the connections of clients that it does not permit, and new clients are checked against it.
#[test]
fn new_client_list_closes_only_removed_clients() {
    let both = [*key(1).public(), *key(8).public()].into();
    let mut net = net(10, Clients::Listed(both));
    let stays = connect(&mut net, CLIENT);
    let goes = connect(&mut net, NEIGHBOUR);
    net.run_for(0.2);
    assert!(is_alive(&mut net, CLIENT, stays) && is_alive(&mut net, NEIGHBOUR, goes));
    let now = net.now;
    net.at(SERVER).set_clients(now, Clients::Listed([*key(1).public()].into()));
    speak(&mut net, CLIENT, stays);
    net.run_for(0.2);
    assert!(is_alive(&mut net, CLIENT, stays));
    let closed = |net: &StubNetwork<StubConnection>| {
        net.events.iter().rev().find_map(|(_, _, event)| match event {
            ConnectionEvent::Closed(Closed::ByPeer { code, .. }) => Some(*code),
            _ => None,
        })
    };
    assert_eq!(closed(&net), Some(4));
    net.events.clear();
    connect(&mut net, NEIGHBOUR);
    net.run_for(0.5);
    assert_eq!(closed(&net), Some(4));
    let now = net.now;
    net.at(SERVER).set_clients(now, Clients::Any);
    let back = connect(&mut net, NEIGHBOUR);
    net.run_for(0.5);
    assert!(is_alive(&mut net, NEIGHBOUR, back));
    assert_eq!(net.at(SERVER).counts.unlisted, 2, "all are counted as unlisted now");
}
