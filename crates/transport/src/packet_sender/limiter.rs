//! No controller sends more than twice what the path delivers.
//!
//! A controller depends on path hints (rates, round trips), and on the peer's timing of acknowledgements,
//! marks, loss causes and feedback. All of these can be forged; that a packet arrived cannot. So this is
//! what any controller may send at most:
//!
//! 1. *By acknowledgements.* Every byte that arrived permits two more, on top of an initial window of ten
//!    packets (RFC 6928): slow start's growth. What was permitted and not used is kept, for applications
//!    that pause (RFC 7661), but no more of it than what arrived of one round trip, or than the last report
//!    permits, up to [`PROBE_PACKETS`]: where one report comes in a round trip that a queue has made long, it
//!    answers more than arrives in the shortest round trip. Not all that it permits is kept, or a receiver that
//!    holds reports back would have all of it sent at once. A probe timeout takes it back to the initial window:
//!    who hears nothing sends no more.
//! 2. *By time.* In a window of time no more leaves than the initial window and twice the most that ever
//!    arrived of such a window: by the times at which packets left, since a receiver that holds back its
//!    acknowledgements and sends them together can pretend any rate by when they come; and by when they
//!    come, since a long queue takes more than the link delivers. This holds for three lengths: the longer
//!    of a second and three round trips, and a third and a twelfth of that. It is remembered for some
//!    minutes (`limiter/history.rs`).
//!
//! Rates that are known beforehand:
//! - This side's own user says it: the initial window is that rate's bandwidth-delay product.
//! - A measurement that was stored for this peer says it: half of that, at half the rate.
//! - The peer says it, or the spacing of its answers: nothing before the first acknowledgement; then, once
//!   on a path, whoever wants to try a rate may send [`PROBE_PACKETS`] in all beyond twice what the path has
//!   shown to carry in a window: what arrived of the packets that left since some moment, divided by the time
//!   since then, is a rate that it has at least. That may leave in any part of the window, as long as it rises.
//!
//! Probe timeouts and MTU probes are no part of this, and a packet may always leave when nothing is in
//! flight.

mod history;

use history::{History, SCALES};
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{HintSource, PathHints};

/// RFC 6928.
const INITIAL_PACKETS: u64 = 10;
/// Packets of the flight that tries a rate which the peer gave as a hint, the initial window included; and of
/// what one report permits, those that may be kept.
const PROBE_PACKETS: u64 = 64;
/// By how much the rate that an opening has shown may go beyond what arrived of a window of time: a path that
/// passes a burst faster than it goes on shows too much.
const MAX_SHOWN_PACKETS: u64 = 512;
/// What arrived permits so much more.
const GROWTH: u64 = 2;
/// The time over which sending is bounded: at least this, and so many round trips.
const MIN_WINDOW: Duration = Duration::from_secs(1);
const WINDOW_ROUND_TRIPS: u64 = 3;
/// Round trips that differ by less do not change the window.
const SIMILAR: f64 = 0.8;

/// Whether another packet may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LimiterDecision {
    Free,
    /// Not before something arrives.
    Acknowledgement,
    /// Not before this time.
    Until(Time),
}

/// What is permitted beyond what arrived, once on a path, to whoever tries a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FirstRounds {
    /// Nothing was acknowledged.
    NothingAcknowledged,
    /// Over if what the path has shown does not rise until then.
    Until(Time),
    Over,
}

