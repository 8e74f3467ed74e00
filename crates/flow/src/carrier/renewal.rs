//! Another path: what was measured of the old one does not count on it, and what is in flight there is not in
//! flight here (RFC 9000 section 9.4).

use super::delivery::Delivery;
use super::{Cargo, Carrier, Standing};
use crate::rtt::RtoConfig;
use narrows_base::{Duration, Time};
use narrows_control::Controller;

impl<C: Cargo> Carrier<C> {
    /// Packets take another path from now on, under a new controller. Those that are out stand aside: their
    /// cargo is told what becomes of them, the controller is not.
    pub fn renew(&mut self, now: Time, controller: Box<dyn Controller>, rto: &RtoConfig) {
        for p in &mut self.pending {
            if p.standing == Standing::Counted {
                p.standing = Standing::Former;
                self.aside += 1;
                self.former += u64::from(!p.arrived);
            }
        }
        self.in_flight = 0;
        self.own_timer = controller.keeps_own_timer();
        self.controller = controller;
        self.forget_rtt(rto);
        (self.path_start, self.path_since) = (self.next, now);
        self.delivery = Delivery::new();
        (self.largest, self.smallest, self.arrived) = (0, u16::MAX, 0);
        (self.cut_at, self.marks_cut_at) = (self.next, self.next);
        (self.round, self.round_end) = (0, self.next);
        (self.repairing, self.run) = (false, None);
        (self.window_limited, self.stalled, self.paced) = (false, false, None);
        self.arm(now);
    }

    /// The round-trip time that a report tells of this path: that of the packet that it echoes, if that one
    /// took it, else of the newest of those that it shows arrived. None if it tells of another path.
    #[inline]
    pub(super) fn rtt_of_this_path(
        &self,
        now: Time,
        highest: u64,
        told: Duration,
    ) -> Option<Duration> {
        if highest < self.path_start {
            None
        } else if now.since(self.path_since) >= told {
            Some(told)
        } else {
            self.delivery.newest_sent().map(|sent| now.since(sent))
        }
    }
}
