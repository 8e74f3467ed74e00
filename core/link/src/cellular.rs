//! A model of a cellular link: delivery opportunities for a trace, drawn from a seed.
//!
//! The model has three parts, each of which a parameter turns off.
//!
//! 1. *A varying rate*, log-normal. Its logarithm is the sum of two Ornstein-Uhlenbeck processes of equal variance, with
//!    time constants of `FAST_S` (fading) and `SLOW_S` (load, distance). Sprout's model (Winstein, Sivaraman,
//!    Balakrishnan, NSDI 2013, section 3.1) has Brownian motion instead, which has no mean for a user to set.
//! 2. *Outages*, in which packets wait. They begin at random; their lengths have a Pareto distribution. Sprout's lengths
//!    are exponential, although its figure 2 shows a power law of the times between packets, as the recordings do.
//! 3. *A scheduler's grants*: groups of opportunities at equal distances for a constant rate, of geometric size.
//!
//! The constants and the defaults lie in the middle of six recordings of LTE, UMTS and EVDO links.
//! `docs/benchmarks.md` compares round trips on the model with those on the recordings.

use crate::trace::{OPPORTUNITY_BYTES, Trace};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{
    Descriptor, Param, RandomKey, RandomStream, Settings, Spec, SpecError, Status, math,
};
use std::ops::RangeInclusive;

/// Time constants in seconds. The recordings' rates of 100 ms have autocorrelations of .45 to .70 after 0.5 s, .38 to
/// .65 after 1 s and .07 to .49 after 5 s; the model's are .5, .4 and .2.
const FAST_S: f64 = 0.4;
const SLOW_S: f64 = 8.0;
/// Length of a step of the rate in milliseconds.
const STEP_MS: u64 = 20;
/// Shape of the distribution of outages: 1 in 10 has four times the least length. In the recordings 6 to 15% of the gaps
/// above 50 ms last for 200 ms or more.
const OUTAGE_SHAPE: f64 = 5.0 / 3.0;
/// Length of the trace, after which it repeats, in seconds; and the most opportunities that it has.
const PERIOD_S: f64 = 600.0;
const MOST_OPPORTUNITIES: f64 = 1e6;

/// Name and parameters.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "cellular",
    summary: "a rate that wanders, outages in which packets wait, and a scheduler's grants",
    source: "after Winstein, Sivaraman, Balakrishnan, NSDI 2013, fitted to recordings: see its file",
    senses: "time",
    sets: "delivery opportunities of 1500 bytes",
    params: &[
        param(
            "mean",
            Unit::BitsPerSecond,
            "rate in the mean, outages included",
            1e4..=1e9,
            9e6,
            "LTE",
        ),
        param(
            "variation",
            Unit::None,
            "standard deviation of the rate over its mean, outages aside",
            0.0..=2.0,
            0.6,
            "six recordings: 0.4 to 0.9",
        ),
        param(
            "every",
            Unit::Seconds,
            "mean time from the end of an outage to the next one; 0s: no outages",
            0.0..=1e6,
            1.0,
            "six recordings: 0.7 to 2.9 s between gaps of 50 ms and more",
        ),
        param(
            "outage",
            Unit::Seconds,
            "mean length of an outage; the least is 0.4 of it",
            0.0..=1e3,
            0.125,
            "six recordings: 104 to 166 ms for gaps of 50 ms and more",
        ),
        param(
            "grant",
            Unit::None,
            "mean number of opportunities that come together",
            1.0..=1000.0,
            1.7,
            "six recordings: 1.0 to 4.2",
        ),
        param("seed", Unit::None, "of the random draws", 0.0..=1e9, 1.0, "any"),
    ],
    status: Status::NotValidated,
};

const fn param(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    range: RangeInclusive<f64>,
    default: f64,
    origin: &'static str,
) -> Param {
    let min = *range.start();
    let max = *range.end();
    Param { name, help, kind: ParamKind::Number { unit, min, max, default }, origin }
}

/// The trace of `cellular(mean=9Mbit/s)`; `None` if the text is no such specification.
///
/// # Errors
/// An unknown parameter, or one that is out of range.
pub fn read(text: &str) -> Option<Result<Trace, SpecError>> {
    let name = text.trim().strip_prefix(DESCRIPTOR.name)?;
    (name.is_empty() || name.trim_start().starts_with('(')).then(|| {
        let settings = Settings::read(&Spec::parse(text)?, DESCRIPTOR.params)?;
        draw(&settings)
    })
}

