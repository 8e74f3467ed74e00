//! The sending side, the carrier: pacing, windows, and what became of each packet. What differs
//! where it carries a stream is in `stream_mode`, where it carries media in `media_mode`.

mod media_mode;
mod stream_mode;

use super::config::DatagramConfig;
use super::header::{self, Data};
use super::stream::Load;
use super::waiting::Waiting;
use crate::endpoint::{Counters, Input, Output};
use crate::tcp::rtt::RttEstimator;
use narrows_base::{Duration, Machine, Packet, Time, luck};
use narrows_control::{Controller, Sent};
use std::collections::VecDeque;
use stream_mode::StreamMode;

/// Packets of unknown fate at most; beyond, the oldest count as lost, so that memory is bounded
/// when nothing comes back.
const MOST_PENDING: usize = 1 << 16;

#[derive(Clone, Copy, Debug)]
struct Pending {
    sent: Time,
    bytes: u16,
    arrived: bool,
    marked: bool,
}

/// A datagram sender.
pub struct Sender {
    controller: Box<dyn Controller>,
    rtt: RttEstimator,
    counters: Counters,
    flow: u32,
    payload: u32,
    header: u32,
    credit: Duration,
    expiry: Duration,
    ect: u8,
    luck: u64,
    open: bool,
    waiting: Waiting,
    /// The cargo is a stream; what it adds.
    stream: Option<Box<StreamMode>>,
    /// Next number.
    next: u64,
    /// Lowest number whose fate is not known; `pending` begins there.
    unresolved: u64,
    pending: VecDeque<Pending>,
    /// One above the highest number that a report named, or where a restart put it.
    acked: u64,
    /// One above the highest number that a report named.
    reported: u64,
    arrived: u64,
    marks: u32,
    window_limited: bool,
    /// The last packet's due time and bits: the next is due when they are paced out.
    paced: Option<(Time, f64)>,
    own_timer: bool,
    rto_due: Time,
    backoffs: u32,
    round: u64,
    round_end: u64,
    /// When the packet that began the last loss episode left.
    episode: Option<Time>,
}

impl Sender {
    /// A sender for flow number `flow`; `luck` is the flow's key for losses.
    pub fn new(
        config: &DatagramConfig,
        controller: Box<dyn Controller>,
        flow: u32,
        luck: u64,
    ) -> Sender {
        Sender {
            own_timer: controller.keeps_own_timer(),
            controller,
            rtt: RttEstimator::new(&config.timer),
            counters: Counters::default(),
            flow,
            payload: config.payload(),
            header: config.header_bytes,
            credit: config.credit,
            expiry: config.expiry,
            ect: if config.ecn { Packet::ECT } else { 0 },
            luck,
            open: false,
            waiting: Waiting::default(),
            stream: config.stream.as_ref().map(|c| Box::new(StreamMode::new(c))),
            next: 0,
            unresolved: 0,
            pending: VecDeque::new(),
            acked: 0,
            reported: 0,
            arrived: 0,
            marks: 0,
            window_limited: false,
            paced: None,
            rto_due: Time::NEVER,
            backoffs: 0,
            round: 0,
            round_end: 0,
            episode: None,
        }
    }

