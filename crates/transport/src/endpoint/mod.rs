//! An endpoint: all connections of one UDP socket, and their handshakes. Pure: a driver passes in datagrams, time and
//! randomness, and sends the resulting datagrams.
//!
//! | to | see |
//! |---|---|
//! | store connections, and call each when its timer is due | `connections`, with `table`, `connection_state` and `alarms` |
//! | methods for the application | `calls` |
//! | give each its turn to send | `outgoing` |
//! | dispatch received datagrams | `incoming` |
//! | open one as the client | `connecting`, with `crate::handshake` |
//! | accept one as the server: cookies, address tokens, handshakes, their bounds, the application's filter | `handshake_gate`, `used_tokens`, `handshake_rate`, `accepting`, `accepted`, `accept_filter` |
//! | take early data | `early` |
//! | keep the tokens that servers gave | `token_store` |
//! | share places among clients when all are taken | `admission`, with `activity`, `client_counts`, [`share`], [`source`] |
//!
//! State that unauthenticated packets can create: for a SYN only an answer in a queue of 256; for a START with a valid
//! cookie a handshake, of which there are at most [`EndpointLimits::handshakes`], each for at most 10 s. An idle
//! connection is touched only when its timer fires.
//!
//! If a connection's congestion controller (or another part of it) panics, only that connection ends: it is not called
//! again, and the application is told the controller's name.

use crate::connection::{Connection, ConnectionConfig};
use crate::protocol::{self, Family};
use crate::{Preset, Protocol};
use narrows_base::{Rate, Spec};
use narrows_congestion::HintSource;
use narrows_wire::{StaticKey, Suite};
use std::collections::BTreeSet;
use std::net::SocketAddr;

mod accept_filter;
mod accepted;
mod accepting;
mod activity;
mod admission;
mod alarms;
mod calls;
mod client_counts;
mod connecting;
mod connection_state;
mod connections;
mod early;
mod handshake_gate;
mod handshake_rate;
mod hello;
mod incoming;
mod limits;
mod managed;
mod outgoing;
pub mod share;
pub mod source;
mod table;
mod token_store;
mod used_tokens;

#[cfg(test)]
mod accept_filter_tests;
#[cfg(test)]
mod amplification_tests;
#[cfg(test)]
mod application_tests;
#[cfg(test)]
mod attackers;
#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod connecting_tests;
#[cfg(test)]
mod early_tests;
#[cfg(test)]
mod half_open_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod panic_tests;
#[cfg(test)]
mod race_tests;
#[cfg(test)]
mod ready_tests;
#[cfg(test)]
mod sharing_tests;
#[cfg(test)]
mod stub;
#[cfg(test)]
mod token_tests;
#[cfg(test)]
mod whole_tests;

pub use crate::connection::{EarlyData, NewConnection};
pub use accept_filter::{AcceptFilter, Decision, Filter, Incoming};
pub use calls::Facts;
pub use connections::Connections;
pub use limits::EndpointLimits;
pub use managed::ManagedConnection;
pub use token_store::{MemoryTokens, TokenStore};

/// A cryptographic random source.
pub trait Entropy: Send {
    /// Fills the bytes.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// Identifies a connection of an endpoint; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle(pub u64);

/// Which clients may connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Clients {
    /// Nobody: the endpoint only connects.
    None,
    /// Everybody.
    Any,
    /// Everybody. When places run out, whoever holds one of these static keys gives way last, and a
    /// quarter of the places is kept for them.
    Preferring(BTreeSet<[u8; 32]>),
    /// Whoever holds one of these static keys. Others are refused at the handshake.
    Listed(BTreeSet<[u8; 32]>),
}

/// Which key the server must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerKey {
    /// This one.
    Is([u8; 32]),
    /// Any: [`Event::Connected`](crate::connection::Event::Connected) tells which, to be pinned.
    Any,
}

/// Which protocol an endpoint uses for sending to clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Permit {
    /// With what its configuration says, or one of its [`ConnectionConfig::custom`] that the client announced.
    Own,
    /// With what the client announced (hello parameter 10), if that is one of the protocols of
    /// family `rrtp` whose controller goes by acknowledgements, or one of
    /// [`ConnectionConfig::custom`]; else with its own. The client is told.
    Listed,
    /// With any protocol of family `rrtp` that the client announced: the others, which send as fast as
    /// the receiver says (`tear-reliable`) or as somebody told them (`rrtp+fixed`), no faster than this.
    Any(Rate),
}

impl Permit {
    /// How a connection behaves to a client that announced this, where that is not as `own` says.
    pub(super) fn config(
        self,
        announced: &str,
        own: &ConnectionConfig,
    ) -> Option<ConnectionConfig> {
        if announced.is_empty() || announced == own.protocol.label() {
            return None;
        }
        // Whoever made the server said that it knows these.
        if let Some(custom) = own.custom.iter().find(|p| p.label() == announced) {
            return Some(ConnectionConfig { protocol: custom.clone(), ..own.clone() });
        }
        if self == Permit::Own {
            return None;
        }
        let spec = Spec::parse(announced).ok()?;
        let entry = protocol::find(&spec.name).ok()?;
        if entry.family != Family::Rrtp {
            return None;
        }
        let is_ack_driven =
            narrows_congestion::find(entry.controller).is_ok_and(|c| c.is_ack_driven());
        let rate_limit = match self {
            Permit::Any(most) if !is_ack_driven => {
                Some(own.rate_limit.map_or(most, |limit| limit.min(most)))
            }
            _ if !is_ack_driven => return None,
            _ => own.rate_limit,
        };
        let protocol = Protocol::read(&spec, Preset::Rfc, own.protocol.packet_bytes()).ok()?;
        // What the announced protocol's parameters tell of the path, the peer tells.
        let told_here = own.hints.rate.is_some();
        let hint_source = if told_here { own.hint_source } else { HintSource::Peer };
        Some(ConnectionConfig { protocol, rate_limit, hint_source, ..own.clone() })
    }
}

/// The configuration of an endpoint.
pub struct EndpointConfig {
    /// This end's identity.
    pub key: StaticKey,
    /// Which clients may connect.
    pub clients: Clients,
    /// Configuration of accepted connections.
    pub connection: ConnectionConfig,
    /// Whether to send with the protocol that a client requests.
    pub permit: Permit,
    /// The application's filter, applied to clients that `clients` permits.
    pub filter: Filter,
    /// Limits on connections and handshakes.
    pub limits: EndpointLimits,
    /// Whether early data of known clients are taken. The application must then ask of each stream whether its data
    /// were early ([`Connection::is_early`]), and do with those only what may be done twice.
    pub early_data: bool,
    /// The socket's UDP port; the tokens of RESETs depend on it, so that two endpoints with the same identity cannot
    /// reset each other's connections.
    pub local_port: u16,
}

/// A request to connect.
pub struct Connect {
    /// The server's address.
    pub remote: SocketAddr,
    /// The key that the server must have.
    pub server_key: ServerKey,
    /// The cipher suite.
    pub suite: Suite,
    /// Configuration of the connection.
    pub connection: ConnectionConfig,
    /// The attempt fails after this long without an answer.
    pub patience: narrows_base::Duration,
    /// Data of the first stream, sent in the first packet if the server's key is given and its token permits that.
    pub early_data: Option<EarlyData>,
}

/// All connections of one socket.
pub type Endpoint = Connections<Connection>;
