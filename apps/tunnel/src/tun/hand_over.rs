//! Decides when waiting packets are passed to the connection. It should hold few, since its own queue does not separate
//! flows.

use super::MIN_MTU;
use super::queue::PacketQueue;
use narrows_base::{Duration, Time};
use narrows_net::ip_packet::IpPacket;
use narrows_transport::connection::Stats;

/// Bounds of a packet's longest wait, which is one RTT. It applies in addition to CoDel: after an outage, older packets
/// are of no use.
pub(super) const MIN_EXPIRY: Duration = Duration::from_millis(100);
const MAX_EXPIRY: Duration = Duration::from_millis(500);
/// Time in seconds for which the connection should hold packets; below, bounds in packets.
const IN_CONNECTION: f64 = 0.004;
const LEAST: f64 = 2.0;
const MOST: f64 = 256.0;
/// IP and UDP headers in bytes.
const HEADERS: f64 = 48.0;

/// A connection that carries packets as messages.
pub(super) trait Carrier {
    fn now(&self) -> Time;
    /// Messages that wait in the connection; `None` if it is over.
    fn waiting(&self) -> Option<usize>;
    /// Maximum packet size that fits into a message now, in bytes.
    fn room(&self) -> usize;
    /// Sends a packet that expires after this time; in parts if it is longer than a message.
    fn send(&self, bytes: &[u8], expiry: Duration);
    /// Says how many bytes wait before the connection.
    fn hold_back(&self, bytes: u64);
}

/// The packets that wait for a connection.
pub(super) struct HandOver {
    queue: PacketQueue,
    expiry: Duration,
    /// Maximum number of messages that the connection should hold.
    max: usize,
    /// Wait that CoDel permits beyond its target: a slower path is worth its delay only while the packets for the faster
    /// ones have to wait as long.
    accepted: Duration,
}

impl HandOver {
    /// `None` only if the queue's configuration were invalid, which does not occur.
    pub fn new(srtt: Duration) -> Option<HandOver> {
        let queue = PacketQueue::new(srtt)?;
        Some(HandOver { queue, expiry: MAX_EXPIRY, max: LEAST as usize, accepted: Duration::ZERO })
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues a packet. If it is too long, drops it and returns the MTU for its sender.
    pub fn push(
        &mut self,
        carrier: &impl Carrier,
        packet: &IpPacket,
        bytes: &[u8],
    ) -> Result<(), usize> {
        let room = carrier.room();
        if bytes.len() > room && bytes.len() > MIN_MTU && !packet.may_be_split {
            return Err(room.max(MIN_MTU));
        }
        self.queue.push(carrier.now(), packet, bytes);
        self.hand_over(carrier);
        Ok(())
    }

    /// Passes packets to the connection until it holds enough.
    pub fn hand_over(&mut self, carrier: &impl Carrier) {
        // If the connection is over, the waiting packets are dropped with it.
        while carrier.waiting().is_some_and(|waiting| waiting < self.max) {
            let next = self.queue.pop(carrier.now(), self.expiry, self.accepted);
            let Some(bytes) = next else { break };
            carrier.send(&bytes, self.expiry);
        }
        if self.accepted > Duration::ZERO {
            carrier.hold_back(self.queue.bytes() as u64);
        }
    }

    /// Follows the controllers' rate, the RTT and the difference of the paths.
    pub fn follow(&mut self, stats: &Stats) {
        let packet = 8.0 * (f64::from(stats.datagram) + HEADERS);
        let rate = stats.permitted.map_or(0.0, |rate| rate.as_bps() as f64);
        self.max = (rate * IN_CONNECTION / packet).clamp(LEAST, MOST) as usize;
        self.accepted = stats.delay_difference;
        self.expiry = stats.srtt.clamp(MIN_EXPIRY, MAX_EXPIRY);
    }
}