    /// The controller, to be watched.
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }
    /// Counts since the start.
    pub fn counters(&self) -> Counters {
        Counters { expired: self.waiting.expired, ..self.counters }
    }
    /// Packets sent above the highest number that a report named; with a stream, packets sent
    /// that neither arrived nor count as lost (RFC 9002 bytes_in_flight).
    #[inline]
    pub fn flight(&self) -> u64 {
        match &self.stream {
            None => self.next - self.acked,
            Some(s) => s.in_flight,
        }
    }
    /// Packets known to have arrived.
    pub fn acknowledged(&self) -> u64 {
        self.arrived
    }
    /// Application bytes and bytes on the wire of a full packet.
    pub(crate) fn sizes(&self) -> (u32, u32) {
        (self.payload, self.payload + self.header)
    }
    /// Smoothed round-trip time; zero before the first sample.
    pub fn srtt(&self) -> Duration {
        self.rtt.srtt()
    }

    fn transmit(&mut self, now: Time, load: Load) -> Packet {
        let seq = self.next;
        self.next += 1;
        let bytes = (load.length + self.header).min(65_535) as u16;
        self.pending.push_back(Pending { sent: now, bytes, arrived: false, marked: false });
        let last_waiting = if self.stream.is_some() {
            self.stream_sent(now, load)
        } else {
            if self.pending.len() > MOST_PENDING {
                self.resolve_below(now, self.unresolved + 1);
            }
            if self.rto_due.is_never() && !self.own_timer {
                self.arm_timer(now);
            }
            self.waiting.is_empty()
        };
        self.counters.sent += 1;
        self.controller.on_sent(&Sent {
            now,
            bytes: u32::from(bytes),
            outstanding: self.flight(),
            retransmission: load.again,
            last_waiting,
        });
        let mut packet = Packet {
            seq,
            stamp: now,
            number: 0,
            luck: luck::mix(self.luck.wrapping_add(seq)) as u32,
            sack: [(0, 0); 3],
            flow: self.flow,
            size: bytes,
            hop: 0,
            flags: self.ect | if load.again { Packet::RETRANSMISSION } else { 0 },
        };
        let data = Data {
            payload: load.length as u16,
            // No more than `MOST_PENDING` are unresolved.
            unresolved: (seq - self.unresolved) as u16,
            offset: load.offset,
            advice: self.controller.advice(),
        };
        header::write_data(&mut packet, &data);
        packet
    }

    fn wait(&self, now: Time, pace: Time) -> Output {
        // A tick that has come is handed over at the next input; never at this very moment again.
        let tick = self.controller.next_tick().max(now + Duration::from_nanos(1));
        Output::Wait(self.rto_due.min(pace).min(tick))
    }
}

impl Machine for Sender {
    type Input = Input;
    type Output = Output;

    fn handle(&mut self, now: Time, input: Input) {
        match input {
            Input::Packet(p) if self.stream.is_some() => self.on_stream_report(now, &p),
            Input::Packet(p) => self.on_report(now, &p),
            Input::Open => self.open = true,
            Input::Data(bytes) => match &mut self.stream {
                None => self.waiting.push(now, bytes),
                Some(s) => s.cargo.push(bytes),
            },
            Input::Stop => match &mut self.stream {
                None => self.waiting.clear(),
                Some(s) => s.cargo.stop(),
            },
            Input::Due => {
                if now >= self.rto_due {
                    if self.stream.is_some() {
                        self.on_stream_timer(now);
                    } else {
                        self.on_timeout(now);
                    }
                }
                if self.open && now >= self.controller.next_tick() {
                    self.controller.on_tick(now);
                }
            }
        }
    }

    fn poll(&mut self, now: Time) -> Output {
        if !self.open {
            return Output::Wait(Time::NEVER);
        }
        let forced = self.stream.as_ref().is_some_and(|s| s.force);
        let allowance = self.controller.allowance();
        let mut due = now;
        if let (Some(rate), Some((last, bits))) = (allowance.rate, self.paced) {
            // At the rate of now, not of when the last packet left: a raised rate counts at once.
            due = last + Duration::from_secs_f64(bits / rate.as_bps().max(1) as f64);
            if due > now && !forced {
                return self.wait(now, due);
            }
        }
        // A float's cast saturates: an infinite window is u64::MAX.
        if self.flight() >= allowance.window as u64 && !forced {
            self.window_limited = true;
            return self.wait(now, Time::NEVER);
        }
        let load = match &mut self.stream {
            Some(s) => s.take(self.payload),
            None => {
                self.waiting.expire(now, self.expiry);
                let some = !self.waiting.is_empty();
                some.then(|| Load {
                    offset: 0,
                    length: self.waiting.take(self.payload),
                    again: false,
                })
            }
        };
        let Some(load) = load else {
            self.window_limited = false;
            return self.wait(now, Time::NEVER);
        };
        let packet = self.transmit(now, load);
        let earliest = Time::from_nanos(now.as_nanos().saturating_sub(self.credit.as_nanos()));
        self.paced = Some((due.max(earliest), f64::from(packet.size) * 8.0));
        Output::Send(packet)
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sender(flow {}, {}..{})", self.flow, self.unresolved, self.next)
    }
}
