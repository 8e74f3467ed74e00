//! A policer: a token bucket without a queue, behind the transmitter. Packets that find too few tokens are dropped.
//! Carriers limit subscribers in this way where a shaper would need memory.
//!
//! The bucket is stored as the time at which it is full again (the generic cell rate algorithm of ITU-T I.371), so that
//! no token is lost to rounding.

use narrows_base::rate::Serializer;
use narrows_base::{Duration, Rate, Time};

/// A policer's parameters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PolicerConfig {
    /// Rate at which tokens are added.
    pub rate: Rate,
    /// Capacity of the bucket in bytes; it is full at first.
    pub burst: u64,
}

/// A token bucket.
#[derive(Debug)]
pub(crate) struct Policer {
    tokens: Serializer,
    /// Time to fill an empty bucket.
    fill: Duration,
    /// When the bucket is full again.
    full: Time,
}

impl Policer {
    pub fn new(config: &PolicerConfig) -> Policer {
        let (fill, _) = config.rate.transmission(config.burst);
        Policer { tokens: Serializer::new(config.rate), fill, full: Time::ZERO }
    }
    /// Whether a packet of `bytes` bytes may pass at `now`; if so, its tokens are taken.
    #[inline]
    pub fn admits(&mut self, now: Time, bytes: u32) -> bool {
        let mut tokens = self.tokens;
        let full = self.full.max(now) + tokens.next(bytes);
        if full.since(now) > self.fill {
            return false;
        }
        self.tokens = tokens;
        self.full = full;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn policer(bps: u64, burst: u64) -> Policer {
        Policer::new(&PolicerConfig { rate: Rate::from_bps(bps), burst })
    }

    #[test]
    fn a_burst_passes_at_once_and_then_the_rate() {
        // 1000 bytes at 8 Mbit/s are a millisecond.
        let mut p = policer(8_000_000, 5000);
        let at = |us: u64| Time::ZERO + Duration::from_micros(us);
        let burst: Vec<bool> = (0..7).map(|_| p.admits(at(10_000), 1000)).collect();
        assert_eq!(burst, [true, true, true, true, true, false, false]);
        let after: Vec<bool> = (1..9).map(|n| p.admits(at(10_000 + 500 * n), 1000)).collect();
        assert_eq!(after, [false, true, false, true, false, true, false, true]);
        // No more than a burst is saved.
        let idle = (0..7).filter(|_| p.admits(at(1_000_000), 1000)).count();
        assert_eq!(idle, 5);
        assert!(!p.admits(at(9_000_000), 5001), "more than the bucket holds never passes");
    }

    proptest! {
        /// In any stretch of time the passing bytes are at most the burst plus the rate times the stretch. A sender
        /// that keeps to the rate loses no packet.
        #[test]
        fn passed_bytes_are_bounded_by_the_bucket(
            packets in prop::collection::vec((0u64..3000, 40u32..1500), 1..200),
            bps in 100_000u64..1_000_000_000,
            burst in 1500u64..50_000,
        ) {
            let mut p = policer(bps, burst);
            let mut now = Time::ZERO;
            let mut passed = Vec::new();
            for (gap, bytes) in &packets {
                now += Duration::from_micros(*gap);
                if p.admits(now, *bytes) {
                    passed.push((now, u64::from(*bytes)));
                }
            }
            for (i, (from, _)) in passed.iter().enumerate() {
                let mut sum = 0;
                for (to, bytes) in &passed[i..] {
                    sum += bytes;
                    let max = burst as f64 + bps as f64 / 8.0 * to.since(*from).as_secs_f64();
                    prop_assert!(sum as f64 <= max + 1.0, "{sum} {max}");
                }
            }
            let mut slow = policer(bps, burst);
            let mut now = Time::ZERO;
            for (_, bytes) in &packets {
                prop_assert!(slow.admits(now, *bytes));
                now += Rate::from_bps(bps).transmission(u64::from(*bytes)).0 + Duration::from_nanos(1);
            }
        }
    }
}
