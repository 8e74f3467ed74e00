//! Translates quinn's calls into the events of Narrows' controllers.
//!
//! Controllers count packets of the MTU, quinn counts bytes. Acknowledgements are collected until
//! [`on_end_acks`](Controller::on_end_acks), the first call with the bytes in flight.

use crate::sent_log::SentLog;
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{
    Ack, CongestionEvent, CumulativeAck, Feedback, Loss, LossFoundBy, PacketOutcome, PathEvent,
    RecoveryCause, RecoveryEvent, RttEstimate, SendLimits, Sent, SlowStartRestart,
};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};
use std::any::Any;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The smallest window in packets: quinn divides by it.
const MIN_WINDOW: f64 = 1.0;

/// A batch of acknowledgements.
#[derive(Clone, Debug, Default)]
struct AckBatch {
    packets: u64,
    newest: Option<Time>,
    /// Send time and bytes of each acknowledged packet.
    arrived: Vec<(Time, u64)>,
}

pub struct Adapter {
    controller: Mutex<Box<dyn narrows_congestion::Controller>>,
    epoch: Instant,
    /// The present packet size in bytes, and the one with which the controller was built.
    mtu: u64,
    nominal_mtu: u64,
    initial_window: f64,
    limits: SendLimits,
    log: SentLog,
    in_flight: u64,
    batch: AckBatch,
    srtt: Duration,
    rttvar: Duration,
    min_rtt: Duration,
    app_limited: bool,
    round: u64,
    round_end: u64,
    /// When the present recovery began.
    recovery: Option<Time>,
    /// Number of acknowledged and lost packets. It serves as packet number, since quinn passes no packet numbers.
    outcomes: u64,
}

