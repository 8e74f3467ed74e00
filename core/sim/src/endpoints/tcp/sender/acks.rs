//! Processing of an acknowledgement: the scoreboard, RTTs, losses, and the controller's events.

use super::{TcpPhase, TcpSender};
use crate::endpoints::tcp::prr::Reduction;
use crate::endpoints::tcp::recovery::{AckOutcome, Acked, Lost};
use crate::endpoints::tcp::scoreboard::SentSegment;
use narrows_base::{Duration, Packet, Time};
use narrows_congestion::{
    Ack, CongestionEvent, CumulativeAck, Feedback, Loss, PathEvent, PathHints, RecoveryCause,
    RecoveryEvent, RttEstimate, SpuriousLosses,
};

/// Send times of the oldest and the newest segment that an ACK delivers: cumulatively, with `repaired` if one of them
/// was retransmitted, and by SACK, of those sent once.
#[derive(Clone, Copy, Debug, Default)]
struct Departures {
    acked: Option<(Time, Time)>,
    repaired: bool,
    sacked: Option<(Time, Time)>,
}

/// What the blocks of an ACK report.
#[derive(Clone, Copy, Debug, Default)]
struct Selective {
    newly_sacked: u64,
    /// Whether the tail loss probe arrived beside its original.
    repeats_probe: bool,
}

/// The segments that arrived again: the first block, if it is below the cumulative acknowledgement or within the second
/// block (RFC 2883 section 4).
fn duplicates(p: &Packet) -> Option<(u64, u64)> {
    let (from, to) = p.sack[0];
    let (second_from, second_to) = p.sack[1];
    let segments = to.wrapping_sub(from);
    let is_below = (from as i32) < 0;
    let is_within = second_from <= from && from < to && to <= second_to;
    if segments == 0 || !(is_below || is_within) {
        return None;
    }
    let first = p.seq.checked_add_signed(i64::from(from as i32))?;
    Some((first, first + u64::from(segments)))
}

impl Departures {
    #[inline]
    fn with(sofar: Option<(Time, Time)>, sent: Time) -> Option<(Time, Time)> {
        Some((sofar.map_or(sent, |s| s.0), sent))
    }
}

impl TcpSender {
    pub(crate) fn on_ack(&mut self, now: Time, p: &Packet) {
        if p.has(Packet::CORRUPT) || p.seq > self.scoreboard.max {
            return; // Damaged, or never sent.
        }
        if p.seq < self.scoreboard.una {
            self.on_old_ack(now, p);
            return;
        }
        if self.phase != TcpPhase::Established {
            self.on_opened(now, p);
            return;
        }
        self.recovery.begin_ack(now, self.path_min_rtt());
        let prior_outstanding = self.outstanding();
        let prior_delivered = self.delivery.delivered();
        let mut sample: Option<SentSegment> = None;
        let newly_acked = p.seq - self.scoreboard.una;
        let mut departures = Departures::default();
        let unambiguous = self.take_acked(now, p.seq, &mut sample, &mut departures);
        let Selective { newly_sacked, repeats_probe } =
            self.take_sacked(now, p, &mut sample, &mut departures);
        let duplicate = newly_acked == 0 && self.scoreboard.una < self.scoreboard.max;
        let newly_delivered = self.count_delivered(prior_delivered, newly_acked, duplicate);
        let rtt = if self.rtt.counts_rounds() {
            self.take_rtt_as_linux(now, p, newly_acked, &departures)
        } else {
            self.take_rtt_sample(now, p, newly_acked)
        };
        let is_pure_duplicate = newly_acked == 0 && newly_sacked == 0;
        self.on_probe_ack(now, p.seq, repeats_probe, is_pure_duplicate);
        let was_in_recovery = self.recovery.in_recovery();
        let min_rtt = self.path_min_rtt();
        let echo = p.stamp;
        let delivered = self.delivery.delivered();
        let prior_delivered = sample.map(|s| s.delivered);
        let rtt_estimator = &self.rtt;
        let acked = Acked {
            now,
            newly_acked,
            duplicate,
            echo,
            min_rtt,
            delivered,
            prior_delivered,
            rtt: rtt_estimator,
        };
        let outcome = self.recovery.on_ack(&mut self.scoreboard, acked);
        self.next = self.next.max(self.scoreboard.una);

        let total = self.counters.sent;
        let sent_since = u64::from((total as u32).wrapping_sub(1).wrapping_sub(p.number));
        let round_start = self.rounds.on_ack(total, sent_since);
        let ack = Ack {
            now,
            rtt,
            estimate: RttEstimate {
                srtt: self.rtt.srtt(),
                rttvar: self.rtt.rttvar(),
                min_rtt: self.rtt.min(),
            },
            arrived: self.arrived(p),
            forward_delay: None,
            cumulative: CumulativeAck {
                newly_acked,
                newly_sacked,
                duplicate,
                rtt_unambiguous: unambiguous,
                selective_counts: self.recovery.is_reordering_high(),
            },
            counted: newly_acked.min(self.format.ack_every),
            newly_delivered,
            sent_since,
            flight: self.flight(),
            outstanding: self.outstanding(),
            prior_outstanding,
            window_limited: self.limits.is_window_full,
            in_recovery: was_in_recovery,
            round: self.rounds.count,
            round_start,
            marks: u32::from(self.ecn.echoed(p)),
            rate: self.delivery.sample(now, self.path_min_rtt(), sample),
            feedback: Feedback::NONE,
        };
        self.controller.on_ack(&ack);
        if newly_acked > 0 {
            if self.scoreboard.una == self.scoreboard.max {
                self.timer.due = Time::NEVER;
            } else if !outcome.keep_timer {
                self.restart_timer(now);
            }
        }
        if let Some(wait) = outcome.reorder_wait {
            self.set_reorder_timer(now, wait);
        }
        if outcome.is_relevant() {
            self.tell_outcome(now, &outcome);
        }
        if newly_acked > 0 {
            self.limited = 0;
        }
        self.reduce(newly_delivered, newly_acked > 0 && outcome.lost.is_none());
        if self.ecn.echoed(p) {
            self.on_marked(now);
        }
    }

