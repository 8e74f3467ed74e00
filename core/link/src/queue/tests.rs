use super::*;
use crate::LinkPacket;
use crate::config::LinkConfig;
use crate::link::tests::packet;
use narrows_base::{Duration, Packet, Rate, Time};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// How many were dropped and marked.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct Count {
    pub dropped: u32,
    pub marked: u32,
}
impl QueueObserver for Count {
    fn dropped(&mut self, _packet: &QueuedPacket) {
        self.dropped += 1;
    }
    fn marked(&mut self, packet: &QueuedPacket) {
        assert!(packet.marked && packet.ect);
        self.marked += 1;
    }
}

/// A packet that a link would hand to its queue.
pub(super) fn queued(number: u32, size: u16, flags: u8) -> QueuedPacket {
    let ect = flags & Packet::ECT != 0;
    QueuedPacket { ect, ..QueuedPacket::new(number, u32::from(size), 0) }
}

/// The flag of a sender that understands ECN.
pub(super) const fn ect() -> u8 {
    Packet::ECT
}

fn config(aqm: &str, limit: QueueLimit) -> LinkConfig {
    let mut config = LinkConfig::plain(Rate::from_bps(8_000_000), Duration::from_millis(10));
    config.queue = QueueConfig { limit, aqm: Some(Spec::parse(aqm).unwrap()) };
    config
}

/// Outcome of each packet.
#[derive(Default, PartialEq, Debug)]
struct Record {
    dropped: Vec<u32>,
    marked: Vec<u32>,
    out: Vec<(Time, QueuedPacket)>,
}
impl QueueObserver for Record {
    fn dropped(&mut self, packet: &QueuedPacket) {
        self.dropped.push(packet.number());
    }
    fn marked(&mut self, packet: &QueuedPacket) {
        self.marked.push(packet.number());
    }
}

/// One packet per step: the gap before it in ns, its size, flow and flags, and how many are taken
/// out after it.
type Step = (u64, u16, u32, bool, u8);

fn tell(aqm: &str, limit: QueueLimit, steps: &[Step]) -> Record {
    let mut queue = build(&config(aqm, limit), RandomKey::from_seed(5)).unwrap();
    let mut record = Record::default();
    let mut now = Time::ZERO;
    let mut inside = 0;
    let mut idle = true;
    for (i, (gap, size, flow, ect, taken)) in steps.iter().enumerate() {
        now += Duration::from_nanos(*gap);
        let flags = if *ect { Packet::ECT } else { 0 };
        let p = QueuedPacket { flow: u64::from(*flow), ..queued(i as u32, *size, flags) };
        let before = record.dropped.len();
        if idle && inside == 0 {
            match queue.pass(now, p, &mut record) {
                Some(p) => {
                    record.out.push((now, p));
                    idle = false;
                }
                None => assert_eq!(record.dropped.len(), before + 1, "{aqm}: lost without a word"),
            }
        } else {
            let waits = queue.enqueue(now, p, false, &mut record);
            assert_eq!(!waits, record.dropped[before..].contains(&(i as u32)), "{aqm}");
            inside = inside + 1 - (record.dropped.len() - before);
        }
        assert_eq!(queue.waiting(), inside, "{aqm}: waiting");
        match limit {
            QueueLimit::Packets(n) => assert!(inside as u64 <= n, "{aqm}: over its room"),
            QueueLimit::Bytes(n) => assert!(inside as u64 * 40 <= n, "{aqm}: over its room"),
            QueueLimit::Either { packets, bytes } => {
                assert!(
                    inside as u64 <= packets || inside as u64 * 40 <= bytes,
                    "{aqm}: over its room"
                );
            }
            QueueLimit::Unlimited => {}
        }
        for _ in 0..*taken {
            let before = record.dropped.len();
            match queue.dequeue(now, &mut record) {
                Some((arrived, p)) => {
                    assert!(arrived <= now);
                    record.out.push((now, p));
                    inside -= 1;
                }
                None => idle = true,
            }
            inside -= record.dropped.len() - before;
            assert_eq!(queue.waiting(), inside, "{aqm}: waiting");
            assert!(!idle || inside == 0, "{aqm}: nothing came out though something waits");
        }
    }
    while let Some((_, p)) = queue.dequeue(now, &mut record) {
        record.out.push((now, p));
    }
    assert_eq!(queue.waiting(), 0, "{aqm}");
    record
}

