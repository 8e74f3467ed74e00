//! Finds BBR by its probes of the smallest round trip. It lets the queue run empty for 200 ms each time that it has not
//! met the smallest round trip for ten seconds (Cardwell et al. 2016, `PROBE_RTT`; Linux `tcp_bbr.c`). Several of them do so
//! together, as each probe shows the others the smallest round trip. Where queues are emptied by those who brake at
//! losses, either this end lost and braked, too, or they fill it again slowly, or do not do so ten seconds later.
//!
//! Two probes, one after the other, find it. One is enough where this end, too, had not met the smallest round trip for as
//! long, and has less of the link than a queue holds that is gone at once: BBR leaves so little to those who brake, and
//! those who brake leave more. If no second one follows, it was none, and from then on it takes two.

use super::path_model::PathModel;
use crate::Ack;
use narrows_base::Time;

/// Part of the band of round trips above which a queue is long, and below which it is gone.
const LONG: f64 = 0.5;
const GONE: f64 = 0.1;
/// … and to which it must come back at once.
const BACK: f64 = 0.25;
/// Base round trips within which it goes, and comes back; and comes back if a single probe is to be enough.
const TURNS: f64 = 4.0;
const SOON_TURNS: f64 = 2.5;
/// Seconds for which round trips show it gone at least, and for which it is: BBR holds back for 0.2 and a round trip or
/// two, longer where it repairs losses. Several that hold back one after the other empty it for less.
const MIN_GONE: f64 = 0.06;
const MIN_SPAN: f64 = 0.15;
const HELD_BACK: f64 = 0.2;
const MAX_GONE: f64 = 1.0;
/// Seconds without the smallest round trip after which BBR probes, and how much later it may have done so: 0.2 for the
/// probe before, and base round trips.
const PERIOD: f64 = 10.0;
const LATER: f64 = 0.2;
const LATER_TURNS: f64 = 6.0;
/// … and how much earlier or later it may have met it last than this end did: it may have begun later, and met it less
/// often, as it sends more.
const EARLIER: f64 = 5.0;
const BEGAN: f64 = 2.0;
/// Seconds above the smallest round trip that are none.
const SAME: f64 = 1e-5;
/// Part of the largest bandwidth that is small: a cut of it empties no queue.
const SMALL: f64 = 0.3;
/// … and that is nearly all of it, a little less than is paced at beside BBR at most: all others have yielded, as BBR
/// does not, and the queue is empty because this end holds back to see.
const WHOLE: f64 = 0.88;
/// Packets of a single probe: who sends fewer does not see what was there in between.
const MIN_PACKETS: u64 = 8;
/// Longest round trips before it that a cut of one's own may have emptied the queue.
const OWN: f64 = 1.5;
/// So many probes within half a period are none.
const MANY: usize = 4;

/// A queue that was long and is gone.
#[derive(Clone, Copy, Debug)]
struct Dip {
    /// When there was a queue before it.
    since: Time,
    /// The first round trip without one, and the last.
    first: Time,
    last: Time,
    /// Packets delivered from the first to the last.
    packets: u64,
    /// When there was a queue again.
    until: Option<Time>,
    /// This end had not braked.
    unforced: bool,
    /// It had nearly all of the link: the queue was its own.
    own: bool,
    /// BBR would probe then, and this end had a small part of the link.
    expected: bool,
}

impl Dip {
    /// Seconds for which the queue was gone at most.
    fn span(&self) -> f64 {
        self.until.unwrap_or(self.last).since(self.since).as_secs_f64()
    }
}

/// What round trips showed.
#[derive(Clone, Debug, Default)]
pub struct ProbeRtt {
    /// When the queue was long last, and when there was one.
    long: Option<Time>,
    before: f64,
    queued: Option<Time>,
    /// When the smallest round trip was met last, and packets delivered since.
    met: Option<Time>,
    delivered: f64,
    /// Largest bandwidth, packets per second.
    most: f64,
    dip: Option<Dip>,
    /// The last dips that ended as a probe does, the newest first.
    probes: [Option<Dip>; MANY],
    /// Two have come one after the other.
    confirmed: bool,
    /// A single one was believed, and none came after it.
    mistaken: bool,
}