    /// A later acknowledgement overtook this one. RACK still uses its blocks, as Linux does: each duplicate is reported
    /// only once.
    fn on_old_ack(&mut self, now: Time, p: &Packet) {
        if self.phase != TcpPhase::Established || !self.recovery.by_time() || p.sack[0] == (0, 0) {
            return;
        }
        let min_rtt = self.path_min_rtt();
        self.recovery.begin_ack(now, min_rtt);
        let mut sample: Option<SentSegment> = None;
        self.take_sacked(now, p, &mut sample, &mut Departures::default());
        let acked = Acked {
            now,
            newly_acked: 0,
            duplicate: false,
            echo: Time::NEVER,
            min_rtt,
            delivered: self.delivery.delivered(),
            prior_delivered: sample.map(|s| s.delivered),
            rtt: &self.rtt,
        };
        let outcome = self.recovery.on_ack(&mut self.scoreboard, acked);
        if let Some(wait) = outcome.reorder_wait {
            self.set_reorder_timer(now, wait);
        }
        if outcome.is_relevant() {
            self.tell_outcome(now, &outcome);
        }
    }

    /// Adds an RTT sample as Linux does, and returns the controller's: the RTT of the newest segment that this ACK
    /// delivers, which the receiver has not delayed. The timeout uses the oldest. If a segment was retransmitted, the
    /// time stamp decides, in whole milliseconds of both.
    fn take_rtt_as_linux(
        &mut self,
        now: Time,
        p: &Packet,
        acked: u64,
        departures: &Departures,
    ) -> Duration {
        let milliseconds = |t: Time| t.as_nanos() / 1_000_000;
        let since = |(oldest, newest): (Time, Time)| (now.since(oldest), now.since(newest));
        let whole = departures.acked.filter(|_| !departures.repaired).map(since);
        let sacked = departures.sacked.map(since);
        let (oldest, newest) = match (whole, sacked) {
            (Some(whole), Some(sacked)) => (whole.0, sacked.1),
            (Some(both), None) | (None, Some(both)) => both,
            (None, None) if acked > 0 && self.format.timestamps => {
                let rtt = milliseconds(now).saturating_sub(milliseconds(p.stamp)).max(1);
                let rtt = Duration::from_nanos(rtt.saturating_mul(1_000_000));
                (rtt, rtt)
            }
            (None, None) => return now.since(p.stamp),
        };
        self.rtt.observe(newest);
        self.rtt.sample_in_round(oldest, self.scoreboard.una, self.scoreboard.max);
        self.timer.backoffs = 0;
        newest
    }

