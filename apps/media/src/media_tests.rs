//! Both ends in one process, over loopback: hostile peers, and peers that vanish.

use crate::connection::for_media;
use crate::dial::Peer;
use crate::encoder::EncoderRates;
use crate::hello::{HelloReply, PUSH, hello};
use crate::inlet::{InletEvent, Outs};
use crate::outlet::OutletOptions;
use crate::packet::{DataPart, ask};
use crate::receive::{MediaServer, ReceiveOptions};
use crate::send::MediaSending;
use narrows_base::{Duration, Rate, Time};
use narrows_net::endpoint::connection;
use narrows_net::{ConnectOptions, Connection, Endpoint, Options};
use narrows_peers::access::AllowList;
use narrows_peers::{Error, ErrorKind, Identity, key};
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{ClientFilter, Permit, ServerKey};
use narrows_wire::StaticKey;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration as Wait;
use tokio::net::UdpSocket;
use tokio::time::sleep;

pub(super) fn config() -> ConnectionConfig {
    connection(Protocol::with_controller("cubic").unwrap())
}

pub(super) type Lines = Arc<Mutex<Vec<String>>>;
const LATENCY: Duration = Duration::from_millis(100);

/// A receiver for one client, with a player's socket.
pub(super) struct Far {
    pub at: SocketAddr,
    server: Identity,
    pub client: Identity,
    pub player: UdpSocket,
    /// Socket of the second layer's player.
    pub second: UdpSocket,
    log: Lines,
    pub stop: Arc<tokio::sync::Notify>,
}

pub(super) async fn far() -> Far {
    let server = Identity::generate().unwrap();
    let client = Identity::generate().unwrap();
    let player = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let second = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let log = Lines::default();
    let lines = log.clone();
    let options = ReceiveOptions {
        identity: server.clone(),
        clients: AllowList::read(&key::text(client.public())).unwrap(),
        config: config(),
        permit: Permit::Own,
        filter: ClientFilter::default(),
        tap: None,
    };
    let outs = Outs {
        to: vec![player.local_addr().unwrap(), second.local_addr().unwrap()],
        latency: None,
        tell: Box::new(move |event| {
            lines.lock().unwrap().push(match event {
                InletEvent::Line { line, .. } => line.clone(),
                InletEvent::Over(measures) => {
                    format!("{} datagrams\n{}", measures.datagrams, measures.text())
                }
            });
        }),
        observer: None,
    };
    let bound = MediaServer::bind("127.0.0.1:0".parse().unwrap(), outs, options).await.unwrap();
    let at = bound.address();
    let stop = Arc::new(tokio::sync::Notify::new());
    let stopped = stop.clone();
    tokio::spawn(async move { bound.run(stopped.notified()).await });
    Far { at, server, client, player, second, log, stop }
}

impl Far {
    pub async fn wait_for(&self, part: &str) {
        while !self.log.lock().unwrap().iter().any(|line| line.contains(part)) {
            sleep(Wait::from_millis(5)).await;
        }
    }

    /// A connection whose client follows only the transport's rules.
    async fn connect(&self) -> (Endpoint, Connection) {
        let key = StaticKey::new(*self.client.private()).unwrap();
        let config = for_media(config(), PUSH).unwrap();
        let options = Options::client(key, config.clone());
        let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
        let how = ConnectOptions::new(ServerKey::Is(*self.server.public()), config);
        let connection = endpoint.connect(self.at, how).await.unwrap();
        (endpoint, connection)
    }

    /// A regular sender from a port of its own, and its log lines.
    async fn sender(&self, identity: &Identity) -> (Arc<MediaSending>, SocketAddr, Lines) {
        let (sending, at, lines_of_sender) = self.layered(self.at, identity, &[8_000_000]).await;
        (sending, at[0], lines_of_sender)
    }

    /// A sender of layers with these rates in bit/s, through `at`.
    pub async fn layered(
        &self,
        through: SocketAddr,
        identity: &Identity,
        layers: &[u64],
    ) -> (Arc<MediaSending>, Vec<SocketAddr>, Lines) {
        let lines_of_sender = Lines::default();
        let lines = lines_of_sender.clone();
        let mut sockets = Vec::new();
        for _ in layers {
            sockets.push(UdpSocket::bind("127.0.0.1:0").await.unwrap());
        }
        let at = sockets.iter().map(|socket| socket.local_addr().unwrap()).collect();
        let media = media(layers, lines);
        let receiver = peer(through, &self.server, identity);
        (MediaSending::new(sockets, media, receiver), at, lines_of_sender)
    }
}

/// Media of layers with these rates; log lines go into `lines`.
pub(super) fn media(layers: &[u64], lines: Lines) -> OutletOptions {
    OutletOptions {
        latency: LATENCY,
        encoder: EncoderRates { min: Rate::from_bps(300_000), max: Rate::from_bps(8_000_000) },
        layers: layers.iter().map(|rate| Rate::from_bps(*rate)).collect(),
        link: None,
        on_rate: Box::new(|_| ()),
        tell: Box::new(move |line| lines.lock().unwrap().push(line.into())),
        on_state: None,
    }
}