/// Every queue as listed, and some with other parameters.
fn all() -> Vec<String> {
    let mut out: Vec<String> = QUEUES.iter().map(|e| e.descriptor.name.to_string()).collect();
    for more in [
        "red(min=2,max=6,victim=random,wait=off,weight=0.3)",
        "red(mode=bytes,min=2,adaptive=on,cautious=on,gentle=off,ecn=off)",
        "cw(packets=2)",
        "codel(target=0.1ms,interval=1ms)",
        "codel(target=0.1ms,interval=1ms,ecn=off)",
        "fq-codel(flows=2,target=0.1ms,interval=1ms,quantum=300B)",
        "pie(target=1ms,update=1ms,burst=1ms,beta=20)",
    ] {
        out.push(more.to_string());
    }
    out
}

fn can_mark(aqm: &str) -> bool {
    aqm != "droptail" && !aqm.contains("ecn=off")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    /// No packet is lost, doubled or overtaken by its own flow. Only ECN-capable packets are marked. The same arrivals
    /// produce the same reports.
    #[test]
    fn every_queue_keeps_account(
        steps in prop::collection::vec(
            (0u64..3_000_000, 40u16..1500, 0u32..4, any::<bool>(), 0u8..3), 1..250),
        limit in prop_oneof![
            Just(QueueLimit::Unlimited),
            (0u64..40).prop_map(QueueLimit::Packets),
            (0u64..40_000).prop_map(QueueLimit::Bytes),
            (0u64..40, 0u64..40_000).prop_map(|(packets, bytes)| QueueLimit::Either { packets, bytes }),
        ],
    ) {
        for aqm in all() {
            let record = tell(&aqm, limit, &steps);
            let mut outcomes: Vec<u32> = record.dropped.clone();
            outcomes.extend(record.out.iter().map(|o| o.1.number()));
            outcomes.sort_unstable();
            prop_assert_eq!(outcomes, (0..steps.len() as u32).collect::<Vec<_>>(), "{}", aqm);
            let mut last = BTreeMap::new();
            for (_, p) in &record.out {
                let before = last.insert(p.flow, p.number());
                prop_assert!(before.is_none_or(|b| b < p.number()), "{}: out of order", aqm);
                prop_assert!(!p.marked || p.ect, "{}: marked without ECT", aqm);
                let recorded = record.marked.contains(&p.number());
                prop_assert_eq!(recorded, p.marked, "{}: mark", aqm);
            }
            prop_assert_eq!(&record, &tell(&aqm, limit, &steps), "{}: repeats", aqm);
        }
    }
}

#[test]
fn without_ecn_no_queue_marks() {
    let steps: Vec<Step> = (0..2000).map(|i| (500_000, 1000, 0, true, (i % 2) as u8)).collect();
    for aqm in ["red", "codel", "fq-codel", "pie"] {
        assert!(!tell(aqm, QueueLimit::Packets(500), &steps).marked.is_empty(), "{aqm}");
        let off = tell(&format!("{aqm}(ecn=off)"), QueueLimit::Packets(500), &steps);
        assert!(off.marked.is_empty() && !off.dropped.is_empty(), "{aqm}");
    }
}

