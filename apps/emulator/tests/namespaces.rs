//! Links between namespaces that the tests create: the kernel's own TCP over them. Needs root.
#![cfg(target_os = "linux")]

use narrows_base::{Duration, Rate, Time};
use narrows_emulator::{EmulatedLink, LinkOptions, Namespace};
use narrows_link::{LinkChange, LinkConfig, LossSpec};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};

/// Two namespaces; `None` if the system does not permit them.
fn two() -> Option<[Namespace; 2]> {
    match Namespace::create("a").and_then(|a| Ok([a, Namespace::create("b")?])) {
        Ok(both) => Some(both),
        Err(e) => {
            eprintln!("skipped: {e}");
            None
        }
    }
}

fn config(mbps: u64, ms: u64) -> LinkConfig {
    LinkConfig::plain(Rate::from_bps(mbps * 1_000_000), Duration::from_millis(ms))
}

/// Sends `bytes` bytes by TCP from A to B and returns the received bytes.
fn transfer(a: &Namespace, b: &Namespace, to: IpAddr, bytes: usize) -> Vec<u8> {
    let listener = b.enter(|| TcpListener::bind(SocketAddr::new(to, 0)).unwrap()).unwrap();
    let to = listener.local_addr().unwrap();
    let receiver = std::thread::spawn(move || {
        let mut all = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut all).unwrap();
        all
    });
    let mut stream = a.enter(|| TcpStream::connect(to).unwrap()).unwrap();
    stream.write_all(&pattern(bytes)).unwrap();
    drop(stream);
    receiver.join().unwrap()
}

/// The datagrams at a socket before the first that is `end`. Each call sends one more such: a link that keeps the order
/// has delivered all before it, however late.
fn before_end<const N: usize>(receiver: &UdpSocket, end: [u8; N], send: impl Fn()) -> Vec<[u8; N]> {
    receiver.set_read_timeout(Some(std::time::Duration::from_millis(50))).unwrap();
    let mut arrived = Vec::new();
    let mut datagram = [0; N];
    send();
    loop {
        match receiver.recv(&mut datagram) {
            Ok(_) if datagram == end => return arrived,
            Ok(_) => arrived.push(datagram),
            Err(_) => send(),
        }
    }
}

fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|n| (n / 1000) as u8).collect()
}

#[test]
fn the_kernels_tcp_crosses_a_link_that_loses_and_splits() {
    let Some([a, b]) = two() else { return };
    let loss = LossSpec::parse_all("1%").unwrap();
    let there = LinkConfig { loss, ..config(200, 2) };
    let link = EmulatedLink::between(&a, &b, LinkOptions::new(there, config(200, 2))).unwrap();
    let addresses = link.b().addresses.clone();
    assert_eq!(addresses.len(), 2, "IPv4 and IPv6: {addresses:?}");
    for to in addresses {
        assert_eq!(transfer(&a, &b, to, 3_000_000), pattern(3_000_000), "over {to}");
    }
    let stats = link.stop();
    let there = stats.forward.packets;
    // Payloads of 1,448 and 1,428 bytes: the link carries packets, not super-frames.
    assert!(there.offered_packets > 4_100, "{there:?}");
    assert!(there.offered_bytes <= there.offered_packets * 1500, "{there:?}");
    assert!(there.lost > 10, "{there:?}");
    assert_eq!(stats.forward.refused + stats.reverse.refused, 0);
}

