//! Detects paths that share a bottleneck, so that together they take the share of one flow there.
//!
//! Packets of two paths that pass the same queue at the same time wait equally long. So the detector compares the
//! paths' one-way delays, as means over intervals of a quarter of the longest RTT. Their *concordance* is twice their
//! covariance over the sum of their variances: 1 for equal delays, 0 for independent ones. RFC 8382 compares summary
//! statistics instead, since its flows have no common clock.
//!
//! Two separate queues may also vary alike: equal paths with equal controllers probe at the same times. So a high
//! concordance begins only a *trial*. One path sends less than its bottleneck carries, and no longer causes a queue. If
//! its delay still varies as the other's, the queue is shared.
//!
//! Of two paths that share a bottleneck one, the *leader*, carries the data. The other one carries enough packets to
//! measure its delay. If the delays no longer agree, it carries data again. A refuted trial costs a third of one path for
//! about 15 RTT. The pause before the next one grows by a factor of [`PAUSE_GROWTH`].
//!
//! Limits: where a bottleneck has a queue for each flow, or the delays of a path jitter more than the queue varies, the
//! paths count as separate.

use crate::path::{PathState, PathStatus};
use narrows_base::{Duration, Time};

/// Most intervals per longest RTT: a probe of a controller takes an RTT, and must be visible in several. A new interval
/// has 1.25 times that length, so that it seldom changes.
const INTERVALS_PER_RTT: u64 = 4;
/// Shortest interval: a timer's resolution.
const SHORTEST: Duration = Duration::from_millis(2);
/// Number of intervals of which a path keeps the mean.
const KEPT: u64 = 512;
/// Pairs of delays that begin a trial: 30 RTT, more than three cycles of `rrtp`.
const OBSERVED: usize = 96;
/// Pairs that decide a trial: 10 RTT, more than a cycle of `rrtp`.
const DECISIVE: usize = 32;
/// Pairs that refute it later.
const LASTING: usize = 64;
/// Pairs from which the mean is subtracted. Slower variations, such as a growing queue, may coincide by chance.
const BLOCK: usize = 16;
/// Concordance that begins a trial, that confirms a shared bottleneck, and below which it is refuted later. Drawn
/// networks with a shared bottleneck have 0.74 to 1. In trials with separate ones, it is -0.16 to 0.14.
const SUSPICIOUS: f64 = 0.7;
const CONFIRMED: f64 = 0.5;
const REFUTED: f64 = 0.15;
/// Least standard deviation of the leader's delay for a decision, in seconds: hosts disturb both paths alike.
const LEAST_DEVIATION: f64 = 0.00025;
/// Part of its rate that a path sends in a trial. A probe with a gain of 1.25 remains below the bottleneck's rate.
const TRIAL_RATE: f64 = 2.0 / 3.0;
/// Part of the leader's rate that another path sends, to measure its delay.
pub const MEASURING_RATE: f64 = 0.02;
/// Intervals after the begin of a trial that do not count: its queue drains.
const DRAINING: u64 = 2 * INTERVALS_PER_RTT;
/// Intervals after which a trial ends without a decision: pairs are missing, or the leader's delay is steady.
const LONGEST_TRIAL: u64 = 4 * DECISIVE as u64;
/// Intervals of the pause after the first refuted trial: 310 RTT.
const FIRST_PAUSE: u64 = 1000;
/// Growth of the pause with each.
const PAUSE_GROWTH: u64 = 4;

/// Delays of two paths in one interval, in seconds: of the leader and of the other one.
#[derive(Clone, Copy, Debug)]
struct Pair {
    leader: f64,
    other: f64,
}

/// How two series of delays agree.
#[derive(Clone, Copy, Debug, Default)]
struct Agreement {
    covariance: f64,
    leader: f64,
    other: f64,
    pairs: usize,
}

impl Agreement {
    /// Of all whole blocks of pairs.
    fn of(pairs: &[Pair]) -> Agreement {
        let mut sum = Agreement::default();
        for block in pairs.chunks_exact(BLOCK) {
            let leader = block.iter().map(|p| p.leader).sum::<f64>() / BLOCK as f64;
            let other = block.iter().map(|p| p.other).sum::<f64>() / BLOCK as f64;
            for pair in block {
                let x = pair.leader - leader;
                let y = pair.other - other;
                sum.covariance += x * y;
                sum.leader += x * x;
                sum.other += y * y;
            }
            sum.pairs += BLOCK;
        }
        sum
    }
    /// -1 to 1; 0 if the leader's delay hardly varies.
    fn concordance(&self) -> f64 {
        if self.is_steady() { 0.0 } else { 2.0 * self.covariance / (self.leader + self.other) }
    }
    /// Whether the leader's delay hardly varies.
    fn is_steady(&self) -> bool {
        self.leader <= self.pairs as f64 * LEAST_DEVIATION * LEAST_DEVIATION
    }
}

