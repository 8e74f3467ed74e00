//! From arrivals to lost packets to loss events: RFC 5348 sections 5.1 and 5.2.
//!
//! With any packet numbers of a peer, the work for one packet and the memory are bounded. Missing and recently lost
//! packets are kept as ranges, at most [`MAX_GAPS`] of them, and the loss events within one range are computed, not
//! enumerated.

use std::collections::VecDeque;

/// Most ranges of missing numbers that wait for late packets, and most recently lost ones that are kept.
const MAX_GAPS: usize = 64;

/// An arrival: its number, and its time in seconds.
pub(super) type Mark = (u64, f64);

/// Numbers that are missing, between two that arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossGap {
    pub from: u64,
    pub to: u64,
    before: Mark,
    after: Mark,
    /// Later packets that arrived.
    later: u32,
}

impl LossGap {
    /// Time at which packet `seq` would have arrived, on a line between its neighbours (section 5.2).
    pub fn time(&self, seq: u64) -> f64 {
        let a = self.before;
        let b = self.after;
        let share = seq.saturating_sub(a.0) as f64 / b.0.saturating_sub(a.0).max(1) as f64;
        a.1 + (b.1 - a.1) * share
    }
    /// The first missing number with a time later than `t`.
    pub fn first_after(&self, t: f64) -> Option<u64> {
        let a = self.before;
        let b = self.after;
        let each = (b.1 - a.1) / b.0.saturating_sub(a.0).max(1) as f64;
        if self.time(self.from) > t {
            return Some(self.from);
        }
        if each <= 0.0 || self.time(self.to - 1) <= t {
            return None;
        }
        let at = a.0.saturating_add(((t - a.1) / each) as u64).saturating_add(1);
        Some(at.clamp(self.from, self.to - 1))
    }
    /// Missing numbers from one loss event to the next if an event lasts `rtt` seconds.
    pub fn stride(&self, rtt: f64) -> u64 {
        let a = self.before;
        let b = self.after;
        let each = (b.1 - a.1) / b.0.saturating_sub(a.0).max(1) as f64;
        ((rtt / each) as u64).saturating_add(1)
    }
}

/// Detects lost packets: `reorder` later packets must have arrived (NDUPACK), and on a path that reorders, a waiting
/// time must have passed. It also detects packets that arrive after that.
#[derive(Clone, Debug)]
pub(super) struct Detector {
    reorder: u32,
    top: Option<Mark>,
    gaps: VecDeque<LossGap>,
    /// Recently lost ranges, in ascending order.
    lost: VecDeque<LossGap>,
}

impl Detector {
    pub fn new(reorder: u32) -> Detector {
        let gaps = VecDeque::new();
        let lost = VecDeque::new();
        Detector { reorder: reorder.max(1), top: None, gaps, lost }
    }
    /// The highest number received.
    pub fn top(&self) -> u64 {
        self.top.map_or(0, |t| t.0)
    }
    /// Packet `seq` arrived at `at`, for the first time. If it had been counted as lost, returns the time since the
    /// first later one arrived. Call [`lost`](Detector::lost) next.
    pub fn arrive(&mut self, seq: u64, at: f64) -> Option<f64> {
        let Some(top) = self.top else {
            self.top = Some((seq, at));
            return None;
        };
        let counted = self.lost.iter().find(|gap| (gap.from..gap.to).contains(&seq));
        let late = counted.map(|gap| (at - gap.after.1).max(0.0));
        let mut split = None;
        for (i, gap) in self.gaps.iter_mut().enumerate() {
            if seq >= gap.to {
                gap.later += 1;
            } else if seq >= gap.from {
                split = Some((i, *gap));
            }
        }
        if let Some((i, gap)) = split {
            self.gaps.remove(i);
            if gap.to - seq > 1 {
                self.gaps.insert(i, LossGap { from: seq + 1, ..gap });
            }
            if seq > gap.from {
                self.gaps.insert(i, LossGap { to: seq, later: gap.later + 1, ..gap });
            }
        }
        if seq > top.0 {
            if seq - top.0 > 1 {
                let from = top.0 + 1;
                let before = top;
                let after = (seq, at.max(top.1));
                self.gaps.push_back(LossGap { from, to: seq, before, after, later: 1 });
            }
            self.top = Some((seq, at.max(top.1)));
        }
        late
    }
    /// The next range that is now lost, in ascending order, if missing packets get `window` seconds.
    pub fn lost(&mut self, now: f64, window: f64) -> Option<LossGap> {
        let front = self.gaps.front()?;
        let waits = window > 0.0 && self.gaps.len() <= MAX_GAPS;
        if front.later < self.reorder || (waits && now - front.after.1 < window) {
            return None;
        }
        if self.lost.len() >= MAX_GAPS {
            self.lost.pop_front();
        }
        self.lost.push_back(*front);
        self.gaps.pop_front()
    }
}

#[cfg(test)]
#[path = "losses_tests.rs"]
mod tests;
