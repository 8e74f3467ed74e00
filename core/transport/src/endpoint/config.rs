//! The configuration of an endpoint, and what an application passes to it.

use super::accept_filter::ClientFilter;
use super::limits::EndpointLimits;
use crate::Protocol;
use crate::connection::{ConnectionConfig, EarlyData};
use narrows_base::{Rate, Spec};
use narrows_congestion::HintSource;
use narrows_recovery::protocol::{self, Family};
use narrows_wire::{StaticKey, Suite};
use std::collections::BTreeSet;
use std::net::SocketAddr;

/// A cryptographic random source.
pub trait Entropy: Send {
    /// Fills `bytes` with random bytes.
    fn fill(&mut self, bytes: &mut [u8]);
}

/// Identifies a connection of an endpoint; never reused.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Handle(pub u64);

/// Which clients may connect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Clients {
    /// No clients: the endpoint only connects.
    None,
    /// All clients.
    Any,
    /// All clients. When places run out, clients with one of these static keys give way last, and a quarter of the
    /// places is reserved for them.
    Preferring(BTreeSet<[u8; 32]>),
    /// Clients with one of these static keys. All other clients are refused at the handshake.
    Listed(BTreeSet<[u8; 32]>),
}

/// The static key that a server must have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ServerKey {
    /// Exactly this key.
    Is([u8; 32]),
    /// Any key. [`ConnectionEvent::Connected`](crate::connection::ConnectionEvent::Connected) reports it, so that it can be pinned.
    Any,
}

/// The protocol with which an endpoint sends to clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Permit {
    /// The endpoint's own protocol, or the client's announced one if it is in [`ConnectionConfig::custom`].
    Own,
    /// The client's announced protocol (hello parameter 10), if it is of family `rrtp` and its controller is driven by
    /// acknowledgements, or if it is in [`ConnectionConfig::custom`]. Otherwise the endpoint's own, which the client is
    /// informed of.
    Listed,
    /// Any announced protocol of family `rrtp`. Those not driven by acknowledgements send at a rate set by the receiver
    /// (`tear-reliable`) or by a parameter (`rrtp+fixed`), but at most at this rate.
    Any(Rate),
}

impl Permit {
    /// The configuration for a client that announced this protocol; `None` if it is `own`.
    pub(super) fn config(
        self,
        announced: &str,
        own: &ConnectionConfig,
    ) -> Option<ConnectionConfig> {
        if announced.is_empty() || announced == own.protocol.label() {
            return None;
        }
        // Custom protocols are permitted by the endpoint's configuration.
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
        let protocol = Protocol::read(&spec, own.protocol.packet_bytes()).ok()?;
        // The hints in the announced protocol's parameters come from the peer.
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
    /// Whether to send with the protocol that a client announces.
    pub permit: Permit,
    /// The application's filter, applied to clients that `clients` permits.
    pub filter: ClientFilter,
    /// Limits on connections and handshakes.
    pub limits: EndpointLimits,
    /// Whether early data are accepted. The application must then check with [`Connection::is_early`](crate::connection::Connection::is_early) whether a
    /// stream's data were early, and use such data only for idempotent requests.
    pub early_data: bool,
    /// The socket's UDP port. RESET tokens depend on it, so that two endpoints with the same identity cannot reset each
    /// other's connections.
    pub local_port: u16,
}

/// Server, keys and configuration of a new connection.
pub struct ConnectRequest {
    /// The server's address.
    pub remote: SocketAddr,
    /// The key that the server must have.
    pub server_key: ServerKey,
    /// The cipher suite for packets.
    pub suite: Suite,
    /// Configuration of the connection.
    pub connection: ConnectionConfig,
    /// The attempt fails after this time without a reply. Once the server replies, it may take three times as long.
    pub patience: narrows_base::Duration,
    /// Data of the first stream. They are sent in the first packet if `server_key` is given and a token for that server
    /// permits early data.
    pub early_data: Option<EarlyData>,
}
