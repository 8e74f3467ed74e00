//! What a loss classifier gets and returns.

use narrows_base::Time;

/// A packet that arrived, and the gap below it.
#[derive(Clone, Copy, Debug)]
pub struct ArrivalWithGap {
    /// When it arrived, by the receiver's clock.
    pub now: Time,
    /// When it was sent, by the sender's clock: only differences are meaningful.
    pub sent: Time,
    /// Number of packets missing between it and the highest number that had arrived before: 0 if there is no gap, or if
    /// the packet itself is late.
    pub missing: u64,
}

impl ArrivalWithGap {
    /// Relative one-way trip time in seconds, which includes the unknown offset of the two clocks.
    pub fn rott(&self) -> f64 {
        let now = self.now.as_nanos();
        let sent = self.sent.as_nanos();
        if now >= sent { (now - sent) as f64 * 1e-9 } else { (sent - now) as f64 * -1e-9 }
    }
}

/// Distinguishes radio losses from congestion.
pub trait LossClassifier: Send {
    /// A packet arrived; calls are in order of arrival. Returns whether the missing packets were lost by the radio
    /// link; if no packets are missing, the result is meaningless.
    fn on_arrival(&mut self, arrival: &ArrivalWithGap) -> bool;
}
