//! The queue of packets before the connection: FQ-CoDel (RFC 8290), so that no flow builds a standing queue in the
//! tunnel. Packets of ECN-capable flows are marked instead of dropped.

use narrows_base::{Duration, RandomKey, Rate, Spec, Time};
use narrows_link::queue::{self, Discipline, QueueObserver, QueuedPacket};
use narrows_link::{LinkConfig, QueueConfig};
use narrows_net::ip_packet::{IpPacket, mark};
use std::collections::HashMap;
use std::hash::BuildHasher as _;

/// Bounds of CoDel's interval, which is the RTT; the target is a twentieth of it (RFC 8289 sections 4.3 and 4.4).
const MIN_INTERVAL: Duration = Duration::from_millis(100);
const MAX_INTERVAL: Duration = Duration::from_secs(1);
const TARGET_SHARE: f64 = 0.05;
/// Maximum number of waiting packets, of at most [`MAX_MTU`](super::MAX_MTU) bytes each.
const LIMIT: u32 = 1000;
const FLOWS: u32 = 256;

/// Assigns flows to queues by a secret key, so that a sender cannot choose the queue of another flow. In tests the key is
/// fixed: of [`FLOWS`] keys one puts two given flows into the same queue.
#[cfg(not(test))]
type FlowHasher = std::hash::RandomState;
#[cfg(test)]
type FlowHasher = std::hash::BuildHasherDefault<std::hash::DefaultHasher>;

/// FQ-CoDel with the bytes of the waiting packets.
pub(super) struct PacketQueue {
    discipline: Box<dyn Discipline>,
    packets: WaitingPackets,
    next: u32,
    hasher: FlowHasher,
}

/// The waiting packets by number. As an observer of the queue, it removes the dropped ones.
#[derive(Default)]
struct WaitingPackets {
    packets: HashMap<u32, Vec<u8>>,
    bytes: usize,
}

impl WaitingPackets {
    fn insert(&mut self, number: u32, packet: &[u8]) {
        self.bytes += packet.len();
        self.packets.insert(number, packet.to_vec());
    }
    fn remove(&mut self, number: u32) -> Option<Vec<u8>> {
        let packet = self.packets.remove(&number)?;
        self.bytes -= packet.len();
        Some(packet)
    }
}

impl QueueObserver for WaitingPackets {
    fn dropped(&mut self, packet: &QueuedPacket) {
        self.remove(packet.number());
    }
    fn marked(&mut self, _: &QueuedPacket) {}
}

