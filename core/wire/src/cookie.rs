//! The cookie of a SYN-ECHO, which lets the server keep no state for a SYN.
//!
//! ```text
//! | bucket (4) | HMAC-SHA256 (32) |
//! ```
//!
//! The bucket is the server's time in units of 10 s. The HMAC covers version, bucket, the client's address, port and
//! nonce. A cookie is accepted in its own bucket and in the next three.

use narrows_base::{Duration, Time};
use ring::hmac;
use std::net::{IpAddr, SocketAddr};

/// Length of a cookie in bytes.
pub const COOKIE_BYTES: usize = 4 + 32;
const BUCKET: Duration = Duration::from_secs(10);
/// Buckets after its own in which a cookie is valid. A START with it arrives one round trip after SYN-ECHO has left.
const FURTHER_BUCKETS: u64 = 3;
/// A cookie is valid for at least this long.
pub const MIN_COOKIE_LIFE: Duration = BUCKET.saturating_mul(FURTHER_BUCKETS);
/// A cookie is valid for less than this.
pub const MAX_COOKIE_LIFE: Duration = BUCKET.saturating_mul(FURTHER_BUCKETS + 1);

/// A cookie, opaque to the client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cookie(pub [u8; COOKIE_BYTES]);

impl Cookie {
    /// In a START of a client that has neither a cookie nor a token. No server issues it: its tag would be 0.
    pub const NONE: Cookie = Cookie([0; COOKIE_BYTES]);
}

/// The server's secret and the previous one.
#[derive(Debug)]
pub struct CookieSecrets {
    current: hmac::Key,
    previous: Option<hmac::Key>,
}

impl CookieSecrets {
    /// From 32 bytes of a cryptographic random source.
    pub fn new(secret: &[u8; 32]) -> CookieSecrets {
        CookieSecrets { current: hmac::Key::new(hmac::HMAC_SHA256, secret), previous: None }
    }

    /// Replaces the secret. Cookies made with the old one stay valid until the next replacement, so
    /// wait at least [`MAX_COOKIE_LIFE`] between two.
    pub fn rotate(&mut self, secret: &[u8; 32]) {
        let new = hmac::Key::new(hmac::HMAC_SHA256, secret);
        self.previous = Some(std::mem::replace(&mut self.current, new));
    }

    /// The cookie for a SYN. `now` may come from any clock, as long as the same clock is used for
    /// checking.
    pub fn create(&self, now: Time, from: SocketAddr, nonce: &[u8; 16], version: u32) -> Cookie {
        let bucket = bucket(now);
        let tag = hmac::sign(&self.current, &bound(bucket, from, nonce, version));
        let mut cookie = [0; COOKIE_BYTES];
        let (front, back) = cookie.split_at_mut(4);
        front.copy_from_slice(&bucket.to_be_bytes());
        back.copy_from_slice(tag.as_ref());
        Cookie(cookie)
    }

    /// Whether this server made the cookie for this address, nonce and version less than four
    /// buckets ago. Compares in constant time.
    pub fn is_valid(
        &self,
        now: Time,
        from: SocketAddr,
        nonce: &[u8; 16],
        version: u32,
        cookie: &Cookie,
    ) -> bool {
        let Some((front, tag)) = cookie.0.split_first_chunk::<4>() else { return false };
        let baked = u32::from_be_bytes(*front);
        // Bucket numbers must not wrap below zero.
        if bucket(now).checked_sub(baked).is_none_or(|age| u64::from(age) > FURTHER_BUCKETS) {
            return false;
        }
        let bound = bound(baked, from, nonce, version);
        std::iter::once(&self.current)
            .chain(&self.previous)
            .any(|secret| hmac::verify(secret, &bound, tag).is_ok())
    }
}

/// 32 bits of buckets last for 1361 years.
fn bucket(now: Time) -> u32 {
    u32::try_from(now.as_nanos() / BUCKET.as_nanos()).unwrap_or(u32::MAX)
}

const BOUND: usize = 16 + 4 + 4 + 18 + 16;

