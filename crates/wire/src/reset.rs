//! The token of a stateless RESET.
//!
//! An endpoint that lost its connections, by a restart for example, cannot seal a CLOSE. The token,
//! told in its parameters when the connection began and computed anew from a key that outlives
//! restarts, proves that the RESET is its own.
//!
//! The token is bound to the peer's address: whoever asks for a RESET from elsewhere, with another's
//! connection id, is told a token that is worth nothing. The price: after a change of address it
//! no longer fits, and the peer has to find out by its idle timeout.

use crate::cookie::address;
use crate::header::ConnectionId;
use crate::noise::StaticKey;
use ring::hmac;
use std::net::SocketAddr;
use subtle::ConstantTimeEq;

/// The key from which tokens are made; keep it as long as the server's static key.
#[derive(Debug)]
pub struct ResetKey(hmac::Key);

impl ResetKey {
    /// From 32 secret bytes, used for nothing else.
    pub fn new(secret: &[u8; 32]) -> ResetKey {
        ResetKey(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// From the end's identity and the UDP port that it is bound to, so that a server that was
    /// started again knows its tokens, and another server with the same identity has others: one
    /// must not be made to reset the other's connections. It is the HMAC of a label and the port
    /// under the private key, which tells nothing of that key (HMAC is a PRF) and is used for
    /// nothing else.
    pub fn of(identity: &StaticKey, local_port: u16) -> ResetKey {
        let key = hmac::Key::new(hmac::HMAC_SHA256, identity.private());
        let mut context = hmac::Context::with_key(&key);
        context.update(b"rrtp reset key");
        context.update(&local_port.to_be_bytes());
        let secret = context.sign();
        ResetKey(hmac::Key::new(hmac::HMAC_SHA256, secret.as_ref()))
    }

    /// The token for a connection that this end calls `connection`, with a peer at `peer`: the
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

/// Whether a RESET's token is the one that the peer told, in constant time.
pub fn is_token(told: &[u8; 16], received: &[u8; 16]) -> bool {
    told.ct_eq(received).into()
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

    /// A server that was started again knows its tokens; a second server of the same user, who gave it
    /// the same identity, cannot say them.
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
