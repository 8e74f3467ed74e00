//! The key schedule: from the finished handshake to the keys of packets, and from each key phase to
//! the next. All by ring's HKDF-SHA256 (RFC 5869):
//!
//! ```text
//! secret 0 of a direction = Extract(salt: handshake hash, key: Noise's key of that direction)
//! key n                   = Expand(secret n, "rrtp0 key", 32)
//! secret n + 1            = Expand(secret n, "rrtp0 next", 32)
//! secret 0 of path p      = Expand(secret 0, "rrtp0 path" || p (1), 32)
//! ```
//!
//! The first path, 0, uses secret 0 itself. Each further path has a secret of its own, so that key updates and the
//! cipher's limits count for each path alone.
//!
//! Noise's own transport is not used because it takes no associated data, so a packet's header would not be
//! authenticated, and because its Rekey does not allow a phase bit while packets of the old key are in flight. So
//! `Split()`'s two keys are taken out (`snow`'s `risky-raw-split`) and used only for the extraction above. Once the
//! handshake is authentic, Noise guarantees that they are independent and known only to the two ends. HKDF is a PRF
//! keyed by them. The labels keep its outputs apart, and the salt binds them to this handshake, prologue and identities
//! included. A secret is erased when its successor has been made, so a stolen key cannot open packets that were sealed
//! under an earlier one.

use ring::aead::{AES_256_GCM, Algorithm, CHACHA20_POLY1305, LessSafeKey, UnboundKey};
use ring::hkdf;

/// An X25519 public key, which identifies an endpoint.
pub type PublicKey = [u8; 32];

/// The cipher suite of a connection, chosen by the client. Every implementation has both.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Suite {
    /// Fastest on processors with AES instructions.
    Aes256Gcm,
    /// Fastest on processors without.
    ChaCha20Poly1305,
}

impl Suite {
    /// Both suites.
    pub const ALL: [Suite; 2] = [Suite::Aes256Gcm, Suite::ChaCha20Poly1305];

    /// Its code in a START.
    pub const fn code(self) -> u8 {
        match self {
            Suite::Aes256Gcm => 1,
            Suite::ChaCha20Poly1305 => 2,
        }
    }
    /// The suite with this code in a START.
    pub const fn from_code(code: u8) -> Option<Suite> {
        match code {
            1 => Some(Suite::Aes256Gcm),
            2 => Some(Suite::ChaCha20Poly1305),
            _ => None,
        }
    }
    /// The Noise protocol of the handshake.
    pub const fn noise(self) -> &'static str {
        match self {
            Suite::Aes256Gcm => "Noise_XX_25519_AESGCM_SHA256",
            Suite::ChaCha20Poly1305 => "Noise_XX_25519_ChaChaPoly_SHA256",
        }
    }
    /// The Noise protocol of the handshake that begins with early data.
    pub const fn early_noise(self) -> &'static str {
        match self {
            Suite::Aes256Gcm => "Noise_IK_25519_AESGCM_SHA256",
            Suite::ChaCha20Poly1305 => "Noise_IK_25519_ChaChaPoly_SHA256",
        }
    }
    fn aead(self) -> &'static Algorithm {
        match self {
            Suite::Aes256Gcm => &AES_256_GCM,
            Suite::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        }
    }
}

/// A direction's secret of one key phase.
pub(crate) struct Secret {
    suite: Suite,
    prk: hkdf::Prk,
}

const KEY_LABEL: &[u8] = b"rrtp0 key";
const NEXT_LABEL: &[u8] = b"rrtp0 next";
const PATH_LABEL: &[u8] = b"rrtp0 path";

impl Secret {
    /// The secret of phase 0.
    pub(crate) fn first(suite: Suite, hash: &[u8], split: &[u8; 32]) -> Secret {
        Secret { suite, prk: hkdf::Salt::new(hkdf::HKDF_SHA256, hash).extract(split) }
    }

    /// The key of this phase. (`None` never occurs: HKDF refuses only outputs above 255 hashes.)
    pub(crate) fn key(&self) -> Option<LessSafeKey> {
        let okm = self.prk.expand(&[KEY_LABEL], self.suite.aead()).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(okm)))
    }

    /// The key of this phase as bytes, for the test vectors.
    #[cfg(test)]
    pub(crate) fn raw_key(&self) -> [u8; 32] {
        let mut key = [0; 32];
        let okm = self.prk.expand(&[KEY_LABEL], hkdf::HKDF_SHA256).unwrap();
        okm.fill(&mut key).unwrap();
        key
    }

    /// The secret of the next phase.
    pub(crate) fn next(&self) -> Option<Secret> {
        let okm = self.prk.expand(&[NEXT_LABEL], hkdf::HKDF_SHA256).ok()?;
        Some(Secret { suite: self.suite, prk: hkdf::Prk::from(okm) })
    }

    /// The secret of phase 0 of a further path.
    pub(crate) fn path(&self, path: u8) -> Option<Secret> {
        let number = [path];
        let label = [PATH_LABEL, &number];
        let okm = self.prk.expand(&label, hkdf::HKDF_SHA256).ok()?;
        Some(Secret { suite: self.suite, prk: hkdf::Prk::from(okm) })
    }
}
