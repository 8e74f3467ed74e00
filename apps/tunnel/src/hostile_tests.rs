//! Misbehaving peers, programs and targets: they do not affect others, and their use of resources is bounded.

use crate::both_ends::*;
use crate::dial;
use crate::limits::ClientLimits;
use crate::over_tcp;
use crate::request::{Refusal, TunnelRequest};
use futures_util::FutureExt as _;
use narrows_net::{Endpoint, Options};
use narrows_peers::Identity;
use narrows_wire::StaticKey;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{Duration, timeout};

/// Ten thousand requests of a client that reads no answer: the limit of open streams holds, and another client is
/// served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_opening_endlessly_stays_within_its_limit() {
    let open = Arc::new(Mutex::new((0usize, 0usize)));
    let counted = open.clone();
    let target = target(move |mut tcp| {
        let counted = counted.clone();
        async move {
            {
                let mut open = counted.lock().unwrap();
                open.0 += 1;
                open.1 = open.1.max(open.0);
            }
            let _ = tcp.read(&mut [0]).await;
            counted.lock().unwrap().0 -= 1;
        }
    })
    .await;
    let limits = ClientLimits { streams: 20, openings: 1000, ..ClientLimits::default() };
    let far = far_with(&[&target.to_string()], limits, dial::system());
    let request = TunnelRequest::tcp("127.0.0.1", target.port()).bytes().unwrap();
    // Two connections of one key, with twenty streams each by the transport's own limit.
    let mut kept = Vec::new();
    for expected in [None, Some(Refusal::TooMany)] {
        let connection = far.hostile(0).await;
        let mut streams = Vec::new();
        for _ in 0..20 {
            let (mut send, receive) = connection.open_bi().await.unwrap();
            send.send_all(&request).await.unwrap();
            streams.push((send, receive));
        }
        for (_, receive) in &mut streams {
            assert_eq!(crate::pipe::answer(receive).await.unwrap(), expected);
        }
        if expected.is_none() {
            let more = connection.open_bi().now_or_never();
            assert!(more.is_none(), "the transport permits no more than twenty");
        }
        kept.push((connection, streams));
    }
    assert!(open.lock().unwrap().1 <= 20);
    // If a key has more than four connections, the oldest is closed.
    let mut more = Vec::new();
    for _ in 0..3 {
        more.push(far.hostile(0).await);
    }
    assert!(kept[0].0.closed().await.to_string().contains("newer"));
    assert!(!kept[1].0.is_closed());
}

/// Requests that are invalid, or never end, are answered or wait; other streams are not affected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_on_a_stream_is_answered_and_harms_no_other() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let hostile = far.hostile(0).await;
    let mut kept = Vec::new();
    for bytes in
        [&[0u8; 4][..], &[1, 0, 80, 0], &[1, 0, 0, 1, b'a'], &[1, 0, 80, 2, 0xff, 0xfe], &[9; 300]]
    {
        let (mut send, mut receive) = hostile.open_bi().await.unwrap();
        send.send_all(bytes).await.unwrap();
        assert_eq!(crate::pipe::answer(&mut receive).await, Ok(Some(Refusal::BadRequest)));
        kept.push((send, receive));
    }
    for bytes in [&[][..], &[1], &[1, 0, 80, 200, b'a']] {
        let (mut send, receive) = hostile.open_bi().await.unwrap();
        send.send_all(bytes).await.unwrap();
        kept.push((send, receive));
    }
    let (tunnel, _) = far.near();
    let (_link, (mut send, mut receive)) =
        tunnel.open(&TunnelRequest::tcp("127.0.0.1", target.port())).await.unwrap();
    send.send_last(b"still here").await.unwrap();
    assert_eq!(receive.receive_all(100).await.unwrap(), b"still here");
}

