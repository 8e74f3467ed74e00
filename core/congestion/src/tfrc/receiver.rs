//! The receiver side: loss event rate, receive rate, and the time of reports (RFC 5348 section 6).
//!
//! A report has p, X_recv in bytes per second, and new losses: with preset `rfc` the loss events since the last report,
//! with `ns2` the lost packets since then.
//!
//! A packet that arrives after it was counted as lost fills the hole (section 5.1). When all losses of the newest loss
//! event have arrived, the event is undone. From then on missing packets get more time ([`ReorderingWindow`]).
//!
//! Preset `ns2` differs: losses are final; an RTT is counted between send times, not arrivals; a new loss event also
//! needs a newer report round than the last. A report is sent with the first arrival an RTT after the last report, or
//! by a timer of 1.5 RTT. The first interval follows from the present receive rate alone, its event lasts from the
//! packet that revealed it, and I_0 begins where the last report ended.

use super::history::LossHistory;
use super::losses::{Detector, LossGap};
use super::options::{Options, from_round, rounds_later};
use super::received::RecentArrivals;
use crate::feedback::{Arrival, Feedback, ReceiverSide};
use crate::reordering::ReorderingWindow;
use narrows_base::{Duration, Time};

/// State before the newest loss event, and its losses: those from this packet on that have not arrived.
#[derive(Clone, Debug)]
struct Undo {
    history: LossHistory,
    event: Option<(f64, u16)>,
    from: u64,
    missing: u64,
}

/// TFRC's receiver side.
#[derive(Clone, Debug)]
pub(super) struct TfrcReceiver {
    options: Options,
    detector: Detector,
    reordering: ReorderingWindow,
    history: LossHistory,
    undo: Option<Undo>,
    received: RecentArrivals,
    /// The sender's last values: R and t_RTO in seconds, 0 before the first; its round.
    rtt: f64,
    rto: f64,
    round: u16,
    /// Time (seconds) and round of the last loss event's begin.
    event: Option<(f64, u16)>,
    /// The feedback timer, and whether its last expiry had no arrival to report.
    timer: Time,
    owed: bool,
    /// p of the last report, or of the first loss event until it is reported.
    p: f64,
    first_p: Option<f64>,
    /// Highest number at the last report.
    reported: u64,
    events: u32,
    lost: u64,
}

impl TfrcReceiver {
    pub fn new(options: &Options) -> TfrcReceiver {
        TfrcReceiver {
            options: *options,
            detector: Detector::new(options.reorder),
            reordering: ReorderingWindow::default(),
            undo: None,
            history: LossHistory::new(options.intervals, options.discount, options.ns2),
            received: RecentArrivals::default(),
            rtt: 0.0,
            rto: 0.0,
            round: 0,
            event: None,
            timer: Time::NEVER,
            owed: false,
            p: 0.0,
            first_p: None,
            reported: 0,
            events: 0,
            lost: 0,
        }
    }

    /// Whether a loss at `t` begins a new loss event.
    fn is_new(&self, t: f64) -> bool {
        self.event.is_none_or(|(begin, round)| {
            t > begin + self.rtt && (!self.options.ns2 || rounds_later(self.round, round))
        })
    }
    /// A loss event begins at time `t` with packet `seq`, detected at the arrival of `a`.
    fn begin(&mut self, seq: u64, t: f64, a: &Arrival) {
        if !self.options.ns2 {
            let history = self.history.clone();
            let event = self.event;
            self.undo = Some(Undo { history, event, from: seq, missing: 0 });
            self.reordering.on_loss_event();
        }
        self.event = Some((t, self.round));
        self.events = self.events.saturating_add(1);
        if !self.history.is_empty() {
            self.history.event(seq);
            return;
        }
        // The first: as if the loss rate had always been the one that fits the receive rate.
        let now = a.now.as_secs_f64();
        let bytes = f64::from(a.bytes.max(1));
        let mut rate = self.received.rate(now, self.rtt);
        let mut start = seq;
        if self.options.ns2 {
            self.event = Some((a.sent.as_secs_f64(), self.round));
            start = self.reported;
        } else {
            rate = rate.max(self.received.fastest()).max(bytes / (2.0 * self.rtt));
        }
        let mut interval = seq.saturating_sub(self.received.first()) as f64;
        if self.rtt > 0.0 {
            let rto = self.options.rto(self.rtt, self.rto);
            let p = self.options.equation.loss_event_rate(rate / bytes, self.rtt, rto);
            interval = 1.0 / p;
            if self.options.ns2 {
                self.first_p = Some(p);
                interval = interval.floor();
            }
        }
        self.history.begin(interval, start);
    }

