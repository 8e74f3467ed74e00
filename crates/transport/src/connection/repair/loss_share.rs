//! The share of the latest packets that were lost.

/// Fewer packets say nothing.
const ENOUGH: f64 = 128.0;
/// Packets that are judged at most; then all counts are halved.
const MOST: f64 = 512.0;

/// The share of the latest 256 to 512 packets that were lost.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct LossShare {
    lost: f64,
    all: f64,
}

impl LossShare {
    /// So many more packets, and lost ones among them; fewer lost ones if some were late.
    pub fn add(&mut self, lost: f64, all: f64) {
        self.lost = (self.lost + lost).max(0.0);
        self.all += all;
        if self.all > MOST {
            let scale = 0.5 * MOST / self.all;
            (self.lost, self.all) = (self.lost * scale, self.all * scale);
        }
    }
    /// The share, 0 while too few are known.
    pub fn share(&self) -> f64 {
        if self.all < ENOUGH { 0.0 } else { (self.lost / self.all).min(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_the_latest_packets_and_says_nothing_of_few() {
        let mut share = LossShare::default();
        share.add(10.0, 100.0);
        assert_eq!(share.share(), 0.0);
        share.add(10.0, 100.0);
        assert_eq!(share.share(), 0.1);
        // Half of them were late.
        share.add(-10.0, 0.0);
        assert_eq!(share.share(), 0.05);
        share.add(-100.0, 0.0);
        assert_eq!(share.share(), 0.0);
        (0..2000).for_each(|n| share.add(f64::from(n % 5 == 0), 1.0));
        assert!((share.share() - 0.2).abs() < 0.005, "{share:?}");
        // Of what is older than 512 packets half is forgotten with each 256.
        (0..1280).for_each(|_| share.add(0.0, 1.0));
        assert!(share.share() < 0.2 / 8.0, "{share:?}");
    }
}
