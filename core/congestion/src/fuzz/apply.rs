//! Calls a controller's or a receiver side's methods in the order in which a flow would, for any random input.

use super::{FuzzEvent, MAX_CALLS, NumberStep, due};
use crate::{
    Ack, Arrival, CongestionEvent, Controller, CumulativeAck, Feedback, Loss, LossFoundBy,
    PacketOutcome, RateSample, RecoveryCause,
};
use crate::{ReceiverSide, RecoveryEvent, Sent, SlowStartRestart, SpuriousLosses};
use narrows_base::{Duration, Time};
use std::collections::VecDeque;

/// Numbers from here up never reach a receiver side.
const END_OF_NUMBERS: u64 = u64::MAX / 2;

/// A report with only the receiver side's feedback.
pub fn report(now: Time, feedback: Feedback, rtt: Duration) -> Ack {
    let duplicate = Ack::of_packet(now, rtt, rtt).as_duplicate();
    Ack { prior_outstanding: 0, feedback, ..duplicate }
}

/// State of a connection by which the flow keeps the events legal.
pub(super) struct FuzzedConnection {
    pub now: Time,
    pub outstanding: u64,
    name: &'static str,
    bytes: u32,
    delivered: u64,
    round: u64,
    rtt: Option<Duration>,
    min_rtt: Duration,
    /// Send times of packets without a reported outcome; the first has the number `resolved`.
    fateless: VecDeque<Time>,
    resolved: u64,
    /// The receiver's: one above the highest number.
    next: u64,
}

impl FuzzedConnection {
    pub fn new(name: &'static str, bytes: u32) -> FuzzedConnection {
        FuzzedConnection {
            now: Time::ZERO,
            outstanding: 0,
            name,
            bytes,
            delivered: 0,
            round: 0,
            rtt: None,
            min_rtt: Duration::MAX,
            fateless: VecDeque::new(),
            resolved: 0,
            next: 0,
        }
    }

    fn srtt(&self) -> Duration {
        self.rtt.unwrap_or(Duration::ZERO)
    }
    fn episode(&self) -> RecoveryEvent {
        RecoveryEvent {
            now: self.now,
            cause: RecoveryCause::Loss,
            flight: self.outstanding,
            outstanding: self.outstanding,
            min_rtt: self.min_rtt,
            srtt: self.srtt(),
        }
    }
    pub fn restart(&self, now: Time, flight: u64, backoffs: u32) -> SlowStartRestart {
        let min_rtt = self.min_rtt;
        let srtt = self.srtt();
        SlowStartRestart { now, flight, timeout: true, backoffs, min_rtt, srtt }
    }
    fn take_rtt(&mut self, rtt: u64) -> Duration {
        let rtt = Duration::from_nanos(rtt);
        self.min_rtt = self.min_rtt.min(rtt);
        self.rtt = Some(rtt);
        rtt
    }

    pub fn apply(
        &mut self,
        sender: &mut dyn Controller,
        receiver: &mut Option<Box<dyn ReceiverSide>>,
        pause: u64,
        event: &FuzzEvent,
    ) {
        self.now += Duration::from_nanos(pause);
        let now = self.now;
        match event {
            FuzzEvent::Arrival { .. } | FuzzEvent::ReceiverTick | FuzzEvent::Report { .. } => {
                if let Some(receiver) = receiver {
                    self.tell_receiver(sender, &mut **receiver, event);
                }
            }
            FuzzEvent::Sent { retransmission, last_waiting } => {
                self.send(sender, *retransmission, *last_waiting);
            }
            FuzzEvent::Ack { .. } => self.acknowledge(sender, event),
            FuzzEvent::Loss { segments, age, transmissions, how } => {
                let sent = Time::from_nanos(now.as_nanos().saturating_sub(*age));
                let found_by = match how % 4 {
                    0 => LossFoundBy::Duplicates,
                    1 => LossFoundBy::Sack,
                    2 => LossFoundBy::Clock,
                    _ => LossFoundBy::Timeout,
                };
                sender.on_congestion_event(&CongestionEvent::Losses(Loss {
                    now,
                    segments: *segments,
                    sent,
                    transmissions: *transmissions,
                    found_by,
                    new_episode: *transmissions == 1,
                    radio: 0,
                }));
            }
            FuzzEvent::RecoveryStart => {
                sender.on_congestion_event(&CongestionEvent::RecoveryStart(self.episode()))
            }
            FuzzEvent::RecoveryEnd => {
                sender.on_congestion_event(&CongestionEvent::RecoveryEnd(self.episode()))
            }
            FuzzEvent::EcnCe => {
                let mark = RecoveryEvent { cause: RecoveryCause::EcnCe, ..self.episode() };
                sender.on_congestion_event(&CongestionEvent::RecoveryStart(mark));
                sender.on_congestion_event(&CongestionEvent::RecoveryEnd(mark));
            }
            FuzzEvent::SpuriousLoss { packets, undo } => {
                let spurious = SpuriousLosses { now, packets: *packets, undo: *undo };
                sender.on_congestion_event(&CongestionEvent::SpuriousLosses(spurious));
            }
            FuzzEvent::SlowStartRestart { timeout, backoffs } => {
                let restart = self.restart(now, self.outstanding, *backoffs);
                sender.on_congestion_event(&CongestionEvent::SlowStartRestart(SlowStartRestart {
                    timeout: *timeout,
                    ..restart
                }));
            }
            FuzzEvent::PacketOutcome { lost, marked } => {
                if self.fateless.is_empty() {
                    self.send(sender, false, false);
                }
                if let Some(sent) = self.fateless.pop_front() {
                    let seq = self.resolved;
                    let bytes = self.bytes;
                    self.resolved += 1;
                    let marked = *marked && !lost;
                    sender.on_packet_outcome(&PacketOutcome {
                        now,
                        seq,
                        sent,
                        bytes,
                        lost: *lost,
                        marked,
                        radio: false,
                    });
                }
            }
            FuzzEvent::Feedback { words, rtt } => {
                self.advise(sender, Feedback::from_words(words), *rtt);
            }
            FuzzEvent::Tick => due(sender, now, self.name),
        }
    }

