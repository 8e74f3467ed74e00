//! Errors of the handshake.

use crate::bytes::Malformed;
use crate::keys::PublicKey;
use std::fmt;

/// Why a handshake packet was refused. After any of these errors the handshake still accepts the valid packet.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum HandshakeError {
    /// It belongs to another handshake.
    NotOurs,
    /// This handshake has completed: the packet is a repetition. The response is a data packet.
    Finished,
    /// It was changed on the way, or made by a third party.
    Forged,
    /// A key of the peer has low order: the shared secret is zero, and proves nothing.
    LowOrderKey,
    /// The server proved that it holds this key, but the caller refused it.
    KeyRefused(PublicKey),
    /// It is authentic but malformed.
    Malformed(Malformed),
    /// Our own parameters cannot be written.
    OwnParams,
    /// The cryptographic library failed.
    Library(&'static str),
}

impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::NotOurs => f.write_str("a packet of another handshake"),
            HandshakeError::Finished => f.write_str("the handshake is complete"),
            HandshakeError::Forged => f.write_str("a handshake packet is not authentic"),
            HandshakeError::LowOrderKey => f.write_str("a key of the peer has low order"),
            HandshakeError::KeyRefused(_) => f.write_str("the peer has a key that is not accepted"),
            HandshakeError::Malformed(m) => m.fmt(f),
            HandshakeError::OwnParams => f.write_str("own parameters are too long"),
            HandshakeError::Library(why) => write!(f, "cryptography: {why}"),
        }
    }
}

impl std::error::Error for HandshakeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            HandshakeError::Malformed(m) => Some(m),
            _ => None,
        }
    }
}
