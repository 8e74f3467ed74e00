//! The return path: how long reports wait there, and which report spacing the sender requests for that reason.
//!
//! The waiting time is no queueing delay of this sender, so controllers get RTTs without it. Packets that are in flight
//! only because their report waits there, or because the receiver delays reports on request, do not count against the
//! window.
//!
//! An RTT minus the [forward delay](super::forward_delay) is the return path's delay plus a constant. A queue is
//! assumed there if even the smallest of a round trip exceeds the smallest ever by a 16th of the base RTT, and its
//! reports do not arrive in bunches: jitter delays many reports to the same moment, while a queue lets one after
//! another through. That must hold for two round trips in a row, or for one with many reports. It may be a queue of
//! our own reports on a slow return path, or of cross traffic. The present report rate is then the most that the
//! return path carries, so a spacing thirteen times as long leaves the reports a tenth of it. While reports still
//! arrive at less than half of the requested spacing, it does not grow further. One report per base RTT is always
//! allowed. After some time without such a queue the spacing is halved each second; this time doubles whenever the
//! queue comes back.
//!
//! If the queue is full of cross traffic (most often the acknowledgements of TCP downloads), it drops most reports, and
//! a sparse sequence of reports may be lost completely. This is assumed if less than one report per base RTT arrives,
//! of more than twice as many that were requested, although the return path carried more before. Then the spacing is
//! halved in each round trip until one report per base RTT arrives, and doubled only while four do.

use crate::packet_receiver::MAX_SPACING;
use narrows_base::{Duration, Time};

/// A longer queueing delay on the return path counts as a queue: this part of the base RTT, and no less than process
/// scheduling can add.
const QUEUE_SHARE: f64 = 1.0 / 16.0;
const MIN_QUEUE: Duration = Duration::from_millis(2);
/// Consecutive round trips with a queue before the spacing grows; one suffices with `MANY_REPORTS`. The smallest of a
/// few delays is large if delays vary. With fewer than `SOME_REPORTS` per round trip no spacing is requested.
const ROUNDS: u32 = 2;
const MANY_REPORTS: u64 = 16;
const SOME_REPORTS: u64 = 8;
/// Gain of a probe (BBR; `UP` of rrtp).
const PROBE: f64 = 1.25;
/// A shorter waiting time is ignored.
const MIN_WAIT_NANOS: i64 = 1_000_000;
/// Gain of the mean waiting time (EWMA).
const WAIT_GAIN: f64 = 1.0 / 16.0;
/// RTTs that exceed the smallest by more are ignored: forward delays are unambiguous within half of 2^24 microseconds.
const MAX_EXCESS: Duration = Duration::from_secs(8);
/// Reports get one part of this many of a slow return path. Reports that cover more packets are up to a quarter longer,
/// so they take a tenth of it.
const PARTS: u64 = 13;
/// Most by which two hosts' clocks drift apart, per second.
const MAX_DRIFT: f64 = 1e-4;
/// Time without a queue until the spacing is reduced, at first and at most.
const HOLD: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(960));
/// Interval of further reductions, until the default spacing or a queue.
const EASE_STEP: Duration = Duration::from_secs(1);
/// Default number of reports per base RTT.
const USUAL_REPORTS: u64 = 32;
/// If one of this many reports comes within a `PARTS`th of the mean interval after another, the return path carries far
/// more. With jitter in both directions two of three do, in a queue of reports none. With 4, goodput is 0.009 +- 0.008
/// lower where the networks of `bench networks` have their jitter in both directions; 16 changes nothing.
const BUNCHED: u64 = 8;
/// If fewer than one of this many requested reports arrives, cross traffic is assumed to fill the return path.
const MOST_LOST: u64 = 2;
/// Packets per report if no spacing is requested.
const PACKETS_PER_REPORT: u64 = 2;
/// While cross traffic fills the return path, this many reports per base RTT are more than enough.
const ENOUGH: u64 = 4;
/// A changed request is in this many packets, and then in every `REPEATED_EVERY`th, since packets get lost.
const REPEATS: u64 = 4;
const REPEATED_EVERY: u64 = 16;

