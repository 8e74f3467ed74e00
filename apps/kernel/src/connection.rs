//! The kernel's records of one connection as the events of a controller.
//!
//! Each packet that arrived with an acknowledgement is reported separately, as rrtp's sender does. The kernel does not
//! report all times, so two are assumed: a lost packet was sent just before the newest acknowledged one, and packets
//! are sent at the time of the previous acknowledgement.

use crate::choice::Choice;
use crate::record::{CaState, KernelCounts, Record, RecordKind};
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{
    Ack, CongestionEvent, Controller, CumulativeAck, Loss, LossFoundBy, PacketOutcome, RateSample,
    RecoveryCause, RecoveryEvent, RttEstimate, SendLimits, Sent, SlowStartRestart, SpuriousLosses,
};

/// Headers of IP, without options.
const IPV4: u32 = 20;
const IPV6: u32 = 40;
/// Most events of one kind that one record sets off: beyond it a count was wrong.
const MAX_PACKETS: u32 = 1 << 16;

/// A count's growth; 0 if it did not grow.
fn growth(now: u32, before: u32) -> u32 {
    let grown = now.wrapping_sub(before);
    if grown > u32::MAX / 2 { 0 } else { grown.min(MAX_PACKETS) }
}

fn micros(us: u32) -> Duration {
    Duration::from_nanos(u64::from(us) * 1000)
}

fn earlier(now: Time, by: Duration) -> Time {
    Time::from_nanos(now.as_nanos().saturating_sub(by.as_nanos()))
}

/// Window and rate that the kernel's sender obeys.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KernelLimits {
    /// Window in segments.
    pub cwnd: u32,
    /// Bytes of payload per second; 0: not paced.
    pub rate: u64,
    /// Slow-start threshold in segments; 0: not set.
    pub ssthresh: u32,
    /// Without a rate: whether to pace nevertheless.
    pub smooth: bool,
}

/// State and counts of a connection, for observers.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ConnectionFigures {
    /// The controller's window, in segments.
    pub cwnd: f64,
    /// The controller's pacing rate in bit/s with headers; `None` without pacing.
    pub pacing_bps: Option<f64>,
    /// Segments in flight, as the kernel counts them.
    pub in_flight: u32,
    /// Sum of all round-trip times that were measured, and their number.
    pub rtt_sum: Duration,
    /// Number of RTT samples.
    pub rtt_samples: u64,
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Bytes of a full segment.
    pub mss: u32,
    /// Segments that arrived.
    pub delivered: u64,
    /// Segments sent, those sent again counted.
    pub sent: u64,
    /// Of these, sent again.
    pub retransmitted: u64,
    /// Segments that the kernel found lost.
    pub lost: u64,
    /// Segments whose acknowledgement echoed a congestion mark.
    pub marked: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

/// A connection and its controller.
#[derive(Debug)]
pub struct KernelConnection {
    number: u32,
    controller: ControllerOf,
    packet_bytes: u32,
    mss: u32,
    counts: KernelCounts,
    last: Time,
    flight_before: u32,
    min_rtt: Duration,
    rtt: Duration,
    round: u64,
    round_end: u32,
    /// Segments delivered in total: the kernel's count, which wraps.
    delivered: u64,
    /// Outcomes reported to the controller.
    outcomes: u64,
    in_recovery: bool,
    paced: bool,
    smooth: bool,
    /// Losses reported since the episode began.
    episode_losses: u64,
    /// Without the controller's own values.
    figures: ConnectionFigures,
    /// Time of the last observation.
    pub(crate) looked: Time,
}

/// A controller, without anything to show.
struct ControllerOf(Box<dyn Controller>);

impl std::fmt::Debug for ControllerOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Controller")
    }
}