#[derive(Clone, Debug)]
pub(super) struct Limiter {
    /// Bytes of a full packet.
    full: u64,
    /// Bytes that acknowledgements permit; below zero by no more than a packet.
    credit: i64,
    /// ... of them, those that the report being read permits.
    granted: u64,
    /// Initial window, bytes.
    initial: u64,
    first_rounds: FirstRounds,
    /// What the first round trips permit beyond what arrived: the path carries so many bytes in a window of time, as it has
    /// shown; and a train to try a rate with, in the first window.
    shown: u64,
    train_until: Option<Time>,
    /// Smallest round-trip time known.
    rtt: Duration,
    history: History,
    /// Bytes per second that may leave by what was told, the round trip that was told with it, and until
    /// when it counts in windows of time.
    hinted_rate: f64,
    hinted_rtt: Option<Duration>,
    hint_ends: Time,
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
            history: History::new(slot_of(Duration::MAX)),
            hinted_rate: 0.0,
            hinted_rtt: None,
            hint_ends: Time::NEVER,
        }
    }

    /// The path is another one, of which nothing is known.
    pub fn restart(&mut self) {
        *self = Limiter::new(self.full.try_into().unwrap_or(u32::MAX));
    }

    fn ten_packets(&self) -> u64 {
        INITIAL_PACKETS * self.full
    }

    /// Somebody says what the path's rate is.
    pub fn on_hints(&mut self, hints: &PathHints, source: HintSource) {
        let Some(rate) = hints.rate else { return };
        let share = match source {
            HintSource::User => 1.0,
            HintSource::Stored => 0.5,
            HintSource::Peer => return,
        };
        self.hinted_rate = share * rate.as_bps() as f64 / 8.0;
        self.hinted_rtt = hints.rtt;
        self.hint_ends = Time::NEVER;
        self.open_as_told();
    }
    /// The initial window is the bandwidth-delay product of the path hints.
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

    /// Bytes beyond what arrived permits, while a rate is tried.
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
    /// Something arrived: a rate may be tried, or was, and higher ones may follow.
    fn go_on_with_first_rounds(&mut self, now: Time) {
        let (before, until) = (self.beyond(), now + self.window());
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
        if first {
            self.open_as_told();
        }
        let slot = slot_of(rtt);
        if slot.as_secs_f64() < SIMILAR * self.history.length().as_secs_f64() {
            self.history.change(now, slot);
        }
    }

    /// A packet leaves.
    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes: u32) {
        self.history.on_sent(now, bytes);
        self.credit = (self.credit - i64::from(bytes)).max(-(self.full as i64));
        if self.hinted_rate > 0.0 && self.hint_ends.is_never() {
            let rtt = if self.rtt == Duration::MAX { Duration::ZERO } else { self.rtt };
            self.hint_ends = now + self.window() + rtt;
        }
    }
    fn window(&self) -> Duration {
        self.history.length().saturating_mul(history::WINDOW)
    }

    /// A packet that left at `sent` has arrived, as a report of now says.
    #[inline]
    pub fn on_arrived(&mut self, now: Time, sent: Time, bytes: u16) {
        self.history.on_arrived(now, sent, u32::from(bytes));
        let more = GROWTH * u64::from(bytes);
        self.credit = self.credit.saturating_add_unsigned(more);
        self.granted = self.granted.saturating_add(more);
    }

    /// A report was read.
    #[inline]
    pub fn on_report(&mut self, now: Time) {
        self.history.on_report();
        if self.hinted_rate > 0.0 && now >= self.hint_ends {
            self.forget_hints();
        }
        if self.first_rounds != FirstRounds::Over {
            self.go_on_with_first_rounds(now);
        }
        // Of a scale that is no shorter than a round trip.
        let trip = usize::from(self.rtt > self.history.length());
        let kept = self.history.most(trip).max(self.initial).saturating_add(self.beyond());
        let granted = std::mem::take(&mut self.granted).min(PROBE_PACKETS * self.full);
        self.credit = self.credit.min(i64::try_from(kept.max(granted)).unwrap_or(i64::MAX));
        if let FirstRounds::Until(_) = self.first_rounds {
            // What a rate was tried with is no addition to what arrives meanwhile.
            let last = SCALES.len() - 1;
            let permitted = GROWTH * self.history.most(last) + self.initial + self.beyond();
            let left = permitted.saturating_sub(self.history.recent(last));
            self.credit = self.credit.min(i64::try_from(left).unwrap_or(i64::MAX));
        }
    }
    /// Of a third of the window: long enough that a queue that fills makes little difference.
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

    /// Nothing was received for a probe timeout.
    pub fn on_probe_timeout(&mut self) {
        self.forget_hints();
        self.credit = self.credit.min(self.initial as i64);
    }

    /// Whether the next packet may leave.
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
    /// Bytes that may leave in so many slots.
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
