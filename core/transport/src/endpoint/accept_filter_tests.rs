//! An application's filter decides which clients may connect.

use super::stub::{CLIENT, SERVER, StubConnection, StubNetwork, config, connection, key, random};
use super::{
    AcceptFilter, ClientFilter, Clients, Connections, Decision, EndpointConfig, IncomingClient,
};
use super::{EndpointLimits, ServerKey};
use crate::connection::{Closed, ConnectionConfig};
use narrows_base::Duration;
use narrows_wire::ApplicationProtocols;
use std::net::SocketAddr;

fn knocks(filter: ClientFilter) -> StubNetwork<StubConnection> {
    let mut net = StubNetwork::pair(3);
    let server = EndpointConfig { filter, ..config(2, Clients::Any) };
    *net.at(SERVER) = Connections::new(server, random(5));
    let now = net.now;
    // As long as a handshake lives. After that time later packets are answered as for any unknown connection.
    let patience = Duration::from_secs(10);
    let wish = super::ConnectRequest { patience, ..super::stub::wish(SERVER, ServerKey::Any) };
    net.at(CLIENT).connect(now, wish).unwrap();
    net.run_for(9.0);
    net
}

#[test]
fn refused_client_gets_the_reason_and_no_place() {
    let mut net = knocks(ClientFilter::new(|client: &IncomingClient<'_>| {
        assert_eq!((client.key, client.is_listed), (key(1).public(), false));
        assert_eq!(client.remote, CLIENT.parse().unwrap());
        Decision::Refuse(format!("no {}", "x".repeat(500)))
    }));
    let Some(Closed::ByPeer { code: 4, reason }) = net.closed(CLIENT) else {
        panic!("{:?}", net.closed(CLIENT));
    };
    assert!(reason.starts_with("no xxx") && reason.len() == 128, "{reason}");
    assert!(!net.is_connected(SERVER));
    assert_eq!(net.at(SERVER).connections(), 0);
    net.run_for(11.0);
    assert!(net.at(SERVER).is_empty());
}

/// Its handshake keeps a handshake's slot for its lifetime, but no connection's place. Its packets get no reply, not
/// even RESET.
#[test]
fn ignored_client_gets_no_answer_to_finish() {
    for panics in [false, true] {
        let mut net = knocks(ClientFilter::new(move |_: &IncomingClient<'_>| {
            assert!(!panics, "the filter's own fault");
            Decision::Ignore
        }));
        let server: SocketAddr = SERVER.parse().unwrap();
        let first = |from, kind| net.seen.iter().position(|s| s.0 == from && s.2[0] == kind);
        let finish = first(CLIENT.parse().unwrap(), 0x85).unwrap();
        let answers = net.seen.iter().skip(finish).filter(|s| s.0 == server).count();
        assert_eq!(answers, 0);
        net.run_for(10.0);
        assert!(matches!(net.closed(CLIENT), Some(Closed::NoAnswer { .. })));
        assert!(net.at(SERVER).is_empty() && !net.is_connected(SERVER));
    }
}

struct NotFrom(SocketAddr);
impl AcceptFilter for NotFrom {
    fn answers(&self, remote: SocketAddr) -> bool {
        remote.ip() != self.0.ip()
    }
    fn decide(&self, _: &IncomingClient<'_>) -> Decision {
        Decision::Accept
    }
}

#[test]
fn an_address_that_gets_no_answer_finds_no_server() {
    let net = knocks(ClientFilter::new(NotFrom(CLIENT.parse().unwrap())));
    assert!(net.seen.iter().all(|s| s.0 != SERVER.parse().unwrap()), "not even a cookie");
    let net = knocks(ClientFilter::new(NotFrom("192.0.2.200:1".parse().unwrap())));
    assert!(net.is_connected(CLIENT) && net.is_connected(SERVER));
}

/// The filter gets the application protocol, and is not called for a client without a common one. A refused client
/// displaces no connection when all places are taken.
#[test]
fn the_filter_is_the_last_before_the_place_is_taken() {
    let applications = ApplicationProtocols::new(["chat"]).unwrap();
    let both = ConnectionConfig { applications, ..connection() };
    let mut net: StubNetwork<StubConnection> = StubNetwork::pair(4);
    let limits = EndpointLimits { connections_of_source: 1, ..EndpointLimits::new(1) };
    let filter = ClientFilter::new(|client: &IncomingClient<'_>| match client.application {
        Some("chat") if client.key == key(1).public() => Decision::Accept,
        _ => Decision::Refuse("not you".into()),
    });
    let server =
        EndpointConfig { filter, connection: both.clone(), limits, ..config(2, Clients::Any) };
    *net.at(SERVER) = Connections::new(server, random(5));
    let second = "198.51.100.8:5000";
    net.ports
        .insert(second.parse().unwrap(), Connections::new(config(7, Clients::None), random(8)));
    for at in [CLIENT, second] {
        let now = net.now;
        let wish = super::stub::wish(SERVER, ServerKey::Any);
        net.at(at)
            .connect(now, super::ConnectRequest { connection: both.clone(), ..wish })
            .unwrap();
        net.run_for(5.0);
    }
    let refused = Closed::ByPeer { code: 4, reason: "not you".into() };
    assert_eq!((net.closed(second), net.closed(CLIENT)), (Some(refused), None));
    assert!(net.is_connected(SERVER) && net.closed(SERVER).is_none());
}
