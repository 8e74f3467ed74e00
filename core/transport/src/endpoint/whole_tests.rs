//! Two endpoints with real connections.

use super::stub::{CLIENT, SERVER, StubNetwork, config, connection, random, wish};
use super::{Clients, ConnectRequest, Connections, EndpointConfig, Permit, ServerKey};
use crate::Protocol;
use crate::connection::{Closed, Connection, ConnectionConfig, ConnectionEvent};
use crate::streams::{Read, StreamEvent};
use narrows_base::{Duration, RandomKey, Rate, Spec, SpecError, Time};
use narrows_congestion::{Arrival, Feedback, ReceiverSide};
use narrows_recovery::protocol::MakeReceiverSide;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Whole = StubNetwork<Connection>;

/// Without any application data both ends connect: the client's FINISH is acknowledged, and the
/// attempt does not time out.
#[test]
fn a_silent_connection_is_a_connection() {
    let mut net = Whole::new(1);
    net.connect(ServerKey::Any);
    net.run_for(20.0);
    assert!(net.is_connected(CLIENT) && net.is_connected(SERVER));
    assert_eq!((net.closed(CLIENT), net.closed(SERVER)), (None, None));
    assert_eq!(net.seen.iter().filter(|s| s.2[0] == 0x85).count(), 1);
    // The idle timeout still applies.
    net.run_for(40.0);
    assert_eq!(net.closed(CLIENT), Some(Closed::TimedOut));
    assert!(net.at(CLIENT).is_empty() && net.at(SERVER).is_empty());
}

/// A stream over a path that loses, duplicates and reorders packets from the first one on.
#[test]
fn a_stream_arrives_whole_over_a_bad_path() {
    for seed in 0..8 {
        let mut net = Whole::new(seed);
        let mut random_key = RandomKey::from_seed(seed).named("path").stream();
        let handle = net.connect(ServerKey::Any);
        let text: Vec<u8> = (0..60_000u32).map(|n| (n.wrapping_mul(n) >> 8) as u8).collect();
        let mut written = 0;
        let mut id = None;
        let mut got = Vec::new();
        let mut is_whole = false;
        let mut looked = 0;
        for _ in 0..1200 {
            if is_whole {
                break;
            }
            let until = net.now + Duration::from_millis(50);
            net.run(until, &mut |now, _| {
                let mut copies = Vec::new();
                for _ in 0..=u32::from(random_key.chance(0.05)) {
                    if !random_key.chance(0.1) {
                        copies.push(now + Duration::from_secs_f64(random_key.uniform(0.02, 0.03)));
                    }
                }
                copies
            });
            if let Some(connection) = net.at(CLIENT).connection(handle) {
                id = id.or_else(|| connection.open(true));
                if let Some(id) = id
                    && written < text.len()
                {
                    written += connection.write(id, &text[written..]).unwrap();
                    if written == text.len() {
                        connection.finish(id).unwrap();
                    }
                }
            }
            for (_, handle, event) in net.events.split_off(looked) {
                if let ConnectionEvent::Stream(StreamEvent::Readable(id)) = event {
                    let Some(connection) = net.at(SERVER).connection(handle) else { continue };
                    let mut buffer = [0; 4096];
                    loop {
                        match connection.read(id, &mut buffer).unwrap() {
                            Read::Bytes(n) => got.extend_from_slice(&buffer[..n]),
                            Read::Blocked => break,
                            Read::End => {
                                is_whole = true;
                                break;
                            }
                        }
                    }
                }
            }
            looked = net.events.len();
        }
        assert!(is_whole && got == text, "seed {seed}: {} of {} bytes", got.len(), text.len());
        let now = net.now;
        net.at(CLIENT).close(now, handle, 0, "done");
        net.run_for(60.0);
        assert!(net.at(CLIENT).is_empty() && net.at(SERVER).is_empty(), "seed {seed}");
    }
}

#[test]
fn a_server_that_was_started_again_says_so() {
    let mut net = Whole::new(3);
    let handle = net.connect(ServerKey::Any);
    net.run_for(1.0);
    *net.at(SERVER) = super::Connections::new(
        super::stub::config(2, super::Clients::Any),
        super::stub::random(77),
    );
    let now = net.now;
    let client = net.at(CLIENT).connection(handle).unwrap();
    client.send_message(now, b"?", Duration::ZERO).unwrap();
    net.run_for(1.0);
    assert_eq!(net.closed(CLIENT), Some(Closed::Reset));
    assert!(net.at(CLIENT).is_empty());
}

