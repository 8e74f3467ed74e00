//! The sender's clock as the receiver sees it: how long packets take beyond the shortest time that the path takes.
//!
//! The clocks of both ends begin anywhere. What a packet took, as its arrival by one clock minus its stamp by the other,
//! is known but for a constant; the least of the last 20 to 40 seconds is taken for a packet that met no queue. The
//! reference follows clocks that drift and paths that change by at most 5 ms a second, so that play-out does not jump.

use narrows_base::{Duration, Time};

const WINDOW: Duration = Duration::from_secs(20);
/// Nanoseconds for each nanosecond by which the reference may move.
const SLEW: f64 = 0.005;
/// What differs more from the reference than this is no delay of a path.
const STRANGE: i64 = 10_000_000_000;
/// So many strange stamps in succession, and the sender's clock has been set anew.
const RESET: u32 = 100;

/// What a stamp said.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stamped {
    /// The packet took so long beyond the shortest time.
    After(Duration),
    /// No delay of a path: the packet is to be ignored.
    Strange,
    /// The sender's clock has been set anew: this is the first packet of another time.
    Reset,
}

/// The reference.
#[derive(Debug, Default)]
pub struct PathClock {
    /// Arrival minus stamp of a packet that met no queue, in ns.
    base: Option<i64>,
    /// The least of this window and of the one before.
    least: [i64; 2],
    began: Time,
    moved: Time,
    /// Whether something has been released by it, so that it must not jump.
    is_in_use: bool,
    strange: u32,
}

impl PathClock {
    /// A packet arrived that was stamped so.
    pub fn on_packet(&mut self, arrival: Time, stamp: Time) -> Stamped {
        let took = nanos(arrival).saturating_sub(nanos(stamp));
        let Some(base) = self.base else {
            self.begin(arrival, took);
            return Stamped::After(Duration::ZERO);
        };
        if took.saturating_sub(base).abs() > STRANGE {
            self.strange += 1;
            if self.strange < RESET {
                return Stamped::Strange;
            }
            self.begin(arrival, took);
            return Stamped::Reset;
        }
        self.strange = 0;
        if arrival.since(self.began) >= WINDOW {
            let [current, _] = self.least;
            self.least = [took, current];
            self.began = arrival;
        }
        let [current, before] = &mut self.least;
        *current = (*current).min(took);
        let target = (*current).min(*before);
        let most = (arrival.since(self.moved).as_nanos() as f64 * SLEW) as i64;
        let base = if self.is_in_use { target.clamp(base - most, base + most) } else { target };
        (self.base, self.moved) = (Some(base), self.moved.max(arrival));
        Stamped::After(Duration::from_nanos(took.saturating_sub(base).max(0) as u64))
    }

    fn begin(&mut self, arrival: Time, took: i64) {
        *self = PathClock {
            base: Some(took),
            least: [took; 2],
            began: arrival,
            moved: arrival,
            is_in_use: false,
            strange: 0,
        };
    }

    /// When what was stamped then is to be released, where `latency` is allowed.
    pub fn release(&self, stamp: Time, latency: Duration) -> Time {
        let at = nanos(stamp).saturating_add(self.base.unwrap_or_default());
        Time::from_nanos(at.max(0) as u64) + latency
    }

    /// Something is released by it: from now on it does not jump.
    pub fn use_it(&mut self) {
        self.is_in_use = true;
    }
}

fn nanos(time: Time) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::ZERO + Duration::from_millis(ms)
    }
    const LATENCY: Duration = Duration::from_millis(100);

    #[test]
    fn the_shortest_time_is_the_reference_before_anything_is_released() {
        let mut clock = PathClock::default();
        assert_eq!(clock.on_packet(at(5050), at(0)), Stamped::After(Duration::ZERO));
        assert_eq!(clock.on_packet(at(5060), at(20)), Stamped::After(Duration::ZERO));
        assert_eq!(clock.on_packet(at(5075), at(25)), Stamped::After(Duration::from_millis(10)));
        assert_eq!(clock.release(at(20), LATENCY), at(5160));
    }

    #[test]
    fn a_path_that_becomes_longer_or_shorter_is_followed_slowly() {
        for (delay, end) in [(90, 90), (20, 20)] {
            let mut clock = PathClock::default();
            clock.on_packet(at(50), at(0));
            clock.use_it();
            let mut last = clock.release(at(0), LATENCY);
            for n in 1..6000 {
                clock.on_packet(at(10 * n + delay), at(10 * n));
                let release = clock.release(at(10 * n), LATENCY);
                let moved = release.as_nanos() as f64 - last.as_nanos() as f64 - 1e7;
                assert!(n == 1 || moved.abs() <= 51e3, "{n}: {moved} ns");
                last = release;
            }
            assert_eq!(clock.release(at(0), LATENCY), at(end + 100));
        }
    }

    #[test]
    fn stamps_from_the_far_future_change_nothing_until_there_is_nothing_else() {
        let mut clock = PathClock::default();
        clock.on_packet(at(50), at(0));
        clock.use_it();
        let far = at(1 << 40);
        for n in 1..50 {
            assert_eq!(clock.on_packet(at(50 + n), far), Stamped::Strange);
            assert_eq!(clock.on_packet(at(50 + n), at(n)), Stamped::After(Duration::ZERO));
        }
        let all: Vec<_> = (0..100).map(|_| clock.on_packet(at(150), far)).collect();
        assert_eq!((all[98], all[99]), (Stamped::Strange, Stamped::Reset));
        assert_eq!(clock.release(far, LATENCY), at(250));
    }
}
