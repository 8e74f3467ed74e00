//! A small path for controller tests: one bottleneck, one sender, selective repair.
//!
//! ```text
//! sender -> [ waiting room | service at rate_bps ] -> delay -> receiver -> ACK
//! ```
//!
//! This is not the simulator, which a controller may not use: it is just enough for a queue, a loss and a timeout. The
//! receiver acknowledges every packet. A packet is lost once three packets sent after it have arrived. The timer
//! expires 1 s after the last acknowledgement. A packet that arrives after it was declared lost was a spurious loss.

use crate::{
    Ack, CongestionEvent, Controller, CumulativeAck, Loss, LossFoundBy, RateSample, RecoveryCause,
    RecoveryEvent, RttEstimate, Sent, SlowStartRestart, SpuriousLosses,
};
use narrows_base::{Duration, Rate, Time};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

const PACKET: u32 = 1000;

/// The last copy of a segment.
#[derive(Clone, Copy)]
struct Copy {
    at: Time,
    /// Packet number, counted over the connection.
    number: u64,
    transmissions: u32,
    delivered_before: u64,
    delivered_at: Time,
    /// Sending time of the packet that was delivered last before.
    sent_before: Time,
    arrived: bool,
    lost: bool,
    app_limited: bool,
}

/// A token bucket without a queue.
#[derive(Clone, Copy)]
pub struct Policer {
    pub rate_bps: f64,
    pub most_tokens: f64,
    tokens: f64,
    filled: Time,
}

impl Policer {
    /// A bucket of that many packets, full.
    pub fn new(rate_bps: f64, most_tokens: f64) -> Policer {
        Policer { rate_bps, most_tokens, tokens: most_tokens, filled: Time::ZERO }
    }

    fn admits(&mut self, now: Time) -> bool {
        let packets_per_second = self.rate_bps / (8.0 * f64::from(PACKET));
        let earned = now.since(self.filled).as_secs_f64() * packets_per_second;
        self.tokens = (self.tokens + earned).min(self.most_tokens);
        self.filled = now;
        let admitted = self.tokens >= 1.0;
        self.tokens -= f64::from(u8::from(admitted));
        admitted
    }
}

/// State from acknowledgements.
struct PathRounds {
    acked: u64,
    min_rtt: Duration,
    srtt: Duration,
    recover: Option<u64>,
    round_end: u64,
    round: u64,
    delivered_at: Time,
    /// Sending time of the packet that was delivered last.
    delivered_sent: Time,
    backoffs: u32,
    /// Segments of the last loss episode that have not arrived late.
    missing: u64,
}

/// Segments sent, and packets in flight.
struct PathSending {
    segments: Vec<Copy>,
    retransmissions: BTreeSet<u64>,
    outstanding: u64,
    sent: u64,
    next_send: Time,
    /// Packets sent until this much is delivered are application-limited, since the application paused.
    limited_until: Option<u64>,
    /// Packets sent when the window was last full.
    full_at: u64,
}

/// The path, the sender and its controller.
pub struct SimplePath<C: Controller + ?Sized = dyn Controller> {
    pub controller: Box<C>,
    pub rate_bps: f64,
    /// Two-way, without service.
    pub delay: Duration,
    pub queue_limit: usize,
    /// One ACK reports all packets of such a period, at its end; zero for an ACK per packet.
    pub ack_period: Duration,
    /// Drops what exceeds its rate, before the queue.
    pub policer: Option<Policer>,
    /// The application makes no more than a packet in this time.
    pub app_gap: Duration,
    /// Packets, by number, that the path loses after the queue.
    pub lose: fn(u64) -> bool,
    /// Packets, by number, that arrive so much later.
    late: Range<u64>,
    late_by: Duration,
    pub now: Time,
    pub dropped: u64,
    pub timeouts: u32,
    pub delivered: u64,
    pub least_window: f64,
    pub most_window: f64,
    pub most_waiting: usize,
    /// Segments sent, and packets in flight.
    sending: PathSending,
    /// State from acknowledgements.
    round_trips: PathRounds,
    busy_until: Time,
    departures: VecDeque<Time>,
    /// (time of the ACK, segment, the copy that arrives).
    acks: VecDeque<(Time, u64, Copy)>,
}

