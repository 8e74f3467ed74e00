//! Packets of one connection, each way.

use super::device::Device;
use super::halves::{Halves, split};
use super::packet::Packet;
use super::queue::PacketQueue;
use super::{MAX_MTU, MIN_MTU};
use crate::flow::{Flow, HEAD};
use narrows_base::Duration;
use narrows_net::Connection;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU16, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Wait;
use tokio::sync::Notify;
use tokio::time::sleep;

/// A packet waits no longer than a round trip to be sent, within these bounds, whatever the queue says: after an outage what was
/// meant for before it is of no use.
const MIN_EXPIRY: Duration = Duration::from_millis(100);
const MAX_EXPIRY: Duration = Duration::from_millis(500);
/// While packets wait, the connection is handed so many milliseconds' worth of them each millisecond, within these bounds: what it
/// holds itself is in no queue of ours.
const HAND_OVER: Wait = Wait::from_millis(1);
const IN_CONNECTION: f64 = 0.004;
const LEAST: f64 = 2.0;
const MOST: f64 = 256.0;
/// IP, UDP.
const HEADERS: f64 = 48.0;

/// Packets of the kernel that become messages.
pub(super) struct Outgoing<T> {
    connection: Connection,
    flow: Flow<T>,
    expiry: AtomicU64,
    number: AtomicU16,
    queue: Mutex<PacketQueue>,
    /// Messages that the connection may hold.
    most: AtomicUsize,
    /// Packets wait.
    waits: Notify,
}

impl<T> Outgoing<T> {
    /// `None` never, with this crate's own queue.
    pub fn new(connection: Connection, flow: Flow<T>) -> Option<Outgoing<T>> {
        let queue = Mutex::new(PacketQueue::new(connection.stats().srtt)?);
        let (expiry, number) = (AtomicU64::new(MAX_EXPIRY.as_nanos()), AtomicU16::new(0));
        let (most, waits) = (AtomicUsize::new(LEAST as usize), Notify::new());
        Some(Outgoing { connection, flow, expiry, number, queue, most, waits })
    }

    /// Bytes of a packet that a message carries now.
    fn room(&self) -> usize {
        self.connection.max_message_len().unwrap_or(0).saturating_sub(HEAD)
    }

    /// Queues a packet, or drops it: then the MTU of which its sender is to learn.
    pub fn send(&self, packet: &Packet, bytes: &[u8]) -> Result<(), usize> {
        let room = self.room();
        if bytes.len() > room && bytes.len() > MIN_MTU && !packet.may_be_split {
            return Err(room.max(MIN_MTU));
        }
        let waits = {
            let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
            queue.push(self.connection.now(), packet, bytes);
            self.hand_over(&mut queue, room);
            !queue.is_empty()
        };
        if waits {
            self.waits.notify_one();
        }
        Ok(())
    }

    /// Hands waiting packets to the connection as it sends those before them; for as long as it lives.
    pub async fn run(&self) {
        loop {
            self.waits.notified().await;
            loop {
                self.follow_rate();
                let room = self.room();
                {
                    let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
                    self.hand_over(&mut queue, room);
                    if queue.is_empty() {
                        break;
                    }
                }
                sleep(HAND_OVER).await;
            }
        }
    }

    fn hand_over(&self, queue: &mut PacketQueue, room: usize) {
        let expiry = Duration::from_nanos(self.expiry.load(Ordering::Relaxed));
        let most = self.most.load(Ordering::Relaxed);
        // A connection that is over takes nothing, and what waits is dropped with it.
        while self.connection.messages_waiting().is_ok_and(|waiting| waiting < most) {
            let Some(bytes) = queue.pop(self.connection.now(), expiry) else { break };
            if bytes.len() <= room {
                self.flow.send_within(&self.connection, &bytes, expiry);
                continue;
            }
            let number = self.number.fetch_add(1, Ordering::Relaxed);
            for half in split(&bytes, number, room).into_iter().flatten() {
                self.flow.send_within(&self.connection, &half, expiry);
            }
        }
    }

    /// How much the connection holds, by the rate that its controller permits.
    fn follow_rate(&self) {
        let stats = self.connection.stats();
        let packet = 8.0 * (f64::from(stats.datagram) + HEADERS);
        let by_window = stats.window * packet / stats.srtt.as_secs_f64();
        let rate = stats.rate.map_or(by_window, |rate| by_window.min(rate.as_bps() as f64));
        let most = rate * IN_CONNECTION / packet;
        // It is not a number before the first round trip.
        let most = if most.is_nan() { LEAST } else { most.clamp(LEAST, MOST) };
        self.most.store(most as usize, Ordering::Relaxed);
    }

    /// To be called now and then: follows the path's RTT, seeks its MTU, and returns that of the interface.
    pub fn look(&self) -> usize {
        self.follow_rate();
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
