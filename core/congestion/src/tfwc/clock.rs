//! Round-trip times, TFWC's timer, and the spacing of packets in rate mode (Choi 2006, sections 5.4.1, 5.5).
//!
//! Equation 5.8 adds `|R - SRTT|/4` to RTTVAR without a subtraction, so RTTVAR could only grow. Here it is the usual
//! mean deviation, and both updates use the SRTT of before. The paper's timeout is `SRTT + 4 RTTVAR` (equation 5.6)
//! without a minimum. On a path of constant RTT that is the RTT itself, and the timer would compete with every
//! acknowledgement. As in the author's later code, the timer adds at least 10 ms to SRTT. The definition of t0 in
//! equation 5.5 is a separate choice.

use super::equation;
use crate::positive;
use narrows_base::Duration;

/// Before the first sample, in seconds (Choi used ns-2, with this initial timeout).
const FIRST: f64 = 3.0;
/// Longest back-off, in seconds.
const MAX_RTT_S: f64 = 60.0;
/// Largest factor of TCP's back-off.
const MAX_DOUBLED: f64 = 64.0;
/// Least margin of the timer over SRTT, in seconds.
const MARGIN: f64 = 0.010;
/// Clock of the tick estimator, in seconds.
const TICK: f64 = 0.1;
/// Weight of a sample in the mean square root of the RTT (later style).
const ROOT_GAIN: f64 = 0.1;
/// The later style sends a little faster than the equation.
const LATER_PACE: f64 = 0.8;

/// How a timer that expires again backs off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backoff {
    /// The timeout doubles (Choi 2006, section 5.5).
    Double,
    /// It becomes twice SRTT and stays there (the author's later code).
    TwoSrtt,
}

/// How packets are spaced in rate mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RateStyle {
    /// Choi 2006, equation 5.5.
    S1,
    /// The author's later code: capped, times 0.8 and times sqrt(R)/mean sqrt(R), R the last
    /// sample.
    Later,
}

/// Definition of t0 in equation 5.5.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum T0 {
    /// SRTT + 4 RTTVAR by a clock of whole tenths of a second: TCP's timeout in ns-2 then.
    Ticks,
    /// SRTT + 4 RTTVAR (Choi 2006, equation 5.6).
    Variance,
    /// Four round trips, as in equation 4.1, of which the window is made.
    FourRtt,
}

/// RTT estimates, and the two timeouts computed from them.
#[derive(Clone, Debug)]
pub struct TfwcTimers {
    gain: f64,
    backoff: Backoff,
    t0: T0,
    /// SRTT in eighths and RTTVAR in quarters of a tick.
    ticks: Option<(i64, i64)>,
    srtt: Option<f64>,
    rttvar: f64,
    last: f64,
    root: f64,
    timeout: f64,
    /// How often the timer has expired since the last sample, as the factor of TCP's back-off.
    doubled: f64,
}

impl TfwcTimers {
    /// `gain` is a sample's weight in SRTT.
    pub fn new(gain: f64, backoff: Backoff, t0: T0) -> TfwcTimers {
        TfwcTimers {
            gain,
            backoff,
            t0,
            ticks: None,
            srtt: None,
            rttvar: 0.0,
            last: 0.0,
            root: 0.0,
            timeout: FIRST,
            doubled: 1.0,
        }
    }

    /// Takes a sample; a timer that backed off is as new.
    pub fn sample(&mut self, rtt: Duration) {
        let r = positive(rtt);
        self.last = r;
        self.doubled = 1.0;
        let srtt = match self.srtt {
            // Choi 2006 leaves it open; RFC 6298 section 2.2.
            None => {
                self.rttvar = r / 2.0;
                self.root = r.sqrt();
                r
            }
            Some(srtt) => {
                self.rttvar += ((r - srtt).abs() - self.rttvar) / 4.0;
                self.root += ROOT_GAIN * (r.sqrt() - self.root);
                srtt + self.gain * (r - srtt)
            }
        };
        self.srtt = Some(srtt);
        if self.t0 == T0::Ticks {
            self.tick(r);
        }
        self.timeout = (srtt + (4.0 * self.rttvar).max(MARGIN)).min(MAX_RTT_S);
    }

    /// ns-2's integer estimator.
    fn tick(&mut self, r: f64) {
        let t = ((r / TICK + 0.5) as i64).max(1);
        self.ticks = Some(match self.ticks {
            None => (t << 3, t << 1),
            Some((srtt, rttvar)) => {
                let delta = t - (srtt >> 3);
                ((srtt + delta).max(1), (rttvar + delta.abs() - (rttvar >> 2)).max(1))
            }
        });
    }

    fn t0(&self) -> f64 {
        match (self.t0, self.ticks, self.srtt) {
            (T0::FourRtt, _, Some(srtt)) => 4.0 * srtt,
            (_, Some((srtt, rttvar)), _) => (((rttvar << 3) + srtt) >> 3) as f64 * TICK,
            (_, _, Some(srtt)) => srtt + 4.0 * self.rttvar,
            _ => FIRST,
        }
    }

