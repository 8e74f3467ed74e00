use super::*;
use narrows_base::{Rate, Time};
use narrows_link::{LinkChange, LossSpec};
use std::net::UdpSocket;
use std::sync::OnceLock;

#[derive(Debug, Default)]
struct MissedLog {
    observer: OnceLock<RelayObserver>,
    missed: Mutex<Vec<MissedDatagram>>,
}

impl RelayTap for MissedLog {
    fn bound(&self, observer: RelayObserver) {
        let _ = self.observer.set(observer);
    }
    fn passed(&self, _: &RelayedDatagram<'_>) {}
    fn missed(&self, datagram: &MissedDatagram) {
        self.missed.lock().unwrap().push(*datagram);
    }
}

/// A link that is changed while it runs loses the scheduled packets and reports their clients; after the change is
/// undone it works as before.
#[test]
fn running_relay_applies_changes_and_names_dropped_packets() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut link = LinkConfig::plain(Rate::from_bps(100_000_000), Duration::from_millis(1));
    link.changes = true;
    let seen = Arc::new(MissedLog::default());
    let listen = "127.0.0.1:0".parse().unwrap();
    let to = server.local_addr().unwrap();
    let relay = Relay::watched(listen, to, &link, &link, 1, Some(seen.clone())).unwrap();
    let observer = seen.observer.get().unwrap();
    let clients = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
    let arrives = |client: &UdpSocket| {
        client.send_to(b"a datagram", relay.local_addr()).unwrap();
        server.recv(&mut [0; 99]).unwrap() == 10
    };
    assert!(clients.iter().all(arrives));
    let all = LossSpec::parse_all("100%").unwrap();
    observer.change(Time::ZERO, 0, LinkChange::Loss(all));
    while relay.stats().forward.lost == 0 {
        clients[1].send_to(b"lost or not", relay.local_addr()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    while seen.missed.lock().unwrap().is_empty() {
        std::thread::yield_now();
    }
    let missed = seen.missed.lock().unwrap()[0];
    assert_eq!((missed.client, missed.direction, missed.dropped), (1, 0, false));
    observer.change(Time::ZERO, 0, LinkChange::Loss(Vec::new()));
    let before = relay.stats().forward.delivered_packets;
    while relay.stats().forward.delivered_packets == before {
        clients[0].send_to(b"again", relay.local_addr()).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}
