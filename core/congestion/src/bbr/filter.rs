//! The largest sample of the last rounds, in constant space (Nichols 2012, as Linux `win_minmax`).

/// Keeps the best sample and two younger ones to fall back on: approximately the second best of the
/// last three quarters of the window and the third best of its last half.
#[derive(Clone, Debug)]
pub struct WindowedMax {
    window: u64,
    /// (round, value): values descending, rounds ascending.
    best: [(u64, f64); 3],
}

impl WindowedMax {
    /// A maximum over this many rounds.
    pub fn new(window: u64) -> WindowedMax {
        WindowedMax { window, best: [(0, 0.0); 3] }
    }

    pub fn get(&self) -> f64 {
        self.best[0].1
    }

    pub fn update(&mut self, round: u64, value: f64) {
        let new = (round, value);
        if value >= self.best[0].1 || round.saturating_sub(self.best[2].0) > self.window {
            // The new value is the largest, or all values are outside of the window.
            self.best = [new; 3];
            return;
        }
        if value >= self.best[1].1 {
            self.best[1] = new;
            self.best[2] = new;
        } else if value >= self.best[2].1 {
            self.best[2] = new;
        }
        // The best has left the window: the second and third best move up.
        if round.saturating_sub(self.best[0].0) > self.window {
            self.best = [self.best[1], self.best[2], new];
            if round.saturating_sub(self.best[0].0) > self.window {
                self.best = [self.best[1], self.best[2], new];
            }
        } else if self.best[1].0 == self.best[0].0 && round - self.best[1].0 > self.window / 4 {
            // There is no second best after a quarter of the window: use this value.
            self.best[1] = new;
            self.best[2] = new;
        } else if self.best[2].0 == self.best[1].0 && round - self.best[2].0 > self.window / 2 {
            self.best[2] = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_maximum_lasts_for_the_window_and_no_longer() {
        let mut max = WindowedMax::new(10);
        for round in 0..40_u64 {
            max.update(round, if round == 5 { 100.0 } else { 50.0 + round as f64 });
            let want = if (5..=15).contains(&round) { 100.0 } else { 50.0 + round as f64 };
            assert_eq!(max.get(), want, "round {round}");
        }
    }

    #[test]
    fn falling_samples_are_followed_within_a_window() {
        let mut max = WindowedMax::new(10);
        for round in 0..100_u64 {
            max.update(round, 1000.0 - round as f64);
            let exact = 1000.0 - round.saturating_sub(10) as f64;
            assert!(
                max.get() <= exact && max.get() >= exact - 10.0,
                "round {round}: {}",
                max.get()
            );
        }
    }
}