    fn send(&mut self, sender: &mut dyn Controller, retransmission: bool, last_waiting: bool) {
        self.outstanding += 1;
        if !retransmission {
            self.fateless.push_back(self.now);
        }
        sender.on_sent(&Sent {
            now: self.now,
            bytes: self.bytes,
            outstanding: self.outstanding,
            retransmission,
            last_waiting,
        });
    }

    fn acknowledge(&mut self, sender: &mut dyn Controller, event: &FuzzEvent) {
        let FuzzEvent::Ack { advance, sacked, rtt, flags, sampled, arrived } = *event else {
            return;
        };
        let flag = |bit: u8| flags & (1 << bit) != 0;
        let rtt = self.take_rtt(rtt);
        let prior_outstanding = self.outstanding;
        self.outstanding = self.outstanding.saturating_sub(advance + sacked);
        self.delivered += advance + sacked;
        self.round += u64::from(flag(0));
        // Sampled packets must have been delivered.
        let sampled = sampled.max(1).min(self.delivered);
        let rate = RateSample {
            delivered: sampled,
            interval: rtt,
            prior_delivered: self.delivered - sampled,
            total_delivered: self.delivered,
            app_limited: flag(1),
        };
        sender.on_ack(&Ack {
            arrived: flag(7).then(|| Time::from_nanos(arrived)),
            forward_delay: flag(7).then(|| Duration::from_nanos(arrived)),
            cumulative: CumulativeAck {
                newly_sacked: sacked,
                rtt_unambiguous: flag(2),
                ..CumulativeAck::of(advance)
            },
            counted: advance,
            newly_delivered: advance + sacked,
            sent_since: self.outstanding,
            flight: self.outstanding,
            outstanding: self.outstanding,
            prior_outstanding,
            window_limited: flag(3),
            in_recovery: flag(4),
            round: self.round,
            round_start: flag(0),
            marks: u32::from(flag(5)),
            rate: (flag(6) && advance + sacked > 0).then_some(rate),
            ..Ack::of_packet(self.now, rtt, self.min_rtt)
        });
    }

    fn advise(&mut self, sender: &mut dyn Controller, feedback: Feedback, rtt: u64) {
        if feedback.is_empty() {
            return;
        }
        let rtt = self.take_rtt(rtt);
        let flight = self.outstanding;
        let mut ack = Ack {
            flight,
            outstanding: flight,
            prior_outstanding: flight,
            ..report(self.now, feedback, rtt)
        };
        ack.estimate.min_rtt = self.min_rtt;
        sender.on_ack(&ack);
    }

    fn tell_receiver(
        &mut self,
        sender: &mut dyn Controller,
        receiver: &mut dyn ReceiverSide,
        event: &FuzzEvent,
    ) {
        let now = self.now;
        match event {
            FuzzEvent::Arrival { step, marked, sent_ago, words } => {
                let seq = match *step {
                    NumberStep::Next => self.next,
                    NumberStep::Ahead(n) => self.next.saturating_add(n),
                    NumberStep::Behind(n) => self.next.saturating_sub(n + 1),
                };
                let seq = seq.min(END_OF_NUMBERS - 1);
                self.next = self.next.max(seq + 1);
                // A packet has its sender side's feedback, or any.
                let feedback = if words.is_empty() {
                    sender.feedback_to_receiver()
                } else {
                    Feedback::from_words(words)
                };
                receiver.on_arrival(&Arrival {
                    now,
                    seq,
                    sent: Time::from_nanos(now.as_nanos().wrapping_sub(*sent_ago)),
                    bytes: self.bytes,
                    marked: *marked,
                    feedback,
                });
            }
            // Without arrivals, the endpoint makes no report.
            _ if self.next == 0 => {}
            FuzzEvent::Report { rtt } => {
                let feedback = receiver.feedback(now);
                self.advise(sender, feedback, *rtt);
            }
            _ => {
                let mut calls = 0;
                while receiver.next_tick() <= now {
                    receiver.on_tick(now);
                    calls += 1;
                    let tick = receiver.next_tick();
                    assert!(calls < MAX_CALLS, "{}: stuck at a tick of {tick:?}", self.name);
                }
            }
        }
    }
}