impl ProbeRtt {
    /// Takes an acknowledgement in, the own window having been cut last at `cut`; true if a probe of BBR's has ended, or two
    /// have come one after the other.
    pub fn on_ack(&mut self, ack: &Ack, path: &PathModel, cut: Option<Time>) -> bool {
        self.most = self.most.max(path.bandwidth());
        let Some((base, band, level)) = path.level() else { return false };
        let since = |t: Time| ack.now.since(t).as_secs_f64();
        let turns = TURNS * base;
        if level <= GONE {
            match &mut self.dip {
                Some(dip) => {
                    dip.packets += ack.newly_delivered;
                    (dip.last, dip.until) = (ack.now, None);
                }
                None if self.long.take().is_some_and(|l| since(l) <= turns) => {
                    self.dip = Some(Dip {
                        since: self.queued.unwrap_or(ack.now),
                        first: ack.now,
                        last: ack.now,
                        packets: 0,
                        until: None,
                        unforced: cut.is_none_or(|c| since(c) > OWN * (base + band)),
                        own: self.before > WHOLE * self.most,
                        expected: self.is_expected(ack.now, base, path.bandwidth()),
                    });
                }
                None => {}
            }
        } else {
            self.queued = Some(ack.now);
            self.dip.iter_mut().for_each(|d| d.until = d.until.or(Some(ack.now)));
        }
        self.delivered += ack.newly_delivered as f64;
        if self.met.is_none() || path.rtt <= base + SAME {
            (self.met, self.delivered) = (Some(ack.now), 0.0);
        }
        if level >= LONG {
            (self.long, self.before) = (Some(ack.now), path.bandwidth());
        }
        // What lasts longer is none.
        self.dip.take_if(|d| since(d.first) > MAX_GONE + 2.0 * turns);
        let Some(dip) = self.dip.take_if(|_| level >= BACK) else { return false };
        let gone = dip.last.since(dip.first).as_secs_f64();
        let back = since(dip.last);
        if !(MIN_GONE..=MAX_GONE + turns).contains(&gone)
            || back > turns
            || (dip.own && !self.confirmed)
        {
            return false;
        }
        self.probes.rotate_right(1);
        self.probes[0] = Some(dip);
        let second = self.probes[1].is_some_and(|before| {
            let apart = dip.first.since(before.first).as_secs_f64();
            let as_long = dip.span().min(before.span()) >= MIN_SPAN;
            let unforced = dip.unforced && before.unforced;
            as_long && unforced && (PERIOD..=latest(base)).contains(&apart)
        });
        self.confirmed |= second;
        let as_bbr = (HELD_BACK..=MAX_GONE).contains(&dip.span())
            && dip.packets >= MIN_PACKETS
            && back <= SOON_TURNS * base;
        second || (as_bbr && dip.expected && !self.mistaken)
    }

    /// Whether BBR, having met the smallest round trip when this end did or somewhat earlier or later, would probe now,
    /// and whether this end had a small part of the link since, or has one now.
    fn is_expected(&self, now: Time, base: f64, bandwidth: f64) -> bool {
        let quiet = self.met.map_or(0.0, |m| now.since(m).as_secs_f64());
        let small = SMALL * self.most;
        (PERIOD - EARLIER..=latest(base) + BEGAN).contains(&quiet)
            && (self.delivered < small * quiet || bandwidth < small)
    }

    /// Largest bandwidth, packets per second.
    pub fn most(&self) -> f64 {
        self.most
    }

    /// Whether the next probe may begin now.
    pub fn is_due(&self, now: Time, base: f64) -> bool {
        let Some(newest) = self.probes[0] else { return false };
        let passed = now.since(newest.first).as_secs_f64();
        let probes = if passed > 1.5 * PERIOD { 2.0 } else { 1.0 };
        (probes * PERIOD..=probes * latest(base)).contains(&passed)
    }

    /// Whether BBR must be gone: no probe for two periods, or a queue that comes and goes all the time.
    pub fn is_over(&mut self, now: Time, base: f64) -> bool {
        let [Some(newest), .., oldest] = self.probes else { return true };
        let often =
            oldest.is_some_and(|o| newest.first.since(o.first).as_secs_f64() < 0.5 * PERIOD);
        let none = self.dip.is_none() && now.since(newest.first).as_secs_f64() > 2.0 * latest(base);
        if often || none {
            self.mistaken |= !self.confirmed;
            self.confirmed = false;
        }
        often || none
    }
}

