//! Limits every controller to about twice the rate that the path has delivered.
//!
//! A controller depends on path hints (rates, RTTs), and on the peer's acknowledgement times, CE marks, loss causes and
//! feedback. A peer can forge all of these, but not the arrival of a packet. So these limits hold for any controller:
//!
//! 1. *By acknowledgements.* Every acknowledged byte permits two more, on top of an initial window of ten packets (RFC
//!    6928): slow start's growth. Unused credit is kept for applications that pause (RFC 7661), but at most the bytes
//!    that arrived in one round trip, or the last report's credit, up to [`PROBE_PACKETS`]. The latter matters if a
//!    queue makes round trips long: one report then covers more than arrives in the shortest round trip. The cap
//!    prevents a receiver that holds reports back from releasing everything at once. A PTO reduces the credit to the
//!    initial window.
//! 2. *By time.* In a window of time at most the initial window and twice the most that ever arrived in such a window
//!    may leave. Arrivals are counted twice, and the smaller count decides. By send time: a receiver that holds back
//!    its acknowledgements could pretend any rate by their arrival times. By acknowledgement time: a long queue accepts
//!    more than the link delivers. This holds for three lengths: the longer of a second and three round trips, and a
//!    third and a twelfth of that. The maxima are kept for some minutes (`limiter/history.rs`).
//!
//! Rates that are known beforehand, by their source:
//! - This side's user: the initial window is that rate's BDP.
//! - A stored measurement of this peer: half of that, until it is validated (Careful Resume, `limiter/resume.rs`).
//! - The peer, or the dispersion of its packets: no credit before the first acknowledgement. Then, once per path, the
//!   sender may exceed the limits by [`PROBE_PACKETS`] in all, and by twice the rate that the path has shown. That is
//!   the bytes sent since some moment that have arrived, divided by the time since then. This ends when that rate has
//!   not risen for a window.
//!
//! The limits do not apply to PTO and MTU probes, nor to a packet that leaves while no other is in flight.

mod history;
mod resume;

use history::{SCALES, SendHistory};
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{HintSource, PathHints};
use resume::{Resume, confirms};

/// Initial window, RFC 6928.
const INITIAL_PACKETS: u64 = 10;
/// Packets of the flight that tests a rate hinted by the peer, including the initial window; and the most of one
/// report's credit that is kept.
const PROBE_PACKETS: u64 = 64;
/// Limit on the shown rate in the first rounds, in packets per window beyond the arrivals of a window: a path that
/// passes a burst faster than its long-term rate shows too much.
const MAX_SHOWN_PACKETS: u64 = 512;
/// Bytes permitted per byte that arrived.
const GROWTH: u64 = 2;
/// Length of the longest window of time: at least `MIN_WINDOW`, and this many round trips.
const MIN_WINDOW: Duration = Duration::from_secs(1);
const WINDOW_ROUND_TRIPS: u64 = 3;
/// A shorter RTT changes the window only if the window becomes shorter than this part.
const SIMILAR: f64 = 0.8;

/// Whether the limiter permits another packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LimiterDecision {
    Free,
    /// Blocked until a packet is acknowledged.
    Acknowledgement,
    /// Blocked until this time.
    Until(Time),
}

/// State of the extra credit of a path's first rounds, which tests a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FirstRounds {
    /// No packet has been acknowledged.
    NothingAcknowledged,
    /// Over if the rate that the path has shown does not rise until this time.
    Until(Time),
    Over,
}

#[derive(Clone, Debug)]
pub(super) struct Limiter {
    /// Size of a full packet, bytes.
    full: u64,
    /// Bytes that acknowledgements permit; at least minus one full packet.
    credit: i64,
    /// The part of `credit` that the present report has added.
    granted: u64,
    /// Initial window, bytes.
    initial: u64,
    first_rounds: FirstRounds,
    /// Extra credit of the first rounds: bytes per window that the path has shown to carry, and when the packet train
    /// that tests a rate ends.
    shown: u64,
    train_until: Option<Time>,
    /// Smallest RTT.
    rtt: Duration,
    history: SendHistory,
    /// Hinted rate in bytes per second, after the source's discount, 0 without one; the RTT hinted with it; and when
    /// the hint stops counting in windows of time.
    hinted_rate: f64,
    hinted_rtt: Option<Duration>,
    hint_ends: Time,
    resume: Resume,
}

