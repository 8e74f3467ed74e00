//! Bytes sent and arrived per slot of time.

use narrows_base::{Duration, Time};

/// The longest stretch, in slots.
pub(super) const WINDOW: u64 = 12;
/// Lengths of stretches, in slots.
pub(super) const SCALES: [usize; 3] = [1, 4, WINDOW as usize];
/// Slots kept. Packets sent more than five windows ago do not count when they arrive.
const SLOTS: usize = 64;
/// The maxima are remembered for this time to twice as long.
const MEMORY: Duration = Duration::from_secs(150);

/// Limit on the extrapolation of `shown` to a window, as a factor.
const MAX_SHOWN_TIMES: f64 = 3.0;

/// Bytes of a slot: sent in it; of these, arrived; and acknowledged in it.
#[derive(Clone, Copy, Default, Debug)]
struct HistorySlot {
    sent: u32,
    arrived: u32,
    acknowledged: u32,
}

/// Maximum over all stretches of one length: bytes sent in it that arrived, and bytes acknowledged in it.
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
pub(super) struct SendHistory {
    length: Duration,
    slots: [HistorySlot; SLOTS],
    /// The present slot's number, when it ends, and the bytes sent in the last slots of each scale.
    current: u64,
    ends: Time,
    recent: [u64; SCALES.len()],
    /// The lowest and highest slot with packets that the present report acknowledges.
    touched: Option<(u64, u64)>,
    /// Of the present period, which began at `period`, and of the one before.
    most: [[Most; SCALES.len()]; 2],
    period: Time,
}

impl SendHistory {
    /// `length` is that of a slot.
    pub fn new(length: Duration) -> SendHistory {
        SendHistory {
            length,
            slots: [HistorySlot::default(); SLOTS],
            current: 0,
            ends: Time::ZERO,
            recent: [0; SCALES.len()],
            touched: None,
            most: [[Most::default(); SCALES.len()]; 2],
            period: Time::ZERO,
        }
    }
    pub fn length(&self) -> Duration {
        self.length
    }
    /// Changes the slots' length. Earlier packets no longer count as sent, but permit more when they arrive.
    pub fn change(&mut self, now: Time, length: Duration) {
        let part = length.as_secs_f64() / self.length.as_secs_f64();
        let most = self.most.map(|period| period.map(|most| most.mul(part)));
        *self = SendHistory { most, period: self.period, ..SendHistory::new(length) };
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
    fn slot_mut(&mut self, number: u64) -> &mut HistorySlot {
        &mut self.slots[number as usize % SLOTS]
    }
    /// Sum over the `n` slots up to `last`.
    fn sum(&self, last: u64, n: usize, part: impl Fn(&HistorySlot) -> u32) -> u64 {
        let first = (last + 1).saturating_sub(n as u64);
        (first..=last).map(|i| u64::from(part(&self.slots[i as usize % SLOTS]))).sum()
    }

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
            *self.slot_mut(n) = HistorySlot::default();
        }
        self.begin(number);
        self.recent = SCALES.map(|n| self.sum(number, n, |s| s.sent));
        if now.since(self.period) > MEMORY {
            self.period = now;
            self.most = [[Most::default(); SCALES.len()], self.most[0]];
        }
    }
    /// When the next slot begins.
    pub fn next_slot(&self) -> Time {
        self.ends
    }

    #[inline]
    pub fn on_sent(&mut self, now: Time, bytes: u32) {
        self.advance(now);
        let sent = &mut self.slot_mut(self.current).sent;
        *sent = sent.saturating_add(bytes);
        for recent in &mut self.recent {
            *recent += u64::from(bytes);
        }
    }
    /// `bytes` sent at `sent` are acknowledged now.
    #[inline]
    pub fn on_arrived(&mut self, now: Time, sent: Time, bytes: u32) {
        self.advance(now);
        let number = self.number(sent);
        let current = self.current;
        let acknowledged = &mut self.slot_mut(current).acknowledged;
        *acknowledged = acknowledged.saturating_add(bytes);
        if number <= current && current - number < SLOTS as u64 {
            let arrived = &mut self.slot_mut(number).arrived;
            *arrived = arrived.saturating_add(bytes);
            let (low, high) = self.touched.unwrap_or((number, number));
            self.touched = Some((low.min(number), high.max(number)));
        }
    }
    /// The end of a report: updates the maxima.
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

    /// The most that arrived in a stretch of this scale: the smaller of the maxima by send time and by acknowledgement
    /// time.
    #[inline]
    pub fn most(&self, scale: usize) -> u64 {
        let most = self.most[0][scale].max(self.most[1][scale]);
        most.arrived.min(most.acknowledged)
    }
    /// Bytes per window that the path has shown to carry: the highest mean rate, over the slots of the last window, of
    /// the bytes sent since a slot began that have arrived. The time includes a round trip. The first packet (`full`
    /// bytes) is subtracted, since a rate shows only in the packets behind it. The factor from a short time to a window
    /// is at most `MAX_SHOWN_TIMES`: a path may pass a burst faster than its long-term rate.
    pub fn shown(&self, now: Time, full: u64) -> u64 {
        let window = self.length.saturating_mul(WINDOW).as_secs_f64();
        let mut arrived = 0;
        let mut most = 0.0f64;
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
    /// Bytes sent in the stretch of this scale that ends now.
    #[inline]
    pub fn recent(&self, scale: usize) -> u64 {
        self.recent[scale]
    }
}
