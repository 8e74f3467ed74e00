//! The variation of a flow's goodput on several time scales, from running sums. Bins are not stored, except those of
//! one second if memory permits.
//!
//! A packet only adds its bytes to the finest bin. When that bin closes, at most ten times a second, it is added to the
//! coarser bins; each of them consists of a whole number of finer ones.

use crate::result::{FlowDetail, Roughness, SCALES_MS};

/// Length of the finest bin, in nanoseconds.
pub(crate) const TICK_NS: u64 = SCALES_MS[0] * 1_000_000;
/// Index of the one-second scale, the only one with stored bins.
pub(crate) const SECOND: usize = 3;
/// Number of finest bins in a bin of each scale.
const TICKS: [u64; SCALES_MS.len()] = {
    let mut ticks = [0; SCALES_MS.len()];
    let mut s = 0;
    while s < ticks.len() {
        ticks[s] = SCALES_MS[s] / SCALES_MS[0];
        s += 1;
    }
    ticks
};

/// The open finest bin, and the sums of all scales, allocated when data arrives.
#[derive(Debug, Default)]
pub(crate) struct Smoothness {
    tick: u64,
    bytes: u64,
    scales: Option<Box<Scales>>,
}

#[derive(Debug, Default)]
struct Scales {
    sums: [BinSums; SCALES_MS.len()],
    /// Bytes per second from second `first` on, if stored.
    first: usize,
    seconds: Vec<u64>,
}

/// One scale: the open bin, and sums over the closed ones.
#[derive(Clone, Copy, Debug, Default)]
struct BinSums {
    bytes: u64,
    sum: f64,
    squares: f64,
    /// Sum of the absolute differences between neighbours.
    change: f64,
    /// The bin before the open one.
    last: f64,
}

impl BinSums {
    /// Closes bin `bin`; the next non-empty one is `next`.
    fn close(&mut self, bin: u64, next: u64) -> u64 {
        let bytes = self.bytes;
        let x = self.bytes as f64;
        self.sum += x;
        self.squares += x * x;
        if bin > 0 {
            self.change += (x - self.last).abs();
        }
        self.last = x;
        if next > bin + 1 {
            // Bins in between are empty: they add only the change down to zero.
            self.change += x;
            self.last = 0.0;
        }
        self.bytes = 0;
        bytes
    }
}

impl Smoothness {
    /// Counts bytes that arrived `since_ns` nanoseconds after the start of the measured span.
    #[inline]
    pub fn add(&mut self, since_ns: u64, bytes: u64, keep: bool) {
        let tick = since_ns / TICK_NS;
        if tick > self.tick {
            self.close(tick, keep);
        }
        self.bytes += bytes;
    }

    #[cold]
    #[inline(never)]
    fn close(&mut self, tick: u64, keep: bool) {
        if self.bytes > 0 || self.scales.is_some() {
            self.scales.get_or_insert_default().close(self.tick, tick, self.bytes, keep);
        }
        self.tick = tick;
        self.bytes = 0;
    }

    /// Mean and standard deviation of bytes per bin of one second, and the detail, over the whole bins of the measured
    /// span; `None` if there are fewer than two seconds or they are empty.
    pub fn result(
        mut self,
        span_ns: u64,
        keep: bool,
    ) -> (Option<(f64, f64)>, Option<Box<FlowDetail>>) {
        let whole = TICKS.map(|t| span_ns / (t * TICK_NS));
        // A bin that extends beyond the end stays open and does not count.
        if whole[0] > self.tick {
            self.close(whole[0], keep);
        }
        let scales = self.scales.unwrap_or_default();
        let moments = |s: usize| {
            let n = whole[s] as f64;
            let sums = &scales.sums[s];
            let mean = sums.sum / n;
            (mean, (sums.squares / n - mean * mean).max(0.0).sqrt())
        };
        let bins_1s = (whole[SECOND] >= 2).then(|| moments(SECOND));
        if scales.sums[0].sum == 0.0 {
            return (bins_1s, None);
        }
        let mut roughness = [Roughness::NONE; SCALES_MS.len()];
        for (s, r) in roughness.iter_mut().enumerate() {
            let (mean, deviation) = moments(s);
            if whole[s] >= 2 && mean > 0.0 {
                let change = scales.sums[s].change / (whole[s] - 1) as f64;
                *r = Roughness { cov: deviation / mean, change: change / mean };
            }
        }
        let detail = FlowDetail { roughness, first: scales.first, seconds: scales.seconds };
        (bins_1s, Some(Box::new(detail)))
    }
}

/// Mean and standard deviation of bytes per bin of 1 s, and the variation on all time scales, for measured (not
/// simulated) data: arrivals in nanoseconds after the start of the span, in ascending order.
pub fn variation(
    arrivals: impl Iterator<Item = (u64, u64)>,
    span_ns: u64,
) -> (Option<(f64, f64)>, Option<Box<FlowDetail>>) {
    let mut smoothness = Smoothness::default();
    arrivals.for_each(|(since_ns, bytes)| smoothness.add(since_ns, bytes, true));
    smoothness.result(span_ns, true)
}

impl Scales {
    /// Closes tick `old` with `bytes` bytes; the next non-empty tick is `new`.
    fn close(&mut self, old: u64, new: u64, bytes: u64, keep: bool) {
        for (s, sums) in self.sums.iter_mut().enumerate() {
            sums.bytes += bytes;
            let bin = old / TICKS[s];
            let next = new / TICKS[s];
            if next > bin {
                let closed = sums.close(bin, next);
                if keep && s == SECOND {
                    if self.seconds.is_empty() {
                        self.first = bin as usize;
                    }
                    self.seconds.resize(bin as usize - self.first, 0);
                    self.seconds.push(closed);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "smooth_tests.rs"]
mod tests;
