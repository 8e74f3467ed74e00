//! What left and what arrived, by slots of time.

use narrows_base::{Duration, Time};

/// The longest stretch that counts has so many slots.
pub(super) const WINDOW: u64 = 12;
/// Stretches, in slots.
pub(super) const SCALES: [usize; 3] = [1, 4, WINDOW as usize];
/// Slots that are remembered: what left longer ago than five windows tells nothing when it arrives.
const SLOTS: usize = 64;
/// The most of a stretch is remembered for this time, and up to twice as long.
const MEMORY: Duration = Duration::from_secs(150);

/// What arrived shows at most so many times as much for a window.
const MAX_SHOWN_TIMES: f64 = 3.0;

/// Bytes of a slot: that left, of these the ones that arrived, and that were acknowledged in it.
#[derive(Clone, Copy, Default, Debug)]
struct Slot {
    sent: u32,
    arrived: u32,
    acknowledged: u32,
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
pub(super) struct History {
    length: Duration,
    slots: [Slot; SLOTS],
    /// The present slot's number, when it ends, and what left in the last slots of each scale.
    current: u64,
    ends: Time,
    recent: [u64; SCALES.len()],
    /// The slots of which the report that is being read tells.
    touched: Option<(u64, u64)>,
    /// Of this period and of the one before.
    most: [[Most; SCALES.len()]; 2],
    period: Time,
}

impl History {
    /// Slots have this length.
    pub fn new(length: Duration) -> History {
        History {
            length,
            slots: [Slot::default(); SLOTS],
            current: 0,
            ends: Time::ZERO,
            recent: [0; SCALES.len()],
            touched: None,
            most: [[Most::default(); SCALES.len()]; 2],
            period: Time::ZERO,
        }
    }
    /// Length of a slot.
    pub fn length(&self) -> Duration {
        self.length
    }
    /// Slots are so long from now on. What left before is not counted any more: it permits by its arrival.
    pub fn change(&mut self, now: Time, length: Duration) {
        let part = length.as_secs_f64() / self.length.as_secs_f64();
        let most = self.most.map(|period| period.map(|most| most.mul(part)));
        *self = History { most, period: self.period, ..History::new(length) };
        self.begin(self.number(now));
    }
    fn begin(&mut self, number: u64) {
        self.current = number;
        self.ends = Time::from_nanos(self.length.as_nanos().saturating_mul(number + 1));
    }

    #[inline]
    fn number(&self, at: Time) -> u64 {
        at.as_nanos() / self.length.as_nanos().max(1)
    }
    #[inline]
    fn slot_mut(&mut self, number: u64) -> &mut Slot {
        &mut self.slots[number as usize % SLOTS]
    }
    /// Of the `n` slots up to `last`.
    fn sum(&self, last: u64, n: usize, part: impl Fn(&Slot) -> u32) -> u64 {
        let first = (last + 1).saturating_sub(n as u64);
        (first..=last).map(|i| u64::from(part(&self.slots[i as usize % SLOTS]))).sum()
    }

    /// Time passes.
    #[inline]
    pub fn advance(&mut self, now: Time) {
        if now >= self.ends {
            self.turn(now);
        }
    }
    #[cold]
    fn turn(&mut self, now: Time) {
        let number = self.number(now);
        let passed = (number - self.current).min(SLOTS as u64);
        for n in number + 1 - passed..=number {
            *self.slot_mut(n) = Slot::default();
        }
        self.begin(number);
        self.recent = SCALES.map(|n| self.sum(number, n, |s| s.sent));
        if now.since(self.period) > MEMORY {
            self.period = now;
            self.most = [[Most::default(); SCALES.len()], self.most[0]];
        }
    }
    /// When the slot that follows begins.
    pub fn next_slot(&self) -> Time {
        self.ends
    }

    /// So many bytes leave.
    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes: u32) {
        self.advance(now);
        let sent = &mut self.slot_mut(self.current).sent;
        *sent = sent.saturating_add(bytes);
        for recent in &mut self.recent {
            *recent += u64::from(bytes);
        }
    }
    /// So many bytes that left at `sent` have arrived.
    #[inline]
    pub fn on_arrived(&mut self, now: Time, sent: Time, bytes: u32) {
        self.advance(now);
        let (number, current) = (self.number(sent), self.current);
        let acknowledged = &mut self.slot_mut(current).acknowledged;
        *acknowledged = acknowledged.saturating_add(bytes);
        if number <= current && current - number < SLOTS as u64 {
            let arrived = &mut self.slot_mut(number).arrived;
            *arrived = arrived.saturating_add(bytes);
            let (low, high) = self.touched.unwrap_or((number, number));
            self.touched = Some((low.min(number), high.max(number)));
        }
    }
    /// The report is read.
    #[inline]
    pub fn on_report(&mut self) {
        let Some((low, high)) = self.touched.take() else { return };
        for (scale, n) in SCALES.into_iter().enumerate() {
            let arrived = (low..=high).map(|last| self.sum(last, n, |s| s.arrived)).max();
            let acknowledged = self.sum(self.current, n, |s| s.acknowledged);
            let most = &mut self.most[0][scale];
            *most = most.max(Most { arrived: arrived.unwrap_or(0), acknowledged });
        }
    }

    /// The most that arrived of a stretch of this scale: by when it left and by when it was acknowledged.
    #[inline]
    pub fn most(&self, scale: usize) -> u64 {
        let most = self.most[0][scale].max(self.most[1][scale]);
        most.arrived.min(most.acknowledged)
    }
    /// Bytes that the path carries in a window, at least: by the highest mean rate at which what left since some moment
    /// of the last window has arrived. Of what else arrived meanwhile nothing counts, and the round trip does; the first
    /// packet (`full` bytes) waits for none, so that only what came behind it shows a rate. Where
    /// that is short, what has arrived shows no more than some times itself: a path may pass a burst faster than it
    /// goes on.
    pub fn shown(&self, now: Time, full: u64) -> u64 {
        let window = self.length.saturating_mul(WINDOW).as_secs_f64();
        let (mut arrived, mut most) = (0, 0.0f64);
        for back in 0..=WINDOW.min(self.current) {
            let number = self.current - back;
            arrived += u64::from(self.slots[number as usize % SLOTS].arrived);
            let since = Time::from_nanos(self.length.as_nanos().saturating_mul(number));
            let took = now.since(since).as_secs_f64();
            if took > 0.0 {
                let between = arrived.saturating_sub(full) as f64;
                most = most.max(between * (window / took).min(MAX_SHOWN_TIMES));
            }
        }
        most as u64
    }
    /// What left in the stretch of this scale that ends now.
    #[inline]
    pub fn recent(&self, scale: usize) -> u64 {
        self.recent[scale]
    }
}
