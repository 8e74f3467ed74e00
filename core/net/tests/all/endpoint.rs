//! Endpoints over loopback and through lossy relays, as applications use them.

use narrows_base::{Duration, Rate, Spec};
use narrows_link::{LinkConfig, LossSpec, QueueConfig, QueueLimit};
use narrows_net::endpoint::{connection, new_key};
use narrows_net::{
    ConnectOptions, Connection, Endpoint, Error, Options, Relay, block_on, block_on_for,
};
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, ServerKey};
use std::collections::BTreeSet;
use std::future::Future;
use std::io::{Read, Write};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// A test that takes longer hangs.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(120);

/// Waits with the time limit of a test.
fn wait<F: Future>(future: F) -> F::Output {
    block_on_for(PATIENCE, future).expect("it never ended")
}

fn local() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn config() -> ConnectionConfig {
    let spec = Spec::named("rrtp+cubic");
    connection(Protocol::read(&spec, 1500).unwrap())
}

fn server() -> (Endpoint, [u8; 32]) {
    let key = new_key().unwrap();
    let public = *key.public();
    let options = Options::server(key, Clients::Any, config());
    (Endpoint::bind(local(), options).unwrap(), public)
}

fn client() -> Endpoint {
    Endpoint::bind(local(), Options::client(new_key().unwrap(), config())).unwrap()
}

fn to(key: [u8; 32]) -> ConnectOptions {
    ConnectOptions::new(ServerKey::Is(key), config())
}

fn pair() -> (Endpoint, Connection, Endpoint, Connection) {
    let (server, key) = server();
    let client = client();
    let there = wait(client.connect(server.local_addr(), to(key))).unwrap();
    let here = wait(server.accept()).unwrap();
    (client, there, server, here)
}

/// Bytes that depend on their position.
fn bytes(seed: u64, count: usize) -> Vec<u8> {
    (0..count as u64)
        .map(|i| narrows_base::random::mix(seed ^ (i / 8)).to_le_bytes()[i as usize % 8])
        .collect()
}

/// Echoes every stream.
fn echo(connection: Connection) -> std::thread::JoinHandle<Error> {
    std::thread::spawn(move || {
        wait(async {
            loop {
                let (mut send, mut receive) = match connection.accept_bi().await {
                    Ok(stream) => stream,
                    Err(why) => return why,
                };
                let mut buffer = vec![0; 64 << 10];
                loop {
                    match receive.receive(&mut buffer).await {
                        Ok(0) => break,
                        Ok(count) => send.send_all(&buffer[..count]).await.unwrap(),
                        Err(why) => return why,
                    }
                }
                send.finish().unwrap();
            }
        })
    })
}

#[test]
fn streams_carry_bytes_both_ways_at_once() {
    let (_c, there, _s, here) = pair();
    let echo = echo(here);
    let sent = bytes(1, 8 << 20);
    let (mut send, mut receive) = wait(there.open_bi()).unwrap();
    let copy = sent.clone();
    let writer = std::thread::spawn(move || {
        wait(send.send_all(&copy)).unwrap();
        wait(send.arrived()).unwrap();
    });
    let back = wait(receive.receive_all(64 << 20)).unwrap();
    assert!(back == sent, "other bytes came back");
    writer.join().unwrap();
    there.close(300, "thanks");
    match echo.join().unwrap() {
        Error::ClosedByPeer { code, reason } => assert_eq!((code, &*reason), (300, "thanks")),
        other => panic!("{other}"),
    }
    assert_eq!(wait(there.closed()), Error::Closed);
    assert_eq!(wait(there.open_bi()).unwrap_err(), Error::Closed);
}

