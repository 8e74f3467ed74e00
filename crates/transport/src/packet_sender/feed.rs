//! The controller's events and their order: `on_packet_outcome` for each packet, `on_ack` for each that arrived,
//! which brings its receiver side's feedback, then `on_congestion_event`: spurious losses, losses, then a recovery's end or start or
//! a restart, then marks.

use super::delivery::{Delivery, Stamp};
use super::ledger::{PacketLedger, ResolvedPacket};
use super::losses::Found;
use super::reports::MARKS;
use super::round_trip::RoundTrip;
use super::spurious::{Episode, LateArrivals};
use crate::simulated::Counters;
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{
    Ack, CongestionEvent, Controller, Dispersion, Feedback, Loss, LossFoundBy, PacketOutcome,
    PathEvent, PathHints, RecoveryCause, RecoveryEvent, SendLimits, Sent, SlowStartRestart,
    SpuriousLosses,
};

/// What losses ask for beside what the controller is told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reaction {
    Nothing,
    /// A packet leaves at once: a recovery's first.
    RecoveryEvent,
    /// The window begins anew.
    SlowStartRestart,
}

/// The feed to the controller.
pub(super) struct CcFeed {
    controller: Box<dyn Controller>,
    own_timer: bool,
    /// What the controller takes a byte for: its full packets' bytes per real full packet's.
    scale: f64,
    /// Bits of the controller's full packets, where known.
    full_bits: f64,
    delivery: Delivery,
    window_limited: bool,
    round: u64,
    round_end: u64,
    /// Marked packets that reports told of.
    marks: u32,
    /// Next number when the window was last reduced, by losses and by marks.
    cut_at: u64,
    marks_cut_at: u64,
    repairing: bool,
    episode: Option<Episode>,
    radio: u64,
    /// How long reports wait on the way back, and packets that are in flight for that only: neither is the
    /// controller's.
    unreported: (Duration, u64),
}