/// State of the return path.
#[derive(Debug)]
pub(super) struct ReturnPath {
    /// The smallest delay so far, in nanoseconds plus an unknown constant, and when it was measured.
    least: Option<(i64, Time)>,
    /// The smallest delay of this round trip, when the round trip began, and its reports.
    current: i64,
    began: Time,
    reports: u64,
    /// When the newest report came, and how many of this round trip came in a bunch.
    newest: Time,
    bunched: u64,
    /// Consecutive round trips with a queue.
    queued: u32,
    /// The requested spacing; zero without a request.
    spacing: Duration,
    /// The previous request, which the receiver may still follow.
    before: Duration,
    /// Spacing of arriving reports before any was requested.
    carries: Duration,
    /// Whether to request more reports where most are lost.
    presses: bool,
    /// Set while cross traffic drops most reports: the mean spacing of those that arrive.
    crowded: Option<Duration>,
    /// Next packet number when the round trip began.
    first: u64,
    /// Whether the spacing was reduced since a queue was last seen.
    eased: bool,
    hold: Duration,
    ease_at: Time,
    /// Next packet number when the request last changed.
    changed: Option<u64>,
    /// Delivery rate, packets per second.
    rate: f64,
    /// Mean waiting time of reports, seconds.
    wait: f64,
}

impl ReturnPath {
    pub fn new() -> ReturnPath {
        ReturnPath {
            least: None,
            current: i64::MAX,
            began: Time::ZERO,
            reports: 0,
            newest: Time::ZERO,
            bunched: 0,
            queued: 0,
            spacing: Duration::ZERO,
            before: Duration::ZERO,
            carries: Duration::ZERO,
            presses: true,
            crowded: None,
            first: 0,
            eased: false,
            hold: HOLD.0,
            ease_at: Time::ZERO,
            changed: None,
            rate: 0.0,
            wait: 0.0,
        }
    }
    /// Whether to request more reports where most are lost. False for controllers with a timer of their own, which
    /// define when reports are due (RFC 5348 and its relatives).
    #[inline]
    pub fn set_presses(&mut self, presses: bool) {
        self.presses = presses;
    }
    /// Sets the delivery rate, in packets per second.
    #[inline]
    pub fn on_rate(&mut self, per_second: f64) {
        self.rate = per_second;
    }
    /// Mean waiting time of reports.
    pub fn wait(&self) -> Duration {
        Duration::from_secs_f64(self.wait)
    }
    /// Estimated number of packets that have arrived while their report waits or is delayed on request. They arrive at
    /// the delivery rate or, if the sender paces faster (packets per second), at up to the rate of a probe. If they were
    /// counted at the delivery rate alone, a probe could send no more than before.
    #[inline]
    pub fn unreported(&self, paced: impl FnOnce() -> f64) -> f64 {
        let apart = self.crowded.unwrap_or(self.spacing).max(self.spacing);
        let late = self.wait + apart.as_secs_f64();
        if late == 0.0 { 0.0 } else { late * self.rate.max(paced().min(PROBE * self.rate)) }
    }
    /// The spacing to request, and whether packet `next` should carry the request.
    #[inline]
    pub fn wish(&self, next: u64) -> (Duration, bool) {
        let Some(changed) = self.changed else { return (Duration::ZERO, false) };
        let again = next < changed + REPEATS || next.is_multiple_of(REPEATED_EVERY);
        (self.spacing, again)
    }
    /// The requested spacing; zero without a request.
    #[cfg(test)]
    pub fn spacing(&self) -> Duration {
        self.spacing
    }
    /// The longest report delay that a receiver may use, with the present or the previous request.
    pub fn longest_spacing(&self) -> Duration {
        self.spacing.max(self.before).max(self.crowded.unwrap_or(Duration::ZERO))
    }

