//! A flow in the engine: its two endpoints, its application, what is counted of it.

use crate::result::FlowResult;
use crate::source::Source;
use narrows_base::Time;
use narrows_flow::{Counters, ReceivingEnd, SendingEnd};

/// One second: the bins of the smoothness measure.
const BIN_NS: u64 = 1_000_000_000;

/// A flow: endpoints side by side, so that a flow is few cache lines and no pointers.
#[derive(Debug)]
pub(crate) struct Flow {
    pub sender: SendingEnd,
    pub receiver: ReceivingEnd,
    pub timer: Timer,
    /// When the receiver's pending timer event fires; `NEVER` if there is none.
    pub receiver_event: Time,
    pub stats: FlowStats,
}

/// A sender's pending events: a far one for the retransmission timer, a near one for pacing. An
/// event that comes too early does no harm: the sender is asked again. So a deadline that moves
/// on costs nothing, and pacing does not leave a retransmission event behind for every packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    near: Time,
    far: Time,
}

impl Default for Timer {
    fn default() -> Timer {
        Timer { near: Time::NEVER, far: Time::NEVER }
    }
}

impl Timer {
    /// Whether a new event at `due` is needed.
    #[inline]
    pub fn arm(&mut self, due: Time) -> bool {
        if due.is_never() || self.near.min(self.far) <= due {
            return false;
        }
        if self.far.is_never() {
            self.far = due;
        } else {
            self.near = due;
        }
        true
    }
    /// Whether the event at `now` is one that is waited for.
    #[inline]
    pub fn fires(&mut self, now: Time) -> bool {
        if now == self.near {
            self.near = Time::NEVER;
            true
        } else if now == self.far {
            self.far = Time::NEVER;
            true
        } else {
            false
        }
    }
}

/// The application's side, touched only at its own turns.
#[derive(Debug)]
pub(crate) struct Application {
    pub source: Source,
    pub start: Time,
    pub stop: Time,
    pub opened: bool,
    /// Bytes of a finite transfer, 0 otherwise.
    pub wanted: u64,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowStats {
    pub sent_bytes: u64,
    pub done: Option<Time>,
    base_counters: Counters,
    base_delivered: u64,
    base_sent_bytes: u64,
    bins: Bins,
}

/// Running mean and variance of bytes per second, without keeping the bins.
#[derive(Clone, Copy, Debug, Default)]
struct Bins {
    index: u64,
    bytes: u64,
    sum: f64,
    squares: f64,
}

impl Bins {
    fn close_until(&mut self, index: u64) {
        if index > self.index {
            let x = self.bytes as f64;
            self.sum += x;
            self.squares += x * x;
            // Bins passed over are empty: they add nothing to either sum.
            (self.index, self.bytes) = (index, 0);
        }
    }
}

impl FlowStats {
    /// Application bytes came in order at `now`.
    #[inline]
    pub fn delivered(&mut self, now: Time, from: Time, bytes: u64) {
        if now >= from {
            self.bins.close_until(now.since(from).as_nanos() / BIN_NS);
            self.bins.bytes += bytes;
        }
    }
    /// Measuring begins.
    pub fn begin(&mut self, sender: &SendingEnd, receiver: &ReceivingEnd) {
        self.base_counters = sender.counters();
        self.base_delivered = receiver.delivered();
        self.base_sent_bytes = self.sent_bytes;
    }
    pub fn result(&self, flow: &Flow, start: Time, from: Time, end: Time) -> FlowResult {
        let now = flow.sender.counters();
        let base = self.base_counters;
        let whole = end.since(from).as_nanos() / BIN_NS;
        let mut bins = self.bins;
        bins.close_until(whole.max(bins.index));
        let n = whole as f64;
        let bins_1s = (whole >= 2).then(|| {
            let mean = bins.sum / n;
            (mean, (bins.squares / n - mean * mean).max(0.0).sqrt())
        });
        FlowResult {
            start,
            done: self.done,
            goodput_bytes: flow.receiver.delivered() - self.base_delivered,
            sent_bytes: self.sent_bytes - self.base_sent_bytes,
            sent_packets: now.sent - base.sent,
            retransmissions: now.retransmissions - base.retransmissions,
            timeouts: now.timeouts - base.timeouts,
            episodes: now.episodes - base.episodes,
            marks: now.marks - base.marks,
            lost_packets: now.lost - base.lost,
            expired: now.expired - base.expired,
            bins_1s,
            acknowledged: flow.sender.acknowledged(),
        }
    }
}
