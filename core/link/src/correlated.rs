//! Random numbers that depend on the one before, as Linux's netem has them.

use narrows_base::RandomStream;

/// Numbers in [0, 1): each is a share `rho` of the one before and 1 - `rho` of a new uniform one (netem's `get_crandom`).
/// They are less spread than uniform ones, so that a probability compared with them is not the share that results.
#[derive(Debug)]
pub(crate) struct Correlated {
    rho: f64,
    last: Option<f64>,
}

impl Correlated {
    pub fn new(rho: f64) -> Correlated {
        Correlated { rho, last: None }
    }
    #[inline]
    pub fn next(&mut self, stream: &mut RandomStream) -> f64 {
        let new = stream.unit();
        let value = self.last.map_or(new, |last| (1.0 - self.rho) * new + self.rho * last);
        self.last = Some(value);
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::RandomKey;

    #[test]
    fn successive_numbers_have_the_given_correlation() {
        for rho in [0.0, 0.25, 0.75] {
            let mut numbers = Correlated::new(rho);
            let mut stream = RandomKey::from_seed(3).stream();
            let all: Vec<f64> = (0..100_000).map(|_| numbers.next(&mut stream)).collect();
            let n = all.len() as f64;
            let mean = all.iter().sum::<f64>() / n;
            let around = |a: f64, b: f64| (a - mean) * (b - mean);
            let variance = all.iter().map(|x| around(*x, *x)).sum::<f64>() / n;
            let with_last = all.windows(2).map(|w| around(w[0], w[1])).sum::<f64>() / n;
            assert!((mean - 0.5).abs() < 0.01, "{rho}: {mean}");
            assert!((with_last / variance - rho).abs() < 0.01, "{rho}: {}", with_last / variance);
            // An autoregressive series of order 1.
            let expected = (1.0 - rho) / (1.0 + rho) / 12.0;
            assert!((variance / expected - 1.0).abs() < 0.03, "{rho}: {variance}");
        }
    }
}