impl Adapter {
    pub fn new(
        controller: Box<dyn narrows_congestion::Controller>,
        now: Instant,
        mtu: u16,
        initial_window: f64,
    ) -> Adapter {
        let mtu = u64::from(mtu.max(1));
        Adapter {
            limits: controller.send_limits(),
            controller: Mutex::new(controller),
            epoch: now,
            mtu,
            nominal_mtu: mtu,
            initial_window,
            log: SentLog::default(),
            in_flight: 0,
            batch: AckBatch::default(),
            srtt: Duration::ZERO,
            rttvar: Duration::ZERO,
            min_rtt: Duration::MAX,
            app_limited: false,
            round: 0,
            round_end: 0,
            recovery: None,
            outcomes: 0,
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
    fn with(&mut self, now: Time, call: impl FnOnce(&mut dyn narrows_congestion::Controller)) {
        let controller = self.controller.get_mut().unwrap_or_else(PoisonError::into_inner);
        if now >= controller.next_tick() {
            controller.on_tick(now);
        }
        call(&mut **controller);
        self.limits = controller.send_limits();
    }

    fn recovery_event(&self, now: Time, cause: RecoveryCause) -> RecoveryEvent {
        let flight = self.packets(self.in_flight);
        let min_rtt = self.min_rtt;
        let srtt = self.srtt;
        RecoveryEvent { now, cause, flight, outstanding: flight, min_rtt, srtt }
    }

    fn see_rtt(&mut self, rtt: Duration, smoothed: Duration) {
        let off = self.srtt.as_nanos().abs_diff(rtt.as_nanos());
        let var = match self.srtt {
            Duration::ZERO => rtt.as_nanos() / 2,
            _ => (3 * self.rttvar.as_nanos() + off) / 4,
        };
        self.rttvar = Duration::from_nanos(var);
        self.srtt = smoothed;
        self.min_rtt = self.min_rtt.min(rtt);
    }

    /// The controller's rate in bytes of the present packet size.
    fn rate_bps(&self) -> Option<f64> {
        let scale = self.mtu as f64 / self.nominal_mtu as f64;
        self.limits.pacing_rate.map(|rate: Rate| rate.as_bps() as f64 * scale)
    }

    /// The next packet's outcome. Packets are numbered in the order in which quinn reports them: arrivals exactly,
    /// losses together with the newest of them.
    fn outcome(&mut self, now: Time, sent: Time, bytes: u64, lost: bool) -> PacketOutcome {
        let seq = self.outcomes;
        self.outcomes += 1;
        let bytes = (bytes as f64 * self.nominal_mtu as f64 / self.mtu as f64) as u32;
        PacketOutcome { now, seq, sent, bytes, lost, marked: false, radio: false }
    }

    fn acked(&mut self, now: Time, in_flight: u64) {
        let batch = std::mem::take(&mut self.batch);
        let Some(sent) = batch.newest else { return };
        let outcomes: Vec<PacketOutcome> = batch
            .arrived
            .iter()
            .map(|(sent, bytes)| self.outcome(now, *sent, *bytes, false))
            .collect();
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
            now,
            rtt,
            estimate: RttEstimate { srtt: self.srtt, rttvar: self.rttvar, min_rtt: self.min_rtt },
            arrived: None,
            forward_delay: None,
            cumulative: CumulativeAck {
                newly_acked: 1,
                newly_sacked: 0,
                duplicate: false,
                rtt_unambiguous: true,
                selective_counts: false,
            },
            counted: 1,
            newly_delivered: 1,
            sent_since: outstanding,
            flight: outstanding,
            outstanding,
            prior_outstanding: prior_outstanding.max(outstanding + batch.packets),
            // As quinn's own controllers do: its pacer keeps the packets in flight below the window
            // most of the time.
            window_limited: !self.app_limited,
            in_recovery: self.recovery.is_some(),
            round: self.round,
            round_start,
            marks: 0,
            rate,
            feedback: Feedback::NONE,
        };
        let over = self.recovery.is_some_and(|began| sent > began);
        let event = self.recovery_event(now, RecoveryCause::Loss);
        self.with(now, |controller| {
            outcomes.iter().for_each(|o| controller.on_packet_outcome(o));
            for i in 0..batch.packets {
                let left = batch.packets - 1 - i;
                controller.on_ack(&Ack {
                    round_start: ack.round_start && i == 0,
                    outstanding: ack.outstanding + left,
                    flight: ack.flight + left,
                    prior_outstanding: ack.prior_outstanding.saturating_sub(i),
                    ..ack
                });
            }
            if over {
                controller.on_congestion_event(&CongestionEvent::RecoveryEnd(event));
            }
        });
        if over {
            self.recovery = None;
        }
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let now = self.time(now);
        let is_first = self.in_flight == 0;
        self.log.sent(now, is_first, self.app_limited);
        let before = self.packets(self.in_flight);
        let mtu = self.mtu;
        self.in_flight = self.in_flight.saturating_add(bytes);
        let packets = self.packets(bytes);
        let scale = self.nominal_mtu as f64 / mtu as f64;
        self.with(now, |controller| {
            for i in 0..packets {
                let left = bytes - (i * mtu).min(bytes);
                controller.on_sent(&Sent {
                    now,
                    bytes: (left.min(mtu) as f64 * scale) as u32,
                    outstanding: before + i + 1,
                    retransmission: false,
                    last_waiting: false,
                });
            }
        });
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        let now = self.time(now);
        let sent = self.time(sent);
        let smoothed = u64::try_from(rtt.get().as_nanos()).unwrap_or(u64::MAX);
        self.see_rtt(now.since(sent), Duration::from_nanos(smoothed));
        self.app_limited = app_limited;
        self.batch.packets += self.packets(bytes);
        self.batch.arrived.push((sent, bytes));
        self.batch.newest = Some(self.batch.newest.map_or(sent, |newest| newest.max(sent)));
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.app_limited = app_limited;
        self.acked(self.time(now), in_flight);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let now = self.time(now);
        let sent = self.time(sent);
        self.in_flight = self.in_flight.saturating_sub(lost_bytes);
        let is_new = self.recovery.is_none_or(|began| sent > began);
        if lost_bytes == 0 {
            let mark = self.recovery_event(now, RecoveryCause::EcnCe);
            if is_new {
                self.with(now, |controller| {
                    controller.on_congestion_event(&CongestionEvent::RecoveryStart(mark));
                    controller.on_congestion_event(&CongestionEvent::RecoveryEnd(mark));
                });
            }
            return;
        }
        let loss = Loss {
            now,
            segments: self.packets(lost_bytes),
            sent,
            transmissions: 1,
            found_by: match is_persistent_congestion {
                true => LossFoundBy::Timeout,
                false => LossFoundBy::Sack,
            },
            new_episode: is_persistent_congestion || is_new,
            radio: 0,
        };
        let outcomes: Vec<PacketOutcome> =
            (0..loss.segments).map(|_| self.outcome(now, sent, self.mtu, true)).collect();
        let recovery = self.recovery_event(now, RecoveryCause::Loss);
        let restart = SlowStartRestart {
            now,
            flight: recovery.flight + loss.segments,
            timeout: true,
            backoffs: 1,
            min_rtt: self.min_rtt,
            srtt: self.srtt,
        };
        self.with(now, |controller| {
            outcomes.iter().for_each(|o| controller.on_packet_outcome(o));
            controller.on_congestion_event(&CongestionEvent::Losses(loss));
            if is_persistent_congestion {
                controller.on_congestion_event(&CongestionEvent::SlowStartRestart(restart));
            } else if is_new {
                controller.on_congestion_event(&CongestionEvent::RecoveryStart(recovery));
            }
        });
        if is_persistent_congestion {
            self.recovery = None;
        } else if is_new {
            self.recovery = Some(now);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = u64::from(new_mtu.max(1));
        // quinn passes no time here; no controller needs one for a change of MTU.
        let bytes = PathEvent::PacketBytes(u32::from(new_mtu));
        let controller = self.controller.get_mut().unwrap_or_else(PoisonError::into_inner);
        controller.on_path_event(Time::ZERO, &bytes);
        self.limits = controller.send_limits();
    }

    fn window(&self) -> u64 {
        let window = self.limits.cwnd.max(MIN_WINDOW) * self.mtu as f64;
        // The packets that the rate carries in a smoothed RTT, because quinn paces only by the
        // window.
        let carried = match (self.rate_bps(), self.srtt) {
            (Some(rate), srtt) if srtt > Duration::ZERO => rate / 8.0 * srtt.as_secs_f64(),
            _ => f64::INFINITY,
        };
        let min = MIN_WINDOW * self.mtu as f64;
        // quinn sends while the packets in flight plus the next one are below the window.
        (window.min(carried.max(min)) + self.mtu as f64).min(u64::MAX as f64 / 2.0) as u64
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = (self.limits.ssthresh)
            .filter(|segments| segments.is_finite())
            .map(|segments| (segments * self.mtu as f64) as u64);
        metrics.pacing_rate = self.rate_bps().map(|bps| bps as u64);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let controller = self.controller.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::new(Adapter {
            controller: Mutex::new(controller),
            log: self.log.clone(),
            batch: self.batch.clone(),
            ..*self
        })
    }

    fn initial_window(&self) -> u64 {
        (self.initial_window * self.mtu as f64) as u64
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
