//! A stream in two layers over loopback, through a relay with a varying rate.

use crate::media_tests::{Lines, far};
use crate::send::MediaSending;
use narrows_base::{Duration, Rate, Time};

use narrows_link::{LinkChange, LinkConfig, QueueLimit};
use narrows_net::relay::{MissedDatagram, Relay, RelayObserver, RelayTap, RelayedDatagram};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration as Wait;
use tokio::net::UdpSocket;
use tokio::time::sleep;

#[derive(Debug, Default)]
struct Observer(OnceLock<RelayObserver>);

impl RelayTap for Observer {
    fn bound(&self, observer: RelayObserver) {
        let _ = self.0.set(observer);
    }
    fn passed(&self, _: &RelayedDatagram<'_>) {}
    fn missed(&self, _: &MissedDatagram) {}
}

/// 0.5 and 2 Mbit/s, in datagrams of 1000 bytes that contain the number of their layer.
async fn encode(to: Vec<SocketAddr>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    loop {
        for (layer, count) in [(0, 1), (1, 4)] {
            for _ in 0..count {
                let _ = socket.send_to(&[layer; 1000], to[usize::from(layer)]).await;
            }
        }
        sleep(Wait::from_millis(16)).await;
    }
}

/// Waits until so many layers are sent. A busy machine may drop one at any time, and adds it again later.
async fn until_layers(sending: &MediaSending, count: usize) {
    while sending.state().layers != count {
        sleep(Wait::from_millis(10)).await;
    }
}

fn is_told(log: &Lines, part: &str) -> bool {
    log.lock().unwrap().iter().any(|line| line.contains(part))
}

async fn comes(player: &UdpSocket, layer: u8) {
    let mut datagram = [9; 2000];
    while player.try_recv(&mut datagram).is_ok() {}
    assert_eq!((player.recv(&mut datagram).await.unwrap(), datagram[0]), (1000, layer));
}

/// If the link's rate falls below the need of both layers, the upper one is dropped; it is added again when the rate
/// returns. Each layer is released at its own port.
#[tokio::test(flavor = "multi_thread")]
async fn layer_is_dropped_at_low_rate_and_added_again() {
    let far = far().await;
    let wide = Rate::from_bps(6_000_000);
    let mut link = LinkConfig::plain(wide, Duration::from_millis(10));
    link.queue.limit = QueueLimit::Bytes(40_000);
    link.changes = true;
    let observer = Arc::new(Observer::default());
    let listen = "127.0.0.1:0".parse().unwrap();
    let relay = Relay::watched(listen, far.at, &link, &link, 1, Some(observer.clone())).unwrap();
    let change = |rate| observer.0.get().unwrap().change(Time::ZERO, 0, LinkChange::Rate(rate));
    let layers = [500_000, 2_000_000];
    let (sending, at, log) = far.layered(relay.local_addr(), &far.client, &layers).await;
    let kept = sending.clone();
    let tasks = [tokio::spawn(async move { drop(kept.keep().await) }), tokio::spawn(encode(at))];
    until_layers(&sending, 2).await;
    comes(&far.player, 0).await;
    comes(&far.second, 1).await;
    // If the layer were dropped earlier, it would count as a failed trial and be added again later.
    sleep(Wait::from_secs(10)).await;
    until_layers(&sending, 2).await;
    change(Rate::from_bps(1_000_000));
    until_layers(&sending, 1).await;
    comes(&far.player, 0).await;
    change(wide);
    until_layers(&sending, 2).await;
    comes(&far.second, 1).await;
    let state = sending.state();
    assert!(state.quality_switches >= 3 && state.left_out > 0, "{state:?}");
    assert!(is_told(&log, "added: 2 of 2") && is_told(&log, "dropped: 1 of 2"), "{log:?}");
    tasks.iter().for_each(|task| task.abort());
    far.stop.notify_one();
    far.wait_for("quality switches").await;
}
