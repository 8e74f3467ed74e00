//! The ACK policy: when a receiver sends a report. The rules are the same over sockets and in simulation, because a
//! window that opens by thirty packets at once behaves differently from one that opens by two.
//!
//! At the beginning and after a gap one report acknowledges two packets, increasing to 32 (CACK of the RRTP thesis)
//! while packets arrive in order. No packet waits longer than the agreed delay, nor than a 32nd of a round trip. A gap
//! is reported at once (NACK, SACK), and so are the packets directly above it.
//!
//! A sender that finds a queue of reports on the return path requests a larger spacing: then no report is sent earlier,
//! even after a gap, and one report acknowledges all packets of the interval.
//!
//! A packet that arrives after a pause is taken for a PTO probe if its sender lacks a report that was sent long ago.
//! The return path then loses reports, and with one report per probe, 2 s apart, all may be lost for half a minute. So
//! the receiver repeats its report four times, a round trip apart each, or until the next packet arrives.

use narrows_base::{Duration, Time};

/// Longest time that a packet waits for its report (RFC 9000 section 18.2).
pub const MAX_ACK_DELAY: Duration = Duration::from_millis(25);
/// CACK of the RRTP thesis.
pub const MAX_PACKETS_PER_ACK: u32 = 32;
/// Part of a round trip that a packet may wait: a sender that keeps only a BDP in flight loses this share of its rate.
const RTT_SHARE: f64 = 1.0 / 32.0;
/// Shortest delay; the timer is not set for less.
const MIN_DELAY: Duration = Duration::from_micros(100);
/// The first packets are acknowledged one by one, since the window is small then.
const FIRST: u64 = 10;
/// Packets above a gap that are acknowledged one by one: the sender counts three above a loss.
const ABOVE_HOLE: u64 = 3;
/// Initial number of packets per report (RFC 9000 section 13.2.2).
const FIRST_PACKETS_PER_ACK: u32 = 2;
/// After this many packets in order, reports become rarer: one more packet per report for every `STEP` packets.
const STEADY: u32 = 100;
const STEP: u32 = 8;
/// Shortest pause before a probe; at least two round trips, too.
const SILENCE: Duration = Duration::from_millis(250);
/// Reports that repeat the first one after a probe.
const REPEATS: u32 = 4;
/// Longest report spacing that a sender can request.
pub const MAX_SPACING: Duration = Duration::from_secs(1);

/// Longest time that a packet waits for its report. `rtt` is zero if unknown; `most` is the agreed limit.
pub fn max_wait(rtt: Duration, most: Duration) -> Duration {
    match rtt {
        Duration::ZERO => most,
        known => known.mul_f64(RTT_SHARE).max(MIN_DELAY).min(most),
    }
}

/// The report spacing used for a request of `asked`; `rtt` is zero if unknown.
pub fn bounded_spacing(asked: Duration, rtt: Duration) -> Duration {
    // A sender, which measures the path better, requests one round trip at most.
    let most = if rtt == Duration::ZERO { MAX_ACK_DELAY } else { rtt.saturating_mul(2) };
    asked.min(most).min(MAX_SPACING)
}

/// State of the ACK policy.
#[derive(Debug)]
pub struct AckPolicy {
    /// Limit on packets per report.
    most: u32,
    /// Packets received since the last report.
    unanswered: u32,
    /// Packets per report at present.
    every: u32,
    in_order: u32,
    /// When a report is due; at once if in the past.
    due: Time,
    /// When the last packet arrived.
    last: Time,
    /// The packet that revealed the last gap.
    hole: Option<u64>,
    /// Gaps since the last report.
    gaps: u32,
    /// Requested report spacing; zero without a request.
    spacing: Duration,
    /// When the last report was sent.
    reported: Time,
    /// Reports still to be repeated, and their spacing.
    repeats: u32,
    repeat_spacing: Duration,
}

impl AckPolicy {
    /// `most` is the limit on packets per report.
    pub fn new(most: u32) -> AckPolicy {
        let most = most.max(1);
        AckPolicy {
            most,
            unanswered: 0,
            every: FIRST_PACKETS_PER_ACK.min(most),
            in_order: 0,
            due: Time::NEVER,
            last: Time::ZERO,
            hole: None,
            gaps: 0,
            spacing: Duration::ZERO,
            reported: Time::ZERO,
            repeats: 0,
            repeat_spacing: Duration::ZERO,
        }
    }
    /// Sets the smallest spacing of reports.
    pub fn on_spacing(&mut self, spacing: Duration) {
        self.spacing = spacing;
    }

    /// Whether all packets have been reported, so that a report echoes the time stamp of the next one.
    #[inline]
    pub fn is_all_answered(&self) -> bool {
        self.unanswered == 0
    }

    /// Packet `number` arrived, where `expected` would have been next.
    #[inline]
    pub fn on_number(&mut self, number: u64, expected: u64) {
        if number > expected {
            self.hole = Some(number);
            self.gaps = self.gaps.saturating_add(1);
            self.hurry();
        }
    }