/// The server sends with the protocol that the client announced, if it permits that, and informs
/// the client. Without their receiver sides TFRC and TEAR would never leave their initial rate.
#[test]
fn client_chooses_the_permitting_servers_protocol() {
    let any = Permit::Any(Rate::from_bps(10_000_000));
    let cases = [
        (Permit::Listed, "rrtp+bbr", "rrtp+bbr"),
        (any, "tear-reliable", "tear-reliable"),
        (any, "rrtp+tfrc(min-rto=100ms)", "rrtp+tfrc(min-rto=100ms)"),
        (any, "rrtp+fixed(rate=10Mbit/s)", "rrtp+fixed(rate=10Mbit/s)"),
        (Permit::Own, "rrtp+bbr", "rrtp+cubic"),
        // Rates set by the receiver or by the client; an invalid name.
        (Permit::Listed, "tear-reliable", "rrtp+cubic"),
        (Permit::Listed, "rrtp-lasthop", "rrtp+cubic"),
        (Permit::Listed, "rrtp+fixed", "rrtp+cubic"),
        (Permit::Listed, "gentle(", "rrtp+cubic"),
    ];
    for (permit, announced, sent_with) in cases {
        let mut net = Whole::new(4);
        let read = |label: &str| Protocol::read(&Spec::parse(label).unwrap(), 1500).unwrap();
        let own = ConnectionConfig { protocol: read("rrtp+cubic"), ..connection() };
        let server = EndpointConfig { permit, connection: own, ..config(2, Clients::Any) };
        *net.at(SERVER) = Connections::new(server, random(5));
        let protocol = match announced {
            "gentle(" => Protocol::custom(
                announced,
                read("rrtp+tfrc").config().clone(),
                move |e| read("rrtp+tfrc").controller(e),
                None,
            )
            .unwrap(),
            label => read(label),
        };
        let wanted = ConnectRequest {
            connection: ConnectionConfig { protocol, ..connection() },
            ..wish(SERVER, ServerKey::Any)
        };
        let now = net.now;
        let handle = net.at(CLIENT).connect(now, wanted).unwrap();
        net.run_for(0.5);
        let server = net.events.iter().find(|e| e.0 == SERVER.parse().unwrap()).unwrap().1;
        let c = net.at(SERVER).connection(server).unwrap();
        assert_eq!(c.protocol(), sent_with, "{announced}");
        let id = c.open(true).unwrap();
        let text = vec![7; 400_000];
        let mut written = 0;
        let mut got = 0;
        for _ in 0..100 {
            let c = net.at(SERVER).connection(server).unwrap();
            written += c.write(id, &text[written..]).unwrap();
            net.run_for(0.05);
            let client = net.at(CLIENT).connection(handle).unwrap();
            let mut buffer = [0; 4096];
            while let Ok(Read::Bytes(n)) = client.read(id, &mut buffer) {
                got += n;
            }
        }
        assert_eq!(got, text.len(), "{announced}");
    }
}

/// Counts the arrivals that its receiver side gets.
struct Witness(Arc<AtomicU64>);

impl ReceiverSide for Witness {
    fn on_arrival(&mut self, _: &Arrival) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        false
    }
    fn feedback(&mut self, _: Time) -> Feedback {
        Feedback::NONE
    }
}

/// An unlisted protocol, with a receiver side that counts its calls.
fn witness(label: &str, calls: &Arc<AtomicU64>) -> Result<Protocol, SpecError> {
    let like = Protocol::with_controller("cubic").unwrap();
    let config = like.config().clone();
    let calls = calls.clone();
    let receiver_side: Arc<MakeReceiverSide> = Arc::new(move |_| Box::new(Witness(calls.clone())));
    Protocol::custom(label, config, move |e| like.controller(e), Some(receiver_side))
}

