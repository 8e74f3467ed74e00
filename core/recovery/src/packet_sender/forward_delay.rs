//! One-way delay to the receiver, measured by two unsynchronized clocks: the difference of a packet's arrival time and
//! send time. It varies with the queues of the forward path only, while the RTT also varies with those of the return
//! path.

use narrows_base::Duration;

/// Bits of a difference in microseconds: they count modulo 2^24 (16.8 s), so differences of less than half of it are
/// unambiguous.
const BITS: u32 = 24;
const MASK: u32 = (1 << BITS) - 1;

/// Arrival time by the receiver's clock minus send time by the sender's, modulo 2^24 microseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ForwardTime(u32);

impl ForwardTime {
    /// With synchronized clocks.
    pub fn of(way: Duration) -> ForwardTime {
        ForwardTime::from_micros((way.as_nanos() / 1000) as u32)
    }
    /// Higher bits are dropped.
    pub fn from_micros(us: u32) -> ForwardTime {
        ForwardTime(us & MASK)
    }
    /// For a packet sent at `sent` by the sender's clock. Its report left at `reported` by the receiver's clock,
    /// `delay` after the packet arrived. All in microseconds.
    pub fn between(sent: u32, reported: u32, delay: u64) -> ForwardTime {
        ForwardTime::from_micros(reported.wrapping_sub(sent).wrapping_sub(delay as u32))
    }
    /// In microseconds.
    pub fn as_micros(self) -> u32 {
        self.0
    }
    /// The difference in nanoseconds.
    fn minus(self, other: ForwardTime) -> i64 {
        let shift = 32 - BITS;
        let us = ((self.0.wrapping_sub(other.0) << shift) as i32) >> shift;
        i64::from(us) * 1000
    }
}

/// Forward delays of one path, plus a constant: the first equals the RTT of its report.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ForwardDelay {
    /// The newest, with its delay in nanoseconds. Later ones continue from it, so a queue may become longer than the
    /// modulus of the clocks; only neighbours must differ by less than half of it.
    newest: Option<(ForwardTime, i64)>,
}

impl ForwardDelay {
    /// The forward delay of a packet with this forward time and RTT.
    #[inline]
    pub fn of(&mut self, time: ForwardTime, rtt: Duration) -> Duration {
        let rtt = i64::try_from(rtt.as_nanos()).unwrap_or(i64::MAX);
        let (before, delay) = self.newest.unwrap_or((time, rtt));
        let delay = delay.saturating_add(time.minus(before));
        self.newest = Some((time, delay));
        Duration::from_nanos(delay.max(0).unsigned_abs())
    }
    /// The newest delay.
    #[inline]
    pub fn newest(&self) -> Option<Duration> {
        let (_, delay) = self.newest?;
        Some(Duration::from_nanos(delay.max(0).unsigned_abs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Neither the receiver's clock nor its report delay matters, only changes of the forward path's delay.
    #[test]
    fn clocks_that_disagree_show_how_the_way_there_varies() {
        for offset in [0, 77_000, 123_456_789, u64::from(u32::MAX)] {
            let mut delays = ForwardDelay::default();
            let mut of = |sent: u64, way: u64, kept: u64, rtt: u64| {
                let reported = sent + offset + way + kept;
                let stamps = 1 << 30;
                let time =
                    ForwardTime::between((sent % stamps) as u32, (reported % stamps) as u32, kept);
                delays.of(time, ms(rtt))
            };
            assert_eq!(of(1_000_000, 25_000, 0, 50), ms(50));
            // A queue on the return path does not count.
            assert_eq!(of(1_100_000, 25_000, 7_000, 450), ms(50));
            assert_eq!(of(1_200_000, 65_000, 3_000, 90), ms(90));
            assert_eq!(of(2_000_000_000, 15_000, 0, 40), ms(40));
        }
    }

    #[test]
    fn nonsense_is_no_negative_delay() {
        let mut delays = ForwardDelay::default();
        delays.of(ForwardTime::from_micros(500_000), ms(2));
        assert_eq!(delays.of(ForwardTime::from_micros(1), ms(2)), Duration::ZERO);
    }

    /// A queue of half a minute on a slow link exceeds the 16.8 s after which differences repeat.
    #[test]
    fn a_queue_that_grows_beyond_the_modulus_shows_its_length() {
        let mut delays = ForwardDelay::default();
        for ms_queued in (0..40_000).step_by(1_000) {
            let time = ForwardTime::from_micros(1000 * (100 + ms_queued));
            assert_eq!(delays.of(time, ms(50)), ms(50 + u64::from(ms_queued)));
        }
    }
}
