//! The pacer: when the next packet may be sent. A sender that was late has a bounded credit, one that was idle has none
//! (RFC 9002 section 7.7, RFC 5348 section 4.6).

use super::feed::CcFeed;
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::SendLimits;

/// Packets so far apart leave one by one: full ones below 5 Mbit/s.
const APART: Duration = Duration::from_micros(2400);
/// So many arrivals make a first flight of any controller, with the packets that open a
/// connection.
const FIRST_FLIGHT: u64 = 8;

#[derive(Debug)]
pub(super) struct Pacer {
    credit: Duration,
    /// Whether a window without a rate is paced.
    paces_windows: bool,
    /// Upper limit on the rate, whatever the controller says.
    limit: Option<Rate>,
    /// The last packet's due time and bits: the next is due when they are paced out.
    paced: Option<(Time, f64)>,
    /// When the packet that has permission was due.
    due: Time,
    /// Since the last packet something else held packets back: nobody was late.
    stalled: bool,
}

/// How far packets have come: what a window's rate depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub srtt: Duration,
    /// Packets that arrived over the path of now.
    pub arrived: u64,
}

impl Pacer {
    /// With so much credit.
    pub fn new(credit: Duration, paces_windows: bool) -> Pacer {
        Pacer { credit, paces_windows, limit: None, paced: None, due: Time::ZERO, stalled: false }
    }
    /// Another path.
    pub fn renew(&mut self) {
        (self.stalled, self.paced) = (false, None);
    }
    pub fn limit_rate(&mut self, most: Option<Rate>) {
        self.limit = most;
    }

    /// A window's rate: twice as many packets in a round trip while it doubles, a quarter more
    /// otherwise, so that it is not the pacer that limits.
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
    /// The controller's rate and window, with a rate for a window without one (RFC 9002 section 7.7),
    /// so that a report that answers many packets does not set as many free at once.
    #[inline]
    pub fn send_limits(&self, feed: &CcFeed, progress: Progress) -> SendLimits {
        let a = feed.send_limits();
        // The first flight leaves at once: its spacing at the far end tells the path's rate.
        if a.pacing_rate.is_some() || progress.arrived < FIRST_FLIGHT || !self.paces_windows {
            return a;
        }
        SendLimits { pacing_rate: self.window_rate(&a, feed, progress.srtt), ..a }
    }
    /// The rate at which packets leave, if any is set.
    pub fn rate(&self, feed: &CcFeed, progress: Progress) -> Option<Rate> {
        match (self.send_limits(feed, progress).pacing_rate.map(|r| feed.real(r)), self.limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
    /// When the next packet may go by the rates of now, not by those of when the last one left:
    /// a raised rate counts at once. And whether it is our own limit that it waits for.
    #[inline]
    pub fn until(&self, rate: Option<Rate>, scale: f64) -> Option<(Time, bool)> {
        let (last, bits) = self.paced?;
        let after = |bits: f64, r: Rate| {
            let gap = Duration::from_secs_f64(bits / r.as_bps().max(1) as f64);
            // Time must move on at any rate.
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
    /// Something other than the pacer holds packets back.
    #[inline]
    pub fn stall(&mut self) {
        self.stalled = true;
    }
    /// The next packet leaves later by a share of the time between two. Where a queue holds a packet or two, whoever
    /// answers each report at once meets it full or not full for good, and what is sent again may be dropped forever.
    pub fn shift(&mut self, now: Time, share: f64, feed: &CcFeed, progress: Progress) {
        let (Some((last, bits)), Some(rate)) = (self.paced, self.rate(feed, progress)) else {
            return;
        };
        if rate.as_bps() == 0 {
            // A window that is closed for a moment: what is left of its packets' distance would hold back for hours.
            return;
        }
        let gap = Duration::from_secs_f64(bits / feed.scale() / rate.as_bps() as f64);
        let least = Time::from_nanos(now.as_nanos().saturating_sub(gap.as_nanos()));
        self.paced = Some((last.max(least) + gap.mul_f64(share), bits));
    }
    /// The next packet, which was due at `due`, may be sent now.
    #[inline]
    pub fn permit(&mut self, now: Time, due: Time) {
        // A window that opens sets many packets free, and none of them was late: without this, what a
        // report frees would leave together, as far as the credit goes.
        self.due = if std::mem::take(&mut self.stalled) { now } else { due };
    }
    /// It leaves, with so many bytes as the controller counts them.
    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes: u32, feed: &CcFeed, progress: Progress) {
        let credit = self.credit_for(bytes, feed, progress);
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(credit.as_nanos()));
        self.paced = Some((self.due.max(earliest), f64::from(bytes) * 8.0));
    }
    /// How far a late pacer may catch up. Where packets are far apart, by less than one of them: two
    /// together are what small buffers of slow links drop.
    #[inline]
    fn credit_for(&self, bytes: u32, feed: &CcFeed, progress: Progress) -> Duration {
        if self.credit <= APART {
            return self.credit;
        }
        let Some(rate) = self.rate(feed, progress) else { return self.credit };
        let real = f64::from(bytes) * 8.0 / feed.scale();
        let interval = Duration::from_secs_f64(real / rate.as_bps().max(1) as f64);
        if interval < APART { self.credit } else { self.credit.min(interval.mul_f64(0.9)) }
    }
}
