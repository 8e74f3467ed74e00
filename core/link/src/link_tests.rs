use super::*;
use crate::Trace;
use crate::config::{EarlyConfig, QueueConfig};
use crate::jitter::Distribution;
use crate::loss::LossSpec;
use narrows_base::{Packet, Rate, Spec};
use proptest::prelude::*;
use std::sync::Arc;

pub(crate) fn packet(n: u32, size: u16) -> Packet {
    Packet {
        seq: u64::from(n),
        number: n,
        random_key: n.wrapping_mul(0x9E37_79B9),
        size,
        ..Packet::default()
    }
}

/// All reports to a meter, for comparison.
#[derive(Default, PartialEq, Debug)]
struct Log {
    dropped: Vec<(Time, u64)>,
    served: Vec<(u64, Time, Time, Time)>,
    lost: Vec<(Time, u64)>,
}
impl Meter<Packet> for Log {
    fn dropped(&mut self, now: Time, p: &Packet) {
        self.dropped.push((now, p.seq));
    }
    fn served(&mut self, p: &Packet, arrived: Time, start: Time, end: Time) {
        self.served.push((p.seq, arrived, start, end));
    }
    fn lost(&mut self, at: Time, p: &Packet) {
        self.lost.push((at, p.seq));
    }
}

fn config() -> LinkConfig {
    LinkConfig {
        queue: QueueConfig { limit: QueueLimit::Packets(3), aqm: None },
        ..LinkConfig::plain(Rate::from_bps(8_000_000), Duration::from_millis(5))
    }
}

/// Feeds arrivals and collects deliveries in order of time.
fn run(config: &LinkConfig, arrivals: &[(u64, u16)]) -> (Vec<(Time, u64)>, Log) {
    let mut link = Link::new(config, RandomKey::from_seed(1)).unwrap();
    let mut out = Vec::new();
    let mut log = Log::default();
    let mut drain = |link: &mut Link<Packet>, until: Time, log: &mut Log| {
        while link.next_timeout() <= until && !link.next_timeout().is_never() {
            let t = link.next_timeout();
            while let Some(p) = link.poll(t, log) {
                out.push((t, p.seq));
            }
        }
    };
    for (i, (at, size)) in arrivals.iter().enumerate() {
        let now = Time::from_nanos(*at);
        drain(&mut link, now, &mut log);
        link.accept(now, packet(i as u32, *size), &mut log);
    }
    drain(&mut link, Time::from_nanos(u64::MAX - 1), &mut log);
    (out, log)
}

#[test]
fn a_packet_takes_its_transmission_and_propagation_time() {
    // 1000 B at 8 Mbit/s is 1 ms; 5 ms on the wire.
    let (out, _) = run(&config(), &[(0, 1000), (0, 1000), (10_000_000, 500)]);
    let ms = |m: f64| Time::from_secs_f64(m * 1e-3);
    assert_eq!(out, [(ms(6.0), 0), (ms(7.0), 1), (ms(15.5), 2)]);
}

/// Packets above the MTU take no time of the link, on links of either kind.
#[test]
fn a_packet_above_the_mtu_is_dropped_before_the_queue() {
    for changes in [false, true] {
        let impairments = Impairments { mtu: Some(999), ..Impairments::default() };
        let config = LinkConfig { impairments, changes, ..config() };
        let (out, log) = run(&config, &[(0, 1000), (0, 999), (0, 1000)]);
        assert_eq!(out, [(Time::from_nanos(5_999_000), 1)]);
        assert_eq!(log.dropped, [(Time::ZERO, 0), (Time::ZERO, 2)]);
    }
    let mut link =
        Link::new(&LinkConfig { changes: true, ..config() }, RandomKey::from_seed(1)).unwrap();
    let mut log = Log::default();
    link.accept(Time::ZERO, packet(0, 1000), &mut log);
    link.change(Time::ZERO, &LinkChange::Mtu(999));
    link.accept(Time::ZERO, packet(1, 1000), &mut log);
    assert_eq!((link.mtu(), log.dropped.as_slice()), (Some(999), &[(Time::ZERO, 1)][..]));
}

/// Room for three packets or 3000 bytes: a burst fits that has more packets or more bytes, not both.
#[test]
fn queue_limit_in_packets_or_bytes_holds_a_burst() {
    let limit = QueueLimit::Either { packets: 3, bytes: 3000 };
    for aqm in [None, Some("droptail"), Some("codel"), Some("cw")] {
        let aqm = aqm.map(|name| Spec::parse(name).unwrap());
        let config = LinkConfig { queue: QueueConfig { limit, aqm }, changes: true, ..config() };
        for config in [config.clone(), LinkConfig { changes: false, ..config }] {
            for (size, admitted) in [(20, 151), (1000, 4), (1500, 4)] {
                let (out, log) = run(&config, &vec![(0, size); 200]);
                assert_eq!((out.len(), log.dropped.len()), (admitted, 200 - admitted), "{size} B");
            }
        }
    }
}