impl<C: Controller + ?Sized> SimplePath<C> {
    pub fn new(controller: Box<C>) -> SimplePath<C> {
        SimplePath {
            controller,
            rate_bps: 10e6,
            delay: Duration::from_millis(40),
            queue_limit: 1_000_000,
            ack_period: Duration::ZERO,
            policer: None,
            app_gap: Duration::ZERO,
            lose: |_| false,
            late: 0..0,
            late_by: Duration::ZERO,
            now: Time::ZERO,
            dropped: 0,
            timeouts: 0,
            delivered: 0,
            least_window: f64::INFINITY,
            most_window: 0.0,
            most_waiting: 0,
            sending: PathSending {
                segments: Vec::new(),
                retransmissions: BTreeSet::new(),
                outstanding: 0,
                sent: 0,
                next_send: Time::ZERO,
                limited_until: None,
                full_at: 0,
            },
            round_trips: PathRounds {
                acked: 0,
                min_rtt: Duration::MAX,
                srtt: Duration::ZERO,
                recover: None,
                round_end: 0,
                round: 0,
                delivered_at: Time::ZERO,
                delivered_sent: Time::ZERO,
                backoffs: 0,
                missing: 0,
            },
            busy_until: Time::ZERO,
            departures: VecDeque::new(),
            acks: VecDeque::new(),
        }
    }

    pub fn window(&self) -> f64 {
        self.controller.send_limits().cwnd
    }

    /// Packets in flight.
    pub fn outstanding(&self) -> u64 {
        self.sending.outstanding
    }

    /// Changes the rate, also for packets that wait. Not while ACKs are aggregated.
    pub fn change_rate(&mut self, rate_bps: f64) {
        let now = self.now;
        let slower = self.rate_bps / rate_bps;
        let moved = |at: Time| now + Duration::from_secs_f64(at.since(now).as_secs_f64() * slower);
        for departure in self.departures.iter_mut().filter(|at| **at > now) {
            *departure = moved(*departure);
        }
        for (at, _, _) in self.acks.iter_mut().filter(|ack| ack.0 > now + self.delay) {
            *at = moved(Time::ZERO + at.since(Time::ZERO + self.delay)) + self.delay;
        }
        self.busy_until = moved(self.busy_until.max(now));
        self.rate_bps = rate_bps;
    }

    /// Packets in flight arrive in time, and the next `count` packets so much later.
    pub fn delay_next(&mut self, count: u64, by: Duration) {
        self.late = self.sending.sent..self.sending.sent + count;
        self.late_by = by;
    }

    /// The application sends no data until this time.
    pub fn pause(&mut self, until: Time) {
        self.sending.next_send = until;
        self.sending.limited_until = Some(self.delivered + self.sending.outstanding);
    }

    /// Goodput since the start in bit/s.
    pub fn goodput(&self) -> f64 {
        self.round_trips.acked as f64 * f64::from(PACKET) * 8.0 / self.now.as_secs_f64()
    }

    /// Packets delivered while running until `end`, as a share of the bottleneck's capacity.
    pub fn utilisation(&mut self, end: Time) -> f64 {
        let start = self.now;
        let before = self.delivered;
        self.run(end);
        let bits = (self.delivered - before) as f64 * f64::from(PACKET) * 8.0;
        bits / (self.rate_bps * self.now.since(start).as_secs_f64())
    }

    /// Runs until `end`.
    pub fn run(&mut self, end: Time) {
        loop {
            self.send();
            let ack = self.acks.front().map_or(Time::NEVER, |a| a.0);
            let pace = if self.may_send() { self.sending.next_send } else { Time::NEVER };
            let tick = self.controller.next_tick();
            let next = ack.min(pace).min(tick);
            let last = if next.is_never() { self.now } else { self.round_trips.delivered_at };
            let timer = last + Duration::from_secs(1);
            let is_waiting = self.sending.outstanding > 0 || next.is_never();
            if is_waiting && timer < next && timer <= end {
                self.now = timer;
                self.timeout();
            } else if next > end || next.is_never() {
                self.now = end;
                return;
            } else {
                self.now = next.max(self.now);
                if ack == next {
                    self.ack();
                } else if tick == next {
                    self.controller.on_tick(self.now);
                }
            }
            self.least_window = self.least_window.min(self.window());
            self.most_window = self.most_window.max(self.window());
        }
    }

    fn may_send(&self) -> bool {
        (self.sending.outstanding as f64) < self.window().floor()
    }

    fn send(&mut self) {
        while self.may_send() && self.now >= self.sending.next_send {
            let recovery = self.sending.retransmissions.pop_first();
            let segment = recovery.unwrap_or(self.sending.segments.len() as u64);
            let before = recovery.map_or(0, |s| self.sending.segments[s as usize].transmissions);
            if self.sending.outstanding == 0 {
                self.round_trips.delivered_at = self.now;
                self.round_trips.delivered_sent = self.now;
            }
            let since_pause = self.sending.limited_until.is_some_and(|d| self.delivered <= d);
            let app_limited = since_pause || self.app_gap > self.pace();
            let copy = Copy {
                app_limited,
                at: self.now,
                number: self.sending.sent,
                transmissions: before + 1,
                delivered_before: self.delivered,
                delivered_at: self.round_trips.delivered_at,
                sent_before: self.round_trips.delivered_sent,
                arrived: false,
                lost: false,
            };
            match recovery {
                Some(s) => self.sending.segments[s as usize] = copy,
                None => self.sending.segments.push(copy),
            }
            self.sending.outstanding += 1;
            self.enqueue(segment, copy);
            self.sending.sent += 1;
            self.controller.on_sent(&Sent {
                now: self.now,
                bytes: PACKET,
                outstanding: self.sending.outstanding,
                retransmission: recovery.is_some(),
                last_waiting: false,
            });
            let gap = self.pace().max(self.app_gap);
            if gap > Duration::ZERO {
                self.sending.next_send = self.now + gap;
            }
        }
        if !self.may_send() {
            self.sending.full_at = self.sending.sent;
        }
    }

