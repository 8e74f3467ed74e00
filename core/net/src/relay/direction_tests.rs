use super::*;
use narrows_base::{Duration, Rate};
use narrows_link::{Impairments, LossSpec, QueueConfig, QueueLimit};

fn ms(n: u64) -> Time {
    Time::ZERO + Duration::from_millis(n)
}

fn direction(config: &LinkConfig) -> RelayDirection {
    RelayDirection::new(config, 1, "bottleneck").unwrap()
}

/// A datagram whose size includes 28 bytes of headers.
fn datagram(at: Time, random_key: u32, bytes: &[u8], ecn: u8) -> Arriving<'_> {
    Arriving { at, flow: 0, random_key, size: bytes.len() as u32 + 28, ecn, bytes }
}

fn config() -> LinkConfig {
    LinkConfig::plain(Rate::from_bps(8_000_000), Duration::from_millis(10))
}

#[test]
fn a_late_wake_up_costs_no_capacity() {
    // 10 datagrams of 1000 B at 1 ms each arrive at once and are delivered 100 ms later: each was due at its own time,
    // and the next datagram finds the link free.
    for managed in [false, true] {
        let mut direction = direction(&LinkConfig { changes: managed, ..config() });
        for n in 0..10u32 {
            direction.accept(datagram(ms(5), n, &[n as u8; 972], 0));
        }
        direction.accept(datagram(ms(60), 10, &[10; 972], 0));
        let mut dues = Vec::new();
        direction.deliver(ms(200), |o| dues.push((o.bytes[0], o.due)));
        let mut wanted: Vec<_> = (0..10u8).map(|n| (n, ms(16 + u64::from(n)))).collect();
        wanted.push((10, ms(71)));
        assert_eq!(dues, wanted, "changes: {managed}");
        assert_eq!(direction.held(), 0);
        let s = &direction.stats;
        assert_eq!((s.offered_packets, s.delivered_packets, s.delivered_bytes), (11, 11, 11_000));
        assert!((s.waited_s - 0.045).abs() < 1e-9, "{}", s.waited_s);
        assert!((s.longest_wait_s - 0.009).abs() < 1e-9);
        assert!((s.first_s - 0.005).abs() < 1e-12 && (s.last_s - 0.061).abs() < 1e-12);
    }
}

#[test]
fn packet_above_mtu_is_counted_and_reported_to_its_sender() {
    let impairments = Impairments { mtu: Some(1000), ..Impairments::default() };
    let mut direction = direction(&LinkConfig { impairments, ..config() });
    assert_eq!(direction.accept(datagram(ms(0), 0, &[0; 973], 0)), Some(1000));
    assert_eq!(direction.accept(datagram(ms(0), 1, &[1; 972], 0)), None);
    let mut out = Vec::new();
    direction.deliver(ms(100), |o| out.push(o.bytes[0]));
    let s = &direction.stats;
    assert_eq!((out, s.offered_packets, s.dropped, s.too_large), (vec![1], 2, 1, 1));
    assert_eq!(direction.held(), 0);
}

#[test]
fn places_are_freed_whatever_becomes_of_a_datagram() {
    let impairments = Impairments { duplicate: 0.3, reorder: 0.2, ..Impairments::default() };
    let impairments = Impairments { reorder_by: Duration::from_millis(7), ..impairments };
    let queue = QueueConfig { limit: QueueLimit::Packets(20), aqm: None };
    let loss = LossSpec::parse_all("10%").unwrap();
    let mut direction = direction(&LinkConfig { impairments, queue, loss, ..config() });
    let mut out = 0;
    for n in 0..2000u32 {
        let at = Time::from_nanos(u64::from(n) * 800_000);
        direction.accept(datagram(
            at,
            narrows_base::random::mix(u64::from(n)) as u32,
            &n.to_le_bytes(),
            0,
        ));
        for _ in 0..2 {
            direction.accept(datagram(at, n, &[7; 972], 0));
        }
        direction.deliver(at, |o| {
            out += 1;
            assert!(o.bytes.len() == 4 || o.bytes == [7; 972], "another's bytes");
        });
    }
    direction.deliver(ms(10_000), |_| out += 1);
    let s = &direction.stats;
    assert_eq!(direction.held(), 0);
    assert_eq!(s.offered_packets, 6000);
    assert!(s.dropped > 0 && s.lost > 0);
    assert_eq!(out, s.delivered_packets);
    assert!(s.delivered_packets > s.offered_packets - s.dropped - s.lost, "duplicates");
}

#[test]
fn damage_turns_one_bit_once_though_the_datagram_comes_twice() {
    let impairments = Impairments { duplicate: 1.0, corrupt: 1.0, ..Impairments::default() };
    let mut direction = direction(&LinkConfig { impairments, ..config() });
    direction.accept(datagram(ms(0), 9, &[0; 100], 0));
    direction.accept(datagram(ms(0), 9, &[], 0));
    let mut bits = Vec::new();
    direction.deliver(ms(100), |o| {
        if let Some(random_key) = o.corrupt {
            damage(o.bytes, random_key);
        }
        bits.push(o.bytes.iter().map(|b| b.count_ones()).sum::<u32>());
    });
    assert_eq!(bits, [1, 1, 0, 0]);
}

#[test]
fn only_ecn_capable_packets_are_marked() {
    let aqm = Some(narrows_base::Spec::parse("codel(ecn=on)").unwrap());
    let queue = QueueConfig { limit: QueueLimit::Packets(200), aqm };
    let mut direction = direction(&LinkConfig { queue, ..config() });
    for n in 0..2000u32 {
        let at = Time::from_nanos(u64::from(n) * 900_000);
        direction.accept(datagram(at, n, &[0; 972], if n % 2 == 0 { 2 } else { 0 }));
    }
    let mut seen = [0u64; 4];
    direction.deliver(ms(60_000), |o| seen[usize::from(o.ecn)] += 1);
    assert!(direction.stats.marked > 0 && direction.stats.dropped > 0, "{:?}", direction.stats);
    assert_eq!(seen[3], direction.stats.marked);
    assert_eq!(seen[1], 0);
}
