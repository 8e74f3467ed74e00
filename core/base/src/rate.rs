//! Rates in whole bit/s.

use crate::time::Duration;
use std::fmt;

/// A rate in bit/s, held in 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

/// The highest rate of a link: 1000 Tbit/s. At higher rates, whole windows of packets would
/// serialise in zero nanoseconds.
pub const MAX_RATE: Rate = Rate(1_000_000_000_000_000);

impl Rate {
    /// From bit/s.
    pub const fn from_bps(bps: u64) -> Rate {
        Rate(bps)
    }
    /// From bit/s as a float: rounded, saturating; NaN and negative values become zero.
    pub fn from_bps_f64(bps: f64) -> Rate {
        Rate((bps + 0.5) as u64)
    }
    /// In bit/s.
    #[inline]
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// The sum of two rates; the highest representable one if it would overflow.
    pub const fn saturating_add(self, other: Rate) -> Rate {
        Rate(self.0.saturating_add(other.0))
    }
    /// Time to send `bytes`: whole nanoseconds, and a remainder in units of 1/rate ns. A caller that carries the
    /// remainder over accumulates no rounding error. At rate zero the time is [`Duration::MAX`].
    ///
    /// ```
    /// use narrows_base::Rate;
    /// let (ns, rest) = Rate::from_bps(1_500_000).transmission(1000);
    /// assert_eq!((ns.as_nanos(), rest), (5_333_333, 500_000));
    /// ```
    pub fn transmission(self, bytes: u64) -> (Duration, u64) {
        if self.0 == 0 {
            return (Duration::MAX, 0);
        }
        let ns_bits = u128::from(bytes) * 8_000_000_000;
        let rate = u128::from(self.0);
        let ns = u64::try_from(ns_bits / rate).unwrap_or(u64::MAX);
        (Duration::from_nanos(ns), (ns_bits % rate) as u64)
    }
}

impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Rate {
    /// Formats the rate with a unit: `1.5Mbit/s`, `384kbit/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let b = self.0 as f64;
        match self.0 {
            1_000_000_000.. => write!(f, "{}Gbit/s", b / 1e9),
            1_000_000.. => write!(f, "{}Mbit/s", b / 1e6),
            1_000.. => write!(f, "{}kbit/s", b / 1e3),
            _ => write!(f, "{b}bit/s"),
        }
    }
}

/// Serialisation times on a link of constant rate; the remainder below a nanosecond is carried from
/// packet to packet. It caches the last packet size, because the division is the costliest
/// instruction per packet.
#[derive(Clone, Copy, Debug)]
pub struct Serializer {
    rate: u64,
    carry: u64,
    size: u32,
    whole: u64,
    rest: u64,
}

impl Serializer {
    /// For a link of `rate`.
    pub fn new(rate: Rate) -> Serializer {
        Serializer { rate: rate.0, carry: 0, size: u32::MAX, whole: 0, rest: 0 }
    }
    /// Rate of the next transmission.
    pub fn rate(&self) -> Rate {
        Rate(self.rate)
    }
    /// Serialisation time of the next packet, which has `size` bytes.
    #[inline]
    pub fn next(&mut self, size: u32) -> Duration {
        if size != self.size {
            let (d, rest) = Rate(self.rate).transmission(u64::from(size));
            self.size = size;
            self.whole = d.as_nanos();
            self.rest = rest;
        }
        let mut ns = self.whole;
        let carry = self.carry.wrapping_add(self.rest);
        // rest < rate and carry < rate; a sum that wraps has certainly passed the rate.
        if carry >= self.rate || carry < self.rest {
            self.carry = carry.wrapping_sub(self.rate);
            ns = ns.saturating_add(1);
        } else {
            self.carry = carry;
        }
        Duration::from_nanos(ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remainders_are_carried_not_dropped() {
        // 1500 packets of 1000 B at 1.5 Mbit/s take 8 s exactly, though 5 333 333.3 ns each.
        let mut p = Serializer::new(Rate::from_bps(1_500_000));
        let total: u64 = (0..1500).map(|_| p.next(1000).as_nanos()).sum();
        assert_eq!(total, 8_000_000_000);
    }

    #[test]
    fn absurd_rates_do_not_overflow() {
        assert_eq!(Rate::from_bps(0).transmission(1000).0, Duration::MAX);
        assert_eq!(Rate::from_bps(1).transmission(65_535).0, Duration::from_secs(524_280));
        let mut p = Serializer::new(Rate::from_bps(u64::MAX));
        assert_eq!(p.next(1500).as_nanos(), 0);
    }
}