/// A comparison of two paths' delays.
#[derive(Clone, Copy, Debug)]
struct Comparison {
    /// The path that carries, or would carry, the data of both.
    leader: usize,
    other: usize,
    /// Intervals by which the leader's delays come later than the other's, and the reverse.
    leader_lag: u64,
    other_lag: u64,
}

/// A path that sends less, because it may share its bottleneck with another.
#[derive(Debug)]
struct Reduced {
    comparison: Comparison,
    /// The first interval that counts.
    since: u64,
    /// Whether the trial confirmed it.
    is_confirmed: bool,
    /// Delays in intervals with samples of both paths.
    pairs: Vec<Pair>,
    /// Limit on its rate, in bytes per second.
    rate: f64,
    /// When it may send the next packet.
    next: Time,
}

/// Delays of a path, and its limit.
#[derive(Debug)]
struct Observed {
    /// Mean delays of the last intervals in seconds, by the interval's number modulo [`KEPT`]; NaN without a sample.
    means: Vec<f32>,
    /// Sum and number of the delays in the current interval.
    sum: f64,
    samples: u32,
    reduced: Option<Reduced>,
}

impl Observed {
    fn new() -> Observed {
        Observed { means: vec![f32::NAN; KEPT as usize], sum: 0.0, samples: 0, reduced: None }
    }
    /// Mean delay of one of the last [`KEPT`] intervals.
    fn mean(&self, interval: u64) -> Option<f64> {
        let mean = f64::from(self.means[(interval % KEPT) as usize]);
        (!mean.is_nan()).then_some(mean)
    }
    fn close(&mut self, interval: u64) {
        let mean = if self.samples > 0 { self.sum / f64::from(self.samples) } else { f64::NAN };
        self.means[(interval % KEPT) as usize] = mean as f32;
        self.sum = 0.0;
        self.samples = 0;
    }
}

/// Detects paths that share a bottleneck, and limits the rate of all but one of them.
#[derive(Debug)]
pub struct SharedBottleneck {
    paths: Vec<Observed>,
    /// Length of an interval; zero before two paths have an RTT.
    interval: Duration,
    /// Number of the current interval.
    current: u64,
    /// When the next trial may begin.
    next_trial: Time,
    /// Intervals without a trial after the next refuted one.
    pause: u64,
}

impl Default for SharedBottleneck {
    fn default() -> SharedBottleneck {
        SharedBottleneck {
            paths: Vec::new(),
            interval: Duration::ZERO,
            current: 0,
            next_trial: Time::ZERO,
            pause: FIRST_PAUSE,
        }
    }
}

impl SharedBottleneck {
    /// A report arrived on path `index` of `paths`. `delay` is the one-way delay of its packet, plus any constant.
    /// Returns whether the [leader](SharedBottleneck::leader) of a path may have changed.
    pub fn on_delay(
        &mut self,
        now: Time,
        index: usize,
        delay: Duration,
        paths: &[PathState],
    ) -> bool {
        if paths.len() < 2 || index >= paths.len() {
            return false;
        }
        if self.interval == Duration::ZERO {
            self.set_interval(now, paths);
            if self.interval == Duration::ZERO {
                return false;
            }
        }
        if self.paths.len() < paths.len() {
            self.paths.resize_with(paths.len(), Observed::new);
        }
        let current = now.as_nanos() / self.interval.as_nanos();
        // Of earlier ones no mean would be kept.
        self.current = self.current.max(current.saturating_sub(KEPT));
        let mut is_changed = false;
        while self.current < current {
            self.close();
            if self.current.is_multiple_of(BLOCK as u64) {
                self.evaluate(now, paths);
                is_changed = true;
            }
        }
        let path = &mut self.paths[index];
        path.sum += delay.as_secs_f64();
        path.samples += 1;
        is_changed
    }