impl PacketQueue {
    /// A queue for a path with about this RTT.
    pub fn new(rtt: Duration) -> Option<PacketQueue> {
        let interval = rtt.clamp(MIN_INTERVAL, MAX_INTERVAL).as_secs_f64();
        let target = TARGET_SHARE * interval;
        let text =
            format!("fq-codel(target={target}s,interval={interval}s,flows={FLOWS},limit={LIMIT})");
        let queue = QueueConfig { aqm: Spec::parse(&text).ok(), ..QueueConfig::default() };
        // The rate is a placeholder: the connection's controller determines the rate of service, and FQ-CoDel does not
        // use it.
        let link =
            LinkConfig { queue, ..LinkConfig::plain(Rate::from_bps(1_000_000), Duration::ZERO) };
        let discipline = queue::build(&link, RandomKey::from_seed(0)).ok()?;
        Some(PacketQueue {
            discipline,
            packets: WaitingPackets::default(),
            next: 0,
            hasher: FlowHasher::default(),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.discipline.waiting() == 0
    }

    /// Bytes of all waiting packets.
    pub fn bytes(&self) -> usize {
        self.packets.bytes
    }

    /// Queues a packet; another may be dropped to make room.
    pub fn push(&mut self, now: Time, packet: &IpPacket, bytes: &[u8]) {
        let number = self.next;
        self.next = self.next.wrapping_add(1);
        self.packets.insert(number, bytes);
        let flow = self.hasher.hash_one((packet.source, packet.destination, packet.inside));
        let mut queued = QueuedPacket::new(number, bytes.len() as u32, flow);
        queued.ect = packet.ecn != 0;
        queued.l4s = packet.ecn & 1 != 0;
        queued.marked = packet.ecn == 3;
        self.discipline.enqueue(now, queued, false, &mut self.packets);
    }

    /// The next packet that has waited for at most this time. CoDel takes `accepted` off the wait of each packet.
    pub fn pop(&mut self, now: Time, longest: Duration, accepted: Duration) -> Option<Vec<u8>> {
        let codel_now = Time::ZERO + now.since(Time::ZERO + accepted);
        loop {
            let next = self.discipline.dequeue(codel_now, &mut self.packets);
            let (arrived, queued) = next?;
            let Some(mut bytes) = self.packets.remove(queued.number()) else { continue };
            if now.since(arrived) > longest {
                continue;
            }
            if queued.marked {
                mark(&mut bytes);
            }
            return Some(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_net::ip_packet::build;

    const TCP: u8 = 6;
    /// Capacity of the path: a packet of 1000 bytes each millisecond.
    const MS: Duration = Duration::from_millis(1);

    fn at(ms: u64) -> Time {
        Time::ZERO + MS.saturating_mul(ms)
    }

    /// A packet of a flow, with the millisecond of its departure as content.
    fn sent(port: u16, ms: u64, ecn: u8) -> Vec<u8> {
        let ports = [&port.to_be_bytes()[..], &[0, 80]].concat();
        let inside = [&ports[..], &ms.to_be_bytes(), &[0; 968]].concat();
        let ends = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let mut bytes = build(ends.0, ends.1, TCP, &inside).unwrap();
        bytes[1] = ecn;
        bytes
    }
    fn left(bytes: &[u8]) -> (u16, u64, u8) {
        let port = u16::from_be_bytes([bytes[20], bytes[21]]);
        (port, u64::from_be_bytes(bytes[24..32].try_into().unwrap()), bytes[1] & 3)
    }
    fn push(queue: &mut PacketQueue, ms: u64, bytes: &[u8]) {
        queue.push(at(ms), &IpPacket::read(bytes).unwrap(), bytes);
    }

    /// A flow that sends 10% more than the path's capacity for twenty seconds, and one that sends ten packets a second.
    /// Returns the longest wait of each in the second half, the number of received packets, and that of marked ones.
    fn run(ecn: u8) -> (u64, u64, u64, u64) {
        let mut queue = PacketQueue::new(Duration::from_millis(50)).unwrap();
        let mut bulk = 0;
        let mut sparse = 0;
        let mut arrived = 0;
        let mut marked = 0;
        for ms in 0..20_000 {
            push(&mut queue, ms, &sent(1, ms, ecn));
            if ms % 10 == 0 {
                push(&mut queue, ms, &sent(1, ms, ecn));
            }
            if ms % 100 == 50 {
                push(&mut queue, ms, &sent(2, ms, ecn));
            }
            let Some(bytes) = queue.pop(at(ms), Duration::from_millis(500), Duration::ZERO) else {
                continue;
            };
            let (port, then, field) = left(&bytes);
            arrived += 1;
            marked += u64::from(field == 3);
            if ms > 10_000 {
                let longest = if port == 1 { &mut bulk } else { &mut sparse };
                *longest = (*longest).max(ms - then);
            }
        }
        assert!(
            queue.packets.packets.len() == queue.discipline.waiting(),
            "nothing is kept of what was dropped"
        );
        (bulk, sparse, arrived, marked)
    }

    /// Without queue management it would wait for half a second, after which packets are dropped.
    #[test]
    fn excessive_flow_builds_no_standing_queue_of_its_own() {
        let (bulk, sparse, arrived, marked) = run(0);
        assert!(bulk < 200 && sparse <= 3, "{bulk} ms and {sparse} ms");
        assert!(arrived > 19_900 && marked == 0, "the path is full: {arrived}");
        // Packets of an ECN-capable flow are marked, and none is lost while the queue has room.
        let (_, sparse, _, marked) = run(2);
        assert!(sparse <= 3 && marked > 100, "{marked} marked");
    }

    #[test]
    fn packets_past_their_deadline_are_not_sent() {
        let mut queue = PacketQueue::new(MS).unwrap();
        for ms in 0..10 {
            push(&mut queue, ms, &sent(1, ms, 0));
        }
        let next = queue.pop(at(104), MS.saturating_mul(99), Duration::ZERO).unwrap();
        assert_eq!(left(&next).1, 5);
        while queue.pop(at(104), MS.saturating_mul(99), Duration::ZERO).is_some() {}
        assert!(queue.is_empty() && queue.bytes() == 0);
    }

    #[test]
    fn waiting_packets_are_bounded() {
        let mut queue = PacketQueue::new(MS).unwrap();
        for n in 0..5_000_u16 {
            push(&mut queue, 0, &sent(n, 0, 0));
        }
        assert!(queue.packets.packets.len() <= LIMIT as usize && !queue.is_empty());
    }
}
