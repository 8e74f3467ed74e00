//! The way back: whether reports wait there, and how far apart the receiver is asked to send them for that.
//!
//! Controllers are told round-trip times without that waiting: it is no queue of theirs. What is in flight only since
//! its report waits there, or because the receiver was asked to keep reports back, does not count in their windows.
//!
//! A round-trip time less the [forward delay](super::forward_delay) is the delay of the way back, but for a constant.
//! Where even the smallest one of a round trip exceeds the smallest ever by a 16th of the base RTT, for two round
//! trips in a row or for one with many reports, a queue stands there: of our own reports on a thin return path, or of somebody's data. The rate at
//! which reports come then is the most that the way back carries of them, so twelve times their distance makes
//! them a twelfth of it. One report in a base RTT is always allowed. After some time without such a queue the distance is
//! halved each second; this time doubles whenever the queue comes back.
//!
//! Where the queue is full of somebody else's packets (the acknowledgements of TCP downloads, most often), it drops most
//! reports, and few that are sent are none that arrive. That shows where less than one in a base RTT arrives, of more than
//! twice as many that were asked for, although the way back carried more before they were. Then the distance is halved in
//! each round trip until one in a base RTT arrives, and doubled only while four do.

use crate::packet_receiver::MAX_SPACING;
use narrows_base::{Duration, Time};

/// Part of the base RTT that the way back's queue may have, and what hosts that take turns make of it.
const QUEUE_SHARE: f64 = 1.0 / 16.0;
const MIN_QUEUE: Duration = Duration::from_millis(2);
/// Round trips with a queue in a row that are believed, and reports of a single one: the smallest of a few delays is
/// long where they vary.
const ROUNDS: u32 = 2;
const MANY_REPORTS: u64 = 16;
const SOME_REPORTS: u64 = 8;
/// A way back that varies by less has no queue.
const MIN_WAIT_NANOS: i64 = 1_000_000;
/// Part of the mean wait that a report's own wait is.
const WAIT_GAIN: f64 = 1.0 / 16.0;
/// Round trips that exceed the smallest by more say nothing of the way back: forward delays are unambiguous within half
/// of 2^24 microseconds.
const MAX_EXCESS: Duration = Duration::from_secs(8);
/// Reports get one part in so many of a thin return path: with those before that was known, a tenth.
const PARTS: u64 = 12;
/// Clocks of two hosts run apart by so much at most.
const MAX_DRIFT: f64 = 1e-4;
/// So long without a queue, at first and at most, and reports come closer again.
const HOLD: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(960));
/// The next steps follow each other so fast, until the usual distance or a queue.
const EASE_STEP: Duration = Duration::from_secs(1);
/// Whoever wishes for nothing gets so many reports in a base RTT.
const USUAL_REPORTS: u64 = 32;
/// Of reports that are asked for one of so many must arrive, or else the way back is somebody else's.
const MOST_LOST: u64 = 2;
/// Packets for which a receiver that is asked for nothing sends a report at least.
const PACKETS_PER_REPORT: u64 = 2;
/// In a crowd so many reports in a base RTT are more than enough.
const ENOUGH: u64 = 4;
/// A wish that changed is in so many packets, and then in one of so many, since packets get lost.
const REPEATS: u64 = 4;
const REPEATED_EVERY: u64 = 16;

/// What is known of the way back.
#[derive(Debug)]
pub(super) struct ReturnPath {
    /// The smallest delay so far, nanoseconds and an unknown constant, and when it was that.
    least: Option<(i64, Time)>,
    /// The smallest of this round trip, when that began, and its reports.
    current: i64,
    began: Time,
    reports: u64,
    /// Round trips in a row with a queue.
    queued: u32,
    /// What the receiver is asked for; zero for nothing.
    spacing: Duration,
    /// What it was asked for before, and may still do.
    before: Duration,
    /// How far apart they came before they were asked for.
    carries: Duration,
    /// Whether more are asked for where most are lost.
    presses: bool,
    /// Most reports are lost among somebody else's packets; how far apart those come that are not, then.
    crowded: Option<Duration>,
    /// The next number when the round trip began.
    first: u64,
    /// Reports came closer again since a queue was seen.
    eased: bool,
    hold: Duration,
    ease_at: Time,
    /// The next number when the wish changed last.
    changed: Option<u64>,
    /// Packets per second that arrive.
    rate: f64,
    /// How long reports wait, seconds in the mean.
    wait: f64,
}

