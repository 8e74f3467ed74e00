//! Translates a stack's calls into the events of a controller.
//!
//! Controllers count packets of the MTU, stacks count bytes. Acknowledgements are collected until the end of their frame,
//! the first call with the bytes in flight.

use super::outcomes::{Outcomes, Resolved};
use super::sent_log::SentLog;
use crate::{
    Ack, CongestionEvent, Controller, Loss, LossFoundBy, PacketOutcome, PathEvent, RecoveryCause,
    RecoveryEvent, RttEstimate, SendLimits, Sent, SlowStartRestart, SpuriousLosses,
};
use narrows_base::{Duration, Rate, Time};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The smallest window in packets: stacks divide by it.
const MIN_WINDOW: f64 = 1.0;
/// The largest window, and the most bytes in flight: sums of them do not overflow.
const MAX_BYTES: u64 = 1 << 60;
/// The longest smoothed RTT in nanoseconds: 36 years.
const MAX_RTT: u64 = 1 << 60;

/// What a stack's trait passes to a controller and takes from it.
#[derive(Debug)]
pub struct QuicStack {
    /// The stack's name, for messages.
    pub name: &'static str,
    /// Whether sent, acknowledged and lost packets have their numbers.
    pub has_packet_numbers: bool,
    /// Whether it paces at a controller's rate; otherwise by the window.
    pub has_pacing_rate: bool,
}

/// A batch of acknowledgements.
#[derive(Clone, Debug, Default)]
struct AckBatch {
    packets: u64,
    newest: Option<Time>,
    /// Send time and bytes of each acknowledged packet.
    arrived: Vec<(Time, u64)>,
}

/// Losses and marks of the last episode.
#[derive(Clone, Copy, Debug, Default)]
struct Episode {
    /// Packets reported as lost one by one since the last congestion event.
    reported: u64,
    /// Packets lost in it.
    losses: u64,
    /// When the controller last reduced for a mark.
    marked: Option<Time>,
}

/// A controller between a QUIC stack's calls and Narrows' events.
///
/// Times are the stack's. Windows are in whole packets, which each stack compares with the bytes in flight in its own way.
pub struct QuicAdapter {
    stack: &'static QuicStack,
    controller: Mutex<Box<dyn Controller>>,
    epoch: Instant,
    /// The present packet size in bytes, and the one with which the controller was built.
    mtu: u64,
    nominal_mtu: u64,
    initial_window: f64,
    limits: SendLimits,
    log: SentLog,
    in_flight: u64,
    batch: AckBatch,
    rtt: RttEstimate,
    app_limited: bool,
    round: u64,
    round_end: u64,
    /// When the present recovery began.
    recovery: Option<Time>,
    /// Number of acknowledged and lost packets. It serves as packet number if the stack passes none.
    outcomes: u64,
    /// Outcomes by packet number, if the stack passes them.
    numbered: Outcomes,
    /// The latest time that a call had.
    now: Time,
    episode: Episode,
}

impl QuicAdapter {
    pub(super) fn new(
        controller: Box<dyn Controller>,
        stack: &'static QuicStack,
        now: Instant,
        mtu: u16,
        initial_window: f64,
    ) -> QuicAdapter {
        let mtu = u64::from(mtu.max(1));
        QuicAdapter {
            stack,
            limits: controller.send_limits(),
            controller: Mutex::new(controller),
            epoch: now,
            mtu,
            nominal_mtu: mtu,
            initial_window,
            log: SentLog::default(),
            in_flight: 0,
            batch: AckBatch::default(),
            rtt: RttEstimate {
                srtt: Duration::ZERO,
                rttvar: Duration::ZERO,
                min_rtt: Duration::MAX,
            },
            app_limited: false,
            round: 0,
            round_end: 0,
            recovery: None,
            outcomes: 0,
            numbered: Outcomes::default(),
            now: Time::ZERO,
            episode: Episode::default(),
        }
    }

    /// Counted from a second before the connection, because controllers use time 0 for "never
    /// sent".
    fn time(&self, at: Instant) -> Time {
        let since = at.saturating_duration_since(self.epoch).as_nanos();
        Time::from_nanos(u64::try_from(since).unwrap_or(u64::MAX / 2)) + Duration::from_secs(1)
    }

    fn packets(&self, bytes: u64) -> u64 {
        bytes.div_ceil(self.mtu)
    }

