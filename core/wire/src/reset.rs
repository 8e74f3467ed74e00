//! The token of a stateless RESET.
//!
//! An endpoint that lost its connections, for example by a restart, cannot seal a CLOSE. The token was in its
//! parameters when the connection began, and it can compute it again from a key that survives restarts; this proves
//! that the RESET is genuine.
//!
//! The token is bound to the peer's address: a third party that provokes a RESET with a foreign connection id gets a
//! useless token. The price is that after a change of address the token does not match, and the peer has to wait for
//! its idle timeout.

use crate::cookie::address;
use crate::header::ConnectionId;
use crate::noise::StaticKey;
use ring::hmac;
use std::net::SocketAddr;
use subtle::ConstantTimeEq;

/// The key from which tokens are computed; keep it as long as the server's static key.
#[derive(Debug)]
pub struct ResetKey(hmac::Key);

impl ResetKey {
    /// From 32 secret bytes that must have no other use.
    pub fn new(secret: &[u8; 32]) -> ResetKey {
        ResetKey(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// Derives the key from the endpoint's identity and its UDP port. A restarted server computes
    /// the same tokens; another server with the same identity has different ones, so that neither
    /// can be made to reset the other's connections. The key is the HMAC of a label and the port
    /// under the private key; it reveals nothing about that key (HMAC is a PRF).
    pub fn of(identity: &StaticKey, local_port: u16) -> ResetKey {
        let key = hmac::Key::new(hmac::HMAC_SHA256, identity.private());
        let mut context = hmac::Context::with_key(&key);
        context.update(b"rrtp reset key");
        context.update(&local_port.to_be_bytes());
        let secret = context.sign();
        ResetKey(hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref()))
    }

    /// The token of the connection with this endpoint's id `connection` and a peer at `peer`: the
    /// first 16 bytes of an HMAC-SHA256.
    pub fn token(&self, connection: ConnectionId, peer: SocketAddr) -> [u8; 16] {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(b"rrtp reset\0\0\0\0\0\0");
        context.update(&connection.0.to_be_bytes());
        context.update(&address(peer));
        let tag = context.sign();
        tag.as_ref().first_chunk::<16>().copied().unwrap_or_default()
    }
}

/// Whether a RESET's token equals the one in the peer's parameters, in constant time.
pub fn is_token(known: &[u8; 16], received: &[u8; 16]) -> bool {
    known.ct_eq(received).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_bound_to_key_connection_and_address() {
        let here: SocketAddr = "192.0.2.1:5".parse().unwrap();
        let there: SocketAddr = "192.0.2.1:6".parse().unwrap();
        let key = ResetKey::new(&[1; 32]);
        let token = key.token(ConnectionId(1), here);
        assert!(is_token(&token, &key.token(ConnectionId(1), here)));
        assert!(!is_token(&token, &key.token(ConnectionId(2), here)));
        assert!(!is_token(&token, &key.token(ConnectionId(1), there)));
        assert!(!is_token(&token, &ResetKey::new(&[2; 32]).token(ConnectionId(1), here)));
    }

    /// A restarted server computes the same tokens. A second server with the same identity has different ones.
    #[test]
    fn servers_of_one_identity_have_tokens_of_their_own() {
        let peer: SocketAddr = "192.0.2.1:5".parse().unwrap();
        let token = |identity: u8, port: u16| {
            let identity = StaticKey::new([identity; 32]).unwrap();
            ResetKey::of(&identity, port).token(ConnectionId(1), peer)
        };
        assert!(is_token(&token(7, 4433), &token(7, 4433)));
        assert!(!is_token(&token(7, 4433), &token(7, 4434)));
        assert!(!is_token(&token(7, 4433), &token(8, 4433)));
    }
}
