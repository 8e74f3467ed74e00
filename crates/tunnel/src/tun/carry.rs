//! Packets of one connection, each way.

use super::device::Device;
use super::halves::{Halves, split};
use super::packet::Packet;
use super::{MAX_MTU, MIN_MTU};
use crate::flow::{Flow, HEAD};
use narrows_base::Duration;
use narrows_net::Connection;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// A packet waits a round trip to be sent, as in a router's queue of a bandwidth-delay product, but within these bounds.
const MIN_EXPIRY: Duration = Duration::from_millis(100);
const MAX_EXPIRY: Duration = Duration::from_millis(500);

/// Packets of the kernel that become messages.
pub(super) struct Outgoing<T> {
    connection: Connection,
    flow: Flow<T>,
    expiry: AtomicU64,
    number: AtomicU16,
}

impl<T> Outgoing<T> {
    pub fn new(connection: Connection, flow: Flow<T>) -> Outgoing<T> {
        let expiry = AtomicU64::new(MAX_EXPIRY.as_nanos());
        Outgoing { connection, flow, expiry, number: AtomicU16::new(0) }
    }

    /// Bytes of a packet that a message carries now.
    fn room(&self) -> usize {
        self.connection.max_message_len().unwrap_or(0).saturating_sub(HEAD)
    }

    /// Queues a packet, or drops it: then the MTU of which its sender is to learn.
    pub fn send(&self, packet: &Packet, bytes: &[u8]) -> Result<(), usize> {
        let expiry = Duration::from_nanos(self.expiry.load(Ordering::Relaxed));
        let room = self.room();
        if bytes.len() <= room {
            self.flow.send_within(&self.connection, bytes, expiry);
        } else if bytes.len() <= MIN_MTU || packet.may_be_split {
            let number = self.number.fetch_add(1, Ordering::Relaxed);
            for half in split(bytes, number, room).into_iter().flatten() {
                self.flow.send_within(&self.connection, &half, expiry);
            }
        } else {
            return Err(room.max(MIN_MTU));
        }
        Ok(())
    }

    /// To be called now and then: follows the path's RTT, seeks its MTU, and returns that of the interface.
    pub fn look(&self) -> usize {
        let srtt = self.connection.stats().srtt;
        self.expiry.store(srtt.clamp(MIN_EXPIRY, MAX_EXPIRY).as_nanos(), Ordering::Relaxed);
        let room = self.room();
        if room < MAX_MTU {
            // It is too long, so that it is not sent: a larger size is sought.
            let longer = vec![0xff; room + 1];
            self.flow.send_within(&self.connection, &longer, MIN_EXPIRY);
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
    halves: Mutex<Halves>,
    judge: Judge,
    /// Told of the first that is dropped of each kind.
    tell: Tell,
    dropped: [AtomicU64; 3],
}

impl Incoming {
    pub fn new(device: Arc<Device>, judge: Judge, tell: Tell) -> Incoming {
        Incoming { device, halves: Mutex::default(), judge, tell, dropped: Default::default() }
    }

    /// A message has come on the flow.
    pub fn take(&self, message: &[u8]) {
        if matches!(message.first(), Some(0 | 1)) {
            let mut halves = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(whole) = halves.join(message) {
                self.pass(&whole);
            }
        } else {
            self.pass(message);
        }
    }

    fn pass(&self, bytes: &[u8]) {
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