#[test]
fn nth_packet_has_the_same_outcome_per_seed() {
    let Some([a, b]) = two() else { return };
    let fates = |seed: u64| {
        let loss = LossSpec::parse_all("20%").unwrap();
        let there = LinkConfig { loss, ..config(100, 1) };
        let options = LinkOptions { seed, ..LinkOptions::new(there, config(100, 1)) };
        let link = EmulatedLink::between(&a, &b, options).unwrap();
        let to = SocketAddr::new(link.b().addresses[0], 7000);
        let receiver = b.enter(|| UdpSocket::bind(to).unwrap()).unwrap();
        let sender = a.enter(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        for n in 0..200u8 {
            sender.send_to(&[n], to).unwrap();
        }
        before_end(&receiver, [u8::MAX], || drop(sender.send_to(&[u8::MAX], to)))
    };
    let first = fates(5);
    assert!(first.len() > 100 && first.len() < 200, "{}", first.len());
    assert_eq!(first, fates(5));
    assert_ne!(first, fates(6));
}

/// The kernel learns the MTU from the ICMP errors: its TCP continues with smaller segments, and a large datagram leaves
/// in fragments.
#[test]
fn a_packet_above_the_mtu_is_reported_to_its_sender() {
    let Some([a, b]) = two() else { return };
    let mut there = config(100, 1);
    there.impairments.mtu = Some(1300);
    let link = EmulatedLink::between(&a, &b, LinkOptions::new(there, config(100, 1))).unwrap();
    for to in link.b().addresses.clone() {
        assert_eq!(transfer(&a, &b, to, 500_000), pattern(500_000), "over {to}");
        let receiver = b.enter(|| UdpSocket::bind((to, 7000)).unwrap()).unwrap();
        let any = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let sender = a.enter(|| UdpSocket::bind(any).unwrap()).unwrap();
        sender.send_to(&[7; 1400], (to, 7000)).unwrap();
        receiver.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        assert_eq!(receiver.recv(&mut [0; 2000]).unwrap(), 1400, "over {to}");
    }
    let there = link.stop().forward.packets;
    assert!(there.too_large > 0 && there.too_large == there.dropped, "{there:?}");
    assert!(there.delivered_bytes <= there.delivered_packets * 1300, "{there:?}");
}

#[test]
fn link_with_a_large_mtu_carries_large_packets_whole() {
    let Some([a, b]) = two() else { return };
    let mut at_first = config(1000, 1);
    at_first.impairments.mtu = Some(9000);
    let changed = LinkConfig { changes: true, ..config(1000, 1) };
    let later = vec![(Time::ZERO, LinkChange::Mtu(9000))];
    for (there, changes) in [(at_first, Vec::new()), (changed, later)] {
        let changes = [changes, Vec::new()];
        let options = LinkOptions { changes, ..LinkOptions::new(there, config(1000, 1)) };
        let link = EmulatedLink::between(&a, &b, options).unwrap();
        let to = SocketAddr::new(link.b().addresses[0], 0);
        let receiver = b.enter(|| UdpSocket::bind(to).unwrap()).unwrap();
        receiver.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        let sender = a.enter(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
        sender.send_to(&[7; 8900], receiver.local_addr().unwrap()).unwrap();
        assert_eq!(receiver.recv(&mut [0; 9000]).unwrap(), 8900);
        assert_eq!(link.stop().forward.packets.offered_packets, 1);
    }
}

#[test]
fn link_leaves_no_namespace_or_interface() {
    let Some([a, b]) = two() else { return };
    let interfaces = || std::fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let before = a.enter(interfaces).unwrap();
    let link =
        EmulatedLink::between(&a, &b, LinkOptions::new(config(10, 1), config(10, 1))).unwrap();
    let name = link.a().interface.clone();
    assert!(a.enter(interfaces).unwrap().contains(&name));
    drop(link);
    let names = |text: &str| {
        text.lines()
            .filter_map(|l| Some(l.split_once(':')?.0.trim().to_string()))
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&a.enter(interfaces).unwrap()), names(&before));
}

/// Packets before, between and after the times of two changes are needed; a busy machine gets more time for them.
#[test]
fn a_scheduled_change_meets_the_packets_between_its_times() {
    let Some([a, b]) = two() else { return };
    let is_tried = [1, 4, 16].into_iter().any(|times| is_one_gap_lost(&a, &b, times));
    assert!(is_tried, "no packets before, between or after the changes");
}

/// Loses all packets for a while, and checks that these are in one gap. False if the gap does not begin and end within
/// the packets. Its times are multiples of 200 ms, 500 ms and 800 ms.
fn is_one_gap_lost(a: &Namespace, b: &Namespace, times: u64) -> bool {
    let there = LinkConfig { changes: true, ..config(100, 1) };
    let at = |ms: u64| Time::ZERO + Duration::from_millis(times * ms);
    let all_lost = LinkChange::Loss(LossSpec::parse_all("100%").unwrap());
    let mut options = LinkOptions::new(there, config(100, 1));
    options.changes =
        [vec![(at(200), all_lost), (at(500), LinkChange::Loss(Vec::new()))], Vec::new()];
    let clock = options.clock;
    let link = EmulatedLink::between(a, b, options).unwrap();
    let to = SocketAddr::new(link.b().addresses[0], 7000);
    let receiver = b.enter(|| UdpSocket::bind(to).unwrap()).unwrap();
    let sender = a.enter(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    let mut sent = 0u32;
    while clock.now() < at(800) {
        sender.send_to(&sent.to_be_bytes(), to).unwrap();
        sent += 1;
        std::thread::sleep(std::time::Duration::from_millis(2 * times));
    }
    let end = u32::MAX.to_be_bytes();
    let arrived = before_end(&receiver, end, || drop(sender.send_to(&end, to)));
    let arrived: Vec<u32> = arrived.into_iter().map(u32::from_be_bytes).collect();
    let lost: Vec<u32> = (0..sent).filter(|n| !arrived.contains(n)).collect();
    assert_eq!(link.stop().forward.packets.lost, lost.len() as u64);
    let (Some(first), Some(last)) = (lost.first(), lost.last()) else { return false };
    assert_eq!(last - first + 1, lost.len() as u32, "one gap: {lost:?}");
    *first > 0 && last + 1 < sent
}