/// Exactly representable arithmetic only: the sum of twelve uniform numbers is normal enough for a rate.
fn normal(random: &mut RandomStream) -> f64 {
    (0..12).map(|_| random.unit()).sum::<f64>() - 6.0
}

/// The relative rate in each millisecond; 0 in outages.
fn rates(settings: &Settings, steps: u64, key: RandomKey) -> Vec<f64> {
    let [variation, every, outage] = ["variation", "every", "outage"].map(|p| settings.number(p));
    let keep = [FAST_S, SLOW_S].map(|time| math::exp(-1e-3 * STEP_MS as f64 / time));
    // Variance of the logarithm; the factor makes the mean 1.
    let variance = math::ln(1.0 + variation * variation);
    let mut random = key.named("rate").stream();
    let mut parts = keep.map(|_| normal(&mut random));
    let mut rates = Vec::with_capacity((steps * STEP_MS) as usize);
    for _ in 0..steps {
        for (part, keep) in parts.iter_mut().zip(keep) {
            *part = keep * *part + (1.0 - keep * keep).sqrt() * normal(&mut random);
        }
        let x = (0.5 * variance).sqrt() * (parts[0] + parts[1]) - 0.5 * variance;
        rates.extend([math::exp(x); STEP_MS as usize]);
    }
    if every > 0.0 && outage > 0.0 {
        let mut random = key.named("outages").stream();
        let least = outage * (1.0 - 1.0 / OUTAGE_SHAPE);
        let mut begins = random.exponential(every);
        while let Some(rest) = rates.get_mut((1e3 * begins) as usize..) {
            let length = random.pareto(OUTAGE_SHAPE, least);
            let dark = ((1e3 * length) as usize).min(rest.len());
            rest[..dark].fill(0.0);
            // At least a millisecond, so that the loop ends.
            begins += (length + random.exponential(every)).max(1e-3);
        }
    }
    rates
}

