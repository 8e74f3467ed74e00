//! Whether the next packet may leave: cwnd, the pacer and the limiter.

use super::limiter::LimiterDecision;
use super::pacer::PacingInputs;
use super::{Force, MAX_SENT_PACKETS, PacketSender};
use narrows_base::{Rate, Time};
use narrows_congestion::SendLimits;

/// Whether a packet may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// It may leave now. The caller calls [`PacketSender::sent`] at the same moment, or
    /// [`PacketSender::nothing_to_send`].
    Now,
    /// The pacer does not permit it before this time.
    Paced(Time),
    /// The window is full, or the limiter's credit is used up: it must wait until a packet is received.
    WindowFull,
}

impl<P: Default> PacketSender<P> {
    /// Limits the pacing rate, regardless of the controller; `None` removes the limit.
    pub fn limit_rate(&mut self, most: Option<Rate>) {
        self.pacer.limit_rate(most);
    }
    /// The controller's limits, in bytes on the wire. [`limit_rate`](PacketSender::limit_rate) is not applied.
    pub fn send_limits(&self) -> SendLimits {
        let a = self.feed.send_limits();
        SendLimits { pacing_rate: a.pacing_rate.map(|r| self.feed.real(r)), ..a }
    }
    #[inline]
    pub(super) fn progress(&self) -> PacingInputs {
        PacingInputs { srtt: self.feed.srtt(&self.path), arrived: self.ledger.arrived() }
    }
    /// The pacing rate, if there is one.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate(&self.feed, self.progress())
    }
    /// Whether the pacer only spreads what the window permits, since no rate is set: neither by the controller nor by
    /// [`limit_rate`](PacketSender::limit_rate).
    pub fn spreads_window(&self) -> bool {
        !self.pacer.is_limited() && self.feed.send_limits().pacing_rate.is_none()
    }
    /// When the pacer permits the next packet; `None` before the first one or without a rate.
    #[inline]
    pub fn next_pace(&self) -> Option<Time> {
        let send_limits = self.pacer.send_limits(&self.feed, self.progress());
        self.pacer.until(send_limits.pacing_rate, self.feed.scale()).map(|p| p.0)
    }

    /// Whether the next packet may leave now.
    #[inline]
    pub fn permission(&mut self, now: Time) -> Permission {
        let in_flight = self.ledger.packets_in_flight();
        let send_limits = self.pacer.send_limits(&self.feed, self.progress());
        let paced = self.pacer.until(send_limits.pacing_rate, self.feed.scale());
        let (due, ours) = paced.unwrap_or((now, false));
        if due > now {
            if ours {
                // The controller's rate is not the limit, so this is no sample of the path.
                self.feed.on_held_back(in_flight);
            }
            if !self.force.overrules_pacer() {
                return Permission::Paced(due);
            }
        }
        // A float's cast saturates: an infinite window is u64::MAX, so the limit on packet records applies. Packets
        // that have arrived but are not reported yet do not count.
        let window = (send_limits.cwnd as u64).saturating_add(self.feed.unreported());
        if in_flight >= window.min(MAX_SENT_PACKETS as u64) && self.force == Force::Nothing {
            self.feed.on_window_full();
            self.pacer.stall();
            return Permission::WindowFull;
        }
        if self.force == Force::Nothing && in_flight > 0 {
            let decision = self.limiter.decision(now);
            if decision != LimiterDecision::Free {
                // The limiter held packets back, so this is no sample of the path.
                self.feed.on_held_back(in_flight);
                self.pacer.stall();
                return match decision {
                    LimiterDecision::Until(due) => Permission::Paced(due),
                    LimiterDecision::Acknowledgement | LimiterDecision::Free => {
                        Permission::WindowFull
                    }
                };
            }
        }
        self.pacer.permit(now, due);
        Permission::Now
    }

    /// Permission was given, but there is no packet to send.
    #[inline]
    pub fn nothing_to_send(&mut self) {
        self.feed.on_nothing_to_send(self.ledger.packets_in_flight());
        self.force = Force::Nothing;
        self.further_probes = 0;
    }
}
