//! UDP flows: datagrams between a program of the near side and one address of the far side.
//!
//! ```text
//! message: | flow (4) | datagram |        flow: the number of its stream among those of the near side
//! ```
//!
//! A message that waits too long is dropped, and so is a datagram that is longer than a message may be: as IP would.

use narrows_base::Duration;
use narrows_net::Connection;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration as Wait, Instant};
use tokio::net::UdpSocket;

/// A datagram waits so long to be sent.
const EXPIRY: Duration = Duration::from_millis(500);
/// A flow without datagrams in either direction ends after so long (RFC 4787 section 4.3 asks for two minutes).
pub const IDLE: Wait = Wait::from_secs(120);
/// Bytes of a flow's number.
pub(crate) const HEAD: usize = 4;
/// Longest datagram.
pub const MAX_DATAGRAM: usize = 65_535;

/// What takes packets of [`tun`](crate::tun).
pub type Sink = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Where what comes on a flow goes at the far side.
pub enum Goal {
    /// To a target.
    Target(Arc<UdpSocket>),
    /// To the kernel.
    Packets(Sink),
}

/// Where what comes on a flow goes at the near side.
pub enum Back {
    /// To a program.
    Program(Program),
    /// To the kernel.
    Packets(Sink),
}

/// A program of the near side.
pub struct Program {
    /// From this socket,
    pub socket: Arc<UdpSocket>,
    /// to this program,
    pub to: SocketAddr,
    /// with this before each datagram.
    pub head: Vec<u8>,
}

/// The flows of a connection.
pub struct Flows<T>(Mutex<HashMap<u32, Entry<T>>>);

struct Entry<T> {
    what: Arc<T>,
    used: Instant,
}

impl<T> Default for Flows<T> {
    fn default() -> Flows<T> {
        Flows(Mutex::default())
    }
}

/// A flow; it ends when this is dropped.
pub struct Flow<T> {
    flows: Arc<Flows<T>>,
    number: u32,
}

impl<T> Flows<T> {
    /// Begins the flow of this stream.
    pub fn add(flows: &Arc<Flows<T>>, stream: u64, what: T) -> Option<Flow<T>> {
        let number = u32::try_from(stream / 4).ok()?;
        let entry = Entry { what: Arc::new(what), used: Instant::now() };
        flows.0.lock().unwrap_or_else(PoisonError::into_inner).insert(number, entry);
        Some(Flow { flows: flows.clone(), number })
    }

    /// The flow of a message, which counts as used now, and its datagram. `None` for a flow that is over, or never was.
    fn of<'m>(&self, message: &'m [u8]) -> Option<(Arc<T>, &'m [u8])> {
        let (number, datagram) = message.split_first_chunk::<HEAD>()?;
        let mut flows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = flows.get_mut(&u32::from_be_bytes(*number))?;
        entry.used = Instant::now();
        Some((entry.what.clone(), datagram))
    }
}

impl<T> Flow<T> {
    /// Sends a datagram on it; what cannot be sent is lost.
    pub fn send(&self, connection: &Connection, datagram: &[u8]) {
        self.send_within(connection, datagram, EXPIRY);
        let mut flows = self.flows.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = flows.get_mut(&self.number) {
            entry.used = Instant::now();
        }
    }

    /// Sends one that waits no longer than this to be sent.
    pub(crate) fn send_within(&self, connection: &Connection, datagram: &[u8], expiry: Duration) {
        let mut message = Vec::with_capacity(HEAD + datagram.len());
        message.extend(self.number.to_be_bytes());
        message.extend(datagram);
        let _ = connection.send_message(&message, expiry);
    }

    /// How long it may still be without datagrams.
    pub fn left(&self) -> Wait {
        let flows = self.flows.0.lock().unwrap_or_else(PoisonError::into_inner);
        flows.get(&self.number).map_or(Wait::ZERO, |e| IDLE.saturating_sub(e.used.elapsed()))
    }
}

impl<T> Drop for Flow<T> {
    fn drop(&mut self) {
        let mut flows = self.flows.0.lock().unwrap_or_else(PoisonError::into_inner);
        flows.remove(&self.number);
    }
}

/// Hands what comes from the near side to the flows' targets, until the connection ends. Where a socket is full a
/// datagram is lost.
pub async fn to_targets(connection: Connection, flows: Arc<Flows<Goal>>) {
    while let Ok(message) = connection.receive_message().await {
        if let Some((goal, datagram)) = flows.of(&message) {
            match &*goal {
                Goal::Target(socket) => drop(socket.try_send(datagram)),
                Goal::Packets(sink) => sink(datagram),
            }
        }
    }
}

/// Hands what comes from the far side to the programs, until the connection ends.
pub async fn to_programs(connection: Connection, flows: Arc<Flows<Back>>) {
    while let Ok(message) = connection.receive_message().await {
        if let Some((back, datagram)) = flows.of(&message) {
            let _ = match &*back {
                Back::Packets(sink) => {
                    sink(datagram);
                    continue;
                }
                Back::Program(Program { socket, to, head }) if head.is_empty() => {
                    socket.try_send_to(datagram, *to)
                }
                Back::Program(Program { socket, to, head }) => {
                    socket.try_send_to(&[head, datagram].concat(), *to)
                }
            };
        }
    }
}

/// Hands what a target answers to the near side, until the flow has been idle too long.
pub async fn from_target<T>(connection: &Connection, flow: &Flow<T>, socket: &UdpSocket) {
    let mut datagram = Vec::new();
    loop {
        match tokio::time::timeout(flow.left(), socket.readable()).await {
            Err(_) if flow.left().is_zero() => return,
            Err(_) => continue,
            Ok(_) => {}
        }
        datagram.reserve(MAX_DATAGRAM);
        // An error is a port that nobody listens at yet, say; the next datagram may find somebody.
        while socket.try_recv_buf(&mut datagram).is_ok() {
            flow.send(connection, &datagram);
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
        let flows = Arc::new(Flows::default());
        let one = Flows::add(&flows, 0, "one").unwrap();
        let two = Flows::add(&flows, 8, "two").unwrap();
        let found =
            |bytes: &[u8]| flows.of(bytes).map(|(name, datagram)| (*name, datagram.to_vec()));
        assert_eq!(found(&[0, 0, 0, 0, 7]), Some(("one", vec![7])));
        assert_eq!(found(&[0, 0, 0, 2]), Some(("two", vec![])));
        for none in [&[][..], &[0, 0, 0], &[0, 0, 0, 1, 7], &[0xff; 9]] {
            assert_eq!(found(none), None);
        }
        drop(one);
        assert_eq!(found(&[0, 0, 0, 0, 7]), None);
        assert!(two.left() > IDLE / 2 && Flows::add(&flows, u64::MAX, "far").is_none());
    }
}