impl CcFeed {
    pub fn new(controller: Box<dyn Controller>) -> CcFeed {
        CcFeed {
            own_timer: controller.requirements().own_timer,
            controller,
            scale: 1.0,
            full_bits: 0.0,
            delivery: Delivery::new(),
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
    /// Another path, under a new controller; `next` is the next number.
    pub fn renew(&mut self, controller: Box<dyn Controller>, next: u64) {
        self.own_timer = controller.requirements().own_timer;
        self.controller = controller;
        self.delivery = Delivery::new();
        (self.cut_at, self.marks_cut_at) = (next, next);
        (self.round, self.round_end) = (0, next);
        (self.repairing, self.window_limited, self.episode) = (false, false, None);
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

    /// A full packet has so many bytes, while the controller was built for `nominal`.
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
    /// Real bytes as the controller counts them.
    #[inline]
    pub fn scaled(&self, bytes: u32) -> u32 {
        if self.scale == 1.0 { bytes } else { (f64::from(bytes) * self.scale) as u32 }
    }
    /// The controller's rate in real bytes.
    #[inline]
    pub fn real(&self, rate: Rate) -> Rate {
        Rate::from_bps_f64(rate.as_bps() as f64 / self.scale)
    }
    /// What it allows, as it counts.
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

    /// A packet leaves: what it remembers of this moment; `is_first` if nothing else is in flight.
    #[inline]
    pub fn stamp_sent(&mut self, now: Time, is_first: bool) -> Stamp {
        self.delivery.sent(now, is_first)
    }
    /// The present moment, for a packet that is not in flight.
    #[inline]
    pub fn stamp(&self) -> Stamp {
        self.delivery.stamp()
    }
    #[inline]
    pub fn on_sent(&mut self, sent: &Sent) {
        self.controller.on_sent(sent);
    }
    /// The window, and nothing else, keeps packets back.
    #[inline]
    pub fn on_window_full(&mut self) {
        self.window_limited = true;
    }
    /// Packets could leave, and there are none.
    #[inline]
    pub fn on_nothing_to_send(&mut self, in_flight: u64) {
        self.delivery.nothing_to_send(in_flight);
        self.window_limited = false;
    }
    /// What keeps packets back is no property of the path: no sample of it.
    #[inline]
    pub fn on_held_back(&mut self, in_flight: u64) {
        self.delivery.nothing_to_send(in_flight);
    }

    /// A counted packet arrived, as a report of now says.
    #[inline]
    pub fn on_arrived(&mut self, now: Time, sent: Time, stamp: &Stamp) {
        self.delivery.arrived(now, sent, stamp);
    }
    /// One that counted as lost did.
    pub fn on_late(&mut self, now: Time) {
        self.delivery.arrived_late(now);
    }
    /// No late packet of a report yet.
    #[inline]
    pub fn none_late(&self) -> LateArrivals {
        LateArrivals::none(self.episode.as_ref())
    }
    /// When the newest packet left that the report being read shows delivered.
    pub fn newest_sent(&self) -> Option<Time> {
        self.delivery.newest_sent()
    }
    /// Marked packets that a report tells of for the first time, of `fresh` that arrived.
    #[inline]
    pub fn new_marks(&mut self, marks: u32, fresh: u64) -> u32 {
        let new = marks.wrapping_sub(self.marks) % MARKS;
        if new == 0 || new >= MARKS / 2 {
            return 0; // Nothing new, or a report that was overtaken.
        }
        self.marks = marks;
        new.min(u32::try_from(fresh).unwrap_or(u32::MAX))
    }
    /// Reports wait so long on the way back, and so many packets are in flight for that only.
    #[inline]
    pub fn on_unreported(&mut self, wait: Duration, packets: f64) {
        // RFC 5348 and its kin are defined by the whole round trip.
        if !self.own_timer {
            // A float's cast saturates.
            self.unreported = (wait, packets as u64);
        }
    }
    /// Packets in flight beyond the controller's window.
    #[inline]
    pub fn unreported(&self) -> u64 {
        self.unreported.1
    }
    /// A round-trip time without the wait of reports.
    #[inline]
    pub fn without_wait(&self, rtt: Duration, wait: Duration, path: &RoundTrip) -> Duration {
        if self.own_timer || wait == Duration::ZERO {
            return rtt;
        }
        (rtt - rtt.min(wait)).max(path.min().min(rtt))
    }
    /// … the smoothed one.
    #[inline]
    pub fn srtt(&self, path: &RoundTrip) -> Duration {
        self.without_wait(path.srtt(), self.unreported.0, path)
    }
    /// Of packets in flight, those that are the controller's.
    #[inline]
    fn outstanding(&self, packets: u64) -> u64 {
        packets.saturating_sub(self.unreported.1)
    }
    /// FlightSize, of which a loss leaves a part: no less than the window where that is full.
    #[inline]
    fn flight_size(&self, packets: u64) -> u64 {
        if self.unreported.1 == 0 {
            return packets;
        }
        // A float's cast saturates.
        let window = self.controller.send_limits().cwnd as u64;
        self.outstanding(packets).max(packets.min(window))
    }

    /// A report names numbers below `end`: whether it begins a round.
    #[inline]
    pub fn begin_round(&mut self, end: u64, next: u64) -> bool {
        let is_start = end > self.round_end;
        if is_start {
            self.round += 1;
            self.round_end = next;
        }
        is_start
    }

    /// Books a loss, where a counted packet's outcome is one.
    #[inline]
    pub fn book_loss<L>(&self, outcome: &ResolvedPacket<L>, found: &mut Found) {
        let (seq, p) = (outcome.seq, &outcome.packet);
        found.count += 1;
        found.radio += u64::from(p.radio);
        found.first.get_or_insert(p.sent);
        found.lowest.get_or_insert(seq);
        if seq >= self.cut_at {
            found.new.get_or_insert(seq);
        }
        found.repair |= self.repairing && seq + 1 == self.cut_at;
    }
    /// A counted packet's outcome.
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

    /// The acknowledgement of a report, to be told for each packet that it shows arrived; `reported` is the
    /// round-trip time, whether a round begins, and new marks.
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
            rtt_unambiguous: true,
            srtt: self.srtt(path),
            rttvar: path.estimator().rttvar(),
            min_rtt: path.min(),
            arrived: None,
            forward_delay: None,
            newly_acked: 1,
            counted: 1,
            newly_sacked: 0,
            newly_delivered: 1,
            duplicate: false,
            sent_since,
            flight: self.flight_size(ledger.in_flight()),
            outstanding: self.outstanding(ledger.in_flight()),
            prior_outstanding: self.outstanding(prior_outstanding),
            window_limited: self.window_limited,
            in_recovery: self.repairing,
            round: self.round,
            round_start,
            marks,
            rate: self.delivery.sample(now, path.min()),
            feedback,
        }
    }
    /// One `on_ack` for each packet that arrived; a report without news is a duplicate. The last one brings the
    /// receiver side's feedback.
    #[inline]
    pub fn tell_acks(&mut self, ack: &Ack, fresh: u64) {
        if fresh == 0 {
            let ack =
                Ack { newly_acked: 0, counted: 0, newly_delivered: 0, duplicate: true, ..*ack };
            self.controller.on_ack(&ack);
            return;
        }
        for i in 0..fresh {
            let (later, is_last) = (i > 0, i + 1 == fresh);
            self.controller.on_ack(&Ack {
                // The losses that the report reveals are taken off for all.
                outstanding: ack.outstanding + (fresh - 1 - i),
                flight: ack.flight + (fresh - 1 - i),
                prior_outstanding: ack.prior_outstanding.saturating_sub(i),
                round_start: ack.round_start && !later,
                marks: if later { 0 } else { ack.marks },
                feedback: if is_last { ack.feedback } else { Feedback::NONE },
                ..*ack
            });
        }
    }

    /// Losses that a report takes back, and what they had begun, if none of its losses is left.
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
            // What is found lost from now on is an episode of its own.
            self.cut_at = ledger.least_unacked();
            self.end_recovery(now, ledger, path);
        }
        let spurious = SpuriousLosses { now, packets: late.packets, undo };
        self.controller.on_congestion_event(&CongestionEvent::SpuriousLosses(spurious));
    }
    fn end_recovery<L>(&mut self, now: Time, ledger: &PacketLedger<L>, path: &RoundTrip) {
        if std::mem::take(&mut self.repairing) {
            let repair = self.repair(now, ledger.in_flight(), ledger, path);
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
        let outstanding = self.outstanding(ledger.in_flight());
        let (min_rtt, srtt, cause) = (path.min(), self.srtt(path), RecoveryCause::Loss);
        RecoveryEvent { now, cause, flight, outstanding, min_rtt, srtt }
    }

    /// A recovery's end, losses, and what they begin.
    #[inline]
    pub fn tell_losses<L>(
        &mut self,
        now: Time,
        found: &Found,
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
            self.cut_at = ledger.next();
            self.controller.on_congestion_event(&CongestionEvent::SlowStartRestart(
                SlowStartRestart {
                    now,
                    flight: ledger.in_flight() + found.count,
                    timeout: true,
                    backoffs: 1,
                    min_rtt: path.min(),
                    srtt: path.srtt(),
                },
            ));
        } else if let Some(first) = found.new {
            reaction = Reaction::RecoveryEvent;
            counters.episodes += 1;
            self.repairing = true;
            // With the packet that leaves at once: a packet sent at the time of the reduction is in
            // recovery by 7.3.2's comparison, too.
            self.cut_at = ledger.next() + u64::from(!self.own_timer);
            let flight = (ledger.next() - first).saturating_sub(ledger.not_in_flight());
            let repair = self.repair(now, flight, ledger, path);
            self.controller.on_congestion_event(&CongestionEvent::RecoveryStart(repair));
        } else if found.repair {
            reaction = Reaction::RecoveryEvent;
        }
        if self.controller.send_limits().cwnd < window {
            self.marks_cut_at = ledger.next();
        }
        reaction
    }

    fn book_episode(&mut self, found: &Found, persistent: bool) {
        match (&mut self.episode, found.new.or(found.lowest.filter(|_| persistent))) {
            (episode, Some(_)) => {
                *episode = found.lowest.map(|first| Episode::new(first, found.count));
            }
            (Some(episode), None) => episode.add(found.count),
            (None, None) => {}
        }
    }

    /// Routers' marks: at most one reaction per window (RFC 3168 section 6.1.2). A packet sent
    /// after the last reduction must have arrived.
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
            let mark =
                RecoveryEvent { cause, ..self.repair(now, ledger.in_flight(), ledger, path) };
            self.controller.on_congestion_event(&CongestionEvent::RecoveryStart(mark));
            self.controller.on_congestion_event(&CongestionEvent::RecoveryEnd(mark));
            counters.marks += 1;
            self.marks_cut_at = ledger.next();
        }
    }
}
