//! A port: all connections of one UDP socket, and their opening. Pure: the driver hands over
//! datagrams, time and randomness, and sends what it is given.

use crate::connection::{Connection, ConnectionConfig, Event, Transmit};
use narrows_base::Time;
use narrows_wire::{StaticKey, Suite};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// A cryptographic random source.
pub trait Entropy: Send {
    /// Fills the bytes.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// Names a connection of a port; never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle(pub u64);

/// Who may connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Clients {
    /// Nobody: the port only connects.
    None,
    /// Everybody.
    Any,
    /// Whoever holds one of these static keys.
    Listed(BTreeSet<[u8; 32]>),
}

/// Which key the server must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerKey {
    /// This one.
    Is([u8; 32]),
    /// Any: [`Event::Connected`] tells which, to be pinned.
    Any,
}

/// What a port is.
pub struct PortConfig {
    /// This end's identity.
    pub key: StaticKey,
    /// Who may connect.
    pub clients: Clients,
    /// How connections that are accepted behave.
    pub connection: ConnectionConfig,
    /// Connections at most, those being opened included.
    pub max_connections: usize,
    /// Handshakes with a valid cookie that are open at most, in all and from one address.
    pub max_handshakes: (usize, usize),
}

/// A wish to connect.
pub struct Connect {
    /// Where to.
    pub remote: SocketAddr,
    /// Who must be there.
    pub server_key: ServerKey,
    /// The cipher.
    pub suite: Suite,
    /// How it behaves.
    pub connection: ConnectionConfig,
    /// Gives up after so long without an answer.
    pub patience: narrows_base::Duration,
}

/// All connections of one socket.
pub struct Port {}

impl Port {
    /// A port.
    pub fn new(_config: PortConfig, _entropy: Box<dyn Entropy>) -> Port {
        unimplemented!()
    }
    /// Begins to connect; [`Event::Connected`] or [`Event::Closed`] follows. `None` if there are too
    /// many connections.
    pub fn connect(&mut self, _now: Time, _connect: Connect) -> Option<Handle> {
        unimplemented!()
    }
    /// A datagram came; it is opened in place.
    pub fn receive(&mut self, _now: Time, _from: SocketAddr, _ecn: u8, _datagram: &mut [u8]) {
        unimplemented!()
    }
    /// What to send next: up to `segments` datagrams of equal size to one place.
    pub fn transmit(
        &mut self,
        _now: Time,
        _buffer: &mut [u8],
        _segments: usize,
    ) -> Option<Transmit> {
        unimplemented!()
    }
    /// When [`on_due`](Port::on_due) is wanted.
    pub fn next_due(&self) -> Time {
        unimplemented!()
    }
    /// A due time has come.
    pub fn on_due(&mut self, _now: Time) {
        unimplemented!()
    }
    /// What happened since it was asked last.
    pub fn event(&mut self) -> Option<(Handle, Event)> {
        unimplemented!()
    }
    /// An established connection, for the application's calls; the port looks after it at the next
    /// `transmit` or `next_due`.
    pub fn connection(&mut self, _handle: Handle) -> Option<&mut Connection> {
        unimplemented!()
    }
    /// Gives up a connection, established or not.
    pub fn close(&mut self, _now: Time, _handle: Handle, _code: u64, _reason: &str) {
        unimplemented!()
    }
    /// How many there are, those being opened included.
    pub fn len(&self) -> usize {
        unimplemented!()
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
