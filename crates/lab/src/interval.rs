//! 95% confidence intervals of means over seeds that are also valid for skewed measures and for counts of few events.
//!
//! 1. Student's t is right for symmetric distributions. Delays and completion times are not symmetric: many seeds are
//!    alike and a few are far above them, so that t intervals miss the true mean too often.
//! 2. The symmetric bootstrap-t interval (P. Hall, "On symmetric bootstrap confidence intervals", Journal of the Royal
//!    Statistical Society B 50, 1988) takes the quantile from the values themselves: that of |mean* - mean| / (s* / √n)
//!    over resamples of the seeds. The wider of the two counts.
//! 3. If so many values are equal that a resample often has no spread, that quantile does not exist, and neither does
//!    an interval.
//! 4. Events are counts. From zero to a few, the exact Poisson limit (Garwood 1936) bounds their number; without events
//!    in n runs it is the rule of three: at most 3/n.
//!
//! No method accounts for events that no seed has shown; `tests/coverage.rs` measures how often these intervals hold.

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
        let one = |(i, name): (usize, &&'static str)| match exposure(name, names, runs) {
            Some(over) => self.estimate_events(&of(i), &over),
            None => self.estimate(&of(i)),
        };
        names.iter().enumerate().map(one).collect()
    }

    /// Mean and half-width of its 95% interval; values that are not finite are left out.
    pub fn estimate(&self, values: &[f64]) -> Estimate {
        let v: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        let student = estimate(v.iter().copied());
        let Some(half) = student.ci95 else { return student };
        if self.student || !(MIN_VALUES..=MAX_VALUES).contains(&v.len()) || half == 0.0 {
            return student;
        }
        let quantile = match v.len() == self.n {
            true => self.quantile(&v),
            false => Resamples::of(v.len()).quantile(&v),
        };
        let error = half / crate::stats::student_t975(v.len() - 1);
        let ci95 = quantile.map(|q| half.max(q * error));
        Estimate { ci95, ..student }
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
        Estimate { ci95: Some(plain.ci95.unwrap_or(0.0).max(limit)), ..plain }
    }

    /// The 95% quantile of |t| over the resamples; `None` if too many of them have no spread.
    fn quantile(&self, v: &[f64]) -> Option<f64> {
        let n = v.len() as f64;
        let centre = v.iter().sum::<f64>() / n;
        // Centred, so that squares lose no digits, and scaled, so that no square overflows.
        let scale = v.iter().fold(0.0f64, |m, x| m.max((x - centre).abs()));
        let v: Vec<f64> = v.iter().map(|x| (x - centre) / scale).collect();
        let mut t: Vec<f64> = (self.picks.chunks_exact(v.len()))
            .map(|picks| {
                let (mut sum, mut squares) = (0.0, 0.0);
                for pick in picks {
                    let x = v[usize::from(*pick)];
                    (sum, squares) = (sum + x, squares + x * x);
                }
                let mean = sum / n;
                let variance = (squares - n * mean * mean) / (n - 1.0);
                // A smaller variance is a rounding error of squares that cancel out.
                if variance > 1e-12 { mean.abs() / (variance / n).sqrt() } else { f64::INFINITY }
            })
            .collect();
        t.sort_unstable_by(f64::total_cmp);
        Some(t[(RESAMPLES + 1) * 95 / 100 - 1]).filter(|q| q.is_finite())
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

    /// Shares of the intervals of `samples` samples of `n` draws that contain the true mean.
    fn coverage(n: usize, mean: f64, draw: impl Fn(f64) -> f64) -> (f64, f64) {
        let resamples = Resamples::of(n);
        let mut stream = RandomKey::from_seed(3).named("coverage").stream();
        let (mut student, mut ours) = (0, 0);
        const SAMPLES: usize = 1000;
        for _ in 0..SAMPLES {
            let v: Vec<f64> = (0..n).map(|_| draw(stream.unit())).collect();
            let holds =
                |e: Estimate| e.ci95.is_none_or(|half| (e.mean - mean).abs() <= half) as usize;
            student += holds(estimate(v.iter().copied()));
            ours += holds(resamples.estimate(&v));
        }
        (student as f64 / SAMPLES as f64, ours as f64 / SAMPLES as f64)
    }

    #[test]
    fn skewed_measures_are_covered_where_students_t_fails() {
        // Exponential: a queueing delay that occurs rarely.
        let (student, ours) = coverage(10, 1.0, |u| -(1.0 - u).ln());
        assert!(student < 0.91 && ours > 0.93, "{student} and {ours}");
        // For symmetric values the intervals stay as they were.
        let (_, even) = coverage(10, 0.5, |u| u);
        assert!((0.93..=0.985).contains(&even), "{even}");
    }

    #[test]
    fn equal_values_but_one_have_no_interval() {
        let mut v = [7.0; 10];
        v[3] = 900.0;
        let e = Resamples::of(10).estimate(&v);
        assert!((e.mean - 96.3).abs() < 1e-9 && e.ci95.is_none(), "{e:?}");
        assert_eq!(Resamples::of(10).estimate(&[7.0; 10]).ci95, Some(0.0));
    }

    #[test]
    fn no_events_are_a_bound_and_few_are_a_poisson_limit() {
        let r = Resamples::of(10);
        let none = r.estimate_events(&[0.0; 10], &[1.0; 10]);
        assert!((none.ci95.unwrap() - 0.2996).abs() < 1e-4, "{none:?}");
        // Garwood's upper limit for one event is 5.572.
        let mut one = [0.0; 10];
        one[0] = 1.0;
        let one = r.estimate_events(&one, &[1.0; 10]);
        assert!((one.ci95.unwrap() - 0.4572).abs() < 1e-3, "{one:?}");
        // No loss in ten runs of a thousand packets.
        let rate = r.estimate_events(&[0.0; 10], &[1000.0; 10]);
        assert!((rate.ci95.unwrap() - 3e-4).abs() < 1e-6, "{rate:?}");
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
            assert!((e[1].ci95.unwrap() - NONE_SEEN / 2.0).abs() < 1e-9, "{e:?}");
            assert!((e[2].ci95.unwrap() - NONE_SEEN / 2000.0).abs() < 1e-9, "{e:?}");
        }
    }

    #[test]
    fn what_counts_events_is_a_measure() {
        for name in ["timeouts", "retransmissions", "loss_event_rate", "sender_loss_rate"] {
            assert!(events(name).is_some() && measure::find(name).is_some(), "{name}");
        }
        let counted = measure::MEASURES.iter().filter(|m| events(m.name).is_some()).count();
        assert_eq!(counted, 7);
    }
}
