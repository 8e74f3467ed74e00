//! When waiting packets become the connection's: what it holds is in no queue that tells flows apart.

use super::MIN_MTU;
use super::packet::Packet;
use super::queue::PacketQueue;
use narrows_base::{Duration, Time};
use narrows_transport::connection::Stats;

/// A packet waits no longer than a round trip to be sent, within these bounds, whatever the queue says: after an outage what was
/// meant for before it is of no use.
pub(super) const MIN_EXPIRY: Duration = Duration::from_millis(100);
const MAX_EXPIRY: Duration = Duration::from_millis(500);
/// The connection holds what it may send within so many seconds, within these bounds in packets.
const IN_CONNECTION: f64 = 0.004;
const LEAST: f64 = 2.0;
const MOST: f64 = 256.0;
/// IP, UDP.
const HEADERS: f64 = 48.0;

/// What carries packets as messages.
pub(super) trait Carrier {
    fn now(&self) -> Time;
    /// Messages that wait in it; `None` once it is over.
    fn waiting(&self) -> Option<usize>;
    /// Bytes of a packet that a message carries now.
    fn room(&self) -> usize;
    /// A packet that waits no longer than this, in parts if it is longer than a message.
    fn send(&self, bytes: &[u8], expiry: Duration);
}

/// The packets that wait for a connection.
pub(super) struct HandOver {
    queue: PacketQueue,
    expiry: Duration,
    /// Messages that the connection may hold.
    most: usize,
}

impl HandOver {
    /// `None` never, with this crate's own queue.
    pub fn new(srtt: Duration) -> Option<HandOver> {
        let queue = PacketQueue::new(srtt)?;
        Some(HandOver { queue, expiry: MAX_EXPIRY, most: LEAST as usize })
    }

    /// Whether none waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Queues a packet, or drops it: then the MTU of which its sender is to learn.
    pub fn push(
        &mut self,
        carrier: &impl Carrier,
        packet: &Packet,
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

    /// Hands over as much as the connection may hold.
    pub fn hand_over(&mut self, carrier: &impl Carrier) {
        // A connection that is over takes nothing, and what waits is dropped with it.
        while carrier.waiting().is_some_and(|waiting| waiting < self.most) {
            let Some(bytes) = self.queue.pop(carrier.now(), self.expiry) else { break };
            carrier.send(&bytes, self.expiry);
        }
    }

    /// Follows the rate that the connection's controller permits, and the path's RTT.
    pub fn follow(&mut self, stats: &Stats) {
        let packet = 8.0 * (f64::from(stats.datagram) + HEADERS);
        let by_window = stats.window * packet / stats.srtt.as_secs_f64();
        let rate = stats.rate.map_or(by_window, |rate| by_window.min(rate.as_bps() as f64));
        let most = rate * IN_CONNECTION / packet;
        // It is not a number before the first round trip.
        self.most = if most.is_nan() { LEAST } else { most.clamp(LEAST, MOST) } as usize;
        self.expiry = stats.srtt.clamp(MIN_EXPIRY, MAX_EXPIRY);
    }
}
