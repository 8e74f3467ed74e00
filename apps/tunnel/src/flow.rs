//! UDP flows: datagrams between a program of the near side and one address of the far side.
//!
//! ```text
//! message: | flow (4) | datagram |        flow: the number of its stream among those of the near side
//! ```
//!
//! A message that waits too long is dropped, as IP would do. A datagram that is longer than a message is sent in parts;
//! see `parts.rs`.

use crate::limits::ClientUsage;
use crate::parts::{MAX_DATAGRAM, PartialDatagrams, split};
use crate::places::HolderActivity;
use narrows_base::Duration;
use narrows_net::{Connection, Error};
use narrows_peers::rate_cap::RateCap;
use std::borrow::Cow;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration as Wait, Instant};
use tokio::net::UdpSocket;

/// Longest wait of a datagram before it is sent.
const EXPIRY: Duration = Duration::from_millis(500);
/// A flow without datagrams in either direction ends after this time (RFC 4787 section 4.3 requires two minutes).
pub const IDLE: Wait = Wait::from_secs(120);
/// Length of a flow's number in bytes.
pub(crate) const HEAD: usize = 4;
/// Bit of a flow's number that marks a part of a datagram.
const PART: u32 = 1 << 31;

/// Callback for packets of [`tun`](crate::tun).
pub type Sink = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Destination of a flow's datagrams at the far side.
pub enum FlowTarget {
    /// A socket that is connected to the target.
    Target(Arc<UdpSocket>),
    /// The kernel, through an interface.
    Packets(Sink),
}

/// Destination of a flow's datagrams at the near side.
pub enum Back {
    /// The program that opened the flow.
    Program(LocalProgram),
    /// The kernel, through an interface.
    Packets(Sink),
}

/// A program of the near side.
pub struct LocalProgram {
    /// Socket that sends the datagrams.
    pub socket: Arc<UdpSocket>,
    /// The program's address.
    pub to: SocketAddr,
    /// Bytes before each datagram, for SOCKS.
    pub head: Vec<u8>,
}

/// The flows of a connection.
pub struct UdpFlows<T> {
    flows: Mutex<HashMap<u32, FlowEntry<T>>>,
    parts: Mutex<PartialDatagrams>,
}

struct FlowEntry<T> {
    what: Arc<T>,
    activity: Arc<HolderActivity>,
}

impl<T> Default for UdpFlows<T> {
    fn default() -> UdpFlows<T> {
        UdpFlows { flows: Mutex::default(), parts: Mutex::default() }
    }
}

/// A flow. It ends when this is dropped.
pub struct UdpFlow<T> {
    flows: Arc<UdpFlows<T>>,
    activity: Arc<HolderActivity>,
    number: u32,
    /// Number of the next datagram that is sent in parts.
    next: AtomicU16,
}

impl<T> UdpFlows<T> {
    /// Adds the flow of this stream. `None` if the stream's number is too large.
    pub fn add(flows: &Arc<UdpFlows<T>>, stream: u64, what: T) -> Option<UdpFlow<T>> {
        UdpFlows::add_shared(flows, stream, Arc::new(what), Arc::default())
    }

    /// Adds the flow of this stream, with a shared destination and the activity of its place.
    pub(crate) fn add_shared(
        flows: &Arc<UdpFlows<T>>,
        stream: u64,
        what: Arc<T>,
        activity: Arc<HolderActivity>,
    ) -> Option<UdpFlow<T>> {
        activity.used();
        let number = u32::try_from(stream / 4).ok().filter(|number| number & PART == 0)?;
        let entry = FlowEntry { what, activity: activity.clone() };
        flows.flows.lock().unwrap_or_else(PoisonError::into_inner).insert(number, entry);
        Some(UdpFlow { flows: flows.clone(), activity, number, next: AtomicU16::new(0) })
    }

    /// The flow's destination and the datagram of a message; marks the flow as used. `None` if there is no such flow,
    /// or while parts are missing.
    fn of<'m>(&self, message: &'m [u8]) -> Option<(Arc<T>, Cow<'m, [u8]>)> {
        let (number, datagram) = message.split_first_chunk::<HEAD>()?;
        let number = u32::from_be_bytes(*number);
        let what = {
            let flows = self.flows.lock().unwrap_or_else(PoisonError::into_inner);
            let entry = flows.get(&(number & !PART))?;
            entry.activity.used();
            entry.what.clone()
        };
        if number & PART == 0 {
            return Some((what, datagram.into()));
        }
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        parts.join(Instant::now(), number & !PART, datagram).map(|whole| (what, whole.into()))
    }
}

impl<T> UdpFlow<T> {
    /// Sends a datagram; if it cannot be sent, it is lost.
    pub fn send(&self, connection: &Connection, datagram: &[u8]) {
        self.send_within(connection, datagram, EXPIRY);
        self.activity.used();
    }

