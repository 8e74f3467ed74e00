//! The monotonic clock as Narrows' [`Time`].

use narrows_base::{Duration, Time};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A datagram with an older kernel time stamp was stamped before the system's clock was set: the stamp is ignored.
const OLDEST_STAMP: u64 = 2_000_000_000;

/// A clock that starts at zero when it is created. Copies show the same time.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// A clock that starts now.
    #[allow(clippy::new_without_default, reason = "two clocks do not agree: nothing is default")]
    pub fn new() -> Clock {
        Clock { start: Instant::now() }
    }

    /// Time passed since the start. Never runs backwards.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_nanos(u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX - 1))
    }
}

/// CPU time of this process so far, user and system, in seconds. NaN on systems that do not report it (Windows).
#[cfg(not(unix))]
pub fn processor_seconds() -> f64 {
    f64::NAN
}

/// CPU time of this process so far, user and system, in seconds. NaN on systems that do not report it (Windows).
#[cfg(unix)]
pub fn processor_seconds() -> f64 {
    let t = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// The system's calendar clock, which stamps datagrams: time since 1970.
pub(crate) fn wall() -> std::time::Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// Age of `stamp` at `wall`. Zero if the age is impossible because the clock was set.
pub(crate) fn age(wall: std::time::Duration, stamp: std::time::Duration) -> Duration {
    let age =
        wall.checked_sub(stamp).map_or(0, |d| u64::try_from(d.as_nanos()).unwrap_or(u64::MAX));
    Duration::from_nanos(if age > OLDEST_STAMP { 0 } else { age })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_a_clock_that_was_set_are_not_believed() {
        let s = std::time::Duration::from_secs;
        assert_eq!(age(s(1000), s(999)), Duration::from_secs(1));
        assert_eq!(age(s(1000), s(1100)), Duration::ZERO);
        assert_eq!(age(s(1000), s(1)), Duration::ZERO);
    }
}