    /// Calls the controller, with ticks that are due first, and then reads its limits.
    fn with(&mut self, now: Time, call: impl FnOnce(&mut dyn Controller)) {
        let controller = self.controller.get_mut().unwrap_or_else(PoisonError::into_inner);
        if now >= controller.next_tick() {
            controller.on_tick(now);
        }
        call(&mut **controller);
        self.now = now;
        self.limits = controller.send_limits();
    }

    /// `flight` as RFC 5681 counts it: with the packets that were just found lost.
    fn recovery_event(&self, now: Time, cause: RecoveryCause, flight: u64) -> RecoveryEvent {
        let outstanding = self.packets(self.in_flight);
        let min_rtt = self.rtt.min_rtt;
        RecoveryEvent { now, cause, flight, outstanding, min_rtt, srtt: self.rtt.srtt }
    }

    fn see_rtt(&mut self, rtt: Duration, smoothed: Duration) {
        let off = self.rtt.srtt.as_nanos().abs_diff(rtt.as_nanos());
        let var = match self.rtt.srtt {
            Duration::ZERO => rtt.as_nanos() / 2,
            _ => (3 * self.rtt.rttvar.as_nanos() + off) / 4,
        };
        self.rtt.rttvar = Duration::from_nanos(var);
        self.rtt.srtt = smoothed;
        self.rtt.min_rtt = self.rtt.min_rtt.min(rtt);
    }

    /// The controller's rate in bytes of the present packet size.
    fn rate_bps(&self) -> Option<f64> {
        let scale = self.mtu as f64 / self.nominal_mtu as f64;
        self.limits.pacing_rate.map(|rate: Rate| rate.as_bps() as f64 * scale)
    }

    /// The next packet's outcome. Without packet numbers they are counted in the order of reports: arrivals exactly,
    /// losses together with the newest of them.
    fn outcome(&mut self, now: Time, sent: Time, bytes: u64, lost: bool) -> PacketOutcome {
        let seq = self.outcomes;
        self.outcomes += 1;
        let bytes = self.nominal_bytes(bytes);
        PacketOutcome { lost, ..PacketOutcome::arrived(now, seq, sent, bytes) }
    }

    /// The outcomes that are known, in the order of packet numbers.
    fn numbered_outcomes(&mut self, now: Time) -> Vec<PacketOutcome> {
        let resolved = self.numbered.resolved(self.rtt.srtt);
        let outcome = |r: Resolved| PacketOutcome {
            lost: r.is_lost,
            ..PacketOutcome::arrived(now, r.sequence, r.sent, self.nominal_bytes(r.bytes))
        };
        resolved.into_iter().map(outcome).collect()
    }

    /// Bytes in terms of the packet size with which the controller was built.
    fn nominal_bytes(&self, bytes: u64) -> u32 {
        (bytes as f64 * self.nominal_mtu as f64 / self.mtu as f64) as u32
    }

    fn acked_batch(&mut self, now: Time, in_flight: u64) {
        let batch = std::mem::take(&mut self.batch);
        let Some(sent) = batch.newest else { return };
        let outcomes: Vec<PacketOutcome> = match self.stack.has_packet_numbers {
            true => self.numbered_outcomes(now),
            false => {
                let arrived = batch.arrived.iter();
                arrived.map(|(sent, bytes)| self.outcome(now, *sent, *bytes, false)).collect()
            }
        };
        let rtt = now.since(sent);
        let prior_outstanding = self.packets(self.in_flight);
        self.in_flight = in_flight;
        let outstanding = self.packets(in_flight);
        let rate = self.log.acked(now, sent, batch.packets);
        let round_start = rate.is_some_and(|r| r.prior_delivered >= self.round_end);
        if round_start {
            self.round += 1;
            self.round_end = self.log.delivered();
        }
        let ack = Ack {
            estimate: self.rtt,
            sent_since: outstanding,
            flight: outstanding,
            outstanding,
            prior_outstanding: prior_outstanding.max(outstanding + batch.packets),
            // As quinn's and noq's own controllers do: a pacer keeps the packets in flight below the window most of
            // the time.
            window_limited: !self.app_limited,
            in_recovery: self.recovery.is_some(),
            round: self.round,
            round_start,
            rate,
            ..Ack::of_packet(now, rtt, self.rtt.min_rtt)
        };
        let over = self.recovery.is_some_and(|began| sent > began);
        let event = self.recovery_event(now, RecoveryCause::Loss, outstanding);
        self.with(now, |controller| {
            outcomes.iter().for_each(|o| controller.on_packet_outcome(o));
            for i in 0..batch.packets {
                controller.on_ack(&ack.of_report(i, batch.packets));
            }
            if over {
                controller.on_congestion_event(&CongestionEvent::RecoveryEnd(event));
            }
        });
        if over {
            self.recovery = None;
        }
    }

