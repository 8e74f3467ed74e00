//! Misbehaving clients at a server that carries packets. Within a network namespace of their own: needs root.

use crate::both_ends::*;
use crate::tun::MARK;
use crate::tun::given::{LENGTH, TunnelAddresses};
use narrows_base::Duration;
use narrows_emulator::Namespace;
use narrows_net::ip_packet::build;
use narrows_net::{Connection, ReceiveStream, SendStream};
use std::net::{IpAddr, UdpSocket};

/// Runs a test within a network namespace of its own.
fn within<F: Future<Output = ()>>(future: impl FnOnce() -> F + Send) {
    let namespace = match Namespace::create("far") {
        Ok(namespace) => namespace,
        Err(e) => return eprintln!("skipped: {e}"),
    };
    let run = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(future());
    };
    namespace.enter(run).unwrap();
}

/// A client's stream, and its address.
struct TunStream {
    connection: Connection,
    send: SendStream,
    receive: ReceiveStream,
    own: IpAddr,
}

async fn ask(far: &Far) -> TunStream {
    let connection = far.hostile(0).await;
    let (mut send, mut receive) = connection.open_bi().await.unwrap();
    send.send_all(&MARK).await.unwrap();
    let mut answer = [1; 1 + LENGTH];
    let mut at = 0;
    while at < answer.len() {
        at += receive.receive(&mut answer[at..]).await.unwrap();
    }
    assert_eq!(answer[0], 0);
    let given = TunnelAddresses::read(answer[1..].try_into().unwrap()).unwrap();
    assert_eq!(given.far_shown(), "10.66.0.1");
    TunStream { connection, send, receive, own: given.pairs()[0].0 }
}

impl TunStream {
    fn says(&self, bytes: &[u8]) {
        let flow = u32::try_from(self.send.id() / 4).unwrap().to_be_bytes();
        let _ = self.connection.send_message(&[&flow, bytes].concat(), Duration::ZERO);
    }
}

/// A UDP datagram without a checksum, which IPv4 permits.
fn datagram(from: IpAddr, to: IpAddr, port: u16, payload: &[u8]) -> Vec<u8> {
    let length = (8 + payload.len()) as u16;
    let udp = [&[0, 9][..], &port.to_be_bytes(), &length.to_be_bytes(), &[0, 0], payload].concat();
    build(from, to, 17, &udp).unwrap()
}

#[test]
fn client_sends_only_from_its_address_to_allowed_targets() {
    within(|| async {
        let far = far_of_packets(&["10.66.0.1:7777"], &["10.66.0.0/29"]);
        let server = IpAddr::from([10, 66, 0, 1]);
        let socket = UdpSocket::bind((server, 7777)).unwrap();
        let other = UdpSocket::bind((server, 8888)).unwrap();
        socket.set_nonblocking(true).unwrap();
        other.set_nonblocking(true).unwrap();
        let asked = ask(&far).await;
        assert_eq!(asked.own, IpAddr::from([10, 66, 0, 2]));
        let neighbour = IpAddr::from([10, 66, 0, 3]);
        let mut bytes = [0; 100];
        loop {
            asked.says(&datagram(neighbour, server, 7777, b"another's"));
            asked.says(&datagram(server, server, 7777, b"the server's own"));
            asked.says(&datagram([127, 0, 0, 1].into(), server, 7777, b"loopback"));
            asked.says(&datagram(asked.own, server, 8888, b"another port"));
            asked.says(&datagram(asked.own, neighbour, 7777, b"another client"));
            asked.says(&datagram(asked.own, [127, 0, 0, 1].into(), 7777, b"loopback"));
            asked.says(&build(asked.own, server, 1, &[8, 0, 0, 0]).unwrap());
            asked.says(&[0x45, 0, 0]);
            asked.says(&[]);
            asked.says(&[0, 1]);
            asked.says(&datagram(asked.own, server, 7777, b"its own"));
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            if let Ok((n, from)) = socket.recv_from(&mut bytes) {
                assert_eq!((&bytes[..n], from.ip()), (&b"its own"[..], asked.own));
                break;
            }
        }
        assert!(other.recv_from(&mut bytes).is_err());
        for line in [
            "dropped one from 10.66.0.3, which it may not use",
            "dropped one to 10.66.0.1, which is not permitted",
            "dropped one that is none",
        ] {
            assert!(far.logged(line), "{line}: {:?}", far.log);
        }
        // However many packets are dropped, the log has one line of each kind before the end.
        assert_eq!(far.log.lock().unwrap().iter().filter(|l| l.contains("dropped one")).count(), 3);
        // An answer comes back as a packet.
        socket.send_to(b"answer", (asked.own, 9)).unwrap();
        let message = asked.connection.receive_message().await.unwrap();
        assert_eq!(message[4..].len(), 20 + 8 + 6);
        assert!(message.ends_with(b"answer"));
        drop(asked);
        while !far.logged("by their source") {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn the_newest_connection_of_a_client_has_its_address() {
    within(|| async {
        let far = far_of_packets(&["10.66.0.1:*"], &["10.66.0.0/29"]);
        let mut first = ask(&far).await;
        let second = ask(&far).await;
        assert_eq!(first.own, second.own);
        assert_eq!(first.receive.receive(&mut [0]).await.unwrap(), 0, "its stream is over");
        let socket = UdpSocket::bind("10.66.0.1:0").unwrap();
        socket.send_to(b"to whom", (second.own, 9)).unwrap();
        assert!(second.connection.receive_message().await.unwrap().ends_with(b"to whom"));
        // Later packets on the first connection find no flow.
        first.says(&datagram(first.own, [10, 66, 0, 1].into(), 9, b"late"));
    });
}

#[test]
fn packets_of_1280_bytes_pass_whatever_a_message_carries() {
    within(|| async {
        let far = far_of_packets(&["10.66.0.1:*"], &["10.66.0.0/29"]);
        let asked = ask(&far).await;
        let socket = UdpSocket::bind("10.66.0.1:0").unwrap();
        // The kernel sets "don't fragment" on its own packets; a packet of this length passes with any message size.
        socket.send_to(&[7; 1252], (asked.own, 9)).unwrap();
        let mut parts = crate::parts::PartialDatagrams::default();
        let whole = loop {
            let message = asked.connection.receive_message().await.unwrap();
            if message[0] & 0x80 == 0 {
                break message[4..].to_vec();
            }
            if let Some(whole) = parts.join(std::time::Instant::now(), 0, &message[4..]) {
                break whole;
            }
        };
        assert_eq!(whole.len(), 1280);
        assert!(whole[28..].iter().all(|b| *b == 7));
    });
}