    /// When path `index` may send its next packet; [`Time::ZERO`] for a path without a limit, or if its leader carries no
    /// data.
    pub fn departure(&self, index: usize, paths: &[PathState]) -> Time {
        let reduced = self.paths.get(index).and_then(|path| path.reduced.as_ref());
        let limited = reduced.filter(|r| is_available(paths, r.comparison.leader));
        limited.map_or(Time::ZERO, |r| r.next)
    }

    /// A packet with this many bytes left on path `index`.
    pub fn on_sent(&mut self, now: Time, index: usize, bytes: u32) {
        let interval = self.interval.as_nanos();
        let reduced = self.paths.get_mut(index).and_then(|path| path.reduced.as_mut());
        if let Some(reduced) = reduced {
            // If a timer is less than an interval late, the rate remains.
            let earliest = Time::from_nanos(now.as_nanos().saturating_sub(interval));
            let took = Duration::from_secs_f64(f64::from(bytes) / reduced.rate.max(1.0));
            reduced.next = reduced.next.max(earliest) + took;
        }
    }

    /// The path that carries the data of path `index`, since both share a bottleneck.
    pub fn leader(&self, index: usize) -> Option<usize> {
        let reduced = self.paths.get(index)?.reduced.as_ref()?;
        reduced.is_confirmed.then_some(reduced.comparison.leader)
    }

    /// Bytes on the heap.
    pub fn memory(&self) -> usize {
        let pairs = LASTING * size_of::<Pair>();
        self.paths.capacity() * (size_of::<Observed>() + KEPT as usize * size_of::<f32>() + pairs)
    }

    /// Sets the length of an interval and restarts, if the present length does not fit the RTTs.
    fn set_interval(&mut self, now: Time, paths: &[PathState]) {
        let wanted = wanted_interval(paths);
        let longest = wanted.saturating_mul(4);
        if wanted > Duration::ZERO && !(wanted..longest).contains(&self.interval) {
            self.interval = wanted.mul_f64(1.25);
            self.current = now.as_nanos() / self.interval.as_nanos();
            self.paths.clear();
            self.paths.resize_with(paths.len(), Observed::new);
        }
    }

    /// Ends the current interval.
    fn close(&mut self) {
        let ended = self.current;
        self.current += 1;
        self.paths.iter_mut().for_each(|path| path.close(ended));
        for index in 0..self.paths.len() {
            let Some(reduced) = &self.paths[index].reduced else { continue };
            let pair = self.pair(&reduced.comparison, ended);
            if let Some(reduced) = &mut self.paths[index].reduced
                && ended >= reduced.since
            {
                reduced.pairs.extend(pair);
            }
        }
    }

    /// The delays in an interval and, of the path with the shorter RTT, in the one before it by the lag.
    fn pair(&self, comparison: &Comparison, interval: u64) -> Option<Pair> {
        let leader = interval.checked_sub(comparison.other_lag)?;
        let other = interval.checked_sub(comparison.leader_lag)?;
        Some(Pair {
            leader: self.paths[comparison.leader].mean(leader)?,
            other: self.paths[comparison.other].mean(other)?,
        })
    }

    /// Decides on reduced paths, and begins a trial.
    fn evaluate(&mut self, now: Time, paths: &[PathState]) {
        for index in 0..self.paths.len() {
            self.decide(now, index, paths);
        }
        let mut reduced = self.paths.iter().filter_map(|path| path.reduced.as_ref());
        if reduced.clone().next().is_none() {
            self.set_interval(now, paths);
        } else if reduced.any(|reduced| !reduced.is_confirmed) {
            return;
        }
        if now < self.next_trial {
            return;
        }
        let Some(comparison) = self.suspects(paths) else { return };
        self.paths[comparison.other].reduced = Some(Reduced {
            comparison,
            since: self.current + DRAINING,
            is_confirmed: false,
            pairs: Vec::with_capacity(LASTING + BLOCK),
            rate: TRIAL_RATE * paths[comparison.other].rate,
            next: now,
        });
    }

