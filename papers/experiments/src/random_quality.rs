//! Randomness of the numbers of the ST-PD thesis's link emulator (section 5.3.3), and of the simulator's.

use narrows_base::random::RandomKey;

/// Which numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Generator {
    /// LCG(16807, 0, 2^31 - 1, 1) of the ST-PD thesis, equation 5.2: a multiplicative generator, divided by its
    /// modulus.
    Lcg,
    /// The generator of uniform losses: SplitMix64's mixer over a counter.
    Ours,
}

const MULTIPLIER: u64 = 16_807;
const MODULUS: u64 = (1 << 31) - 1;

impl Generator {
    /// Its numbers in [0, 1), from the seed 1.
    pub fn numbers(self) -> Box<dyn Iterator<Item = f64>> {
        match self {
            Generator::Lcg => {
                let next = |x: &u64| Some(x * MULTIPLIER % MODULUS);
                let all = std::iter::successors(Some(1), next);
                Box::new(all.map(|x| x as f64 / MODULUS as f64))
            }
            Generator::Ours => {
                let key = RandomKey::from_seed(1).named("quality");
                Box::new((0..).map(move |n| key.draw(n)))
            }
        }
    }
}

/// Mean of the first `n` numbers.
pub fn mean(of: Generator, n: usize) -> f64 {
    of.numbers().take(n).sum::<f64>() / n as f64
}

/// Their variance about 1/2.
pub fn variance(of: Generator, n: usize) -> f64 {
    of.numbers().take(n).map(|x| (x - 0.5) * (x - 0.5)).sum::<f64>() / n as f64
}

/// Autocorrelation at a lag, about 1/2 and in units of the variance of a uniform number.
pub fn correlation(of: Generator, n: usize, lag: usize) -> f64 {
    let mut window: Vec<f64> = vec![0.0; lag.max(1)];
    let mut sum = 0.0;
    for (i, x) in of.numbers().take(n + lag).enumerate() {
        let x = x - 0.5;
        let before = if lag == 0 { x } else { window[i % lag] };
        if i >= lag {
            sum += x * before;
        }
        if lag > 0 {
            window[i % lag] = x;
        }
    }
    12.0 * sum / n as f64
}

/// Chi-square of `n` successive pairs over a grid of `cells` x `cells`, less its mean, over its standard deviation: of
/// independent numbers it is nearly normal.
pub fn chi_square(of: Generator, n: usize, cells: usize) -> f64 {
    let mut counts = vec![0u32; cells * cells];
    let mut before = None;
    for x in of.numbers().take(n + 1) {
        let cell = ((x * cells as f64) as usize).min(cells - 1);
        if let Some(b) = before.replace(cell) {
            counts[b * cells + cell] += 1;
        }
    }
    let expected = n as f64 / counts.len() as f64;
    let off = |c: &u32| (f64::from(*c) - expected) * (f64::from(*c) - expected) / expected;
    let chi: f64 = counts.iter().map(off).sum();
    // Pairs overlap, so that cells^2 - cells of the cells are free (Good 1953).
    let free = (cells * cells - cells) as f64;
    (chi - free) / (2.0 * free).sqrt()
}

/// The order of the multiplier modulo the modulus, which is prime.
pub fn period() -> u64 {
    // 2^31 - 2 = 2 3^2 7 11 31 151 331
    let mut order = MODULUS - 1;
    for prime in [2, 3, 7, 11, 31, 151, 331] {
        while order.is_multiple_of(prime) && power(MULTIPLIER, order / prime) == 1 {
            order /= prime;
        }
    }
    order
}

fn power(base: u64, mut exponent: u64) -> u64 {
    let mut result = 1;
    let mut square = base % MODULUS;
    while exponent > 0 {
        if !exponent.is_multiple_of(2) {
            result = result * square % MODULUS;
        }
        square = square * square % MODULUS;
        exponent /= 2;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Park and Miller's check: from the seed 1 the 10,001st number is 1043618065.
    #[test]
    fn the_generator_is_the_minimal_standard() {
        let x = Generator::Lcg.numbers().nth(10_000).unwrap() * MODULUS as f64;
        assert_eq!(x.round(), 1_043_618_065.0);
        assert_eq!(period(), MODULUS - 1, "16807 is a primitive root");
    }

    #[test]
    fn statistics_tell_a_pattern_from_noise() {
        for of in [Generator::Lcg, Generator::Ours] {
            assert!((mean(of, 100_000) - 0.5).abs() < 0.004);
            assert!((variance(of, 100_000) - 1.0 / 12.0).abs() < 0.002);
            assert!(correlation(of, 100_000, 3).abs() < 0.02);
            assert!((correlation(of, 100_000, 0) - 1.0).abs() < 0.02, "with itself");
            assert!(chi_square(of, 20_000, 20).abs() < 4.0);
        }
    }
}
