//! Loss detection and its timer, with the PTO's back-off: RFC 9002, counted in packets.
//!
//! - A packet is lost if it is missing and the packet three numbers above it has arrived (section 6.1.1), or if a later
//!   one has arrived and it was sent 9/8 RTT ago (6.1.2). If the path reorders, the distance does not count, and the
//!   time is longer: see `reordering`. The outcome of a packet is passed on as soon as all lower outcomes are known, so
//!   the lowest packet of unknown outcome is always unacknowledged.
//! - If no packet is received for SRTT + 4 RTTVAR + max_ack_delay, doubled each time, one packet is sent beyond the
//!   window, from the third time on 2, 4, 8 and at most 10. They carry lost data, or new data, or the oldest data in
//!   flight again (6.2). On a path that has acknowledged a packet, one is sent every 2 s at least, so that an outage's
//!   end is detected soon. Those that RFC 9002's back-off would not permit yet are short and carry no data. A controller
//!   with a timer of its own is overruled only if no packet was sent for 2 s.
//! - The loss of a packet sent after the last reduction begins a recovery; it ends when the outcome of every packet
//!   sent before it is known (7.3.1, 7.3.2). One packet may leave at once, and again if it is lost. The latter does not
//!   begin another recovery, since that packet met the queue that caused the first loss.
//! - In persistent congestion, if every packet sent over three PTOs is lost, slow start restarts (7.6).
//!
//! If a packet that was declared lost arrives late, the loss was spurious: see `late` and `spurious`.

use super::ledger::PacketLedger;
use super::reordering::AdaptiveReorderingWindow;
use super::round_trip::{MAX_BACKOFF_TIMEOUT, RoundTrip};
use narrows_base::{Duration, Time};

/// kPacketThreshold, RFC 9002 section 6.1.1.
pub(super) const PACKET_THRESHOLD: u64 = 3;
/// kPersistentCongestionThreshold, RFC 9002 section 7.6.1.
const PERSISTENT_CONGESTION_THRESHOLD: u32 = 3;
/// If the timer is handled later than this, the clock leapt or the process was suspended.
const MAX_LATENESS: Duration = Duration::from_secs(1);

/// Losses found at one moment.
#[derive(Default)]
pub(super) struct DetectedLosses {
    pub count: u64,
    pub radio: u64,
    /// Send time and number of the first.
    pub first: Option<Time>,
    pub lowest: Option<u64>,
    /// The first that was sent after the last reduction.
    pub new: Option<u64>,
    /// Whether the packet that the present recovery sent at once is among them.
    pub repair: bool,
    pub by_clock: bool,
    pub persistent: bool,
}

/// State of the lowest packet of unknown outcome.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum LossFrontier {
    /// Its outcome is still unknown.
    Open,
    /// It arrived, or it is not tracked.
    Known,
    /// Lost by the packet threshold.
    LostByCount,
    /// Lost by the time threshold.
    LostByClock,
}

/// Finds losses, and holds the sender's only timer.
#[derive(Debug)]
pub(super) struct LossDetector {
    /// Longest report delay of the receiver: as agreed, and with the requested spacing.
    agreed_ack_delay: Duration,
    max_ack_delay: Duration,
    loss_detection_timer: Time,
    pto_count: u32,
    /// When a leap of the clock was last noticed.
    leapt: Time,
    last_sent: Time,
    /// Send time of the first of the consecutively lost packets.
    run: Option<Time>,
    reordering: AdaptiveReorderingWindow,
}

impl LossDetector {
    /// `max_ack_delay` is the longest time that the receiver delays a report.
    pub fn new(max_ack_delay: Duration) -> LossDetector {
        LossDetector {
            agreed_ack_delay: max_ack_delay,
            max_ack_delay,
            loss_detection_timer: Time::NEVER,
            pto_count: 0,
            leapt: Time::ZERO,
            last_sent: Time::ZERO,
            run: None,
            reordering: AdaptiveReorderingWindow::default(),
        }
    }
    #[inline]
    pub fn due(&self) -> Time {
        self.loss_detection_timer
    }
    #[inline]
    pub fn last_sent(&self) -> Time {
        self.last_sent
    }
    /// Number of consecutive PTOs since a packet was received.
    #[inline]
    pub fn pto_count(&self) -> u32 {
        self.pto_count
    }
    #[inline]
    pub fn reset_pto_count(&mut self) {
        self.pto_count = 0;
    }
    pub fn on_pto(&mut self) {
        self.pto_count = self.pto_count.saturating_add(1);
    }
    #[inline]
    pub fn on_sent(&mut self, now: Time) {
        self.last_sent = now;
    }
    /// The path changed: earlier losses do not count towards persistent congestion.
    pub fn renew(&mut self) {
        self.pto_count = 0;
        self.run = None;
        self.reordering = AdaptiveReorderingWindow::default();
    }