fn impaired(impairments: Impairments) -> LinkConfig {
    LinkConfig {
        impairments,
        ..LinkConfig::plain(Rate::from_bps(80_000_000), Duration::from_millis(20))
    }
}

/// A packet each millisecond: 0.1 ms of transmission, and 20 ms of delay unless it is sent early.
#[test]
fn early_packets_overtake_and_keep_their_gap() {
    let arrivals: Vec<(u64, u16)> = (0..20_000).map(|n| (n * 1_000_000, 1000)).collect();
    for (share, gap, min, max) in
        [(0.25, 1, 4800, 5200), (1.0, 5, 4000, 4000), (0.5, 5, 3300, 3367)]
    {
        let early = Some(EarlyConfig { share, correlation: 0.0, gap });
        let (out, _) = run(&impaired(Impairments { early, ..Impairments::default() }), &arrivals);
        let mut numbers: Vec<u64> = Vec::new();
        for (at, number) in &out {
            let took = at.as_nanos() - number * 1_000_000;
            assert!(took == 100_000 || took == 20_100_000, "{took} ns");
            if took == 100_000 {
                numbers.push(*number);
            }
        }
        assert!((min..=max).contains(&numbers.len()), "{share}, gap {gap}: {}", numbers.len());
        assert!(numbers.windows(2).all(|w| w[1] - w[0] >= gap), "{share}, gap {gap}");
        assert_eq!(out.len(), 20_000);
    }
}

#[test]
fn packets_overtake_by_jitter_only_where_they_may() {
    let arrivals: Vec<(u64, u16)> = (0..2000).map(|n| (n * 1_000_000, 1000)).collect();
    let all = [
        Distribution::Late,
        Distribution::Uniform,
        Distribution::Normal,
        Distribution::Pareto,
        Distribution::Wifi,
    ];
    for (distribution, overtakes) in all.into_iter().flat_map(|d| [(d, false), (d, true)]) {
        let jitter_form = JitterForm { distribution, correlation: 0.0, overtakes };
        let jitter = Duration::from_millis(5);
        let config = impaired(Impairments { jitter, jitter_form, ..Impairments::default() });
        let (out, _) = run(&config, &arrivals);
        let late = out.windows(2).filter(|w| w[1].1 < w[0].1).count();
        assert_eq!(late > 100, overtakes, "{distribution:?}: {late} overtaken");
        assert!(out.windows(2).all(|w| w[0].0 <= w[1].0));
    }
}

#[test]
fn queue_limit_excludes_the_packet_in_transmission() {
    let (out, log) = run(&config(), &[(0, 1000); 6]);
    assert_eq!(out.len(), 4, "one in transmission and three waiting");
    assert_eq!(log.dropped.len(), 2);
    let mut none = config();
    none.queue.limit = QueueLimit::Packets(0);
    let (out, _) = run(&none, &[(0, 1000), (0, 1000), (1_000_000, 1000)]);
    assert_eq!(out.iter().map(|o| o.1).collect::<Vec<_>>(), [0, 2], "a departure makes room first");
}

#[test]
fn a_room_in_bytes_counts_bytes() {
    let mut c = config();
    c.queue.limit = QueueLimit::Bytes(2500);
    let (_, log) = run(&c, &[(0, 1000), (0, 1000), (0, 1000), (0, 1000), (0, 400)]);
    assert_eq!(log.dropped.iter().map(|d| d.1).collect::<Vec<_>>(), [3]);
}

#[test]
fn jitter_keeps_the_order_and_reordering_does_not() {
    let mut c = config();
    c.queue.limit = QueueLimit::Unlimited;
    c.impairments.jitter = Duration::from_millis(20);
    let many = vec![(0u64, 1000u16); 200];
    let (out, _) = run(&c, &many);
    assert!(out.windows(2).all(|w| w[0].1 < w[1].1));
    assert_eq!(out.len(), 200);
    c.impairments.jitter = Duration::ZERO;
    c.impairments.reorder = 0.2;
    c.impairments.reorder_by = Duration::from_millis(3);
    c.impairments.duplicate = 0.1;
    let (out, _) = run(&c, &many);
    assert!(out.windows(2).any(|w| w[0].1 > w[1].1), "some overtake");
    assert!(out.windows(2).all(|w| w[0].0 <= w[1].0), "time never runs backwards");
    assert!(out.len() > 205, "some come twice: {}", out.len());
}

