//! A claim's measure over seeds, its interval, and the number of seeds that are needed.
//!
//! A claim is checked after the seeds of its scenario. If the interval includes an edge of the accepted range, more
//! seeds are run: 10, 20, 40, 80 in all, or 20, 52, 80 for a share of runs: only with 52 good runs of as many does the
//! interval of a share begin at 0.9. Repeated checks raise the probability of a chance result. So each of n checks has
//! an interval that misses with 5%/n (Bonferroni), and all checks together are wrong with 5% at most.

use super::experiment::{Claim, OverSeeds};
use super::interval::{IntervalPosition, UncertainValue, Uncertainty, place};
use super::stat::Stat;
use narrows_lab::stats::{estimate_within, median_interval, wilson};

/// Numbers of seeds at which claims are looked at again.
pub const STAGES: [usize; 5] = [10, 20, 40, 52, 80];
/// Those of a mean or a median.
const OF_A_VALUE: [usize; 4] = [10, 20, 40, 80];
/// Stages for a share of runs. With three checks, 52 of 52 good runs are the fewest for an interval from 0.9.
const OF_A_SHARE: [usize; 3] = [20, 52, 80];

/// Measured value of a claim.
#[derive(Clone, Copy, Debug, serde::Serialize, serde::Deserialize)]
pub struct MeasuredValue {
    /// The compared value, with its interval.
    pub value: UncertainValue,
    /// Number of seeds; 0 for a model.
    pub seeds: usize,
}

fn is_share(claim: &Claim) -> bool {
    let of_runs = [OverSeeds::Every, OverSeeds::Some, OverSeeds::NotEvery];
    of_runs.contains(&claim.over_seeds) || claim.measure.counts_runs()
}

fn stages(claim: &Claim) -> &'static [usize] {
    if is_share(claim) { &OF_A_SHARE } else { &OF_A_VALUE }
}

/// The smallest number of seeds after which a claim may be decided: twenty for a share of runs, else two.
fn min_runs(claim: &Claim) -> usize {
    if is_share(claim) { OF_A_SHARE[0] } else { 2 }
}

/// Number of checks of a claim whose scenario has `first` seeds.
fn looks(claim: &Claim, first: usize) -> usize {
    usize::from(first >= min_runs(claim)) + stages(claim).iter().filter(|s| **s > first).count()
}

/// Whether a claim needs the seeds of this stage.
pub fn wants(claim: &Claim, ours: &MeasuredValue, stage: usize) -> bool {
    let few = ours.seeds < min_runs(claim) || ours.value.interval == Uncertainty::None;
    let simulated = ours.seeds > 0;
    simulated
        && ours.seeds < stage
        && stages(claim).contains(&stage)
        && (few || place(claim.range(), ours.value) == IntervalPosition::Across)
}

impl MeasuredValue {
    /// From the values of a claim's measure, one per seed. `first` is the number of seeds of its scenario, 0 for a
    /// model.
    pub fn new(claim: &Claim, values: &[f64], first: usize) -> MeasuredValue {
        let error = 0.05 / looks(claim, first).max(1) as f64;
        let known = || values.iter().copied().filter(|x| x.is_finite());
        let n = known().count();
        let between = |ends: Option<(f64, f64)>| {
            ends.map_or(Uncertainty::None, |(low, high)| Uncertainty::Between(low, high))
        };
        let share = |share: f64| UncertainValue {
            value: share,
            interval: between((n > 1).then(|| wilson(share, n, error))),
        };
        let value = match claim.over_seeds {
            OverSeeds::Median => UncertainValue {
                value: Stat::Median.of(values, values, 0.0),
                interval: between(median_interval(values, error)),
            },
            OverSeeds::Every | OverSeeds::Some | OverSeeds::NotEvery => {
                let kept = |x: &f64| {
                    claim.min.is_none_or(|min| *x >= min) && claim.max.is_none_or(|max| *x <= max)
                };
                share(known().filter(kept).count() as f64 / n as f64)
            }
            OverSeeds::Mean | OverSeeds::Valid if claim.measure.counts_runs() => {
                share(known().sum::<f64>() / n as f64)
            }
            OverSeeds::Mean => estimate_within(values.iter().copied(), error).into(),
            OverSeeds::Valid => {
                let valid = without_outliers(&known().collect::<Vec<_>>());
                estimate_within(valid, error).into()
            }
        };
        MeasuredValue { value, seeds: if first == 0 { 0 } else { values.len() } }
    }
}