    /// When the packet that triggered this ACK arrived, if the receiver reports it.
    #[inline]
    fn arrived(&self, p: &Packet) -> Option<Time> {
        self.format.receiver_stamps.then(|| p.arrived())
    }

    /// The SYN is acknowledged: the first RTT sample, and data may be sent.
    fn on_opened(&mut self, now: Time, p: &Packet) {
        if p.seq == 0 {
            return;
        }
        let rtt = now.since(p.stamp);
        let transmissions = self.scoreboard.get(0).transmissions;
        self.rtt.observe(rtt);
        if transmissions == 1 {
            self.rtt.sample(rtt, p.stamp);
        } else {
            self.rtt.opening_was_lost();
        }
        if self.recovery.by_time() {
            let hints = PathHints { rtt: Some(rtt), ..PathHints::default() };
            self.controller.on_path_event(now, &PathEvent::Hints(hints));
        }
        // The handshake's 40 bytes are transmitted faster than data, so controllers that compare RTTs with the smallest
        // do not get this sample.
        if self.recovery.by_time() {
            self.timings.opening = rtt;
        }
        self.rtt.forget_min();
        let opening = *self.scoreboard.get(0);
        self.rtt.sample_in_round(rtt, 1, 1);
        self.recovery.on_acked(0, &opening);
        self.scoreboard.una = 1;
        self.next = 1;
        self.phase = TcpPhase::Established;
        self.timer.backoffs = 0;
        self.timer.due = Time::NEVER;
        self.timings.timed = None;
        self.rounds.end = self.counters.sent;
        self.delivery.begin_flight(now);
    }

    /// Removes cumulatively acknowledged segments from the scoreboard; false if one of them was retransmitted.
    #[inline]
    fn take_acked(
        &mut self,
        now: Time,
        to: u64,
        sample: &mut Option<SentSegment>,
        departures: &mut Departures,
    ) -> bool {
        let mut unambiguous = true;
        for seq in self.scoreboard.una..to {
            let segment = *self.scoreboard.get(seq);
            unambiguous &= segment.transmissions == 1;
            self.recovery.on_acked(seq, &segment);
            if !segment.sacked {
                self.delivery.deliver(now, 0, &segment, sample);
                departures.acked = Departures::with(departures.acked, segment.sent);
            }
        }
        departures.repaired = !unambiguous;
        self.scoreboard.una = to;
        unambiguous
    }

    #[inline]
    fn take_sacked(
        &mut self,
        now: Time,
        p: &Packet,
        sample: &mut Option<SentSegment>,
        departures: &mut Departures,
    ) -> Selective {
        let mut selective = Selective::default();
        if p.sack[0] == (0, 0) || !self.recovery.uses_sack() {
            return selective;
        }
        let duplicates = if self.recovery.by_time() { duplicates(p) } else { None };
        if let Some(block) = duplicates {
            selective.repeats_probe = self.take_duplicates(block);
        }
        let mut fresh: u64 = 0;
        // Delivery is counted after the scoreboard is updated: find the newest first.
        let mut newest: Option<SentSegment> = None;
        let end = if self.format.receiver_stamps { 2 } else { 3 };
        for &(from, to) in &p.sack[usize::from(duplicates.is_some())..end] {
            if to == 0 {
                break;
            }
            let from = p.seq + u64::from(from);
            let to = p.seq + u64::from(to);
            self.recovery.on_block(&mut self.scoreboard, (from, to), |scoreboard, seq| {
                fresh += 1;
                let segment = scoreboard.get(seq);
                if segment.transmissions == 1 {
                    departures.sacked = Departures::with(departures.sacked, segment.sent);
                }
                if newest.is_none_or(|n| segment.sent >= n.sent) {
                    newest = Some(*segment);
                }
            });
        }
        if let Some(segment) = newest {
            self.delivery.deliver(now, fresh - 1, &segment, sample);
        }
        selective.newly_sacked = fresh;
        selective
    }

    /// The receiver reports duplicates of these segments. Returns whether they are the tail loss probe. More duplicates
    /// than retransmissions come from the path and are ignored.
    fn take_duplicates(&mut self, block: (u64, u64)) -> bool {
        let (from, to) = block;
        let is_known = self.delivery.on_duplicates(to - from, self.counters.retransmissions);
        if !is_known || to > self.scoreboard.max {
            return false;
        }
        let is_probe = to - from == 1 && self.timer.probe.is_some_and(|probe| probe.end == to);
        self.recovery.on_duplicates(&self.scoreboard, block, is_probe);
        is_probe
    }