/// A server that sends invalid answers: a program gets a reset or an answer of SOCKS, and the next program is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_answer_ends_only_its_connection() {
    let server = Identity::generate().unwrap();
    let client = Identity::generate().unwrap();
    let config = crate::connection::for_tunnel(config(), 100).unwrap();
    let key = StaticKey::new(*server.private()).unwrap();
    let options = Options::server(key, narrows_transport::endpoint::Clients::Any, config);
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let at = endpoint.local_addr();
    tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap();
        for answer in [&[][..], &[77], &[0xff; 50]] {
            let (mut send, _receive) = connection.accept_bi().await.unwrap();
            connection.send_message(&[7; 30], narrows_base::Duration::ZERO).unwrap();
            send.send_last(answer).await.unwrap();
        }
        let (mut send, _receive) = connection.accept_bi().await.unwrap();
        send.reset(9).unwrap();
        let (mut send, mut receive) = connection.accept_bi().await.unwrap();
        send.send_last(b"\0fine").await.unwrap();
        let _ = receive.receive_all(1000).await;
    });
    let log = Lines::default();
    let endpoint = Endpoint::bind(
        "127.0.0.1:0".parse().unwrap(),
        Options::client(StaticKey::new([7; 32]).unwrap(), config_of_client()),
    );
    let far =
        Far { at, server, client, log, endpoint: endpoint.unwrap(), bound: std::sync::Weak::new() };
    let (tunnel, near_log) = far.near();
    let port = port(&tunnel, "target.test", 80).await;
    for _ in 0..4 {
        assert_reset(port).await;
    }
    let mut tcp = TcpStream::connect(port).await.unwrap();
    tcp.shutdown().await.unwrap();
    let mut fine = String::new();
    let read = tcp.read_to_string(&mut fine).await;
    assert!(read.is_ok() && fine == "fine", "{read:?} {near_log:?}");
}

/// Invalid bytes over TCP end only that connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_over_tcp_ends_that_connection() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    for bytes in [&[0, 0][..], &[0xff; 5000], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut tcp = TcpStream::connect(far.at).await.unwrap();
        tcp.write_all(bytes).await.unwrap();
        assert!(!matches!(tcp.read(&mut [0; 9]).await, Ok(1..)), "{bytes:?}");
    }
    let (tunnel, _) = far.near();
    assert!(tunnel.open(&TunnelRequest::tcp("127.0.0.1", target.port())).await.is_ok());
}

/// A TCP connection that carries no handshake ends with its time, long before the silence of one that does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_tcp_connection_ends_with_its_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let carriers = Arc::default();
    let opening = Duration::from_millis(100);
    tokio::spawn(async move { over_tcp::serve(&listener, at, &carriers, opening).await });
    let mut tcp = TcpStream::connect(at).await.unwrap();
    let read = timeout(Duration::from_secs(30), tcp.read(&mut [0])).await;
    assert!(!matches!(read.expect("it is still open"), Ok(1..)));
}

/// Counts the passed bytes until they stop, while another stream continues.
async fn until_it_stops(count: &AtomicUsize, other: &mut TcpStream) -> usize {
    let mut still = 0;
    let mut last = count.load(Ordering::SeqCst);
    while still < 100 {
        other.write_all(b"ping").await.unwrap();
        other.read_exact(&mut [0; 4]).await.unwrap();
        let now = count.load(Ordering::SeqCst);
        still = if now == last && now > 0 { still + 1 } else { 0 };
        last = now;
    }
    last
}

