//! Packets of one connection, in both directions.

use super::device::Device;
use super::hand_over::{Carrier, HandOver, MIN_EXPIRY};
use super::{MAX_MTU, MIN_MTU};
use crate::flow::{HEAD, UdpFlow};
use crate::limits::ClientUsage;
use narrows_base::{Duration, Time};
use narrows_net::Connection;
use narrows_net::ip_packet::IpPacket;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration as Wait, Instant};
use tokio::sync::Notify;
use tokio::time::sleep;

/// Interval of hand-overs to the connection while packets wait.
const HAND_OVER: Wait = Wait::from_millis(1);

/// Packets of the kernel on their way to the connection.
pub(super) struct OutgoingPackets<T> {
    over: CarriedFlow<T>,
    packets: Mutex<HandOver>,
    /// Notified when packets wait.
    waits: Notify,
}

/// A flow on a connection.
struct CarriedFlow<T> {
    connection: Connection,
    flow: UdpFlow<T>,
    /// The client with this rate, at the far side.
    client: Option<Arc<ClientUsage>>,
}

impl<T> Carrier for CarriedFlow<T> {
    fn now(&self) -> Time {
        self.connection.now()
    }
    fn waiting(&self) -> Option<usize> {
        let waiting = self.connection.messages_waiting().ok()?;
        let is_free = self.client.as_ref().is_none_or(|c| c.cap.is_free(Instant::now()));
        // Beyond the client's rate packets wait in the queue, which separates flows.
        Some(if is_free { waiting } else { usize::MAX })
    }
    fn room(&self) -> usize {
        self.connection.max_message_len().unwrap_or(0).saturating_sub(HEAD)
    }
    fn hold_back(&self, bytes: u64) {
        let _ = self.connection.hold_back(bytes);
    }
    fn send(&self, bytes: &[u8], expiry: Duration) {
        if let Some(client) = &self.client {
            client.cap.delay(Instant::now(), bytes.len());
        }
        self.flow.send_within(&self.connection, bytes, expiry);
    }
}

impl<T> OutgoingPackets<T> {
    /// `None` only if the queue's configuration were invalid, which does not occur.
    pub fn new(
        connection: Connection,
        flow: UdpFlow<T>,
        client: Option<Arc<ClientUsage>>,
    ) -> Option<OutgoingPackets<T>> {
        let packets = Mutex::new(HandOver::new(connection.stats().srtt)?);
        Some(OutgoingPackets {
            over: CarriedFlow { connection, flow, client },
            packets,
            waits: Notify::new(),
        })
    }

    fn packets(&self) -> MutexGuard<'_, HandOver> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a packet. If it is too long, drops it and returns the MTU for its sender.
    pub fn send(&self, packet: &IpPacket, bytes: &[u8]) -> Result<(), usize> {
        let mut packets = self.packets();
        packets.push(&self.over, packet, bytes)?;
        if !packets.is_empty() {
            self.waits.notify_one();
        }
        Ok(())
    }

    /// Hands waiting packets to the connection as it sends earlier ones; runs for the connection's lifetime.
    pub async fn run(&self) {
        loop {
            self.waits.notified().await;
            loop {
                {
                    let mut packets = self.packets();
                    packets.follow(&self.over.connection.stats());
                    packets.hand_over(&self.over);
                    if packets.is_empty() {
                        break;
                    }
                }
                sleep(HAND_OVER).await;
            }
        }
    }

    /// Call this regularly: follows the path's RTT, probes for a larger MTU, and returns the interface's MTU.
    pub fn look(&self) -> usize {
        self.packets().follow(&self.over.connection.stats());
        let room = self.over.room();
        if room < MAX_MTU {
            // The message is too long to be sent, but makes the connection probe for a larger size.
            let _ = self.over.connection.send_message(&vec![0xff; HEAD + room + 1], MIN_EXPIRY);
        }
        room.clamp(MIN_MTU, MAX_MTU)
    }
}

/// Reason why a packet of the other end was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum DropReason {
    /// It is not a valid IP packet.
    Malformed,
    /// Its source is not permitted.
    Source,
    /// Its destination is not permitted.
    Destination,
}

type Judge = Box<dyn Fn(&IpPacket) -> Result<(), DropReason> + Send + Sync>;
type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// Messages on their way to the kernel as packets.
pub(super) struct IncomingMessages {
    device: Arc<Device>,
    judge: Judge,
    /// Called for the first dropped packet of each kind.
    tell: Tell,
    dropped: [AtomicU64; 3],
}

impl IncomingMessages {
    pub fn new(device: Arc<Device>, judge: Judge, tell: Tell) -> IncomingMessages {
        IncomingMessages { device, judge, tell, dropped: Default::default() }
    }

    /// Handles a message of the flow.
    pub fn take(&self, bytes: &[u8]) {
        let Some(packet) = IpPacket::read(bytes).filter(|_| bytes.len() <= MAX_MTU) else {
            return self.drop(DropReason::Malformed, None);
        };
        match (self.judge)(&packet) {
            Ok(()) => self.device.write(bytes),
            Err(why) => self.drop(why, Some((packet.source, packet.destination))),
        }
    }

    fn drop(&self, why: DropReason, ends: Option<(IpAddr, IpAddr)>) {
        let Some(count) = self.dropped.get(why as usize) else { return };
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            let mut line = String::from("packets: dropped one ");
            let _ = match (why, ends) {
                (DropReason::Source, Some((from, _))) => {
                    write!(line, "from {from}, which it may not use")
                }
                (_, Some((_, to))) => write!(line, "to {to}, which is not permitted"),
                _ => write!(line, "that is none"),
            };
            (self.tell)(&format!("{line}; more are counted"));
        }
    }

    /// Counts of dropped packets by reason, for display; `None` if there are none.
    pub fn dropped(&self) -> Option<String> {
        let [malformed, source, destination] = &self.dropped;
        let [malformed, source, destination] =
            [malformed, source, destination].map(|count| count.load(Ordering::Relaxed));
        (malformed + source + destination > 0).then(|| {
            format!(
                "packets: dropped {source} by their source, {destination} by their destination, {malformed} that were none"
            )
        })
    }
}
