//! The fields that begin every sealed payload: when the packet was sent, and the ack of ack.
//!
//! ```text
//! | S S | stamp, 30 bits | distance: 0, 1, 2 or 4 bytes as S says |
//! ```
//!
//! The stamp is the sender's clock in microseconds, modulo 2^30 (17.9 minutes); only differences are meaningful. The
//! distance, subtracted from the packet's own number, gives the sender's lowest number that is neither acknowledged nor
//! declared lost.

use crate::bytes::{BufferFull, ByteReader, Malformed, Sink};
use narrows_base::Time;

/// Minimum length of a prelude and so of a payload.
pub const MIN_PRELUDE_BYTES: usize = 4;
/// Number of different stamps: stamps are modulo this.
pub const STAMPS: u32 = 1 << 30;

/// The fields that begin every payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prelude {
    /// Send time in microseconds, modulo [`STAMPS`].
    pub stamp: u32,
    /// The packet's number minus the sender's lowest number that is neither acknowledged nor declared lost.
    pub distance: u32,
}

impl Prelude {
    /// Encoded length in bytes: 4 to 8.
    pub const fn len(&self) -> usize {
        match self.distance {
            0 => 4,
            1..=0xff => 5,
            0x100..=0xffff => 6,
            _ => 8,
        }
    }
    /// Always false.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The prelude of packet `number` sent at `now`; `least_unacked` is the lowest number of
    /// unknown outcome.
    pub fn new(now: Time, number: u64, least_unacked: u64) -> Prelude {
        let distance = number.saturating_sub(least_unacked);
        Prelude { stamp: stamp(now), distance: u32::try_from(distance).unwrap_or(u32::MAX) }
    }

    /// The lowest number that the sender of packet `number` has neither acknowledged nor declared lost.
    pub fn least_unacked(&self, number: u64) -> u64 {
        number.saturating_sub(u64::from(self.distance))
    }

    pub(crate) fn read(source: &mut ByteReader<'_>) -> Result<Prelude, Malformed> {
        let word = source.u32()?;
        let distance = source.number([0, 1, 2, 4][(word >> 30) as usize & 3])? as u32;
        Ok(Prelude { stamp: word % STAMPS, distance })
    }

    pub(crate) fn write(&self, sink: &mut Sink<'_>) -> Result<(), BufferFull> {
        if sink.room() < self.len() {
            return Err(BufferFull);
        }
        let bytes = self.len() - 4;
        let code = match bytes {
            0 => 0u32,
            1 => 1,
            2 => 2,
            _ => 3,
        };
        sink.number(u64::from((self.stamp % STAMPS) | (code << 30)), 4)?;
        sink.number(u64::from(self.distance), bytes)
    }
}

/// A time as a stamp.
pub fn stamp(time: Time) -> u32 {
    ((time.as_nanos() / 1000) % u64::from(STAMPS)) as u32
}

/// The time in microseconds that a stamp encodes, if it is within 8.9 minutes of `about`.
pub fn nearest(stamp: u32, about: u64) -> u64 {
    let all = u64::from(STAMPS);
    let ahead = (u64::from(stamp % STAMPS) + all - about % all) % all;
    if ahead < all / 2 {
        about.saturating_add(ahead)
    } else {
        about.checked_sub(all - ahead).unwrap_or(u64::from(stamp % STAMPS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_comes_back(us in 0u64..1 << 50, distance in any::<u32>(), shift in 0u32..33, about in 0u64..1 << 29, later in any::<bool>()) {
            let number = (1 << 40) + u64::from(distance.checked_shr(shift).unwrap_or(0));
            let prelude = Prelude::new(Time::from_nanos(us * 1000 + 999), number, 1 << 40);
            let mut buffer = [0; 8];
            let mut sink = Sink::new(&mut buffer);
            prelude.write(&mut sink).unwrap();
            prop_assert_eq!(sink.used(), prelude.len());
            let mut source = ByteReader::new(sink.written());
            prop_assert_eq!(Prelude::read(&mut source), Ok(prelude));
            prop_assert!(source.is_empty());
            prop_assert_eq!(prelude.least_unacked(number), 1 << 40);
            prop_assert_eq!(prelude.write(&mut Sink::new(&mut [0; 8][..prelude.len() - 1])), Err(BufferFull));
            // Half the stamps' range to either side is unambiguous.
            let about = if later { us + about } else { us.saturating_sub(about) };
            prop_assert_eq!(nearest(prelude.stamp, about), us);
        }
    }
}