    fn hurry(&mut self) {
        self.in_order = 0;
        self.every = FIRST_PACKETS_PER_ACK.min(self.most);
    }

    /// A packet arrived; `rtt` is zero if unknown. `lacks` is called after a pause: whether the sender lacks the last
    /// report.
    #[inline]
    pub fn on_silence(&mut self, now: Time, rtt: Duration, lacks: impl FnOnce() -> bool) {
        self.repeats = 0;
        // A policy of one report per packet counts reports.
        if self.most == 1 {
            return;
        }
        let silence = SILENCE.max(rtt.saturating_mul(2));
        if self.is_all_answered() && now.since(self.reported) >= silence && lacks() {
            let apart = if rtt == Duration::ZERO { SILENCE } else { rtt };
            self.repeats = REPEATS;
            self.repeat_spacing = apart.max(MAX_ACK_DELAY);
        }
    }

    /// The packet is ack-eliciting: it must be reported within `max_wait` (RFC 9000 section 13.2).
    #[inline]
    pub fn on_ack_eliciting(
        &mut self,
        now: Time,
        number: u64,
        expected: u64,
        marked: bool,
        max_wait: Duration,
    ) {
        self.unanswered += 1;
        let gap = now.since(std::mem::replace(&mut self.last, now));
        let disorder = number != expected || self.hole.is_some_and(|h| number <= h + ABOVE_HOLE);
        if disorder {
            self.hurry();
        } else {
            self.in_order = self.in_order.saturating_add(1);
            if self.in_order > STEADY && self.in_order.is_multiple_of(STEP) {
                self.every = (self.every + 1).min(self.most);
            }
        }
        // If the previous packet came earlier by `max_wait`, a second one is not expected in time.
        let at_once = disorder
            || marked
            || gap >= max_wait
            || self.unanswered >= self.every
            || number < FIRST;
        let due = if at_once { now } else { now + max_wait };
        self.due = self.due.min(due);
        if self.spacing > Duration::ZERO && number >= FIRST {
            self.due = self.due.max(self.reported + self.spacing);
        }
    }

    /// New gaps take half of a report's `runs`: it is due at once, whatever spacing was requested. Thus two reports list
    /// each packet, and one of them may be lost. A packet that no report lists would count as lost.
    #[inline]
    pub fn on_gaps(&mut self, now: Time, runs: u32) {
        if self.gaps >= runs.div_ceil(2) {
            self.due = self.due.min(now);
        }
    }