/// Values within three standard deviations of their mean, both of all values. Of ten or fewer none lies further.
fn without_outliers(values: &[f64]) -> Vec<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let valid = |x: &f64| variance.is_nan() || (x - mean).powi(2) <= 9.0 * variance;
    values.iter().copied().filter(valid).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(more: &str) -> Claim {
        let text = "text = 't'\nstated = '1'\nmin = 0.35\nmax = 0.65\nbasis = 'b'\n";
        toml::from_str(&format!("{text}{more}")).unwrap()
    }
    const JAIN: &str = "measure = { measure = 'jain' }";

    #[test]
    fn repeated_looks_widen_intervals() {
        let values = [0.4, 0.5, 0.6, 0.5, 0.4, 0.6, 0.5, 0.5, 0.45, 0.55];
        let half = |first| match MeasuredValue::new(&claim(JAIN), &values, first).value.interval {
            Uncertainty::Half(half) => half,
            other => panic!("{other:?}"),
        };
        assert!((half(80) - 0.0506).abs() < 1e-3, "one look: Student's t");
        assert!(half(10) > 1.2 * half(80), "four looks");
        let looks = |more: &str| [1, 3, 10, 20, 100].map(|first| super::looks(&claim(more), first));
        assert_eq!(looks(JAIN), [4, 5, 4, 3, 1]);
        assert_eq!(looks(&format!("over_seeds = 'every'\n{JAIN}")), [3, 3, 3, 3, 1]);
    }

    #[test]
    fn undecided_claim_or_share_of_few_runs_needs_more() {
        let mean = claim(JAIN);
        let of = |claim: &Claim, values: &[f64]| MeasuredValue::new(claim, values, values.len());
        assert!(wants(&mean, &of(&mean, &[0.3, 0.4, 0.5]), 10), "across an edge");
        assert!(!wants(&mean, &of(&mean, &[0.3, 0.4, 0.5]), 3), "these have been run");
        assert!(!wants(&mean, &of(&mean, &[0.5; 10]), 20), "decided");
        assert!(wants(&mean, &of(&mean, &[0.5]), 10), "one run has no interval");
        assert!(!wants(&mean, &MeasuredValue::new(&mean, &[0.5], 0), 10), "a model");
        let every = claim(&format!("over_seeds = 'every'\n{JAIN}"));
        assert!(wants(&every, &of(&every, &[0.1; 10]), 20), "ten runs are few");
        assert!(!wants(&every, &of(&every, &[0.1; 10]), 10));
        assert!(!wants(&every, &of(&every, &[0.5; 20]), 40), "a share has stages of its own");
        assert!(wants(&every, &of(&every, &[0.5; 20]), 52));
    }

    #[test]
    fn a_mean_may_be_fair_where_no_run_is() {
        let runs = [0.9, 0.1, 0.9, 0.1, 0.9, 0.1, 0.9, 0.1, 0.9, 0.1];
        let every = claim(&format!("over_seeds = 'every'\n{JAIN}"));
        assert_eq!(MeasuredValue::new(&every, &runs, 10).value.value, 0.0);
        assert_eq!(MeasuredValue::new(&claim(JAIN), &runs, 10).value.value, 0.5);
        let denied = claim(&format!("over_seeds = 'not_every'\n{JAIN}"));
        let position = |runs: &[f64]| {
            place(denied.range(), MeasuredValue::new(&denied, runs, runs.len()).value)
        };
        assert_eq!(position(&runs), IntervalPosition::Inside, "chance denies it");
        assert_eq!(position(&[0.5; 80]), IntervalPosition::Outside);
    }

    /// One trace of a paper is reproduced by a run like it, however rare; runs without one decide nothing.
    #[test]
    fn one_run_of_many_may_be_the_papers_trace() {
        let some = claim(&format!("over_seeds = 'some'\n{JAIN}"));
        let mut runs = [0.9; 80];
        let position = |runs: &[f64]| {
            let measured = MeasuredValue::new(&some, runs, 10);
            (place(some.range(), measured.value), wants(&some, &measured, 52))
        };
        assert_eq!(position(&runs[..20]), (IntervalPosition::Across, true));
        runs[3] = 0.5;
        assert_eq!(position(&runs[..20]), (IntervalPosition::Inside, false));
        assert_eq!(position(&runs).0, IntervalPosition::Inside, "one of eighty");
    }

    #[test]
    fn a_trial_beyond_three_standard_deviations_is_not_counted() {
        let mut trials = vec![1.0; 9];
        trials.push(100.0);
        assert_eq!(without_outliers(&trials), trials, "of ten none can be so far");
        trials.insert(0, 1.0);
        assert_eq!(without_outliers(&trials), [1.0; 10]);
        assert_eq!(without_outliers(&[1.0; 3]), [1.0; 3], "equal trials have no deviation");
        assert_eq!(without_outliers(&[1.0]), [1.0]);
        let valid = claim(&format!("over_seeds = 'valid'\n{JAIN}"));
        let measured = MeasuredValue::new(&valid, &trials, 11);
        assert_eq!((measured.value.value, measured.seeds), (1.0, 11));
        let mean = MeasuredValue::new(&claim(JAIN), &trials, 11).value.value;
        assert!(mean > 9.0, "the rule is the paper's, not every claim's: {mean}");
    }

    #[test]
    fn a_share_of_runs_is_not_certain_after_ten() {
        let text = "measure = { measure = 'jain', stat = 'fraction_above', level = 0.5 }";
        let all = MeasuredValue::new(&claim(text), &[1.0; 10], 10).value;
        let Uncertainty::Between(low, high) = all.interval else { panic!("{all:?}") };
        assert!(low < 0.7 && high == 1.0, "{all:?}");
        let nine = claim(&format!("over_seeds = 'every'\n{JAIN}"));
        let eighty = MeasuredValue::new(&nine, &[0.5; 80], 10).value;
        let Uncertainty::Between(low, _) = eighty.interval else { panic!("{eighty:?}") };
        assert!(low > 0.9, "{eighty:?}: eighty of eighty are enough");
        for (runs, enough) in [
            (OF_A_SHARE[1], IntervalPosition::Inside),
            (OF_A_SHARE[1] - 1, IntervalPosition::Across),
        ] {
            let all = MeasuredValue::new(&nine, &vec![0.5; runs], 10).value;
            assert_eq!(place(nine.range(), all), enough, "{all:?}: the fewest that show 0.9");
        }
    }
}
