//! Simulated or real time in whole nanoseconds.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// An instant: nanoseconds since the start of a run. 64 bits last for 584 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

/// A span of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than every other instant: "no deadline".
    pub const NEVER: Time = Time(u64::MAX);

    /// From nanoseconds since the start.
    #[inline]
    pub const fn from_nanos(ns: u64) -> Time {
        Time(ns)
    }
    /// From seconds; negative or NaN becomes zero, too large becomes [`Time::NEVER`].
    pub fn from_secs_f64(s: f64) -> Time {
        Time(Duration::from_secs_f64(s).0)
    }
    /// Nanoseconds since the start.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// Seconds since the start.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
    /// Time passed since `earlier`; zero if `earlier` is later.
    #[inline]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
    /// Whether this is [`Time::NEVER`].
    #[inline]
    pub const fn is_never(self) -> bool {
        self.0 == u64::MAX
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Duration = Duration(0);
    /// The longest duration, used for "unlimited".
    pub const MAX: Duration = Duration(u64::MAX);

    /// From nanoseconds.
    #[inline]
    pub const fn from_nanos(ns: u64) -> Duration {
        Duration(ns)
    }
    /// From microseconds, saturating.
    pub const fn from_micros(us: u64) -> Duration {
        Duration(us.saturating_mul(1_000))
    }
    /// From milliseconds, saturating.
    pub const fn from_millis(ms: u64) -> Duration {
        Duration(ms.saturating_mul(1_000_000))
    }
    /// From whole seconds, saturating.
    pub const fn from_secs(s: u64) -> Duration {
        Duration(s.saturating_mul(1_000_000_000))
    }
    /// From seconds, rounded to the nearest nanosecond; negative or NaN becomes zero.
    #[inline]
    pub fn from_secs_f64(s: f64) -> Duration {
        let ns = s * 1e9 + 0.5;
        // `as` saturates, and maps NaN to zero; to a signed number it takes half of the instructions.
        if ns < i64::MAX as f64 { Duration((ns as i64).max(0) as u64) } else { Duration(ns as u64) }
    }
    /// In nanoseconds.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }
    /// In seconds.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-9
    }
    /// Scaled by a factor, saturating.
    pub fn mul_f64(self, k: f64) -> Duration {
        Duration((self.0 as f64 * k + 0.5) as u64)
    }
    /// Multiplied by a whole number, saturating.
    pub const fn saturating_mul(self, k: u64) -> Duration {
        Duration(self.0.saturating_mul(k))
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    #[inline]
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}
impl AddAssign<Duration> for Time {
    #[inline]
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Add for Duration {
    type Output = Duration;
    #[inline]
    fn add(self, d: Duration) -> Duration {
        Duration(self.0.saturating_add(d.0))
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}
impl Sub for Duration {
    type Output = Duration;
    #[inline]
    fn sub(self, d: Duration) -> Duration {
        Duration(self.0.saturating_sub(d.0))
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_never() { f.write_str("never") } else { write!(f, "{}s", self.as_secs_f64()) }
    }
}
impl fmt::Debug for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
impl fmt::Display for Duration {
    /// Formats the duration with a unit: `80ms`, `1.5s`, `250us`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0;
        if ns == 0 {
            f.write_str("0s")
        } else if ns.is_multiple_of(1_000_000_000) || ns >= 10_000_000_000 {
            write!(f, "{}s", ns as f64 / 1e9)
        } else if ns >= 1_000_000 {
            write!(f, "{}ms", ns as f64 / 1e6)
        } else if ns >= 1_000 {
            write!(f, "{}us", ns as f64 / 1e3)
        } else {
            write!(f, "{ns}ns")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_overflowing() {
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO.since(Time::NEVER), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::INFINITY), Duration::MAX);
        assert_eq!(Duration::from_secs_f64(-1.0), Duration::ZERO);
        assert_eq!(Duration::from_secs_f64(f64::NAN), Duration::ZERO);
    }

    #[test]
    fn durations_read_as_people_write_them() {
        assert_eq!(Duration::from_millis(80).to_string(), "80ms");
        assert_eq!(Duration::from_millis(1500).to_string(), "1500ms");
        assert_eq!(Duration::from_secs(60).to_string(), "60s");
        assert_eq!(Duration::from_micros(200).to_string(), "200us");
    }
}
