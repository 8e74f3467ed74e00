//! The address token: a server issues it to a client at the end of one handshake. The client's next START has it in the
//! place of the cookie, so the START needs no SYN and SYN-ECHO before it.
//!
//! ```text
//! | 1 (1 bit), early (1 bit), issued (62 bits) | id (12) | HMAC-SHA256, first 16 bytes |
//! ```
//!
//! *issued* is the server's time in milliseconds. A cookie's first bit is 0, so the two cannot be confused. *early* is
//! 1 if the server accepts early data ([`noise::early`](crate::noise::early)) with this token. A client reads only this
//! bit. The HMAC covers the version, the time, the client's address and the id. The port is left out, because the
//! client's next socket has another one. By the id the server detects a second use.

use crate::VERSION;
use crate::cookie::{COOKIE_BYTES, Cookie, address};
use narrows_base::{Duration, Time};
use ring::hmac;
use std::net::{IpAddr, SocketAddr};

/// Bytes of a token: those of a cookie, since both use the same field.
pub const TOKEN_BYTES: usize = COOKIE_BYTES;
/// Tokens older than this are invalid.
pub const MAX_TOKEN_LIFE: Duration = Duration::from_secs(24 * 3600);

const ID_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
const MARK: u64 = 1 << 63;
const EARLY: u64 = 1 << 62;

/// Random bytes that distinguish tokens.
pub type TokenId = [u8; ID_BYTES];

/// A token, opaque to the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Token(pub [u8; TOKEN_BYTES]);

/// Identifies a token at the server: the time of issue in milliseconds, and its id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TokenName {
    /// Milliseconds of the server's clock.
    pub issued: u64,
    /// Random.
    pub id: TokenId,
}

impl Token {
    /// The field of a START that may hold a cookie, if it is a token. [`TokenSecrets::verify`] checks whether the token
    /// is valid.
    pub fn of(cookie: &Cookie) -> Option<Token> {
        (cookie.0[0] & 0x80 != 0).then_some(Token(cookie.0))
    }
    /// In the form of a START's cookie field.
    pub fn as_cookie(&self) -> Cookie {
        Cookie(self.0)
    }

    /// Whether the server that issued it accepts early data with it.
    pub fn permits_early_data(&self) -> bool {
        self.0[0] & 0x40 != 0
    }

    fn parts(&self) -> Option<(u64, TokenId, &[u8])> {
        let (first, rest) = self.0.split_first_chunk::<8>()?;
        let (id, tag) = rest.split_first_chunk::<ID_BYTES>()?;
        Some((u64::from_be_bytes(*first), *id, tag))
    }
}

/// The server's secret, and the one before it.
#[derive(Debug)]
pub struct TokenSecrets {
    current: hmac::Key,
    previous: Option<hmac::Key>,
}

impl TokenSecrets {
    /// From 32 bytes of a cryptographic random source.
    pub fn new(secret: &[u8; 32]) -> TokenSecrets {
        TokenSecrets { current: hmac::Key::new(hmac::HMAC_SHA256, secret), previous: None }
    }

    /// Replaces the secret. Tokens of the old one stay good until the next replacement; so wait at least
    /// [`MAX_TOKEN_LIFE`] between two.
    pub fn rotate(&mut self, secret: &[u8; 32]) {
        let new = hmac::Key::new(hmac::HMAC_SHA256, secret);
        self.previous = Some(std::mem::replace(&mut self.current, new));
    }

    /// A token for a client at this address. `now` is by a clock that only this server reads, `id` is random. With
    /// `early`, early data are accepted with it.
    pub fn create(&self, now: Time, to: IpAddr, id: TokenId, early: bool) -> Token {
        let issued = millis(now) | MARK | if early { EARLY } else { 0 };
        let tag = hmac::sign(&self.current, &bound(issued, to, &id));
        let mut token = [0; TOKEN_BYTES];
        let parts: [&[u8]; 3] = [&issued.to_be_bytes(), &id, tag.as_ref()];
        for (to, from) in token.iter_mut().zip(parts.into_iter().flatten()) {
            *to = *from;
        }
        Token(token)
    }

