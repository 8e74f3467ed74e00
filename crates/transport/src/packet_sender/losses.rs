//! Loss detection and its timer, with the probe timeout's back-off: RFC 9002, counted in packets.
//!
//! - A packet is lost when it is absent and the packet three numbers above it has arrived (section
//!   6.1.1), or when a later one has and it left 9/8 of a round trip ago (6.1.2). Where the path reorders,
//!   the distance does not count, and the time is longer: see `reordering`. An arrival is reported
//!   as soon as everything below it is known, so the lowest packet of unknown outcome is always one that is
//!   not acknowledged.
//! - Where nothing is received for SRTT + 4 RTTVAR + the receiver's delay, doubling, one packet goes
//!   beyond the window, from the third time on two: what was lost, or new bytes, or the oldest bytes in flight once
//!   more (6.2).
//!   On a path that has acknowledged something, one leaves every 2 s at least, so that an outage's end is
//!   noticed; those that RFC 9002's doubling would not let go yet are short and carry nothing.
//!   A controller with a timer of its own is overruled only where nothing was sent for 2 s.
//! - Losses of packets that left after the last reduction begin a recovery; it ends when the outcome of
//!   every packet sent before it is known (7.3.1, 7.3.2). One packet may leave at once, and again if it
//!   is lost; that is no new repair, since it met the queue that made the loss.
//! - Persistent congestion, every packet of three such timeouts lost: the window begins anew (7.6).
//!
//! A packet that was declared lost and arrives late takes its loss back: see `late` and `spurious`.

use super::MAX_BACKOFF_TIMEOUT;
use super::ledger::PacketLedger;
use super::reordering::ReorderingWindow;
use super::round_trip::RoundTrip;
use narrows_base::{Duration, Time};

/// RFC 9002 section 6.1.1.
pub(super) const PACKET_THRESHOLD: u64 = 3;
/// RFC 9002 section 7.6.1.
const PERSISTENT: u32 = 3;
/// A timer that is handled so much later than it was due has met a leap of the clock, or a process that
/// stood still.
const MAX_LATENESS: Duration = Duration::from_secs(1);

/// Losses found at one moment.
#[derive(Default)]
pub(super) struct Found {
    pub count: u64,
    pub radio: u64,
    /// When the first left, and its number.
    pub first: Option<Time>,
    pub lowest: Option<u64>,
    /// The first that left after the last reduction.
    pub new: Option<u64>,
    /// What the recovery under way sent at once.
    pub repair: bool,
    pub by_clock: bool,
    pub persistent: bool,
}

/// What is known of the lowest packet whose outcome was not.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Front {
    /// Nothing yet.
    Open,
    /// It arrived, or nobody asks.
    Known,
    /// It is lost: enough packets above it were reported.
    LostByCount,
    /// It is lost: one above it was, and it is late.
    LostByClock,
}

/// Finds losses, and knows when to look for them: the one timer.
#[derive(Debug)]
pub(super) struct LossDetector {
    /// How long the receiver keeps a report back by agreement, and with what it was asked for.
    agreed_ack_delay: Duration,
    max_ack_delay: Duration,
    timer: Time,
    backoffs: u32,
    /// When the clock was last seen to have leapt.
    leapt: Time,
    last_sent: Time,
    /// When the first of the packets lost without an arrival between them left.
    run: Option<Time>,
    reordering: ReorderingWindow,
}

impl LossDetector {
    /// `max_ack_delay` is the longest time that the receiver delays a report.
    pub fn new(max_ack_delay: Duration) -> LossDetector {
        LossDetector {
            agreed_ack_delay: max_ack_delay,
            max_ack_delay,
            timer: Time::NEVER,
            backoffs: 0,
            leapt: Time::ZERO,
            last_sent: Time::ZERO,
            run: None,
            reordering: ReorderingWindow::default(),
        }
    }
    #[inline]
    pub fn due(&self) -> Time {
        self.timer
    }
    #[inline]
    pub fn last_sent(&self) -> Time {
        self.last_sent
    }
    /// Number of probe timeouts since anything was received.
    #[inline]
    pub fn backoffs(&self) -> u32 {
        self.backoffs
    }
    #[inline]
    pub fn end_backoff(&mut self) {
        self.backoffs = 0;
    }
    pub fn on_probe_timeout(&mut self) {
        self.backoffs = self.backoffs.saturating_add(1);
    }
    #[inline]
    pub fn on_sent(&mut self, now: Time) {
        self.last_sent = now;
    }
    /// The path changed: earlier losses do not count towards persistent congestion.
    pub fn renew(&mut self) {
        (self.backoffs, self.run) = (0, None);
        self.reordering = ReorderingWindow::default();
    }