#[test]
fn a_link_counts_no_more_packets_than_it_was_given() {
    // Through the whole link: offered is dropped, lost or arrives, for every queue.
    for aqm in all() {
        let mut link =
            crate::Link::new(&config(&aqm, QueueLimit::Packets(30)), RandomKey::from_seed(1))
                .unwrap();
        let mut out = 0;
        let mut marked = 0;
        let mut count = CountingMeter::default();
        for i in 0..5000u32 {
            let now = Time::from_nanos(u64::from(i) * 950_000);
            while link.next_timeout() <= now {
                let at = link.next_timeout();
                while let Some(p) = link.poll(at, &mut count) {
                    out += 1;
                    marked += u32::from(p.is_marked());
                }
            }
            let p = Packet { flow: i % 3, flags: ect(), ..packet(i, 1000) };
            link.accept(now, p, &mut count);
            assert!(link.waiting(now) <= 30, "{aqm}");
        }
        while !link.next_timeout().is_never() {
            let at = link.next_timeout();
            while let Some(p) = link.poll(at, &mut count) {
                out += 1;
                marked += u32::from(p.is_marked());
            }
        }
        assert_eq!((marked, marked > 0), (count.marked, can_mark(&aqm)), "{aqm}");
        assert_eq!(out + count.dropped, 5000, "{aqm}");
        // 1000 B every 0.95 ms at 1 ms each: the link is hardly ever idle.
        assert!((4700..=4785).contains(&out), "{aqm}: {out}");
        let averages = aqm.starts_with("red") || aqm.starts_with("cw");
        assert_eq!(count.averaged, if averages { 5000 } else { 0 }, "{aqm}");
        assert_eq!(link.average().is_some(), averages, "{aqm}");
    }
}

#[derive(Default)]
struct CountingMeter {
    dropped: u32,
    marked: u32,
    averaged: u32,
}
impl crate::Meter<Packet> for CountingMeter {
    fn dropped(&mut self, _now: Time, _packet: &Packet) {
        self.dropped += 1;
    }
    fn marked(&mut self, _now: Time, packet: &Packet) {
        assert!(packet.is_marked());
        self.marked += 1;
    }
    fn averaged(&mut self, _now: Time, _packets: f64) {
        self.averaged += 1;
    }
}

#[test]
fn queue_without_own_limit_takes_the_links() {
    let room = |aqm: &str, limit| super::limit(&config(aqm, limit).queue).unwrap();
    for descriptor in QUEUES.iter().map(|e| e.descriptor) {
        assert_eq!(
            room(descriptor.name, QueueLimit::Packets(7)),
            QueueLimit::Packets(7),
            "{}",
            descriptor.name
        );
        assert_eq!(
            room(descriptor.name, QueueLimit::Bytes(7)),
            QueueLimit::Bytes(7),
            "{}",
            descriptor.name
        );
    }
    assert_eq!(room("droptail", QueueLimit::Unlimited), QueueLimit::Unlimited);
    assert_eq!(room("red", QueueLimit::Unlimited), QueueLimit::Unlimited);
    assert_eq!(room("codel", QueueLimit::Unlimited), QueueLimit::Packets(1000));
    assert_eq!(room("fq-codel", QueueLimit::Unlimited), QueueLimit::Packets(10_240));
    assert_eq!(room("fq-codel(limit=99)", QueueLimit::Packets(7)), QueueLimit::Packets(99));
}

#[test]
fn malformed_queue_gives_one_line() {
    for (bad, hint) in [
        ("redd", "did you mean 'red'"),
        ("fqcodel", "did you mean 'fq-codel'"),
        ("red(mim=3)", "did you mean 'min'"),
        ("red(min=30,max=10)", "max must be above min"),
        ("red(weight=-3)", "between -2 and 1"),
        ("red(weight=-0.5)", "0, -1 or -2"),
        ("red(gentle=yes)", "expected one of: on, off"),
        ("codel(target=5)", "no unit"),
        ("pie(target=0s)", "must be between"),
        ("cw(threshold=2)", "must be between"),
    ] {
        let queue =
            QueueConfig { limit: QueueLimit::Unlimited, aqm: Some(Spec::parse(bad).unwrap()) };
        let e = super::limit(&queue).unwrap_err().to_string();
        assert!(e.contains(hint) && !e.contains('\n'), "{bad}: {e}");
    }
}