#[test]
fn tokio_and_blocking_faces_carry_the_same() {
    let (_c, there, _s, here) = pair();
    let sent = bytes(2, 300_000);
    let copy = sent.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let other = std::thread::spawn(move || {
        let (send, receive) = wait(here.accept_bi()).unwrap();
        let mut send = send.blocking();
        let mut receive = receive.blocking();
        let mut all = Vec::new();
        receive.read_to_end(&mut all).unwrap();
        send.write_all(&all).unwrap();
        wait(send.get().arrived()).unwrap();
        here.close(0, "");
    });
    runtime.block_on(async {
        let (mut send, mut receive) = there.open_bi().await.unwrap();
        send.write_all(&copy).await.unwrap();
        send.shutdown().await.unwrap();
        let mut back = Vec::new();
        // The peer closes as soon as all has arrived; the data stays readable.
        there.closed().await;
        receive.read_to_end(&mut back).await.unwrap();
        assert!(back == sent, "other bytes came back");
    });
    other.join().unwrap();
}

#[test]
fn many_connections_share_a_socket() {
    let (server, key) = server();
    let client = client();
    let served = {
        let server = server.clone();
        std::thread::spawn(move || {
            let mut all = Vec::new();
            for _ in 0..100 {
                all.push(wait(server.accept()).unwrap());
            }
            let streams = all.iter().map(|c| {
                let (mut send, mut receive) = wait(c.accept_bi()).unwrap();
                let got = wait(receive.receive_all(1000)).unwrap();
                wait(send.send_all(&got)).unwrap();
                send.finish().unwrap();
                (send, receive)
            });
            let streams: Vec<_> = streams.collect();
            (all, streams)
        })
    };
    let all: Vec<Connection> =
        (0..100).map(|_| wait(client.connect(server.local_addr(), to(key))).unwrap()).collect();
    let streams = all.iter().enumerate().map(|(n, c)| {
        let (mut send, receive) = wait(c.open_bi()).unwrap();
        wait(send.send_all(&bytes(n as u64, 500))).unwrap();
        send.finish().unwrap();
        (send, receive)
    });
    for (n, (_, mut receive)) in streams.collect::<Vec<_>>().into_iter().enumerate() {
        assert_eq!(wait(receive.receive_all(1000)).unwrap(), bytes(n as u64, 500));
    }
    assert_eq!((client.connections(), server.connections()), (100, 100));
    drop(served.join().unwrap());
}

#[test]
fn losses_and_reordering_change_no_byte() {
    let (server, key) = server();
    let loss = LossSpec::parse_all("3%").unwrap();
    let queue = QueueConfig { limit: QueueLimit::Packets(60), aqm: None };
    let mut link = LinkConfig::plain(Rate::from_bps(60_000_000), Duration::from_millis(5));
    link.impairments.reorder = 0.01;
    link.impairments.reorder_by = Duration::from_millis(2);
    link.impairments.duplicate = 0.01;
    link.impairments.corrupt = 0.005;
    let link = LinkConfig { loss, queue, ..link };
    let relay = Relay::bind(local(), server.local_addr(), &link, &link, 5).unwrap();
    let client = client();
    let there = wait(client.connect(relay.local_addr(), to(key))).unwrap();
    let echo = echo(wait(server.accept()).unwrap());
    let sent = bytes(3, 1 << 20);
    let (mut send, mut receive) = wait(there.open_bi()).unwrap();
    let copy = sent.clone();
    let writer = std::thread::spawn(move || wait(send.send_all(&copy)).unwrap());
    let back = wait(receive.receive_all(8 << 20)).unwrap();
    assert!(back == sent, "other bytes came back");
    writer.join().unwrap();
    let stats = relay.stats();
    assert!(stats.forward.lost > 0 && stats.reverse.lost > 0);
    there.close(0, "");
    echo.join().unwrap();
}

