//! Hints from the near side about the path by which the far side sends.
//!
//! ```text
//! near: | 3 (1) | 0 (2) | 24 (1) | rate, bit/s (8) | RTT, ns (8) | loss, 10^-9 (8) |    all ones: not known
//! far:  | 0 (1) |
//! ```

use crate::request::HEAD;
use narrows_base::{Duration, Rate};
use narrows_congestion::PathHints;

/// The head of a request with hints.
pub const MARK: [u8; HEAD] = [3, 0, 0, LENGTH as u8];
/// Bytes after the head.
pub const LENGTH: usize = 24;

/// Encodes the hints, with the head.
pub fn bytes(hints: &PathHints) -> Vec<u8> {
    let PathHints { rate, rtt, loss } = hints;
    let loss = loss.map(|share| (share * 1e9).round() as u64);
    let mut bytes = MARK.to_vec();
    for number in [rate.map(Rate::as_bps), rtt.map(Duration::as_nanos), loss] {
        bytes.extend(number.unwrap_or(u64::MAX).to_be_bytes());
    }
    bytes
}

/// Reads the bytes after the head. Values outside of the possible range count as unknown.
pub fn read(bytes: [u8; LENGTH]) -> PathHints {
    let number = |at: usize, min: u64, max: u64| {
        let bytes = bytes.get(at..at + 8).and_then(|b| b.try_into().ok())?;
        Some(u64::from_be_bytes(bytes)).filter(|n| (min..=max).contains(n))
    };
    PathHints {
        rate: number(0, 1, 10_000_000_000_000).map(Rate::from_bps),
        rtt: number(8, 1, 3_600_000_000_000).map(Duration::from_nanos),
        loss: number(16, 0, 999_999_999).map(|n| n as f64 * 1e-9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// For arbitrary bytes the hints are in the possible range, and survive encoding.
        #[test]
        fn hints_are_possible_and_arrive(bytes: [u8; LENGTH], small in 0u64..2_000_000_000) {
            let mut bytes = bytes;
            bytes[16..].copy_from_slice(&small.to_be_bytes());
            let hints = read(bytes);
            prop_assert!(hints.rate.is_none_or(|rate| rate.as_bps() > 0));
            prop_assert!(hints.loss.is_none_or(|loss| (0.0..1.0).contains(&loss)));
            let again = super::bytes(&hints);
            let (head, rest) = again.split_first_chunk::<HEAD>().unwrap();
            prop_assert_eq!(*head, MARK);
            prop_assert_eq!(read(rest.try_into().unwrap()), hints);
        }
    }
}
