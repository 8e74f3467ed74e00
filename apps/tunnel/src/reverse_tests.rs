//! Reverse forwarding and the standard streams, with both ends in one process.

use crate::both_ends::{Far, Lines, echo, far, permissions, target};
use crate::client::Tunnel;
use crate::forward::Forward;
use crate::limits::ClientLimits;
use crate::permissions::Permissions;
use crate::request::TunnelRequest;
use crate::reverse::ReversePorts;
use crate::{reverse, stdio};
use narrows_peers::{ErrorKind, Identity, key};
use std::hash::{BuildHasher as _, RandomState};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Duration, sleep};

/// A port that is free, below those which systems give to sockets that ask for none: another test that runs at the same
/// time does not get it, and no connection to it is its own other end.
fn free() -> SocketAddr {
    loop {
        let port = 10_000 + (RandomState::new().hash_one(()) % 20_000) as u16;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return ([127, 0, 0, 1], port).into();
        }
    }
}

fn with_reverse(clients: &[&Identity], at: &[SocketAddr]) -> Permissions {
    with_entries(clients, at.iter().map(SocketAddr::to_string))
}

fn with_entries(clients: &[&Identity], entries: impl Iterator<Item = String>) -> Permissions {
    let reverse = ReversePorts::new(entries.map(|entry| entry.parse().unwrap()).collect());
    Permissions { reverse, ..permissions(clients, &["*:80"], ClientLimits::default()) }
}

/// A far side that listens at these ports for its client.
fn far_reverse(at: &[SocketAddr]) -> Far {
    let far = far(&["*:80"]);
    far.set_permissions(with_reverse(&[&far.client], at)).unwrap();
    far
}

fn forward(listen: SocketAddr, to: SocketAddr) -> Forward {
    Forward { listen, host: to.ip().to_string(), port: to.port() }
}

