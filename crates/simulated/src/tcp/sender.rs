//! The sending side: handshake, sending, acknowledgements, timers.
//!
//! Call [`handle`](Sender::handle) once, then [`poll`](Sender::poll) until it waits. An acknowledgement updates, in
//! this order: the scoreboard, the RTT, losses, the controller, the timer. After that, poll sends retransmissions first
//! and new data after them.

mod acks;
mod bursts;
mod timer;

use super::ecn::SenderEcn;
use super::prr::Reduction;
use super::recovery::Recovery;
use super::scoreboard::{Scoreboard, Segment};
use crate::interface::{Input, Limit, Output};
use narrows_base::{Duration, Machine, Packet, Time, random};
use narrows_congestion::{CongestionEvent, Controller, Loss, LossFoundBy, Sent, SlowStartRestart};
use narrows_transport::packet_sender::Counters;
use narrows_transport::rtt::{RtoMethod, RttEstimator};
use narrows_transport::{MAX_WINDOW, TcpConfig};

use bursts::Bursts;
use timer::{Probe, Timer};

/// A TCP sender.
pub struct Sender {
    controller: Box<dyn Controller>,
    scoreboard: Scoreboard,
    recovery: Recovery,
    rtt: RttEstimator,
    /// The handshake's RTT: with RACK it counts towards the path's smallest.
    opening_rtt: Duration,
    counters: Counters,
    flow: u32,
    payload: u32,
    header: u32,
    syn_bytes: u32,
    timestamps: bool,
    receiver_stamps: bool,
    /// Limit on segments in flight, and the buffer that sets it.
    buffer: (u64, Limit),
    limit: Limit,
    /// Segments per acknowledgement at the receiver.
    ack_every: u64,
    /// Segments that limited transmit has sent since the last advance.
    limited: u64,
    random_key: u64,
    open: bool,
    established: bool,
    /// Bytes that the application has written and that were not sent yet.
    available: u64,
    /// The next segment to send; below `scoreboard.max` after a restart.
    next: u64,
    /// A segment to send at once, regardless of the window.
    forced: Option<u64>,
    window_limited: bool,
    /// When the timer is due, its purpose, and the tick of its clock.
    rto_due: Time,
    timer: Timer,
    tick: Duration,
    probe: Option<Probe>,
    /// PRR's state in a fast recovery, with recovery `rack`.
    reduction: Option<Reduction>,
    bursts: Option<Bursts>,
    backoffs: u32,
    /// Without timestamps: the segment being timed and its send time (Karn: never a copy).
    timed: Option<(u64, Time)>,
    /// When the pacer permits the next packet.
    pace_free: Time,
    round: u64,
    /// Packets sent when the round began. The first echo of a later one ends it.
    round_end: u64,
    /// Delivery rate (draft-cheng-iccrg-delivery-rate-estimation).
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    app_limited_until: u64,
    /// Duplicates already counted as delivered, without SACK.
    dup_credit: u64,
    ecn: SenderEcn,
}

