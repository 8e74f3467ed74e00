//! Random numbers: one seed, and a named stream for each part that draws.
//!
//! Every random part draws from a stream with its own name, so adding a part does not change the draws of other parts.
//! Uniform loss uses no stream at all: it is a function of (seed, link, flow, packet number), so one flow's losses do
//! not depend on which other flows exist.
//!
//! The mixer is SplitMix64 (Steele, Lea, Flood 2014); a stream applies the mixer to a counter.

/// A key for random draws: a seed with the names mixed into it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RandomKey(u64);

const STEP: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's finaliser: every input bit reaches every output bit.
#[inline]
pub const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// The top 53 bits of `bits` as a number in [0, 1).
#[inline]
pub fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

impl RandomKey {
    /// The root key of a run.
    pub const fn from_seed(seed: u64) -> RandomKey {
        RandomKey(mix(seed.wrapping_add(STEP)))
    }
    /// The key of the part called `name`, derived from this key.
    pub fn named(self, name: &str) -> RandomKey {
        // FNV-1a, then mixed: names are short and few.
        let mut h: u64 = 0xCBF2_9CE4_8422_2325;
        for b in name.bytes() {
            h = (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01B3);
        }
        RandomKey(mix(self.0 ^ mix(h)))
    }
    /// The key of the part numbered `n`, derived from this key.
    #[inline]
    pub const fn numbered(self, n: u64) -> RandomKey {
        RandomKey(mix(self.0.wrapping_add(n.wrapping_mul(STEP))))
    }
    /// This key's bits.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }
    /// A number in [0, 1) that depends only on this key and `n`.
    #[inline]
    pub fn draw(self, n: u64) -> f64 {
        unit(self.numbered(n).0)
    }
    /// A random stream that begins at this key.
    pub const fn stream(self) -> RandomStream {
        RandomStream { key: self.0, count: 0 }
    }
}

/// A sequence of pseudorandom numbers.
#[derive(Clone, Debug)]
pub struct RandomStream {
    key: u64,
    count: u64,
}

impl RandomStream {
    /// The next 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.count = self.count.wrapping_add(STEP);
        mix(self.key.wrapping_add(self.count))
    }
    /// Uniform in [0, 1).
    #[inline]
    pub fn unit(&mut self) -> f64 {
        unit(self.bits())
    }
    /// Uniform in [low, high).
    pub fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }
    /// True with probability p.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }
    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 - unit is in (0, 1], so the logarithm is finite.
        -mean * crate::math::ln(1.0 - self.unit())
    }
    /// Pareto with the given shape (> 0) and smallest value.
    pub fn pareto(&mut self, shape: f64, smallest: f64) -> f64 {
        smallest * crate::math::pow(1.0 - self.unit(), -1.0 / shape)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_told_apart_by_name_and_repeat() {
        let root = RandomKey::from_seed(1);
        let a: Vec<u64> = {
            let mut s = root.named("loss").stream();
            (0..4).map(|_| s.bits()).collect()
        };
        let b: Vec<u64> = {
            let mut s = root.named("loss").stream();
            (0..4).map(|_| s.bits()).collect()
        };
        let c: Vec<u64> = {
            let mut s = root.named("start").stream();
            (0..4).map(|_| s.bits()).collect()
        };
        assert_eq!(a, b);
        assert_ne!(a, c);
    }

    #[test]
    fn draws_have_the_right_mean_and_spread() {
        let key = RandomKey::from_seed(7).named("uniform");
        let n = 200_000u64;
        let mut sum = 0.0;
        let mut square = 0.0;
        for i in 0..n {
            let u = key.draw(i);
            sum += u;
            square += u * u;
        }
        let mean = sum / n as f64;
        let variance = square / n as f64 - mean * mean;
        assert!((mean - 0.5).abs() < 0.003, "{mean}");
        assert!((variance - 1.0 / 12.0).abs() < 0.001, "{variance}");
    }

    #[test]
    fn exponential_and_pareto_have_their_means() {
        let mut s = RandomKey::from_seed(3).named("e").stream();
        let n = 200_000;
        let e: f64 = (0..n).map(|_| s.exponential(2.0)).sum::<f64>() / f64::from(n);
        assert!((e - 2.0).abs() < 0.03, "{e}");
        let p: f64 = (0..n).map(|_| s.pareto(3.0, 2.0)).sum::<f64>() / f64::from(n);
        assert!((p - 3.0).abs() < 0.05, "{p}");
    }
}
