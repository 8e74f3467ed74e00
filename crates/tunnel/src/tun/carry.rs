//! Packets of one connection, each way.

use super::device::Device;
use super::hand_over::{Carrier, HandOver, MIN_EXPIRY};
use super::packet::Packet;
use super::{MAX_MTU, MIN_MTU};
use crate::flow::{Flow, HEAD};
use narrows_base::{Duration, Time};
use narrows_net::Connection;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration as Wait;
use tokio::sync::Notify;
use tokio::time::sleep;

/// While packets wait, the connection is looked at so often.
const HAND_OVER: Wait = Wait::from_millis(1);

/// Packets of the kernel that become messages.
pub(super) struct Outgoing<T> {
    over: Over<T>,
    packets: Mutex<HandOver>,
    /// Packets wait.
    waits: Notify,
}

/// The flow of a connection.
struct Over<T> {
    connection: Connection,
    flow: Flow<T>,
}

impl<T> Carrier for Over<T> {
    fn now(&self) -> Time {
        self.connection.now()
    }
    fn waiting(&self) -> Option<usize> {
        self.connection.messages_waiting().ok()
    }
    fn room(&self) -> usize {
        self.connection.max_message_len().unwrap_or(0).saturating_sub(HEAD)
    }
    fn send(&self, bytes: &[u8], expiry: Duration) {
        self.flow.send_within(&self.connection, bytes, expiry);
    }
}

impl<T> Outgoing<T> {
    /// `None` never, with this crate's own queue.
    pub fn new(connection: Connection, flow: Flow<T>) -> Option<Outgoing<T>> {
        let packets = Mutex::new(HandOver::new(connection.stats().srtt)?);
        Some(Outgoing { over: Over { connection, flow }, packets, waits: Notify::new() })
    }

    fn packets(&self) -> MutexGuard<'_, HandOver> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a packet, or drops it: then the MTU of which its sender is to learn.
    pub fn send(&self, packet: &Packet, bytes: &[u8]) -> Result<(), usize> {
        let mut packets = self.packets();
        packets.push(&self.over, packet, bytes)?;
        if !packets.is_empty() {
            self.waits.notify_one();
        }
        Ok(())
    }

    /// Hands waiting packets to the connection as it sends those before them; for as long as it lives.
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

    /// To be called now and then: follows the path's RTT, seeks its MTU, and returns that of the interface.
    pub fn look(&self) -> usize {
        self.packets().follow(&self.over.connection.stats());
        let room = self.over.room();
        if room < MAX_MTU {
            // It is too long, so that it is not sent: a larger size is sought.
            let _ = self.over.connection.send_message(&vec![0xff; HEAD + room + 1], MIN_EXPIRY);
        }
        room.clamp(MIN_MTU, MAX_MTU)
    }
}

/// Why a packet of the other end was dropped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dropped {
    /// It is none.
    Malformed,
    /// Its source is not one from which it may come.
    Source,
    /// Its destination is not one to which it may go.
    Destination,
}

type Judge = Box<dyn Fn(&Packet) -> Result<(), Dropped> + Send + Sync>;
type Tell = Box<dyn Fn(&str) + Send + Sync>;

/// Messages that become packets of the kernel.
pub(super) struct Incoming {
    device: Arc<Device>,
    judge: Judge,
    /// Told of the first that is dropped of each kind.
    tell: Tell,
    dropped: [AtomicU64; 3],
}

impl Incoming {
    pub fn new(device: Arc<Device>, judge: Judge, tell: Tell) -> Incoming {
        Incoming { device, judge, tell, dropped: Default::default() }
    }

    /// A packet has come on the flow.
    pub fn take(&self, bytes: &[u8]) {
        let Some(packet) = Packet::read(bytes).filter(|_| bytes.len() <= MAX_MTU) else {
            return self.drop(Dropped::Malformed, None);
        };
        match (self.judge)(&packet) {
            Ok(()) => self.device.write(bytes),
            Err(why) => self.drop(why, Some((packet.source, packet.destination))),
        }
    }

    fn drop(&self, why: Dropped, ends: Option<(IpAddr, IpAddr)>) {
        let Some(count) = self.dropped.get(why as usize) else { return };
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            let mut line = String::from("packets: dropped one ");
            let _ = match (why, ends) {
                (Dropped::Source, Some((from, _))) => {
                    write!(line, "from {from}, which it may not use")
                }
                (_, Some((_, to))) => write!(line, "to {to}, which is not permitted"),
                _ => write!(line, "that is none"),
            };
            (self.tell)(&format!("{line}; more are counted"));
        }
    }

    /// How many were dropped and why, if any were.
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
