//! Programs on tokio's paused clock over a network.

use narrows_testnet::tokio::{TokioNetwork, TokioSocket};
use narrows_testnet::{LinkId, Network, NodeId};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::time::{Instant, sleep, timeout};

const LIMIT: Duration = Duration::from_secs(600);
const SERVER: &str = "10.0.0.2:53";

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

struct Pair {
    network: TokioNetwork,
    a: NodeId,
    link: LinkId,
    client: TokioSocket,
    server: TokioSocket,
}

fn pair(link: &str, seed: u64, limit: Duration) -> Pair {
    let mut network = Network::new(seed);
    let a = network.add_host(&[at("10.0.0.1:0").ip()]).unwrap();
    let b = network.add_host(&[at(SERVER).ip(), at("[2001:db8::2]:0").ip()]).unwrap();
    let link = network.add_link(a, b, link).unwrap();
    let network = TokioNetwork::new(network, limit).unwrap();
    let client = network.bind(a, at("10.0.0.1:0")).unwrap();
    let server = network.bind(b, at(SERVER)).unwrap();
    Pair { network, a, link, client, server }
}

/// Answers each request with its bytes.
async fn echo(socket: TokioSocket) {
    let mut buffer = [0; 1500];
    while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
        socket.send_to(&buffer[..length], from).await.unwrap();
    }
}

/// Sends a request until its answer arrives. Returns the number of transmissions.
async fn request(socket: &TokioSocket, number: u32) -> std::io::Result<u32> {
    let mut buffer = [0; 1500];
    for transmissions in 1.. {
        socket.send_to(&number.to_be_bytes(), at(SERVER)).await?;
        while let Ok(received) = timeout(ms(200), socket.recv_from(&mut buffer)).await {
            if buffer[..received?.0] == number.to_be_bytes() {
                return Ok(transmissions);
            }
        }
    }
    unreachable!()
}

/// 100 requests one after another: when each was answered, after how many transmissions.
fn requests(seed: u64) -> Vec<(Duration, u32)> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let Pair { client, server, .. } = pair("20Mbit/s,25ms,loss=20%,jitter=5ms", seed, LIMIT);
        tokio::spawn(echo(server));
        let start = Instant::now();
        let mut answers = Vec::new();
        for number in 0..100 {
            let transmissions = request(&client, number).await.unwrap();
            answers.push((start.elapsed(), transmissions));
        }
        answers
    })
}

#[test]
fn requests_over_lossy_link_repeat_to_the_nanosecond() {
    let answers = requests(1);
    let transmissions: u32 = answers.iter().map(|answer| answer.1).sum();
    assert!((110..200).contains(&transmissions), "{transmissions}");
    assert_eq!(requests(1), answers);
    assert_ne!(requests(2), answers);
}

#[tokio::test(start_paused = true)]
async fn datagrams_arrive_at_exact_times_between_timers() {
    let Pair { client, server, .. } = pair("8Mbit/s,10ms", 1, LIMIT);
    let start = Instant::now();
    let ticks = tokio::spawn(async move {
        for n in 1..=40 {
            sleep(ms(1)).await;
            assert!(start.elapsed() >= ms(n) && start.elapsed() < ms(2 * n + 1));
        }
    });
    let mut buffer = [0; 1500];
    for (payload, micros) in [(5, 33), (172, 200), (972, 1000), (0, 28), (472, 500)] {
        let sent = Instant::now();
        client.send_to(&buffer[..payload], at(SERVER)).await.unwrap();
        let received = server.recv_from(&mut buffer).await.unwrap();
        assert_eq!(received, (payload, client.local_addr()));
        assert_eq!(sent.elapsed(), ms(10) + Duration::from_micros(micros));
    }
    ticks.await.unwrap();
    let loopback = Instant::now();
    client.send_to(&[1], client.local_addr()).await.unwrap();
    client.recv_from(&mut buffer).await.unwrap();
    assert_eq!(loopback.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn clock_waits_for_tasks_that_wake_each_other() {
    let Pair { client, server, .. } = pair("unlimited,100us", 1, LIMIT);
    tokio::spawn(echo(server));
    let (to_task, mut inner) = tokio::sync::mpsc::unbounded_channel();
    let (back, mut outer) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Some(()) = inner.recv().await {
            back.send(()).unwrap();
        }
    });
    let start = Instant::now();
    let mut buffer = [0; 10];
    for n in 1..=50 {
        for _ in 0..3 {
            to_task.send(()).unwrap();
            outer.recv().await.unwrap();
        }
        client.send_to(&[1], at(SERVER)).await.unwrap();
        client.recv_from(&mut buffer).await.unwrap();
        assert_eq!(start.elapsed(), Duration::from_micros(200 * n));
    }
}

