//! Probes over loopback, through the relay. `narrows-probe` tests the estimates in simulation; here only results that a
//! busy machine cannot spoil.

use narrows_base::{Duration, Rate};
use narrows_link::{LinkConfig, LossSpec};
use narrows_net::endpoint::{connection, new_key};
use narrows_net::probe::{self, ProbeError, ProbeGate, ProbeOptions, Probed};
use narrows_net::socket::ReceivedDatagram;
use narrows_net::tap::{ConnectionOpened, Tap};
use narrows_net::{
    ApplicationProtocols, ConnectOptions, Connection, Endpoint, Error, Options, Relay, SendStream,
    block_on,
};
use narrows_probe::ecn::EcnVerdict;
use narrows_probe::frames::{ProbeFrame, TrainFrame};
use narrows_probe::{FULL_BYTES, StopAt};
use narrows_transport::Protocol;
use narrows_transport::connection::{Closed, ConnectionConfig, Stats, Transmit};
use narrows_transport::endpoint::{Clients, Handle, ServerKey};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

fn local() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn config() -> ConnectionConfig {
    connection(Protocol::rrtp())
}

/// Counts datagrams by their length.
#[derive(Debug, Default)]
struct Lengths(Mutex<BTreeMap<usize, u32>>);

impl Tap for Lengths {
    fn bound(&self, _: narrows_net::endpoint::Observer) {}
    fn sent(&self, _: narrows_base::Time, _: &Transmit, _: &[u8]) {}
    fn received(&self, datagram: &ReceivedDatagram<'_>) {
        *self.0.lock().unwrap().entry(datagram.bytes.len()).or_default() += 1;
    }
    fn opened(&self, _: narrows_base::Time, _: &ConnectionOpened) {}
    fn closed(&self, _: narrows_base::Time, _: Handle, _: Option<&Stats>, _: &Closed) {}
}

/// A server that answers probes until it is closed.
fn server(tap: Option<Arc<dyn Tap>>) -> (Endpoint, [u8; 32]) {
    let key = new_key().unwrap();
    let public = *key.public();
    let options = Options::server(key, Clients::Any, probe::answering(config()).unwrap());
    let endpoint = Endpoint::bind(local(), options.tapped(tap)).unwrap();
    let accepting = endpoint.clone();
    let gate = ProbeGate::default();
    std::thread::spawn(move || {
        block_on(async {
            while let Ok(connection) = accepting.accept().await {
                probe::answer(connection, &gate);
            }
        });
    });
    (endpoint, public)
}

fn options(server: SocketAddr, key: [u8; 32]) -> ProbeOptions {
    let server_key = ServerKey::Is(key);
    let servers = vec![server];
    let key = new_key().unwrap();
    ProbeOptions { servers, server_key, key, local: None, fill: false, record: false }
}

fn link(mbps: u64, loss: &str) -> LinkConfig {
    LinkConfig {
        loss: LossSpec::parse_all(loss).unwrap(),
        ..LinkConfig::plain(Rate::from_bps(mbps * 1_000_000), Duration::from_millis(15))
    }
}

/// Whether a probe found the path of the test below, in its time.
fn is_right(probed: &Probed) -> bool {
    let e = &probed.estimate;
    let rates = [(&e.up, 5e6), (&e.down, 2e6)];
    (0.029..0.060).contains(&e.base_rtt.value)
        && rates.iter().all(|(way, rate)| (0.5 * rate..1.15 * rate).contains(&way.rate.value))
        && e.up.loss.is_some_and(|loss| loss.share.low < 0.035 && loss.share.high > 0.025)
        && e.down.loss.is_some_and(|loss| loss.share.value < 0.01)
        && probed.seconds < 11.0
}