/// Upper bound for the bytes of one stream in both ends, their windows and the sockets.
const HELD: usize = 40 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn target_that_never_reads_blocks_only_its_program() {
    let deaf = target(|tcp| async move {
        std::future::pending::<()>().await;
        drop(tcp);
    })
    .await;
    let echoing = target(echo).await;
    let far = far(&[&deaf.to_string(), &echoing.to_string()]);
    let (tunnel, _) = far.near();
    let mut other =
        TcpStream::connect(port(&tunnel, "127.0.0.1", echoing.port()).await).await.unwrap();
    let at = port(&tunnel, "127.0.0.1", deaf.port()).await;
    let given = Arc::new(AtomicUsize::new(0));
    for _ in 0..3 {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        let given = given.clone();
        tokio::spawn(async move {
            while let Ok(n) = tcp.write(&[7; 60_000]).await {
                given.fetch_add(n, Ordering::SeqCst);
            }
        });
    }
    let given = until_it_stops(&given, &mut other).await;
    assert!(given < 3 * HELD, "{given}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn program_that_never_reads_blocks_only_its_target() {
    let sent = Arc::new(AtomicUsize::new(0));
    let count = sent.clone();
    let endless = target(move |mut tcp| {
        let count = count.clone();
        async move {
            while let Ok(n) = tcp.write(&[7; 60_000]).await {
                count.fetch_add(n, Ordering::SeqCst);
            }
        }
    })
    .await;
    let echoing = target(echo).await;
    let far = far(&[&endless.to_string(), &echoing.to_string()]);
    let (tunnel, _) = far.near();
    let mut other =
        TcpStream::connect(port(&tunnel, "127.0.0.1", echoing.port()).await).await.unwrap();
    let at = port(&tunnel, "127.0.0.1", endless.port()).await;
    let mut deaf = Vec::new();
    for _ in 0..3 {
        deaf.push(TcpStream::connect(at).await.unwrap());
    }
    let sent = until_it_stops(&sent, &mut other).await;
    assert!(sent < 3 * HELD, "{sent}");
}

/// Streams without a request keep their places for a while, then release them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peer_without_requests_loses_its_streams() {
    let echoing = target(echo).await;
    let asking = std::time::Duration::from_millis(200);
    let limits = ClientLimits { streams: 8, asking, ..ClientLimits::default() };
    let far = far_with(&[&echoing.to_string()], limits, dial::system());
    let hostile = far.hostile(0).await;
    let mut kept = Vec::new();
    for _ in 0..8 {
        let (mut send, receive) = hostile.open_bi().await.unwrap();
        send.send_all(&[1]).await.unwrap();
        kept.push((send, receive));
    }
    for (_, receive) in &mut kept {
        assert_eq!(crate::pipe::answer(receive).await, Ok(Some(Refusal::BadRequest)));
    }
    kept.clear();
    let (tunnel, _) = far.near();
    assert!(tunnel.open(&TunnelRequest::tcp("127.0.0.1", echoing.port())).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_targets_do_not_delay_other_connections() {
    let trickle = target(|mut tcp| async move {
        for _ in 0..2000 {
            if tcp.write_all(b"x").await.is_err() {
                return;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
    let echoing = target(echo).await;
    let far = far(&[&trickle.to_string(), &echoing.to_string()]);
    let (tunnel, _) = far.near();
    let at = port(&tunnel, "127.0.0.1", trickle.port()).await;
    let mut other =
        TcpStream::connect(port(&tunnel, "127.0.0.1", echoing.port()).await).await.unwrap();
    let mut all = tokio::task::JoinSet::new();
    for _ in 0..50 {
        all.spawn(async move {
            let mut received = Vec::new();
            TcpStream::connect(at).await.unwrap().read_to_end(&mut received).await.unwrap();
            received.len()
        });
    }
    while let Some(received) = all.join_next().await {
        assert_eq!(received.unwrap(), 2000);
        other.write_all(b"ping").await.unwrap();
        other.read_exact(&mut [0; 4]).await.unwrap();
    }
}

/// A target with a full accept queue does not answer: the attempt times out with an error.
#[tokio::test(start_paused = true)]
async fn a_target_that_never_accepts_is_given_up() {
    let full = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    full.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    full.listen(0).unwrap();
    let at = full.local_addr().unwrap().as_socket().unwrap();
    let mut waiting = Vec::new();
    let refusal = loop {
        match dial::tcp(&[at], || Some(())).await {
            Ok(tcp) => waiting.push(tcp),
            Err(refusal) => break refusal,
        }
        assert!(waiting.len() < 20);
    };
    assert_eq!(refusal, Refusal::TimedOut);
}