    /// The token's name, if this server issued it to this address less than [`MAX_TOKEN_LIFE`] ago. The comparison runs
    /// in constant time.
    pub fn verify(&self, now: Time, from: IpAddr, token: &Token) -> Option<TokenName> {
        let (marked, id, tag) = token.parts()?;
        let issued = marked & !(MARK | EARLY);
        let age = millis(now).checked_sub(issued)?;
        if marked & MARK == 0 || age > MAX_TOKEN_LIFE.as_nanos() / 1_000_000 {
            return None;
        }
        let bound = bound(marked, from, &id);
        let mut secrets = std::iter::once(&self.current).chain(&self.previous);
        secrets
            .any(|secret| {
                let full = hmac::sign(secret, &bound);
                let right = full.as_ref().get(..TAG_BYTES).unwrap_or_default();
                subtle::ConstantTimeEq::ct_eq(right, tag).into()
            })
            .then_some(TokenName { issued, id })
    }
}

fn millis(now: Time) -> u64 {
    now.as_nanos() / 1_000_000
}

const BOUND: usize = 16 + 4 + 8 + 16 + ID_BYTES;

/// The fields that a token is bound to; each has a fixed length.
fn bound(issued: u64, from: IpAddr, id: &TokenId) -> [u8; BOUND] {
    let mut bytes = [0; BOUND];
    let address = address(SocketAddr::new(from, 0));
    let parts: [&[u8]; 5] = [
        b"rrtp token\0\0\0\0\0\0",
        &VERSION.to_be_bytes(),
        &issued.to_be_bytes(),
        address.get(..16).unwrap_or_default(),
        id,
    ];
    for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *from;
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CookieSecrets;

    fn at(s: u64) -> Time {
        Time::from_nanos(s * 1_000_000_000)
    }
    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn token_is_valid_for_its_address_for_a_day() {
        let secrets = TokenSecrets::new(&[1; 32]);
        let client = ip("192.0.2.7");
        let day = 24 * 3600;
        let token = secrets.create(at(105), client, [9; 12], false);
        let good = |now, address, token: &Token| secrets.verify(now, address, token).is_some();
        for now in [105, 106, 105 + day] {
            assert!(good(at(now), client, &token), "at {now} s");
        }
        for now in [0, 104, 106 + day, 1_000_000_000] {
            assert!(!good(at(now), client, &token), "at {now} s");
        }
        assert!(good(at(106), ip("::ffff:192.0.2.7"), &token));
        assert!(!good(at(106), ip("192.0.2.8"), &token));
        assert!(!good(at(106), ip("2001:db8::7"), &token));
        assert_eq!(TokenSecrets::new(&[2; 32]).verify(at(106), client, &token), None);
        for bit in 0..8 * TOKEN_BYTES {
            let mut forged = token;
            forged.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!good(at(106), client, &forged), "bit {bit}");
        }
    }

    #[test]
    fn the_previous_secret_holds_and_the_one_before_does_not() {
        let mut secrets = TokenSecrets::new(&[1; 32]);
        let client = ip("2001:db8::1");
        let token = secrets.create(at(1), client, [9; 12], true);
        secrets.rotate(&[2; 32]);
        let name = secrets.verify(at(2), client, &token);
        assert_eq!(name, Some(TokenName { issued: 1000, id: [9; 12] }));
        secrets.rotate(&[3; 32]);
        assert_eq!(secrets.verify(at(2), client, &token), None);
    }

    /// At any time of the server's clock, a cookie is not read as a token, nor a token as a cookie.
    #[test]
    fn tokens_and_cookies_cannot_be_mistaken() {
        for now in [Time::ZERO, at(100), Time::from_nanos(u64::MAX / 2), Time::NEVER] {
            let from: SocketAddr = "192.0.2.7:9".parse().unwrap();
            let cookie = CookieSecrets::new(&[1; 32]).create(now, from, &[5; 16], VERSION);
            assert_eq!(Token::of(&cookie), None, "{now:?}");
            let secrets = TokenSecrets::new(&[1; 32]);
            for early in [false, true] {
                let token = secrets.create(now, from.ip(), [0; 12], early);
                assert_eq!(Token::of(&token.as_cookie()), Some(token));
                assert!(secrets.verify(now, from.ip(), &token).is_some());
                assert_eq!(token.permits_early_data(), early);
            }
        }
    }
}
