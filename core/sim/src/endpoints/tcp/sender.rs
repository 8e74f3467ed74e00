//! The sending side: handshake, sending, acknowledgements, timers.
//!
//! Call [`handle`](TcpSender::handle) once, then [`poll`](TcpSender::poll) until it waits. An acknowledgement updates, in
//! this order: the scoreboard, the RTT, losses, the controller, the timer. After that, poll sends retransmissions first
//! and new data after them.

mod acks;
mod bursts;
mod delivery;
mod pace;
mod timeouts;
mod timer;

use super::ecn::SenderEcn;
use super::prr::Reduction;
use super::recovery::Recovery;
use super::scoreboard::{Scoreboard, SentSegment};
use crate::endpoints::interface::{SenderInput, SenderOutput, SendingLimit};
use crate::protocol::{MAX_WINDOW, TcpConfig};
use narrows_base::{Duration, Machine, Packet, Time, random};
use narrows_congestion::{CongestionEvent, Controller, Loss, LossFoundBy, Sent, SlowStartRestart};
use narrows_recovery::packet_sender::Counters;
use narrows_recovery::rtt::RttEstimator;

use bursts::Bursts;
use delivery::DeliveryRate;
use timer::{RetransmissionTimer, TimerPurpose};

/// Sends segments under a controller and a loss recovery.
pub struct TcpSender {
    controller: Box<dyn Controller>,
    scoreboard: Scoreboard,
    recovery: Recovery,
    rtt: RttEstimator,
    timings: Timings,
    counters: Counters,
    format: SegmentFormat,
    limits: BufferLimits,
    phase: TcpPhase,
    /// Segments that limited transmit has sent since the last advance.
    limited: u64,
    /// Bytes that the application has written and that were not sent yet.
    available: u64,
    /// The next segment to send; below `scoreboard.max` after a restart.
    next: u64,
    /// A segment to send at once, regardless of the window.
    forced: Option<u64>,
    timer: RetransmissionTimer,
    /// PRR's state in a fast recovery, with recovery `rack`.
    reduction: Option<Reduction>,
    pacing: Pacing,
    rounds: SenderRounds,
    delivery: DeliveryRate,
    ecn: SenderEcn,
}

/// The constants of a sender's packets.
struct SegmentFormat {
    flow: u32,
    payload: u32,
    header: u32,
    syn_bytes: u32,
    timestamps: bool,
    receiver_stamps: bool,
    /// Segments per acknowledgement at the receiver.
    ack_every: u64,
    random_key: u64,
}

/// The buffer that limits segments in flight, and the limit that the sender waits for.
struct BufferLimits {
    /// Limit on segments in flight, and the buffer that sets it.
    buffer: (u64, SendingLimit),
    reached: SendingLimit,
    is_window_full: bool,
}

/// The state of a connection.
#[derive(PartialEq, Eq)]
enum TcpPhase {
    Closed,
    Opening,
    Established,
}

/// RTTs besides the estimator's.
struct Timings {
    /// The handshake's RTT: with RACK it counts towards the path's smallest.
    opening: Duration,
    /// Without timestamps: the segment being timed and its send time (Karn: never a copy).
    timed: Option<(u64, Time)>,
}

/// When packets may leave.
struct Pacing {
    /// When the pacer permits the next packet.
    free: Time,
    bursts: Option<Bursts>,
}

/// Round trips, counted in packets.
#[derive(Default)]
struct SenderRounds {
    count: u64,
    /// Packets sent when the round began. The first echo of a later one ends it.
    end: u64,
}

impl SenderRounds {
    /// An ACK echoes a packet behind which `sent_since` of `total` were sent. Returns whether it begins a round.
    #[inline]
    fn on_ack(&mut self, total: u64, sent_since: u64) -> bool {
        let is_start = total.saturating_sub(sent_since) > self.end;
        if is_start {
            self.count += 1;
            self.end = total;
        }
        is_start
    }
}