    /// Time between packets by the pacing rate; zero without one.
    fn pace(&self) -> Duration {
        let rate = self.controller.send_limits().pacing_rate;
        rate.map_or(Duration::ZERO, |rate| {
            rate.max(Rate::from_bps(1)).transmission(u64::from(PACKET)).0
        })
    }

    fn enqueue(&mut self, segment: u64, copy: Copy) {
        while self.departures.front().is_some_and(|d| *d <= self.now) {
            self.departures.pop_front();
        }
        let waiting = self.departures.len().saturating_sub(1);
        let is_full = !self.departures.is_empty() && waiting >= self.queue_limit;
        if is_full || self.policer.as_mut().is_some_and(|policer| !policer.admits(self.now)) {
            self.dropped += 1;
            return;
        }
        self.most_waiting = self.most_waiting.max(waiting);
        let service = Duration::from_secs_f64(f64::from(PACKET) * 8.0 / self.rate_bps);
        self.busy_until = self.busy_until.max(self.now) + service;
        self.departures.push_back(self.busy_until);
        if !(self.lose)(self.sending.sent) {
            let late = self.late.contains(&copy.number);
            let late_by = if late { self.late_by } else { Duration::ZERO };
            let arrival = (self.busy_until + self.delay + late_by).as_nanos();
            let period = self.ack_period.as_nanos().max(1);
            let at = Time::from_nanos(arrival.next_multiple_of(period));
            let place = self.acks.partition_point(|ack| ack.0 <= at);
            self.acks.insert(place, (at, segment, copy));
        }
    }

    fn ack(&mut self) {
        let prior_outstanding = self.sending.outstanding;
        let mut newest: Option<Copy> = None;
        let mut arrived = 0;
        let mut late = 0;
        while let Some(&(at, segment, copy)) = self.acks.front() {
            if at > self.now || (arrived > 0 && self.ack_period == Duration::ZERO) {
                break;
            }
            self.acks.pop_front();
            let sent = &mut self.sending.segments[segment as usize];
            let is_last = sent.number == copy.number;
            if is_last && !sent.lost {
                self.sending.outstanding -= 1;
            }
            if sent.arrived {
                continue; // an earlier copy has arrived late
            }
            if !is_last || sent.lost {
                self.sending.retransmissions.remove(&segment);
                late += 1;
            }
            sent.arrived = true;
            arrived += 1;
            self.delivered += 1;
            newest = newest.filter(|newest| newest.number > copy.number).or(Some(copy));
        }
        let Some(copy) = newest else { return };
        let number = copy.number;
        let before = self.round_trips.acked;
        let mut ambiguous = false;
        while self.sending.segments.get(self.round_trips.acked as usize).is_some_and(|s| s.arrived)
        {
            ambiguous |= self.sending.segments[self.round_trips.acked as usize].transmissions > 1;
            self.round_trips.acked += 1;
        }
        let newly_acked = self.round_trips.acked - before;
        let rtt = self.now.since(copy.at);
        self.round_trips.min_rtt = self.round_trips.min_rtt.min(rtt);
        self.round_trips.srtt = if self.round_trips.srtt == Duration::ZERO {
            rtt
        } else {
            Duration::from_nanos((7 * self.round_trips.srtt.as_nanos() + rtt.as_nanos()) / 8)
        };
        let round_start = copy.delivered_before >= self.round_trips.round_end;
        if round_start {
            self.round_trips.round += 1;
            self.round_trips.round_end = self.delivered;
        }
        if newly_acked > 0 {
            self.round_trips.backoffs = 0;
        }
        let interval = self.now.since(copy.delivered_at).max(copy.at.since(copy.sent_before));
        self.round_trips.delivered_at = self.now;
        self.round_trips.delivered_sent = self.round_trips.delivered_sent.max(copy.at);
        self.controller.on_ack(&Ack {
            estimate: RttEstimate {
                srtt: self.round_trips.srtt,
                rttvar: Duration::ZERO,
                min_rtt: self.round_trips.min_rtt,
            },
            cumulative: CumulativeAck {
                newly_sacked: if newly_acked == 0 { arrived } else { 0 },
                rtt_unambiguous: newly_acked > 0 && !ambiguous,
                ..CumulativeAck::of(newly_acked)
            },
            counted: newly_acked.min(1),
            newly_delivered: arrived,
            sent_since: self.sending.sent - 1 - number,
            flight: self.sending.segments.len() as u64 - self.round_trips.acked,
            outstanding: self.sending.outstanding,
            prior_outstanding,
            window_limited: !copy.app_limited && self.sending.full_at > number,
            in_recovery: self.round_trips.recover.is_some(),
            round: self.round_trips.round,
            round_start,
            rate: Some(RateSample {
                delivered: self.delivered - copy.delivered_before,
                interval,
                prior_delivered: copy.delivered_before,
                total_delivered: self.delivered,
                app_limited: copy.app_limited,
            }),
            ..Ack::of_packet(self.now, rtt, self.round_trips.min_rtt)
        });
        if late > 0 {
            self.report_spurious(late);
        }
        self.find_losses(number);
        if self.round_trips.recover.is_some_and(|r| self.round_trips.acked >= r) {
            self.round_trips.recover = None;
            self.controller.on_congestion_event(&CongestionEvent::RecoveryEnd(self.episode()));
        }
    }