impl Limiter {
    /// `full` is a full packet's bytes on the wire.
    pub fn new(full: u32) -> Limiter {
        let full = u64::from(full.max(1));
        Limiter {
            full,
            credit: (INITIAL_PACKETS * full) as i64,
            granted: 0,
            initial: INITIAL_PACKETS * full,
            first_rounds: FirstRounds::NothingAcknowledged,
            shown: 0,
            train_until: None,
            rtt: Duration::MAX,
            history: SendHistory::new(slot_of(Duration::MAX)),
            hinted_rate: 0.0,
            hinted_rtt: None,
            hint_ends: Time::NEVER,
            resume: Resume::default(),
        }
    }

    /// The path changed: forgets all measurements and hints.
    pub fn restart(&mut self) {
        *self = Limiter::new(self.full.try_into().unwrap_or(u32::MAX));
    }

    fn ten_packets(&self) -> u64 {
        INITIAL_PACKETS * self.full
    }

    /// Sets the hinted rate; hints by the peer are ignored.
    pub fn on_hints(&mut self, hints: &PathHints, source: HintSource) {
        let Some(rate) = hints.rate else { return };
        let share;
        (share, self.resume) = match source {
            HintSource::User => (1.0, Resume::default()),
            HintSource::Stored => (0.5, Resume::ready(hints.loss.unwrap_or(0.0))),
            HintSource::Peer => return,
        };
        self.hinted_rate = share * rate.as_bps() as f64 / 8.0;
        self.hinted_rtt = hints.rtt;
        self.hint_ends = Time::NEVER;
        self.open_as_told();
    }
    /// Sets the initial window to the BDP of the hints, if larger.
    fn open_as_told(&mut self) {
        let known = (self.rtt != Duration::MAX).then_some(self.rtt);
        let Some(rtt) = self.hinted_rtt.or(known) else { return };
        // A float's cast saturates.
        let product = (self.hinted_rate * rtt.as_secs_f64()) as u64;
        if product > self.initial {
            self.credit = self.credit.saturating_add_unsigned(product - self.initial);
            self.initial = product;
        }
    }

    /// Extra bytes permitted in the first rounds.
    #[inline]
    fn beyond(&self) -> u64 {
        if matches!(self.first_rounds, FirstRounds::NothingAcknowledged | FirstRounds::Over) {
            return 0;
        }
        let arrived = self.history.most(SCALES.len() - 1);
        let more = self.shown.saturating_sub(arrived).min(MAX_SHOWN_PACKETS * self.full);
        let train = self.train_until.map_or(0, |_| (PROBE_PACKETS - INITIAL_PACKETS) * self.full);
        train + GROWTH * more
    }
    /// A report arrived: starts, extends or ends the first rounds.
    fn go_on_with_first_rounds(&mut self, now: Time) {
        let before = self.beyond();
        let until = now + self.window();
        if self.first_rounds == FirstRounds::NothingAcknowledged {
            self.train_until = Some(until);
        }
        self.train_until = self.train_until.filter(|until| now < *until);
        let bytes = self.history.shown(now, self.full);
        match self.first_rounds {
            FirstRounds::Until(over) if bytes <= self.shown && now > over => {
                self.first_rounds = FirstRounds::Over;
            }
            FirstRounds::Until(_) if bytes <= self.shown => {}
            _ => (self.first_rounds, self.shown) = (FirstRounds::Until(until), bytes),
        }
        let more = self.beyond().saturating_sub(before);
        self.credit = self.credit.saturating_add_unsigned(more);
    }