    /// To be called before anything else that happens at `now`: detects a leap of the clock, or a process that was
    /// suspended when the timer was due. The timer is always set while packets are in flight.
    #[inline]
    pub fn notice_leap(&mut self, now: Time) {
        if now.since(self.loss_detection_timer) > MAX_LATENESS {
            self.leapt = now;
        }
    }
    /// The RTT of a report of packets up to `highest`. If it contains a leap of the clock, it is limited to the last
    /// RTT. Otherwise an endpoint that slept for an hour would use that as its RTT, and wait for minutes after every
    /// loss.
    #[inline]
    pub fn clamp_after_clock_leap<L>(
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
        // If no packet was in flight, no timer reveals a leap. But a report may echo a packet that was sent before it:
        // then the newest packet that the report covers is much younger.
        let age = ledger.get(highest).map_or(measured, |p| now.since(p.sent));
        if now.since(self.leapt) >= measured && measured <= age + MAX_BACKOFF_TIMEOUT {
            return measured;
        }
        let known = if path.first_rtt_sample().is_never() {
            MAX_BACKOFF_TIMEOUT
        } else {
            path.latest_rtt()
        };
        measured.min(known)
    }

    /// State of the lowest packet, if there is one.
    #[inline]
    pub fn front<L>(
        &self,
        now: Time,
        ledger: &PacketLedger<L>,
        path: &RoundTrip,
    ) -> Option<LossFrontier> {
        let front = ledger.front()?;
        if front.arrived || front.class.is_untracked() {
            return Some(LossFrontier::Known);
        }
        let head = ledger.reported().saturating_sub(1);
        let lowest = ledger.least_unacked();
        let above = head.saturating_sub(lowest);
        let counts = !self.reordering.is_open();
        if counts
            && above >= PACKET_THRESHOLD
            && above - ledger.skipped(lowest, head) >= PACKET_THRESHOLD
        {
            return Some(LossFrontier::LostByCount);
        }
        let late = lowest < head && now.since(front.sent) >= self.loss_delay(path);
        Some(if late { LossFrontier::LostByClock } else { LossFrontier::Open })
    }

    /// How late a packet may be once a later one has arrived.
    fn loss_delay(&self, path: &RoundTrip) -> Duration {
        path.loss_delay().max(path.expected() + self.reordering.length(path))
    }
    /// A packet arrived behind later ones, `took` after it was sent.
    pub fn on_reordered(&mut self, took: Duration, path: &RoundTrip) {
        self.reordering.on_reordered(took, path);
    }
    /// A recovery begins.
    pub fn on_recovery(&mut self) {
        self.reordering.on_recovery();
    }

    /// A counted packet sent at `sent` is lost: returns whether this establishes persistent congestion.
    #[inline]
    pub fn on_lost(&mut self, sent: Time, path: &RoundTrip) -> bool {
        if sent <= path.first_rtt_sample() {
            return false;
        }
        let since = *self.run.get_or_insert(sent);
        let long = self.pto(path).saturating_mul(u64::from(PERSISTENT_CONGESTION_THRESHOLD));
        sent.since(since) >= long
    }
    /// A packet was acknowledged, or slow start restarted.
    #[inline]
    pub fn end_run(&mut self) {
        self.run = None;
    }

    pub fn pto(&self, path: &RoundTrip) -> Duration {
        path.pto(self.max_ack_delay)
    }
    /// The receiver was requested to space its reports by `spacing`.
    pub fn on_spacing(&mut self, spacing: Duration) {
        self.max_ack_delay = self.agreed_ack_delay + spacing;
    }
    /// The PTO with RFC 9002's back-off.
    fn doubled(&self, path: &RoundTrip) -> Duration {
        if path.first_rtt_sample().is_never() {
            return path.estimator().rto(self.pto_count);
        }
        let once = self.pto(path);
        let doubled = once.saturating_mul(1 << self.pto_count.min(16));
        doubled.min(path.max_pto().max(once))
    }
    /// The PTO with our limit on the back-off. The limit does not apply if the path has never acknowledged a packet:
    /// its address may be spoofed.
    fn backed_off<L>(&self, ledger: &PacketLedger<L>, path: &RoundTrip) -> Duration {
        let doubled = self.doubled(path);
        if ledger.arrived() == 0 || self.pto_count == 0 {
            return doubled;
        }
        // An answer takes at least the PTO itself.
        doubled.min(MAX_BACKOFF_TIMEOUT.max(self.pto(path)))
    }
    /// Whether RFC 9002 would not permit the probe that is due now.
    pub fn is_probe_early<L>(&self, ledger: &PacketLedger<L>, path: &RoundTrip) -> bool {
        self.backed_off(ledger, path) < self.doubled(path)
    }
    /// When the timer is due; `all_arrived` if no data in flight would have to be retransmitted.
    pub fn timer_due<L>(
        &self,
        ledger: &PacketLedger<L>,
        path: &RoundTrip,
        all_arrived: bool,
    ) -> Time {
        match ledger.front() {
            None => Time::NEVER,
            Some(_) if all_arrived => Time::NEVER,
            Some(front) if ledger.waits_for_late() => front.sent + self.loss_delay(path),
            Some(_) => self.last_sent + self.backed_off(ledger, path),
        }
    }
    /// Sets the timer, but to no earlier than the next nanosecond.
    #[inline]
    pub fn arm(&mut self, now: Time, due: Time) {
        self.loss_detection_timer = due.max(now + Duration::from_nanos(1));
    }
    /// The controller sent no packet after a PTO: sets the timer one PTO later.
    pub fn put_off<L>(&mut self, now: Time, ledger: &PacketLedger<L>, path: &RoundTrip) {
        self.loss_detection_timer = now + self.backed_off(ledger, path);
    }
}