/// A policer of 4 Mbit/s passes half of a load of 8 Mbit/s. The rest counts as dropped, not as lost.
#[test]
fn policer_drops_excess_packets_without_delay() {
    for changes in [false, true] {
        let mut c = config();
        c.changes = changes;
        c.queue.limit = QueueLimit::Unlimited;
        let rate = Rate::from_bps(4_000_000);
        c.impairments.policer = Some(crate::PolicerConfig { rate, burst: 3000 });
        let (out, log) = run(&c, &[(0, 1000); 100]);
        assert_eq!((log.served.len(), log.lost.len()), (100, 0));
        assert!((51..=53).contains(&out.len()), "{}", out.len());
        assert_eq!(log.dropped.len(), 100 - out.len());
        for (at, seq) in out {
            assert_eq!(at, Time::from_secs_f64((seq + 1) as f64 * 1e-3 + 5e-3), "no queue");
        }
    }
}

#[test]
fn rate_and_delay_change_while_it_runs() {
    let mut c = config();
    c.changes = true;
    c.queue.limit = QueueLimit::Unlimited;
    let mut link = Link::new(&c, RandomKey::from_seed(1)).unwrap();
    link.accept(Time::ZERO, packet(0, 1000), &mut ());
    link.accept(Time::ZERO, packet(1, 1000), &mut ());
    link.change(Time::ZERO, &LinkChange::Rate(Rate::from_bps(800_000)));
    link.change(Time::ZERO, &LinkChange::Delay(Duration::from_millis(1)));
    let mut out = Vec::new();
    while !link.next_timeout().is_never() {
        let t = link.next_timeout();
        while let Some(p) = link.poll(t, &mut ()) {
            out.push((t.as_nanos() / 1_000_000, p.seq));
        }
    }
    // The first transmission finishes at the old rate, the second takes 10 ms.
    assert_eq!(out, [(2, 0), (12, 1)]);
}

#[test]
fn a_trace_replaces_the_rate() {
    let mut c = config();
    c.queue.limit = QueueLimit::Unlimited;
    c.trace = Some(Arc::new(Trace::parse("10\n20\n").unwrap()));
    let (out, _) = run(&c, &[(0, 1500), (0, 1500), (0, 1500)]);
    let ms: Vec<u64> = out.iter().map(|o| o.0.as_nanos() / 1_000_000).collect();
    assert_eq!(ms, [15, 25, 35]);
}

#[test]
fn one_flows_losses_do_not_depend_on_another_flow() {
    let mut c = config();
    c.loss = LossSpec::parse_all("30%").unwrap();
    c.queue.limit = QueueLimit::Unlimited;
    let lost = |others: bool| {
        let mut link = Link::new(&c, RandomKey::from_seed(9)).unwrap();
        let mut log = Log::default();
        for i in 0..100 {
            link.accept(Time::from_nanos(i * 2_000_000), packet(i as u32, 1000), &mut log);
            if others {
                let mut p = packet(1_000_000 + i as u32, 1000);
                p.flow = 1;
                link.accept(Time::from_nanos(i * 2_000_000), p, &mut log);
            }
        }
        log.lost.iter().map(|l| l.1).filter(|s| *s < 1000).collect::<Vec<_>>()
    };
    assert_eq!(lost(false), lost(true));
    assert!(lost(false).len() > 15);
}

proptest! {
    /// The computed link and the one that serves packet by packet are the same link.
    #[test]
    fn computed_and_served_links_agree(
        gaps in prop::collection::vec((0u64..3_000_000, 40u16..1500), 1..120),
        limit in prop_oneof![Just(QueueLimit::Unlimited), (0u64..6).prop_map(QueueLimit::Packets), (0u64..6000).prop_map(QueueLimit::Bytes)],
        rate in 1_000_000u64..20_000_000,
        lossy in any::<bool>(),
    ) {
        let mut at = 0;
        let arrivals: Vec<(u64, u16)> = gaps.iter().map(|(g, s)| { at += g; (at, *s) }).collect();
        let mut c = config();
        c.rate = Rate::from_bps(rate);
        c.queue.limit = limit;
        if lossy {
            c.loss = LossSpec::parse_all("10%+ge(g=5%,h=50%)").unwrap();
        }
        let computed = run(&c, &arrivals);
        c.changes = true;
        let served = run(&c, &arrivals);
        prop_assert_eq!(computed.0, served.0);
        let sorted = |mut l: Log| { l.served.sort(); l };
        prop_assert_eq!(sorted(computed.1), sorted(served.1));
    }
}