#[tokio::test(start_paused = true)]
async fn retransmission_over_a_dead_link_ends_at_the_limit() {
    let Pair { network, link, client, server, .. } = pair("20Mbit/s,25ms", 1, LIMIT);
    tokio::spawn(echo(server));
    let start = Instant::now();
    request(&client, 1).await.unwrap();
    network.with(|network| network.change_at(ms(200), link, "loss=100%")).unwrap();
    sleep(ms(200)).await;
    let error = request(&client, 2).await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed().as_secs()), (ErrorKind::TimedOut, 600));
    // Without a timer and a datagram in the network.
    let error = client.recv_from(&mut []).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TimedOut);
}

#[tokio::test(start_paused = true)]
async fn socket_without_arrivals_ends_at_the_limit() {
    let Pair { client, .. } = pair("20Mbit/s,25ms", 1, ms(1) / 3);
    let start = Instant::now();
    let error = client.recv_from(&mut []).await.unwrap_err();
    assert_eq!((error.kind(), start.elapsed()), (ErrorKind::TimedOut, ms(1) / 3));
}

#[tokio::test(start_paused = true)]
async fn endless_sending_at_one_time_is_an_error() {
    let Pair { client, .. } = pair("20Mbit/s,25ms", 1, LIMIT);
    let mut sent = 0;
    while client.send_to(&[0; 100], at(SERVER)).await.is_ok() {
        sent += 1;
    }
    assert_eq!(sent, 1 << 17);
    sleep(ms(1)).await;
    assert!(client.send_to(&[0; 100], at(SERVER)).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn socket_refuses_wrong_addresses_and_sizes() {
    let Pair { network, a, client, server, .. } = pair("20Mbit/s,25ms", 1, LIMIT);
    let bind = |address| network.bind(a, at(address)).err().map(|e| e.kind());
    assert_eq!(bind("10.0.0.2:1"), Some(ErrorKind::AddrNotAvailable));
    assert_eq!(bind("0.0.0.0:1"), Some(ErrorKind::AddrNotAvailable));
    assert_eq!(bind("10.0.0.1:49152"), Some(ErrorKind::AddrInUse));
    let ports: Vec<_> = (0..20_000).map_while(|_| network.bind(a, at("10.0.0.1:0")).ok()).collect();
    assert_eq!(ports.len(), 16_383);
    drop(ports);
    assert_eq!(bind("10.0.0.1:0"), None);
    for (to, bytes) in [("10.0.0.2:0", 1), ("[2001:db8::2]:1", 1), (SERVER, 65_508)] {
        let error = client.send_to(&vec![0; bytes], at(to)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{to}");
    }
    // Without a route, without a socket, above no MTU.
    for (to, bytes) in [("10.0.0.9:1", 1), ("0.0.0.0:1", 1), ("10.0.0.2:9", 1), (SERVER, 65_507)] {
        client.send_to(&vec![0; bytes], at(to)).await.unwrap();
    }
    let mut small = [0; 10];
    assert_eq!(server.recv_from(&mut small).await.unwrap(), (10, client.local_addr()));
    assert_eq!(network.with(|network| network.counts().unroutable), 2);
}

#[tokio::test]
async fn network_needs_paused_time() {
    let error = TokioNetwork::new(Network::new(1), LIMIT).err().unwrap();
    assert!(error.to_string().contains("start_paused"), "{error}");
}

#[test]
fn network_needs_a_runtime() {
    assert!(TokioNetwork::new(Network::new(1), LIMIT).is_err());
}

#[tokio::test(start_paused = true)]
async fn resumed_clock_delivers_in_real_time() {
    let Pair { client, server, .. } = pair("unlimited,100us", 1, LIMIT);
    tokio::time::resume();
    client.send_to(&[1], at(SERVER)).await.unwrap();
    assert_eq!(server.recv_from(&mut [0; 10]).await.unwrap().0, 1);
}
