//! Two endpoints with connections of several paths.

use super::stub::{CLIENT, SERVER, StubNetwork, config, connection, random, wish};
use super::{Clients, ConnectRequest, Connections, EndpointConfig, Handle, ServerKey};
use crate::connection::{Connection, ConnectionConfig};
use narrows_base::Duration;
use narrows_wire::header::ShortHeader;
use std::collections::BTreeSet;

type Whole = StubNetwork<Connection>;

/// A client that uses `ours` paths, and a server that permits `theirs`.
fn connected(ours: u8, theirs: u8) -> (Whole, Handle) {
    let mut net = Whole::new(3);
    let server = ConnectionConfig { paths: theirs, ..connection() };
    let server = EndpointConfig { connection: server, ..config(2, Clients::Any) };
    *net.at(SERVER) = Connections::new(server, random(5));
    let wanted = ConnectRequest {
        connection: ConnectionConfig { paths: ours, ..connection() },
        ..wish(SERVER, ServerKey::Any)
    };
    let now = net.now;
    let handle = net.at(CLIENT).connect(now, wanted).unwrap();
    net.run_for(0.5);
    (net, handle)
}

/// The connection IDs of all packets to an address.
fn ids(net: &Whole, to: &str) -> BTreeSet<u32> {
    let to = to.parse().unwrap();
    let to_it = net.seen.iter().filter(|packet| packet.1 == to && packet.2[0] < 0x80);
    to_it.map(|packet| ShortHeader::read(&packet.2).unwrap().connection.0).collect()
}

#[test]
fn each_path_has_its_own_id_until_close() {
    let (mut net, handle) = connected(3, 8);
    for path in 1..3 {
        let now = net.now;
        assert!(net.at(CLIENT).open_path(now, handle, path));
        assert!(!net.at(CLIENT).open_path(now, handle, path), "it was opened before");
    }
    net.run_for(2.0);
    let server = net.events.iter().find(|e| e.0 == SERVER.parse().unwrap()).unwrap().1;
    for (at, handle) in [(CLIENT, handle), (SERVER, server)] {
        assert_eq!(net.at(at).path_ids.len(), 2);
        let stats = net.at(at).connection(handle).unwrap().path_stats();
        assert!(stats.len() == 3 && stats.iter().all(|path| path.is_usable), "{at}: {stats:?}");
        assert_eq!(ids(&net, at).len(), 3, "{at}");
    }
    let now = net.now;
    net.at(CLIENT).close(now, handle, 256, "");
    net.run_for(20.0);
    assert!(net.at(CLIENT).is_empty() && net.at(SERVER).is_empty());
    assert_eq!((net.at(CLIENT).path_ids.len(), net.at(SERVER).path_ids.len()), (0, 0));
    // Packets to a path of the past get no state.
    let late = net.seen.iter().rev().find(|packet| packet.2[0] < 0x80).unwrap().clone();
    let at = net.now + Duration::from_millis(1);
    net.fly(at, late.0, late.1, &late.2);
    net.run_for(1.0);
    assert!(net.at(SERVER).is_empty());
}

#[test]
fn path_beyond_the_agreed_number_is_not_opened() {
    for (ours, theirs, path) in [(1, 8, 1), (2, 1, 1), (2, 8, 2), (2, 8, 0), (8, 4, 4)] {
        let (mut net, handle) = connected(ours, theirs);
        let now = net.now;
        assert!(!net.at(CLIENT).open_path(now, handle, path), "{ours}, {theirs}: {path}");
        assert_eq!(net.at(CLIENT).path_ids.len(), 0);
        net.run_for(1.0);
        assert!(net.closed(CLIENT).is_none() && net.closed(SERVER).is_none());
    }
}

#[test]
fn server_opens_no_path() {
    let (mut net, _) = connected(2, 2);
    let server = net.events.iter().find(|e| e.0 == SERVER.parse().unwrap()).unwrap().1;
    let now = net.now;
    assert!(!net.at(SERVER).open_path(now, server, 1));
}
