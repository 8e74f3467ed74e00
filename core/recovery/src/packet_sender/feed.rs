//! The controller's events, in this order. First `on_packet_outcome` for each packet, then `on_ack` for each that
//! arrived, with the feedback of the controller's receiver side. Then `on_congestion_event` for spurious losses,
//! losses, the end or start of a recovery or a slow start restart, and CE marks.

use super::counters::Counters;
use super::delivery::{RateSampler, Stamp};
use super::ledger::{PacketLedger, ResolvedPacket};
use super::losses::DetectedLosses;
use super::round_trip::RoundTrip;
use super::spurious::{LateArrivals, LossEpisode};
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{
    Ack, CongestionEvent, Controller, CumulativeAck, Dispersion, Feedback, Loss, LossFoundBy,
    PacketOutcome, PathEvent, PathHints, RecoveryCause, RecoveryEvent, RttEstimate, SendLimits,
    Sent, SlowStartRestart, SpuriousLosses,
};

/// Modulus of the count of CE marks.
pub const MARKS: u32 = 1 << 29;

/// The packet sender's reaction to losses, besides calling the controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reaction {
    Nothing,
    /// Send one packet at once: the first of a recovery.
    RecoveryStart,
    /// Begin slow start again.
    SlowStartRestart,
}

/// Calls the controller.
pub(super) struct CcFeed {
    controller: Box<dyn Controller>,
    own_timer: bool,
    /// Bytes as the controller counts them, per byte on the wire.
    scale: f64,
    /// Bits of a full packet as the controller counts them, 0 if unknown.
    full_bits: f64,
    delivery: RateSampler,
    window_limited: bool,
    round: u64,
    round_end: u64,
    /// CE marks reported so far.
    marks: u32,
    /// Next number when the window was last reduced, by losses and by marks.
    cut_at: u64,
    marks_cut_at: u64,
    repairing: bool,
    episode: Option<LossEpisode>,
    radio: u64,
    /// Waiting time of reports on the return path, and packets in flight only because of that. The controller's RTT and
    /// window do not include them.
    unreported: (Duration, u64),
}

impl CcFeed {
    pub fn new(controller: Box<dyn Controller>) -> CcFeed {
        CcFeed {
            own_timer: controller.requirements().own_timer,
            controller,
            scale: 1.0,
            full_bits: 0.0,
            delivery: RateSampler::new(),
            window_limited: false,
            round: 0,
            round_end: 0,
            marks: 0,
            cut_at: 0,
            marks_cut_at: 0,
            repairing: false,
            episode: None,
            radio: 0,
            unreported: (Duration::ZERO, 0),
        }
    }
    /// The path changed; `next` is the next packet number.
    pub fn renew(&mut self, controller: Box<dyn Controller>, next: u64) {
        self.own_timer = controller.requirements().own_timer;
        self.controller = controller;
        self.delivery = RateSampler::new();
        self.cut_at = next;
        self.marks_cut_at = next;
        self.round = 0;
        self.round_end = next;
        self.repairing = false;
        self.window_limited = false;
        self.episode = None;
        self.unreported = (Duration::ZERO, 0);
    }

    #[inline]
    pub fn controller(&self) -> &dyn Controller {
        &*self.controller
    }
    pub fn controller_mut(&mut self) -> &mut dyn Controller {
        &mut *self.controller
    }
    #[inline]
    pub fn keeps_own_timer(&self) -> bool {
        self.own_timer
    }
    #[inline]
    pub fn radio_losses(&self) -> u64 {
        self.radio
    }

    /// A full packet has `full` bytes, while the controller was built for `nominal`.
    pub fn scale_bytes(&mut self, now: Time, full: u32, nominal: u32) {
        let scale = f64::from(nominal.max(1)) / f64::from(full.max(1));
        if scale != self.scale {
            self.controller.on_path_event(now, &PathEvent::PacketBytes(full));
        }
        self.scale = scale;
        self.full_bits = f64::from(nominal) * 8.0;
    }
    #[inline]
    pub fn scale(&self) -> f64 {
        self.scale
    }
    #[inline]
    pub fn full_bits(&self) -> f64 {
        self.full_bits
    }
    /// Converts bytes on the wire to the controller's count.
    #[inline]
    pub fn scaled(&self, bytes: u32) -> u32 {
        if self.scale == 1.0 { bytes } else { (f64::from(bytes) * self.scale) as u32 }
    }
    /// Converts the controller's rate to bytes on the wire.
    #[inline]
    pub fn real(&self, rate: Rate) -> Rate {
        Rate::from_bps_f64(rate.as_bps() as f64 / self.scale)
    }
    /// The controller's limits, as it counts bytes.
    #[inline]
    pub fn send_limits(&self) -> SendLimits {
        self.controller.send_limits()
    }