    /// A report with this RTT and forward delay; `base` is the base RTT, `next` the next packet number, and `is_start`
    /// whether a round trip begins. Returns the report's waiting time on the return path.
    #[inline]
    pub fn on_report(
        &mut self,
        now: Time,
        (rtt, forward): (Duration, Duration),
        base: Duration,
        next: u64,
        is_start: bool,
    ) -> Duration {
        if rtt > base + MAX_EXCESS {
            return Duration::ZERO;
        }
        let nanos = |d: Duration| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX);
        let back = nanos(rtt).saturating_sub(nanos(forward));
        // If a queue makes round trips long, their end is not awaited.
        if is_start || self.reports >= USUAL_REPORTS {
            self.end_round(now, base, next);
            if self.spacing != self.before {
                self.changed = Some(next);
            }
        }
        self.current = self.current.min(back);
        self.reports += 1;
        let gap = now.since(std::mem::replace(&mut self.newest, now));
        let mean = Duration::from_nanos(now.since(self.began).as_nanos() / self.reports);
        self.bunched += u64::from(gap.saturating_mul(PARTS) < mean);
        if back <= self.least(now) {
            self.least = Some((back, now));
        }
        let wait = match back.saturating_sub(self.least(now)) {
            short if short < MIN_WAIT_NANOS => Duration::ZERO,
            long => Duration::from_nanos(long.unsigned_abs()).min(MAX_EXCESS),
        };
        self.wait += (wait.as_secs_f64() - self.wait) * WAIT_GAIN;
        if self.wait < 1e-6 {
            self.wait = 0.0;
        }
        wait
    }
    /// The smallest delay, plus the clock drift possible since then.
    fn least(&self, now: Time) -> i64 {
        self.least.map_or(i64::MAX, |(least, at)| {
            least.saturating_add((now.since(at).as_nanos() as f64 * MAX_DRIFT) as i64)
        })
    }
    fn end_round(&mut self, now: Time, base: Duration, next: u64) {
        self.before = self.spacing;
        let sent = next.saturating_sub(std::mem::replace(&mut self.first, next));
        let took = now.since(std::mem::replace(&mut self.began, now));
        let reports = std::mem::take(&mut self.reports);
        let bunched = std::mem::take(&mut self.bunched);
        let queue = std::mem::replace(&mut self.current, i64::MAX).saturating_sub(self.least(now));
        if reports == 0 {
            return;
        }
        let apart = Duration::from_nanos(took.as_nanos() / reports);
        let most = base.mul_f64(QUEUE_SHARE).max(MIN_QUEUE).as_nanos();
        let is_queue = queue > i64::try_from(most).unwrap_or(i64::MAX);
        if self.presses && self.is_crowded(base, apart, (reports, sent)) {
            self.ease_at = now + self.hold;
            self.press(base, apart);
        } else if is_queue && BUNCHED * bunched < reports {
            self.queued += 1;
            self.ease_at = now + self.hold;
            // With few reports there is little to gain.
            let is_known = self.spacing != Duration::ZERO || reports >= SOME_REPORTS;
            // A request takes effect after a round trip, and its queue drains later.
            let is_followed = apart.saturating_mul(2) >= self.spacing;
            if is_followed && (reports >= MANY_REPORTS || is_known && self.queued >= ROUNDS) {
                self.widen(base, apart);
            }
        } else {
            self.queued = 0;
            if self.spacing != Duration::ZERO && now >= self.ease_at {
                self.ease(base);
                self.ease_at = now + EASE_STEP;
            }
        }
    }
    /// Whether cross traffic drops most reports, after a round trip in which `reports` arrived at this interval, for
    /// this many packets.
    fn is_crowded(
        &mut self,
        base: Duration,
        apart: Duration,
        (reports, packets): (u64, u64),
    ) -> bool {
        let spacing = self.spacing.max(usual(base));
        let all = apart.saturating_mul(reports).as_nanos() / spacing.as_nanos().max(1);
        let asked = all.min(packets / PACKETS_PER_REPORT);
        let lost = asked > MOST_LOST * reports;
        let few = self.spacing > Duration::ZERO
            && apart > base
            && apart > self.carries.saturating_mul(MOST_LOST);
        if !lost {
            self.crowded = None;
        } else if few && self.crowded.is_none() {
            self.crowded = Some(apart);
        }
        self.crowded.is_some()
    }
    /// Adapts the spacing to cross traffic; `apart` is the interval of arriving reports.
    fn press(&mut self, base: Duration, apart: Duration) {
        let mean =
            self.crowded.map_or(apart, |mean| (mean.saturating_mul(3) + apart).mul_f64(0.25));
        self.crowded = Some(mean.min(base.saturating_mul(ENOUGH)));
        if mean > base {
            self.spacing = Duration::from_nanos(self.spacing.as_nanos() / 2);
        } else if mean.saturating_mul(ENOUGH) < base {
            self.spacing = self.spacing.saturating_mul(2).min(base);
        }
        self.spacing = self.spacing.max(usual(base)).min(MAX_SPACING);
    }
    /// Widens the spacing because of a queue; `apart` is the interval of arriving reports.
    fn widen(&mut self, base: Duration, apart: Duration) {
        self.queued = 0;
        if self.spacing == Duration::ZERO {
            self.carries = apart;
        }
        if std::mem::take(&mut self.eased) {
            self.hold = self.hold.saturating_mul(2).min(HOLD.1);
        }
        let wanted = apart.saturating_mul(PARTS).max(self.spacing.saturating_mul(2));
        self.spacing = wanted.min(base).min(MAX_SPACING);
    }
    fn ease(&mut self, base: Duration) {
        self.eased = true;
        self.spacing = Duration::from_nanos(self.spacing.as_nanos() / 2);
        if self.spacing.saturating_mul(USUAL_REPORTS) <= base {
            self.spacing = Duration::ZERO;
        }
    }
}

