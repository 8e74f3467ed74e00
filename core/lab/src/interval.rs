//! 95% confidence intervals of means over seeds that are also valid for skewed measures and for counts of few events.
//!
//! 1. Student's t is right for symmetric distributions. Delays and completion times are not symmetric: many seeds are
//!    alike and a few are far above them, so that t intervals miss the true mean too often.
//! 2. The symmetric bootstrap-t interval (P. Hall, "On symmetric bootstrap confidence intervals", Journal of the Royal
//!    Statistical Society B 50, 1988) takes the quantile from the values themselves: that of |mean* - mean| / (s* / √n)
//!    over resamples of the seeds. The wider of the two counts.
//! 3. A resample without the one or two values that are far from the others has nearly no spread s*, so that this
//!    quantile has no bound. Each s*² is therefore a weighted mean with the sample's s², which has the weight of half a
//!    value: 1/(2n). For the distributions of docs/scenarios.md this costs 0.06 of coverage at most with five seeds, 0.02
//!    with ten and more. The widest of 100 intervals with a value far from nine others has 6.7 standard errors, not 64.
//! 4. No end of an interval is beyond the largest and the smallest of eight or more values, so none is beyond what the
//!    quantity can be. With fewer values an end is at least zero, and a fraction at most one.
//! 5. Events are counts. From zero to a few, the exact Poisson limit (Garwood 1936) bounds their number; without events
//!    in n runs it is the rule of three: at most 3/n.
//!
//! No method accounts for events that no seed has shown; `tests/coverage.rs` measures how often these intervals hold.

use crate::measure;
use crate::outcome::Estimate;
use crate::stats::estimate;
use narrows_base::RandomKey;
use statrs::distribution::{ChiSquared, ContinuousCDF};

/// Resamples; 95% of one more than these is a whole number.
const RESAMPLES: usize = 999;
/// With fewer values their variation does not show the distribution's shape: Student's t alone.
const MIN_VALUES: usize = 5;
/// With more values the mean is nearly normal, and resampling would be slow.
const MAX_VALUES: usize = 100;
/// From this number on, the interval ends at the largest and the smallest value: the mean of a symmetric distribution is
/// beyond all of eight values in 2⁻⁷ = 0.8% of cases.
const RANGE_VALUES: usize = 8;
/// -ln(5%): the 95% limit on the expected number of events if no event was seen.
const NONE_SEEN: f64 = 2.995_732_273_553_991;

/// The unit of measures that count events.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventUnit {
    /// The measure is a number of events per run.
    PerRun,
    /// The measure is events over packets sent.
    PerPacket,
}

/// How a measure counts events; `None` if it does not.
pub fn events(measure: &str) -> Option<EventUnit> {
    match measure {
        "timeouts" | "retransmissions" => Some(EventUnit::PerRun),
        "loss_rate" | "queue_loss_rate" | "random_loss_rate" | "loss_event_rate"
        | "sender_loss_rate" => Some(EventUnit::PerPacket),
        _ => None,
    }
}

/// Fewer events than this over all runs are *few*: their interval is mostly the Poisson limit.
pub const FEW: f64 = 10.0;

/// The seeds of each resample, made once for all measures with this number of seeds.
pub struct Resamples {
    n: usize,
    picks: Vec<u8>,
    /// Student's t alone, without resampling.
    student: bool,
}

impl Resamples {
    /// For `n` values; the same every time.
    pub fn of(n: usize) -> Resamples {
        let used = if (MIN_VALUES..=MAX_VALUES).contains(&n) { n * RESAMPLES } else { 0 };
        let mut stream = RandomKey::from_seed(0).named("bootstrap").numbered(n as u64).stream();
        let picks = (0..used).map(|_| (stream.unit() * n as f64) as u8).collect();
        Resamples { n, picks, student: false }
    }

    /// Student's t alone, for single flows, of which there may be many.
    pub fn none() -> Resamples {
        Resamples { n: 0, picks: Vec::new(), student: true }
    }

