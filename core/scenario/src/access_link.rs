//! A flow's own links before and after the bottleneck: `RATE/DELAY`, ranges drawn per flow.

use crate::values::{MAX_DELAY, rate_text, time_text};
use narrows_base::{Duration, RandomKey, Rate, SpecError, units};
use std::fmt;

/// A duplex lossless link that belongs to one flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AccessLink {
    rate: (Rate, Rate),
    delay: (Duration, Duration),
}

impl AccessLink {
    /// Reads `10Mbit/s/0.1ms` or `15Mbit/s/0.5ms..2ms`.
    ///
    /// # Errors
    /// A missing half, a unit that is missing or unknown, or a range that runs backwards.
    pub fn parse(text: &str) -> Result<AccessLink, SpecError> {
        // "10Mbit/s" alone also splits, into "10Mbit" and "s".
        let halves = text.rsplit_once('/').filter(|(_, delay)| delay.trim() != "s");
        let (rate, delay) = halves.ok_or_else(|| {
            SpecError::new(format!(
                "'{text}': such a link is written as RATE/DELAY, for example 10Mbit/s/0.1ms"
            ))
        })?;
        let rate = range(rate, units::rate)?;
        let delay = range(delay, units::duration)?;
        if delay.1 >= MAX_DELAY {
            return Err(SpecError::new(format!("'{text}': the delay is longer than ten years")));
        }
        Ok(AccessLink { rate, delay })
    }

    /// One flow's link, drawn from a stream named after `side` and `flow`.
    pub fn draw(&self, seed: u64, side: &str, flow: &str) -> (Rate, Duration) {
        let mut stream = RandomKey::from_seed(seed).named(side).named(flow).stream();
        // Both are always drawn, so that a range in one does not change the other.
        let a = stream.unit();
        let b = stream.unit();
        let within = |low: u64, high: u64, u: f64| low + ((high - low) as f64 * u) as u64;
        (
            Rate::from_bps(within(self.rate.0.as_bps(), self.rate.1.as_bps(), a)),
            Duration::from_nanos(within(self.delay.0.as_nanos(), self.delay.1.as_nanos(), b)),
        )
    }

    /// Whether the rate or the delay is a range.
    pub fn is_range(&self) -> bool {
        self.rate.0 != self.rate.1 || self.delay.0 != self.delay.1
    }

    /// The lowest rate of the range.
    pub fn least_rate(&self) -> Rate {
        self.rate.0
    }

    /// The delay that counts for a base RTT: the middle of the range.
    pub fn mean_delay(&self) -> Duration {
        Duration::from_nanos((self.delay.0 + self.delay.1).as_nanos() / 2)
    }
    /// The lowest rate that a flow's link can have.
    pub fn slowest(&self) -> Rate {
        self.rate.0
    }
}

/// `low..high`, or one value twice.
fn range<T: PartialOrd + Copy>(
    text: &str,
    read: impl Fn(&str) -> Result<T, SpecError>,
) -> Result<(T, T), SpecError> {
    let (low, high) = match text.split_once("..") {
        Some((low, high)) => (read(low)?, read(high)?),
        None => (read(text)?, read(text)?),
    };
    if low > high {
        return Err(SpecError::new(format!("'{text}': the range runs backwards")));
    }
    Ok((low, high))
}

impl fmt::Display for AccessLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = |a: String, b: String| if a == b { a } else { format!("{a}..{b}") };
        let rate = span(rate_text(self.rate.0), rate_text(self.rate.1));
        let delay = span(time_text(self.delay.0), time_text(self.delay.1));
        write!(f, "{rate}/{delay}")
    }
}
