//! Floods of handshakes that never complete, and their effect on conforming clients.

use super::attackers::{ATTACKER, Attackers, NEIGHBOUR, connect, is_alive, net};
use super::hostile_tests::{drain, place};
use super::stub::{CLIENT, SERVER, StubNetwork, config, key, random};
use super::{Clients, Connections, EndpointConfig, EndpointLimits, ServerKey};
use narrows_base::Duration;
use narrows_wire::packet::{self, ParsedPacket};
use narrows_wire::{ClientHandshake, Cookie, Suite};

/// 150 STARTs per second from nine addresses, with a tenth of the usual limit on handshakes. An earlier such attack
/// made four of six transfers fail. Handshakes from other addresses, and from other clients at one of these, take as
/// long as usual.
#[test]
fn half_open_handshake_flood_delays_no_client() {
    let mut net = net(7, Clients::Any);
    let mut attackers = Attackers::new();
    let talker = connect(&mut net, CLIENT);
    net.run_for(0.2);
    let mut newcomers = Vec::new();
    for n in 0..1500u32 {
        let address = if n % 9 == 0 { ATTACKER.into() } else { format!("10.0.0.{}", n % 9) };
        let from = attackers.place(&address);
        attackers.start(&mut net, from, 100);
        net.run_for(1.0 / 150.0);
        if n % 150 == 75 {
            newcomers.push((CLIENT, connect(&mut net, CLIENT)));
            newcomers.push((NEIGHBOUR, connect(&mut net, NEIGHBOUR)));
        }
        if n % 150 == 90 {
            for (from, handle) in newcomers.drain(..) {
                assert!(is_alive(&mut net, from, handle), "{n}: {from}");
                let now = net.now;
                net.at(from).close(now, handle, 0, "");
            }
        }
        assert!(net.at(SERVER).gate.half_open() <= 64);
    }
    assert!(net.at(SERVER).gate.half_open() == 64);
    assert!(is_alive(&mut net, CLIENT, talker));
    net.run_for(31.0);
    assert_eq!(net.at(SERVER).gate.half_open(), 0, "they had their half minute");
}

/// A client's START without a cookie.
fn start_without_cookie(seed: u8) -> Vec<u8> {
    let name = [seed; 16];
    let random = [seed; 32];
    let client = ClientHandshake::new(Suite::Aes256Gcm, name, &Cookie::NONE, &key(1), random);
    client.unwrap().start().to_vec()
}

/// STARTs without a cookie from 300 addresses in two seconds. A quarter of the handshakes begin so, the rest of the STARTs
/// get a cookie, which is shorter. Another client needs one round trip more, and the same limits hold.
#[test]
fn start_flood_without_cookie_costs_clients_one_rtt() {
    let mut net = StubNetwork::pair(9);
    let most = config(2, Clients::Any).limits.handshakes / 4;
    let mut begun = 0;
    let mut cookies = 0;
    for n in 0..300u32 {
        let now = net.now;
        net.at(SERVER).receive(now, place(n), 0, &mut start_without_cookie(n as u8));
        for (_, answer) in drain(net.at(SERVER), now) {
            match ParsedPacket::read(&answer) {
                Ok(ParsedPacket::StartEcho(_)) => begun += 1,
                Ok(ParsedPacket::SynEcho { .. }) => cookies += 1,
                other => panic!("{other:?}"),
            }
        }
        net.now += Duration::from_secs_f64(1.0 / 150.0);
    }
    assert_eq!((begun, cookies), (most, 300 - most));
    assert_eq!(net.at(SERVER).gate.half_open(), most);
    let honest = net.connect(ServerKey::Any);
    net.run_for(0.085);
    assert!(net.at(CLIENT).connection(honest).is_some());
    // After ten seconds their places are for new handshakes. Without new ones they last for half a minute.
    net.run_for(11.0);
    assert_eq!(net.at(SERVER).gate.half_open(), most);
    let now = net.now;
    net.at(SERVER).receive(now, place(900), 0, &mut start_without_cookie(1));
    assert_eq!(net.at(SERVER).gate.half_open(), 1);
    net.run_for(31.0);
    assert_eq!(net.at(SERVER).gate.half_open(), 0);
}

/// A full server keeps the handshakes of the last ten seconds and gives older places to new ones, with a cookie too.
#[test]
fn old_handshake_gives_way_only_if_places_run_out() {
    let mut net = net(11, Clients::Any);
    let mut attackers = Attackers::new();
    let most = net.at(SERVER).config.limits.handshakes;
    for n in 0..most {
        let from = attackers.place(&format!("10.0.{}.1", n));
        attackers.start(&mut net, from, 100);
        net.run_for(0.05);
    }
    net.run_for(8.0);
    assert_eq!(net.at(SERVER).gate.half_open(), most);
    let from = attackers.place("10.1.0.1");
    attackers.start(&mut net, from, 100);
    let left = net.at(SERVER).gate.half_open();
    assert!((2..most).contains(&left), "{left} of {most}");
}

/// A quarter of the handshakes of a second may begin without a cookie, however many may wait.
#[test]
fn handshakes_without_a_cookie_of_a_second_are_bounded() {
    let mut net = StubNetwork::pair(10);
    let limits = EndpointLimits { handshake_rate: 40, ..EndpointLimits::new(32) };
    let config = config(2, Clients::Any);
    *net.at(SERVER) = Connections::new(EndpointConfig { limits, ..config }, random(5));
    let now = net.now;
    for n in 0..100u32 {
        net.at(SERVER).receive(now, place(n), 0, &mut start_without_cookie(n as u8));
    }
    assert_eq!(net.at(SERVER).gate.half_open(), 10);
}

/// The limits on handshakes per second hold, in all and per network. Rejected clients get BUSY. Another network's
/// handshakes still begin.
#[test]
fn handshakes_of_a_second_are_bounded() {
    let mut net = net(8, Clients::Any);
    let config = config(2, Clients::Any);
    let limits = EndpointLimits {
        handshake_rate: 40,
        handshake_rate_of_source: 20,
        ..EndpointLimits::new(32)
    };
    *net.at(SERVER) = Connections::new(EndpointConfig { limits, ..config }, random(5));
    let mut attackers = Attackers::new();
    let mut begun = 0;
    for n in 0..300u32 {
        let from = attackers.place(&format!("10.0.0.{}", n % 3));
        let (_, answers) = attackers.start(&mut net, from, 100);
        match ParsedPacket::read(&answers[0]) {
            Ok(ParsedPacket::StartEcho(_)) => begun += 1,
            Ok(ParsedPacket::Busy { .. }) => assert!(answers[0].len() < packet::START_BYTES),
            other => panic!("{other:?}"),
        }
    }
    assert!((30..=40).contains(&begun), "{begun}");
    let honest = connect(&mut net, CLIENT);
    net.run_for(0.1);
    assert!(is_alive(&mut net, CLIENT, honest));
}