    /// Number of segments that this ACK delivers.
    #[inline]
    fn count_delivered(&mut self, before: u64, newly_acked: u64, duplicate: bool) -> u64 {
        if self.recovery.uses_sack() {
            return self.delivery.delivered() - before;
        }
        let is_all = self.scoreboard.una == self.scoreboard.max;
        self.delivery.count_without_sack(newly_acked, duplicate, is_all)
    }

    /// The RTT of the packet that triggered this ACK, and a sample for the timeout.
    #[inline]
    fn take_rtt_sample(&mut self, now: Time, p: &Packet, acked: u64) -> Duration {
        let rtt = now.since(p.stamp);
        self.rtt.observe(rtt);
        if acked == 0 {
            return rtt;
        }
        if self.format.timestamps {
            self.rtt.sample(rtt, p.stamp);
            self.timer.backoffs = 0;
        } else if let Some((seq, sent)) = self.timings.timed
            && self.scoreboard.una > seq
        {
            self.timings.timed = None;
            self.rtt.sample(now.since(sent), sent);
            self.timer.backoffs = 0;
        }
        rtt
    }

    pub(super) fn episode(&self, now: Time) -> RecoveryEvent {
        RecoveryEvent {
            now,
            cause: RecoveryCause::Loss,
            // Limited transmit does not count: RFC 5681 section 3.2 step 2, RFC 6675 section 5 (4.2).
            flight: (self.scoreboard.max - self.scoreboard.una).saturating_sub(self.limited),
            outstanding: self.outstanding(),
            min_rtt: self.rtt.min(),
            srtt: self.rtt.srtt(),
        }
    }

    /// An acknowledgement has ECE set (RFC 3168 section 6.1.2).
    #[cold]
    fn on_marked(&mut self, now: Time) {
        if !self.ecn.may_react(self.scoreboard.una) {
            return;
        }
        if self.controller.send_limits().cwnd < 2.0 {
            // The window cannot be reduced: the next packet waits for an RTO.
            self.ecn.pause = now + self.rtt.rto(self.timer.backoffs);
            if self.scoreboard.una < self.scoreboard.max {
                self.arm_timer(now);
            }
        } else {
            let mark = RecoveryEvent { cause: RecoveryCause::EcnCe, ..self.episode(now) };
            self.controller.on_congestion_event(&CongestionEvent::RecoveryStart(mark));
            self.controller.on_congestion_event(&CongestionEvent::RecoveryEnd(mark));
        }
        self.counters.marks += 1;
        self.ecn.reduced(self.scoreboard.max);
    }

    #[cold]
    pub(super) fn tell_outcome(&mut self, now: Time, outcome: &AckOutcome) {
        let repair = self.episode(now);
        if outcome.ends {
            self.controller.on_congestion_event(&CongestionEvent::RecoveryEnd(repair));
        }
        if outcome.ends {
            self.reduction = None;
        }
        if outcome.undo {
            let event = SpuriousLosses { now, packets: 0, undo: true };
            self.controller.on_congestion_event(&CongestionEvent::SpuriousLosses(event));
        }
        let window = self.controller.send_limits().cwnd;
        if let Some(Lost { segments, sent, transmissions, found_by }) = outcome.lost {
            let new_episode = outcome.begins || outcome.restarts;
            self.controller.on_congestion_event(&CongestionEvent::Losses(Loss {
                now,
                segments,
                sent,
                transmissions,
                found_by,
                new_episode,
                radio: 0,
            }));
        }
        if outcome.restarts {
            self.restart(now, repair.flight, false);
        }
        if outcome.begins {
            self.counters.episodes += 1;
            self.controller.on_congestion_event(&CongestionEvent::RecoveryStart(repair));
            self.timings.timed = None;
            if self.recovery.by_time() {
                self.timer.probe = None;
                let limits = self.controller.send_limits();
                // A controller without a threshold limits itself.
                self.reduction = limits
                    .ssthresh
                    .map(|_| Reduction::new(window, limits.cwnd, repair.outstanding));
            } else {
                self.arm_timer(now);
            }
        }
        if self.controller.send_limits().cwnd < window && !outcome.restarts {
            self.ecn.reduced(self.scoreboard.max);
        }
        if outcome.force.is_some() {
            self.forced = outcome.force;
        }
    }
}