/// The default spacing.
fn usual(base: Duration) -> Duration {
    Duration::from_nanos(base.as_nanos() / USUAL_REPORTS)
}

#[cfg(test)]
mod tests {
    use super::super::forward_delay::{ForwardDelay, ForwardTime};
    use super::*;

    const BASE: Duration = Duration::from_millis(40);

    /// A return path that carries one report per `carries`, with a queueing delay `others` of cross traffic; reports
    /// every `usual` if no spacing is requested. A request takes effect after half of the base RTT. Returns the spacing in
    /// each round trip.
    fn spacings(
        way: &mut ReturnPath,
        seconds: (u64, u64),
        carries: Duration,
        others: Duration,
        drift: f64,
    ) -> Vec<Duration> {
        let usual = Duration::from_nanos(BASE.as_nanos() / 32);
        let mut now = Time::ZERO + Duration::from_secs(seconds.0);
        let end = Time::ZERO + Duration::from_secs(seconds.1);
        let mut spacings = Vec::new();
        let mut free = now;
        let mut round = now;
        let mut requests = vec![(now, way.spacing())];
        while now < end {
            // At most 20 reports wait in the queue.
            let leaves = now.max(free);
            let sent = now;
            let arrived = requests.iter().rev().find(|(at, _)| *at + BASE.mul_f64(0.5) <= now);
            now += usual.max(arrived.unwrap_or(&requests[0]).1);
            if leaves > sent + carries.saturating_mul(20) {
                continue;
            }
            free = leaves + carries;
            let clocks = (sent.as_nanos() as f64 * drift) as i64;
            let rtt = BASE + leaves.since(sent) + others;
            let forward = Duration::from_nanos((BASE.as_nanos() as i64 + clocks) as u64);
            let is_start = leaves >= round;
            if is_start {
                round = leaves + rtt;
                spacings.push(way.spacing());
            }
            way.on_report(leaves, (rtt, forward), BASE, 0, is_start);
            if requests.last().is_some_and(|last| last.1 != way.spacing()) {
                requests.push((leaves, way.spacing()));
            }
        }
        spacings
    }
    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn wide_return_path_keeps_default_reports_whatever_the_clocks() {
        for drift in [0.0, 5e-5, -5e-5] {
            let mut way = ReturnPath::new();
            let all = spacings(&mut way, (0, 1000), Duration::from_micros(10), ms(0), drift);
            assert!(all.iter().all(|s| *s == Duration::ZERO), "{drift}");
        }
    }