    /// Three packets sent later have arrived: the FIFO path lost it.
    fn find_losses(&mut self, arrived: u64) {
        let mut first = None;
        let mut count = 0;
        for s in self.round_trips.acked..self.sending.segments.len() as u64 {
            let copy = &mut self.sending.segments[s as usize];
            if copy.number + 3 <= arrived && !copy.arrived && !copy.lost {
                copy.lost = true;
                first.get_or_insert(*copy);
                count += 1;
                self.sending.retransmissions.insert(s);
                self.sending.outstanding -= 1;
            }
        }
        let Some(copy) = first else { return };
        let new_episode = self.round_trips.recover.is_none();
        self.controller.on_congestion_event(&CongestionEvent::Losses(Loss {
            now: self.now,
            segments: count,
            sent: copy.at,
            transmissions: copy.transmissions,
            found_by: LossFoundBy::Sack,
            new_episode,
            radio: 0,
        }));
        self.round_trips.missing = count + if new_episode { 0 } else { self.round_trips.missing };
        if new_episode {
            self.round_trips.recover = Some(self.sending.segments.len() as u64);
            self.controller.on_congestion_event(&CongestionEvent::RecoveryStart(self.episode()));
        }
    }

    fn report_spurious(&mut self, packets: u64) {
        let missing = self.round_trips.missing.saturating_sub(packets);
        let undo = missing == 0 && self.round_trips.missing > 0;
        self.round_trips.missing = missing;
        if undo && self.round_trips.recover.take().is_some() {
            self.controller.on_congestion_event(&CongestionEvent::RecoveryEnd(self.episode()));
        }
        let spurious = SpuriousLosses { now: self.now, packets, undo };
        self.controller.on_congestion_event(&CongestionEvent::SpuriousLosses(spurious));
    }

    fn episode(&self) -> RecoveryEvent {
        RecoveryEvent {
            now: self.now,
            cause: RecoveryCause::Loss,
            flight: self.sending.segments.len() as u64 - self.round_trips.acked,
            outstanding: self.sending.outstanding,
            min_rtt: self.round_trips.min_rtt,
            srtt: self.round_trips.srtt,
        }
    }

    fn timeout(&mut self) {
        self.timeouts += 1;
        self.round_trips.backoffs += 1;
        self.round_trips.recover = None;
        let mut lost = Loss {
            now: self.now,
            segments: 0,
            sent: self.now,
            transmissions: 1,
            found_by: LossFoundBy::Timeout,
            new_episode: true,
            radio: 0,
        };
        for s in self.round_trips.acked..self.sending.segments.len() as u64 {
            let copy = &mut self.sending.segments[s as usize];
            if !copy.arrived {
                copy.lost = true;
                lost.segments += 1;
                lost.sent = lost.sent.min(copy.at);
                lost.transmissions = lost.transmissions.max(copy.transmissions);
                self.sending.retransmissions.insert(s);
            }
        }
        self.round_trips.missing = lost.segments;
        self.sending.outstanding = 0;
        self.controller.on_congestion_event(&CongestionEvent::Losses(lost));
        self.controller.on_congestion_event(&CongestionEvent::SlowStartRestart(SlowStartRestart {
            now: self.now,
            flight: self.sending.segments.len() as u64 - self.round_trips.acked,
            timeout: true,
            backoffs: self.round_trips.backoffs,
            min_rtt: self.round_trips.min_rtt,
            srtt: self.round_trips.srtt,
        }));
    }
}
