//! Limits of an endpoint, and the cost of many connections for each other.

use super::hostile_tests::{drain, place, server, start_of};
use super::stub::{CLIENT, SERVER, StubConnection, StubNetwork, Test, config, random};
use super::{Clients, Connections, EndpointConfig, EndpointLimits, Handle, ServerKey};
use crate::connection::{Closed, ConnectionEvent};
use narrows_base::{Duration, Time};
use narrows_wire::VERSION;
use narrows_wire::packet;

/// A flood that fills the queue of replies does not stop connections.
#[test]
fn strangers_and_connections_take_turns() {
    let mut net = StubNetwork::pair(2);
    let handle = net.connect(ServerKey::Any);
    net.run_for(1.0);
    let now = net.now;
    let endpoint = net.at(CLIENT);
    endpoint.config.clients = Clients::Any;
    for n in 0..200 {
        endpoint.receive(now, place(n), 0, &mut packet::syn(VERSION, &[0; 16]));
    }
    for _ in 0..10 {
        endpoint.connection(handle).unwrap().to_say.push_back(b"important".to_vec());
    }
    let first: Vec<bool> = drain(endpoint, now).iter().take(20).map(|(_, b)| b[0] < 0x80).collect();
    assert_eq!(first.iter().filter(|is_data| **is_data).count(), 10);
}

/// Handshakes during ten minutes leave as many entries as those of 40 s.
#[test]
fn remembered_handshakes_are_bounded() {
    let mut endpoint = server(16);
    let mut most = 0;
    for n in 0..600u32 {
        let now = Time::from_nanos(1_000_000_000 * u64::from(50 + n));
        endpoint.on_timeout(now);
        let start = start_of(&mut endpoint, now, place(n), n as u8).start().to_vec();
        endpoint.receive(now, place(n), 0, &mut start.clone());
        drain(&mut endpoint, now);
        most = most.max(endpoint.gate.sizes()[2]);
        assert_eq!(endpoint.gate.sizes()[1], endpoint.gate.sizes()[2]);
    }
    assert!(most <= 42, "{most}");
}

/// Packets with unknown IDs get a RESET, at a limited rate and with fewer bytes than they have.
#[test]
fn resets_are_few_and_short() {
    let mut endpoint = server(16);
    let mut resets = 0;
    for n in 0..2000u64 {
        let now = Time::from_nanos(5_000_000_000 + n * 1_000_000);
        let mut short = vec![0; 24 + n as usize % 100];
        short[1..5].copy_from_slice(&(n as u32 * 7).to_be_bytes());
        endpoint.receive(now, place(n as u32), 0, &mut short);
        for (_, reset) in drain(&mut endpoint, now) {
            assert!(reset.len() < short.len());
            resets += 1;
        }
    }
    assert!((200..=300).contains(&resets), "{resets}");
    // A RESET gets no reply.
    let now = Time::from_secs_f64(60.0);
    endpoint.receive(now, place(1), 0, &mut packet::reset(&[1; 16]));
    assert_eq!(drain(&mut endpoint, now), []);
}

/// An endpoint with `count` idle connections, of which the test uses one.
fn crowd(count: usize) -> (Test, Handle, StubNetwork<StubConnection>) {
    let mut net = StubNetwork::pair(6);
    for address in [SERVER, CLIENT] {
        let clients = if address == SERVER { Clients::Any } else { Clients::None };
        let n = if address == SERVER { 2 } else { 1 };
        let config = EndpointConfig {
            limits: EndpointLimits {
                connections_of_source: count,
                handshakes: count,
                handshake_rate: 4 * count as u32,
                handshake_rate_of_source: 4 * count as u32,
                ..EndpointLimits::new(count)
            },
            ..config(n, clients)
        };
        *net.at(address) = Connections::new(config, random(n.into()));
    }
    for n in 1..=count {
        net.connect(ServerKey::Any);
        if n % 200 == 0 || n == count {
            net.run_for(0.2);
        }
    }
    assert_eq!(net.events.len(), 2 * count);
    let handle = net.events.iter().find(|e| e.0 == CLIENT.parse().unwrap()).unwrap().1;
    (net.ports.remove(&CLIENT.parse().unwrap()).unwrap(), handle, net)
}

/// The cost of a packet does not depend on the number of idle connections: none of them is queried,
/// and no alarm is set or taken.
#[test]
fn idle_connections_send_and_wake_rarely() {
    let count = if cfg!(debug_assertions) { 1_000 } else { 10_000 };
    let (mut endpoint, handle, net) = crowd(count);
    let looks = |endpoint: &mut Test| -> u64 {
        let slots = endpoint.table.slots() as u32;
        (0..slots)
            .filter_map(|slot| match &endpoint.table.get(slot)?.content {
                Some(super::connection_state::ConnectionState::Live(live)) => {
                    Some(live.connection.looks)
                }
                _ => None,
            })
            .sum()
    };
    let before = looks(&mut endpoint);
    assert_eq!(endpoint.alarms.len(), count);
    for n in 0..100 {
        let now = net.now + Duration::from_millis(n);
        endpoint.on_timeout(now);
        endpoint.connection(handle).unwrap().to_say.push_back(b"x".to_vec());
        assert_eq!(drain(&mut endpoint, now).len(), 1);
        assert!(endpoint.next_timeout() > now);
        assert_eq!(endpoint.alarms.len(), count);
    }
    // Each packet needs two calls of `transmit`, of which the second returns no packet.
    assert_eq!(looks(&mut endpoint) - before, 200);
    assert!(endpoint.ready.is_empty());
    // All timers expire.
    let end = net.now + Duration::from_secs(60);
    endpoint.on_timeout(end);
    drain(&mut endpoint, end);
    let closed = std::iter::from_fn(|| endpoint.event())
        .filter(|e| e.1 == ConnectionEvent::Closed(Closed::TimedOut))
        .count();
    assert_eq!((closed, endpoint.len(), endpoint.alarms.len()), (count, 0, 0));
    assert_eq!(endpoint.remotes.len(), 0);
}

/// Every connection with data to send has its turn.
#[test]
fn turns_are_fair() {
    let (mut endpoint, _, net) = crowd(10);
    let all: Vec<Handle> =
        net.events.iter().filter(|e| e.0 == CLIENT.parse().unwrap()).map(|e| e.1).collect();
    for (n, handle) in all.iter().enumerate() {
        for _ in 0..5 + n {
            endpoint.connection(*handle).unwrap().to_say.push_back(vec![n as u8]);
        }
    }
    let ids: Vec<Vec<u8>> =
        drain(&mut endpoint, net.now).iter().map(|p| p.1[1..5].to_vec()).collect();
    for round in ids.chunks(10).take(5) {
        let different: std::collections::BTreeSet<&Vec<u8>> = round.iter().collect();
        assert_eq!(different.len(), 10);
    }
}
