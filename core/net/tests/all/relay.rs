//! The relay over loopback, checked by its counters in the links' own time.

use narrows_base::{Duration, Rate, Spec};
use narrows_link::{LinkConfig, LossSpec, QueueConfig, QueueLimit};
use narrows_net::socket::{ReceiveBatch, SendResult, Socket};
use narrows_net::wait::{Interest, Waker, wait};
use narrows_net::{Clock, Error, Relay, RelayStats};
use std::net::{Ipv6Addr, SocketAddr};
use std::time::Instant;

fn local() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn mbit(rate: u64, delay_ms: u64) -> LinkConfig {
    LinkConfig::plain(Rate::from_bps(rate * 1_000_000), Duration::from_millis(delay_ms))
}

/// Polls until `done`; a test that hangs is stopped.
fn until(what: &str, mut done: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !done() {
        assert!(begin.elapsed().as_secs() < 60, "never came: {what}");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// A datagram received at a socket: payload, source, ECN bits.
type Came = (Vec<u8>, SocketAddr, u8);

fn collect(socket: &Socket, clock: &Clock, into: &mut Vec<Came>) {
    let mut batch = ReceiveBatch::new(8);
    while socket.receive(&mut batch) > 0 {
        batch.each(clock, false, |a| into.push((a.bytes.to_vec(), a.from, a.ecn)));
    }
}

/// Datagrams in a burst.
const BURST: u64 = 10;

/// The result of a [`flood`].
struct Flood {
    stats: RelayStats,
    received: Vec<Came>,
    /// Whether each burst was at the relay before the link had carried those before it, so that it was never idle.
    is_dense: bool,
}

/// Sends `count` datagrams of `size` bytes through a relay, a burst now and then, and waits until every one of them was
/// delivered, dropped or lost.
fn flood(link: &LinkConfig, count: u64, size: usize) -> Flood {
    let clock = Clock::new();
    let b = Socket::bind(local()).unwrap();
    let relay = Relay::bind(local(), b.local(), link, &mbit(100, 0), 7).unwrap();
    let a = Socket::bind(local()).unwrap();
    let mut received = Vec::new();
    let mut is_dense = true;
    let each = ((size + 28) * 8) as f64 / link.rate.as_bps() as f64;
    let begin = Instant::now();
    for n in 0..count {
        let mut bytes = vec![0; size];
        bytes[..8].copy_from_slice(&n.to_le_bytes());
        while a.send(relay.local_addr(), &bytes, bytes.len(), (n % 4) as u8) == SendResult::Full {
            std::thread::yield_now();
        }
        if n % BURST == BURST - 1 {
            until("the burst at the relay", || relay.stats().forward.offered_packets > n);
            let before = (n + 1 - BURST) as f64 * each;
            is_dense &= before == 0.0 || begin.elapsed().as_secs_f64() < before;
            collect(&b, &clock, &mut received);
        }
    }
    until("all datagrams", || {
        collect(&b, &clock, &mut received);
        let s = relay.stats().forward;
        let outcomes = s.delivered_packets + s.dropped + s.lost;
        outcomes == count && received.len() as u64 == s.delivered_packets
    });
    Flood { stats: relay.stop(), received, is_dense }
}

#[test]
fn the_rate_is_the_links_whatever_wake_ups_do() {
    // 1500 datagrams of 1250 B on the link at 12 Mbit/s: 1.25 s. They arrive far faster, so the transmitter is never
    // idle: its time in the link's clock is exact. A machine that is too busy to send them so fast tries again.
    let dense = (0..10).map(|_| flood(&mbit(12, 5), 1500, 1222)).find(|flood| flood.is_dense);
    let Some(Flood { stats, received, .. }) = dense else {
        return eprintln!("skipped: the machine had too little time to keep the link busy");
    };
    let s = stats.forward;
    assert_eq!((s.offered_packets, s.offered_bytes), (1500, 1500 * 1250));
    assert_eq!((s.delivered_packets, s.dropped, s.lost), (1500, 0, 0));
    let rate = (s.served_bytes * 8) as f64 / (s.last_s - s.first_s);
    assert!((rate / 12e6 - 1.0).abs() < 0.02, "{rate}");
    // In order, with their ECN bits, and no other datagrams.
    for (n, (bytes, _, ecn)) in received.iter().enumerate() {
        assert_eq!((bytes.len(), &bytes[..8]), (1222, &(n as u64).to_le_bytes()[..]));
        assert_eq!(*ecn, (n % 4) as u8);
    }
    assert!(s.mean_wait_s() > 0.1, "{}", s.mean_wait_s());
}

#[test]
fn losses_have_their_share_and_follow_the_seed() {
    let loss = LossSpec::parse_all("5%").unwrap();
    let link = LinkConfig { loss, ..mbit(500, 0) };
    let numbers = |received: &[Came]| -> Vec<u64> {
        received.iter().map(|c| u64::from_le_bytes(c.0[..8].try_into().unwrap())).collect()
    };
    let first = flood(&link, 4000, 100);
    let lost = first.stats.forward.lost;
    // Binomial: 200 expected, standard deviation 14.
    assert!((130..270).contains(&lost), "{lost}");
    let second = flood(&link, 4000, 100);
    assert_eq!(numbers(&first.received), numbers(&second.received), "one seed, one outcome");
}

#[test]
fn a_full_queue_drops_and_its_room_bounds_the_wait() {
    // Less than a burst, which overflows it even if the next one is late.
    let queue = QueueConfig { limit: QueueLimit::Packets(3), aqm: None };
    let s = flood(&LinkConfig { queue, ..mbit(8, 0) }, 600, 972).stats.forward;
    assert!(s.dropped > 0);
    // Three packets of 1 ms in front, and the rest of the one in transmission.
    assert!(s.longest_wait_s <= 0.004 + 1e-9, "{}", s.longest_wait_s);
}

#[test]
fn managed_queues_mark_ecn_capable_packets() {
    let aqm = Some(Spec::parse("codel(ecn=on)").unwrap());
    let queue = QueueConfig { limit: QueueLimit::Packets(1000), aqm };
    // A burst waits for 50 ms, so that the queue stays long even if the next one is late.
    let Flood { stats, received, .. } = flood(&LinkConfig { queue, ..mbit(2, 0) }, 300, 1222);
    assert!(stats.forward.marked > 0);
    // One of four datagrams was marked at its sender.
    let ce = received.iter().filter(|c| c.2 == 3).count() as u64;
    let sent =
        received.iter().filter(|c| u64::from_le_bytes(c.0[..8].try_into().unwrap()) % 4 == 3);
    assert!(ce > sent.count() as u64);
}

#[test]
fn packets_keep_their_delay_and_clients_their_own_answers() {
    let clock = Clock::new();
    let b = Socket::bind(local()).unwrap();
    let relay = Relay::bind(local(), b.local(), &mbit(100, 20), &mbit(100, 15), 1).unwrap();
    let clients: Vec<Socket> = (0..5).map(|_| Socket::bind(local()).unwrap()).collect();
    let sent = clock.now();
    for (n, c) in clients.iter().enumerate() {
        assert_eq!(c.send(relay.local_addr(), &[n as u8; 50], 50, 0), SendResult::Gone);
    }
    let mut at_b = Vec::new();
    until("all at B", || {
        collect(&b, &clock, &mut at_b);
        at_b.len() == 5
    });
    assert!(clock.now().since(sent) >= Duration::from_millis(20));
    for (bytes, from, _) in &at_b {
        b.send(*from, &[bytes[0], 1], 2, 0);
    }
    for (n, c) in clients.iter().enumerate() {
        let mut got = Vec::new();
        until("the answer", || {
            collect(c, &clock, &mut got);
            !got.is_empty()
        });
        assert_eq!(got[0].0, [n as u8, 1]);
        assert_eq!(got[0].1, relay.local_addr());
    }
    assert!(clock.now().since(sent) >= Duration::from_millis(35));
    let stats = relay.stop();
    assert_eq!((stats.clients, stats.clients_seen), (5, 5));
    assert_eq!((stats.forward.delivered_packets, stats.reverse.delivered_packets), (5, 5));
    assert_eq!(stats.reverse.offered_bytes, 5 * 30);
    assert!(stats.lateness.mean_s >= 0.0 && stats.lateness.max_s >= stats.lateness.mean_s);
}

/// More clients than places, none of them answered: a newcomer gets its answer, and a client with one keeps its place.
#[test]
fn relay_flooded_by_clients_serves_newcomer_and_answered_client() {
    let clock = Clock::new();
    let b = Socket::bind(local()).unwrap();
    let relay = Relay::bind(local(), b.local(), &mbit(100, 0), &mbit(100, 0), 1).unwrap();
    let at = relay.local_addr();
    let mut received = Vec::new();
    let mut ask = |client: &Socket, question: &[u8]| {
        assert_eq!(client.send(at, question, question.len(), 0), SendResult::Gone);
        let mut answers = Vec::new();
        until("an answer", || {
            collect(&b, &clock, &mut received);
            for (bytes, from, _) in received.drain(..).filter(|c| c.0 == question) {
                b.send(from, &bytes, bytes.len(), 0);
                answers.push(from);
            }
            let mut back = Vec::new();
            collect(client, &clock, &mut back);
            !back.is_empty()
        });
        answers[0]
    };
    let answered = Socket::bind(local()).unwrap();
    let place = ask(&answered, b"first");
    for n in 1..=600 {
        std::net::UdpSocket::bind(local()).unwrap().send_to(b"x", at).unwrap();
        // As many as the relay's socket holds.
        if n % 50 == 0 {
            until("the others", || relay.stats().forward.offered_packets > n);
        }
    }
    ask(&Socket::bind(local()).unwrap(), b"newcomer");
    assert_eq!(ask(&answered, b"second"), place);
    let stats = relay.stop();
    assert!(stats.clients <= 512 && stats.clients_replaced > 0, "{stats:?}");
}

#[test]
fn relay_drops_datagrams_of_others_than_its_server() {
    let clock = Clock::new();
    let b = Socket::bind(local()).unwrap();
    let relay = Relay::bind(local(), b.local(), &mbit(100, 0), &mbit(100, 0), 1).unwrap();
    let client = Socket::bind(local()).unwrap();
    client.send(relay.local_addr(), b"question", 8, 0);
    let mut at_b = Vec::new();
    until("at B", || {
        collect(&b, &clock, &mut at_b);
        !at_b.is_empty()
    });
    let place = at_b[0].1;
    Socket::bind(local()).unwrap().send(place, b"forged", 6, 0);
    b.send(place, b"answer", 6, 0);
    let mut back = Vec::new();
    until("the answer", || {
        collect(&client, &clock, &mut back);
        !back.is_empty()
    });
    assert_eq!(back[0].0, b"answer");
    assert_eq!(relay.stop().reverse.offered_packets, 1);
}

#[test]
fn datagrams_of_any_size_pass_without_a_server_too() {
    let clock = Clock::new();
    let b = Socket::bind(local()).unwrap();
    let to = b.local();
    let relay = Relay::bind(local(), to, &mbit(1000, 0), &mbit(1000, 0), 1).unwrap();
    let a = Socket::bind(local()).unwrap();
    let sizes = [0usize, 1, 1472, 1473, 9000, 65_507];
    let mut received = Vec::new();
    for size in sizes {
        assert_eq!(a.send(relay.local_addr(), &vec![7; size], size, 0), SendResult::Gone);
    }
    until("all sizes", || {
        collect(&b, &clock, &mut received);
        received.len() == sizes.len()
    });
    assert_eq!(received.iter().map(|c| c.0.len()).collect::<Vec<_>>(), sizes);
    drop(b);
    for _ in 0..50 {
        a.send(relay.local_addr(), b"anybody?", 8, 0);
    }
    until("into the void", || relay.stats().forward.delivered_packets == 56);
    assert_eq!(relay.stop().reverse.offered_packets, 0);
}

#[test]
fn segments_of_one_send_have_their_own_outcomes() {
    let clock = Clock::new();
    let b = Socket::bind(local()).unwrap();
    let relay = Relay::bind(local(), b.local(), &mbit(20, 0), &mbit(20, 0), 1).unwrap();
    let a = Socket::bind(local()).unwrap();
    let bytes: Vec<u8> = (0..64_000u32).map(|i| (i / 1472) as u8).collect();
    assert_eq!(a.send(relay.local_addr(), &bytes, 1472, 2), SendResult::Gone);
    let mut received = Vec::new();
    until("44 datagrams", || {
        collect(&b, &clock, &mut received);
        received.len() == 44
    });
    for (n, (bytes, _, ecn)) in received.iter().enumerate() {
        assert_eq!((bytes[0], bytes.last(), *ecn), (n as u8, Some(&(n as u8)), 2));
    }
    let s = relay.stop().forward;
    assert_eq!((s.offered_packets, s.offered_bytes), (44, 64_000 + 44 * 28));
    // One burst: the last waits for 43 others of 1500 B at 20 Mbit/s.
    assert!((s.longest_wait_s - 43.0 * 0.6e-3).abs() < 1e-6, "{}", s.longest_wait_s);
}

#[test]
fn ipv6_works_where_the_system_has_it() {
    let any = SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0);
    let Ok(b) = Socket::bind(any) else { return };
    let clock = Clock::new();
    let relay = Relay::bind(any, b.local(), &mbit(20, 1), &mbit(20, 1), 1).unwrap();
    let a = Socket::bind(any).unwrap();
    a.send(relay.local_addr(), b"six", 3, 1);
    let mut received = Vec::new();
    until("at B", || {
        collect(&b, &clock, &mut received);
        !received.is_empty()
    });
    assert_eq!((received[0].0.as_slice(), received[0].2), (&b"six"[..], 1));
}

#[test]
fn impossible_link_is_refused_in_one_line() {
    let b = Socket::bind(local()).unwrap();
    let taken = Relay::bind(b.local(), b.local(), &mbit(1, 0), &mbit(1, 0), 1).unwrap_err();
    let Error::Bind { why, .. } = &taken else { panic!("{taken}") };
    assert_eq!(why.kind(), std::io::ErrorKind::AddrInUse);
    assert_eq!(std::error::Error::source(&taken).unwrap().to_string(), why.to_string());
    let nowhere = Relay::bind(local(), local(), &mbit(1, 0), &mbit(1, 0), 1).unwrap_err();
    assert!(nowhere.to_string().contains("port above 0"), "{nowhere}");
    let aqm = Some(Spec::parse("nonsense").unwrap());
    let queue = QueueConfig { limit: QueueLimit::Packets(10), aqm };
    let link = LinkConfig { queue, ..mbit(1, 0) };
    let spec = Relay::bind(local(), b.local(), &link, &mbit(1, 0), 1).unwrap_err();
    assert!(spec.to_string().starts_with("--link: "), "{spec}");
    assert!(!spec.to_string().contains('\n'));
}

#[test]
fn wait_ends_at_a_wake() {
    let clock = Clock::new();
    let socket = Socket::bind(local()).unwrap();
    let waker = Waker::new().unwrap();
    let begin = clock.now();
    let far = begin + Duration::from_secs(50);
    std::thread::scope(|scope| {
        scope.spawn(|| waker.wake());
        wait([Interest { socket: &socket, room: false }].into_iter(), &waker, begin, far).unwrap();
    });
    // A wake-up before or during the wait ends it; the next wait is a new one.
    assert!(clock.now() < far);
    let soon = clock.now() + Duration::from_millis(3);
    wait([Interest { socket: &socket, room: false }].into_iter(), &waker, clock.now(), soon)
        .unwrap();
    assert!(clock.now() >= soon);
}
