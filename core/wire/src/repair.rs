//! The content of a REPAIR: the XOR of the frames of several earlier packets, from which one of them can be rebuilt.
//!
//! ```text
//! | distance (varint) | n (1) | bitmap (n bytes) | code … |
//! ```
//!
//! Bit `i` of the bitmap (bit `i % 8` of byte `i / 8`) is the packet number that is `distance - i` below that
//! of the packet with the REPAIR. The code is the XOR of the *symbols* of these packets: a packet's frames (its payload
//! behind the prelude), one byte 1, and zeros to the length of the longest.

use crate::bytes::{BufferFull, ByteReader, Malformed, Sink, varint_len};

/// Longest bitmap in bytes: a REPAIR spans 128 packet numbers.
pub const MAX_BITMAP_BYTES: usize = 16;
/// A REPAIR's distance at most.
pub const MAX_DISTANCE: u64 = 0x3fff;
/// Largest overhead of a REPAIR of one packet beyond that packet's frames: type, length, distance, bitmap with its
/// length, the symbol's last byte.
pub const MAX_OVERHEAD: usize = 1 + 2 + 2 + 1 + MAX_BITMAP_BYTES + 1;

/// Ends the frames in a symbol.
const END: u8 = 1;

/// A REPAIR's content.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RepairFields<'a> {
    /// The packet's own number minus that of the bitmap's first bit.
    pub distance: u64,
    /// Which numbers from there on: 1 to [`MAX_BITMAP_BYTES`] bytes.
    pub bitmap: &'a [u8],
    /// The XOR of their symbols.
    pub code: &'a [u8],
}