impl Sender {
    /// A sender for flow number `flow`; `random_key` is the flow's key for losses.
    pub fn new(
        config: &TcpConfig,
        controller: Box<dyn Controller>,
        flow: u32,
        random_key: u64,
    ) -> Sender {
        Sender {
            controller,
            scoreboard: Scoreboard::new(),
            recovery: Recovery::new(config),
            rtt: RttEstimator::new(&config.rto),
            opening_rtt: Duration::MAX,
            counters: Counters::default(),
            flow,
            payload: config.payload(),
            header: config.header_bytes,
            syn_bytes: config.ack_bytes,
            timestamps: config.timestamps,
            receiver_stamps: config.receiver_stamps,
            buffer: if config.send_buffer < config.receive_window {
                (config.send_buffer.min(MAX_WINDOW), Limit::SendBuffer)
            } else {
                (config.receive_window.min(MAX_WINDOW), Limit::ReceiveWindow)
            },
            limit: Limit::Application,
            ack_every: u64::from(config.ack_every),
            limited: 0,
            random_key,
            open: false,
            established: false,
            available: 0,
            next: 0,
            forced: None,
            window_limited: false,
            rto_due: Time::NEVER,
            timer: Timer::Retransmission,
            tick: if config.rto.method == RtoMethod::Linux {
                config.rto.granularity
            } else {
                Duration::ZERO
            },
            probe: None,
            reduction: None,
            bursts: config.bursts.then(|| Bursts::new(config.payload())),
            backoffs: 0,
            timed: None,
            pace_free: Time::ZERO,
            round: 0,
            round_end: 0,
            delivered: 0,
            delivered_time: Time::ZERO,
            first_sent: Time::ZERO,
            app_limited_until: 0,
            dup_credit: 0,
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
    pub fn limit(&self) -> Limit {
        self.limit
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
        (self.payload, self.payload + self.header)
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
        self.available == 0 && self.scoreboard.una == self.scoreboard.max && self.established
    }
    /// When the retransmission timer would expire.
    pub fn rto_due(&self) -> Time {
        self.rto_due
    }

    /// The smallest RTT for loss recovery and rate samples.
    #[inline]
    fn path_min_rtt(&self) -> Duration {
        self.rtt.min().min(self.opening_rtt)
    }

    #[inline]
    fn outstanding(&self) -> u64 {
        self.recovery.outstanding(&self.scoreboard, self.next)
    }

    fn restart(&mut self, now: Time, flight: u64, timeout: bool) {
        if !self.recovery.by_time() {
            self.next = self.scoreboard.una;
        }
        (self.reduction, self.probe) = (None, None);
        self.forced = None;
        self.timed = None;
        self.pace_free = now;
        self.ecn.reduced(self.scoreboard.max);
        self.controller.on_congestion_event(&CongestionEvent::SlowStartRestart(SlowStartRestart {
            now,
            flight,
            timeout,
            backoffs: if timeout { self.backoffs } else { 1 },
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
        }));
        self.arm_timer(now);
    }

    fn on_rto(&mut self, now: Time) {
        self.counters.timeouts += 1;
        self.backoffs = self.backoffs.saturating_add(1);
        if !self.established {
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
            // A flight begins, and with it a delivery-rate sample.
            self.first_sent = now;
            self.delivered_time = now;
        }
        if !copy {
            let bytes = if seq == 0 { 0 } else { self.available.min(u64::from(self.payload)) };
            if self.available != u64::MAX {
                self.available -= bytes;
            }
            self.scoreboard.push(Segment { bytes: bytes as u16, ..Segment::default() });
            let beyond = self.flight() as f64 > self.controller.send_limits().cwnd;
            self.limited += u64::from(self.recovery.suspects_loss() && beyond);
            if !self.timestamps && self.timed.is_none() {
                self.timed = Some((seq, now));
            }
        }
        let app_limited = self.delivered < self.app_limited_until;
        let (delivered, delivered_time, first_sent) =
            (self.delivered, self.delivered_time, self.first_sent);
        let segment = self.scoreboard.get_mut(seq);
        segment.sent = now;
        segment.delivered = delivered;
        segment.delivered_time = delivered_time;
        segment.first_sent = first_sent;
        segment.app_limited = app_limited;
        segment.transmissions = segment.transmissions.saturating_add(1);
        let bytes = u32::from(segment.bytes);
        self.recovery.on_sent(seq, segment);
        if let Some(reduction) = &mut self.reduction {
            reduction.on_sent();
        }
        let number = self.counters.sent;
        self.counters.sent += 1;
        self.counters.retransmissions += u64::from(copy);
        if self.rto_due.is_never() {
            self.arm_timer(now);
        }
        if copy {
            // Linux restarts the timeout at the oldest segment's retransmission.
            let anew = seq == self.scoreboard.una && self.timer == Timer::Retransmission;
            if anew && self.recovery.by_time() && seq > 0 {
                self.arm_timer(now);
            }
        } else {
            self.probe_after_new_data(now);
        }
        let size = if seq == 0 { self.syn_bytes } else { bytes + self.header };
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
            random_key: random::mix(self.random_key.wrapping_add(number)) as u32,
            sack: [(bytes, 0), (0, 0), (0, 0)],
            flow: self.flow,
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
        if self.available > 0 && self.scoreboard.max - self.scoreboard.una < self.buffer.0 {
            self.next += 1;
            return Some(self.next - 1);
        }
        if self.recovery.repairs() {
            return self.recovery.next_guess(&self.scoreboard);
        }
        None
    }

    fn wait(&self, pace: Time) -> Output {
        Output::Wait(self.rto_due.min(pace).min(self.controller.next_tick()))
    }
}

impl Machine for Sender {
    type Input = Input;
    type Output = Output;

    #[inline]
    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Packet(p) => self.on_ack(now, &p),
            Input::Open => {
                if !self.open {
                    self.open = true;
                    self.forced = Some(0);
                }
            }
            Input::Data(bytes) => self.available = self.available.saturating_add(bytes),
            Input::Frame(part) => {
                self.available = self.available.saturating_add(u64::from(part.bytes));
            }
            Input::Stop => self.available = 0,
            Input::Timeout => {
                if now >= self.rto_due {
                    self.on_timer(now);
                }
                if now >= self.controller.next_tick() {
                    self.controller.on_tick(now);
                }
            }
        }
    }

