//! A stream in layers, added and dropped by the rate that the transport allows and by the receiver's buffers.
//!
//! The rules are in `narrows_congestion::layers`. This module adds a schedule of play-out and an estimate of the
//! receiver's buffers (data written and not yet shown, assuming no loss). It keeps two frame intervals of the allowed
//! rate waiting in the transport, so that the transport is neither idle nor late.

use super::{FrameSource, Pattern, SourceEntry, TransportState, number};
use crate::endpoints::FramePart;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Duration, RandomStream, Settings, SpecError, Status, Time};
use narrows_congestion::layers::{Buffers, LayerChange, MAX_LAYERS, Outlook, QualityAdaptation};

pub(super) const ENTRY: SourceEntry =
    SourceEntry { check, ..SourceEntry::new(&DESCRIPTOR, Pattern::Frames(start)) };

const DESCRIPTOR: Descriptor = Descriptor {
    name: "layers",
    summary: "a stream in layers, added and dropped by the rate and the receiver's buffer",
    source: "Jayaram 2001, section 7.3 and chapter 8; Rejaie, Handley and Estrin 1999",
    senses: "the transport's send rate, RTT and unsent bytes at each frame",
    sets: "application data",
    params: &[
        number("count", Unit::None, "layers", 1.0, MAX_LAYERS as f64, 4.0, "ours"),
        number("rate", Unit::BitsPerSecond, "the base layer's rate", 1e3, 1e12, 250e3, "ours"),
        number(
            "growth",
            Unit::None,
            "each further layer's rate over that of the one below",
            0.1,
            10.0,
            1.0,
            "Rejaie 1999: equal layers",
        ),
        number("fps", Unit::None, "frames per second", 0.1, 1000.0, 25.0, "film and PAL"),
        number(
            "latency",
            Unit::Seconds,
            "from the stream's start to its first frame's showing",
            0.001,
            600.0,
            1.0,
            "ours",
        ),
        number(
            "ahead",
            Unit::Seconds,
            "most of the stream that the receiver buffers; the latency, if it is live",
            0.001,
            600.0,
            10.0,
            "ours",
        ),
        number(
            "backoffs",
            Unit::None,
            "reductions of the rate that the buffers must survive before a layer is added",
            0.0,
            20.0,
            2.0,
            "Rejaie 1999, Kmax",
        ),
        number(
            "keep",
            Unit::None,
            "what a reduction leaves of the rate",
            0.01,
            0.99,
            0.5,
            "Rejaie 1999: AIMD",
        ),
        number(
            "recovery",
            Unit::Seconds,
            "shortest assumed time until the rate is regained",
            0.001,
            600.0,
            4.0,
            "Jayaram 2001, section 7.3: a few seconds",
        ),
    ],
    status: Status::Validated("the buffer model against a fluid simulation, by test"),
};

/// Limit on the parts of one write, so that no queue overflows.
const MAX_PARTS: usize = 512;

fn rates(s: &Settings) -> Vec<f64> {
    let base = s.number("rate");
    let growth = s.number("growth");
    let next = |rate: &f64| Some(rate * growth);
    std::iter::successors(Some(base), next).take(s.number("count") as usize).collect()
}

fn check(s: &Settings) -> Result<(), SpecError> {
    let latency = s.number("latency");
    let ahead = s.number("ahead");
    if ahead < latency {
        return Err(SpecError::new(format!(
            "layers: ahead ({}) is below latency ({}): the latency must fit into the buffer",
            Unit::Seconds.show(ahead),
            Unit::Seconds.show(latency)
        )));
    }
    let highest = rates(s).into_iter().fold(0.0, f64::max);
    if highest / s.number("fps") / 8.0 > 1e9 {
        return Err(SpecError::new(format!(
            "layers: a frame of the layer of {} is larger than 1 GB: fewer layers, a lower rate or more frames",
            Unit::BitsPerSecond.show(highest)
        )));
    }
    Ok(())
}

fn start(s: &Settings, _: RandomStream) -> Box<dyn FrameSource> {
    let interval = Duration::from_secs_f64(1.0 / s.number("fps"));
    let rates = rates(s);
    Box::new(LayeredSource {
        quality: QualityAdaptation::new(&rates, s.number("backoffs") as u32, s.number("keep")),
        count: rates.len(),
        interval,
        latency: Duration::from_secs_f64(s.number("latency")),
        ahead_s: s.number("ahead"),
        keep: s.number("keep"),
        recovery_s: s.number("recovery"),
        first: None,
        next: [0; MAX_LAYERS],
    })
}

#[derive(Debug)]
struct LayeredSource {
    quality: QualityAdaptation,
    count: usize,
    interval: Duration,
    latency: Duration,
    ahead_s: f64,
    keep: f64,
    recovery_s: f64,
    /// When frame 0 is shown; `None` before the first write.
    first: Option<Time>,
    /// The next frame of each layer to be written.
    next: [u64; MAX_LAYERS],
}

