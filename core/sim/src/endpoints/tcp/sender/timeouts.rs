//! What the sender's timer does: the retransmission timeout, and with RACK the tail loss probe (RFC 8985 section 7) and
//! the reordering timer in its place.

use super::timer::{TailLossProbe, TimerPurpose};
use super::{TcpPhase, TcpSender};
use crate::endpoints::tcp::recovery::Acked;
use narrows_base::{Duration, Time};
use narrows_congestion::CongestionEvent;

/// Added to the two RTTs of a probe's timer: `LONE_SEGMENT` with one segment in flight, since its acknowledgement may
/// be delayed (Linux `TCP_RTO_MIN`), otherwise `LEAST`.
const LONE_SEGMENT: Duration = Duration::from_millis(200);
const LEAST: Duration = Duration::from_millis(2);

impl TcpSender {
    pub(super) fn on_timer(&mut self, now: Time) {
        match self.timer.purpose {
            TimerPurpose::Retransmission => self.on_rto(now),
            TimerPurpose::Probe => self.on_probe_timeout(now),
            TimerPurpose::Reordering => self.on_reorder_timeout(now),
        }
    }

    fn set_timer(&mut self, purpose: TimerPurpose, now: Time, after: Duration) {
        self.timer.set(purpose, now, after);
    }

    pub(super) fn arm_timer(&mut self, now: Time) {
        self.set_timer(TimerPurpose::Retransmission, now, self.rtt.rto(self.timer.backoffs));
    }

    /// The rest of the RTO since the oldest segment was sent.
    fn rest_of_rto(&self, now: Time) -> Duration {
        let sent = self.scoreboard.get(self.scoreboard.una).sent;
        let due = sent + self.rtt.rto(self.timer.backoffs);
        if due > now { due.since(now) } else { Duration::from_nanos(1) }
    }

    /// With RACK, outside recoveries, sets a probe timer of two RTTs if that comes before the timeout.
    pub(super) fn schedule_probe(&mut self, now: Time, max: Duration) -> bool {
        if !self.recovery.by_time()
            || !self.recovery.is_open()
            || self.scoreboard.una == self.scoreboard.max
        {
            return false;
        }
        let twice = self.rtt.srtt() + self.rtt.srtt();
        let alone = self.scoreboard.max - self.scoreboard.una == 1;
        let after = twice + if alone { LONE_SEGMENT } else { LEAST };
        self.set_timer(TimerPurpose::Probe, now, after.min(max));
        true
    }

    /// An acknowledgement advanced or delivered segments.
    pub(super) fn restart_timer(&mut self, now: Time) {
        if !self.schedule_probe(now, self.rtt.rto(self.timer.backoffs)) {
            self.arm_timer(now);
        }
    }

    /// New data was sent.
    pub(super) fn probe_after_new_data(&mut self, now: Time) {
        let is_probe = self.timer.probe.is_some_and(|p| p.end == self.scoreboard.max);
        let wanted = !is_probe
            && self.timer.purpose != TimerPurpose::Reordering
            && self.phase == TcpPhase::Established;
        if wanted && self.recovery.by_time() {
            self.schedule_probe(now, self.rest_of_rto(now));
        }
    }

    pub(super) fn set_reorder_timer(&mut self, now: Time, wait: Duration) {
        self.set_timer(TimerPurpose::Reordering, now, wait + LEAST);
    }

    fn on_probe_timeout(&mut self, now: Time) {
        if self.scoreboard.una == self.scoreboard.max {
            self.timer.due = Time::NEVER;
            return;
        }
        if self.timer.probe.is_some() {
            self.set_timer(TimerPurpose::Retransmission, now, self.rest_of_rto(now));
            return;
        }
        let is_new = self.available > 0 && self.flight() < self.limits.buffer.0;
        let seq = if is_new { self.scoreboard.max } else { self.scoreboard.max - 1 };
        self.forced = Some(seq);
        self.timer.probe = Some(TailLossProbe { end: seq + 1, repeats: !is_new });
        self.timer.purpose = TimerPurpose::Retransmission;
        self.arm_timer(now);
    }

    /// RFC 8985 section 7.4. `is_repeated`: the receiver reports the probe as a duplicate.
    pub(super) fn on_probe_ack(
        &mut self,
        now: Time,
        acked: u64,
        is_repeated: bool,
        is_pure_duplicate: bool,
    ) {
        let Some(probe) = self.timer.probe else { return };
        if acked < probe.end {
            return;
        }
        if !probe.repeats || is_repeated {
            self.timer.probe = None;
        } else if acked > probe.end {
            // The probe repaired a loss: the window is reduced as for any other loss.
            self.timer.probe = None;
            let loss = self.episode(now);
            self.controller.on_congestion_event(&CongestionEvent::RecoveryStart(loss));
            self.controller.on_congestion_event(&CongestionEvent::RecoveryEnd(loss));
        } else if is_pure_duplicate {
            self.timer.probe = None;
        }
    }

    fn on_reorder_timeout(&mut self, now: Time) {
        let min_rtt = self.path_min_rtt();
        let echo = Time::NEVER;
        let acked = Acked {
            now,
            newly_acked: 0,
            duplicate: false,
            echo,
            min_rtt,
            delivered: self.delivery.delivered(),
            prior_delivered: None,
            rtt: &self.rtt,
        };
        let outcome = self.recovery.on_reorder_timeout(&mut self.scoreboard, acked);
        let rest = self.rest_of_rto(now);
        self.set_timer(TimerPurpose::Retransmission, now, rest);
        if outcome.lost.is_some() || outcome.begins {
            self.tell_outcome(now, &outcome);
        }
        if outcome.begins {
            self.reduce(1, false);
        }
        if let Some(wait) = outcome.reorder_wait {
            self.set_reorder_timer(now, wait);
        }
    }

    /// Updates PRR in a fast recovery.
    pub(super) fn reduce(&mut self, delivered: u64, advances: bool) {
        let outstanding = self.outstanding();
        if let Some(reduction) = &mut self.reduction {
            reduction.on_ack(delivered, outstanding, advances);
        }
    }
}