    /// Estimates of the measures `names`; each run has one value per measure.
    pub fn estimates(&self, names: &[&'static str], runs: &[&[f64]]) -> Vec<Estimate> {
        let of = |i: usize| -> Vec<f64> { runs.iter().map(|r| r[i]).collect() };
        let one = |(i, name): (usize, &&'static str)| {
            let values = of(i);
            let estimate = match exposure(name, names, runs) {
                Some(over) => self.estimate_events(&values, &over),
                None => self.estimate(&values),
            };
            let is_fraction = measure::find(name).is_some_and(|m| m.unit == "fraction");
            estimate.within(0.0, if is_fraction { 1.0 } else { f64::INFINITY })
        };
        names.iter().enumerate().map(one).collect()
    }

    /// Mean and 95% interval of values of any sign; values that are not finite are left out.
    pub fn estimate(&self, values: &[f64]) -> Estimate {
        let v: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        let student = estimate(v.iter().copied());
        let Some(half) = student.half().filter(|half| *half > 0.0) else { return student };
        let mut estimate = student;
        if !self.student && (MIN_VALUES..=MAX_VALUES).contains(&v.len()) {
            let quantile = match v.len() == self.n {
                true => self.quantile(&v),
                false => Resamples::of(v.len()).quantile(&v),
            };
            let error = half / crate::stats::student_t975(v.len() - 1);
            estimate = Estimate::symmetric(student.mean, Some(half.max(quantile * error)));
        }
        if v.len() < RANGE_VALUES {
            return estimate;
        }
        let min = v.iter().copied().fold(f64::INFINITY, f64::min);
        estimate.within(min, v.iter().copied().fold(f64::NEG_INFINITY, f64::max))
    }

    /// The same for events; `exposure` is the quantity in each run to which they are related.
    pub fn estimate_events(&self, values: &[f64], exposure: &[f64]) -> Estimate {
        let plain = self.estimate(values);
        let pairs = values.iter().zip(exposure).filter(|(v, e)| v.is_finite() && **e > 0.0);
        let (seen, over) = pairs.fold((0.0, 0.0), |(k, n), (v, e)| (k + v * e, n + e));
        if values.len() < 2 || over <= 0.0 {
            return plain;
        }
        let limit = (most_expected(seen) - seen) / over;
        Estimate::symmetric(plain.mean, Some(plain.half().unwrap_or(0.0).max(limit)))
    }

    /// The 95% quantile of |t| over the resamples, with the bounded spread of rule 3.
    fn quantile(&self, v: &[f64]) -> f64 {
        let n = v.len() as f64;
        let weight = 0.5 / n;
        let centre = v.iter().sum::<f64>() / n;
        // Centred, so that squares lose no digits, and scaled, so that no square overflows.
        let scale = v.iter().fold(0.0f64, |m, x| m.max((x - centre).abs()));
        let v: Vec<f64> = v.iter().map(|x| (x - centre) / scale).collect();
        let whole = v.iter().map(|x| x * x).sum::<f64>() / (n - 1.0);
        let mut t: Vec<f64> = (self.picks.chunks_exact(v.len()))
            .map(|picks| {
                let mut sum = 0.0;
                let mut squares = 0.0;
                for pick in picks {
                    let x = v[usize::from(*pick)];
                    sum += x;
                    squares += x * x;
                }
                let mean = sum / n;
                let own = ((squares - n * mean * mean) / (n - 1.0)).max(0.0);
                let variance = (1.0 - weight) * own + weight * whole;
                mean.abs() / (variance / n).sqrt()
            })
            .collect();
        t.sort_unstable_by(f64::total_cmp);
        t[(RESAMPLES + 1) * 95 / 100 - 1]
    }
}

/// The exposure of an event measure in each run; `None` if it does not count events, or if packets are unknown.
fn exposure(name: &str, names: &[&'static str], runs: &[&[f64]]) -> Option<Vec<f64>> {
    match events(name)? {
        EventUnit::PerRun => Some(vec![1.0; runs.len()]),
        EventUnit::PerPacket => {
            let sent = names.iter().position(|n| *n == "sent_packets")?;
            Some(runs.iter().map(|r| r[sent]).collect())
        }
    }
}

/// The event measures with [few](FEW) events in all these runs; empty for a single run, which has no interval.
pub fn few_events(names: &[&'static str], runs: &[&[f64]]) -> Vec<&'static str> {
    let few = |(i, name): (usize, &&'static str)| {
        let over = exposure(name, names, runs)?;
        let seen = runs.iter().zip(&over).map(|(r, n)| r[i] * n).filter(|k| k.is_finite());
        (seen.sum::<f64>() < FEW).then_some(*name)
    };
    if runs.len() < 2 { Vec::new() } else { names.iter().enumerate().filter_map(few).collect() }
}

/// A note about these measures for the reader; `None` without any.
pub fn few_events_note(few: &[&'static str]) -> Option<String> {
    (!few.is_empty()).then(|| {
        format!(
            "few events (fewer than {FEW} over all seeds) stand behind values of {}: their intervals are what \
             a Poisson mean may be, after none in n runs at most 3/n",
            few.join(", ")
        )
    })
}

/// Limit on the expected number of events if `seen` were seen: the upper 97.5% limit of a Poisson mean, one-sided 95%
/// if no event was seen.
fn most_expected(seen: f64) -> f64 {
    if seen < 0.5 {
        return NONE_SEEN;
    }
    let limit = ChiSquared::new(2.0 * (seen + 1.0)).map(|c| c.inverse_cdf(0.975) / 2.0);
    // For large counts the limit is the normal one.
    limit.ok().filter(|l| l.is_finite()).unwrap_or(seen + 1.96 * seen.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure;

    /// The distribution of a measure over seeds: its name, its mean, and a draw from two uniform numbers.
    struct DrawnDistribution {
        name: &'static str,
        mean: f64,
        draw: fn(f64, f64) -> f64,
    }

    fn normal(a: f64, b: f64) -> f64 {
        (-2.0 * (1.0 - a).ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Symmetric; with a long tail to the right; two states; a few values far from the others.
    const DISTRIBUTIONS: [DrawnDistribution; 6] = [
        DrawnDistribution { name: "uniform", mean: 0.5, draw: |a, _| a },
        DrawnDistribution { name: "normal", mean: 0.0, draw: normal },
        DrawnDistribution { name: "exponential", mean: 1.0, draw: |a, _| -(1.0 - a).ln() },
        DrawnDistribution { name: "log-normal", mean: 1.648_721, draw: |a, b| normal(a, b).exp() },
        DrawnDistribution {
            name: "two states",
            mean: 0.3,
            draw: |a, b| if b < 0.3 { 1.0 + 0.1 * a } else { -0.1 * a * 3.0 / 7.0 },
        },
        DrawnDistribution {
            name: "one in ten",
            mean: 0.1,
            draw: |a, b| if b < 0.1 { 0.5 + a } else { 0.01 * (a - 0.5) },
        },
    ];

    /// Coverage by Student's t and by these intervals, and their half-width at most, in standard errors.
    struct IntervalCoverage {
        student: f64,
        adjusted: f64,
        widest: f64,
    }

    fn coverage(n: usize, of: &DrawnDistribution) -> IntervalCoverage {
        const SAMPLES: usize = 400;
        let resamples = Resamples::of(n);
        let mut stream = RandomKey::from_seed(3).named("coverage").stream();
        let mut student = 0;
        let mut adjusted = 0;
        let mut widest = 0.0f64;
        for _ in 0..SAMPLES {
            let v: Vec<f64> = (0..n).map(|_| (of.draw)(stream.unit(), stream.unit())).collect();
            let contains = |e: Estimate| {
                e.ci95().is_some_and(|ends| (ends.low..=ends.high).contains(&of.mean)) as usize
            };
            let t = estimate(v.iter().copied());
            let e = resamples.estimate(&v);
            student += contains(t);
            adjusted += contains(e);
            let error = t.half().unwrap_or(0.0) / crate::stats::student_t975(n - 1);
            widest = widest.max(e.half().unwrap_or(0.0) / error);
        }
        let share = |count: usize| count as f64 / SAMPLES as f64;
        IntervalCoverage { student: share(student), adjusted: share(adjusted), widest }
    }

    /// `cargo test -p narrows-lab --lib interval_coverage -- --nocapture` prints the table of docs/scenarios.md.
    #[test]
    fn interval_coverage_of_skewed_samples_is_as_stated() {
        for of in &DISTRIBUTIONS {
            for n in [3, 5, 10, 30] {
                let c = coverage(n, of);
                println!(
                    "{:12} {n:2}  {:.3}  {:.3}  {:.1}",
                    of.name, c.student, c.adjusted, c.widest
                );
                assert!(
                    c.adjusted >= c.student - 0.012,
                    "{} {n}: {}, {}",
                    of.name,
                    c.adjusted,
                    c.student
                );
                assert!(c.widest < 3.0 * (n as f64).sqrt(), "{} {n}: {}", of.name, c.widest);
            }
        }
        // A queueing delay that occurs rarely.
        let exponential = coverage(10, &DISTRIBUTIONS[2]);
        assert!(
            exponential.student < 0.92 && exponential.adjusted > 0.905,
            "{}",
            exponential.adjusted
        );
        // For symmetric values the intervals stay as they were.
        let even = coverage(10, &DISTRIBUTIONS[0]).adjusted;
        assert!((0.93..=0.985).contains(&even), "{even}");
    }

    #[test]
    fn interval_of_one_outlier_stays_within_the_values() {
        let mut v = [7.0; 10];
        v[3] = 900.0;
        let e = Resamples::of(10).estimate(&v);
        let ends = e.ci95().unwrap();
        assert!((e.mean - 96.3).abs() < 1e-9, "{e:?}");
        assert_eq!(ends.low, 7.0, "no mean is below all ten values");
        // One of ten: up to .445 of all (Clopper and Pearson 1934).
        let share = (ends.high - 7.0) / 893.0;
        assert!((0.4..0.65).contains(&share), "{share}");
        assert_eq!(Resamples::of(10).estimate(&[7.0; 10]).half(), Some(0.0));
    }

    /// Goodput on a link of 1.5 Mbit/s: two seeds with an early loss have less.
    #[test]
    fn interval_of_goodput_ends_at_the_link_rate() {
        let v = [1.39, 1.39, 1.39, 1.38, 1.39, 1.39, 1.39, 0.9, 1.39, 1.15];
        let ends = Resamples::of(10).estimate(&v).ci95().unwrap();
        assert!(ends.high <= 1.39 && ends.low > 0.9, "{ends:?}");
        // With three seeds, too, a fraction is between 0 and 1.
        let runs: [&[f64]; 3] = [&[0.99], &[0.98], &[0.7]];
        let few = Resamples::of(3).estimates(&["utilisation"], &runs)[0].ci95().unwrap();
        assert!(few.high == 1.0 && few.low > 0.0, "{few:?}");
    }

    #[test]
    fn zero_events_give_bound_few_give_poisson_limit() {
        let r = Resamples::of(10);
        let none = r.estimate_events(&[0.0; 10], &[1.0; 10]);
        assert!((none.half().unwrap() - 0.2996).abs() < 1e-4, "{none:?}");
        // Garwood's upper limit for one event is 5.572.
        let mut one = [0.0; 10];
        one[0] = 1.0;
        let one = r.estimate_events(&one, &[1.0; 10]);
        assert!((one.half().unwrap() - 0.4572).abs() < 1e-3, "{one:?}");
        // No loss in ten runs of a thousand packets.
        let rate = r.estimate_events(&[0.0; 10], &[1000.0; 10]);
        assert!((rate.half().unwrap() - 3e-4).abs() < 1e-6, "{rate:?}");
    }

    #[test]
    fn measures_that_saw_few_events_are_named() {
        let names = ["goodput_bps", "timeouts", "loss_rate", "sent_packets"];
        let runs: [&[f64]; 2] = [&[5.0, 0.0, 0.01, 900.0], &[7.0, 0.0, 0.02, 900.0]];
        assert_eq!(few_events(&names, &runs), ["timeouts"], "27 packets were lost");
        let runs: [&[f64]; 2] = [&[5.0, 20.0, 0.01, 90.0], &[7.0, 0.0, f64::NAN, 0.0]];
        assert_eq!(few_events(&names, &runs), ["loss_rate"]);
        assert!(few_events(&names, &runs[..1]).is_empty());
        assert!(few_events_note(&[]).is_none());
        // Without events the interval is the bound, for single flows, too.
        for resamples in [Resamples::of(2), Resamples::none()] {
            let none: [&[f64]; 2] = [&[5.0, 0.0, 0.0, 1000.0], &[7.0, 0.0, 0.0, 1000.0]];
            let e = resamples.estimates(&names, &none);
            assert!((e[1].half().unwrap() - NONE_SEEN / 2.0).abs() < 1e-9, "{e:?}");
            assert!((e[2].half().unwrap() - NONE_SEEN / 2000.0).abs() < 1e-9, "{e:?}");
        }
    }

    #[test]
    fn every_event_count_is_a_measure() {
        for name in ["timeouts", "retransmissions", "loss_event_rate", "sender_loss_rate"] {
            assert!(events(name).is_some() && measure::find(name).is_some(), "{name}");
        }
        let counted = measure::MEASURES.iter().filter(|m| events(m.name).is_some()).count();
        assert_eq!(counted, 7);
    }
}