fn draw(settings: &Settings) -> Result<Trace, SpecError> {
    let [mean, grant] = ["mean", "grant"].map(|p| settings.number(p));
    let key = RandomKey::from_seed(settings.number("seed") as u64).named(DESCRIPTOR.name);
    let per_second = mean / (8.0 * f64::from(OPPORTUNITY_BYTES));
    let seconds = PERIOD_S.min(MOST_OPPORTUNITIES / per_second);
    let steps = ((seconds * 1000.0) as u64).div_ceil(STEP_MS);
    let rates = rates(settings, steps, key);
    let sum: f64 = rates.iter().sum();
    if sum <= 0.0 {
        return Err(SpecError::new(
            "outages leave no capacity: every is too short, or outage too long",
        ));
    }
    // Grants for each unit of the relative rate, such that the mean rate is the requested one.
    let wanted = per_second * rates.len() as f64 / 1000.0;
    let scale = wanted / grant / sum;
    let mut random = key.named("grants").stream();
    let mut millis = Vec::with_capacity((1.1 * wanted) as usize);
    let mut due = random.unit();
    for (ms, rate) in (0..).zip(&rates) {
        due += rate * scale;
        while due >= 1.0 {
            due -= 1.0;
            millis.push(ms);
            while random.chance(1.0 - 1.0 / grant) {
                millis.push(ms);
            }
        }
    }
    // The last line of a trace is its length.
    let period = rates.len() as u64;
    millis.push(period);
    Ok(Trace::of(millis, period))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_base::{Duration, Time};

    fn trace(text: &str) -> Trace {
        read(text).unwrap().unwrap()
    }

    /// Opportunities in windows of `window_ms` milliseconds over the period.
    fn counts(trace: &Trace, window_ms: u64) -> Vec<f64> {
        let at = |i: u64| Time::ZERO + Duration::from_millis(i * window_ms);
        let windows = trace.period().as_nanos() / 1_000_000 / window_ms;
        let bytes = |i| trace.bytes_between(at(i), at(i + 1));
        (0..windows).map(|i| bytes(i) / f64::from(OPPORTUNITY_BYTES)).collect()
    }

    fn mean_and_variation(x: &[f64]) -> (f64, f64) {
        let mean = x.iter().sum::<f64>() / x.len() as f64;
        let square = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / x.len() as f64;
        (mean, square.sqrt() / mean)
    }

    #[test]
    fn mean_rate_is_the_given_one() {
        for (text, bps) in [
            ("cellular", 9e6),
            ("cellular(mean=700kbit/s)", 7e5),
            ("cellular(mean=900Mbit/s)", 9e8),
            ("cellular(mean=5Mbit/s,every=1s,outage=2s)", 5e6),
        ] {
            let mean = trace(text).mean_bps();
            assert!((mean / bps - 1.0).abs() < 0.03, "{text}: {mean}");
        }
    }

    #[test]
    fn rate_varies_like_recorded_links_unless_variation_is_zero() {
        let (_, varied) = mean_and_variation(&counts(&trace("cellular"), 100));
        assert!((0.5..=1.05).contains(&varied), "{varied}");
        let steady = "cellular(variation=0,every=0s,grant=1)";
        let (mean, varied) = mean_and_variation(&counts(&trace(steady), 100));
        assert!((mean - 75.0).abs() < 1.0 && varied < 0.02, "{mean} {varied}");
    }

    /// Gaps of at least so many milliseconds in each second.
    fn gaps(trace: &Trace, least_ms: usize) -> f64 {
        let c = counts(trace, 1);
        let dark = c.split(|n| *n > 0.0).filter(|gap| gap.len() >= least_ms);
        dark.count() as f64 / (1e-3 * c.len() as f64)
    }

    /// The least length is 400 ms; 1 in 10 has four times that.
    #[test]
    fn outages_have_the_given_frequency_and_duration() {
        let steady = trace("cellular(variation=0,every=9s,outage=1s)");
        let outages = gaps(&steady, 395);
        let long = gaps(&steady, 1600);
        assert!((0.08..=0.12).contains(&outages), "{outages}");
        assert!((0.04..=0.2).contains(&(long / outages)), "{long}");
        assert!(gaps(&trace("cellular(variation=0,every=0s)"), 20) == 0.0);
    }

    /// The six recordings have 0.34 to 1.36 gaps of 50 ms and more per second, and 0.03 to 0.19 of 200 ms and more.
    #[test]
    fn gaps_are_as_frequent_as_on_recorded_links() {
        let model = trace("cellular");
        let slow = trace("cellular(mean=900kbit/s)");
        assert!((0.34..=1.36).contains(&gaps(&model, 50)), "{}", gaps(&model, 50));
        for long in [gaps(&model, 200), gaps(&slow, 200)] {
            assert!((0.03..=0.19).contains(&long), "{long}");
        }
    }

    #[test]
    fn grants_are_groups_of_opportunities() {
        let spread = |grant: u32| {
            let c = counts(&trace(&format!("cellular(variation=0,every=0s,grant={grant})")), 20);
            let (mean, varied) = mean_and_variation(&c);
            varied * varied * mean
        };
        // The variance over the mean of a sum of geometric groups is grant - 1.
        assert!(spread(1) < 0.1, "{}", spread(1));
        assert!((spread(4) - 3.0).abs() < 0.3, "{}", spread(4));
    }

    #[test]
    fn endless_outages_are_refused_and_shortest_ones_drawn() {
        assert!(read("cellular(every=1ns,outage=1000s)").unwrap().is_err());
        let frequent = trace("cellular(every=1ns,outage=1ns)");
        assert!((frequent.mean_bps() / 9e6 - 1.0).abs() < 0.03);
    }

    #[test]
    fn a_seed_repeats_and_another_differs() {
        assert_eq!(trace("cellular(seed=4)"), trace("cellular( seed=4 )"));
        assert_ne!(trace("cellular(seed=4)"), trace("cellular"));
    }

    #[test]
    fn unknown_model_is_a_file_and_wrong_parameters_fail() {
        assert!(read("cellular.trace").is_none() && read("drive.trace").is_none());
        for bad in [
            "cellular(mean=1bit/s)",
            "cellular(maen=1Mbit/s)",
            "cellular(mean=9Mbit/s",
            "cellular(grant=0)",
        ] {
            assert!(read(bad).unwrap().is_err(), "{bad}");
        }
    }
}