    /// Sends a datagram that expires after this time; in parts if it is longer than a message.
    pub(crate) fn send_within(&self, connection: &Connection, datagram: &[u8], expiry: Duration) {
        let send = |number: u32, bytes: &[u8]| {
            let message = [&number.to_be_bytes(), bytes].concat();
            connection.send_message(&message, expiry)
        };
        // The attempt with a message that is too long also makes the connection probe for a larger datagram size.
        let max = match send(self.number, datagram) {
            Err(Error::MessageTooLong { max } | Error::MessageTooLongNow { max }) => max,
            _ => return,
        };
        let max = connection.max_message_len().unwrap_or(max).min(max);
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        for part in split(datagram, number, max.saturating_sub(HEAD)) {
            // If one part is lost, the others are of no use.
            if send(self.number | PART, &part).is_err() {
                return;
            }
        }
    }

    /// Time until the flow counts as idle.
    pub fn left(&self) -> Wait {
        IDLE.saturating_sub(self.activity.idle())
    }
}

impl<T> Drop for UdpFlow<T> {
    fn drop(&mut self) {
        let mut flows = self.flows.flows.lock().unwrap_or_else(PoisonError::into_inner);
        flows.remove(&self.number);
    }
}

/// Passes datagrams from the near side to the flows' targets until the connection ends. If a socket is full, the
/// datagram is lost, as it is beyond the client's rate.
pub async fn to_targets(
    connection: Connection,
    flows: Arc<UdpFlows<FlowTarget>>,
    client: Arc<ClientUsage>,
) {
    while let Ok(message) = connection.receive_message().await {
        if !client.cap.admits(Instant::now(), message.len()) {
            continue;
        }
        if let Some((goal, datagram)) = flows.of(&message) {
            match &*goal {
                FlowTarget::Target(socket) => drop(socket.try_send(&datagram)),
                FlowTarget::Packets(sink) => sink(&datagram),
            }
        }
    }
}

/// Passes datagrams from the far side to the programs until the connection ends.
pub async fn to_programs(connection: Connection, flows: Arc<UdpFlows<Back>>) {
    while let Ok(message) = connection.receive_message().await {
        if let Some((back, datagram)) = flows.of(&message) {
            let _ = match &*back {
                Back::Packets(sink) => {
                    sink(&datagram);
                    continue;
                }
                Back::Program(LocalProgram { socket, to, head }) if head.is_empty() => {
                    socket.try_send_to(&datagram, *to)
                }
                Back::Program(LocalProgram { socket, to, head }) => {
                    socket.try_send_to(&[head, &*datagram].concat(), *to)
                }
            };
        }
    }
}

/// Passes a target's datagrams to the near side until the flow is idle; those beyond the client's rate are lost.
pub async fn from_target<T>(
    connection: &Connection,
    flow: &UdpFlow<T>,
    socket: &UdpSocket,
    cap: &RateCap,
) {
    let mut datagram = Vec::new();
    loop {
        match tokio::time::timeout(flow.left(), socket.readable()).await {
            Err(_) if flow.left().is_zero() => return,
            Err(_) => continue,
            Ok(_) => {}
        }
        datagram.reserve(MAX_DATAGRAM);
        // An error may be an ICMP error, for example while no program listens at the port; later datagrams may succeed.
        while socket.try_recv_buf(&mut datagram).is_ok() {
            if cap.admits(Instant::now(), datagram.len()) {
                flow.send(connection, &datagram);
            }
            datagram.clear();
        }
        datagram = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_finds_its_flow_and_no_other() {
        let flows = Arc::new(UdpFlows::default());
        let one = UdpFlows::add(&flows, 0, "one").unwrap();
        let two = UdpFlows::add(&flows, 8, "two").unwrap();
        let found =
            |bytes: &[u8]| flows.of(bytes).map(|(name, datagram)| (*name, datagram.to_vec()));
        assert_eq!(found(&[0, 0, 0, 0, 7]), Some(("one", vec![7])));
        assert_eq!(found(&[0, 0, 0, 2]), Some(("two", vec![])));
        for none in [&[][..], &[0, 0, 0], &[0, 0, 0, 1, 7], &[0xff; 9]] {
            assert_eq!(found(none), None);
        }
        drop(one);
        assert_eq!(found(&[0, 0, 0, 0, 7]), None);
        let part = |bytes: &[u8]| [&[0x80, 0, 0, 2, 0, 1][..], bytes].concat();
        assert_eq!(found(&part(&[0, 2, 7])), None, "a part is missing");
        assert_eq!(found(&part(&[1, 2, 8])), Some(("two", vec![7, 8])));
        assert!(two.left() > IDLE / 2 && UdpFlows::add(&flows, u64::MAX, "far").is_none());
    }
}