    #[inline]
    fn poll(&mut self, now: Time) -> Output {
        if let Some(seq) = self.forced.take()
            && seq >= self.scoreboard.una
        {
            if self.timed.is_some_and(|(timed, _)| timed == seq) {
                self.timed = None; // Karn: a copy's RTT is ambiguous.
            }
            self.recovery.on_retransmitted(seq);
            self.next = self.next.max(seq + 1);
            return Output::Send(self.transmit(now, seq));
        }
        if !self.established {
            self.limit = Limit::Opening;
            return Output::Wait(self.rto_due);
        }
        if now < self.ecn.pause {
            self.limit = Limit::Window;
            return self.wait(self.ecn.pause);
        }
        let send_limits = self.controller.send_limits();
        let in_burst = self.bursts.as_ref().is_some_and(Bursts::under_way);
        if send_limits.pacing_rate.is_some() && now < self.pace_free && !in_burst {
            self.limit = Limit::Pacing;
            return self.wait(self.pace_free);
        }
        // A float's cast saturates: an infinite window is i64::MAX, so the receive window is the limit.
        let cwnd = (send_limits.cwnd as i64).max(0);
        let cwnd = self.reduction.as_ref().map_or(cwnd, |r| r.window() as i64);
        let window = cwnd.saturating_add(self.recovery.inflation());
        let outstanding = self.outstanding();
        if outstanding as i64 >= window {
            (self.window_limited, self.limit) = (true, Limit::Window);
            self.end_burst();
            return self.wait(Time::NEVER);
        }
        if self.defers(now, (window - outstanding as i64) as u64) {
            (self.window_limited, self.limit) = (true, Limit::Window);
            return self.wait(Time::NEVER);
        }
        match self.choose() {
            Some(seq) => {
                let packet = self.transmit(now, seq);
                if let Some(bursts) = &mut self.bursts {
                    bursts.on_sent();
                }
                if let Some(rate) = send_limits.pacing_rate {
                    let bits = f64::from(packet.size) * 8.0;
                    let gap = Duration::from_secs_f64(bits / rate.as_bps().max(1) as f64);
                    // Time must advance at any rate.
                    let gap = gap.max(Duration::from_nanos(1));
                    self.pace_free = match self.bursts {
                        None => self.pace_free.max(now) + gap,
                        Some(_) if self.is_unpaced() => now,
                        Some(_) => self.after_paced(now, gap),
                    };
                }
                Output::Send(packet)
            }
            None => {
                self.window_limited = false;
                self.end_burst();
                self.limit = if self.available == 0 { Limit::Application } else { self.buffer.1 };
                // With a full receive window, the path limits the rate, not the application.
                if self.available == 0 {
                    self.app_limited_until = self.delivered + outstanding.max(1);
                }
                self.wait(Time::NEVER)
            }
        }
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Sender(flow {}, {}..{}, {:?})",
            self.flow,
            self.scoreboard.una,
            self.scoreboard.max,
            self.recovery.phase()
        )
    }
}

#[cfg(test)]
#[path = "sender_tests.rs"]
mod tests;
