//! Weights of paths: a path carries at most its weight's part of what the heaviest path carries.

use crate::path::{PathState, usable};

/// A path is at most so many bytes ahead of its part or behind it: the initial window of RFC 6928 and some reports' worth
/// of packets, so that it neither stands still for long after it was alone nor sends a burst after it was silent.
const MAX_AHEAD: f64 = 64_000.0;

/// A path's weight in percent of the heaviest path's, 1 to 100.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct PathWeight(u8);

impl Default for PathWeight {
    fn default() -> PathWeight {
        PathWeight(100)
    }
}

impl PathWeight {
    /// `None` beyond 1 to 100.
    pub fn from_percent(percent: u8) -> Option<PathWeight> {
        (1..=100).contains(&percent).then_some(PathWeight(percent))
    }
    /// 1 to 100.
    pub fn percent(self) -> u8 {
        self.0
    }
    /// 0.01 to 1, for [`PathState::weight`].
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

/// How far paths are ahead of their part. For each piece of data that leaves, call [`on_sent`](WeightLimits::on_sent);
/// a path that [`is_ahead`](WeightLimits::is_ahead) should carry no more for the present.
#[derive(Debug, Default)]
pub struct WeightLimits {
    /// By path, in bytes.
    ahead: Vec<f64>,
}

/// The highest weight of the usable paths, and the number of paths that have it.
fn heaviest(paths: &[PathState]) -> (f64, usize) {
    let weights = || usable(paths).map(|(_, path)| path.weight());
    let most = weights().fold(0.0, f64::max);
    (most, weights().filter(|weight| *weight >= most).count())
}

impl WeightLimits {
    /// Data of so many bytes leave on the path with this index.
    pub fn on_sent(&mut self, path: usize, bytes: u32, paths: &[PathState]) {
        let (most, count) = heaviest(paths);
        self.ahead.resize(paths.len(), 0.0);
        let is_heaviest = paths.get(path).is_some_and(|path| path.weight() >= most);
        for (index, (ahead, state)) in self.ahead.iter_mut().zip(paths).enumerate() {
            if is_heaviest && state.weight() < most {
                *ahead -= f64::from(bytes) * state.weight() / most / count as f64;
            } else if index == path && !is_heaviest {
                *ahead += f64::from(bytes);
            }
            *ahead = ahead.clamp(-MAX_AHEAD, MAX_AHEAD);
        }
    }
    /// Whether a path has carried more than its part. The heaviest usable one never has.
    pub fn is_ahead(&self, path: usize, paths: &[PathState]) -> bool {
        let is_lighter = paths.get(path).is_some_and(|state| state.weight() < heaviest(paths).0);
        is_lighter && self.ahead.get(path).is_some_and(|ahead| *ahead > 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path::PathStatus;

    fn with_weights(weights: &[f64]) -> Vec<PathState> {
        weights.iter().map(|weight| PathState { weight: *weight, ..PathState::default() }).collect()
    }

    /// Sends on the last path that is not ahead, and returns the bytes of each.
    fn carried(paths: &[PathState], packets: usize) -> Vec<u32> {
        let mut parts = WeightLimits::default();
        let mut carried = vec![0; paths.len()];
        for _ in 0..packets {
            let path = (0..paths.len()).rev().find(|path| !parts.is_ahead(*path, paths)).unwrap();
            parts.on_sent(path, 1000, paths);
            carried[path] += 1000;
        }
        carried
    }

    #[test]
    fn lighter_path_carries_its_part_of_the_heaviest() {
        assert_eq!(carried(&with_weights(&[1.0, 0.25]), 5000)[1], 1_000_000);
        let three = carried(&with_weights(&[1.0, 1.0, 0.5]), 3000);
        assert!(three[0] == 0 && three[2] < 800_000, "{three:?}");
    }

    #[test]
    fn equal_weights_limit_no_path() {
        assert_eq!(carried(&with_weights(&[0.3, 0.3]), 10), [0, 10_000]);
    }

    #[test]
    fn lightest_path_alone_carries_all() {
        let mut paths = with_weights(&[1.0, 0.01]);
        paths[0].status = PathStatus::Unusable;
        assert_eq!(carried(&paths, 500)[1], 500_000);
    }
}