    /// Smoothed RTT; zero before the first sample.
    #[inline]
    pub fn srtt(&self) -> Duration {
        Duration::from_secs_f64(self.srtt.unwrap_or(0.0))
    }
    /// The timer's length.
    #[inline]
    pub fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout)
    }
    /// SRTT and RTTVAR in seconds, if anything was timed.
    pub fn timed(&self) -> Option<(f64, f64)> {
        self.srtt.map(|srtt| (srtt, self.rttvar))
    }
    /// The factor of TCP's back-off: how often the timer has expired since the last sample.
    pub fn backed_off(&self) -> f64 {
        self.doubled
    }
    /// The definition of t0 in use.
    pub fn kind_of_t0(&self) -> T0 {
        self.t0
    }
    /// The timer expired in window mode.
    pub fn back_off(&mut self) {
        self.doubled = (2.0 * self.doubled).min(MAX_DOUBLED);
        self.timeout = match (self.backoff, self.srtt) {
            (Backoff::TwoSrtt, Some(srtt)) => 2.0 * srtt,
            _ => 2.0 * self.timeout,
        }
        .min(MAX_RTT_S);
    }

    /// Seconds between packets at loss event rate `p`.
    pub fn dispersion(&self, p: f64, style: RateStyle) -> f64 {
        let srtt = self.srtt();
        let t0 = self.t0();
        let seconds = match style {
            RateStyle::S1 => equation::dispersion(p, srtt, t0, false),
            RateStyle::Later => {
                let last = Duration::from_secs_f64(self.last);
                let root = if self.root > 0.0 { self.last.sqrt() / self.root } else { 1.0 };
                equation::dispersion(p, last, t0, true) * root * LATER_PACE
            }
        };
        seconds.clamp(1e-9, MAX_RTT_S)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock() -> TfwcTimers {
        TfwcTimers::new(0.125, Backoff::Double, T0::Variance)
    }
    fn ms(x: u64) -> Duration {
        Duration::from_millis(x)
    }

    /// Choi 2006, equations 5.6 to 5.8, the last corrected.
    #[test]
    fn deviation_falls_again() {
        let mut c = clock();
        c.sample(ms(100));
        assert_eq!(c.timeout(), ms(300));
        c.sample(ms(200));
        // RTTVAR = 3/4 50 + 1/4 100 = 62.5 ms; SRTT = 112.5 ms.
        assert_eq!(
            (c.srtt(), c.timeout()),
            (Duration::from_micros(112_500), Duration::from_micros(362_500))
        );
        for _ in 0..200 {
            c.sample(ms(100));
        }
        // As printed, RTTVAR would have grown at every sample that is not SRTT itself.
        assert!(c.rttvar < 1e-6, "{}", c.rttvar);
        assert!(c.timeout() >= ms(110) && c.timeout() < ms(111), "{}", c.timeout());
    }

    #[test]
    fn backoff_doubles_to_a_minute_until_an_rtt_sample() {
        let mut c = clock();
        assert_eq!(c.timeout(), ms(3000));
        c.sample(ms(100));
        let mut lengths = Vec::new();
        for _ in 0..9 {
            c.back_off();
            lengths.push(c.timeout().as_nanos() / 100_000_000);
        }
        assert_eq!(lengths, [6, 12, 24, 48, 96, 192, 384, 600, 600]);
        c.sample(ms(100));
        assert!(c.timeout() < ms(300));
    }

    /// On a path of constant RTT below 150 ms: one tick, and a deviation that integers keep at half
    /// a tick.
    #[test]
    fn ticks_round_t0_to_300_ms_on_short_paths() {
        for (t0, expected) in [(T0::Ticks, 0.3), (T0::Variance, 0.05), (T0::FourRtt, 0.2)] {
            let mut c = TfwcTimers::new(0.125, Backoff::Double, t0);
            assert_eq!(c.t0(), FIRST);
            (0..100).for_each(|_| c.sample(ms(50)));
            assert!((c.t0() - expected).abs() < 1e-3, "{t0:?}: {}", c.t0());
        }
        let mut c = TfwcTimers::new(0.125, Backoff::Double, T0::Ticks);
        (0..100).for_each(|_| c.sample(ms(1000)));
        // 10 ticks, and integers stop a deviation's fall at 3/4 of one.
        assert!((c.t0() - 1.3).abs() < 1e-9, "{}", c.t0());
    }

    #[test]
    fn the_later_back_off_does_not_compound() {
        let mut c = TfwcTimers::new(0.1, Backoff::TwoSrtt, T0::Variance);
        c.sample(ms(100));
        c.back_off();
        c.back_off();
        assert_eq!(c.timeout(), ms(200));
    }

    #[test]
    fn the_later_style_spaces_by_the_square_root_and_faster() {
        let mut c = clock();
        (0..400).for_each(|_| c.sample(ms(100)));
        let s1 = c.dispersion(0.1, RateStyle::S1);
        let later = c.dispersion(0.1, RateStyle::Later);
        assert!((later / s1 - 0.8).abs() < 1e-6);
        // A longer sample spaces the next packet out by more than its share in the mean.
        c.sample(ms(400));
        assert!(c.dispersion(0.1, RateStyle::Later) > 4.0 * later);
    }
}