/// Connects as soon as the far side listens.
async fn connected(at: SocketAddr) -> TcpStream {
    loop {
        match TcpStream::connect(at).await {
            Ok(tcp) => return tcp,
            Err(_) => sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn echoes(tcp: &mut TcpStream) -> std::io::Result<()> {
    tcp.write_all(b"1234").await?;
    let mut got = [0; 4];
    tcp.read_exact(&mut got).await?;
    assert_eq!(got, *b"1234");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn near_service_is_reached_at_a_far_port() {
    let at = free();
    let to = target(echo).await;
    let far = far_reverse(&[at]);
    let (near, _) = far.near();
    let forwards = [forward(at, to)];
    let running = near.clone();
    tokio::spawn(async move { reverse::run(&running, &forwards).await });
    let mut tcp = connected(at).await;
    echoes(&mut tcp).await.unwrap();
    // Half-close passes.
    tcp.write_all(b"rest").await.unwrap();
    tcp.shutdown().await.unwrap();
    let mut rest = String::new();
    tcp.read_to_string(&mut rest).await.unwrap();
    assert_eq!(rest, "rest");
    // Without a permission both the open connection and the listener end.
    let mut open = connected(at).await;
    echoes(&mut open).await.unwrap();
    far.set_permissions(with_reverse(&[&far.client], &[])).unwrap();
    assert!(open.read(&mut [0]).await.is_err());
    while TcpStream::connect(at).await.is_ok() {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_port_is_opened_unless_the_server_lists_it() {
    let listed = free();
    let other = free();
    let far = far_reverse(&[listed]);
    let (near, _) = far.near();
    let e = reverse::run(&near, &[forward(other, listed)]).await.unwrap_err();
    assert!(e.kind == ErrorKind::Refused && e.line.contains("--allow-reverse"), "{e}");
    assert!(TcpStream::connect(other).await.is_err());
    assert!(far.logged("does not list it"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_listener_stays_with_its_client() {
    let at = free();
    let to = target(echo).await;
    let far = far_reverse(&[at]);
    let other = Identity::generate().unwrap();
    far.set_permissions(with_reverse(&[&far.client, &other], &[at])).unwrap();
    let (first, _) = far.near();
    let forwards = [forward(at, to)];
    let running = first.clone();
    let same = forwards.clone();
    tokio::spawn(async move { reverse::run(&running, &same).await });
    let mut tcp = connected(at).await;
    echoes(&mut tcp).await.unwrap();
    let of_other = Far { client: other, ..far };
    let (second, near_log) = of_other.near();
    let running = second.clone();
    let same = forwards.clone();
    tokio::spawn(async move { reverse::run(&running, &same).await });
    while !near_log.lock().unwrap().iter().any(|line| line.starts_with("--reverse")) {
        sleep(Duration::from_millis(5)).await;
    }
    assert!(of_other.logged("another client has it"));
    echoes(&mut tcp).await.unwrap();
}

/// Runs a near side that requests these listeners.
fn run(far: &Far, forwards: Vec<Forward>) -> (Arc<Tunnel>, Lines) {
    let (near, near_log) = far.near();
    let running = near.clone();
    tokio::spawn(async move { reverse::run(&running, &forwards).await });
    (near, near_log)
}

/// Waits until the far side has logged this text.
async fn logged(far: &Far, text: &str) {
    while !far.logged(text) {
        sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_to_a_reverse_port_reset_no_other() {
    let at = free();
    let to = target(echo).await;
    let far = far(&[&to.to_string()]);
    let limits = ClientLimits { streams: 8, openings: 10, ..ClientLimits::default() };
    let allowed = permissions(&[&far.client], &[&to.to_string()], limits);
    let reverse = ReversePorts::new(vec![at.to_string().parse().unwrap()]);
    far.set_permissions(Permissions { reverse, ..allowed }).unwrap();
    let (near, _) = run(&far, vec![forward(at, to)]);
    let mut program = connected(at).await;
    echoes(&mut program).await.unwrap();
    let request = TunnelRequest::tcp("127.0.0.1", to.port());
    let (_link, (mut send, mut receive)) = near.open(&request).await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..99 {
        silent.push(TcpStream::connect(at).await.unwrap());
    }
    let lines =
        || far.log.lock().unwrap().iter().filter(|l| l.contains("a connection from")).count();
    while lines() < 20 {
        sleep(Duration::from_millis(5)).await;
    }
    let (_link, _stream) = near.open(&request).await.unwrap();
    send.send_last(b"own").await.unwrap();
    assert_eq!(receive.receive_all(9).await.unwrap(), b"own");
    echoes(&mut program).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_to_a_reverse_port_give_way() {
    let at = free();
    let far = far_reverse(&[at]);
    let (_near, _) = run(&far, vec![forward(at, target(echo).await)]);
    let mut first = connected(at).await;
    echoes(&mut first).await.unwrap();
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(at).await.unwrap());
    }
    for _ in 0..3 {
        echoes(&mut connected(at).await).await.unwrap();
    }
    echoes(&mut first).await.unwrap();
    assert!(!matches!(silent[0].read(&mut [0]).await, Ok(1..)), "the oldest gave way");
    let log = far.log.lock().unwrap();
    let lines = log.iter().filter(|line| line.contains("a connection from")).count();
    assert!(lines <= 25, "{lines} lines about 304 connections");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reverse_ports_are_shared_and_a_key_reserves_one() {
    let at = [free(), free(), free()];
    let far = far_reverse(&[]);
    let other = Identity::generate().unwrap();
    let to = target(echo).await;
    let clients = [&far.client, &other];
    let own = |at: SocketAddr| format!("{at}={}", key::text(other.public()));
    let entries = [at[0].to_string(), at[1].to_string(), own(at[2])];
    far.set_permissions(with_entries(&clients, entries.into_iter())).unwrap();
    let (_first, _) = run(&far, vec![forward(at[0], to), forward(at[1], to)]);
    echoes(&mut connected(at[0]).await).await.unwrap();
    logged(&far, "the other ports are left to other clients").await;
    let (near, _) = far.near();
    let e = reverse::run(&near, &[forward(at[2], to)]).await.unwrap_err();
    assert!(e.line.contains("--allow-reverse"), "{e}");
    let of_other = Far { client: other.clone(), ..far };
    let (_second, _) = run(&of_other, vec![forward(at[1], to), forward(at[2], to)]);
    echoes(&mut connected(at[1]).await).await.unwrap();
    echoes(&mut connected(at[2]).await).await.unwrap();
    // A client that is alone on the list has all ports.
    let lone = [at[0].to_string(), at[1].to_string()].into_iter();
    of_other.set_permissions(with_entries(&[&other], lone)).unwrap();
    while TcpStream::connect(at[0]).await.is_ok() {
        sleep(Duration::from_millis(5)).await;
    }
    let (_third, _) = run(&of_other, vec![forward(at[0], to)]);
    echoes(&mut connected(at[0]).await).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn standard_streams_reach_a_target_and_refusals_are_named() {
    let to = target(echo).await;
    let far = far(&[&to.to_string()]);
    let (near, _) = far.near();
    let (mut program, tunnel_end) = tokio::io::duplex(100);
    let (input, output) = tokio::io::split(tunnel_end);
    let request = TunnelRequest::tcp("127.0.0.1", to.port());
    let running = near.clone();
    let ended = tokio::spawn(async move { stdio::run(&running, &request, input, output).await });
    program.write_all(b"hello").await.unwrap();
    let mut got = [0; 5];
    program.read_exact(&mut got).await.unwrap();
    assert_eq!(got, *b"hello");
    program.shutdown().await.unwrap();
    ended.await.unwrap().unwrap();
    let input = tokio::io::empty();
    let output = tokio::io::sink();
    let e =
        stdio::run(&near, &TunnelRequest::tcp("127.0.0.1", 9), input, output).await.unwrap_err();
    assert!(e.line.starts_with("127.0.0.1:9: the server's --allow"), "{e}");
}
