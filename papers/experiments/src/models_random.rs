//! Statistics of random numbers: the generator of the ST-PD thesis, and that of the simulator.

use super::{Arguments, Model};
use crate::random_quality::{Generator, chi_square, correlation, mean, variance};

/// Arguments: `ours` is 1 for the simulator's numbers, 0 for the generator of the ST-PD thesis; `n` numbers from the
/// first.
pub(super) const MODELS: &[Model] = &[
    Model {
        name: "random_mean",
        summary: "mean of n numbers",
        source: "S0 section 5.3.3",
        arguments: &["ours", "n"],
        of: |a| mean(generator(a), count(a)),
    },
    Model {
        name: "random_variance",
        summary: "variance of n numbers",
        source: "S0 section 5.3.3",
        arguments: &["ours", "n"],
        of: |a| variance(generator(a), count(a)),
    },
    Model {
        name: "random_correlation",
        summary: "autocorrelation of n numbers at a lag",
        source: "S0 figure 5.9",
        arguments: &["ours", "n", "lag"],
        of: |a| correlation(generator(a), count(a), a["lag"] as usize),
    },
    Model {
        name: "random_largest_correlation",
        summary: "the largest autocorrelation over lags of 1 to lags, times the square root of n",
        source: "S0 figure 5.9",
        arguments: &["ours", "n", "lags"],
        of: |a| {
            let of = generator(a);
            let n = count(a);
            let lags = 1..=a["lags"] as usize;
            lags.map(|lag| correlation(of, n, lag).abs()).fold(0.0, f64::max) * (n as f64).sqrt()
        },
    },
    Model {
        name: "random_pairs",
        summary: "chi-square of n successive pairs over a grid of cells x cells, in standard deviations from its mean",
        source: "S0 figure 5.10",
        arguments: &["ours", "n", "cells"],
        of: |a| chi_square(generator(a), count(a), a["cells"] as usize),
    },
    Model {
        name: "lcg_period",
        summary: "the period of S0's generator, the order of 16807 modulo 2^31 - 1, less a number",
        source: "S0 equation 5.2",
        arguments: &["less"],
        of: |a| crate::random_quality::period() as f64 - a["less"],
    },
];

fn generator(a: &Arguments) -> Generator {
    if a["ours"] > 0.0 { Generator::Ours } else { Generator::Lcg }
}
fn count(a: &Arguments) -> usize {
    a["n"] as usize
}