    /// Jitter that keeps the order delays most reports until the one before has passed. With a report per round trip
    /// instead, a controller that measures delays would have a twentieth of the link.
    #[test]
    fn jitter_on_the_way_back_is_no_queue() {
        let mut way = ReturnPath::new();
        let mut came = Time::ZERO;
        let mut round = Time::ZERO;
        for n in 0u64..20_000 {
            let sent = Time::ZERO + Duration::from_micros(500 * n);
            let jitter = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            came = came.max(sent + ms(20).mul_f64(jitter as f64 / (1u64 << 24) as f64));
            let is_start = came >= round;
            if is_start {
                round = came + BASE;
            }
            way.on_report(came, (BASE + came.since(sent), BASE), BASE, n, is_start);
            assert_eq!(way.spacing(), Duration::ZERO, "after {n} reports");
        }
    }

    /// 1% of 20 Mbit/s carries a report of 64 bytes in 2.6 ms, a third of that in 7.8 ms.
    #[test]
    fn slow_return_path_carries_a_tenth_of_reports() {
        for (carries, least) in
            [(Duration::from_micros(2560), ms(25)), (Duration::from_micros(7760), BASE)]
        {
            let mut way = ReturnPath::new();
            let all = spacings(&mut way, (0, 20), carries, ms(0), 0.0);
            assert!(all[20..].iter().all(|s| (least..=BASE).contains(s)), "{carries}: {all:?}");
        }
    }

    /// The queue remains until the request takes effect, so it is no reason for a larger one: with one report per RTT on a
    /// path of 100 Mbit/s, a flow would have a twentieth of it.
    #[test]
    fn a_request_that_has_no_effect_yet_does_not_grow() {
        let mut way = ReturnPath::new();
        let apart = Duration::from_micros(500);
        way.on_report(Time::ZERO, (BASE, BASE), BASE, 0, true);
        // Half a second of reports that still wait in the queue.
        for n in 1..1000 {
            let now = Time::ZERO + apart.saturating_mul(n);
            way.on_report(now, (BASE + ms(20), BASE), BASE, 2 * n, false);
        }
        assert!(way.spacing() > apart && way.spacing() < BASE.mul_f64(0.5), "{:?}", way.spacing());
    }

    #[test]
    fn cross_traffic_queue_gets_few_reports_until_it_drains() {
        let mut way = ReturnPath::new();
        let wide = Duration::from_micros(10);
        spacings(&mut way, (0, 1), wide, ms(0), 0.0);
        let during = spacings(&mut way, (1, 30), wide, ms(300), 0.0);
        assert_eq!(during.last(), Some(&BASE), "{during:?}");
        let after = spacings(&mut way, (30, 250), wide, ms(0), 0.0);
        assert_eq!(after.last(), Some(&Duration::ZERO), "{after:?}");
        assert!(after.windows(2).all(|w| w[1] <= w[0]));
    }

    /// The test whether a shorter spacing fills the return path again becomes ever rarer.
    #[test]
    fn a_way_back_that_stays_thin_is_seldom_tried_again() {
        let mut way = ReturnPath::new();
        let carries = Duration::from_micros(2560);
        let mut all = spacings(&mut way, (0, 3000), carries, ms(0), 0.0);
        let wide = all.split_off(all.len() / 2);
        let close = wide.iter().filter(|s| **s < ms(12)).count();
        assert!(close * 5 < wide.len(), "{close} of {}", wide.len());
    }