    /// Packets were sent. `number` is that of the packet, if the stack reports one packet at a time.
    pub fn sent(&mut self, now: Instant, bytes: u64, number: Option<u64>) {
        let now = self.time(now);
        if let Some(number) = number {
            self.numbered.sent(now, number, bytes);
        }
        let is_first = self.in_flight == 0;
        self.log.sent(now, is_first, self.app_limited);
        let before = self.packets(self.in_flight);
        let mtu = self.mtu;
        self.in_flight = self.in_flight.saturating_add(bytes).min(MAX_BYTES);
        let packets = self.packets(bytes);
        let scale = self.nominal_mtu as f64 / mtu as f64;
        self.with(now, |controller| {
            for i in 0..packets {
                let left = bytes - (i * mtu).min(bytes);
                controller.on_sent(&Sent::new(
                    now,
                    (left.min(mtu) as f64 * scale) as u32,
                    before + i + 1,
                ));
            }
        });
    }

    /// A packet was acknowledged; [`end_acks`](QuicAdapter::end_acks) follows.
    pub fn acked(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        number: Option<u64>,
        smoothed_rtt: std::time::Duration,
    ) {
        let now = self.time(now);
        let sent = self.time(sent);
        if let Some(number) = number {
            self.numbered.acked(number, sent);
        }
        let smoothed =
            u64::try_from(smoothed_rtt.as_nanos()).map_or(MAX_RTT, |rtt| rtt.min(MAX_RTT));
        self.see_rtt(now.since(sent), Duration::from_nanos(smoothed));
        self.batch.packets += self.packets(bytes);
        self.batch.arrived.push((sent, bytes));
        self.batch.newest = Some(self.batch.newest.map_or(sent, |newest| newest.max(sent)));
    }