/// The other end as a peer at `at` with a known key.
pub(super) fn peer(at: SocketAddr, its: &Identity, identity: &Identity) -> Peer {
    Peer {
        host: at.ip().to_string(),
        port: at.port(),
        key: Some(*its.public()),
        judge: Box::new(|_| Ok(())),
        identity: identity.clone(),
        config: config(),
        patience: Duration::from_secs(10),
        tap: None,
        paths: Default::default(),
    }
}

fn data(number: u32, stamp: Time) -> Vec<u8> {
    let part = 0;
    let last_part = 0;
    let frame = number;
    let begins_frame = true;
    DataPart { number, part, last_part, stamp, frame, begins_frame, payload: b"media" }.bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_sender_is_refused_and_the_next_accepted() {
    let far = far().await;
    let (_endpoint, connection) = far.connect().await;
    let (mut send, _receive) = connection.open_bi().await.unwrap();
    send.send_all(&[0xff; 8]).await.unwrap();
    far.wait_for("said nothing that a sender of media says").await;
    connection.closed().await;
    let (_endpoint, connection) = far.connect().await;
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.send_all(&hello(LATENCY, 1)).await.unwrap();
    let mut code = [9];
    receive.receive(&mut code).await.unwrap();
    assert_eq!(HelloReply::from_code(code[0]), HelloReply::Come);
}

#[tokio::test(flavor = "multi_thread")]
async fn garbage_and_far_future_stamps_do_not_delay_media() {
    let far = far().await;
    let (_endpoint, connection) = far.connect().await;
    let (mut send, _receive) = connection.open_bi().await.unwrap();
    send.send_all(&hello(LATENCY, 1)).await.unwrap();
    let mut datagram = [0; 100];
    let mut number = 0;
    let mut received = 0;
    while received < 20 {
        let now = connection.now();
        let far_future = now + Duration::from_secs(1 << 20);
        for message in [
            data(number, now),
            vec![0xff; 900],
            vec![],
            ask(&[]),
            data(number.wrapping_add(1 << 30), far_future),
        ] {
            // If the queue is full, a message is lost as on a path.
            let _ = connection.send_message(&message, Duration::ZERO);
        }
        number += 1;
        sleep(Wait::from_millis(5)).await;
        while let Ok(length) = far.player.try_recv(&mut datagram) {
            assert_eq!(&datagram[..length], b"media");
            received += 1;
        }
    }
    far.stop.notify_one();
    far.wait_for("datagrams").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unlisted_sender_ends_with_one_line() {
    let far = far().await;
    let (sending, _, _) = far.sender(&Identity::generate().unwrap()).await;
    let Err(Error { kind: ErrorKind::Refused, line, .. }) = sending.keep().await else {
        panic!("it was let in")
    };
    assert!(line.contains("its list of clients lacks") && !line.contains('\n'), "{line}");
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_receiver_is_named_once_and_sender_reconnects() {
    let far = far().await;
    let (first, _, lines_of_sender) = far.sender(&far.client).await;
    let kept = first.clone();
    let first_task = tokio::spawn(async move { kept.keep().await });
    while !first.state().connected {
        sleep(Wait::from_millis(5)).await;
    }
    // The same key from another address: for example, the sender has been restarted.
    let (second, at, told_second) = far.sender(&far.client).await;
    let kept = second.clone();
    first_task.abort();
    let second_task = tokio::spawn(async move { kept.keep().await });
    while !second.state().connected {
        sleep(Wait::from_millis(5)).await;
    }
    let encoder = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut datagram = [0; 100];
    loop {
        encoder.send_to(b"media", at).await.unwrap();
        sleep(Wait::from_millis(10)).await;
        if far.player.try_recv(&mut datagram).is_ok() {
            break;
        }
    }
    far.stop.notify_one();
    let is_told = |lines: &Lines| lines.lock().unwrap().iter().any(|l| l.contains("is lost"));
    while !is_told(&told_second) {
        sleep(Wait::from_millis(5)).await;
    }
    second_task.abort();
    assert!(lines_of_sender.lock().unwrap()[0].contains("connected to"), "{lines_of_sender:?}");
}

/// By default ffmpeg's datagrams have 1,472 bytes.
#[tokio::test(flavor = "multi_thread")]
async fn the_length_that_takes_one_packet_is_told_once() {
    let far = far().await;
    let (sending, at, lines_of_sender) = far.sender(&far.client).await;
    let running = tokio::spawn(async move { sending.keep().await });
    let encoder = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let about = || -> Vec<String> {
        let lines = lines_of_sender.lock().unwrap();
        lines.iter().filter(|line| line.contains("pkt_size=")).cloned().collect()
    };
    let send = async || {
        encoder.send_to(&[0x47; 1472], at).await.unwrap();
        sleep(Wait::from_millis(1)).await;
    };
    while about().is_empty() {
        send().await;
    }
    for _ in 0..600 {
        send().await;
    }
    let lines = about();
    assert_eq!(lines.len(), 1, "{lines:?}");
    let size = lines[0].split("pkt_size=").nth(1).unwrap().trim_end_matches(')');
    // MPEG-TS: seven of its packets fit into an Ethernet packet.
    assert_eq!(size.parse(), Ok(1316), "{lines:?}");
    running.abort();
}