#[test]
fn messages_arrive_whole_or_not_at_all() {
    let (_c, there, _s, here) = pair();
    there.send_message(b"first", Duration::ZERO).unwrap();
    assert_eq!(wait(here.receive_message()).unwrap(), b"first");
    let refused = there.send_message(&[0; 5000], Duration::ZERO);
    assert_eq!(refused, Err(Error::MessageTooLong { max: 1400 }));
    // Larger than the assumed packet size: the sender discovers that this path carries it.
    let message = [7; 1316];
    if there.max_message_len().unwrap() < message.len() {
        let refused = there.send_message(&message, Duration::ZERO);
        assert!(matches!(refused, Err(Error::MessageTooLongNow { .. })), "{refused:?}");
    }
    while there.max_message_len().unwrap() < message.len() {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    there.send_message(&message, Duration::ZERO).unwrap();
    assert_eq!(wait(here.receive_message()).unwrap(), message);
}

#[test]
fn a_wrong_key_is_refused_and_shown() {
    let (server, key) = server();
    let client = client();
    let other = *new_key().unwrap().public();
    let why = wait(client.connect(server.local_addr(), to(other))).unwrap_err();
    let Error::WrongKey { wanted, found, .. } = &why else { panic!("{why}") };
    assert_eq!((*wanted, *found), (Some(other), key));
    assert!(!why.to_string().contains('\n'));
    // Any key is accepted and learned.
    let any = ConnectOptions::new(ServerKey::Any, config());
    let connection = wait(client.connect(server.local_addr(), any)).unwrap();
    assert_eq!(connection.peer_key(), Some(key));
}

#[test]
fn only_listed_clients_are_served() {
    let friend = new_key().unwrap();
    let key = new_key().unwrap();
    let public = *key.public();
    let list = Clients::Listed(BTreeSet::from([*friend.public()]));
    let server = Endpoint::bind(local(), Options::server(key, list, config())).unwrap();
    let known = Endpoint::bind(local(), Options::client(friend, config())).unwrap();
    let connection = wait(known.connect(server.local_addr(), to(public))).unwrap();
    assert!(!connection.is_closed());
    let stranger = client();
    let connected = wait(stranger.connect(server.local_addr(), to(public)));
    // The refusal arrives instead of the connection, or right after it.
    let why = match connected {
        Ok(connection) => wait(connection.closed()),
        Err(why) => why,
    };
    assert!(matches!(why, Error::Refused { .. }), "{why}");
}

/// The caller's socket keeps its address and carries the endpoint's packets.
#[test]
fn an_endpoint_takes_a_socket_that_the_caller_has_bound() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let key = new_key().unwrap();
    let public = *key.public();
    let options = Options::server(key, Clients::Any, config());
    let server = Endpoint::with_socket(socket, options).unwrap();
    assert_eq!(server.local_addr(), address);
    let client = client();
    let there = wait(client.connect(address, to(public))).unwrap();
    let mut send = wait(there.open_uni()).unwrap();
    wait(send.send_last(&bytes(6, 200_000))).unwrap();
    let here = wait(server.accept()).unwrap();
    let mut receive = wait(here.accept_uni()).unwrap();
    let mut all = Vec::new();
    while let Some(chunk) = wait(receive.receive_chunk(50_000)).unwrap() {
        assert!(chunk.len() <= 50_000);
        all.extend(chunk);
    }
    assert!(all == bytes(6, 200_000), "other bytes came");
    assert_eq!(wait(send.arrived()), Ok(()));
}

#[test]
fn missing_peer_is_an_error_at_the_deadline() {
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let client = client();
    let mut options = to([9; 32]);
    options.patience = Duration::from_millis(300);
    let address = silent.local_addr().unwrap();
    let why = wait(client.connect(address, options)).unwrap_err();
    let Error::NoAnswer { address: at, waited, first_answer: None } = why else { panic!("{why}") };
    assert_eq!(at, address);
    assert!(waited >= Duration::from_millis(300));
    let nowhere = wait(client.connect(local(), to([9; 32]))).unwrap_err();
    assert!(matches!(nowhere, Error::Address { .. }));
}