impl<'a> RepairFields<'a> {
    /// Reads the content of a REPAIR.
    ///
    /// # Errors
    /// The content is truncated, its bitmap is empty or too long, or it names a packet that is not below its own.
    pub fn read(body: &'a [u8]) -> Result<RepairFields<'a>, Malformed> {
        let mut source = ByteReader::new(body);
        let distance = source.varint()?;
        let length = usize::from(source.byte()?);
        let bitmap = source.take(length)?;
        let repair = RepairFields { distance, bitmap, code: source.rest() };
        if bitmap.len() > MAX_BITMAP_BYTES || distance > MAX_DISTANCE {
            return Err(Malformed::new("a repair of packets too far apart"));
        }
        match repair.places().last() {
            None => Err(Malformed::new("a REPAIR without packets")),
            Some(last) if last >= distance => {
                Err(Malformed::new("a repair of a packet that is no earlier one"))
            }
            Some(_) => Ok(repair),
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// It does not fit.
    pub fn write(&self, sink: &mut Sink<'_>) -> Result<(), BufferFull> {
        sink.varint(self.distance)?;
        sink.byte(self.bitmap.len() as u8)?;
        sink.put(self.bitmap)?;
        sink.put(self.code)
    }
    /// Bytes that [`write`](RepairFields::write) writes.
    pub fn len(&self) -> usize {
        varint_len(self.distance) + 1 + self.bitmap.len() + self.code.len()
    }
    /// Always false: a REPAIR has at least a distance.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The numbers of the packets that it repairs, in ascending order, if its own is `number`; those below 0 are left
    /// out.
    pub fn numbers(&self, number: u64) -> impl Iterator<Item = u64> + use<'a> {
        let distance = self.distance;
        self.places().filter_map(move |place| number.checked_sub(distance - place))
    }
    fn places(&self) -> impl Iterator<Item = u64> + use<'a> {
        let bits = self.bitmap.iter().enumerate();
        bits.flat_map(|(n, byte)| {
            (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| (n * 8 + bit) as u64)
        })
    }
}

/// The bitmap of ascending numbers, from the first on, and the number of its bytes in use. `None` if there are no
/// numbers, or they are too far apart.
pub fn bitmap(numbers: impl Iterator<Item = u64>) -> Option<([u8; MAX_BITMAP_BYTES], usize)> {
    let mut bits = [0; MAX_BITMAP_BYTES];
    let mut used = 0;
    let mut first = None;
    for number in numbers {
        let place = number.checked_sub(*first.get_or_insert(number))?;
        let byte = bits.get_mut(usize::try_from(place / 8).ok()?)?;
        *byte |= 1 << (place % 8);
        used = (place / 8) as usize + 1;
    }
    first.map(|_| (bits, used))
}

/// Adds a packet's symbol to a code, which grows to its length.
pub fn add_symbol(code: &mut Vec<u8>, frames: &[u8]) {
    if code.len() <= frames.len() {
        code.resize(frames.len() + 1, 0);
    }
    code.iter_mut().zip(frames.iter().chain(&[END])).for_each(|(sum, byte)| *sum ^= byte);
}

/// The frames of a symbol. `None` if the symbol is malformed.
pub fn frames_of_symbol(symbol: &[u8]) -> Option<&[u8]> {
    let last = symbol.iter().rposition(|byte| *byte != 0)?;
    let (frames, end) = symbol.split_at_checked(last)?;
    (end.first() == Some(&END)).then_some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::{btree_map, vec};
    use proptest::prelude::*;

    proptest! {
        /// The code and all packets but one restore the missing one. With two missing, they do not.
        #[test]
        fn any_one_that_is_missing_comes_back(
            packets in btree_map(0u64..128, vec(any::<u8>(), 0..200), 1..30),
            from in 0u64..1 << 40, behind in 1u64..100, lost in any::<prop::sample::Index>(),
        ) {
            let numbers: Vec<u64> = packets.keys().map(|n| from + n).collect();
            let mut code = Vec::new();
            packets.values().for_each(|frames| add_symbol(&mut code, frames));
            let (bits, used) = bitmap(numbers.iter().copied()).unwrap();
            let own = numbers[numbers.len() - 1] + behind;
            let repair = RepairFields { distance: own - numbers[0], bitmap: &bits[..used], code: &code };
            let mut buffer = [0; 500];
            let mut sink = Sink::new(&mut buffer);
            repair.write(&mut sink).unwrap();
            prop_assert_eq!(sink.used(), repair.len());
            let longest = packets.values().map(Vec::len).max().unwrap();
            prop_assert!(sink.used() + 3 <= longest + MAX_OVERHEAD);
            let read = RepairFields::read(sink.written()).unwrap();
            prop_assert_eq!(read, repair);
            prop_assert_eq!(read.numbers(own).collect::<Vec<_>>(), numbers);
            let lost = lost.index(packets.len());
            let mut symbol = read.code.to_vec();
            for (n, frames) in packets.values().enumerate().filter(|(n, _)| *n != lost) {
                let _ = n;
                add_symbol(&mut symbol, frames);
            }
            prop_assert_eq!(symbol.len(), code.len());
            prop_assert_eq!(frames_of_symbol(&symbol), packets.values().nth(lost).map(Vec::as_slice));
        }

        #[test]
        fn any_bytes_are_read_or_refused(body in vec(any::<u8>(), 0..60), own in any::<u64>()) {
            if let Ok(repair) = RepairFields::read(&body) {
                prop_assert!(repair.numbers(own).all(|n| n < own));
                prop_assert!(repair.numbers(own).count() <= 8 * MAX_BITMAP_BYTES);
            }
            let _ = frames_of_symbol(&body);
        }
    }

    #[test]
    fn repair_without_earlier_packets_is_refused() {
        for (body, why) in [
            (&[][..], "empty"),
            (&[5, 0, 1], "no bitmap"),
            (&[5, 1, 0, 1], "no bit"),
            (&[5, 2, 1], "cut off"),
            (&[5, 1, 1 << 5, 1], "itself"),
            (&[0, 1, 1, 1], "itself, too"),
            (&[0x80, 0, 0x40, 0, 1, 1, 1], "too far"),
            (&[63, 17, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], "a long bitmap"),
        ] {
            assert!(RepairFields::read(body).is_err(), "{why}");
        }
        let last = RepairFields::read(&[5, 1, 1 << 4, 1]).unwrap();
        assert_eq!(last.numbers(100).collect::<Vec<_>>(), [99]);
        assert_eq!(last.numbers(0).count(), 0, "there is no number below 0");
    }

    #[test]
    fn numbers_too_far_apart_have_no_bitmap() {
        assert!(bitmap([7, 134].into_iter()).is_some());
        assert!(bitmap([7, 135].into_iter()).is_none());
        assert!(bitmap([].into_iter()).is_none());
    }
}