impl TcpSender {
    /// A sender for flow number `flow`; `random_key` is the flow's key for losses.
    pub fn new(
        config: &TcpConfig,
        controller: Box<dyn Controller>,
        flow: u32,
        random_key: u64,
    ) -> TcpSender {
        TcpSender {
            controller,
            scoreboard: Scoreboard::new(),
            recovery: Recovery::new(config),
            rtt: RttEstimator::new(&config.rto),
            timings: Timings { opening: Duration::MAX, timed: None },
            counters: Counters::default(),
            format: SegmentFormat {
                flow,
                payload: config.payload(),
                header: config.header_bytes,
                syn_bytes: config.ack_bytes,
                timestamps: config.timestamps,
                receiver_stamps: config.receiver_stamps,
                ack_every: u64::from(config.ack_every),
                random_key,
            },
            limits: BufferLimits {
                buffer: if config.send_buffer < config.receive_window {
                    (config.send_buffer.min(MAX_WINDOW), SendingLimit::SendBuffer)
                } else {
                    (config.receive_window.min(MAX_WINDOW), SendingLimit::ReceiveWindow)
                },
                reached: SendingLimit::Application,
                is_window_full: false,
            },
            phase: TcpPhase::Closed,
            limited: 0,
            available: 0,
            next: 0,
            forced: None,
            timer: RetransmissionTimer::new(&config.rto),
            reduction: None,
            pacing: Pacing {
                free: Time::ZERO,
                bursts: config.bursts.then(|| Bursts::new(config.payload())),
            },
            rounds: SenderRounds::default(),
            delivery: DeliveryRate::default(),
            ecn: SenderEcn::new(config.ecn),
        }
    }