    /// A forward queue of more than half the range of time stamps is no queue on the return path.
    #[test]
    fn round_trips_that_stamps_cannot_tell_apart_are_no_wait() {
        let mut way = ReturnPath::new();
        let mut forward = ForwardDelay::default();
        for seconds in 2..15u64 {
            let one_way = Duration::from_secs(seconds);
            let rtt = one_way + BASE;
            let delay = forward.of(ForwardTime::of(one_way), rtt);
            let base = Duration::from_secs(2) + BASE;
            let now = Time::ZERO + Duration::from_secs(20 * seconds);
            assert_eq!(
                way.on_report(now, (rtt, delay), base, 0, true),
                Duration::ZERO,
                "{seconds}"
            );
        }
    }

    /// A return path full of cross traffic that passes one report in `passes`, for `trips` round trips. Returns the
    /// spacing at their end, and reports per round trip then.
    fn among_others(way: &mut ReturnPath, trips: u64, passes: u64) -> (Duration, u64) {
        let mut now = Time::ZERO;
        let mut came = 0;
        let end = now + BASE.saturating_mul(trips);
        way.on_report(now, (BASE, BASE), BASE, 0, true);
        let mut round = now + BASE;
        let mut sent = 0;
        while now < end {
            now += usual(BASE).max(way.spacing());
            sent += 1;
            if sent % passes != 0 {
                continue;
            }
            let is_start = now >= round;
            if is_start {
                round = now + BASE;
            }
            let packets = now.since(Time::ZERO).as_nanos() / 200_000;
            way.on_report(now, (BASE + ms(60), BASE), BASE, packets, is_start);
            came += u64::from(now + BASE.saturating_mul(100) > end);
        }
        (way.spacing(), came / 100)
    }

    /// The acknowledgements of TCP downloads fill the return path and leave one report in twelve: a request of one per
    /// round trip would let one arrive in twelve. If few are lost, one per round trip is requested.
    #[test]
    fn report_arrives_each_rtt_despite_full_return_path() {
        let (spacing, came) = among_others(&mut ReturnPath::new(), 400, 12);
        assert!(spacing < ms(8) && (1..=ENOUGH).contains(&came), "{spacing} {came}");
        let (spacing, came) = among_others(&mut ReturnPath::new(), 400, 1);
        assert_eq!((spacing, came), (BASE, 1));
    }

    /// Few reports because of few packets do not mean cross traffic.
    #[test]
    fn an_application_that_sends_little_gets_no_more_reports() {
        let mut way = ReturnPath::new();
        spacings(&mut way, (0, 20), Duration::from_micros(7760), ms(0), 0.0);
        let asked = way.spacing();
        for n in 0..100u64 {
            let now = Time::ZERO + Duration::from_secs(20) + ms(500 * n);
            way.on_report(now, (BASE + ms(60), BASE), BASE, 2 * n, true);
        }
        assert_eq!(way.spacing(), asked);
    }

    /// Whatever clock a receiver pretends, at least one report per base RTT is requested.
    #[test]
    fn false_times_request_no_interval_beyond_base_rtt() {
        let mut way = ReturnPath::new();
        for n in 0u64..10_000 {
            let now = Time::ZERO + ms(n);
            let forward = Duration::from_nanos(n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (n % 60));
            way.on_report(now, (BASE, forward), BASE, n, n % 3 == 0);
            assert!(way.longest_spacing() <= BASE);
        }
        let long = Duration::from_secs(3000);
        for n in 0..100 {
            way.on_report(Time::ZERO + ms(n), (long, Duration::ZERO), long, n, true);
            assert!(way.longest_spacing() <= MAX_SPACING);
        }
    }
}
