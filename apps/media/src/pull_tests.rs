//! Receivers that connect to a sender, over loopback.

use crate::connection::for_media;
use crate::hello::PULL;
use crate::inlet::{InletEvent, Outs};
use crate::media_tests::{Lines, config, media, peer};
use crate::receive::Viewing;
use crate::send::{MediaSending, Offer, Offering};
use narrows_net::{ConnectOptions, Endpoint, Options};
use narrows_peers::access::AllowList;
use narrows_peers::{ErrorKind, Identity, key};
use narrows_transport::endpoint::{ClientFilter, ServerKey};
use narrows_wire::StaticKey;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration as Wait;
use tokio::net::UdpSocket;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// A sender for these clients, and its log lines.
struct Near {
    at: SocketAddr,
    identity: Identity,
    from: SocketAddr,
    log: Lines,
}

async fn near(clients: &[&Identity]) -> Near {
    let identity = Identity::generate().unwrap();
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let from = socket.local_addr().unwrap();
    let log = Lines::default();
    let list: Vec<_> = clients.iter().map(|client| key::text(client.public())).collect();
    let clients = AllowList::read(&list.join("\n")).unwrap();
    let filter = ClientFilter::default();
    let offer = Offer { identity: identity.clone(), clients, config: config(), filter, tap: None };
    let media = media(&[8_000_000], log.clone());
    let offering = Offering::bind("127.0.0.1:0".parse().unwrap(), vec![socket], media, offer);
    let offering = offering.unwrap();
    let at = offering.address();
    tokio::spawn(async move { offering.run().await });
    Near { at, identity, from, log }
}

fn is_told(lines: &Lines, part: &str) -> bool {
    lines.lock().unwrap().iter().any(|line| line.contains(part))
}
async fn wait_for(lines: &Lines, part: &str) {
    while !is_told(lines, part) {
        sleep(Wait::from_millis(5)).await;
    }
}

/// A receiver that connects, with a player's socket.
struct View {
    player: UdpSocket,
    log: Lines,
    stop: Arc<Notify>,
    task: JoinHandle<Result<(), narrows_peers::Error>>,
}

async fn view(near: &Near, identity: &Identity) -> View {
    let player = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let log = Lines::default();
    let stop = Arc::new(Notify::new());
    let lines = log.clone();
    let outs = Outs {
        to: vec![player.local_addr().unwrap()],
        latency: None,
        tell: Box::new(move |event| {
            lines.lock().unwrap().push(match event {
                InletEvent::Line { line, .. } => line.clone(),
                InletEvent::Over(measures) => format!("{} datagrams", measures.datagrams),
            });
        }),
        observer: None,
    };
    let viewing = Viewing::new(outs, peer(near.at, &near.identity, identity)).await.unwrap();
    let stopped = stop.clone();
    let task = tokio::spawn(async move { viewing.run(stopped.notified()).await });
    View { player, log, stop, task }
}

/// Sends until the player receives a datagram.
async fn played(near: &Near, player: &UdpSocket) {
    let encoder = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let mut byte = [0; 100];
    loop {
        encoder.send_to(b"media", near.from).await.unwrap();
        sleep(Wait::from_millis(5)).await;
        if let Ok(length) = player.try_recv(&mut byte) {
            assert_eq!(&byte[..length], b"media");
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn next_receiver_gets_the_media_after_the_first_leaves() {
    let first = Identity::generate().unwrap();
    let second = Identity::generate().unwrap();
    let near = near(&[&first, &second]).await;
    let one = view(&near, &first).await;
    played(&near, &one.player).await;
    let two = view(&near, &second).await;
    wait_for(&two.log, "another receives").await;
    wait_for(&near.log, "refused, since another receives").await;
    assert!(two.player.try_recv(&mut [0; 9]).is_err());
    // It releases its buffered datagrams and reports its measures.
    one.stop.notify_one();
    one.task.await.unwrap().unwrap();
    assert!(is_told(&one.log, "datagrams"), "{:?}", one.log);
    played(&near, &two.player).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_is_started_again_takes_its_own_place() {
    let client = Identity::generate().unwrap();
    let near = near(&[&client]).await;
    let one = view(&near, &client).await;
    played(&near, &one.player).await;
    one.task.abort();
    let again = view(&near, &client).await;
    played(&near, &again.player).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unlisted_receiver_gets_one_line_and_no_media() {
    let near = near(&[&Identity::generate().unwrap()]).await;
    let stranger = view(&near, &Identity::generate().unwrap()).await;
    let e = stranger.task.await.unwrap().unwrap_err();
    assert!(e.kind == ErrorKind::Refused && e.line.contains("list of clients lacks"), "{e}");
    assert!(!is_told(&near.log, "receives") && stranger.player.try_recv(&mut [0; 9]).is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn sender_connecting_to_sender_gets_the_right_pairing() {
    let client = Identity::generate().unwrap();
    let near = near(&[&client]).await;
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let media = media(&[8_000_000], Lines::default());
    let sending = MediaSending::new(vec![socket], media, peer(near.at, &near.identity, &client));
    let e = sending.keep().await.unwrap_err();
    assert!(e.kind == ErrorKind::Version && e.line.contains("`media send --listen`"), "{e}");
}

/// A listed client that answers with invalid data, or not at all, keeps its place for the time allowed for an answer,
/// and at most as long as its connection.
#[tokio::test(flavor = "multi_thread")]
async fn malformed_receiver_gives_its_place_to_the_next() {
    let hostile = Identity::generate().unwrap();
    let client = Identity::generate().unwrap();
    let near = near(&[&hostile, &client]).await;
    let key = StaticKey::new(*hostile.private()).unwrap();
    let config = for_media(config(), PULL).unwrap();
    let options = Options::client(key, config.clone());
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let how = ConnectOptions::new(ServerKey::Is(*near.identity.public()), config);
    let connection = endpoint.connect(near.at, how).await.unwrap();
    let (mut send, _receive) = connection.accept_bi().await.unwrap();
    send.send_all(&[0xff]).await.unwrap();
    wait_for(&near.log, "is gone").await;
    let one = view(&near, &client).await;
    played(&near, &one.player).await;
}