/// The HMAC's input. Every field has a fixed length, so that different inputs cannot give the same
/// bytes.
fn bound(bucket: u32, from: SocketAddr, nonce: &[u8; 16], version: u32) -> [u8; BOUND] {
    let mut bytes = [0; BOUND];
    let parts: [&[u8]; 5] = [
        b"rrtp cookie\0\0\0\0\0",
        &version.to_be_bytes(),
        &bucket.to_be_bytes(),
        &address(from),
        nonce,
    ];
    for (to, from) in bytes.iter_mut().zip(parts.into_iter().flatten()) {
        *to = *from;
    }
    bytes
}

/// Address and port in 18 bytes. IPv4 is written as IPv6 (`::ffff:a.b.c.d`), as dual-stack sockets
/// report it. The IPv6 flow label and scope are ignored.
pub(crate) fn address(from: SocketAddr) -> [u8; 18] {
    let ip = match from.ip() {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    };
    let mut bytes = [0; 18];
    let (front, back) = bytes.split_at_mut(16);
    front.copy_from_slice(&ip.octets());
    back.copy_from_slice(&from.port().to_be_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VERSION;

    const NONCE: [u8; 16] = [5; 16];
    fn at(s: u64) -> Time {
        Time::from_nanos(s * 1_000_000_000)
    }
    fn from(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn cookie_is_bound_to_address_nonce_version_and_time() {
        let secrets = CookieSecrets::new(&[1; 32]);
        let client = from("192.0.2.7:40000");
        let cookie = secrets.create(at(105), client, &NONCE, VERSION);
        let good = |now, address, nonce: &[u8; 16], version, cookie: &Cookie| {
            secrets.is_valid(now, address, nonce, version, cookie)
        };
        for now in [100, 105, 110, 119, 139] {
            assert!(good(at(now), client, &NONCE, VERSION, &cookie), "at {now} s");
        }
        for now in [0, 99, 140, 150, 1_000_000] {
            assert!(!good(at(now), client, &NONCE, VERSION, &cookie), "at {now} s");
        }
        assert!(good(at(105), from("[::ffff:192.0.2.7]:40000"), &NONCE, VERSION, &cookie));
        for other in ["192.0.2.8:40000", "192.0.2.7:40001", "[2001:db8::7]:40000"] {
            assert!(!good(at(105), from(other), &NONCE, VERSION, &cookie), "{other}");
        }
        assert!(!good(at(105), client, &[6; 16], VERSION, &cookie));
        assert!(!good(at(105), client, &NONCE, VERSION + 1, &cookie));
        assert!(!CookieSecrets::new(&[2; 32]).is_valid(at(105), client, &NONCE, VERSION, &cookie));
        for bit in 0..8 * COOKIE_BYTES {
            let mut forged = cookie;
            forged.0[bit / 8] ^= 1 << (bit % 8);
            assert!(!good(at(105), client, &NONCE, VERSION, &forged), "bit {bit}");
        }
    }

    #[test]
    fn the_previous_secret_holds_and_the_one_before_does_not() {
        let mut secrets = CookieSecrets::new(&[1; 32]);
        let client = from("[2001:db8::1]:9");
        let cookie = secrets.create(at(1), client, &NONCE, VERSION);
        secrets.rotate(&[2; 32]);
        assert!(secrets.is_valid(at(2), client, &NONCE, VERSION, &cookie));
        assert_ne!(secrets.create(at(1), client, &NONCE, VERSION), cookie);
        secrets.rotate(&[3; 32]);
        assert!(!secrets.is_valid(at(2), client, &NONCE, VERSION, &cookie));
    }

    #[test]
    fn a_clock_at_its_end_panics_nowhere() {
        let secrets = CookieSecrets::new(&[1; 32]);
        let client = from("192.0.2.7:40000");
        let cookie = secrets.create(Time::NEVER, client, &NONCE, VERSION);
        assert!(secrets.is_valid(Time::NEVER, client, &NONCE, VERSION, &cookie));
        assert!(!secrets.is_valid(at(0), client, &NONCE, VERSION, &cookie));
    }
}
