//! No controller sends more than twice what the path delivers.
//!
//! A controller goes by what it is told: rates and round trips from profiles, and from the peer its
//! acknowledgements' timing, its marks, its verdicts and its advice. All of that can be forged. What
//! cannot be is that a packet arrived. So here is what any controller may do at most:
//!
//! 1. *By acknowledgements.* Every byte that arrived permits two more, on top of an initial window of ten
//!    packets (RFC 6928): slow start's growth. What was permitted and not used is kept, for applications
//!    that pause (RFC 7661), but no more of it than twice what arrived of one round trip. A probe timeout
//!    takes it back to the initial window: who hears nothing sends no more.
//! 2. *By time.* In a window of time no more leaves than the initial window and twice the most that ever
//!    arrived of such a window: by the times at which packets left, since a receiver that holds back its
//!    acknowledgements and sends them together can pretend any rate by when they come; and by when they
//!    come, since a long queue takes more than the link delivers. This holds for three lengths: the longer of a second and three round
//!    trips, and a third and a twelfth of that. It is remembered for some minutes.
//!
//! Rates that are known beforehand:
//! - This side's own user says it: the initial window is that rate's bandwidth-delay product.
//! - A profile that was stored for this peer says it: half of that, at half the rate.
//! - The peer says it, or the spacing of its answers: nothing before the first acknowledgement; then, once
//!   on a path, whoever wants to try a rate may send [`PROBE_PACKETS`] in all, and their acknowledgements
//!   permit more.
//!
//! Probe timeouts and MTU probes are no part of this, and a packet may always leave when nothing is in
//! flight.

use narrows_base::{Duration, Rate, Time};
use narrows_control::{HintSource, Profile};

/// RFC 6928.
const INITIAL_PACKETS: u64 = 10;
/// Packets of the flight that tries a rate which the peer told, the initial window included.
const PROBE_PACKETS: u64 = 64;
/// When so many of them arrived, the path has shown what it carries in a window of time: as much may be
/// sent at once, but no more than this.
const PROVEN_PACKETS: u64 = 48;
const MAX_PROVEN_PACKETS: u64 = 512;
/// What arrived permits so much more.
const GROWTH: u64 = 2;
/// The time over which sending is bounded: at least this, and so many round trips.
const SHORTEST_WINDOW: Duration = Duration::from_secs(1);
const WINDOW_ROUND_TRIPS: u64 = 3;
/// It has so many slots.
const WINDOW_SLOTS: u64 = 12;
/// Lengths in slots for which sending is bounded.
const SCALES: [usize; 3] = [1, 4, WINDOW_SLOTS as usize];
/// Slots that are remembered: what left longer ago than five windows tells nothing when it arrives.
const SLOTS: usize = 64;
/// What arrived of a window is remembered for this time, and up to twice as long.
const MEMORY: Duration = Duration::from_secs(150);
/// Round trips that differ by less do not change the window.
const SIMILAR: f64 = 0.8;

/// Whether another packet may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Free,
    /// Not before something arrives.
    Acknowledgement,
    /// Not before this time.
    Until(Time),
}

/// Bytes beyond what arrived permits, once on a path, for whoever tries a rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Probe {
    /// Nothing was acknowledged.
    Unheard,
    /// A train may leave since then; so many bytes of what left since have arrived.
    Train(Time, u64),
    /// It arrived: so many bytes, until then.
    Proven(u64, Time),
    Over,
}

/// Bytes of a slot of time: that left, of these the ones that arrived, and that were acknowledged in it.
#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    sent: u64,
    arrived: u64,
    acknowledged: u64,
}

/// The most bytes of any stretch of so many slots: that left in it and arrived, and that were acknowledged
/// in it.
#[derive(Clone, Copy, Default, Debug)]
struct Most {
    arrived: u64,
    acknowledged: u64,
}