#[test]
fn probe_measures_relay_and_second_probe_gets_busy() {
    let lengths = Arc::new(Lengths::default());
    let (endpoint, key) = server(Some(lengths.clone()));
    let there = link(5, "3%");
    let back = link(2, "none");
    let relay = Relay::bind(local(), endpoint.local_addr(), &there, &back, 1).unwrap();
    let mut second = None;
    let mut probed = probe::probe(options(relay.local_addr(), key), &mut |progress| {
        if progress > 0.0 && second.is_none() {
            let second_options = options(relay.local_addr(), key);
            second = Some(std::thread::spawn(move || probe::probe(second_options, &mut |_| true)));
        }
        true
    })
    .unwrap();
    let refused = second.unwrap().join().unwrap().map(|_| ());
    assert!(matches!(refused, Err(ProbeError::Busy { .. })), "{refused:?}");
    // A busy machine sends and reads late, and spoils some measurements.
    let mut spoiled = Vec::new();
    while !is_right(&probed) {
        spoiled.push(probed);
        assert!(spoiled.len() < 6, "each time another path was found: {spoiled:?}");
        probed = probe::probe(options(relay.local_addr(), key), &mut |_| true).unwrap();
    }
    let e = &probed.estimate;
    // The relay and loopback preserve ECN fields.
    for way in [&e.up, &e.down] {
        assert_eq!(way.ecn.verdict(), EcnVerdict::Passes, "{:?}", way.ecn);
        assert_eq!((way.ecn.cleared, way.ecn.marked), (0, 0), "{:?}", way.ecn);
    }
    // Packets have the scheduled length, including the headers of IP and UDP.
    let lengths = lengths.0.lock().unwrap();
    let of = |bytes: usize| lengths.get(&(bytes - 28)).copied().unwrap_or(0);
    assert!(of(200) >= 30, "{lengths:?}");
    assert!(of(FULL_BYTES as usize) >= 5, "{lengths:?}");
    // The place is free again.
    drop(lengths);
    let again = probe::probe(options(relay.local_addr(), key), &mut |_| false);
    assert_eq!(again.map(|_| ()), Err(ProbeError::Stopped));
    endpoint.close(0, "");
}

/// The first client falls silent without a CLOSE, as one that was killed.
#[test]
fn probe_of_vanished_client_does_not_refuse_the_next() {
    let (endpoint, key) = server(None);
    let at = endpoint.local_addr();
    let mut next = None;
    let first = probe::probe(options(at, key), &mut |progress| {
        if progress == 0.0 {
            return true;
        }
        let next_options = options(at, key);
        next = Some(probe::probe(next_options, &mut |progress| progress < 0.3).map(|_| ()));
        false
    });
    assert_eq!(first.map(|_| ()), Err(ProbeError::Stopped));
    assert_eq!(next, Some(Err(ProbeError::Stopped)));
    endpoint.close(0, "");
}

/// A misbehaving client.
fn stranger(server: &Endpoint, key: [u8; 32], name: &str) -> (Connection, SendStream) {
    let client = Endpoint::bind(local(), Options::client(new_key().unwrap(), config())).unwrap();
    let applications = ApplicationProtocols::new([name]).unwrap();
    let connect = ConnectionConfig { applications, ..config() };
    block_on(async {
        let options = ConnectOptions::new(ServerKey::Is(key), connect);
        let connection = client.connect(server.local_addr(), options).await.unwrap();
        let (send, _receive) = connection.open_bi().await.unwrap();
        (connection, send)
    })
}

#[test]
fn unknown_peer_gets_only_a_probe() {
    let (endpoint, key) = server(None);
    let train = |packets, bytes, gap_ns| TrainFrame {
        train: 1,
        packets,
        bytes,
        gap_ns,
        stop_at: StopAt::default(),
        ce: 0,
    };
    let asks = [
        // 27 MB.
        ProbeFrame::Down(train(24_000, 1_080, 0)).bytes(),
        ProbeFrame::Down(train(u32::MAX, 16, 0)).bytes(),
        // A packet every twenty seconds, forever.
        ProbeFrame::Down(train(1_000, 100, 20_000_000_000)).bytes(),
        ProbeFrame::Down(train(10, 1_500, 0)).bytes(),
        ProbeFrame::Down(train(10, 3, 0)).bytes(),
        ProbeFrame::Up(train(u32::MAX, 100, 0)).bytes(),
        b"GET / HTTP/1.1\r\n\r\n".to_vec(),
        vec![5, 0xff, 0xff, 0xff, 0xff],
    ];
    for ask in asks {
        let (connection, mut send) = stranger(&endpoint, key, probe::APPLICATION);
        let why = block_on(async {
            send.send_all(&ask).await.unwrap();
            connection.closed().await
        });
        assert!(matches!(why, Error::ClosedByPeer { code: 259, .. }), "{ask:?}: {why:?}");
    }
    endpoint.close(0, "");
}
