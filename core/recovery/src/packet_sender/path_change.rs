//! Change of path: measurements of the old path are dropped, and packets in flight there do not count as in flight on
//! the new one (RFC 9000 section 9.4).

use super::return_path::ReturnPath;
use super::round_trip::RoundTrip;
use super::{PacketSender, PayloadSource};
use crate::rtt::RtoConfig;
use narrows_base::{Duration, Time};
use narrows_congestion::Controller;

impl<P: Default> PacketSender<P> {
    /// Packets take another path from now on, under a new controller. Packets sent before are no longer in flight: the
    /// payload source still gets their outcomes, the controller does not.
    pub fn renew(
        &mut self,
        now: Time,
        source: &impl PayloadSource<Payload = P>,
        controller: Box<dyn Controller>,
        rto: &RtoConfig,
    ) {
        self.ledger.renew(now);
        self.feed.renew(controller, self.ledger.next_packet_number());
        self.path = RoundTrip::new(rto);
        *self.return_path = ReturnPath::new();
        self.loss.renew();
        self.loss.on_spacing(Duration::ZERO);
        self.limiter.restart();
        self.pacer.renew();
        self.arm(now, source);
    }
}