impl Most {
    fn max(self, other: Most) -> Most {
        Most {
            arrived: self.arrived.max(other.arrived),
            acknowledged: self.acknowledged.max(other.acknowledged),
        }
    }
    fn mul(self, part: f64) -> Most {
        let of = |bytes: u64| (bytes as f64 * part) as u64;
        Most { arrived: of(self.arrived), acknowledged: of(self.acknowledged) }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Limiter {
    /// Bytes of a full packet.
    full: u64,
    /// Bytes that acknowledgements permit; below zero by no more than a packet.
    credit: i64,
    /// Initial window, bytes.
    initial: u64,
    probe: Probe,
    /// Smallest round-trip time known.
    rtt: Duration,
    slot: Duration,
    slots: [Slot; SLOTS],
    /// The present slot's number, and what left in the last slots of each scale.
    current: u64,
    recent: [u64; SCALES.len()],
    /// The slots that the report being read is about.
    touched: Option<(u64, u64)>,
    /// The most that arrived of so many slots, of this period and of the one before.
    most: [[Most; SCALES.len()]; 2],
    period: Time,
    /// Bytes per second that may leave by what was told, the round trip that was told with it, and until
    /// when it counts in windows of time.
    told: f64,
    told_rtt: Option<Duration>,
    told_until: Time,
}

impl Limiter {
    /// `full` is a full packet's bytes on the wire.
    pub fn new(full: u32) -> Limiter {
        let full = u64::from(full.max(1));
        Limiter {
            full,
            credit: (INITIAL_PACKETS * full) as i64,
            initial: INITIAL_PACKETS * full,
            probe: Probe::Unheard,
            rtt: Duration::MAX,
            slot: slot_of(Duration::MAX),
            slots: [Slot::default(); SLOTS],
            current: 0,
            recent: [0; SCALES.len()],
            touched: None,
            most: [[Most::default(); SCALES.len()]; 2],
            period: Time::ZERO,
            told: 0.0,
            told_rtt: None,
            told_until: Time::NEVER,
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
    pub fn on_told(&mut self, profile: &Profile, source: HintSource) {
        let Some(rate) = profile.rate else { return };
        let share = match source {
            HintSource::User => 1.0,
            HintSource::Stored => 0.5,
            HintSource::Peer => return,
        };
        self.told = share * rate.as_bps() as f64 / 8.0;
        self.told_rtt = profile.rtt;
        self.told_until = Time::NEVER;
        self.open_as_told();
    }
    /// The initial window is the bandwidth-delay product of what was told.
    fn open_as_told(&mut self) {
        let known = (self.rtt != Duration::MAX).then_some(self.rtt);
        let Some(rtt) = self.told_rtt.or(known) else { return };
        // A float's cast saturates.
        let product = (self.told * rtt.as_secs_f64()) as u64;
        if product > self.initial {
            self.credit = self.credit.saturating_add_unsigned(product - self.initial);
            self.initial = product;
        }
    }

    /// Bytes of the flight that tries a rate, beyond the initial window, while it is permitted.
    fn probe(&self) -> u64 {
        match self.probe {
            Probe::Train(..) => (PROBE_PACKETS - INITIAL_PACKETS) * self.full,
            Probe::Proven(bytes, _) => bytes,
            Probe::Unheard | Probe::Over => 0,
        }
    }
    /// Something arrived: a train may leave, or has arrived, or its time is over.
    fn probe_further(&mut self, now: Time) {
        match self.probe {
            Probe::Unheard => {
                self.probe = Probe::Train(now, 0);
                self.credit = self.credit.saturating_add_unsigned(self.probe());
            }
            Probe::Train(since, arrived) if arrived >= PROVEN_PACKETS * self.full => {
                // So much arrived in this time, the round trip included: the path carries no less.
                let windows =
                    self.window().as_secs_f64() / narrows_control::positive(now.since(since));
                let more = (arrived as f64 * windows) as u64;
                let more = more.min(MAX_PROVEN_PACKETS * self.full);
                self.probe = Probe::Proven(more, now + self.window());
                self.credit = self.credit.saturating_add_unsigned(more);
            }
            Probe::Train(since, _) if now.since(since) > self.window() => self.probe = Probe::Over,
            Probe::Proven(_, until) if now > until => self.probe = Probe::Over,
            _ => {}
        }
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
        let part = slot.as_secs_f64() / self.slot.as_secs_f64();
        if part >= SIMILAR {
            return;
        }
        for most in self.most.as_flattened_mut() {
            *most = most.mul(part);
        }
        // What left before is not counted any more: it permits by its arrival alone.
        self.slots = [Slot::default(); SLOTS];
        self.recent = [0; SCALES.len()];
        self.slot = slot;
        self.current = self.number(now);
        self.touched = None;
    }

    #[inline]
    fn number(&self, at: Time) -> u64 {
        at.as_nanos() / self.slot.as_nanos().max(1)
    }
    #[inline]
    fn slot_mut(&mut self, number: u64) -> &mut Slot {
        &mut self.slots[number as usize % SLOTS]
    }

    /// Time passes.
    #[inline]
    fn advance(&mut self, now: Time) {
        let number = self.number(now);
        if number > self.current {
            self.turn(now, number);
        }
    }
    #[cold]
    fn turn(&mut self, now: Time, number: u64) {
        let passed = (number - self.current).min(SLOTS as u64);
        for n in number + 1 - passed..=number {
            *self.slot_mut(n) = Slot::default();
        }
        self.current = number;
        self.recent = SCALES.map(|n| self.sum(number, n, |s| s.sent));
        if now.since(self.period) > MEMORY {
            self.period = now;
            self.most = [[Most::default(); SCALES.len()], self.most[0]];
        }
    }
    /// Of the `n` slots up to `last`.
    fn sum(&self, last: u64, n: usize, part: impl Fn(&Slot) -> u64) -> u64 {
        let first = (last + 1).saturating_sub(n as u64);
        (first..=last).map(|i| part(&self.slots[i as usize % SLOTS])).sum()
    }

    /// A packet leaves.
    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes: u32) {
        self.advance(now);
        let bytes = u64::from(bytes);
        self.credit = (self.credit - bytes as i64).max(-(self.full as i64));
        let current = self.current;
        self.slot_mut(current).sent += bytes;
        for recent in &mut self.recent {
            *recent += bytes;
        }
        if self.told > 0.0 && self.told_until.is_never() {
            let rtt = if self.rtt == Duration::MAX { Duration::ZERO } else { self.rtt };
            self.told_until = now + self.window() + rtt;
        }
    }
    fn window(&self) -> Duration {
        self.slot.saturating_mul(WINDOW_SLOTS)
    }

    /// A packet that left at `sent` has arrived, as a report of now says.
    #[inline]
    pub fn on_arrived(&mut self, now: Time, sent: Time, bytes: u16) {
        self.advance(now);
        let bytes = u64::from(bytes);
        self.credit = self.credit.saturating_add((GROWTH * bytes) as i64);
        if let Probe::Train(since, arrived) = &mut self.probe
            && sent >= *since
        {
            *arrived += bytes;
        }
        let current = self.current;
        self.slot_mut(current).acknowledged += bytes;
        let number = self.number(sent);
        if number <= current && current - number < SLOTS as u64 {
            self.slot_mut(number).arrived += bytes;
            let (low, high) = self.touched.unwrap_or((number, number));
            self.touched = Some((low.min(number), high.max(number)));
        }
    }

    /// A report was read.
    #[inline]
    pub fn on_report(&mut self, now: Time) {
        self.advance(now);
        let Some((low, high)) = self.touched.take() else { return };
        for (scale, n) in SCALES.into_iter().enumerate() {
            let arrived =
                (low..=high).map(|last| self.sum(last, n, |s| s.arrived)).max().unwrap_or(0);
            let acknowledged = self.sum(self.current, n, |s| s.acknowledged);
            let most = &mut self.most[0][scale];
            *most = most.max(Most { arrived, acknowledged });
        }
        let trip = usize::from(self.rtt > self.slot);
        if self.told > 0.0 && now >= self.told_until {
            self.forget_told();
        }
        if self.probe != Probe::Over {
            self.probe_further(now);
        }
        let kept = self.most_of(trip).max(self.initial) + self.probe();
        self.credit = self.credit.min(i64::try_from(kept).unwrap_or(i64::MAX));
    }
    /// Of the shortest of the lengths of time.
    pub fn most_delivered(&self) -> Rate {
        Rate::from_bps_f64(self.most_of(0) as f64 * 8.0 / self.slot.as_secs_f64())
    }
    fn most_of(&self, scale: usize) -> u64 {
        let most = self.most[0][scale].max(self.most[1][scale]);
        most.arrived.min(most.acknowledged)
    }

    fn forget_told(&mut self) {
        self.initial = self.ten_packets();
        self.told = 0.0;
    }

    /// Nothing was heard for a probe timeout.
    pub fn on_probe_timeout(&mut self) {
        self.forget_told();
        self.credit = self.credit.min(self.initial as i64);
    }
    /// Whether nothing may leave that is no probe.
    pub fn is_spent(&self) -> bool {
        self.credit <= 0
    }

    /// Whether the next packet may leave.
    #[inline]
    pub fn verdict(&mut self, now: Time) -> Verdict {
        if self.credit <= 0 {
            return Verdict::Acknowledgement;
        }
        self.advance(now);
        if (0..SCALES.len()).any(|scale| self.recent[scale] >= self.permitted(now, scale)) {
            let next = self.slot.as_nanos().saturating_mul(self.current + 1);
            return Verdict::Until(Time::from_nanos(next));
        }
        Verdict::Free
    }
    /// Bytes that may leave in so many slots.
    #[inline]
    fn permitted(&self, now: Time, scale: usize) -> u64 {
        let told = if self.told > 0.0 && now < self.told_until {
            (self.told * self.slot.as_secs_f64() * SCALES[scale] as f64) as u64
        } else {
            0
        };
        let most = self.most_of(scale).saturating_mul(GROWTH).max(told);
        (self.ten_packets() + self.probe()).saturating_add(most)
    }
}

fn slot_of(rtt: Duration) -> Duration {
    let rtt = rtt.min(Duration::from_secs(10));
    let window = rtt.saturating_mul(WINDOW_ROUND_TRIPS).max(SHORTEST_WINDOW);
    Duration::from_nanos(window.as_nanos() / WINDOW_SLOTS)
}

#[cfg(test)]
#[path = "limiter_tests.rs"]
mod tests;