    /// The controller, read-only.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }
    /// Mutable access to the controller.
    pub fn controller_mut(&mut self) -> &mut dyn Controller {
        &mut *self.controller
    }
    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        // Every retransmission is of a segment that was declared lost.
        Counters { lost: self.counters.retransmissions, ..self.counters }
    }
    /// The limit that it waits for.
    #[inline]
    pub fn limit(&self) -> SendingLimit {
        self.limits.reached
    }
    /// Segments sent and not cumulatively acknowledged (FlightSize).
    #[inline]
    pub fn flight(&self) -> u64 {
        self.next - self.scoreboard.una
    }
    /// Segments cumulatively acknowledged, the SYN included.
    pub fn acknowledged(&self) -> u64 {
        self.scoreboard.una
    }
    /// Application bytes and bytes on the wire of a full packet.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        (self.format.payload, self.format.payload + self.format.header)
    }
    /// Smoothed round-trip time.
    pub fn srtt(&self) -> Duration {
        self.rtt.srtt()
    }
    /// Reads the outstanding segments' records, and returns a value that depends on all of them: see `Link::fetch` of
    /// the crate `link`.
    pub fn fetch(&self) -> u64 {
        self.scoreboard.fetch()
    }
    /// Application bytes that wait to be sent for the first time; `u64::MAX` if the data have no end.
    pub fn unsent(&self) -> u64 {
        self.available
    }
    /// Whether all written data was sent and acknowledged.
    pub fn is_idle(&self) -> bool {
        self.available == 0
            && self.scoreboard.una == self.scoreboard.max
            && self.phase == TcpPhase::Established
    }
    /// When the retransmission timer would expire.
    pub fn rto_due(&self) -> Time {
        self.timer.due
    }

    /// The smallest RTT for loss recovery and rate samples.
    #[inline]
    fn path_min_rtt(&self) -> Duration {
        self.rtt.min().min(self.timings.opening)
    }

    #[inline]
    fn outstanding(&self) -> u64 {
        self.recovery.outstanding(&self.scoreboard, self.next)
    }

    fn restart(&mut self, now: Time, flight: u64, timeout: bool) {
        if !self.recovery.by_time() {
            self.next = self.scoreboard.una;
        }
        self.reduction = None;
        self.timer.probe = None;
        self.forced = None;
        self.timings.timed = None;
        self.pacing.free = now;
        self.ecn.reduced(self.scoreboard.max);
        self.controller.on_congestion_event(&CongestionEvent::SlowStartRestart(SlowStartRestart {
            now,
            flight,
            timeout,
            backoffs: if timeout { self.timer.backoffs } else { 1 },
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
        }));
        self.arm_timer(now);
    }

    fn on_rto(&mut self, now: Time) {
        self.counters.timeouts += 1;
        self.timer.backoffs = self.timer.backoffs.saturating_add(1);
        if self.phase != TcpPhase::Established {
            self.forced = Some(0);
            self.arm_timer(now);
            return;
        }
        let flight = self.scoreboard.max - self.scoreboard.una;
        let oldest = self.scoreboard.get(self.scoreboard.una);
        let loss = Loss {
            now,
            segments: flight.saturating_sub(self.recovery.sacked()),
            sent: oldest.sent,
            transmissions: u32::from(oldest.transmissions),
            found_by: LossFoundBy::Timeout,
            new_episode: true,
            radio: 0,
        };
        self.recovery.restart(&mut self.scoreboard);
        self.controller.on_congestion_event(&CongestionEvent::Losses(loss));
        self.restart(now, flight, true);
    }

    /// Sends segment `seq`, which is on the scoreboard or is the next new one.
    #[inline]
    fn transmit(&mut self, now: Time, seq: u64) -> Packet {
        let copy = seq < self.scoreboard.max;
        if self.scoreboard.una == self.scoreboard.max || self.outstanding() == 0 {
            self.delivery.begin_flight(now);
        }
        if !copy {
            let bytes =
                if seq == 0 { 0 } else { self.available.min(u64::from(self.format.payload)) };
            if self.available != u64::MAX {
                self.available -= bytes;
            }
            self.scoreboard.push(SentSegment { bytes: bytes as u16, ..SentSegment::default() });
            let beyond = self.flight() as f64 > self.controller.send_limits().cwnd;
            self.limited += u64::from(self.recovery.suspects_loss() && beyond);
            if !self.format.timestamps && self.timings.timed.is_none() {
                self.timings.timed = Some((seq, now));
            }
        }
        let segment = self.scoreboard.get_mut(seq);
        segment.sent = now;
        self.delivery.stamp(segment);
        segment.transmissions = segment.transmissions.saturating_add(1);
        let bytes = u32::from(segment.bytes);
        self.recovery.on_sent(seq, segment);
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent();
        }
        let number = self.counters.sent;
        self.counters.sent += 1;
        self.counters.retransmissions += u64::from(copy);
        if self.timer.due.is_never() {
            self.arm_timer(now);
        }
        if copy {
            // Linux restarts the timeout at the oldest segment's retransmission.
            let anew =
                seq == self.scoreboard.una && self.timer.purpose == TimerPurpose::Retransmission;
            if anew && self.recovery.by_time() && seq > 0 {
                self.arm_timer(now);
            }
        } else {
            self.probe_after_new_data(now);
        }
        let size = if seq == 0 { self.format.syn_bytes } else { bytes + self.format.header };
        let mut flags = if copy { Packet::RETRANSMISSION } else { 0 };
        if seq == 0 {
            flags |= Packet::SYN; // The controller gets no events of the handshake.
        } else {
            if !copy {
                flags |= self.ecn.data_flags();
            }
            self.controller.on_sent(&Sent {
                now,
                bytes: size,
                outstanding: self.recovery.outstanding(&self.scoreboard, self.next),
                retransmission: copy,
                last_waiting: self.available == 0,
            });
        }
        Packet {
            seq,
            stamp: now,
            number: number as u32,
            random_key: random::mix(self.format.random_key.wrapping_add(number)) as u32,
            sack: [(bytes, 0), (0, 0), (0, 0)],
            flow: self.format.flow,
            size: size as u16,
            hop: 0,
            flags,
        }
    }

    /// The segment that may be sent now, if any: retransmissions first, then segments after a restart, then new data.
    #[inline]
    fn choose(&mut self) -> Option<u64> {
        if self.recovery.repairs()
            && let Some(seq) = self.recovery.next_hole(&self.scoreboard)
        {
            self.recovery.on_retransmitted(seq);
            return Some(seq);
        }
        while self.next < self.scoreboard.max {
            let seq = self.next;
            self.next += 1;
            if !self.scoreboard.get(seq).sacked {
                return Some(seq);
            }
        }
        if self.available > 0 && self.scoreboard.max - self.scoreboard.una < self.limits.buffer.0 {
            self.next += 1;
            return Some(self.next - 1);
        }
        if self.recovery.repairs() {
            return self.recovery.next_guess(&self.scoreboard);
        }
        None
    }

    fn wait(&self, pace: Time) -> SenderOutput {
        SenderOutput::Wait(self.timer.due.min(pace).min(self.controller.next_tick()))
    }
}

