//! Paths that fail, and servers that restart.

use crate::both_ends::*;
use crate::client::Tunnel;
use crate::test_path::TestPath;
use narrows_base::Duration;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(60);

/// Sends bytes and waits for their echo.
async fn echoes(tcp: &mut TcpStream, text: &[u8; 4]) {
    tcp.write_all(text).await.unwrap();
    answered(tcp, text).await;
}

async fn answered(tcp: &mut TcpStream, text: &[u8; 4]) {
    let mut got = [0; 4];
    tcp.read_exact(&mut got).await.unwrap();
    assert_eq!(&got, text);
}

async fn opened(port: SocketAddr) -> TcpStream {
    let mut tcp = TcpStream::connect(port).await.unwrap();
    echoes(&mut tcp, b"open").await;
    tcp
}

/// Waits for a log line that contains `text`.
async fn says(near_log: &Lines, text: &str) {
    while !near_log.lock().unwrap().iter().any(|line| line.contains(text)) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
}

/// A near side behind a path, and its port that leads to an echo target.
async fn behind(
    path: &TestPath,
    far: &Far,
    target: SocketAddr,
    silence: Duration,
) -> (Arc<Tunnel>, Lines, SocketAddr) {
    let near = Near { patience: silence, silence, ..Near::at(path.at) };
    let (tunnel, near_log) = far.near_as(near);
    watch(&near_log, &far.log);
    let port = port(&tunnel, "127.0.0.1", target.port()).await;
    (tunnel, near_log, port)
}

/// If a test hangs, prints the log lines of both ends.
fn watch(near_log: &Lines, log: &Lines) {
    let near_log = near_log.clone();
    let log = log.clone();
    tokio::spawn(async move {
        tokio::time::sleep(std::time::Duration::from_secs(50)).await;
        eprintln!("{:#?} {:#?}", near_log.lock().unwrap(), log.lock().unwrap());
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_outlive_an_outage() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let path = TestPath::to(&far, false).await;
    let (_tunnel, near_log, port) = behind(&path, &far, target, LONG).await;
    let mut one = opened(port).await;
    let mut two = opened(port).await;
    path.cut(true);
    one.write_all(b"lost").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    path.cut(false);
    answered(&mut one, b"lost").await;
    echoes(&mut two, b"2222").await;
    assert_eq!(near_log.lock().unwrap().len(), 1, "{near_log:?}");
}

/// The change is visible only to the path, not to the two ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_outlive_a_change_of_address() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let path = TestPath::to(&far, false).await;
    let (_tunnel, near_log, port) = behind(&path, &far, target, LONG).await;
    let mut tcp = opened(port).await;
    for text in [b"1111", b"2222", b"3333"] {
        path.readdress();
        echoes(&mut tcp, text).await;
    }
    assert_eq!(near_log.lock().unwrap().len(), 1, "{near_log:?}");
}

/// An outage after which the old connection answers: open streams continue, including those opened meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outage_mistaken_for_a_failure_loses_no_bytes() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let path = TestPath::to(&far, false).await;
    let (_tunnel, near_log, port) = behind(&path, &far, target, SHORT).await;
    let mut tcp = opened(port).await;
    path.cut(true);
    tcp.write_all(b"lost").await.unwrap();
    says(&near_log, "does not answer").await;
    let mut meanwhile = TcpStream::connect(port).await.unwrap();
    meanwhile.write_all(b"wait").await.unwrap();
    path.cut(false);
    answered(&mut tcp, b"lost").await;
    answered(&mut meanwhile, b"wait").await;
    echoes(&mut tcp, b"more").await;
}

/// New connections use TCP, old ones wait. When UDP works again, the old ones continue, and new ones use UDP.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_udp_moves_new_connections_to_tcp_old_wait() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let path = TestPath::to(&far, true).await;
    let (tunnel, near_log, port) = behind(&path, &far, target, SHORT).await;
    let carried_by_tcp = async |by_tcp: bool| {
        while tunnel.link().await.unwrap().is_over_tcp() != by_tcp {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    // On a busy machine the first connection may be over TCP.
    carried_by_tcp(false).await;
    let mut old = opened(port).await;
    path.cut(true);
    old.write_all(b"lost").await.unwrap();
    carried_by_tcp(true).await;
    says(&near_log, "over TCP, since UDP is not answered").await;
    let mut new = opened(port).await;
    path.cut(false);
    answered(&mut old, b"lost").await;
    carried_by_tcp(false).await;
    // Open streams stay on their connection.
    for tcp in [&mut old, &mut new, &mut opened(port).await] {
        echoes(tcp, b"stay").await;
    }
    // TCP is not needed any more.
    drop(new);
    while !far.logged("gone") {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    echoes(&mut old, b"last").await;
}

/// The old server ends without closing its connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_vanished_is_found_again() {
    let target = target(echo).await;
    let allow = [&*target.to_string()];
    let old = far(&allow);
    let path = TestPath::to(&old, false).await;
    let (_tunnel, near_log, port) = behind(&path, &old, target, SHORT).await;
    let mut tcp = opened(port).await;
    path.cut(true);
    let Far { at, server, client, endpoint, .. } = old;
    endpoint.close(256, "the path is cut");
    endpoint.closed().await;
    drop(endpoint);
    while std::net::UdpSocket::bind(at).is_err() || std::net::TcpListener::bind(at).is_err() {
        tokio::task::yield_now().await;
    }
    let _again = FarSetup { at, server, client, ..FarSetup::new(&allow) }.start();
    path.cut(false);
    // The near side has not detected the loss yet. New connections and their first bytes wait for the next connection.
    opened(port).await;
    let error = tcp.read(&mut [0; 4]).await.unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
    says(&near_log, "the connection is lost").await;
    opened(port).await;
}
