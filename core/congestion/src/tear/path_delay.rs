//! The path's own delay, estimated at the receiver for [`super::wireless`].

use super::sender_state::SenderState;
use crate::Arrival;

/// Share of the least RTT by which R1 lies above it.
const SHARE: f64 = 0.12;
/// Minimum of that distance in packets' transmission times.
const PACKETS: f64 = 3.0;
/// Minimum of that distance in seconds.
const MIN_HALF_RTT_S: f64 = 0.002;
/// Minimum of that distance as a multiple of the jitter; and the gain of the jitter's mean.
const NOISE: f64 = 2.0;
const NOISE_GAIN: f64 = 1.0 / 16.0;
/// Kept of the allowance every [`SLOT`] seconds.
const FORGET: f64 = 0.9;
/// A slot of the sliding minimum, in seconds.
const SLOT: f64 = 5.0;
/// Slots of the sliding minimum.
const SLOTS: usize = 6;
/// Packets that a half RTT must have for a valid minimum.
const FEW: u32 = 2;

/// Estimate of the path's own delay.
#[derive(Clone, Debug, Default)]
pub(super) struct PathDelay {
    /// Receiver's clock minus sender's, in seconds: only differences mean something.
    base: Least,
    rtt: Least,
    /// Time between packets that stood in one queue: a packet's transmission time.
    between: Least,
    slot_since: f64,
    last: f64,
    begun: bool,
    /// Least delay of this and the last half RTT, and packets of this one.
    now: Option<f64>,
    past: Option<f64>,
    few: u32,
    half_since: f64,
    /// Smoothed difference between one half RTT's least delay and the next's, in seconds.
    noise: f64,
    /// Delay above the base, in seconds.
    pub queued: f64,
    /// Delay above the base that other causes than the flow's own queue add, in seconds.
    pub foreign: f64,
}

impl PathDelay {
    /// A packet arrived.
    pub fn observe(&mut self, a: &Arrival, sender_state: &SenderState) {
        let now = a.now.as_secs_f64();
        let way = (i128::from(a.now.as_nanos()) - i128::from(a.sent.as_nanos())) as f64 * 1e-9;
        if !self.begun {
            self.begun = true;
            self.slot_since = now;
            self.half_since = now;
        } else if now > self.last {
            self.between.take(now - self.last);
        }
        self.last = now;
        if now - self.slot_since >= SLOT {
            self.slot_since = now;
            self.base.age();
            self.rtt.age();
            self.between.age();
            self.foreign *= FORGET;
        }
        self.base.take(way);
        if sender_state.rtt > 0.0 {
            self.rtt.take(sender_state.rtt);
        }
        self.now = Some(self.now.map_or(way, |x| x.min(way)));
        self.few += 1;
        if self.few >= FEW && now - self.half_since >= sender_state.srtt / 2.0 {
            let min = self.now.take().unwrap_or(way);
            if let Some(past) = self.past {
                self.noise += NOISE_GAIN * ((min - past).abs() - self.noise);
            }
            let both = self.past.map_or(min, |x| x.min(min));
            self.queued = (both - self.base.min().unwrap_or(both)).max(0.0);
            self.past = Some(min);
            self.few = 0;
            self.half_since = now;
        }
    }
    fn least_rtt(&self) -> f64 {
        self.rtt.min().unwrap_or(0.0)
    }
    /// How far R1 lies above the base and the allowance, in seconds.
    pub fn margin(&self) -> f64 {
        let packets = PACKETS * self.between.min().unwrap_or(0.0);
        let path = SHARE * self.least_rtt();
        let noise = NOISE * self.noise;
        // A slow flow's packets may never be queued together, and a queue that grows and drains is not jitter. So both
        // are limited to an RTT.
        path.max(packets.max(noise).min(self.least_rtt())).max(MIN_HALF_RTT_S)
    }
}

/// A minimum over the last [`SLOTS`] slots of time.
#[derive(Clone, Debug, Default)]
struct Least {
    slots: [Option<f64>; SLOTS],
}

impl Least {
    fn take(&mut self, x: f64) {
        let slot = &mut self.slots[0];
        *slot = Some(slot.map_or(x, |s| s.min(x)));
    }
    /// Begins the next slot and discards the oldest, unless it is the only one with a value.
    fn age(&mut self) {
        if self.slots[..SLOTS - 1].iter().any(Option::is_some) {
            self.slots.rotate_right(1);
            self.slots[0] = None;
        }
    }
    fn min(&self) -> Option<f64> {
        self.slots.iter().flatten().copied().reduce(f64::min)
    }
}