    /// Books a range that is lost.
    fn lose(&mut self, gap: &LossGap, a: &Arrival) {
        self.lost = self.lost.saturating_add(gap.to - gap.from);
        self.lose_events(gap, a);
        if let Some(undo) = &mut self.undo {
            undo.missing += gap.to.saturating_sub(gap.from.max(undo.from));
        }
    }
    /// The loss events that begin in it, in at most a few steps.
    fn lose_events(&mut self, gap: &LossGap, a: &Arrival) {
        let first = match self.event {
            None => Some(gap.from),
            Some((begin, _)) => gap.first_after(begin + self.rtt),
        };
        let Some(mut seq) = first.filter(|s| self.is_new(gap.time(*s))) else { return };
        self.begin(seq, gap.time(seq), a);
        if self.options.ns2 {
            return; // The round must change before the next.
        }
        // A long gap is many events, but the history keeps only the last few.
        let stride = gap.stride(self.rtt);
        let max = self.options.intervals as u64 + 2;
        let more = (gap.to - 1 - seq) / stride;
        seq += more.saturating_sub(max) * stride;
        for _ in 0..more.min(max) {
            seq += stride;
            self.begin(seq, gap.time(seq), a);
        }
    }

    /// A packet that had been counted as lost arrived, `late` seconds after a later one.
    fn take_late(&mut self, seq: u64, late: f64) {
        if self.options.ns2 {
            return;
        }
        self.reordering.on_late(late, self.rtt);
        let Some(undo) = self.undo.as_mut().filter(|u| seq >= u.from) else { return };
        undo.missing = undo.missing.saturating_sub(1);
        if undo.missing == 0
            && let Some(undo) = self.undo.take()
        {
            self.history = undo.history;
            self.event = undo.event;
            self.events = self.events.saturating_sub(1);
        }
    }

    fn heed(&mut self, said: &Feedback) -> bool {
        self.rtt = said.number(0);
        self.rto = said.number(1);
        self.round = from_round(said.number(2));
        said.number(3) > 0.0
    }
    /// Time from one report to the next.
    fn period(&self) -> Duration {
        Duration::from_secs_f64(self.rtt * if self.options.ns2 { 1.5 } else { 1.0 })
    }
}

impl ReceiverSide for TfrcReceiver {
    fn on_arrival(&mut self, a: &Arrival) -> bool {
        let now = a.now.as_secs_f64();
        let overdue = self.owed || a.now >= self.timer;
        let urgent = self.heed(&a.feedback);
        let first = self.received.is_empty();
        self.received.take(now, a.seq, a.bytes, self.rtt);
        let top = self.detector.top();
        let clock = if self.options.ns2 { a.sent.as_secs_f64() } else { now };
        if let Some(late) = self.detector.arrive(a.seq, clock) {
            self.take_late(a.seq, late);
        }
        let events = self.events;
        while let Some(gap) = self.detector.lost(clock, self.reordering.length(self.rtt)) {
            self.lose(&gap, a);
        }
        if a.marked {
            self.lost = self.lost.saturating_add(1);
            if self.is_new(clock) {
                self.begin(a.seq, clock, a);
                self.undo = None;
            }
        }
        let news = self.events > events;
        if first || self.rtt <= 0.0 {
            return true;
        }
        if self.options.ns2 {
            let due = now - self.received.last_report() >= self.rtt;
            return urgent || news || (due && a.seq > top);
        }
        // Section 6.1: at once if p rises, or if the timer expired without an arrival to report.
        overdue || (news && self.history.loss_event_rate(self.detector.top()) > self.p)
    }

    fn on_tick(&mut self, _now: Time) -> bool {
        if self.received.since_report() {
            return true;
        }
        // Not armed again: the next arrival finds the report owed.
        self.timer = Time::NEVER;
        self.owed = true;
        false
    }

    fn next_tick(&self) -> Time {
        self.timer
    }

    fn feedback(&mut self, now: Time) -> Feedback {
        let at = now.as_secs_f64();
        let top = self.detector.top();
        self.p = match self.first_p.take() {
            Some(p) => p,
            None => self.history.loss_event_rate(top),
        };
        let rate = self.received.report(at, self.rtt);
        let news = if self.options.ns2 { self.lost as f64 } else { f64::from(self.events) };
        self.events = 0;
        self.lost = 0;
        self.reported = top;
        self.owed = self.rtt <= 0.0; // No timer yet: the next packet that tells R is reported.
        self.timer = if self.rtt > 0.0 { now + self.period() } else { Time::NEVER };
        Feedback::of(&[self.p, rate, news])
    }

    fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        put("receiver_loss_event_rate", self.p);
        put("open_loss_interval", self.history.open(self.detector.top()));
    }
}

#[cfg(test)]
#[path = "receiver_tests.rs"]
mod tests;
