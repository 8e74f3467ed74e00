//! The datagram size: path MTU discovery similar to RFC 8899 (DPLPMTUD).
//!
//! The search starts with a size that every path is assumed to carry, and probes the largest size
//! at once. If that is lost, it halves the interval. A lost probe is no congestion signal. If only
//! large packets get lost (a black hole after a path change), it returns to the first size and
//! probes again after a pause. A search that ended below the largest size is repeated every ten
//! minutes, because the path may have improved.
//!
//! On slow paths datagrams stay small, because at 144 kbit/s a large one takes 83 ms. If an
//! application has larger messages, the search starts at any rate.

use narrows_base::{Duration, Rate, Time};

/// Below this rate datagrams keep the first size.
const SLOW: Rate = Rate::from_bps(300_000);
/// A size is rejected after this many lost probes (RFC 8899 MAX_PROBES).
const TRIES: u32 = 3;
/// Interval in bytes at which the search ends.
const CLOSE_ENOUGH: u16 = 16;
/// Pause after a search that ended below the largest size (RFC 8899 section 5.1.1,
/// PMTU_RAISE_TIMER).
const RAISE: Duration = Duration::from_secs(600);
/// Pause after a black hole; doubles up to `RAISE`.
const FIRST_PAUSE: Duration = Duration::from_secs(5);

/// The search for the datagram size.
#[derive(Debug)]
pub struct Mtu {
    first: u16,
    most: u16,
    /// The largest size known to arrive.
    passes: u16,
    /// The largest size that is not ruled out.
    ceiling: u16,
    /// The size being probed, and its lost probes so far.
    asked: u16,
    tries: u32,
    /// Whether a probe is in flight.
    pub out: bool,
    /// Earliest start of the next search.
    next: Time,
    pause: Duration,
    /// A repeated search is in progress; the size in use stays until it succeeds.
    again: bool,
    slow: Option<bool>,
    /// Whether the application has a message that needs a larger size.
    wished: bool,
}

