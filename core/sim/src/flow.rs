//! A flow in the engine: its two endpoints, its application and its counters.

use crate::endpoints::{Counters, SendingLimit, SimulatedReceiver, SimulatedSender};
use crate::frames::FrameMeter;
use crate::result::{ClassifierCounts, FlowResult, LimitedTimes, MultipathResult};
use crate::smooth::Smoothness;
use crate::source::StartedSource;
use narrows_base::{Duration, Time};
use narrows_recovery::ranges::Ranges;
use std::ops::Range;

/// A flow. Its endpoints are stored inline, so that a flow occupies few cache lines.
#[derive(Debug)]
pub(crate) struct Flow {
    pub sender: SimulatedSender,
    pub receiver: SimulatedReceiver,
    pub timer: FlowTimers,
    /// When the receiver's pending timer event fires; `NEVER` without one.
    pub receiver_event: Time,
    pub stats: FlowStats,
}

/// A sender's pending events: a far one for the retransmission timer, a near one for pacing. An event that fires early
/// is harmless: the sender is polled and the event set again. So postponing a deadline is free, and pacing does not
/// leave a retransmission event behind for every packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlowTimers {
    near: Time,
    far: Time,
}

impl Default for FlowTimers {
    fn default() -> FlowTimers {
        FlowTimers { near: Time::NEVER, far: Time::NEVER }
    }
}

impl FlowTimers {
    /// Returns whether a new event at `due` must be queued.
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
    /// Whether the event at `now` is a pending one.
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

/// The application of a flow, touched only when it writes.
#[derive(Debug)]
pub(crate) struct Application {
    pub source: StartedSource,
    /// Meter of its frames; `None` if it writes no frames.
    pub frames: Option<Box<FrameMeter>>,
    /// Whether its first write is all its data.
    pub is_transfer: bool,
    pub start: Time,
    pub stop: Time,
    pub opened: bool,
    /// Size of a finite transfer in bytes, 0 otherwise.
    pub wanted: u64,
}

impl Application {
    /// An application with these start and stop times.
    pub fn new(
        source: StartedSource,
        frames: Option<Box<FrameMeter>>,
        is_transfer: bool,
        (start, stop): (Time, Time),
    ) -> Application {
        Application { source, frames, is_transfer, start, stop, opened: false, wanted: 0 }
    }
}

#[derive(Debug, Default)]
pub(crate) struct FlowStats {
    pub sent_bytes: u64,
    limits: LimitTimer,
    pub done: Option<Time>,
    base_counters: Counters,
    base_delivered: u64,
    base_sent_bytes: u64,
    smoothness: Smoothness,
    ground_truth: Option<Box<GroundTruth>>,
}

/// Packets of a flow that queues dropped, and its receiver's loss classification.
#[derive(Debug, Default)]
struct GroundTruth {
    dropped: Ranges,
    classifier_counts: ClassifierCounts,
}

/// The times for which each limit held the sender back.
#[derive(Debug, Default)]
struct LimitTimer {
    now: SendingLimit,
    since: Time,
    times: [Duration; SendingLimit::NAMES.len()],
}

impl LimitTimer {
    #[inline]
    fn turn(&mut self, now: Time, limit: SendingLimit) {
        if limit != self.now {
            self.times[self.now as usize] += now.since(self.since);
            self.now = limit;
            self.since = now;
        }
    }

