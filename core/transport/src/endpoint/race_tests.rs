//! Packets that are repeated, early, or for another connection: they open no second connection, leave no state, and end
//! no connection.

use super::attackers::{NEIGHBOUR, connect, is_alive, net, speak};
use super::hostile_tests::drain;
use super::stub::{CLIENT, SERVER, StubConnection, StubNetwork};
use super::{Clients, Handle, ServerKey};
use crate::connection::{Closed, Connection};
use crate::streams::Read;
use narrows_base::Duration;

/// A conforming client whose connection must continue.
fn honest(net: &mut StubNetwork<StubConnection>) -> Handle {
    let handle = connect(net, NEIGHBOUR);
    net.run_for(1.0);
    handle
}

fn still_talks(net: &mut StubNetwork<StubConnection>, handle: Handle) {
    let before = net.at(SERVER).len();
    speak(net, NEIGHBOUR, handle);
    net.run_for(1.0);
    assert!(is_alive(net, NEIGHBOUR, handle));
    assert_eq!(net.at(SERVER).len(), before);
}

/// Every packet of a connection is repeated, in both orders, during the connection, at its end and long after.
#[test]
fn replayed_connection_opens_and_closes_no_connection() {
    let mut net = net(3, Clients::Any);
    let handle = net.connect(ServerKey::Any);
    net.run_for(1.0);
    speak(&mut net, CLIENT, handle);
    net.run_for(1.0);
    let client = CLIENT.parse().unwrap();
    let said: Vec<Vec<u8>> =
        net.seen.iter().filter(|s| s.0 == client).map(|s| s.2.clone()).collect();
    assert!(said.len() >= 3, "START, FINISH, data");
    let replay = |net: &mut StubNetwork<StubConnection>| {
        let before = net.at(SERVER).connections();
        let mut answers = 0;
        for packet in said.iter().chain(said.iter().rev()) {
            let now = net.now;
            net.at(SERVER).receive(now, client, 0, &mut packet.clone());
            let sent = drain(net.at(SERVER), now);
            // A copied START without a cookie may begin a handshake that its FINISH cannot complete.
            answers += sent.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
            let after = net.at(SERVER).connections();
            assert_eq!(after, before, "a copy opened or ended a connection");
        }
        let bytes: usize = said.iter().map(Vec::len).sum();
        assert!(answers <= 2 * bytes, "{answers} bytes of answers to {} copied", 2 * bytes);
    };
    replay(&mut net);
    assert!(is_alive(&mut net, CLIENT, handle));
    let now = net.now;
    net.at(CLIENT).close(now, handle, 0, "");
    net.run_for(1.0);
    replay(&mut net);
    for seconds in [5.0, 15.0, 60.0] {
        net.now += Duration::from_secs_f64(seconds);
        net.run_for(0.1);
        replay(&mut net);
    }
    let newcomer = honest(&mut net);
    still_talks(&mut net, newcomer);
}

/// CLOSE arrives before the FINISH of its own connection, or FINISH never arrives. The connection ends as soon as it
/// begins, and no state remains.
#[test]
fn close_that_overtakes_finish_leaves_no_state() {
    for (finish, opens) in [(Some(100), true), (None, false)] {
        let mut net = StubNetwork::<Connection>::new(5);
        let handle = net.connect(ServerKey::Any);
        let mut is_closed = false;
        for _ in 0..60 {
            let until = net.now + Duration::from_millis(10);
            net.run(until, &mut |now, bytes| match (bytes[0], finish) {
                (0x85, None) => vec![],
                (0x85, Some(late)) => vec![now + Duration::from_millis(late)],
                _ => vec![now + Duration::from_millis(20)],
            });
            if net.is_connected(CLIENT) && !is_closed {
                is_closed = true;
                let now = net.now;
                net.at(CLIENT).close(now, handle, 300, "changed my mind");
            }
        }
        assert!(is_closed);
        let is_told = |net: &StubNetwork<Connection>| {
            matches!(net.closed(SERVER), Some(Closed::ByPeer { code: 300, .. }))
        };
        assert_eq!(net.is_connected(SERVER), opens);
        assert_eq!(is_told(&net), opens, "{:?}", net.closed(SERVER));
        net.run_for(60.0);
        assert!(net.at(CLIENT).is_empty() && net.at(SERVER).is_empty());
        assert_eq!(net.at(SERVER).gate.sizes()[0], 0, "no handshake waits");
    }
}

/// A connection has the slot, and so most of the ID, of one that ended. Packets of the old one, unchanged or with the
/// new ID, have no effect. The new connection transfers its data.
#[test]
fn packets_of_a_slots_last_connection_are_ignored() {
    let mut net = StubNetwork::<Connection>::new(6);
    let client = CLIENT.parse().unwrap();
    let server = SERVER.parse().unwrap();
    let first = net.connect(ServerKey::Any);
    net.run_for(1.0);
    let old = net.events.iter().find(|e| e.0 == server).unwrap().1;
    let old_id = net.at(SERVER).id(old).unwrap();
    let now = net.now;
    net.at(CLIENT).close(now, first, 0, "");
    net.run_for(60.0);
    assert!(net.at(SERVER).is_empty());
    let said: Vec<Vec<u8>> =
        net.seen.iter().filter(|s| s.0 == client).map(|s| s.2.clone()).collect();
    net.events.clear();
    let second = net.connect(ServerKey::Any);
    net.run_for(1.0);
    let new = net.events.iter().find(|e| e.0 == server).unwrap().1;
    let new_id = net.at(SERVER).id(new).unwrap();
    assert_ne!(old_id, new_id);
    for packet in &said {
        let now = net.now;
        net.at(SERVER).receive(now, client, 0, &mut packet.clone());
        let at = if packet[0] & 0x80 == 0 { 1 } else { 5 };
        let mut renamed = packet.clone();
        renamed[at..at + 4].copy_from_slice(&new_id.0.to_be_bytes());
        net.at(SERVER).receive(now, client, 0, &mut renamed);
    }
    assert!(said.iter().any(|p| p[0] & 0x80 == 0) && said.iter().any(|p| p[0] == 0x85));
    net.run_for(1.0);
    assert_eq!(net.at(SERVER).connections(), 1);
    let connection = net.at(CLIENT).connection(second).unwrap();
    let id = connection.open(true).unwrap();
    assert_eq!(connection.write(id, &[7; 20_000]).unwrap(), 20_000);
    net.run_for(2.0);
    let mut buffer = vec![0; 30_000];
    let read = net.at(SERVER).connection(new).unwrap().read(id, &mut buffer);
    assert_eq!(read, Ok(Read::Bytes(20_000)));
    assert_eq!((net.closed(CLIENT), net.closed(SERVER)), (None, None));
}