impl KernelConnection {
    /// At its first record, which has its MSS.
    pub fn new(choice: &Choice, first: &Record, now: Time) -> KernelConnection {
        let header = first.tcp_header + if first.ipv6 { IPV6 } else { IPV4 };
        let packet_bytes = (first.mss + header).clamp(100, 1 << 20);
        let controller = choice.build(first.connection, f64::from(first.cwnd), packet_bytes);
        let counts = first.counts;
        KernelConnection {
            number: first.connection,
            controller: ControllerOf(controller),
            packet_bytes,
            mss: first.mss.max(1),
            counts: KernelCounts { sent: 0, retransmitted: 0, episodes: 0, undos: 0, ..counts },
            last: now,
            flight_before: 0,
            min_rtt: Duration::MAX,
            rtt: micros(first.rtt.srtt),
            round: 0,
            round_end: first.counts.delivered,
            delivered: u64::from(first.counts.delivered.wrapping_sub(first.newly_delivered)),
            outcomes: 0,
            in_recovery: false,
            paced: false,
            smooth: choice.senses_delay(),
            episode_losses: 0,
            figures: ConnectionFigures::default(),
            looked: Time::ZERO,
        }
    }
    /// State and counts so far.
    pub fn figures(&self) -> ConnectionFigures {
        let SendLimits { cwnd, pacing_rate, .. } = self.controller.0.send_limits();
        let pacing_bps = pacing_rate.map(|rate| rate.as_bps() as f64);
        let mss = self.mss;
        let in_flight = self.flight_before;
        ConnectionFigures { cwnd, pacing_bps, mss, in_flight, ..self.figures }
    }
    /// The controller's variables.
    pub fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        self.controller.0.watch(put);
    }
    fn count(&mut self, r: &Record, before: &KernelCounts) {
        let f = &mut self.figures;
        f.sent += u64::from(growth(r.counts.sent, before.sent));
        f.retransmitted += u64::from(growth(r.counts.retransmitted, before.retransmitted));
        f.lost += u64::from(growth(r.counts.lost, before.lost));
        f.marked += u64::from(growth(r.counts.marked, before.marked));
        f.timeouts += u64::from(r.kind == RecordKind::Timeout);
        f.srtt = micros(r.rtt.srtt);
        if r.kind == RecordKind::Ack {
            f.delivered += u64::from(r.newly_delivered.min(MAX_PACKETS));
            if let Some(rtt) = r.rtt.newest {
                f.rtt_sum += micros(rtt);
                f.rtt_samples += 1;
            }
        }
    }
    /// The controller's window.
    #[cfg(test)]
    pub(crate) fn window(&self) -> f64 {
        self.controller.0.send_limits().cwnd
    }
    /// Which connection it is.
    pub fn number(&self) -> u32 {
        self.number
    }
    /// When it wants to be called without a record.
    pub fn next_tick(&self) -> Time {
        self.controller.0.next_tick()
    }
    /// Calls it if that time has been reached.
    pub fn tick(&mut self, now: Time) {
        let now = now.max(self.last);
        self.last = now;
        if now >= self.controller.0.next_tick() {
            self.controller.0.on_tick(now);
        }
    }

    /// The controller's limits for the kernel. Both count the same segments; the controller's rate includes headers,
    /// the kernel's does not.
    pub fn answer(&mut self) -> KernelLimits {
        let SendLimits { cwnd, pacing_rate, ssthresh } = self.controller.0.send_limits();
        self.paced = pacing_rate.is_some();
        let payload = f64::from(self.mss) / f64::from(self.packet_bytes) / 8.0;
        // A float's cast saturates.
        let rate = |rate: Rate| ((rate.as_bps() as f64 * payload) as u64).max(1);
        KernelLimits {
            cwnd: cwnd.clamp(1.0, f64::from(u32::MAX)) as u32,
            rate: pacing_rate.map_or(0, rate),
            ssthresh: ssthresh.filter(|s| s.is_finite()).map_or(0, |s| s.max(1.0) as u32),
            smooth: self.smooth,
        }
    }

    /// A record. A tick may have come since it was written, or a record of another processor: time does not fall.
    pub fn on_record(&mut self, r: &Record, now: Time) {
        let before_it = self.last;
        let now = now.max(self.last);
        self.tick(now);
        let before = std::mem::replace(&mut self.counts, r.counts);
        self.count(r, &before);
        self.report_sent(r, &before, before_it, now);
        match r.kind {
            RecordKind::Ack => self.on_ack(r, &before, now),
            RecordKind::Timeout => self.on_timeout(r, &before, now),
            RecordKind::Closed => {}
        }
        self.flight_before = r.flight.in_flight;
    }

    /// Reports packets sent since the last record. Their time is that of the last record, or at most an RTT ago if no
    /// packet was in flight.
    fn report_sent(&mut self, r: &Record, before: &KernelCounts, last: Time, now: Time) {
        let sent = growth(r.counts.sent, before.sent);
        let again = growth(r.counts.retransmitted, before.retransmitted).min(sent);
        let left = match self.flight_before {
            0 => last.max(earlier(now, self.rtt)),
            _ => last,
        };
        for i in 0..sent {
            self.controller.0.on_sent(&Sent {
                now: left,
                bytes: self.packet_bytes,
                outstanding: u64::from(self.flight_before + i + 1),
                retransmission: i < again,
                last_waiting: false,
            });
        }
    }

    fn outcome(&mut self, now: Time, sent: Time, lost: bool, marked: bool) {
        let seq = self.outcomes;
        let bytes = self.packet_bytes;
        self.outcomes += 1;
        let outcome = PacketOutcome { now, seq, sent, bytes, lost, marked, radio: false };
        self.controller.0.on_packet_outcome(&outcome);
    }

    fn event(&self, r: &Record, now: Time, cause: RecoveryCause) -> RecoveryEvent {
        RecoveryEvent {
            now,
            cause,
            // Without SACKed packets: new packets have already replaced them.
            flight: u64::from(r.flight.packets_out.saturating_sub(r.flight.sacked_out)),
            outstanding: u64::from(r.flight.in_flight),
            min_rtt: self.min_rtt,
            srtt: micros(r.rtt.srtt),
        }
    }

    fn on_ack(&mut self, r: &Record, before: &KernelCounts, now: Time) {
        if let Some(rtt) = r.rtt.newest {
            self.rtt = micros(rtt.max(1));
            self.min_rtt = self.min_rtt.min(self.rtt);
        }
        let rtt = self.rtt;
        self.min_rtt = self.min_rtt.min(rtt);
        let sent = earlier(now, rtt);
        let delivered = r.newly_delivered.min(MAX_PACKETS);
        self.delivered += u64::from(delivered);
        let marks = growth(r.counts.marked, before.marked).min(delivered);
        let lost = growth(r.counts.lost, before.lost);
        // In the order of sending.
        for _ in 0..lost {
            self.outcome(now, sent, true, false);
        }
        for i in 0..delivered {
            self.outcome(now, sent, false, i < marks);
        }
        let ack = self.ack(r, now, marks);
        let packets = u64::from(delivered);
        if packets == 0 {
            self.controller.0.on_ack(&ack.as_duplicate());
        }
        for i in 0..packets {
            let sent_since = ack.sent_since + packets - 1 - i;
            self.controller.0.on_ack(&Ack { sent_since, ..ack.of_report(i, packets) });
        }
        self.tell_events(r, before, lost, now, sent);
    }

    fn ack(&mut self, r: &Record, now: Time, marks: u32) -> Ack {
        let sample = (r.sample.delivered > 0).then(|| RateSample {
            delivered: u64::from(r.sample.delivered),
            interval: micros(r.sample.interval),
            prior_delivered: self.delivered
                - u64::from(growth(r.counts.delivered, r.sample.prior_delivered))
                    .min(self.delivered),
            total_delivered: self.delivered,
            app_limited: r.sample.app_limited,
        });
        // The packet now acknowledged was sent after the last round's end was acknowledged.
        let past = r.sample.prior_delivered.wrapping_sub(self.round_end) <= u32::MAX / 2;
        let round_start = r.sample.delivered > 0 && past;
        if round_start {
            self.round += 1;
            self.round_end = r.counts.delivered;
        }
        Ack {
            estimate: RttEstimate {
                srtt: micros(r.rtt.srtt),
                rttvar: micros(r.rtt.rttvar),
                min_rtt: self.min_rtt,
            },
            cumulative: CumulativeAck {
                rtt_unambiguous: r.rtt.newest.is_some(),
                ..CumulativeAck::of(1)
            },
            sent_since: u64::from(r.flight.in_flight),
            flight: u64::from(r.flight.packets_out),
            outstanding: u64::from(r.flight.in_flight),
            prior_outstanding: u64::from(r.flight.prior_in_flight),
            // A paced sender rarely fills its window.
            window_limited: r.cwnd_limited || (self.paced && !r.app_limited),
            in_recovery: self.in_recovery,
            round: self.round,
            round_start,
            marks,
            rate: sample,
            ..Ack::of_packet(now, self.rtt, self.min_rtt)
        }
    }

    fn tell_events(&mut self, r: &Record, before: &KernelCounts, lost: u32, now: Time, sent: Time) {
        let begins = r.counts.episodes != before.episodes;
        let repairs = matches!(r.state, CaState::Recovery | CaState::Cwr | CaState::Loss);
        let event = self.event(r, now, RecoveryCause::Loss);
        let controller = &mut self.controller.0;
        if r.counts.undos != before.undos && self.episode_losses > 0 {
            let packets = self.episode_losses;
            self.episode_losses = 0;
            if std::mem::take(&mut self.in_recovery) {
                controller.on_congestion_event(&CongestionEvent::RecoveryEnd(event));
            }
            let spurious = SpuriousLosses { now, packets, undo: true };
            controller.on_congestion_event(&CongestionEvent::SpuriousLosses(spurious));
        }
        if lost > 0 {
            controller.on_congestion_event(&CongestionEvent::Losses(Loss {
                now,
                segments: u64::from(lost),
                sent,
                transmissions: 1,
                found_by: LossFoundBy::Sack,
                new_episode: begins,
                radio: 0,
            }));
        }
        if self.in_recovery && (begins || !repairs) {
            self.in_recovery = false;
            controller.on_congestion_event(&CongestionEvent::RecoveryEnd(event));
        }
        if begins && r.state == CaState::Cwr {
            let mark = RecoveryEvent { cause: RecoveryCause::EcnCe, ..event };
            controller.on_congestion_event(&CongestionEvent::RecoveryStart(mark));
            controller.on_congestion_event(&CongestionEvent::RecoveryEnd(mark));
        } else if begins {
            self.episode_losses = 0;
            self.in_recovery = r.state == CaState::Recovery;
            controller.on_congestion_event(&CongestionEvent::RecoveryStart(event));
            if !self.in_recovery {
                // Begun and over within one acknowledgement.
                controller.on_congestion_event(&CongestionEvent::RecoveryEnd(event));
            }
        }
        self.episode_losses += u64::from(lost);
    }

    fn on_timeout(&mut self, r: &Record, before: &KernelCounts, now: Time) {
        let lost = growth(r.counts.lost, before.lost);
        let sent = earlier(now, micros(r.rtt.srtt));
        for _ in 0..lost {
            self.outcome(now, sent, true, false);
        }
        let controller = &mut self.controller.0;
        controller.on_congestion_event(&CongestionEvent::Losses(Loss {
            now,
            segments: u64::from(lost.max(1)),
            sent,
            transmissions: u32::from(r.retransmits) + 1,
            found_by: LossFoundBy::Timeout,
            new_episode: true,
            radio: 0,
        }));
        controller.on_congestion_event(&CongestionEvent::SlowStartRestart(SlowStartRestart {
            now,
            flight: u64::from(r.flight.packets_out),
            timeout: true,
            backoffs: u32::from(r.retransmits) + 1,
            min_rtt: self.min_rtt.min(micros(r.rtt.srtt)),
            srtt: micros(r.rtt.srtt),
        }));
        self.in_recovery = false;
        self.episode_losses = u64::from(lost.max(1));
    }
}