/// A client that sends with such a protocol, to a server with the custom protocols `known`.
fn with_witness(protocol: &Protocol, known: &[Protocol]) -> (Whole, super::Handle) {
    let mut net = Whole::new(6);
    let server = ConnectionConfig { custom: known.into(), ..connection() };
    let permit = Permit::Listed;
    let server = EndpointConfig { connection: server, permit, ..config(2, Clients::Any) };
    *net.at(SERVER) = Connections::new(server, random(5));
    let wanted = ConnectRequest {
        connection: ConnectionConfig { protocol: protocol.clone(), ..connection() },
        ..wish(SERVER, ServerKey::Any)
    };
    let now = net.now;
    let handle = net.at(CLIENT).connect(now, wanted).unwrap();
    net.run_for(0.5);
    (net, handle)
}

/// Earlier, a custom controller with a receiver side had 2,000 calls of it in simulation, but no
/// calls between two real ends.
#[test]
fn unlisted_receiver_side_runs_at_a_peer_with_it() {
    let there = Arc::default();
    let back = Arc::default();
    let protocol = witness("mine(version=2)", &there).unwrap();
    let (mut net, handle) = with_witness(&protocol, &[witness("mine(version=2)", &back).unwrap()]);
    let client = net.at(CLIENT).connection(handle).unwrap();
    let id = client.open(true).unwrap();
    client.write(id, &[7; 100_000]).unwrap();
    net.run_for(2.0);
    // The server runs its own copy of the receiver side. It also sends with this protocol, so the
    // client's copy runs, too.
    assert!(back.load(Ordering::Relaxed) >= 40, "{back:?} calls at the server");
    let server = net.events.iter().find(|e| e.0 == SERVER.parse().unwrap()).unwrap().1;
    let server = net.at(SERVER).connection(server).unwrap();
    assert_eq!(server.protocol(), "mine(version=2)");
    let id = server.open(true).unwrap();
    server.write(id, &[7; 100_000]).unwrap();
    let before = there.load(Ordering::Relaxed);
    net.run_for(2.0);
    assert!(there.load(Ordering::Relaxed) >= before + 40, "{there:?} calls at the client");
}

#[test]
fn unknown_protocol_is_refused_and_named() {
    let calls = Arc::default();
    let protocol = witness("mine", &calls).unwrap();
    let (net, _) = with_witness(&protocol, &[]);
    let Some(Closed::ByPeer { code: 9, reason }) = net.closed(CLIENT) else {
        panic!("{:?}", net.closed(CLIENT));
    };
    assert!(reason.contains("unknown here"), "{reason}");
    // In the other direction: the client has no protocol with the server's label, and closes with
    // that reason.
    let mut net = Whole::new(7);
    let server = ConnectionConfig { protocol: protocol.clone(), ..connection() };
    let server =
        EndpointConfig { connection: server, permit: Permit::Own, ..config(2, Clients::Any) };
    *net.at(SERVER) = Connections::new(server, random(5));
    net.connect(ServerKey::Any);
    net.run_for(2.0);
    let label = "mine".to_string();
    assert_eq!(net.closed(CLIENT), Some(Closed::UnknownProtocol { label }));
    assert!(matches!(net.closed(SERVER), Some(Closed::ByPeer { code: 9, .. })));
    // A server that permits the client's protocol can be used.
    let mut net = Whole::new(8);
    let server = ConnectionConfig { protocol, ..connection() };
    let permit = Permit::Listed;
    let server = EndpointConfig { connection: server, permit, ..config(2, Clients::Any) };
    *net.at(SERVER) = Connections::new(server, random(5));
    let listed = Protocol::with_controller("cubic").unwrap();
    let wanted = ConnectionConfig { protocol: listed, ..connection() };
    let now = net.now;
    let wanted = ConnectRequest { connection: wanted, ..wish(SERVER, ServerKey::Any) };
    net.at(CLIENT).connect(now, wanted).unwrap();
    net.run_for(2.0);
    assert_eq!((net.closed(CLIENT), net.closed(SERVER)), (None, None));
}

#[test]
fn a_label_that_would_be_taken_for_another_is_refused() {
    let calls = Arc::default();
    for taken in ["rrtp", "cubic(beta=0.7)", "rrtp+tfrc", "tear", "fixed", "tear-reliable"] {
        let why = witness(taken, &calls).unwrap_err().to_string();
        assert!(why.contains("is a listed protocol or controller"), "{why}");
    }
    for odd in ["", "(", "m\u{fc}hle", "a\nb", &"x".repeat(129)] {
        assert!(witness(odd, &calls).is_err(), "{odd:?}");
    }
}
