//! The loss rate among recent packets.

/// With fewer packets the share is 0.
const ENOUGH: f64 = 128.0;
/// When the counts exceed this number of packets, they are scaled to half of it.
const MOST: f64 = 512.0;

/// The loss rate among the latest 256 to 512 packets.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LossShare {
    lost: f64,
    all: f64,
}

impl LossShare {
    /// Adds packets, and the losses among them. `lost` is negative if packets arrived late.
    pub fn add(&mut self, lost: f64, all: f64) {
        self.lost = (self.lost + lost).max(0.0);
        self.all += all;
        if self.all > MOST {
            let scale = 0.5 * MOST / self.all;
            self.lost *= scale;
            self.all *= scale;
        }
    }
    /// The loss rate, from 0 to 1; 0 while there are too few packets.
    pub fn share(&self) -> f64 {
        if self.all < ENOUGH { 0.0 } else { (self.lost / self.all).min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loss_share_follows_recent_packets_and_needs_enough() {
        let mut share = LossShare::default();
        share.add(10.0, 100.0);
        assert_eq!(share.share(), 0.0);
        share.add(10.0, 100.0);
        assert_eq!(share.share(), 0.1);
        // Half of the losses arrived late.
        share.add(-10.0, 0.0);
        assert_eq!(share.share(), 0.05);
        share.add(-100.0, 0.0);
        assert_eq!(share.share(), 0.0);
        (0..2000).for_each(|n| share.add(f64::from(n % 5 == 0), 1.0));
        assert!((share.share() - 0.2).abs() < 0.005, "{share:?}");
        // Every 256 packets halve the weight of older ones.
        (0..1280).for_each(|_| share.add(0.0, 1.0));
        assert!(share.share() < 0.2 / 8.0, "{share:?}");
    }
}