impl Mtu {
    pub fn new(first: u16, most: u16) -> Mtu {
        let most = most.max(first);
        Mtu {
            first,
            most,
            passes: first,
            ceiling: most,
            asked: most,
            tries: 0,
            out: false,
            next: Time::ZERO,
            pause: FIRST_PAUSE,
            again: false,
            slow: None,
            wished: false,
        }
    }
    /// UDP payload of a full datagram, in bytes.
    #[inline]
    pub fn size(&self) -> u16 {
        if self.is_small() { self.first } else { self.passes }
    }
    fn is_small(&self) -> bool {
        self.slow == Some(true) && !self.wished
    }
    /// The largest size that both ends accept.
    pub fn most(&self) -> u16 {
        self.most
    }
    /// Starts a search at any rate, for a message that needs a larger size.
    pub fn want_larger(&mut self) {
        self.wished = true;
    }
    /// Whether a search for a waiting message is in progress. It needs a packet in flight.
    pub fn is_sought(&self, now: Time) -> bool {
        self.wished && !self.is_done() && now >= self.next
    }
    pub fn small(&self) -> u16 {
        self.first
    }
    /// Takes an estimate of the path's rate, measured or from hints.
    pub fn on_rate(&mut self, rate: Rate) {
        self.slow = Some(rate < SLOW);
    }
    /// Whether no change of size is expected, so that the controller can rely on it.
    pub fn is_settled(&self) -> bool {
        self.is_small() || self.again || self.is_done()
    }
    fn is_done(&self) -> bool {
        self.ceiling - self.passes < CLOSE_ENOUGH && self.passes < self.most
            || self.passes == self.most
    }
    /// The size to probe now, if any.
    pub fn wanted(&mut self, now: Time) -> Option<u16> {
        let is_useful = self.slow == Some(false) || self.wished;
        let idle = !self.out && is_useful && now >= self.next;
        if idle && self.is_done() && self.passes < self.most {
            self.again = true;
            self.ceiling = self.most;
            self.asked = self.most;
            self.tries = 0;
        }
        (idle && !self.is_done()).then_some(self.asked)
    }
    /// Handles the outcome of a probe of this size.
    pub fn on_probe(&mut self, now: Time, size: u16, arrived: bool) {
        self.search(size, arrived);
        if self.is_done() {
            self.next = now + RAISE;
        }
    }
    fn search(&mut self, size: u16, arrived: bool) {
        self.out = false;
        if arrived {
            self.passes = self.passes.max(size.min(self.ceiling));
            self.tries = 0;
        } else if size == self.asked {
            self.tries += 1;
            if self.tries < TRIES {
                return;
            }
            self.tries = 0;
            self.ceiling = size.saturating_sub(1).max(self.passes);
        }
        self.asked = self.passes + (self.ceiling - self.passes).div_ceil(2);
    }
    /// Returns to the first size, because large packets no longer arrive.
    pub fn on_black_hole(&mut self, now: Time) {
        self.restart(now + self.pause);
        self.pause = self.pause.saturating_mul(2).min(RAISE);
    }
    /// Restarts the search at time `next`, for a new path.
    pub fn restart(&mut self, next: Time) {
        self.passes = self.first;
        self.ceiling = self.most;
        self.asked = self.most;
        self.tries = 0;
        self.out = false;
        self.again = false;
        self.next = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the search over a path with this MTU.
    fn found(mtu: &mut Mtu, path: u16, now: Time) -> (u16, u32) {
        let mut probes = 0;
        while let Some(size) = mtu.wanted(now) {
            probes += 1;
            mtu.on_probe(now, size, size <= path);
        }
        (mtu.size(), probes)
    }

    #[test]
    fn the_search_ends_close_below_the_path() {
        for path in 1200..=1472 {
            let mut mtu = Mtu::new(1200, 1472);
            assert_eq!(mtu.wanted(Time::ZERO), None, "nothing is known of the rate");
            mtu.on_rate(Rate::from_bps(1_000_000));
            let (size, probes) = found(&mut mtu, path, Time::ZERO);
            assert!(size <= path && path - size < CLOSE_ENOUGH, "{path}: {size}");
            assert!(probes <= 20 && (path < 1472 || probes == 1), "{path}: {probes} probes");
        }
    }

    #[test]
    fn slow_paths_and_black_holes_have_small_packets() {
        let mut mtu = Mtu::new(1200, 1472);
        mtu.on_rate(Rate::from_bps(1_000_000));
        assert_eq!(found(&mut mtu, 1472, Time::ZERO).0, 1472);
        mtu.on_rate(Rate::from_bps(100_000));
        assert_eq!(mtu.size(), 1200);
        mtu.on_rate(Rate::from_bps(1_000_000));
        assert_eq!(mtu.size(), 1472);
        let now = Time::from_secs_f64(1.0);
        mtu.on_black_hole(now);
        assert_eq!((mtu.size(), mtu.wanted(now)), (1200, None));
        let (size, _) = found(&mut mtu, 1300, now + FIRST_PAUSE);
        assert!(size <= 1300 && size > 1300 - CLOSE_ENOUGH, "{size}");
    }

    #[test]
    fn a_path_that_grows_is_asked_again_after_ten_minutes() {
        let mut mtu = Mtu::new(1200, 1472);
        mtu.on_rate(Rate::from_bps(1_000_000));
        let begun = Time::from_secs_f64(1.0);
        let (before, _) = found(&mut mtu, 1300, begun);
        assert!(before <= 1300 && mtu.is_settled());
        // The path still carries no more. The size stays, the packet size is not rescaled, and the
        // search takes few probes.
        let first = begun + RAISE;
        assert_eq!(mtu.wanted(begun + Duration::from_secs(599)), None);
        assert_eq!(mtu.wanted(first), Some(1472));
        assert!(mtu.is_settled() && mtu.size() == before);
        let (same, probes) = found(&mut mtu, 1300, first);
        assert!((same - before) < CLOSE_ENOUGH && probes <= 20, "{same}, {probes} probes");
        // Now the path carries more.
        assert_eq!(found(&mut mtu, 1472, first + RAISE), (1472, 1));
        assert_eq!(mtu.wanted(first + RAISE.saturating_mul(3)), None, "there is no more");
    }
}
