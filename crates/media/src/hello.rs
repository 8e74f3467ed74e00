//! What the two ends say on a stream before and beside the media.
//!
//! ```text
//! sender:   | version (1) | layers beyond the base (1) | 0 (2) | latency, ms (4) |     first
//! receiver: | answer (1) |                            0: come; 1: another sends; 2: that cannot be
//! receiver: | parts | missed | came late | repaired | datagrams | bytes |     8 bytes each, every second
//! ```

use crate::receiver::Received;
use narrows_base::Duration;
use narrows_transport::layers::MAX_LAYERS;

/// The application protocol where the sender connects, and
pub const PUSH: &str = "narrows-media/1";
/// where the receiver does. The two ends say the same to each other, whoever has connected.
pub const PULL: &str = "narrows-media-pull/1";
/// Bytes of the first words.
pub const HELLO: usize = 8;
/// Bytes of a status.
pub const STATUS: usize = 48;
const VERSION: u8 = 1;
/// The shortest and the longest latency.
pub const LATENCIES: std::ops::RangeInclusive<Duration> =
    Duration::from_millis(10)..=Duration::from_secs(30);

/// A receiver's answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// Media may come.
    Come,
    /// Another sends.
    Busy,
    /// What was said could not be understood, or is not possible.
    Bad,
}

impl Answer {
    /// As it is sent.
    pub fn code(self) -> u8 {
        match self {
            Answer::Come => 0,
            Answer::Busy => 1,
            Answer::Bad => 2,
        }
    }
    /// As it was sent.
    pub fn from_code(code: u8) -> Answer {
        match code {
            0 => Answer::Come,
            1 => Answer::Busy,
            _ => Answer::Bad,
        }
    }
}

/// A sender's first words.
pub fn hello(latency: Duration, layers: usize) -> [u8; HELLO] {
    let ms = u32::try_from(latency.as_nanos() / 1_000_000).unwrap_or(u32::MAX).to_be_bytes();
    let [a, b, c, d] = ms;
    let more = layers.clamp(1, MAX_LAYERS) - 1;
    [VERSION, more as u8, 0, 0, a, b, c, d]
}

/// Latency and number of layers of a sender's first words; `None` if they are of another version, or not possible.
pub fn read_hello(bytes: [u8; HELLO]) -> Option<(Duration, usize)> {
    let [VERSION, more, _, _, a, b, c, d] = bytes else { return None };
    let latency = Duration::from_millis(u32::from_be_bytes([a, b, c, d]).into());
    let layers = usize::from(more) + 1;
    (LATENCIES.contains(&latency) && layers <= MAX_LAYERS).then_some((latency, layers))
}

/// What a receiver says of what came.
pub fn status(received: &Received) -> Vec<u8> {
    let Received { parts, missed, came_late, repaired, datagrams, bytes, .. } = *received;
    [parts, missed, came_late, repaired, datagrams, bytes].map(u64::to_be_bytes).concat()
}

/// The same as it was sent.
pub fn read_status(bytes: &[u8; STATUS]) -> Received {
    let mut numbers = bytes.chunks(8).map(|b| b.iter().fold(0, |sum, b| sum << 8 | u64::from(*b)));
    let mut next = || numbers.next().unwrap_or_default();
    Received {
        parts: next(),
        missed: next(),
        came_late: next(),
        repaired: next(),
        datagrams: next(),
        bytes: next(),
        ..Received::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_said_is_heard(words: [u8; HELLO], numbers: [u8; STATUS]) {
            if let Some((latency, layers)) = read_hello(words) {
                prop_assert!(LATENCIES.contains(&latency) && layers <= MAX_LAYERS);
            }
            prop_assert_eq!(status(&read_status(&numbers)), numbers);
        }
    }

    #[test]
    fn a_latency_that_cannot_be_is_none() {
        assert_eq!(
            read_hello(hello(Duration::from_millis(300), 3)),
            Some((Duration::from_millis(300), 3))
        );
        assert_eq!(read_hello(hello(Duration::from_millis(1), 1)), None);
        assert_eq!(read_hello(hello(Duration::MAX, 1)), None);
        assert_eq!(read_hello([2, 0, 0, 0, 0, 0, 1, 0]), None);
        assert_eq!(read_hello([1, 8, 0, 0, 0, 0, 1, 0]), None);
        let answers = [Answer::Come, Answer::Busy, Answer::Bad];
        assert_eq!(answers.map(|a| Answer::from_code(a.code())), answers);
    }
}
