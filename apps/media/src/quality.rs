//! Selects the layers that are sent: the rules of `narrows_congestion::layers` (Jayaram 2001, section 7.3; Rejaie,
//! Handley and Estrin, SIGCOMM 1999) for a live stream, with a receiver buffer limited to the latency.
//!
//! A layer's buffer is the latency minus its wait at the sender and minus a round trip, in which lost packets can be
//! repeated. Additional rules, since a transport that is not used to its limit cannot measure the limit:
//!
//! - A layer is added once the rate has sufficed for a second.
//! - If a layer must be dropped within ten seconds, the trial has failed. The pause before the next trial doubles, from
//!   20 s to a minute (as in `narrows_congestion::multicast::join`).
//! - The highest layer is dropped if its packets wait too long, whatever the controller's rate is.
//! - A controller permits little more than is used (RFC 7661), and a layer may need more than that. If no packet has
//!   waited for 5 s, the next layer is tried; for its first seconds only waiting packets count, not the rate.
//!
//! The base layer is sent first, so a failed trial does not delay it.

use narrows_base::{Duration, Time};
use narrows_congestion::layers::{Buffers, LayerChange, MAX_LAYERS, Outlook, QualityAdaptation};

/// Number of back-offs that the buffers must survive before a layer is added; a live stream's buffers are small.
const BACKOFFS: u32 = 1;
/// Share of the rate that a back-off keeps; below, the minimum time until the rate has recovered, in seconds (Jayaram
/// 2001, section 7.3: a few seconds).
const KEEP: f64 = 0.5;
const RECOVERY: f64 = 4.0;
/// Time in flight beyond the round trip of frames that are sent evenly.
const UNDER_WAY: Duration = Duration::from_millis(20);
/// Time for which the rate must suffice before a layer is added; also the minimum time between changes.
const STEADY: Duration = Duration::from_secs(1);
const EXPERIMENT: Duration = Duration::from_secs(10);
const SHORTEST_WAIT: Duration = Duration::from_secs(5);
/// Minimum pause after a failed trial, since each trial changes the picture twice.
const FAILED_WAIT: Duration = Duration::from_secs(20);
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// If all waits stay below this share of the latency for [`IDLE`], the next layer is tried. For [`TRIAL`] it is then
/// checked by waits alone.
const IDLE_SHARE: f64 = 0.1;
const IDLE: Duration = Duration::from_secs(5);
const TRIAL: Duration = Duration::from_secs(3);

/// Inputs of an update.
#[derive(Clone, Copy, Debug)]
pub struct QualityInputs<'a> {
    /// Rate available for media, in bit/s.
    pub rate: f64,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Size of a packet in bits.
    pub packet: f64,
    /// Time that the oldest unsent part of each layer has waited.
    pub waited: &'a [Duration],
    /// Whether parts of the highest layer were dropped since the last update.
    pub was_dropped: bool,
}

/// Controls the number of layers that are sent.
#[derive(Debug)]
pub struct Quality {
    rules: QualityAdaptation,
    count: usize,
    latency: Duration,
    /// Time since which the rate has sufficed for the next layer.
    suffices: Option<Time>,
    /// Time since which waits have been short.
    idle: Option<Time>,
    /// Time of the last trial of a layer that the rate did not cover.
    tried: Option<Time>,
    changed: Option<Time>,
    added: Option<Time>,
    wait: Duration,
    retry: Time,
    changes: u64,
}

impl Quality {
    /// Begins with the base layer. Rates are in bit/s, from the base upwards, at most [`MAX_LAYERS`] of them.
    pub fn new(rates: &[f64], latency: Duration) -> Quality {
        Quality {
            rules: QualityAdaptation::new(rates, BACKOFFS, KEEP),
            count: rates.len().clamp(1, MAX_LAYERS),
            latency,
            suffices: None,
            idle: None,
            tried: None,
            changed: None,
            added: None,
            wait: SHORTEST_WAIT,
            retry: Time::ZERO,
            changes: 0,
        }
    }