    /// Decides whether path `index`, if it is reduced, shares its leader's bottleneck.
    fn decide(&mut self, now: Time, index: usize, paths: &[PathState]) {
        let current = self.current;
        let path = &mut self.paths[index];
        let Some(reduced) = &mut path.reduced else { return };
        let leader = reduced.comparison.leader;
        if !is_available(paths, leader) {
            path.reduced = None;
            return;
        }
        let agreement = Agreement::of(&reduced.pairs);
        let is_decisive = agreement.pairs >= DECISIVE;
        let mut growth = PAUSE_GROWTH;
        let measuring = MEASURING_RATE * paths[leader].rate;
        if reduced.is_confirmed {
            reduced.rate = measuring;
            if agreement.pairs < LASTING {
                return;
            }
            if agreement.is_steady() || agreement.concordance() >= REFUTED {
                reduced.pairs.drain(..BLOCK);
                return;
            }
        } else if is_decisive && agreement.concordance() >= CONFIRMED {
            reduced.is_confirmed = true;
            reduced.rate = measuring;
            reduced.pairs.clear();
            return;
        } else if !is_decisive || agreement.is_steady() {
            if current < reduced.since + LONGEST_TRIAL {
                reduced.pairs.drain(..if is_decisive { BLOCK } else { 0 });
                return;
            }
            growth = 1;
        }
        path.reduced = None;
        self.next_trial = now + self.interval.saturating_mul(self.pause);
        self.pause = self.pause.saturating_mul(growth);
    }

    /// Finds two paths without a limit and with equal delays.
    fn suspects(&self, paths: &[PathState]) -> Option<Comparison> {
        let is_candidate = |index: &usize| {
            self.paths[*index].reduced.is_none()
                && is_available(paths, *index)
                && paths[*index].min_rtt > Duration::ZERO
        };
        let candidates = (0..self.paths.len()).filter(is_candidate);
        candidates.clone().find_map(|first| {
            let others = candidates.clone().filter(|second| *second > first);
            others.clone().find_map(|second| self.suspicious(first, second, paths))
        })
    }

    /// The comparison of two paths with the lag at which their delays agree best, if they do.
    fn suspicious(&self, first: usize, second: usize, paths: &[PathState]) -> Option<Comparison> {
        let is_led = prefers(&paths[second], &paths[first]);
        let leader = if is_led { second } else { first };
        let other = if is_led { first } else { second };
        let rtt = |index: usize| paths[index].min_rtt.as_secs_f64();
        let difference = (rtt(leader) - rtt(other)) / self.interval.as_secs_f64();
        let most = difference.abs().ceil().min(INTERVALS_PER_RTT as f64) as u64;
        let mut best = None;
        let mut highest = SUSPICIOUS;
        for lag in 0..=most {
            let comparison = Comparison {
                leader,
                other,
                leader_lag: if difference > 0.0 { lag } else { 0 },
                other_lag: if difference > 0.0 { 0 } else { lag },
            };
            let intervals = self.current.saturating_sub(KEPT - lag)..self.current;
            let pairs = intervals.rev().filter_map(|n| self.pair(&comparison, n));
            let pairs: Vec<Pair> = pairs.take(OBSERVED).collect();
            let agreement = Agreement::of(&pairs);
            if agreement.pairs >= OBSERVED && agreement.concordance() > highest {
                highest = agreement.concordance();
                best = Some(comparison);
            }
        }
        best
    }
}

fn is_available(paths: &[PathState], index: usize) -> bool {
    paths.get(index).is_some_and(|path| path.status == PathStatus::Available)
}

/// Whether a path leads another: its RTT is shorter, unless its rate is less than half. The choice by the rate alone
/// would take the path that has more than a flow's share.
fn prefers(path: &PathState, other: &PathState) -> bool {
    if path.rate > 2.0 * other.rate || other.rate > 2.0 * path.rate {
        path.rate > other.rate
    } else {
        path.min_rtt < other.min_rtt
    }
}

/// The shortest interval for these paths: a part of the longest RTT. Zero without two paths that carry data.
fn wanted_interval(paths: &[PathState]) -> Duration {
    let is_known = |path: &&PathState| {
        let has_rtt = path.min_rtt > Duration::ZERO;
        path.status == PathStatus::Available && has_rtt && path.rate > 0.0
    };
    let known = paths.iter().filter(is_known);
    if known.clone().count() < 2 {
        return Duration::ZERO;
    }
    let longest = known.map(|path| path.min_rtt).max().unwrap_or_default();
    Duration::from_nanos(longest.as_nanos() / INTERVALS_PER_RTT).max(SHORTEST)
}

#[cfg(test)]
#[path = "shared_tests.rs"]
mod tests;
