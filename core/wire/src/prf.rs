//! Random numbers that are unpredictable without the secret, even if earlier ones are public: HMAC-SHA256 over a
//! counter.

use ring::hmac;

/// A sequence of random numbers.
pub struct Prf {
    /// Kept in this form because the library's key type is ten times as large.
    secret: [u8; 32],
    label: &'static str,
    count: u64,
}

impl Prf {
    /// A sequence from a secret; sequences with different labels are independent.
    pub fn new(secret: &[u8; 32], label: &'static str) -> Prf {
        Prf { secret: *secret, label, count: 0 }
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.block().first_chunk::<8>().map_or(0, |b| u64::from_be_bytes(*b))
    }

    /// The next 32 bytes.
    pub fn block(&mut self) -> [u8; 32] {
        self.count = self.count.wrapping_add(1);
        let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, &self.secret));
        context.update(self.label.as_bytes());
        context.update(&self.count.to_be_bytes());
        let tag = context.sign();
        tag.as_ref().first_chunk().copied().unwrap_or_default()
    }
}

impl std::fmt::Debug for Prf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prf({}, {} drawn)", self.label, self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sequence_repeats_with_its_secret_and_label_only() {
        let draw = |secret: u8, label| {
            let mut prf = Prf::new(&[secret; 32], label);
            (0..4).map(|_| prf.bits()).collect::<Vec<_>>()
        };
        let first = draw(1, "a");
        assert_eq!(first, draw(1, "a"));
        assert!(first.iter().all(|n| first.iter().filter(|m| *m == n).count() == 1));
        for other in [draw(2, "a"), draw(1, "b")] {
            assert!(first.iter().all(|n| !other.contains(n)));
        }
    }
}