impl Machine for TcpSender {
    type Input = SenderInput;
    type Output = SenderOutput;

    #[inline]
    fn handle(&mut self, now: Time, input: SenderInput) {
        match input {
            SenderInput::Packet(p) => self.on_ack(now, &p),
            SenderInput::Open => {
                if self.phase == TcpPhase::Closed {
                    self.phase = TcpPhase::Opening;
                    self.forced = Some(0);
                }
            }
            SenderInput::Data(bytes) => self.available = self.available.saturating_add(bytes),
            SenderInput::Frame(part) => {
                self.available = self.available.saturating_add(u64::from(part.bytes));
            }
            SenderInput::Stop => self.available = 0,
            SenderInput::Timeout => {
                if now >= self.timer.due {
                    self.on_timer(now);
                }
                if now >= self.controller.next_tick() {
                    self.controller.on_tick(now);
                }
            }
        }
    }

    #[inline]
    fn poll(&mut self, now: Time) -> SenderOutput {
        if let Some(seq) = self.forced.take()
            && seq >= self.scoreboard.una
        {
            if self.timings.timed.is_some_and(|(timed, _)| timed == seq) {
                self.timings.timed = None; // Karn: a copy's RTT is ambiguous.
            }
            self.recovery.on_retransmitted(seq);
            self.next = self.next.max(seq + 1);
            return SenderOutput::Send(self.transmit(now, seq));
        }
        if self.phase != TcpPhase::Established {
            self.limits.reached = SendingLimit::Opening;
            return SenderOutput::Wait(self.timer.due);
        }
        if now < self.ecn.pause {
            self.limits.reached = SendingLimit::Window;
            return self.wait(self.ecn.pause);
        }
        let send_limits = self.controller.send_limits();
        let in_burst = self.pacing.bursts.as_ref().is_some_and(Bursts::under_way);
        if send_limits.pacing_rate.is_some() && now < self.pacing.free && !in_burst {
            self.limits.reached = SendingLimit::Pacing;
            return self.wait(self.pacing.free);
        }
        // A float's cast saturates: an infinite window is i64::MAX, so the receive window is the limit.
        let cwnd = (send_limits.cwnd as i64).max(0);
        let cwnd = self.reduction.as_ref().map_or(cwnd, |r| r.window() as i64);
        let window = cwnd.saturating_add(self.recovery.inflation());
        let outstanding = self.outstanding();
        if outstanding as i64 >= window {
            self.limits.is_window_full = true;
            self.limits.reached = SendingLimit::Window;
            self.end_burst();
            return self.wait(Time::NEVER);
        }
        if self.defers(now, (window - outstanding as i64) as u64) {
            self.limits.is_window_full = true;
            self.limits.reached = SendingLimit::Window;
            return self.wait(Time::NEVER);
        }
        match self.choose() {
            Some(seq) => {
                let packet = self.transmit(now, seq);
                if let Some(bursts) = &mut self.pacing.bursts {
                    bursts.on_sent();
                }
                if let Some(rate) = send_limits.pacing_rate {
                    let bits = f64::from(packet.size) * 8.0;
                    let gap = Duration::from_secs_f64(bits / rate.as_bps().max(1) as f64);
                    // Time must advance at any rate.
                    let gap = gap.max(Duration::from_nanos(1));
                    self.pacing.free = match self.pacing.bursts {
                        None => self.pacing.free.max(now) + gap,
                        Some(_) if self.is_unpaced() => now,
                        Some(_) => self.after_paced(now, gap),
                    };
                }
                SenderOutput::Send(packet)
            }
            None => {
                self.limits.is_window_full = false;
                self.end_burst();
                self.limits.reached = if self.available == 0 {
                    SendingLimit::Application
                } else {
                    self.limits.buffer.1
                };
                // With a full receive window, the path limits the rate, not the application.
                if self.available == 0 {
                    self.delivery.on_app_limited(outstanding);
                }
                self.wait(Time::NEVER)
            }
        }
    }
}

impl std::fmt::Debug for TcpSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Sender(flow {}, {}..{}, {:?})",
            self.format.flow,
            self.scoreboard.una,
            self.scoreboard.max,
            self.recovery.phase()
        )
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