impl LayeredSource {
    fn playout(&self, frame: u64) -> Time {
        self.first.unwrap_or(Time::ZERO) + self.interval.saturating_mul(frame)
    }
    /// Seconds from now until that frame is shown; negative after that.
    fn until(&self, now: Time, frame: u64) -> f64 {
        let at = self.playout(frame);
        at.since(now).as_secs_f64() - now.since(at).as_secs_f64()
    }
    /// The first frame that is shown after `at`.
    fn frame_after(&self, at: Time) -> u64 {
        let since = at.since(self.first.unwrap_or(Time::ZERO));
        since.as_nanos() / self.interval.as_nanos().max(1) + 1
    }
    fn outlook(&self, state: &TransportState) -> Outlook {
        let rate = state.allowed_bps;
        let back = (1.0 - self.keep) * rate / self.recovery_s;
        let srtt = state.srtt.as_secs_f64();
        let aimd = f64::from(state.payload_bytes) * 8.0 / (srtt * srtt).max(1e-12);
        Outlook { rate, slope: back.min(aimd).max(1.0) }
    }
    /// The receiver's estimated buffers, without data that must be in flight.
    fn buffers(&self, now: Time, margin: Duration) -> Buffers {
        let margin_s = margin.as_secs_f64();
        let mut bits = [0.0; MAX_LAYERS];
        for (layer, bits) in bits.iter_mut().enumerate().take(self.count) {
            *bits = (self.until(now, self.next[layer]) - margin_s) * self.quality.rate(layer);
        }
        Buffers { bits, limit_s: self.ahead_s - margin_s }
    }
    fn part(&self, frame: u64, layer: usize, bits: f64, srtt: Duration) -> FramePart {
        let playout = self.playout(frame);
        // Higher layers have earlier deadlines, so that the rest of the time is left to the base layer.
        let early = srtt.mul_f64(0.5) + self.interval.saturating_mul(layer as u64);
        FramePart {
            frame,
            layer: layer as u8,
            bytes: (bits / 8.0).ceil() as u32,
            playout,
            expires: Time::ZERO + playout.since(Time::ZERO + early),
        }
    }
}

impl FrameSource for LayeredSource {
    fn write(&mut self, now: Time, state: &TransportState, parts: &mut Vec<FramePart>) -> Time {
        if self.first.is_none() {
            self.first = Some(now + self.latency);
        }
        let margin = state.srtt + self.interval.saturating_mul(2);
        let margin = margin.min(self.latency.mul_f64(0.5));
        // Frames that can no longer arrive in time are skipped.
        let soonest = self.frame_after(now + state.srtt.mul_f64(0.5));
        for frame in self.next[0]..soonest.max(self.next[0]) {
            if self.until(now, frame) <= state.srtt.as_secs_f64() / 2.0 {
                parts.push(self.part(frame, 0, 0.0, state.srtt));
                self.next[0] = frame + 1;
            }
        }
        let shown = self.next[0].min(soonest);
        for next in &mut self.next[1..] {
            *next = (*next).max(shown);
        }
        let seconds = self.interval.as_secs_f64();
        let outlook = self.outlook(state);
        let mut buffers = self.buffers(now, margin);
        // Full means at most a frame's time below the limit, since that much was shown since the last write.
        let full = Buffers { limit_s: (buffers.limit_s - seconds).max(0.0), ..buffers };
        if self.quality.adapt(outlook, &full) == Some(LayerChange::Added) {
            let added = self.quality.active() - 1;
            let begin = self.frame_after(now + margin).min(self.next[0]);
            self.next[added] = self.next[added].max(begin);
            buffers = self.buffers(now, margin);
        }
        let waiting = state.unsent_bytes as f64 * 8.0;
        let mut budget = 2.0 * outlook.rate * seconds - waiting;
        if state.unsent_bytes == 0 {
            budget = budget.max(1.0);
        }
        while budget > 0.0 && parts.len() < MAX_PARTS {
            let Some(chosen) = self.quality.next_layer(outlook, &buffers) else { break };
            // A layer is of no use without the one below.
            let layer = if self.next[chosen] < self.next[0] { chosen } else { 0 };
            let bits = self.quality.rate(layer) * seconds;
            parts.push(self.part(self.next[layer], layer, bits, state.srtt));
            self.next[layer] += 1;
            buffers.bits[layer] += bits;
            budget -= bits;
        }
        now + self.interval
    }
    fn frame_interval(&self) -> Duration {
        self.interval
    }
    fn layers(&self) -> usize {
        self.count
    }
    fn watch(&self, now: Time, put: &mut dyn FnMut(&'static str, f64)) {
        if self.first.is_some() {
            put("layers", self.quality.active() as f64);
            put("buffer_s", self.until(now, self.next[0]).max(0.0).min(self.ahead_s));
        }
    }
}

#[cfg(test)]
#[path = "layers_tests.rs"]
mod tests;