    /// A round-trip time was measured.
    #[inline]
    pub fn on_rtt(&mut self, now: Time, rtt: Duration) {
        if rtt < self.rtt {
            self.on_shorter_rtt(now, rtt);
        }
    }
    #[cold]
    fn on_shorter_rtt(&mut self, now: Time, rtt: Duration) {
        let first = self.rtt == Duration::MAX;
        self.rtt = rtt;
        if self.resume.is_open() && self.hinted_rtt.is_some_and(|then| !confirms(then, rtt)) {
            self.fall_back();
            self.resume = Resume::default();
        }
        if first {
            self.open_as_told();
        }
        let slot = slot_of(rtt);
        if slot.as_secs_f64() < SIMILAR * self.history.length().as_secs_f64() {
            self.history.change(now, slot);
        }
    }

    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes: u32) {
        self.history.on_sent(now, bytes);
        self.credit = (self.credit - i64::from(bytes)).max(-(self.full as i64));
        if self.hinted_rate > 0.0 && self.hint_ends.is_never() {
            let rtt = if self.rtt == Duration::MAX { Duration::ZERO } else { self.rtt };
            self.hint_ends = now + self.window() + rtt;
            if self.initial == self.ten_packets() {
                self.resume = Resume::default();
            }
        }
        self.resume.on_sent(now);
    }
    fn window(&self) -> Duration {
        self.history.length().saturating_mul(history::WINDOW)
    }

    /// A packet that was sent at `sent` is acknowledged now.
    #[inline]
    pub fn on_arrived(&mut self, now: Time, sent: Time, bytes: u16) {
        self.history.on_arrived(now, sent, u32::from(bytes));
        if let Some(half) = self.resume.on_arrived(now, sent, u64::from(bytes)) {
            self.credit = half.max(2 * self.full) as i64;
            return;
        }
        if self.resume.is_in_retreat() {
            return;
        }
        let more = GROWTH * u64::from(bytes);
        self.credit = self.credit.saturating_add_unsigned(more);
        self.granted = self.granted.saturating_add(more);
    }

    /// The end of a report.
    #[inline]
    pub fn on_report(&mut self, now: Time) {
        self.history.on_report();
        if self.hinted_rate > 0.0 && now >= self.hint_ends {
            self.forget_hints();
        }
        if self.first_rounds != FirstRounds::Over {
            self.go_on_with_first_rounds(now);
        }
        // The scale that is no shorter than a round trip.
        let trip = usize::from(self.rtt > self.history.length());
        let kept = self.history.most(trip).max(self.initial).saturating_add(self.beyond());
        let granted = std::mem::take(&mut self.granted).min(PROBE_PACKETS * self.full);
        self.credit = self.credit.min(i64::try_from(kept.max(granted)).unwrap_or(i64::MAX));
        if let FirstRounds::Until(_) = self.first_rounds {
            // The extra credit of the first rounds does not add to the credit of packets that arrive meanwhile.
            let last = SCALES.len() - 1;
            let permitted = GROWTH * self.history.most(last) + self.initial + self.beyond();
            let left = permitted.saturating_sub(self.history.recent(last));
            self.credit = self.credit.min(i64::try_from(left).unwrap_or(i64::MAX));
        }
    }
    /// The highest rate that arrived in a third of the window: long enough that a filling queue makes little
    /// difference.
    pub fn max_delivered(&self) -> Rate {
        Rate::from_bps_f64(
            self.history.most(1) as f64 * 8.0
                / (SCALES[1] as f64 * self.history.length().as_secs_f64()),
        )
    }
    fn forget_hints(&mut self) {
        self.initial = self.ten_packets();
        self.hinted_rate = 0.0;
    }

    fn fall_back(&mut self) {
        self.forget_hints();
        self.credit = self.credit.min(self.initial as i64);
    }

    /// No packet was received for a PTO.
    pub fn on_pto(&mut self) {
        self.fall_back();
    }

    /// A packet that left at `sent` is lost. Returns whether the flight of a stored rate retreats.
    #[inline]
    pub fn on_lost(&mut self, now: Time, sent: Time) -> bool {
        self.resume.on_lost(now, sent) && self.retreat()
    }
    /// Packets came with CE marks. Returns whether the flight of a stored rate retreats.
    #[inline]
    pub fn on_marks(&mut self, now: Time) -> bool {
        self.resume.on_marks(now) && self.retreat()
    }
    #[cold]
    fn retreat(&mut self) -> bool {
        self.forget_hints();
        self.first_rounds = FirstRounds::Over;
        self.credit = 0;
        true
    }

    #[inline]
    pub fn decision(&mut self, now: Time) -> LimiterDecision {
        if self.credit <= 0 {
            return LimiterDecision::Acknowledgement;
        }
        self.history.advance(now);
        if (0..SCALES.len()).any(|n| self.history.recent(n) >= self.permitted(now, n)) {
            return LimiterDecision::Until(self.history.next_slot());
        }
        LimiterDecision::Free
    }
    /// Bytes that may leave in a stretch of this scale.
    #[inline]
    fn permitted(&self, now: Time, scale: usize) -> u64 {
        let hinted = if self.hinted_rate > 0.0 && now < self.hint_ends {
            (self.hinted_rate * self.history.length().as_secs_f64() * SCALES[scale] as f64) as u64
        } else {
            0
        };
        let most = self.history.most(scale).saturating_mul(GROWTH).max(hinted);
        (self.ten_packets() + self.beyond()).saturating_add(most)
    }
}

fn slot_of(rtt: Duration) -> Duration {
    let rtt = rtt.min(Duration::from_secs(10));
    let window = rtt.saturating_mul(WINDOW_ROUND_TRIPS).max(MIN_WINDOW);
    Duration::from_nanos(window.as_nanos() / history::WINDOW)
}

#[cfg(test)]
#[path = "limiter_tests.rs"]
mod tests;