    /// All packets of an ACK frame were reported; so many bytes are in flight now.
    pub fn end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        self.app_limited = app_limited;
        let now = self.time(now);
        self.acked_batch(now, in_flight.min(MAX_BYTES));
    }

    /// A packet was lost; [`losses`](QuicAdapter::losses) follows.
    pub fn lost_packet(&mut self, number: u64) {
        self.numbered.lost(number);
        self.episode.reported += 1;
    }

    /// Bytes were lost, of which the newest were sent at `sent`.
    pub fn losses(&mut self, now: Instant, sent: Instant, bytes: u64, is_persistent: bool) {
        let now = self.time(now);
        let sent = self.time(sent);
        let flight = self.packets(self.in_flight);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        let is_new = is_persistent || self.recovery.is_none_or(|began| sent > began);
        let loss = Loss {
            now,
            segments: std::mem::take(&mut self.episode.reported).max(self.packets(bytes)),
            sent,
            transmissions: 1,
            found_by: match is_persistent {
                true => LossFoundBy::Timeout,
                false => LossFoundBy::Sack,
            },
            new_episode: is_new,
            radio: 0,
        };
        self.episode.losses = loss.segments + if is_new { 0 } else { self.episode.losses };
        let outcomes: Vec<PacketOutcome> = match self.stack.has_packet_numbers {
            true => self.numbered_outcomes(now),
            false => (0..loss.segments).map(|_| self.outcome(now, sent, self.mtu, true)).collect(),
        };
        let recovery = self.recovery_event(now, RecoveryCause::Loss, flight);
        let restart = SlowStartRestart {
            now,
            flight,
            timeout: true,
            backoffs: 1,
            min_rtt: self.rtt.min_rtt,
            srtt: self.rtt.srtt,
        };
        self.with(now, |controller| {
            outcomes.iter().for_each(|o| controller.on_packet_outcome(o));
            controller.on_congestion_event(&CongestionEvent::Losses(loss));
            if is_persistent {
                controller.on_congestion_event(&CongestionEvent::SlowStartRestart(restart));
            } else if is_new {
                controller.on_congestion_event(&CongestionEvent::RecoveryStart(recovery));
            }
        });
        if is_persistent {
            self.recovery = None;
        } else if is_new {
            self.recovery = Some(now);
        }
    }

    /// An ACK frame reports new CE marks; the newest packet that it acknowledges was sent at `sent`.
    pub fn marked(&mut self, now: Instant, sent: Instant) {
        let now = self.time(now);
        let sent = self.time(sent);
        // Once per window (RFC 3168 section 6.1.2).
        let reduced = self.recovery.max(self.episode.marked);
        if reduced.is_some_and(|at| sent <= at) {
            return;
        }
        self.episode.marked = Some(now);
        let flight = self.packets(self.in_flight);
        let mark = self.recovery_event(now, RecoveryCause::EcnCe, flight);
        self.with(now, |controller| {
            controller.on_congestion_event(&CongestionEvent::RecoveryStart(mark));
            controller.on_congestion_event(&CongestionEvent::RecoveryEnd(mark));
        });
    }

    /// All packets of the last loss episode have arrived after all.
    pub fn spurious(&mut self) {
        let now = self.now;
        let packets = std::mem::take(&mut self.episode.losses);
        let flight = self.packets(self.in_flight);
        let end = self.recovery_event(now, RecoveryCause::Loss, flight);
        let ended = self.recovery.take().is_some();
        let spurious = SpuriousLosses { now, packets, undo: true };
        self.with(now, |controller| {
            if ended {
                controller.on_congestion_event(&CongestionEvent::RecoveryEnd(end));
            }
            controller.on_congestion_event(&CongestionEvent::SpuriousLosses(spurious));
        });
    }

    /// The path's packet size in bytes has changed.
    pub fn mtu_changed(&mut self, mtu: u16) {
        self.mtu = u64::from(mtu.max(1));
        let now = self.now;
        let bytes = PathEvent::PacketBytes(u32::from(mtu));
        self.with(now, |controller| controller.on_path_event(now, &bytes));
    }

    /// The packet size in bytes.
    pub fn mtu(&self) -> u64 {
        self.mtu
    }

    /// Window in bytes: whole packets, as controllers mean it, and at least one.
    pub fn window(&self) -> u64 {
        let packets = self.limits.cwnd.floor().max(MIN_WINDOW);
        self.bytes(packets)
    }

    /// The same, and at most what the controller's rate carries in a smoothed RTT: for stacks that pace by the window.
    pub fn window_at_rate(&self) -> u64 {
        let carried = match (self.rate_bps(), self.rtt.srtt) {
            (Some(rate), srtt) if srtt > Duration::ZERO => rate / 8.0 * srtt.as_secs_f64(),
            _ => f64::INFINITY,
        };
        let least = MIN_WINDOW * self.mtu as f64;
        let carried = carried.max(least).min(MAX_BYTES as f64) as u64;
        self.window().min(carried)
    }

    /// Pacing rate in bytes per second, if the controller sets one.
    pub fn bytes_per_second(&self) -> Option<u64> {
        self.rate_bps().map(|bps| (bps / 8.0) as u64)
    }

    /// Slow-start threshold in bytes, if there is one.
    pub fn ssthresh(&self) -> Option<u64> {
        let finite = self.limits.ssthresh.filter(|segments| segments.is_finite());
        finite.map(|segments| self.bytes(segments))
    }

    /// Window in bytes before the first acknowledgement.
    pub fn initial_window(&self) -> u64 {
        self.bytes(self.initial_window)
    }

    fn bytes(&self, packets: f64) -> u64 {
        (packets * self.mtu as f64).min(MAX_BYTES as f64) as u64
    }
}

impl Clone for QuicAdapter {
    fn clone(&self) -> QuicAdapter {
        let controller = self.controller.lock().unwrap_or_else(PoisonError::into_inner).clone();
        QuicAdapter {
            controller: Mutex::new(controller),
            log: self.log.clone(),
            batch: self.batch.clone(),
            numbered: self.numbered.clone(),
            ..*self
        }
    }
}

impl std::fmt::Debug for QuicAdapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "QuicAdapter({}, {:?}, {:?})", self.stack.name, self.limits, self.rtt)
    }
}