    /// To be called before anything else that happens at `now`: notices that the clock leapt, or that nobody
    /// was there to handle the timer. While packets are in flight it is always set.
    #[inline]
    pub fn notice_leap(&mut self, now: Time) {
        if now.since(self.timer) > MAX_LATENESS {
            self.leapt = now;
        }
    }
    /// The round-trip time that a report of packets up to `highest` tells, but no more than is known if it
    /// contains a leap of the clock: an end that takes an hour's sleep for its path's round trip waits for
    /// minutes after every loss.
    #[inline]
    pub fn without_leap<L>(
        &self,
        now: Time,
        highest: u64,
        measured: Duration,
        ledger: &PacketLedger<L>,
        path: &RoundTrip,
    ) -> Duration {
        if now.since(self.leapt) >= measured && measured <= MAX_BACKOFF_TIMEOUT {
            return measured;
        }
        // Where nothing was in flight no timer tells of a leap, but a report may echo a packet that left
        // before: then what it answers is younger by far.
        let age = ledger.get(highest).map_or(measured, |p| now.since(p.sent));
        if now.since(self.leapt) >= measured && measured <= age + MAX_BACKOFF_TIMEOUT {
            return measured;
        }
        let known = if path.first().is_never() { MAX_BACKOFF_TIMEOUT } else { path.latest() };
        measured.min(known)
    }

    /// What is known of the lowest packet; `None` if there is none.
    #[inline]
    pub fn front<L>(&self, now: Time, ledger: &PacketLedger<L>, path: &RoundTrip) -> Option<Front> {
        let front = ledger.front()?;
        if front.arrived || front.class.is_untracked() {
            return Some(Front::Known);
        }
        let head = ledger.reported().saturating_sub(1);
        let lowest = ledger.least_unacked();
        let above = head.saturating_sub(lowest);
        let counts = !self.reordering.is_open();
        if counts
            && above >= PACKET_THRESHOLD
            && above - ledger.skipped(lowest, head) >= PACKET_THRESHOLD
        {
            return Some(Front::LostByCount);
        }
        let late = lowest < head && now.since(front.sent) >= self.patience(path);
        Some(if late { Front::LostByClock } else { Front::Open })
    }

    /// How long an absent packet may be on its way once a later one has come.
    fn patience(&self, path: &RoundTrip) -> Duration {
        path.patience().max(path.expected() + self.reordering.length(path))
    }
    /// A packet arrived that left so long ago, behind later ones.
    pub fn on_reordered(&mut self, took: Duration, path: &RoundTrip) {
        self.reordering.on_reordered(took, path);
    }
    /// A recovery begins.
    pub fn on_recovery(&mut self) {
        self.reordering.on_recovery();
    }

    /// A counted packet that left at `sent` is lost: whether with those before it that makes persistent
    /// congestion.
    #[inline]
    pub fn on_lost(&mut self, sent: Time, path: &RoundTrip) -> bool {
        if sent <= path.first() {
            return false;
        }
        let since = *self.run.get_or_insert(sent);
        let long = self.probe_timeout(path).saturating_mul(u64::from(PERSISTENT));
        sent.since(since) >= long
    }
    /// A packet arrived, or slow start was restarted.
    #[inline]
    pub fn end_run(&mut self) {
        self.run = None;
    }

    pub fn probe_timeout(&self, path: &RoundTrip) -> Duration {
        path.probe_timeout(self.max_ack_delay)
    }
    /// The receiver was asked to space its reports by `spacing`.
    pub fn on_spacing(&mut self, spacing: Duration) {
        self.max_ack_delay = self.agreed_ack_delay + spacing;
    }
    /// The probe timeout with RFC 9002's back-off.
    fn doubled(&self, path: &RoundTrip) -> Duration {
        if path.first().is_never() {
            return path.estimator().rto(self.backoffs);
        }
        let once = self.probe_timeout(path);
        let doubled = once.saturating_mul(1 << self.backoffs.min(16));
        doubled.min(path.longest_timeout().max(once))
    }
    /// The probe timeout with our back-off. A path that never acknowledged anything may be nobody's who asked for it.
    fn backed_off<L>(&self, ledger: &PacketLedger<L>, path: &RoundTrip) -> Duration {
        let doubled = self.doubled(path);
        if ledger.arrived() == 0 || self.backoffs == 0 {
            return doubled;
        }
        // No answer comes sooner than the timeout itself.
        doubled.min(MAX_BACKOFF_TIMEOUT.max(self.probe_timeout(path)))
    }
    /// Whether the probe that is due now leaves before RFC 9002 would let it.
    pub fn is_probe_early<L>(&self, ledger: &PacketLedger<L>, path: &RoundTrip) -> bool {
        self.backed_off(ledger, path) < self.doubled(path)
    }
    /// When the timer is due by what is known now; `all_arrived` if nothing would have to be repaired.
    pub fn timer_due<L>(
        &self,
        ledger: &PacketLedger<L>,
        path: &RoundTrip,
        all_arrived: bool,
    ) -> Time {
        match ledger.front() {
            None => Time::NEVER,
            Some(_) if all_arrived => Time::NEVER,
            Some(front) if ledger.waits_for_late() => front.sent + self.patience(path),
            Some(_) => self.last_sent + self.backed_off(ledger, path),
        }
    }
    /// Sets the timer, but to no earlier than the next nanosecond.
    #[inline]
    pub fn arm(&mut self, now: Time, due: Time) {
        self.timer = due.max(now + Duration::from_nanos(1));
    }
    /// Nothing left for so long, by the controller's will: not this very moment again.
    pub fn put_off<L>(&mut self, now: Time, ledger: &PacketLedger<L>, path: &RoundTrip) {
        self.timer = now + self.backed_off(ledger, path);
    }
}
