//! The inputs of a new connection, once its handshake is complete.

use super::{ConnectionConfig, Early};
use crate::streams::Side;
use narrows_base::Duration;
use narrows_congestion::Dispersion;
use narrows_wire::{Established, Params, Token};
use std::net::SocketAddr;

/// The arguments of [`Connection::new`](super::Connection::new).
pub struct NewConnection<'a> {
    /// Which end this is.
    pub side: Side,
    /// Its configuration.
    pub config: &'a ConnectionConfig,
    /// This end's parameters as sent to the peer.
    pub hello: &'a Params,
    /// Keys, and the peer's identity and parameters.
    pub established: Established,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The handshake's RTT, if none of its packets was repeated.
    pub rtt: Option<Duration>,
    /// Packet-pair dispersion measured in the handshake.
    pub dispersion: Option<Dispersion>,
    /// A server: the client's START had a token, so that it sent no SYN.
    pub without_syn: bool,
    /// A server: the address token for the client's next handshake.
    pub token: Option<Token>,
    /// What went or came with the first packet.
    pub early: Option<Early<'a>>,
    /// Random bytes, used only once.
    pub seed: [u8; 32],
}