    /// When a report must be sent, in a packet of its own if necessary.
    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }
    /// Whether to add a report to a packet that is sent anyway.
    #[inline]
    pub fn should_piggyback(&self) -> bool {
        self.unanswered > 0 && 2 * self.unanswered >= self.every
    }
    /// Whether as many packets wait as one report acknowledges.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.unanswered >= self.every
    }
    /// A report was sent.
    #[inline]
    pub fn on_report_sent(&mut self, now: Time) {
        self.unanswered = 0;
        self.gaps = 0;
        self.due = Time::NEVER;
        self.reported = now;
        if self.repeats > 0 {
            self.repeats -= 1;
            self.due = now + self.repeat_spacing.max(self.spacing);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets per report, for `packets` packets that arrive `gap` microseconds apart, without the numbers in `holes`.
    fn reports(packets: u64, gap: u64, holes: &[u64], most: u32, rtt: Duration) -> Vec<u32> {
        let mut policy = AckPolicy::new(most);
        let mut answered = Vec::new();
        let mut since = 0;
        let mut expected = 0;
        for number in (0..packets).filter(|n| !holes.contains(n)) {
            let now = Time::ZERO + Duration::from_micros(gap * number);
            if policy.due() < now {
                answered.push(std::mem::take(&mut since));
                policy.on_report_sent(now);
            }
            policy.on_number(number, expected);
            policy.on_ack_eliciting(now, number, expected, false, max_wait(rtt, MAX_ACK_DELAY));
            expected = number + 1;
            since += 1;
            if policy.due() <= now {
                answered.push(std::mem::take(&mut since));
                policy.on_report_sent(now);
            }
        }
        answered
    }

    const LONG: Duration = Duration::from_secs(1);

    #[test]
    fn reports_become_rarer_while_packets_come_in_order() {
        let answered = reports(3000, 10, &[], MAX_PACKETS_PER_ACK, LONG);
        assert_eq!(answered[..14], [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2]);
        assert!(answered.is_sorted(), "{answered:?}");
        assert_eq!(answered.last(), Some(&MAX_PACKETS_PER_ACK));
    }

    #[test]
    fn hole_is_reported_at_once_and_then_often() {
        let answered = reports(2100, 10, &[2000], MAX_PACKETS_PER_ACK, LONG);
        // The packet that revealed the gap and three above it alone, then pairs again.
        assert!(answered.windows(6).any(|w| w == [1, 1, 1, 1, 2, 2]), "{answered:?}");
    }

    #[test]
    fn reports_wait_at_most_a_part_of_the_rtt() {
        // The limit at 100 ms is 3.125 ms, in which five packets arrive.
        let answered = reports(3000, 600, &[], MAX_PACKETS_PER_ACK, Duration::from_millis(100));
        assert_eq!(answered.iter().max(), Some(&6));
        assert_eq!(max_wait(Duration::ZERO, MAX_ACK_DELAY), MAX_ACK_DELAY);
        assert_eq!(max_wait(Duration::from_micros(50), MAX_ACK_DELAY), MIN_DELAY);
    }

    /// Times of reports of `runs` in milliseconds, for packets that arrive every `gap` ms, every `hole`-th missing.
    fn times(spacing: Duration, gap: u64, hole: u64, runs: u32) -> Vec<u64> {
        let mut policy = AckPolicy::new(MAX_PACKETS_PER_ACK);
        policy.on_spacing(spacing);
        let mut times = Vec::new();
        let mut expected = 0;
        for at in 0..2000u64 {
            let now = Time::ZERO + Duration::from_millis(at);
            if at.is_multiple_of(gap) && (at / gap) % hole != hole - 1 {
                let number = at / gap;
                policy.on_number(number, expected);
                let wait = max_wait(Duration::from_millis(40), MAX_ACK_DELAY);
                policy.on_ack_eliciting(now, number, expected, false, wait);
                policy.on_gaps(now, runs);
                expected = number + 1;
            }
            if policy.due() <= now {
                times.push(at);
                policy.on_report_sent(now);
            }
        }
        times.retain(|t| *t > 20 * gap);
        times
    }

    #[test]
    fn requested_report_interval_holds_with_and_without_holes() {
        let asked = Duration::from_millis(40);
        let far = u64::MAX;
        for hole in [far, 10] {
            let spaced = times(asked, 1, hole, 32);
            assert!(spaced.windows(2).all(|w| (40..=42).contains(&(w[1] - w[0]))), "{spaced:?}");
        }
        assert!(times(Duration::ZERO, 1, 10, 32).len() > 1000, "unasked, a hole is told at once");
        // Packets that arrive further apart are acknowledged as usual.
        assert_eq!(times(asked, 100, far, 32), times(Duration::ZERO, 100, far, 32));
    }

    /// Otherwise a sender would count packets as lost that have arrived, because no report lists them.
    #[test]
    fn holes_beyond_a_reports_limit_ignore_the_interval() {
        for (runs, most) in [(6, 6), (7, 8), (32, 32)] {
            let times = times(Duration::from_millis(40), 1, 2, runs);
            assert!(times.windows(2).all(|w| w[1] - w[0] <= most), "{runs}: {times:?}");
        }
    }

    #[test]
    fn report_interval_is_at_most_two_rtts_or_a_second() {
        let ms = Duration::from_millis;
        assert_eq!(bounded_spacing(ms(30), ms(40)), ms(30));
        assert_eq!(bounded_spacing(Duration::MAX, ms(40)), ms(80));
        assert_eq!(bounded_spacing(Duration::MAX, ms(5000)), MAX_SPACING);
        assert_eq!(bounded_spacing(Duration::MAX, Duration::ZERO), MAX_ACK_DELAY);
    }

    /// Times of reports in milliseconds, for single packets that arrive at these times, and whether their sender lacks
    /// the last report.
    fn answers(packets: &[(u64, bool)]) -> Vec<u64> {
        let mut policy = AckPolicy::new(MAX_PACKETS_PER_ACK);
        let rtt = Duration::from_millis(50);
        let mut times = Vec::new();
        let mut packets = packets.iter().zip(FIRST..).peekable();
        for at in 0..10_000 {
            let now = Time::ZERO + Duration::from_millis(at);
            if let Some(((_, lacks), number)) = packets.next_if(|((time, _), _)| *time == at) {
                policy.on_silence(now, rtt, || *lacks);
                policy.on_number(number, number);
                let wait = max_wait(rtt, MAX_ACK_DELAY);
                policy.on_ack_eliciting(now, number, number, false, wait);
            }
            if policy.due() <= now {
                times.push(at);
                policy.on_report_sent(now);
            }
        }
        times
    }

    #[test]
    fn probe_of_a_sender_without_acks_gets_several() {
        let probes = [(1000, false), (1200, true), (3200, true), (5200, true), (5260, true)];
        let answers = answers(&probes);
        // The second arrives too soon to be a probe, and the last one ends the repetition of the report before.
        let expected = [1000, 1200, 3200, 3250, 3300, 3350, 3400, 5200, 5250, 5260];
        assert_eq!(answers, expected);
    }

    #[test]
    fn rare_sender_without_losses_gets_one_report() {
        assert_eq!(answers(&[(1000, false), (3000, false), (5000, false)]), [1000, 3000, 5000]);
    }

    #[test]
    fn packets_far_apart_are_answered_one_by_one() {
        let answered = reports(200, 30_000, &[], MAX_PACKETS_PER_ACK, LONG);
        assert!(answered.iter().all(|n| *n == 1), "{answered:?}");
    }

    #[test]
    fn one_for_each_is_one_for_each() {
        let answered = reports(500, 10, &[], 1, LONG);
        assert!(answered.iter().all(|n| *n == 1));
    }
}
