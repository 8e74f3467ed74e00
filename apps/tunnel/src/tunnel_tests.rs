//! Traffic that a tunnel carries, and traffic that it must not carry.

use crate::both_ends::*;
use crate::client::{ClientOptions, NotOpened, Tunnel};
use crate::dial::{self, Lookup};
use crate::forward::Forward;
use crate::limits::ClientLimits;
use crate::request::{Refusal, TunnelRequest};
use crate::server::{ServerOptions, TunnelServer};
use futures_util::FutureExt as _;
use narrows_base::{Rate, Spec};
use narrows_congestion::PathHints;
use narrows_net::endpoint::connection;
use narrows_net::probe::{self, ProbeError, ProbeOptions};
use narrows_peers::dial::Peer;
use narrows_peers::learned::{LearnedPaths, client};
use narrows_peers::path_choice::{PathChoice, PathChoices};
use narrows_peers::{ErrorKind, Identity, key};
use narrows_transport::Protocol;
use narrows_transport::endpoint::{Permit, ServerKey};
use narrows_wire::StaticKey;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_and_ends_pass_each_way_by_themselves() {
    let target = target(twice).await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    let port = port(&tunnel, "127.0.0.1", target.port()).await;
    let data: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7 / 3) as u8).collect();
    let mut tcp = TcpStream::connect(port).await.unwrap();
    let (mut read, mut write) = tcp.split();
    let sent = async {
        write.write_all(&data).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let (_, read) = tokio::join!(sent, read.read_to_end(&mut got));
    read.unwrap();
    assert!(got == [&data[..], &data[..]].concat(), "{} bytes came", got.len());
    assert!(far.logged(&format!("tcp {target} opened to {target}")), "{:?}", far.log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_cause_has_its_line_and_resets_the_connection() {
    // Systems give this port to no socket that asks for any.
    let closed = SocketAddr::from(([127, 0, 0, 1], 9));
    let lookup: Lookup = Arc::new(|name| match name {
        "inside.test" => Ok(vec!["127.0.0.1".parse().unwrap(), "::ffff:10.0.0.1".parse().unwrap()]),
        "nat.test" => Ok(vec!["64:ff9b::7f00:1".parse().unwrap()]),
        _ => Err(std::io::Error::other("no such name")),
    });
    let allow = [&closed.to_string(), "*.test:80", "*:81"];
    let far = far_with(&allow, ClientLimits::default(), lookup);
    let (tunnel, near_log) = far.near();
    for (host, at, refusal) in [
        ("127.0.0.1", closed.port(), Refusal::Refused),
        ("127.0.0.1", 81, Refusal::NotPublic),
        ("::1", 81, Refusal::NotPublic),
        ("127.0.0.1", 80, Refusal::NotAllowed),
        ("inside.test", 80, Refusal::NotPublic),
        ("nat.test", 80, Refusal::NotPublic),
        ("absent.test", 80, Refusal::NoSuchName),
        ("inside.example", 80, Refusal::NotAllowed),
        ("bad name", 81, Refusal::BadRequest),
        ("a..b", 81, Refusal::NoSuchName),
    ] {
        let opened = tunnel.open(&TunnelRequest::tcp(host, at)).await;
        assert_eq!(opened.err(), Some(NotOpened::Refused(refusal)), "{host}");
        assert_reset(port(&tunnel, host, at).await).await;
        let line = format!("{}: {refusal}", TunnelRequest::tcp(host, at).shown());
        // The log line follows the reset.
        while !near_log.lock().unwrap().contains(&line) {
            tokio::task::yield_now().await;
        }
    }
}

/// The name is looked up once, and only checked addresses are connected to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn name_with_a_changing_address_gains_no_access() {
    let target = target(echo).await;
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    // The first lookup returns a public address, later ones the server's own machine.
    let lookup: Lookup = Arc::new(move |_| {
        let mut asked = count.lock().unwrap();
        *asked += 1;
        let answer = if *asked == 1 { "192.0.2.1" } else { "127.0.0.1" };
        Ok(vec![answer.parse().unwrap()])
    });
    let port = target.port();
    // A network for documentation stands for a public one, where no host answers.
    let far = far_with(
        &[&format!("192.0.2.0/24:{port}"), &format!("*:{port}")],
        ClientLimits::default(),
        lookup,
    );
    let (tunnel, _) = far.near();
    let first = tunnel.open(&TunnelRequest::tcp("evil.test", port)).await.err();
    assert!(!matches!(first, None | Some(NotOpened::Refused(Refusal::NotPublic))), "{first:?}");
    assert_eq!(*asked.lock().unwrap(), 1);
    let second = tunnel.open(&TunnelRequest::tcp("evil.test", port)).await.err();
    assert_eq!(second, Some(NotOpened::Refused(Refusal::NotPublic)));
}

/// A truncated download must not look complete.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reset_or_lost_tunnel_resets_open_connections() {
    let target = target(|mut tcp| async move {
        let mut wish = [0];
        tcp.write_all(b"half").await.unwrap();
        tcp.read_exact(&mut wish).await.unwrap();
        if wish == *b"r" {
            crate::pipe::prepare(&tcp);
        } else {
            std::future::pending::<()>().await;
        }
    })
    .await;
    let far = far(&[&target.to_string()]);
    let (tunnel, near_log) = far.near();
    let port = port(&tunnel, "127.0.0.1", target.port()).await;
    for wish in [b"r", b"k"] {
        let mut tcp = TcpStream::connect(port).await.unwrap();
        tcp.read_exact(&mut [0; 4]).await.unwrap();
        tcp.write_all(wish).await.unwrap();
        if wish == b"k" {
            far.endpoint.close(256, "over");
        }
        let read = tcp.read(&mut [0; 9]).await;
        assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    }
    while !near_log.lock().unwrap().iter().any(|line| line.contains("is lost")) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_again_is_found_again() {
    let target = target(echo).await;
    let old = far(&[&target.to_string()]);
    let (tunnel, near_log) = old.near();
    let port = port(&tunnel, "127.0.0.1", target.port()).await;
    let mut tcp = TcpStream::connect(port).await.unwrap();
    tcp.write_all(b"1234").await.unwrap();
    tcp.read_exact(&mut [0; 4]).await.unwrap();
    let Far { at, server, client, endpoint, .. } = old;
    endpoint.close(256, "stopped");
    endpoint.closed().await;
    drop(endpoint);
    assert!(tcp.read(&mut [0]).await.is_err());
    // The old socket is closed a moment after its endpoint.
    while std::net::UdpSocket::bind(at).is_err() || std::net::TcpListener::bind(at).is_err() {
        tokio::task::yield_now().await;
    }
    let allow = [&*target.to_string()];
    let again = FarSetup { at, server, client, ..FarSetup::new(&allow) }.start();
    let mut tcp = TcpStream::connect(port).await.unwrap();
    tcp.write_all(b"5678").await.unwrap();
    let mut got = [0; 4];
    tcp.read_exact(&mut got).await.unwrap();
    assert_eq!(got, *b"5678");
    assert!(again.logged("opened to"));
    let near_log = near_log.lock().unwrap();
    assert_eq!(
        near_log.iter().filter(|l| l.starts_with("connected to")).count(),
        2,
        "{near_log:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_without_clients_or_targets_does_not_start() {
    let options = |clients: &[&Identity], targets: &[&str]| ServerOptions {
        identity: Identity::generate().unwrap(),
        permissions: permissions(clients, targets, ClientLimits::default()),
        tun: Vec::new(),
        config: config(),
        permit: Permit::Listed,
        learned: None,
        tap: None,
        lookup: dial::system(),
        log: Arc::new(|_| ()),
    };
    let at = "127.0.0.1:0".parse().unwrap();
    let client = Identity::generate().unwrap();
    for (clients, targets) in [(&[][..], &["*:80"][..]), (&[&client], &[])] {
        assert_eq!(
            TunnelServer::bind(at, options(clients, targets)).err().unwrap().kind,
            ErrorKind::Input
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unlisted_client_ends_with_one_line_and_is_logged() {
    let mut far = far(&["*:80"]);
    far.client = Identity::generate().unwrap();
    let tunnel = Tunnel::new(ClientOptions {
        peer: Peer {
            host: "127.0.0.1".into(),
            port: far.at.port(),
            key: Some(*far.server.public()),
            judge: Box::new(|_| Ok(())),
            identity: far.client.clone(),
            config: config(),
            patience: narrows_base::Duration::from_secs(10),
            tap: None,
            paths: Default::default(),
        },
        receiving: PathHints::default(),
        silence: narrows_base::Duration::from_secs(12),
        incoming: crate::reverse::incoming(1),
        learned: None,
        tell: Box::new(|_| ()),
    });
    let e = tunnel.keep().await.unwrap_err();
    assert!(
        e.kind == ErrorKind::Refused && e.line.contains(&key::text(far.client.public())),
        "{e}"
    );
    // A thread of its own writes the log.
    while far.log.lock().unwrap().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let log = far.log.lock().unwrap();
    let key = key::text(far.client.public());
    assert!(
        log.len() == 1 && log[0].contains(&key) && log[0].contains("not on the list"),
        "{log:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_of_each_program_come_back_to_it() {
    let target = udp_target().await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    let socket = crate::datagrams::listen("--udp", "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let listen = socket.local_addr().unwrap();
    let forward = Forward { listen, host: "127.0.0.1".into(), port: target.port() };
    tokio::spawn(crate::datagrams::run(tunnel, socket, forward));
    let mut programs = Vec::new();
    for i in 0..3u8 {
        let program = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        program.connect(listen).await.unwrap();
        program.send(&[i; 20]).await.unwrap();
        programs.push(program);
    }
    for (i, program) in (0u8..).zip(&programs) {
        // The first datagram opens the flow; the second follows.
        for value in [i, i + 100] {
            loop {
                let answer = question(program, &[value; 20]).await;
                if answer == [value; 40] {
                    break;
                }
                assert_eq!(answer, [i; 40], "another program's");
            }
        }
    }
    assert!(far.logged(&format!("udp {target} opened to {target}")));
}

/// Datagrams longer than a message, in each direction, up to the maximum size.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_longer_than_a_message_go_in_parts() {
    let target = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = target.local_addr().unwrap();
    tokio::spawn(async move {
        let mut bytes = vec![0; 65_535];
        while let Ok((n, from)) = target.recv_from(&mut bytes).await {
            target.send_to(&bytes[..n], from).await.unwrap();
        }
    });
    let far = far(&[&at.to_string()]);
    let (tunnel, _) = far.near();
    let socket = crate::datagrams::listen("--udp", "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let listen = socket.local_addr().unwrap();
    let forward = Forward { listen, host: "127.0.0.1".into(), port: at.port() };
    tokio::spawn(crate::datagrams::run(tunnel, socket, forward));
    let program = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    program.connect(listen).await.unwrap();
    let mut bytes = vec![0; 65_535];
    for length in [1, 1200, 1412, 1413, 1452, 1472, 4096, 65_507] {
        let sent: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
        // Datagrams may be lost, even on a busy machine's loopback.
        let got = loop {
            program.send(&sent).await.unwrap();
            let answer = program.recv(&mut bytes);
            match tokio::time::timeout(std::time::Duration::from_secs(2), answer).await {
                // A late datagram of the length before.
                Ok(n) if n.as_ref().is_ok_and(|n| *n != length) => {}
                Ok(n) => break n.unwrap(),
                Err(_) => {}
            }
        };
        assert!(bytes[..got] == sent, "{length}");
    }
}

/// Silent connections from sixteen addresses hold all places: a client that comes afterwards gets one nevertheless.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg(target_os = "linux")]
async fn silent_tcp_connections_keep_no_client_out() {
    let target = target(twice).await;
    let far = far(&[&target.to_string()]);
    let mut silent = Vec::new();
    for i in 0..160u16 {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        let own = [127, 0, 1, 1 + (i % 16) as u8];
        socket.bind((std::net::Ipv4Addr::from(own), 0).into()).unwrap();
        let mut tcp = socket.connect(far.at).await.unwrap();
        tcp.write_all(&[0, 1, b'x']).await.unwrap();
        silent.push(tcp);
    }
    assert!(!matches!(silent[0].read(&mut [0]).await, Ok(1..)), "the oldest gave way");
    let (listener, _no_udp, at) = listening_over_both().await;
    tokio::spawn(crate::test_path::carry_tcp(listener, far.at));
    let patience = narrows_base::Duration::from_millis(300);
    let (tunnel, _) = far.near_as(Near { patience, ..Near::at(at) });
    let opened = tunnel.open(&TunnelRequest::tcp("127.0.0.1", target.port())).await;
    let (link, _stream) = opened.unwrap();
    assert!(link.is_over_tcp());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flows_beyond_the_limit_end_the_longest_idle() {
    let target = udp_target().await;
    let limits = ClientLimits { flows: 3, ..ClientLimits::default() };
    let far = far_with(&[&target.to_string()], limits, dial::system());
    let (tunnel, _) = far.near();
    let link = tunnel.link().await.unwrap();
    let request = TunnelRequest::udp("127.0.0.1", target.port());
    let mut kept = Vec::new();
    for _ in 0..5 {
        let (send, mut receive) =
            link.ask(&request, &[0, 5, b'q', b'u', b'i', b'e', b't']).await.unwrap();
        assert_eq!(crate::pipe::answer(&mut receive).await.unwrap(), None);
        kept.push((send, receive));
    }
    for (_, receive) in &mut kept[..2] {
        assert!(!matches!(receive.receive(&mut [0]).await, Ok(1..)), "the oldest gave way");
    }
    for (_, receive) in &mut kept[2..] {
        assert!(receive.receive(&mut [0]).now_or_never().is_none(), "the others go on");
    }
    assert!(far.logged("idle flows ended early for new ones, since 3 are open"));
    // Messages of unknown flows, and invalid messages.
    for message in [&[][..], &[1], &[0xff; 40], &[0, 0, 0, 200, 1]] {
        link.connection().send_message(message, narrows_base::Duration::ZERO).unwrap();
    }
    let (_send, mut receive) = link.ask(&request, &[0, 1, b'x']).await.unwrap();
    assert_eq!(crate::pipe::answer(&mut receive).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_beyond_the_servers_limit_are_refused_at_once() {
    let target = target(echo).await;
    let limits = ClientLimits { streams: 3, ..ClientLimits::default() };
    let far = far_with(&[&target.to_string()], limits, dial::system());
    let (tunnel, near_log) = far.near();
    let request = TunnelRequest::tcp("127.0.0.1", target.port());
    let mut kept = Vec::new();
    for _ in 0..3 {
        kept.push(tunnel.open(&request).await.unwrap());
    }
    let at = port(&tunnel, "127.0.0.1", target.port()).await;
    let (listener, socks) = listening().await;
    tokio::spawn(crate::socks::run(tunnel.clone(), listener));
    let (listener, http) = listening().await;
    tokio::spawn(crate::http::run(tunnel.clone(), listener));
    for _ in 0..3 {
        assert_reset(at).await;
    }
    let mut tcp = TcpStream::connect(socks).await.unwrap();
    let by_socks = [&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1][..], &target.port().to_be_bytes()];
    tcp.write_all(&by_socks.concat()).await.unwrap();
    let mut answer = [0; 4];
    tcp.read_exact(&mut answer).await.unwrap();
    assert_eq!(answer, [5, 0, 5, 1]);
    let mut tcp = TcpStream::connect(http).await.unwrap();
    tcp.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    tcp.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 503");
    let limit = "this client has as much open as the server permits";
    let lines = near_log.lock().unwrap().iter().filter(|line| line.contains(limit)).count();
    assert_eq!(lines, 1, "{near_log:?}");
    // The streams that end make room. A busy machine needs longer for it than a request waits.
    kept.clear();
    while tunnel.open(&request).await.is_err() {}
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_beyond_the_limit_give_way() {
    let target = target(echo).await;
    let limits = ClientLimits { streams: 3, ..ClientLimits::default() };
    let far = far_with(&[&target.to_string()], limits, dial::system());
    let (tunnel, near_log) = far.near();
    let at = port(&tunnel, "127.0.0.1", target.port()).await;
    let mut answer = [0; 2];
    let mut kept = TcpStream::connect(at).await.unwrap();
    kept.write_all(b"a").await.unwrap();
    kept.read_exact(&mut answer[..1]).await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..2 {
        silent.push(TcpStream::connect(at).await.unwrap());
    }
    let mut newcomers = Vec::new();
    for tcp in &mut silent {
        let mut newcomer = TcpStream::connect(at).await.unwrap();
        newcomer.write_all(b"hi").await.unwrap();
        newcomer.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"hi");
        newcomers.push(newcomer);
        let gone = tcp.read(&mut answer).await.unwrap_err();
        assert_eq!(gone.kind(), std::io::ErrorKind::ConnectionReset);
    }
    kept.write_all(b"b").await.unwrap();
    kept.read_exact(&mut answer[..1]).await.unwrap();
    assert_eq!(answer[0], b'b');
    assert!(near_log.lock().unwrap().iter().any(|line| line.contains("silent")), "{near_log:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_beyond_a_clients_rate_are_lost() {
    let target = udp_target().await;
    let rate = Some(narrows_base::Rate::from_bps(800));
    let limits = ClientLimits { rate, ..ClientLimits::default() };
    let far = far_with(&[&target.to_string()], limits, dial::system());
    let (tunnel, _) = far.near();
    let link = tunnel.link().await.unwrap();
    let request = TunnelRequest::udp("127.0.0.1", target.port());
    let (send, mut receive) =
        link.ask(&request, &[0, 5, b'q', b'u', b'i', b'e', b't']).await.unwrap();
    assert_eq!(crate::pipe::answer(&mut receive).await.unwrap(), None);
    let message = [&((send.id() / 4) as u32).to_be_bytes()[..], &[7; 1000]].concat();
    for _ in 0..10 {
        link.connection().send_message(&message, narrows_base::Duration::ZERO).unwrap();
    }
    // The first passes; its answer, as all that follows within ten seconds, does not.
    let answer = link.connection().receive_message();
    assert!(tokio::time::timeout(std::time::Duration::from_millis(500), answer).await.is_err());
}

/// The attempt over UDP would last longer than a program waits for a connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_udp_does_not_delay_tcp_by_its_timeout() {
    let far = far(&["127.0.0.1:*"]);
    let (listener, _silent, at) = listening_over_both().await;
    tokio::spawn(crate::test_path::carry_tcp(listener, far.at));
    let patience = narrows_base::Duration::from_secs(100);
    let (tunnel, _) = far.near_as(Near { patience, ..Near::at(at) });
    assert!(tunnel.link().await.unwrap().is_over_tcp());
}

/// TCP would leave by another route than the one that was chosen.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chosen_path_does_not_fall_back_to_tcp() {
    let far = far(&["127.0.0.1:*"]);
    let (listener, _silent, at) = listening_over_both().await;
    tokio::spawn(crate::test_path::carry_tcp(listener, far.at));
    let patience = narrows_base::Duration::from_millis(300);
    let all = vec![PathChoice::read("127.0.0.1").unwrap()];
    let paths = PathChoices { all, note: None };
    let (_tunnel, near_log) = far.near_as(Near { patience, paths, ..Near::at(at) });
    while near_log.lock().unwrap().is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let first = near_log.lock().unwrap()[0].clone();
    assert!(first.ends_with("trying again until it answers"), "{first}");
}

/// A port before a server that answers only TCP: streams and datagrams pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_udp_does_not_pass_tcp_carries_the_same() {
    let target = target(twice).await;
    let udp = udp_target().await;
    let far = far(&[&target.to_string(), &udp.to_string()]);
    // The UDP port is silent, as a firewall is: a closed port would cause an ICMP error.
    let (listener, _silent, at) = listening_over_both().await;
    let inside = far.at;
    tokio::spawn(crate::test_path::carry_tcp(listener, inside));
    let (tunnel, near_log) =
        far.near_as(Near { patience: narrows_base::Duration::from_millis(300), ..Near::at(at) });
    let (_link, (mut send, mut receive)) =
        tunnel.open(&TunnelRequest::tcp("127.0.0.1", target.port())).await.unwrap();
    let data = vec![7; 400_000];
    let (sent, got) = tokio::join!(send.send_last(&data), receive.receive_all(1_000_000));
    sent.unwrap();
    assert!(got.unwrap() == [7; 800_000]);
    let line = format!("connected to {at} over TCP, since UDP is not answered");
    let mut log = near_log.lock().unwrap().clone();
    // On a busy machine the first attempts may be too slow for this patience.
    log.retain(|line| !line.ends_with("trying again until it answers"));
    assert_eq!(log, [line]);
    let link = tunnel.link().await.unwrap();
    let (_send, mut receive) =
        link.ask(&TunnelRequest::udp("127.0.0.1", udp.port()), &[0, 1, b'x']).await.unwrap();
    assert_eq!(crate::pipe::answer(&mut receive).await, Ok(None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_far_side_is_told_of_the_path() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let hints = PathHints { rate: Some(Rate::from_bps(5_000_000)), ..PathHints::default() };
    let (tunnel, _) = far.near_as(Near { receiving: hints, ..Near::at(far.at) });
    let link = tunnel.link().await.unwrap();
    // The hints are sent before any stream is opened.
    while !far.logged("carries 5 Mbit/s") {
        tokio::task::yield_now().await;
    }
    assert!(!link.connection().is_closed());
}

/// Only listed clients may probe the path, and the controller for probes is refused in other connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn probes_of_clients_are_answered() {
    let far = far(&["*:80"]);
    let probe = |private: [u8; 32]| {
        let key = StaticKey::new(private).unwrap();
        let server_key = ServerKey::Is(*far.server.public());
        let servers = vec![far.at];
        let options =
            ProbeOptions { servers, server_key, key, local: None, fill: false, record: false };
        // The probe is cancelled when it has measured something.
        tokio::task::spawn_blocking(move || probe::probe(options, &mut |progress| progress < 0.05))
    };
    let own = *far.client.private();
    let others = *Identity::generate().unwrap().private();
    assert_eq!(probe(own).await.unwrap().unwrap_err(), ProbeError::Stopped);
    let refused = probe(others).await.unwrap().unwrap_err();
    assert!(matches!(refused, ProbeError::Connection(_)), "{refused}");
    let spec = Spec::parse("rrtp+fixed(rate=10Gbit/s,repair=off)").unwrap();
    let fast = connection(Protocol::read(&spec, 1500).unwrap());
    // The connection may be closed before the client detects that it is open.
    let closed = match far.hostile_as(fast).await {
        Ok(connection) => connection.closed().await,
        Err(e) => e,
    };
    assert!(closed.to_string().contains("for probes"), "{closed}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_ends_learn_their_transport() {
    let target = target(twice).await;
    let folder = std::env::temp_dir().join(format!("narrows-tunnel-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str| Arc::new(LearnedPaths::at(folder.join(name)));
    let paths = file("paths.toml");
    let clients = file("clients.toml");
    let allow = target.to_string();
    let learned = Some(clients.clone());
    let far = FarSetup { learned, ..FarSetup::new(&[&allow]) }.start();
    let learned = Some((paths.clone(), "to here".to_string()));
    let (tunnel, _) = far.near_as(Near { learned, ..Near::at(far.at) });
    let (link, (mut send, mut receive)) =
        tunnel.open(&TunnelRequest::tcp("127.0.0.1", target.port())).await.unwrap();
    let data = vec![7; 2_000_000];
    let (sent, got) = tokio::join!(send.send_last(&data), receive.receive_all(5_000_000));
    sent.unwrap();
    assert_eq!(got.unwrap().len(), 4_000_000);
    drop(link);
    tunnel.leave();
    let rate = |learned: &LearnedPaths, place: &str| learned.get(place).unwrap()?.path.rate;
    assert!(rate(&paths, "to here").is_some());
    let place = client(far.client.public(), "127.0.0.1".parse().unwrap());
    while rate(&clients, &place).is_none() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // The server may be writing a last file.
    let _ = std::fs::remove_dir_all(&folder);
}
