//! Control messages that the two ends exchange on a stream before and during the media.
//!
//! ```text
//! sender:   | version (1) | layers beyond the base (1) | 0 (2) | latency, ms (4) |     first
//! receiver: | answer (1) |                            0: come; 1: another sends; 2: that cannot be
//! receiver: | parts | missed | came late | repaired | datagrams | bytes |     8 bytes each, every second
//! ```

use crate::receiver::ReceiverCounters;
use narrows_base::Duration;
use narrows_congestion::layers::MAX_LAYERS;

/// Name of the application protocol if the sender connects.
pub const PUSH: &str = "narrows-media/1";
/// Name of the application protocol if the receiver connects. The messages of both protocols are the same.
pub const PULL: &str = "narrows-media-pull/1";
/// Length of the sender's hello in bytes.
pub const HELLO: usize = 8;
/// Length of a status message in bytes.
pub const STATUS: usize = 48;
const VERSION: u8 = 1;
/// Permitted latencies.
pub const LATENCIES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(30);

/// A receiver's answer to a hello.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HelloReply {
    /// The sender may send media.
    Come,
    /// The receiver is busy with another sender.
    Busy,
    /// The hello was invalid.
    Bad,
}

impl HelloReply {
    /// Code on the wire.
    pub fn code(self) -> u8 {
        match self {
            HelloReply::Come => 0,
            HelloReply::Busy => 1,
            HelloReply::Bad => 2,
        }
    }
    /// Decodes a code; an unknown code means [`HelloReply::Bad`].
    pub fn from_code(code: u8) -> HelloReply {
        match code {
            0 => HelloReply::Come,
            1 => HelloReply::Busy,
            _ => HelloReply::Bad,
        }
    }
}

/// Encodes a sender's hello.
pub fn hello(latency: Duration, layers: usize) -> [u8; HELLO] {
    let ms = u32::try_from(latency.as_nanos() / 1_000_000).unwrap_or(u32::MAX).to_be_bytes();
    let [a, b, c, d] = ms;
    let more = layers.clamp(1, MAX_LAYERS) - 1;
    [VERSION, more as u8, 0, 0, a, b, c, d]
}

/// Latency and number of layers in a sender's hello; `None` if its version is unknown or a value is out of range.
pub fn read_hello(bytes: [u8; HELLO]) -> Option<(Duration, usize)> {
    let [VERSION, more, _, _, a, b, c, d] = bytes else { return None };
    let latency = Duration::from_millis(u32::from_be_bytes([a, b, c, d]).into());
    let layers = usize::from(more) + 1;
    (LATENCIES.contains(&latency) && layers <= MAX_LAYERS).then_some((latency, layers))
}

/// Encodes a receiver's status message.
pub fn status(received: &ReceiverCounters) -> Vec<u8> {
    let ReceiverCounters { parts, missed, came_late, repaired, datagrams, bytes, .. } = *received;
    [parts, missed, came_late, repaired, datagrams, bytes].map(u64::to_be_bytes).concat()
}

/// Decodes a status message.
pub fn read_status(bytes: &[u8; STATUS]) -> ReceiverCounters {
    let mut numbers = bytes.chunks(8).map(|b| b.iter().fold(0, |sum, b| sum << 8 | u64::from(*b)));
    let mut next = || numbers.next().unwrap_or_default();
    ReceiverCounters {
        parts: next(),
        missed: next(),
        came_late: next(),
        repaired: next(),
        datagrams: next(),
        bytes: next(),
        ..ReceiverCounters::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn hello_reads_back_as_written(words: [u8; HELLO], numbers: [u8; STATUS]) {
            if let Some((latency, layers)) = read_hello(words) {
                prop_assert!(LATENCIES.contains(&latency) && layers <= MAX_LAYERS);
            }
            prop_assert_eq!(status(&read_status(&numbers)), numbers);
        }
    }

    #[test]
    fn impossible_latency_is_refused() {
        assert_eq!(
            read_hello(hello(Duration::from_millis(300), 3)),
            Some((Duration::from_millis(300), 3))
        );
        assert_eq!(read_hello(hello(Duration::from_millis(1), 1)), None);
        assert_eq!(read_hello(hello(Duration::MAX, 1)), None);
        assert_eq!(read_hello([2, 0, 0, 0, 0, 0, 1, 0]), None);
        assert_eq!(read_hello([1, 8, 0, 0, 0, 0, 1, 0]), None);
        let answers = [HelloReply::Come, HelloReply::Busy, HelloReply::Bad];
        assert_eq!(answers.map(|a| HelloReply::from_code(a.code())), answers);
    }
}
