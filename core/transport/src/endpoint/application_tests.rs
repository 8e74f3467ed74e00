//! Both ends agree on an application protocol in the handshake, or there is no connection.

use super::stub::{CLIENT, SERVER, StubNetwork, config, connection, key, random, wish};
use super::{Clients, ConnectRequest, Connections, EndpointConfig, Handle, ServerKey};
use crate::connection::{Closed, Connection, ConnectionConfig, ConnectionEvent};
use narrows_wire::ApplicationProtocols;
use narrows_wire::packet::ParsedPacket;

fn with(names: &[&str]) -> ConnectionConfig {
    let applications = ApplicationProtocols::new(names).unwrap();
    ConnectionConfig { applications, ..connection() }
}

/// A client that offers `offered` and a server that supports `spoken`, after half a second.
fn meet(offered: &[&str], spoken: &[&str]) -> (StubNetwork<Connection>, Handle) {
    let mut net = StubNetwork::new(7);
    let server = EndpointConfig { connection: with(spoken), ..config(2, Clients::Any) };
    *net.at(SERVER) = Connections::new(server, random(5));
    let now = net.now;
    let wanted = ConnectRequest { connection: with(offered), ..wish(SERVER, ServerKey::Any) };
    let handle = net.at(CLIENT).connect(now, wanted).unwrap();
    net.run_for(0.5);
    (net, handle)
}

#[test]
fn both_ends_know_the_servers_choice() {
    let cases: [(&[&str], &[&str], Option<&str>); 4] = [
        (&["chat"], &["chat"], Some("chat")),
        (&["chat/1", "chat/2"], &["chat/3", "chat/2", "chat/1"], Some("chat/2")),
        (&["files", "chat"], &["chat"], Some("chat")),
        (&[], &[], None),
    ];
    for (offered, spoken, expected) in cases {
        let (mut net, handle) = meet(offered, spoken);
        let server = net.events.iter().find(|e| e.0 == SERVER.parse().unwrap()).unwrap().1;
        let of = |c: &Connection| c.application().map(|known| known.map(String::from));
        let at_client = net.at(CLIENT).connection(handle).map(|c| of(c));
        let at_server = net.at(SERVER).connection(server).map(|c| of(c));
        let expected = Some(Some(expected.map(String::from)));
        assert_eq!((at_client, at_server), (expected.clone(), expected), "{offered:?} {spoken:?}");
        let is_told = net.at_of(CLIENT).contains(&ConnectionEvent::ApplicationKnown);
        assert_eq!(is_told, !offered.is_empty());
    }
}

#[test]
fn no_common_application_protocol_gives_client_both_lists() {
    let cases: [(&[&str], &[&str], &str); 3] = [
        (&["chat", "talk"], &["files"], "the client offers: chat, talk; the server speaks: files"),
        (&["chat"], &[], "the client offers: chat; the server speaks: none"),
        (&[], &["files"], "the client offers: none; the server speaks: files"),
    ];
    for (offered, spoken, lists) in cases {
        let (mut net, _) = meet(offered, spoken);
        let reason = format!("no common application protocol ({lists})");
        assert_eq!(net.closed(CLIENT), Some(Closed::ByPeer { code: 10, reason }));
        assert!(!net.is_connected(SERVER), "the server's application is not bothered");
        net.run_for(11.0);
        assert!(net.at(SERVER).is_empty());
    }
}

/// With long lists on both sides the refusal is truncated.
#[test]
fn refusal_is_at_most_three_times_its_request() {
    let spoken = ["s".repeat(64), "t".repeat(62)];
    let spoken: Vec<&str> = spoken.iter().map(String::as_str).collect();
    let long = "o".repeat(64);
    for offered in [&[][..], &["x"], &[long.as_str()]] {
        let (net, _) = meet(offered, &spoken);
        let Some(Closed::ByPeer { code: 10, reason }) = net.closed(CLIENT) else {
            panic!("{:?}", net.closed(CLIENT));
        };
        assert!(reason.contains("the client offers: "), "{reason}");
        let longest = |from: &str, is: &dyn Fn(&[u8]) -> bool| {
            let from = from.parse().unwrap();
            let seen = net.seen.iter().filter(|s| s.0 == from && is(&s.2));
            seen.map(|s| s.2.len()).max().unwrap()
        };
        let finish = longest(CLIENT, &|bytes| {
            matches!(ParsedPacket::read(bytes), Ok(ParsedPacket::Finish(_)))
        });
        let close = longest(SERVER, &|bytes| bytes[0] & 0x80 == 0);
        assert!(close <= 3 * finish, "{close} bytes for {finish}");
    }
}

/// Without the client's keys neither list can be read. The client sends its list only to a server with the expected
/// key. The server's list is not in START-ECHO, which a scanner can read.
#[test]
fn scan_does_not_reveal_application_protocols() {
    let answer = |spoken: &[&str]| {
        let (net, _) = meet(spoken, spoken);
        let echo = net
            .seen
            .iter()
            .find(|s| matches!(ParsedPacket::read(&s.2), Ok(ParsedPacket::StartEcho(_))));
        echo.unwrap().2.len()
    };
    assert_eq!(answer(&["chat/1"]), answer(&[]));
    // A client that expects another server sends no FINISH.
    let mut net: StubNetwork<Connection> = StubNetwork::new(7);
    let now = net.now;
    let wanted =
        ConnectRequest { connection: with(&["chat"]), ..wish(SERVER, ServerKey::Is([3; 32])) };
    net.at(CLIENT).connect(now, wanted).unwrap();
    net.run_for(2.0);
    let found = *key(2).public();
    assert_eq!(net.closed(CLIENT), Some(Closed::WrongKey { found }));
    assert!(
        !net.seen.iter().any(|s| matches!(ParsedPacket::read(&s.2), Ok(ParsedPacket::Finish(_))))
    );
}