/// Seconds from one probe to the next at most.
fn latest(base: f64) -> f64 {
    PERIOD + LATER + LATER_TURNS * base
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::Duration;

    /// A queue that is full but for dips.
    #[derive(Clone, Copy)]
    struct Queue<'a> {
        dips: &'a [f64],
        /// Seconds for which it is gone, and in which it comes back.
        gone: f64,
        back: f64,
        /// Seconds before each at which the own window is cut.
        cut: Option<f64>,
        /// Part of the first bandwidth that is left to this end.
        part: f64,
        /// Hundredths of a second from one acknowledgement to the next.
        step: usize,
    }

    const BBR: Queue =
        Queue { dips: &[5.0, 15.3], gone: 0.3, back: 0.2, cut: None, part: 0.7, step: 1 };

    /// When BBR is found in 40 s with round trips of 50 to 100 ms, and what is known then; at the end, if it is not.
    fn watch(queue: Queue) -> (Option<f64>, ProbeRtt) {
        let mut path = PathModel::default();
        let mut scenario = crate::scenario::Scenario::new(crate::scenario::build("reno"));
        let mut ack = scenario.ack(1, false);
        let mut probes = ProbeRtt::default();
        let found = (0..4000).step_by(queue.step).find(|i| {
            let now = 0.01 * f64::from(*i);
            ack.now = Time::from_secs_f64(now);
            let last = queue.dips.iter().copied().rfind(|d| *d <= now);
            let filled =
                last.map_or(1.0, |d| ((now - d - queue.gone) / queue.back).clamp(0.0, 1.0));
            ack.rtt = Duration::from_secs_f64(if now < 0.1 { 0.05 } else { 0.05 + 0.05 * filled });
            path.on_ack(&ack);
            path.set_bandwidth(if now < 0.1 { 100.0 / queue.part } else { 100.0 });
            let cut = last.zip(queue.cut).map(|(d, before)| Time::from_secs_f64(d - before));
            probes.on_ack(&ack, &path, cut)
        });
        (found.map(|i| 0.01 * f64::from(i)), probes)
    }
    fn found(queue: Queue) -> bool {
        watch(queue).0.is_some()
    }

    #[test]
    fn bbr_is_found_by_two_probes_ten_seconds_apart() {
        assert!(found(BBR));
        assert!(found(Queue { cut: Some(1.0), ..BBR }));
        // Not by one, by others' times, by a queue that comes back slowly, by shorter ones, or by one's own cuts.
        assert!(!found(Queue { dips: &[5.0], ..BBR }));
        assert!(!found(Queue { dips: &[5.0, 12.0, 19.0], ..BBR }));
        assert!(!found(Queue { back: 3.0, ..BBR }));
        assert!(!found(Queue { gone: 0.1, ..BBR }));
        assert!(!found(Queue { cut: Some(0.1), ..BBR }));
        // Who has all of the link emptied the queue.
        assert!(!found(Queue { part: 1.0, ..BBR }));
    }

    #[test]
    fn one_is_enough_where_bbr_must_probe_and_leaves_little() {
        // Whoever has a fifth empties no queue by a cut.
        let first = Queue { dips: &[10.2], part: 0.2, cut: Some(0.1), ..BBR };
        let (at, _) = watch(first);
        assert!(at.is_some_and(|at| (10.5..10.7).contains(&at)), "{at:?}");
        // Not with half of the link, soon or long after the queue was empty, or if the queue is gone too short or comes
        // back later.
        assert!(!found(Queue { part: 0.5, ..first }));
        assert!(!found(Queue { dips: &[4.0], ..first }));
        assert!(!found(Queue { dips: &[15.0], ..first }));
        assert!(!found(Queue { gone: 0.15, ..first }));
        assert!(!found(Queue { back: 0.9, ..first }));
        // Six packets do not show that it was gone all the time.
        assert!(!found(Queue { step: 5, ..first }) && found(Queue { step: 2, ..first }));
    }

    #[test]
    fn who_was_mistaken_once_wants_two() {
        let at = |s: f64| Time::from_secs_f64(s);
        let (found, mut probes) = watch(Queue { dips: &[10.2], part: 0.2, ..BBR });
        assert!(found.is_some() && !probes.mistaken);
        assert!(!probes.is_over(at(30.0), 0.05) && !probes.mistaken);
        assert!(probes.is_over(at(31.5), 0.05) && probes.mistaken);
        // Where a second one came, BBR was there and may come again.
        let (found, mut probes) = watch(BBR);
        assert!(found.is_some() && probes.is_over(at(40.0), 0.05) && !probes.mistaken);
    }

    #[test]
    fn a_probe_is_due_ten_seconds_after_the_last_and_after_a_missed_one() {
        let at = |s: f64| Time::from_secs_f64(s);
        let (_, probes) = watch(BBR);
        let due = |after: f64| probes.is_due(at(15.3 + after), 0.05);
        assert!(due(10.1) && due(10.4) && due(20.1) && due(20.9));
        assert!(!due(0.5) && !due(9.9) && !due(10.6) && !due(19.9) && !due(21.1));
    }

    #[test]
    fn it_is_gone_after_two_periods_without_a_probe_or_where_the_queue_comes_and_goes() {
        let at = |s: f64| Time::from_secs_f64(s);
        let dip = |s: f64| Dip {
            since: at(s),
            first: at(s),
            last: at(s),
            packets: 0,
            until: None,
            unforced: true,
            own: false,
            expected: false,
        };
        let seen = |times: [Option<f64>; MANY]| ProbeRtt {
            probes: times.map(|t| t.map(dip)),
            ..ProbeRtt::default()
        };
        let mut two = seen([Some(30.0), Some(20.0), None, None]);
        assert!(!two.is_over(at(50.0), 0.05) && two.is_over(at(51.5), 0.05));
        assert!(seen([Some(30.0), Some(29.0), Some(28.0), Some(27.0)]).is_over(at(31.0), 0.05));
        assert!(ProbeRtt::default().is_over(at(1.0), 0.05));
    }
}
