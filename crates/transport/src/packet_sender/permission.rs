//! Whether the next packet may leave: cwnd, the pacer and the limiter.

use super::limiter::LimiterDecision;
use super::pacer::Progress;
use super::{Force, MAX_SENT_PACKETS, PacketSender, PayloadSource};
use narrows_base::{Rate, Time};
use narrows_congestion::SendLimits;

/// Whether a packet may leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// Now. Either [`PacketSender::sent`] follows at the same moment, or
    /// [`PacketSender::nothing_to_send`].
    Now,
    /// The pacer says: not before this time.
    Paced(Time),
    /// The window is full, or as much left as what arrived permits: not before something is received.
    WindowFull,
}

impl<C: PayloadSource> PacketSender<C> {
    /// Never faster than this, whatever the controller says.
    pub fn limit_rate(&mut self, most: Option<Rate>) {
        self.pacer.limit_rate(most);
    }
    /// What the controller allows, in real bytes; its own limit on the rate is not in it.
    pub fn send_limits(&self) -> SendLimits {
        let a = self.feed.send_limits();
        SendLimits { pacing_rate: a.pacing_rate.map(|r| self.feed.real(r)), ..a }
    }
    #[inline]
    pub(super) fn progress(&self) -> Progress {
        Progress { srtt: self.feed.srtt(&self.path), arrived: self.ledger.arrived() }
    }
    /// The rate at which packets leave, if any is set.
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.pacer.rate(&self.feed, self.progress())
    }
    /// When the pacer lets the next packet go, if there is one.
    #[inline]
    pub fn next_pace(&self) -> Option<Time> {
        let send_limits = self.pacer.send_limits(&self.feed, self.progress());
        self.pacer.until(send_limits.pacing_rate, self.feed.scale()).map(|p| p.0)
    }

    /// Whether the next packet may leave now.
    #[inline]
    pub fn permission(&mut self, now: Time) -> Permission {
        let in_flight = self.ledger.in_flight();
        let send_limits = self.pacer.send_limits(&self.feed, self.progress());
        let paced = self.pacer.until(send_limits.pacing_rate, self.feed.scale());
        let (due, ours) = paced.unwrap_or((now, false));
        if due > now {
            if ours {
                // The path would carry more.
                self.feed.on_held_back(in_flight);
            }
            if !self.force.overrules_pacer() {
                return Permission::Paced(due);
            }
        }
        // A float's cast saturates: an infinite window is u64::MAX, and what is remembered of packets on
        // their way limits.
        // What has arrived and is not reported does not count.
        let window = (send_limits.cwnd as u64).saturating_add(self.feed.unreported());
        if in_flight >= window.min(MAX_SENT_PACKETS as u64) && self.force == Force::Nothing {
            self.feed.on_window_full();
            self.pacer.stall();
            return Permission::WindowFull;
        }
        if self.force == Force::Nothing && in_flight > 0 {
            let decision = self.limiter.decision(now);
            if decision != LimiterDecision::Free {
                // What the path carries is not known.
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

    /// Permission was given and there is nothing to send.
    #[inline]
    pub fn nothing_to_send(&mut self) {
        self.feed.on_nothing_to_send(self.ledger.in_flight());
        (self.force, self.second_probe) = (Force::Nothing, false);
    }
}