/// An ICMP report that a port is closed ends the attempt. An open connection of the same endpoint continues.
#[cfg(target_os = "linux")]
#[test]
fn closed_port_is_an_error_before_the_retry_deadline() {
    for any in ["127.0.0.1:0", "[::1]:0"] {
        let Ok(socket) = std::net::UdpSocket::bind(any) else {
            eprintln!("skipped: there is no {any} here");
            continue;
        };
        // Systems give this port to no socket that asks for any.
        let address = SocketAddr::new(socket.local_addr().unwrap().ip(), 9);
        let (client, there, _server, here) = pair();
        // The open connection is on IPv4.
        let other =
            Endpoint::bind(any.parse().unwrap(), Options::client(new_key().unwrap(), config()));
        let client = if address.is_ipv4() { client } else { other.unwrap() };
        let mut options = to([9; 32]);
        options.patience = Duration::from_secs(20);
        let why = wait(client.connect(address, options)).unwrap_err();
        assert_eq!(why, Error::NoListener { address });
        let mut send = wait(there.open_uni()).unwrap();
        wait(send.send_last(b"still there")).unwrap();
        let mut receive = wait(here.accept_uni()).unwrap();
        assert_eq!(wait(receive.receive_all(100)).unwrap(), b"still there");
    }
}

#[test]
fn dropped_connection_closes_after_its_streams_arrived() {
    let (client, there, _s, here) = pair();
    let sent = bytes(4, 2 << 20);
    let mut send = wait(there.open_uni()).unwrap();
    wait(send.send_all(&sent)).unwrap();
    // Dropping finishes the stream; connection and endpoint have no handle then.
    drop((send, there, client));
    let mut receive = wait(here.accept_uni()).unwrap();
    assert!(wait(receive.receive_all(8 << 20)).unwrap() == sent);
    assert!(matches!(wait(here.closed()), Error::ClosedByPeer { code: 0, .. }));
}

#[test]
fn reader_that_drops_at_the_end_keeps_the_arrival() {
    let (_c, there, server, here) = pair();
    let reader = std::thread::spawn(move || {
        let mut receive = wait(here.accept_uni()).unwrap();
        wait(receive.receive_all(8 << 20)).unwrap().len()
        // Connection and endpoint have no handle now.
    });
    drop(server);
    let mut send = wait(there.open_uni()).unwrap();
    wait(send.send_all(&bytes(5, 100_000))).unwrap();
    assert_eq!(wait(send.arrived()), Ok(()));
    assert_eq!(reader.join().unwrap(), 100_000);
}

#[test]
fn resets_stops_and_closed_endpoints_are_told_apart() {
    let (client, there, server, here) = pair();
    let (mut send, mut receive) = wait(there.open_bi()).unwrap();
    wait(send.send_all(b"some")).unwrap();
    let (mut accepted, mut mine) = wait(here.accept_bi()).unwrap();
    send.reset(77).unwrap();
    let mut buffer = [0; 100];
    let why = loop {
        match wait(mine.receive(&mut buffer)) {
            Ok(_) => {}
            Err(why) => break why,
        }
    };
    assert_eq!(why, Error::StreamReset(77));
    receive.stop(78).unwrap();
    let why = loop {
        if let Err(why) = wait(accepted.send_all(&[1; 1000])) {
            break why;
        }
    };
    assert_eq!(why, Error::StreamStopped(78));
    server.close(400, "good night");
    let why = wait(there.closed());
    assert_eq!(why, Error::ClosedByPeer { code: 400, reason: "good night".into() });
    assert_eq!(wait(server.accept()).unwrap_err(), Error::EndpointClosed);
    client.shut_down(0, "");
    let again = wait(client.connect(server.local_addr(), to([0; 32])));
    assert_eq!(again.unwrap_err(), Error::EndpointClosed);
    assert_eq!(block_on(client.accept()).unwrap_err(), Error::EndpointClosed);
}