    /// Number of layers that are sent, at least 1.
    pub fn active(&self) -> usize {
        self.rules.active()
    }
    /// Sum of their rates, in bit/s.
    pub fn consumption(&self) -> f64 {
        self.rules.consumption(self.active())
    }
    /// Number of times that a layer was added or dropped.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Call this several times a second. Returns the change that it has made.
    pub fn update(&mut self, now: Time, seen: &QualityInputs<'_>) -> Option<LayerChange> {
        let margin = (seen.srtt + UNDER_WAY).min(self.latency.mul_f64(0.5)).as_secs_f64();
        let limit_s = self.latency.as_secs_f64() - margin;
        let mut bits = [0.0; MAX_LAYERS];
        for (layer, (bits, waited)) in bits.iter_mut().zip(seen.waited).enumerate() {
            *bits = (limit_s - waited.as_secs_f64()) * self.rules.rate(layer);
        }
        let next = self.rules.consumption(self.active() + 1);
        let suffices = self.active() < self.count && seen.rate >= next;
        self.suffices = if suffices { self.suffices.or(Some(now)) } else { None };
        let longest = self.latency.mul_f64(IDLE_SHARE);
        let is_idle = seen.waited.iter().all(|waited| *waited <= longest);
        self.idle = if is_idle { self.idle.or(Some(now)) } else { None };
        let is_settled = self.changed.is_none_or(|at| now.since(at) >= STEADY);
        let may_add = is_settled && now >= self.retry;
        let is_steady = self.suffices.is_some_and(|since| now.since(since) >= STEADY);
        let is_trial = may_add
            && !is_steady
            && self.active() < self.count
            && seen.rate >= self.consumption()
            && self.idle.is_some_and(|since| now.since(since) >= IDLE);
        // Limit the rate to the consumption, so that the rules add no layer.
        let on_trial = self.tried.is_some_and(|at| now.since(at) <= TRIAL);
        let rate = match () {
            () if is_trial => next,
            () if may_add && is_steady => seen.rate,
            () if on_trial => self.consumption(),
            () => seen.rate.min(self.consumption()),
        };
        // If packets of the highest layer were dropped, the path does not carry it, whatever the controller's rate is.
        let is_behind = seen.was_dropped && is_settled && self.active() > 1;
        let below = self.rules.consumption(self.active() - 1);
        let (rate, bits) = if is_behind { (below, [0.0; MAX_LAYERS]) } else { (rate, bits) };
        let srtt = seen.srtt.as_secs_f64();
        let aimd = seen.packet / (srtt * srtt).max(1e-12);
        let slope = ((1.0 - KEEP) * rate / RECOVERY).min(aimd).max(1.0);
        let change = self.rules.adapt(Outlook { rate, slope }, &Buffers { bits, limit_s })?;
        self.changes += 1;
        self.changed = Some(now);
        self.suffices = None;
        self.idle = None;
        self.tried = None;
        match change {
            LayerChange::Added => {
                self.added = Some(now);
                self.tried = is_trial.then_some(now);
            }
            LayerChange::Dropped => {
                let failed = self.added.take().is_some_and(|at| now.since(at) <= EXPERIMENT);
                let longer = self.wait.saturating_mul(2).max(FAILED_WAIT);
                self.wait = if failed { longer.min(LONGEST_WAIT) } else { SHORTEST_WAIT };
                self.retry = now + self.wait;
            }
        }
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: [f64; 3] = [500e3, 1000e3, 2000e3];

    /// The layers every 50 ms at this rate; `behind` decides whether parts of the highest layer wait and are dropped.
    fn played(
        seconds: u64,
        rate: impl Fn(f64) -> f64,
        behind: impl Fn(usize) -> bool,
    ) -> (Vec<usize>, u64) {
        let mut quality = Quality::new(&RATES, Duration::from_millis(300));
        let mut all = Vec::new();
        for tick in 0..seconds * 20 {
            let s = tick as f64 / 20.0;
            let was_dropped = behind(quality.active());
            let waited = [Duration::from_millis(if was_dropped { 200 } else { 0 }); 3];
            let srtt = Duration::from_millis(50);
            let seen =
                QualityInputs { rate: rate(s), srtt, packet: 11e3, waited: &waited, was_dropped };
            quality.update(Time::from_secs_f64(s), &seen);
            all.push(quality.active());
        }
        (all, quality.changes())
    }

    #[test]
    fn layers_follow_a_rate_step_then_stay() {
        let rate = |s: f64| if (20.0..40.0).contains(&s) { 0.8e6 } else { 4e6 };
        let (all, changes) = played(60, rate, |_| false);
        assert_eq!((all[19 * 20], all[30 * 20], all[59 * 20]), (3, 1, 3));
        // Dropped within half a second.
        assert_eq!(all[20 * 20 + 10], 1);
        // Two up, two down, two up, and failed trials.
        assert!(changes <= 10, "{changes}");
    }

    #[test]
    fn rate_near_a_layers_does_not_make_it_flap() {
        let (_, changes) = played(120, |s| 3.5e6 * (1.0 + 0.08 * (s * 3.0).sin()), |_| false);
        assert!(changes <= 12, "{changes}");
    }

    #[test]
    fn late_layer_is_tried_with_growing_intervals() {
        // At most one change in ten seconds, including the first minute.
        let (_, changes) = played(60, |_| 50e6, |active| active == 3);
        assert!(changes <= 6, "{changes}");
        let (all, changes) = played(300, |_| 50e6, |active| active == 3);
        assert!(all.iter().all(|active| *active >= 1) && changes <= 15, "{changes}");
        assert!(all.iter().filter(|active| **active == 2).count() > all.len() * 9 / 10);
    }

    /// A controller that permits at most twice the used rate, on a path without a limit.
    #[test]
    fn layer_above_the_known_rate_is_tried() {
        let mut quality = Quality::new(&RATES, Duration::from_millis(300));
        let mut permitted = 0.6e6;
        for tick in 0..600 {
            let seen = QualityInputs {
                rate: permitted,
                srtt: Duration::from_millis(50),
                packet: 11e3,
                waited: &[Duration::ZERO; 3],
                was_dropped: false,
            };
            quality.update(Time::from_secs_f64(f64::from(tick) / 20.0), &seen);
            permitted += 0.05 * (1.2 * quality.consumption() - permitted);
        }
        assert_eq!((quality.active(), quality.changes()), (3, 2));
    }

    #[test]
    fn the_base_layer_stays_whatever_happens() {
        let (all, _) = played(30, |_| 0.0, |_| true);
        assert!(all.iter().all(|active| *active == 1));
    }
}
