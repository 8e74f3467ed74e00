//! What a connection begins with, once its handshake is over.

use super::ConnectionConfig;
use crate::streams::Side;
use narrows_base::Duration;
use narrows_congestion::Dispersion;
use narrows_wire::{Established, Params};
use std::net::SocketAddr;

/// Everything that [`Connection::new`](super::Connection::new) is told.
pub struct NewConnection<'a> {
    /// Which end this is.
    pub side: Side,
    /// How it behaves.
    pub config: &'a ConnectionConfig,
    /// What this end told the peer.
    pub hello: &'a Params,
    /// Keys, and who the peer is.
    pub established: Established,
    /// Where the peer is.
    pub remote: SocketAddr,
    /// What the handshake measured, if its packets were sent once only.
    pub rtt: Option<Duration>,
    /// What the spacing of the answers to its packets tells.
    pub dispersion: Option<Dispersion>,
    /// Randomness, never used again.
    pub seed: [u8; 32],
}
