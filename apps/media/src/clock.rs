//! The sender's clock as the receiver sees it: packet delays relative to the path's shortest delay.
//!
//! The clocks of both ends have unrelated origins. Arrival by one clock minus stamp by the other is therefore the
//! one-way delay plus a constant. The minimum of the last 20 to 40 seconds is taken for a packet without queueing. The
//! reference follows clock drift and path changes by at most 5 ms per second, so that play-out does not jump.

use narrows_base::{Duration, Time};

const WINDOW: Duration = Duration::from_secs(20);
/// Limit on the reference's movement, in nanoseconds per nanosecond.
const SLEW: f64 = 0.005;
/// A larger difference from the reference, in ns, cannot be a path's delay.
const STRANGE: i64 = 10_000_000_000;
/// Consecutive invalid stamps after which the sender's clock is assumed to have been set anew.
const RESET: u32 = 100;

/// Interpretation of a packet's stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stamped {
    /// The packet's delay beyond the path's shortest delay.
    After(Duration),
    /// The stamp implies an impossible delay: ignore the packet.
    Strange,
    /// The sender's clock has been set anew; this packet is the first by the new clock.
    Reset,
}

/// The estimate of the path's shortest delay plus the offset between both clocks.
#[derive(Debug, Default)]
pub struct PathClock {
    /// Arrival minus stamp of a packet without queueing, in ns.
    base: Option<i64>,
    /// Minimum of the current window and of the one before, in ns.
    min: [i64; 2],
    began: Time,
    moved: Time,
    /// Whether play-out has begun, so that the reference must not jump.
    is_in_use: bool,
    strange: u32,
}

impl PathClock {
    /// Updates the reference by a packet with this stamp.
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
            let [current, _] = self.min;
            self.min = [took, current];
            self.began = arrival;
        }
        let [current, before] = &mut self.min;
        *current = (*current).min(took);
        let target = (*current).min(*before);
        let max = (arrival.since(self.moved).as_nanos() as f64 * SLEW) as i64;
        let base = if self.is_in_use { target.clamp(base - max, base + max) } else { target };
        self.base = Some(base);
        self.moved = self.moved.max(arrival);
        Stamped::After(Duration::from_nanos(took.saturating_sub(base).max(0) as u64))
    }

    fn begin(&mut self, arrival: Time, took: i64) {
        *self = PathClock {
            base: Some(took),
            min: [took; 2],
            began: arrival,
            moved: arrival,
            is_in_use: false,
            strange: 0,
        };
    }

    /// The play-out time of a datagram with this stamp.
    pub fn release(&self, stamp: Time, latency: Duration) -> Time {
        let at = nanos(stamp).saturating_add(self.base.unwrap_or_default());
        Time::from_nanos(at.max(0) as u64) + latency
    }

    /// Call this when play-out begins: from now on the reference moves slowly.
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
    fn far_future_stamps_are_ignored_until_only_they_remain() {
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
