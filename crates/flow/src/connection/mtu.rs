//! How large datagrams may be: path MTU discovery in the spirit of RFC 8899 (DPLPMTUD).
//!
//! It begins with what every path is assumed to carry and asks for the largest at once; what does
//! not pass is halved. A probe that is lost means nothing to the controller. Where large packets
//! alone get lost (a black hole: the path has changed), it goes back to the beginning, and asks
//! again after a while.
//!
//! On slow paths datagrams stay small, whatever the path carries: at 144 kbit/s a large one takes
//! 83 ms.

use narrows_base::{Duration, Rate, Time};

/// Below this rate datagrams stay small.
const SLOW: Rate = Rate::from_bps(300_000);
/// A size is given up after so many probes (RFC 8899 MAX_PROBES).
const TRIES: u32 = 3;
/// The search ends when so few bytes are in question.
const CLOSE_ENOUGH: u16 = 16;
/// After a black hole, doubling; RFC 8899's PMTU_RAISE_TIMER at most.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(600);
/// So many large packets lost in a row, and none came.
pub(super) const BLACK_HOLE: u32 = 3;

#[derive(Debug)]
pub(super) struct Mtu {
    first: u16,
    most: u16,
    /// What passes.
    passes: u16,
    /// The largest that might pass.
    ceiling: u16,
    /// The size asked for, and how often in vain.
    asked: u16,
    tries: u32,
    /// A probe is on its way.
    pub out: bool,
    /// Not before.
    next: Time,
    pause: Duration,
    slow: Option<bool>,
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
            slow: None,
        }
    }
    /// Bytes of a full datagram.
    #[inline]
    pub fn size(&self) -> u16 {
        if self.slow == Some(true) { self.first } else { self.passes }
    }
    pub fn small(&self) -> u16 {
        self.first
    }
    /// The path's rate is about this, or was told.
    pub fn on_rate(&mut self, rate: Rate) {
        self.slow = Some(rate < SLOW);
    }
    /// Whether datagrams will remain as they are: so the controller may count on them.
    pub fn is_settled(&self) -> bool {
        self.slow == Some(true) || self.is_done()
    }
    fn is_done(&self) -> bool {
        self.ceiling - self.passes < CLOSE_ENOUGH && self.passes < self.most
            || self.passes == self.most
    }
    /// The size to ask for now, if any.
    pub fn wanted(&self, now: Time) -> Option<u16> {
        let idle = !self.out && self.slow == Some(false) && now >= self.next;
        (idle && !self.is_done()).then_some(self.asked)
    }
    /// A probe of that size arrived, or was lost.
    pub fn on_probe(&mut self, size: u16, arrived: bool) {
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
    /// Large packets do not come through any more.
    pub fn on_black_hole(&mut self, now: Time) {
        self.restart(now + self.pause);
        self.pause = self.pause.saturating_mul(2).min(LONGEST_PAUSE);
    }
    /// Another path.
    pub fn restart(&mut self, next: Time) {
        self.passes = self.first;
        self.ceiling = self.most;
        self.asked = self.most;
        self.tries = 0;
        self.out = false;
        self.next = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a path of this MTU makes of it.
    fn found(mtu: &mut Mtu, path: u16, now: Time) -> (u16, u32) {
        let mut probes = 0;
        while let Some(size) = mtu.wanted(now) {
            probes += 1;
            mtu.on_probe(size, size <= path);
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
}
