//! A fuzzy supervisor: one input, linguistic terms, a rule base, centre-of-maximum defuzzification.
//!
//! Used by ST-PD TCP (the ST-PD thesis, section 3.4.3.2) to choose the gains of its PD controller by the BDP. Pure
//! mathematics, independent of packets.

use narrows_base::math;

/// A term of the input: its name, and the value at which it is fully true.
#[derive(Clone, Copy, Debug)]
pub struct Term {
    #[allow(dead_code, reason = "for the reader of the rules")]
    pub name: &'static str,
    pub centre: f64,
}

/// "If the input is term i, the output is `outputs[i]`": outputs are singletons, one rule per term.
#[derive(Clone, Copy, Debug)]
pub struct Rules<const N: usize> {
    pub outputs: [f64; N],
}

/// The degree to which each term is true of `x`. Terms are triangles on a logarithmic axis that peak at their centres
/// and reach zero at the neighbours' centres, so that neighbours cross at one half and memberships add up to 1. The
/// outermost terms stay true beyond their centres. Centres ascend.
pub fn fuzzify<const N: usize>(terms: &[Term; N], x: f64) -> [f64; N] {
    let x = math::log2(x.clamp(terms[0].centre, terms[N - 1].centre));
    let centres = terms.map(|t| math::log2(t.centre));
    std::array::from_fn(|i| {
        let rising = i.checked_sub(1).map_or(1.0, |l| (x - centres[l]) / (centres[i] - centres[l]));
        let falling = centres.get(i + 1).map_or(1.0, |r| (r - x) / (r - centres[i]));
        rising.min(falling).clamp(0.0, 1.0)
    })
}

/// Centre of maximum: the mean of the rules' outputs, weighted by the degree to which their
/// premises are true.
pub fn centre_of_maximum<const N: usize>(truth: &[f64; N], rules: &Rules<N>) -> f64 {
    let weighted: f64 = truth.iter().zip(&rules.outputs).map(|(t, o)| t * o).sum();
    let total: f64 = truth.iter().sum();
    if total > 0.0 { weighted / total } else { rules.outputs[0] }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [Term; 3] = [
        Term { name: "small", centre: 1.0 },
        Term { name: "medium", centre: 4.0 },
        Term { name: "large", centre: 64.0 },
    ];

    #[test]
    fn neighbouring_terms_cross_at_half_and_sum_to_one() {
        assert_eq!(fuzzify(&SIZES, 2.0), [0.5, 0.5, 0.0]);
        assert_eq!(fuzzify(&SIZES, 16.0), [0.0, 0.5, 0.5]);
        assert_eq!(fuzzify(&SIZES, 4.0), [0.0, 1.0, 0.0]);
        for x in 1..100 {
            let sum: f64 = fuzzify(&SIZES, f64::from(x)).iter().sum();
            assert!((sum - 1.0).abs() < 1e-12);
        }
    }

    #[test]
    fn the_outermost_terms_stay_true_beyond_their_centres() {
        assert_eq!(fuzzify(&SIZES, 0.0), [1.0, 0.0, 0.0]);
        assert_eq!(fuzzify(&SIZES, 1e9), [0.0, 0.0, 1.0]);
    }

    #[test]
    fn the_output_is_the_mean_of_the_rules_that_hold() {
        let rules = Rules { outputs: [10.0, 20.0, 40.0] };
        assert_eq!(centre_of_maximum(&fuzzify(&SIZES, 2.0), &rules), 15.0);
        assert_eq!(centre_of_maximum(&fuzzify(&SIZES, 16.0), &rules), 30.0);
    }
}