    pub fn on_path_hints(&mut self, now: Time, hints: &PathHints) {
        let rate = hints.rate.map(|r| Rate::from_bps_f64(r.as_bps() as f64 * self.scale));
        self.controller.on_path_event(now, &PathEvent::Hints(PathHints { rate, ..*hints }));
    }
    pub fn on_dispersion(&mut self, now: Time, dispersion: &Dispersion) {
        let dispersion = Dispersion { bits: dispersion.bits * self.scale, ..*dispersion };
        self.controller.on_path_event(now, &PathEvent::Dispersion(dispersion));
    }
    pub fn on_timeout(&mut self, now: Time) {
        if now >= self.controller.next_tick() {
            self.controller.on_tick(now);
        }
    }

    /// A packet is sent: returns its rate sampler state. `is_first` if no other is in flight.
    #[inline]
    pub fn stamp_sent(&mut self, now: Time, is_first: bool) -> Stamp {
        self.delivery.sent(now, is_first)
    }
    /// The rate sampler state for a packet that is not in flight.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        self.delivery.stamp()
    }
    #[inline]
    pub fn on_sent(&mut self, sent: &Sent) {
        self.controller.on_sent(sent);
    }
    /// Only the window holds packets back.
    #[inline]
    pub fn on_window_full(&mut self) {
        self.window_limited = true;
    }
    /// The controller permits packets, but no data waits.
    #[inline]
    pub fn on_nothing_to_send(&mut self, in_flight: u64) {
        self.delivery.nothing_to_send(in_flight);
        self.window_limited = false;
    }
    /// A limit that is no property of the path holds packets back: rate samples do not count as the path's.
    #[inline]
    pub fn on_held_back(&mut self, in_flight: u64) {
        self.delivery.nothing_to_send(in_flight);
    }

    /// A counted packet sent at `sent` is acknowledged now.
    #[inline]
    pub fn on_arrived(&mut self, now: Time, sent: Time, stamp: &Stamp) {
        self.delivery.arrived(now, sent, stamp);
    }
    /// A packet that was declared lost is acknowledged.
    pub fn on_late(&mut self, now: Time) {
        self.delivery.arrived_late(now);
    }
    /// The count of late packets at the start of a report.
    #[inline]
    pub fn none_late(&self) -> LateArrivals {
        LateArrivals::none(self.episode.as_ref())
    }
    /// Send time of the newest packet that the present report acknowledges.
    pub fn newest_sent(&self) -> Option<Time> {
        self.delivery.newest_sent()
    }
    /// CE marks that are newly reported, at most `fresh`, the number of newly acknowledged packets.
    #[inline]
    pub fn new_marks(&mut self, marks: u32, fresh: u64) -> u32 {
        let new = marks.wrapping_sub(self.marks) % MARKS;
        if new == 0 || new >= MARKS / 2 {
            return 0; // No new marks, or a report that was overtaken.
        }
        self.marks = marks;
        new.min(u32::try_from(fresh).unwrap_or(u32::MAX))
    }
    /// Sets the waiting time of reports on the return path, and the packets in flight only because of that.
    #[inline]
    pub fn on_unreported(&mut self, wait: Duration, packets: f64) {
        // RFC 5348 and its relatives are defined by the whole RTT.
        if !self.own_timer {
            // A float's cast saturates.
            self.unreported = (wait, packets as u64);
        }
    }
    /// Packets that may be in flight beyond the controller's window.
    #[inline]
    pub fn unreported(&self) -> u64 {
        self.unreported.1
    }
    /// An RTT sample without the report's waiting time on the return path.
    #[inline]
    pub fn without_wait(&self, rtt: Duration, wait: Duration, path: &RoundTrip) -> Duration {
        if self.own_timer || wait == Duration::ZERO {
            return rtt;
        }
        (rtt - rtt.min(wait)).max(path.min_rtt().min(rtt))
    }
    /// The smoothed RTT without the waiting time of reports.
    #[inline]
    pub fn srtt(&self, path: &RoundTrip) -> Duration {
        self.without_wait(path.srtt(), self.unreported.0, path)
    }
    /// The part of `packets` in flight that counts for the controller.
    #[inline]
    fn outstanding(&self, packets: u64) -> u64 {
        packets.saturating_sub(self.unreported.1)
    }
    /// FlightSize, from which a loss computes the new window: at least the window if that is full.
    #[inline]
    fn flight_size(&self, packets: u64) -> u64 {
        if self.unreported.1 == 0 {
            return packets;
        }
        // A float's cast saturates.
        let window = self.controller.send_limits().cwnd as u64;
        self.outstanding(packets).max(packets.min(window))
    }

    /// A report acknowledges numbers below `end`: returns whether it begins a round.
    #[inline]
    pub fn begin_round(&mut self, end: u64, next: u64) -> bool {
        let is_start = end > self.round_end;
        if is_start {
            self.round += 1;
            self.round_end = next;
        }
        is_start
    }

    /// Records the loss of a counted packet.
    #[inline]
    pub fn book_loss<L>(&self, outcome: &ResolvedPacket<L>, found: &mut DetectedLosses) {
        let seq = outcome.seq;
        let p = &outcome.packet;
        found.count += 1;
        found.radio += u64::from(p.radio);
        found.first.get_or_insert(p.sent);
        found.lowest.get_or_insert(seq);
        if seq >= self.cut_at {
            found.new.get_or_insert(seq);
        }
        found.repair |= self.repairing && seq + 1 == self.cut_at;
    }
    /// Passes a counted packet's outcome to the controller.
    #[inline]
    pub fn tell_outcome<L>(&mut self, now: Time, outcome: &ResolvedPacket<L>) {
        let p = &outcome.packet;
        self.controller.on_packet_outcome(&PacketOutcome {
            now,
            seq: outcome.seq,
            sent: p.sent,
            bytes: self.scaled(u32::from(p.bytes)),
            lost: !p.arrived,
            marked: p.marked,
            radio: p.radio && !p.arrived,
        });
    }

    /// Builds the `Ack` of a report, to be passed for each newly acknowledged packet. `reported` has the RTT, whether a
    /// round begins, the new marks, and feedback.
    #[inline]
    pub fn ack<L>(
        &mut self,
        now: Time,
        reported: (Duration, bool, u32, Feedback),
        (prior_outstanding, sent_since): (u64, u64),
        ledger: &PacketLedger<L>,
        path: &RoundTrip,
    ) -> Ack {
        let (rtt, round_start, marks, feedback) = reported;
        Ack {
            now,
            rtt,
            estimate: RttEstimate {
                srtt: self.srtt(path),
                rttvar: path.estimator().rttvar(),
                min_rtt: path.min_rtt(),
            },
            arrived: None,
            forward_delay: None,
            cumulative: CumulativeAck::of(1),
            counted: 1,
            newly_delivered: 1,
            sent_since,
            flight: self.flight_size(ledger.packets_in_flight()),
            outstanding: self.outstanding(ledger.packets_in_flight()),
            prior_outstanding: self.outstanding(prior_outstanding),
            window_limited: self.window_limited,
            in_recovery: self.repairing,
            round: self.round,
            round_start,
            marks,
            rate: self.delivery.sample(now, path.min_rtt()),
            feedback,
        }
    }
    /// Calls `on_ack` once for each of the `fresh` packets; a report without any is a duplicate. The first calls are for
    /// overtaken packets, which have an `Ack` of their own. The last call has the receiver side's feedback.
    #[inline]
    pub fn tell_acks(&mut self, newest: &Ack, overtaken: Option<&(u64, Ack)>, fresh: u64) {
        if fresh == 0 {
            return self.controller.on_ack(&newest.as_duplicate());
        }
        for i in 0..fresh {
            let is_last = i + 1 == fresh;
            let ack = overtaken.filter(|o| i < o.0).map_or(newest, |o| &o.1);
            // Losses that this report reveals are already subtracted in every call.
            let feedback = if is_last { ack.feedback } else { Feedback::NONE };
            self.controller.on_ack(&Ack { feedback, ..ack.of_report(i, fresh) });
        }
    }

    /// Passes spurious losses to the controller, and undoes the episode if all its losses were spurious.
    #[inline]
    pub fn tell_spurious<L>(
        &mut self,
        now: Time,
        late: &LateArrivals,
        ledger: &PacketLedger<L>,
        path: &RoundTrip,
    ) {
        if late.is_empty() {
            return;
        }
        self.radio = self.radio.saturating_sub(late.radio);
        let gone = ledger.lost.gone();
        let undo = self.episode.as_mut().is_some_and(|e| e.take_back(late, gone));
        if undo {
            self.episode = None;
            // Losses found from now on begin a new episode.
            self.cut_at = ledger.least_unacked();
            self.end_recovery(now, ledger, path);
        }
        let spurious = SpuriousLosses { now, packets: late.packets, undo };
        self.controller.on_congestion_event(&CongestionEvent::SpuriousLosses(spurious));
    }
    fn end_recovery<L>(&mut self, now: Time, ledger: &PacketLedger<L>, path: &RoundTrip) {
        if std::mem::take(&mut self.repairing) {
            let repair = self.repair(now, ledger.packets_in_flight(), ledger, path);
            self.controller.on_congestion_event(&CongestionEvent::RecoveryEnd(repair));
        }
    }

    fn repair<L>(
        &self,
        now: Time,
        flight: u64,
        ledger: &PacketLedger<L>,
        path: &RoundTrip,
    ) -> RecoveryEvent {
        let flight = self.flight_size(flight);
        let outstanding = self.outstanding(ledger.packets_in_flight());
        let min_rtt = path.min_rtt();
        let srtt = self.srtt(path);
        let cause = RecoveryCause::Loss;
        RecoveryEvent { now, cause, flight, outstanding, min_rtt, srtt }
    }

    /// Ends a recovery if it is complete, passes losses, and begins a recovery or restarts slow start.
    #[inline]
    pub fn tell_losses<L>(
        &mut self,
        now: Time,
        found: &DetectedLosses,
        ledger: &PacketLedger<L>,
        path: &RoundTrip,
        counters: &mut Counters,
    ) -> Reaction {
        if ledger.least_unacked() >= self.cut_at {
            self.end_recovery(now, ledger, path);
        }
        let Some(sent) = found.first else { return Reaction::Nothing };
        self.radio += found.radio;
        let persistent = found.persistent && !self.own_timer;
        let found_by = match (persistent, found.by_clock) {
            (true, _) => LossFoundBy::Timeout,
            (_, true) => LossFoundBy::Clock,
            _ => LossFoundBy::Sack,
        };
        self.controller.on_congestion_event(&CongestionEvent::Losses(Loss {
            now,
            segments: found.count,
            sent,
            transmissions: 1,
            found_by,
            new_episode: persistent || found.new.is_some(),
            radio: found.radio,
        }));
        self.book_episode(found, persistent);
        let window = self.controller.send_limits().cwnd;
        let mut reaction = Reaction::Nothing;
        if persistent {
            reaction = Reaction::SlowStartRestart;
            self.repairing = false;
            self.cut_at = ledger.next_packet_number();
            self.controller.on_congestion_event(&CongestionEvent::SlowStartRestart(
                SlowStartRestart {
                    now,
                    flight: ledger.packets_in_flight() + found.count,
                    timeout: true,
                    backoffs: 1,
                    min_rtt: path.min_rtt(),
                    srtt: path.srtt(),
                },
            ));
        } else if let Some(first) = found.new {
            reaction = Reaction::RecoveryStart;
            counters.episodes += 1;
            self.repairing = true;
            // Includes the packet that leaves at once: a packet sent at the time of the reduction is in recovery by
            // section 7.3.2's comparison, too.
            self.cut_at = ledger.next_packet_number() + u64::from(!self.own_timer);
            let flight =
                (ledger.next_packet_number() - first).saturating_sub(ledger.not_in_flight());
            let repair = self.repair(now, flight, ledger, path);
            self.controller.on_congestion_event(&CongestionEvent::RecoveryStart(repair));
        } else if found.repair {
            reaction = Reaction::RecoveryStart;
        }
        if self.controller.send_limits().cwnd < window {
            self.marks_cut_at = ledger.next_packet_number();
        }
        reaction
    }

    fn book_episode(&mut self, found: &DetectedLosses, persistent: bool) {
        match (&mut self.episode, found.new.or(found.lowest.filter(|_| persistent))) {
            (episode, Some(_)) => {
                *episode = found.lowest.map(|first| LossEpisode::new(first, found.count));
            }
            (Some(episode), None) => episode.add(found.count),
            (None, None) => {}
        }
    }

    /// CE marks cause at most one reaction per window (RFC 3168 section 6.1.2): a packet sent after the last reduction
    /// must have been acknowledged.
    pub fn tell_marks<L>(
        &mut self,
        now: Time,
        marks: u32,
        ledger: &PacketLedger<L>,
        path: &RoundTrip,
        counters: &mut Counters,
    ) {
        if marks > 0 && ledger.reported() > self.marks_cut_at {
            let cause = RecoveryCause::EcnCe;
            let mark = RecoveryEvent {
                cause,
                ..self.repair(now, ledger.packets_in_flight(), ledger, path)
            };
            self.controller.on_congestion_event(&CongestionEvent::RecoveryStart(mark));
            self.controller.on_congestion_event(&CongestionEvent::RecoveryEnd(mark));
            counters.marks += 1;
            self.marks_cut_at = ledger.next_packet_number();
        }
    }
}
