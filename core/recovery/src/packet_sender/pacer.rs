//! The pacer: when the next packet may be sent. A sender that was late has a bounded credit, one that was idle has no
//! credit (RFC 9002 section 7.7, RFC 5348 section 4.6).

use super::feed::CcFeed;
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::SendLimits;

/// At or above this interval packets leave one by one: full ones below 5 Mbit/s.
const APART: Duration = Duration::from_micros(2400);
/// Arrivals before windows are paced: about the first flight of any controller, with the packets that open a
/// connection.
const FIRST_FLIGHT: u64 = 8;

#[derive(Debug)]
pub(super) struct Pacer {
    credit: Duration,
    /// Whether a window without a rate is paced.
    paces_windows: bool,
    /// Upper limit on the rate, regardless of the controller.
    limit: Option<Rate>,
    /// The last packet's due time and its bits. The next packet is due once those bits are paced out.
    paced: Option<(Time, f64)>,
    /// When the permitted packet was due.
    due: Time,
    /// Another limit held packets back since the last packet, so the pacer was not late.
    stalled: bool,
}

/// Inputs for the pacing rate of a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacingInputs {
    pub srtt: Duration,
    /// Counted packets that arrived on the present path.
    pub arrived: u64,
}

impl Pacer {
    /// `credit` is the lateness that it may make up for at once.
    pub fn new(credit: Duration, paces_windows: bool) -> Pacer {
        Pacer { credit, paces_windows, limit: None, paced: None, due: Time::ZERO, stalled: false }
    }
    /// The path changed.
    pub fn renew(&mut self) {
        self.stalled = false;
        self.paced = None;
    }
    pub fn limit_rate(&mut self, most: Option<Rate>) {
        self.limit = most;
    }

    /// Whether there is a limit on the rate, regardless of the controller.
    pub fn is_limited(&self) -> bool {
        self.limit.is_some()
    }

    /// The rate for a window: twice the window per round trip in slow start, 1.25 of it otherwise, so that the pacer is
    /// not the limit.
    #[cold]
    fn window_rate(&self, limits: &SendLimits, feed: &CcFeed, srtt: Duration) -> Option<Rate> {
        let (_, bits) = self.paced?;
        let window = limits.cwnd;
        let srtt = srtt.as_secs_f64();
        let doubles = limits.ssthresh.is_some_and(|s| window < s);
        let gain = if doubles { 2.0 } else { 1.25 };
        let bps = gain * window * feed.full_bits().max(bits) / srtt;
        (srtt > 0.0 && bps < 1e15).then(|| Rate::from_bps_f64(bps))
    }
    /// The controller's limits, with a pacing rate added to a window without one (RFC 9002 section 7.7), so that a
    /// report of many packets does not release as many at once.
    #[inline]
    pub fn send_limits(&self, feed: &CcFeed, progress: PacingInputs) -> SendLimits {
        let a = feed.send_limits();
        // The first flight leaves unpaced: the dispersion of its packets at the receiver measures the path's rate.
        if a.pacing_rate.is_some() || progress.arrived < FIRST_FLIGHT || !self.paces_windows {
            return a;
        }
        SendLimits { pacing_rate: self.window_rate(&a, feed, progress.srtt), ..a }
    }
    /// The pacing rate, if there is one.
    pub fn rate(&self, feed: &CcFeed, progress: PacingInputs) -> Option<Rate> {
        match (self.send_limits(feed, progress).pacing_rate.map(|r| feed.real(r)), self.limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    /// When the next packet may leave at the present rates, so that a raised rate applies at once; and whether `limit`
    /// rather than `rate` decides.
    #[inline]
    pub fn until(&self, rate: Option<Rate>, scale: f64) -> Option<(Time, bool)> {
        let (last, bits) = self.paced?;
        let after = |bits: f64, r: Rate| {
            let gap = Duration::from_secs_f64(bits / r.as_bps().max(1) as f64);
            // Time must advance at any rate.
            last + gap.max(Duration::from_nanos(1))
        };
        let due = rate.map(|r| after(bits, r));
        let limited = self.limit.map(|r| after(bits / scale, r));
        match (due, limited) {
            (Some(due), Some(limited)) if limited > due => Some((limited, true)),
            (None, Some(limited)) => Some((limited, true)),
            (due, _) => due.map(|d| (d, false)),
        }
    }
    /// A limit other than the pacer holds packets back.
    #[inline]
    pub fn stall(&mut self) {
        self.stalled = true;
    }
    /// Delays the next packet by `share` of the interval between two packets. Where a queue holds only a packet or two,
    /// a sender that answers each report at once can find it full every time, and lose each retransmission.
    pub fn shift(&mut self, now: Time, share: f64, feed: &CcFeed, progress: PacingInputs) {
        let (Some((last, bits)), Some(rate)) = (self.paced, self.rate(feed, progress)) else {
            return;
        };
        if rate.as_bps() == 0 {
            // A window that is zero for a moment: the rest of the interval at that rate would hold packets back for
            // hours.
            return;
        }
        let gap = Duration::from_secs_f64(bits / feed.scale() / rate.as_bps() as f64);
        let least = Time::from_nanos(now.as_nanos().saturating_sub(gap.as_nanos()));
        self.paced = Some((last.max(least) + gap.mul_f64(share), bits));
    }
    /// The next packet, which was due at `due`, may be sent now.
    #[inline]
    pub fn permit(&mut self, now: Time, due: Time) {
        // A window that opens releases many packets that were not late. Without this, all that a report releases would
        // leave together, as far as the credit permits.
        self.due = if std::mem::take(&mut self.stalled) { now } else { due };
    }
    /// The packet leaves; `bytes` as the controller counts them.
    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes: u32, feed: &CcFeed, progress: PacingInputs) {
        let credit = self.credit_for(bytes, feed, progress);
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos()));
        // A probe leaves before it is due, by hours if the window is zero: then pacing begins anew with it.
        let is_zero = || self.rate(feed, progress).is_some_and(|rate| rate.as_bps() == 0);
        let due = if self.due > now && is_zero() { now } else { self.due };
        self.paced = Some((due.max(earliest), f64::from(bytes) * 8.0));
    }
    /// The lateness that may be made up for. If packets are far apart it is less than one interval, since small buffers
    /// of slow links drop the second of two packets in a row.
    #[inline]
    fn credit_for(&self, bytes: u32, feed: &CcFeed, progress: PacingInputs) -> Duration {
        if self.credit <= APART {
            return self.credit;
        }
        let Some(rate) = self.rate(feed, progress) else { return self.credit };
        let real = f64::from(bytes) * 8.0 / feed.scale();
        let interval = Duration::from_secs_f64(real / rate.as_bps().max(1) as f64);
        if interval < APART { self.credit } else { self.credit.min(interval.mul_f64(0.9)) }
    }
}
