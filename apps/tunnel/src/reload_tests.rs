//! Replaced permissions: permitted connections go on, all others end.

use crate::both_ends::{Far, echo, far_with, permissions, port, target};
use crate::dial;
use crate::limits::ClientLimits;
use narrows_base::Rate;
use narrows_peers::Identity;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A far side that permits the targets.
fn far(targets: &[SocketAddr]) -> Far {
    let allow: Vec<String> = targets.iter().map(SocketAddr::to_string).collect();
    let allow: Vec<&str> = allow.iter().map(String::as_str).collect();
    far_with(&allow, ClientLimits::default(), dial::system())
}

fn limited(bits_per_s: u64) -> ClientLimits {
    ClientLimits { rate: Some(Rate::from_bps(bits_per_s)), ..ClientLimits::default() }
}

/// Sends this many bytes, and reads them back.
async fn there_and_back(at: SocketAddr, bytes: usize) {
    let mut tcp = TcpStream::connect(at).await.unwrap();
    let (mut read, mut write) = tcp.split();
    let mut got = vec![0; bytes];
    let both = tokio::join!(write.write_all(&[7; 100_000][..bytes]), read.read_exact(&mut got));
    both.0.unwrap();
    both.1.unwrap();
    assert!(got.iter().all(|byte| *byte == 7));
}

async fn echoes(tcp: &mut TcpStream) -> std::io::Result<()> {
    tcp.write_all(b"1234").await?;
    let mut got = [0; 4];
    tcp.read_exact(&mut got).await?;
    assert_eq!(got, *b"1234");
    Ok(())
}

async fn opened(at: SocketAddr) -> TcpStream {
    let mut tcp = TcpStream::connect(at).await.unwrap();
    echoes(&mut tcp).await.unwrap();
    tcp
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reload_resets_only_connections_to_removed_targets() {
    let first = target(echo).await;
    let second = target(echo).await;
    let far = far(&[first, second]);
    let (near, _) = far.near();
    let port_of = async |to: SocketAddr| port(&near, "127.0.0.1", to.port()).await;
    let mut stays = opened(port_of(first).await).await;
    let mut goes = opened(port_of(second).await).await;
    let only = [first.to_string()];
    let only = permissions(&[&far.client], &[&only[0]], ClientLimits::default());
    far.set_permissions(only).unwrap();
    let ended = goes.read(&mut [0]).await;
    assert_eq!(ended.unwrap_err().kind(), ErrorKind::ConnectionReset);
    echoes(&mut stays).await.unwrap();
    assert!(far.logged("does not permit it any more"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reload_admits_added_client_and_closes_removed_one() {
    let to = target(echo).await;
    let far = far(&[to]);
    let (near, log) = far.near();
    let mut tcp = opened(port(&near, "127.0.0.1", to.port()).await).await;
    let allow = to.to_string();
    let limits = ClientLimits::default();
    let friend = Identity::generate().unwrap();
    let both = permissions(&[&far.client, &friend], &[&allow], limits);
    far.set_permissions(both).unwrap();
    let of_friend = Far { client: friend.clone(), ..far };
    let (near_friend, _) = of_friend.near();
    let mut of_friends = opened(port(&near_friend, "127.0.0.1", to.port()).await).await;
    echoes(&mut tcp).await.unwrap();
    let only = permissions(&[&friend], &[&allow], limits);
    of_friend.set_permissions(only).unwrap();
    assert!(tcp.read(&mut [0]).await.is_err());
    echoes(&mut of_friends).await.unwrap();
    let log = log.lock().unwrap();
    assert_eq!(log.iter().filter(|l| l.starts_with("connected to")).count(), 1, "{log:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn empty_lists_are_refused_and_the_former_permissions_stay() {
    let to = target(echo).await;
    let far = far(&[to]);
    let (near, _) = far.near();
    let at = port(&near, "127.0.0.1", to.port()).await;
    let limits = ClientLimits::default();
    for bad in [permissions(&[], &["*:1"], limits), permissions(&[&far.client], &[], limits)] {
        assert!(far.set_permissions(bad).is_err());
    }
    opened(at).await;
}

/// 400 kB in all, at 500 kB/s: less than 0.5 s if each connection had the rate for itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_connections_of_a_client_share_its_rate() {
    let to = target(echo).await;
    let far = far_with(&[&to.to_string()], limited(4_000_000), dial::system());
    let (one, _) = far.near();
    let (two, _) = far.near();
    let ports =
        [port(&one, "127.0.0.1", to.port()).await, port(&two, "127.0.0.1", to.port()).await];
    let begun = Instant::now();
    tokio::join!(there_and_back(ports[0], 100_000), there_and_back(ports[1], 100_000));
    assert!(begun.elapsed() > Duration::from_millis(650), "{:?}", begun.elapsed());
}

/// At the first rate the bytes would take eleven hours.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_rate_holds_for_open_connections() {
    let to = target(echo).await;
    let far = far_with(&[&to.to_string()], limited(4000), dial::system());
    let (near, _) = far.near();
    let mut tcp = opened(port(&near, "127.0.0.1", to.port()).await).await;
    let allow = to.to_string();
    far.set_permissions(permissions(&[&far.client], &[&allow], limited(1_000_000_000))).unwrap();
    let (mut read, mut write) = tcp.split();
    let all = vec![1; 20_000_000];
    let mut got = vec![0; all.len()];
    let both = tokio::join!(write.write_all(&all), read.read_exact(&mut got));
    assert!(both.0.is_ok() && both.1.is_ok());
}
