//! Proportional rate reduction (RFC 9937): how the window is reduced in a fast recovery.
//!
//! The controller sets its new window at once. Until the recovery ends, PRR limits sending so that the outstanding
//! segments decrease to it in proportion to the delivered ones. Without PRR there would be a pause of half a round trip
//! and then a burst.

/// One fast recovery's reduction. Controllers that limit themselves (BBR) do not use it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reduction {
    /// Window before the recovery (RecoverFS), and the controller's new window.
    before: u64,
    target: u64,
    delivered: u64,
    sent: u64,
    window: u64,
}

impl Reduction {
    pub fn new(before: f64, target: f64, outstanding: u64) -> Reduction {
        // A float's cast saturates.
        let before = (before as u64).max(1);
        let target = target as u64;
        Reduction { before, target, delivered: 0, sent: 0, window: outstanding }
    }

    /// Limit on outstanding segments at present.
    pub fn window(&self) -> u64 {
        self.window
    }

    /// A segment was sent.
    pub fn on_sent(&mut self) {
        self.sent += 1;
    }

    /// An acknowledgement delivers `delivered` segments; `advances` if the cumulative one advances without a new loss.
    pub fn on_ack(&mut self, delivered: u64, outstanding: u64, advances: bool) {
        if delivered == 0 {
            return;
        }
        self.delivered += delivered;
        let may = if outstanding > self.target {
            let share = u128::from(self.target) * u128::from(self.delivered);
            let share = share.div_ceil(u128::from(self.before));
            u64::try_from(share).unwrap_or(u64::MAX).saturating_sub(self.sent)
        } else {
            // Slow start back to the target: SafeACK of RFC 9937.
            let behind = self.delivered.saturating_sub(self.sent).max(delivered);
            (behind + u64::from(advances)).min(self.target - outstanding)
        };
        // The first retransmission is always permitted.
        self.window = outstanding + may.max(u64::from(self.sent == 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9937 section 6: of a window of 20 that is to be halved, one segment leaves for every two that arrive.
    #[test]
    fn outstanding_packets_fall_in_proportion() {
        let mut r = Reduction::new(20.0, 10.0, 19);
        let mut outstanding = 19;
        let mut sent = 0;
        for _ in 0..16 {
            outstanding -= 1;
            r.on_ack(1, outstanding, false);
            while outstanding < r.window() {
                outstanding += 1;
                sent += 1;
                r.on_sent();
            }
        }
        assert_eq!((sent, outstanding), (8, 11));
    }

    #[test]
    fn below_the_target_it_grows_back_no_further() {
        let mut r = Reduction::new(20.0, 10.0, 4);
        r.on_ack(1, 3, true);
        assert_eq!(r.window(), 5, "one delivered, and one more for the advance");
        r.on_ack(9, 3, true);
        assert_eq!(r.window(), 10);
    }
}
