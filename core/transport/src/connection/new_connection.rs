//! Inputs of a new connection after its handshake.

use super::{ConnectionConfig, EarlyExchange};
use crate::streams::Side;
use narrows_base::Duration;
use narrows_wire::{Established, Params, Token};
use std::net::SocketAddr;

/// The arguments of [`Connection::new`](super::Connection::new).
pub struct NewConnection<'a> {
    /// Client or server.
    pub side: Side,
    /// Configuration of this end.
    pub config: &'a ConnectionConfig,
    /// This end's parameters as sent to the peer.
    pub hello: &'a Params,
    /// Keys, and the peer's identity and parameters.
    pub established: Established,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The handshake's RTT; absent if one of its packets was retransmitted.
    pub rtt: Option<Duration>,
    /// Upper limit on the RTT: how long the handshake's last exchange took, repetitions included; zero if unknown.
    pub max_rtt: Duration,
    /// Server: whether the client's START had a token, so that no SYN was needed.
    pub without_syn: bool,
    /// A server: the address token for the client's next handshake.
    pub token: Option<Token>,
    /// Early data of the first packet, if any.
    pub early: Option<EarlyExchange<'a>>,
    /// Random bytes for this connection only.
    pub seed: [u8; 32],
}