impl ReturnPath {
    pub fn new() -> ReturnPath {
        ReturnPath {
            least: None,
            current: i64::MAX,
            began: Time::ZERO,
            reports: 0,
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
    /// Whether to ask for more reports where most are lost: not for a controller with a timer of its own, which says when
    /// they are due (RFC 5348 and its kin).
    #[inline]
    pub fn set_presses(&mut self, presses: bool) {
        self.presses = presses;
    }
    /// So many packets in a second arrive.
    #[inline]
    pub fn on_rate(&mut self, per_second: f64) {
        self.rate = per_second;
    }
    /// How long reports wait in the mean.
    pub fn wait(&self) -> Duration {
        Duration::from_secs_f64(self.wait)
    }
    /// Packets that may have arrived, of which the report waits or is kept back.
    #[inline]
    pub fn unreported(&self) -> f64 {
        let apart = self.crowded.unwrap_or(self.spacing).max(self.spacing);
        let late = self.wait + apart.as_secs_f64();
        if late == 0.0 { 0.0 } else { self.rate * late }
    }
    /// What the receiver is asked for, and whether packet `next` is to say so.
    #[inline]
    pub fn wish(&self, next: u64) -> (Duration, bool) {
        let Some(changed) = self.changed else { return (Duration::ZERO, false) };
        let again = next < changed + REPEATS || next.is_multiple_of(REPEATED_EVERY);
        (self.spacing, again)
    }
    /// How far apart reports ought to be; zero if nothing is asked for.
    #[cfg(test)]
    pub fn spacing(&self) -> Duration {
        self.spacing
    }
    /// How long the receiver may wait for it, whether it knows of the last change or not.
    pub fn longest_spacing(&self) -> Duration {
        self.spacing.max(self.before).max(self.crowded.unwrap_or(Duration::ZERO))
    }

    /// A report of a packet with this round-trip time and forward delay, on a path with this base RTT, while packet
    /// `next` is the next one; `is_start` if it begins a round trip. How long the report waited on the way back.
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
        // Where a queue makes round trips long, there is no need to wait for their end.
        if is_start || self.reports >= USUAL_REPORTS {
            self.end_round(now, base, next);
            if self.spacing != self.before {
                self.changed = Some(next);
            }
        }
        self.current = self.current.min(back);
        self.reports += 1;
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
    /// The smallest delay, as clocks that run apart may show it now.
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
        let queue = std::mem::replace(&mut self.current, i64::MAX).saturating_sub(self.least(now));
        if reports == 0 {
            return;
        }
        let apart = Duration::from_nanos(took.as_nanos() / reports);
        let most = base.mul_f64(QUEUE_SHARE).max(MIN_QUEUE);
        if self.presses && self.is_crowded(base, apart, (reports, sent)) {
            self.ease_at = now + self.hold;
            self.press(base, apart);
        } else if queue > i64::try_from(most.as_nanos()).unwrap_or(i64::MAX) {
            self.queued += 1;
            self.ease_at = now + self.hold;
            // Where few reports come there is little to gain.
            let is_known = self.spacing != Duration::ZERO || reports >= SOME_REPORTS;
            if reports >= MANY_REPORTS || is_known && self.queued >= ROUNDS {
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
    /// Whether reports are lost to somebody else: in a round trip of which so many came, so far apart, of so many packets.
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
    /// Reports come so far apart of those that somebody else's queue leaves.
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
    /// A queue stands, and reports come so far apart.
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

/// The least distance of reports where nothing is asked for.
fn usual(base: Duration) -> Duration {
    Duration::from_nanos(base.as_nanos() / USUAL_REPORTS)
}

#[cfg(test)]
mod tests {
    use super::super::forward_delay::{ForwardDelay, ForwardTime};
    use super::*;

    const BASE: Duration = Duration::from_millis(40);

    /// A path whose way back is so thin that it carries a report in `carries`, and has `others` of queue of somebody
    /// else; reports every `usual` where nothing is asked for. Spacings, one for each round trip.
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
        let (mut spacings, mut free, mut round) = (Vec::new(), now, now);
        while now < end {
            // It waits behind the earlier ones, of which there are 20 at most.
            let leaves = now.max(free);
            let sent = now;
            now += usual.max(way.spacing());
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
        }
        spacings
    }
    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn a_wide_way_back_is_asked_for_nothing_whatever_the_clocks_do() {
        for drift in [0.0, 5e-5, -5e-5] {
            let mut way = ReturnPath::new();
            let all = spacings(&mut way, (0, 1000), Duration::from_micros(10), ms(0), drift);
            assert!(all.iter().all(|s| *s == Duration::ZERO), "{drift}");
        }
    }

    /// A hundredth of 20 Mbit/s carries a report of 64 bytes in 2.6 ms, a three hundredth in 7.8 ms.
    #[test]
    fn on_a_thin_way_back_reports_become_a_tenth_of_it_or_one_in_a_round_trip() {
        for (carries, least) in
            [(Duration::from_micros(2560), ms(25)), (Duration::from_micros(7760), BASE)]
        {
            let mut way = ReturnPath::new();
            let all = spacings(&mut way, (0, 20), carries, ms(0), 0.0);
            assert!(all[20..].iter().all(|s| (least..=BASE).contains(s)), "{carries}: {all:?}");
        }
    }

    #[test]
    fn somebodys_queue_on_the_way_back_is_joined_by_few_reports_and_they_come_back_when_it_is_gone()
    {
        let mut way = ReturnPath::new();
        let wide = Duration::from_micros(10);
        spacings(&mut way, (0, 1), wide, ms(0), 0.0);
        let during = spacings(&mut way, (1, 30), wide, ms(300), 0.0);
        assert_eq!(during.last(), Some(&BASE), "{during:?}");
        let after = spacings(&mut way, (30, 250), wide, ms(0), 0.0);
        assert_eq!(after.last(), Some(&Duration::ZERO), "{after:?}");
        assert!(after.windows(2).all(|w| w[1] <= w[0]));
    }

    /// Reports that come closer and fill the way back again are an experiment that is made ever more seldom.
    #[test]
    fn a_way_back_that_stays_thin_is_seldom_tried_again() {
        let mut way = ReturnPath::new();
        let carries = Duration::from_micros(2560);
        let mut all = spacings(&mut way, (0, 3000), carries, ms(0), 0.0);
        let wide = all.split_off(all.len() / 2);
        let close = wide.iter().filter(|s| **s < ms(12)).count();
        assert!(close * 5 < wide.len(), "{close} of {}", wide.len());
    }

    /// A queue on the way there of more than half of what differences of stamps can tell is no queue on the way back.
    #[test]
    fn round_trips_that_stamps_cannot_tell_apart_are_no_wait() {
        let (mut way, mut forward) = (ReturnPath::new(), ForwardDelay::default());
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

    /// A way back that somebody else's queue fills, of which one report in `passes` finds room, for so many round trips:
    /// the spacing at their end, and how many reports come in a round trip then.
    fn among_others(way: &mut ReturnPath, trips: u64, passes: u64) -> (Duration, u64) {
        let (mut now, mut came) = (Time::ZERO, 0);
        let end = now + BASE.saturating_mul(trips);
        way.on_report(now, (BASE, BASE), BASE, 0, true);
        let (mut round, mut sent) = (now + BASE, 0);
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

    /// The acknowledgements of TCP downloads fill the way back and leave one report in twelve: to ask for one in a round trip
    /// would be to hear of none for twelve. Where none but few are lost, one in a round trip is what is asked for.
    #[test]
    fn where_others_fill_the_way_back_a_report_arrives_in_a_round_trip_all_the_same() {
        let (spacing, came) = among_others(&mut ReturnPath::new(), 400, 12);
        assert!(spacing < ms(8) && (1..=ENOUGH).contains(&came), "{spacing} {came}");
        let (spacing, came) = among_others(&mut ReturnPath::new(), 400, 1);
        assert_eq!((spacing, came), (BASE, 1));
    }

    /// Few reports of few packets are no crowd.
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

    /// Whatever a receiver pretends of its clock, it is asked for no more than a report in a base RTT.
    #[test]
    fn false_times_ask_for_nothing_beyond_the_base_rtt() {
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