    /// The times between two moments, the first of which is not before the measured span. The application's share is
    /// the rest that no other limit has.
    fn shares(&mut self, from: Time, to: Time) -> LimitedTimes {
        self.times[self.now as usize] += to.since(self.since);
        let of = |limit: SendingLimit| self.times[limit as usize].as_secs_f64();
        let mut times = LimitedTimes {
            opening_s: of(SendingLimit::Opening),
            cwnd_s: of(SendingLimit::Window),
            pacing_s: of(SendingLimit::Pacing),
            sndbuf_s: of(SendingLimit::SendBuffer),
            rwnd_s: of(SendingLimit::ReceiveWindow),
            app_s: 0.0,
        };
        times.app_s = (to.since(from).as_secs_f64() - times.total_s()).max(0.0);
        times
    }
}

impl FlowStats {
    /// From `now` on the sender is held back by `limit`.
    #[inline]
    pub fn waits(&mut self, now: Time, limit: SendingLimit) {
        self.limits.turn(now, limit);
    }
    /// A queue dropped this data packet.
    pub fn dropped(&mut self, seq: u64) {
        let ground_truth = self.ground_truth.get_or_insert_default();
        ground_truth.dropped.insert(seq, seq.saturating_add(1), |_, _| ());
    }
    /// Compares the receiver's classification of missing packets with the true causes, if within the measured span.
    pub fn classified(&mut self, missing: Range<u64>, radio: bool, counts: bool) {
        let ground_truth = self.ground_truth.get_or_insert_default();
        let length = missing.end.saturating_sub(missing.start);
        let dropped: u64 = ground_truth
            .dropped
            .iter()
            .map(|(a, b)| b.min(missing.end).saturating_sub(a.max(missing.start)))
            .sum();
        ground_truth.dropped.trim_below(missing.end);
        if counts {
            let v = &mut ground_truth.classifier_counts;
            v.congestion += dropped;
            v.radio += length - dropped;
            match radio {
                true => v.congestion_judged_radio += dropped,
                false => v.radio_judged_congestion += length - dropped,
            }
        }
    }
    /// Counts application bytes delivered in order at `now`; `keep`: whether to keep bins of one second.
    #[inline]
    pub fn delivered(&mut self, now: Time, from: Time, bytes: u64, keep: bool) {
        if now >= from {
            self.smoothness.add(now.since(from).as_nanos(), bytes, keep);
        }
    }
    /// The measured span begins. Bytes received out of order before it do not count as goodput.
    pub fn begin(&mut self, now: Time, sender: &SimulatedSender, receiver: &SimulatedReceiver) {
        self.limits = LimitTimer { now: self.limits.now, since: now, ..LimitTimer::default() };
        self.base_counters = sender.counters();
        self.base_delivered = receiver.received();
        self.base_sent_bytes = self.sent_bytes;
    }
    pub fn result(&mut self, flow: &Flow, a: &mut Application, span: MeasuredSpan) -> FlowResult {
        let now = flow.sender.counters();
        let base = self.base_counters;
        let smoothness = std::mem::take(&mut self.smoothness);
        let (bins_1s, detail) = smoothness.result(span.end.since(span.from).as_nanos(), span.keep);
        FlowResult {
            start: a.start,
            done: self.done,
            wanted_bytes: a.wanted,
            // A gap that was never filled holds back bytes received before the measured span.
            goodput_bytes: flow.receiver.delivered().saturating_sub(self.base_delivered),
            sent_bytes: self.sent_bytes - self.base_sent_bytes,
            sent_packets: now.sent - base.sent,
            retransmissions: now.retransmissions - base.retransmissions,
            timeouts: now.timeouts - base.timeouts,
            episodes: now.episodes - base.episodes,
            marks: now.marks - base.marks,
            lost_packets: (now.lost - base.lost).saturating_sub(now.spurious - base.spurious),
            spurious_losses: now.spurious - base.spurious,
            expired: now.expired - base.expired,
            bins_1s,
            detail,
            acknowledged: flow.sender.acknowledged(),
            limited: self.limits.shares(
                a.start.max(span.from),
                self.done.unwrap_or(span.end).min(a.stop).min(span.end),
            ),
            frames: a.frames.as_mut().map(|f| f.result(a.stop.min(span.end))),
            classifier_counts: self.ground_truth.as_ref().map(|t| t.classifier_counts),
            multipath: multipath(flow),
        }
    }
}

/// The results of a flow's paths, if it has several.
fn multipath(flow: &Flow) -> Option<Box<MultipathResult>> {
    let SimulatedSender::Multipath(sender) = &flow.sender else { return None };
    let SimulatedReceiver::Multipath(receiver) = &flow.receiver else { return None };
    Some(Box::new(MultipathResult {
        paths: sender.results(),
        max_reorder_bytes: receiver.max_held(),
        duplicate_bytes: receiver.duplicate_bytes(),
    }))
}

/// The measured span, and whether bins of one second are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MeasuredSpan {
    pub from: Time,
    pub end: Time,
    pub keep: bool,
}
