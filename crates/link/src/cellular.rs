//! A model of a cellular link: delivery opportunities for a trace, drawn from a seed.
//!
//! The model has three parts, each of which a parameter turns off.
//!
//! 1. *A varying rate.* The rate is `mean * max(0, 1 + variation * x)`. `x` has unit variance and is the sum of two
//!    Ornstein-Uhlenbeck processes of equal variance, with time constants of `FAST_S` (fading) and `SLOW_S` (load,
//!    distance). Sprout's model (Winstein, Sivaraman, Balakrishnan, NSDI 2013, section 3.1) has Brownian motion
//!    instead. Brownian motion has no mean, so a user could not set the mean rate.
//! 2. *Outages.* They are random and have exponential lengths, as Sprout's "sticky" zero has. Packets wait.
//! 3. *A scheduler's grants.* Opportunities occur in groups: Poisson in time, geometric in size.
//!
//! The time constants and the defaults lie in the middle of six recordings of LTE, UMTS and EVDO links.
//! `docs/benchmarks.md` compares round trips on the model with those on the recordings.

use crate::trace::{OPPORTUNITY_BYTES, Trace};
use narrows_base::descriptor::ParamKind;
use narrows_base::units::Unit;
use narrows_base::{Descriptor, Param, RandomKey, RandomStream, Settings, Spec, SpecError, Status};

/// Time constants in seconds. The recordings' rates of 100 ms have autocorrelations of .45 to .70 after 0.5 s, .38 to
/// .65 after 1 s and .07 to .49 after 5 s; these give .61, .48 and .27.
const FAST_S: f64 = 0.4;
const SLOW_S: f64 = 8.0;
/// Length of a step of the rate in milliseconds.
const STEP_MS: u64 = 20;
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
            (1e4, 1e9),
            9e6,
            "LTE",
        ),
        param(
            "variation",
            Unit::None,
            "standard deviation of the rate over its mean, before it is bounded at 0",
            (0.0, 2.0),
            0.7,
            "six recordings: 0.5 to 1.0",
        ),
        param(
            "every",
            Unit::Seconds,
            "mean time from one outage to the next; 0s: no outages",
            (0.0, 1e6),
            15.0,
            "six recordings: 5 to 35 s between gaps of 0.2 s and more",
        ),
        param(
            "outage",
            Unit::Seconds,
            "mean length of an outage",
            (0.0, 1e3),
            0.5,
            "six recordings: 0.4 to 0.8 s",
        ),
        param(
            "grant",
            Unit::None,
            "mean number of opportunities that come together",
            (1.0, 1000.0),
            1.7,
            "six recordings: 1.0 to 4.2",
        ),
        param("seed", Unit::None, "of the random draws", (0.0, 1e9), 1.0, "any"),
    ],
    status: Status::NotValidated,
};

const fn param(
    name: &'static str,
    unit: Unit,
    help: &'static str,
    (min, max): (f64, f64),
    default: f64,
    origin: &'static str,
) -> Param {
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

/// The rates of all steps, relative; 0 in outages.
fn rates(settings: &Settings, steps: u64, key: RandomKey) -> Vec<f64> {
    let [variation, every, outage] = ["variation", "every", "outage"].map(|p| settings.number(p));
    let step_s = STEP_MS as f64 / 1000.0;
    let keep = [FAST_S, SLOW_S].map(|time| narrows_base::math::exp(-step_s / time));
    let (mut random, mut gaps) = (key.named("rate").stream(), key.named("outages").stream());
    let mut parts = keep.map(|_| normal(&mut random));
    let outages = every > 0.0 && outage > 0.0;
    let mut next = if outages { gaps.exponential(every) } else { f64::INFINITY };
    let mut ends = 0.0;
    (0..steps)
        .map(|i| {
            for (part, keep) in parts.iter_mut().zip(keep) {
                *part = keep * *part + (1.0 - keep * keep).sqrt() * normal(&mut random);
            }
            let now = i as f64 * step_s;
            if now >= next {
                ends = now + gaps.exponential(outage);
                next = ends + gaps.exponential(every);
            }
            let x = (parts[0] + parts[1]) * std::f64::consts::FRAC_1_SQRT_2;
            if now < ends { 0.0 } else { (1.0 + variation * x).max(0.0) }
        })
        .collect()
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
    let wanted = per_second * (steps * STEP_MS) as f64 / 1000.0;
    let scale = wanted / grant / sum;
    let mut random = key.named("grants").stream();
    let mut millis = Vec::with_capacity((1.1 * wanted) as usize);
    let mut due = random.exponential(1.0);
    for (i, rate) in rates.iter().enumerate() {
        let grants = rate * scale;
        while due < grants {
            let ms = i as u64 * STEP_MS + (due / grants * STEP_MS as f64) as u64;
            millis.push(ms);
            while random.chance(1.0 - 1.0 / grant) {
                millis.push(ms);
            }
            due += random.exponential(1.0);
        }
        due -= grants;
    }
    // The last line of a trace is its length.
    millis.push(steps * STEP_MS);
    Ok(Trace::of(millis, steps * STEP_MS))
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
    fn the_mean_is_what_was_asked_for() {
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
    fn the_rate_varies_as_much_as_recorded_links_do_and_not_without_variation() {
        let (_, varied) = mean_and_variation(&counts(&trace("cellular"), 100));
        assert!((0.5..=1.05).contains(&varied), "{varied}");
        let steady = "cellular(variation=0,every=0s,grant=1)";
        // Poisson: 75 opportunities in a window.
        let (mean, varied) = mean_and_variation(&counts(&trace(steady), 100));
        assert!(
            (mean - 75.0).abs() < 1.0 && (varied - 75f64.sqrt().recip()).abs() < 0.01,
            "{varied}"
        );
    }

    #[test]
    fn outages_come_as_often_and_last_as_long_as_was_asked_for() {
        let c = counts(&trace("cellular(variation=0,every=10s,outage=1s)"), 20);
        let dark = c.iter().filter(|n| **n == 0.0).count() as f64 / c.len() as f64;
        assert!((0.06..=0.13).contains(&dark), "{dark}");
        let begins = c.windows(5).filter(|w| w[0] > 0.0 && w[1..] == [0.0; 4]).count();
        assert!((30..=75).contains(&begins), "{begins}");
    }

    #[test]
    fn grants_are_groups_of_opportunities() {
        let spread = |grant: u32| {
            let c = counts(&trace(&format!("cellular(variation=0,every=0s,grant={grant})")), 1);
            let (mean, varied) = mean_and_variation(&c);
            varied * varied * mean
        };
        // The variance over the mean of a Poisson number of geometric groups is 2 grant - 1.
        assert!((spread(1) - 1.0).abs() < 0.05, "{}", spread(1));
        assert!((spread(4) - 7.0).abs() < 0.3, "{}", spread(4));
    }

    #[test]
    fn a_seed_repeats_and_another_differs() {
        assert_eq!(trace("cellular(seed=4)"), trace("cellular( seed=4 )"));
        assert_ne!(trace("cellular(seed=4)"), trace("cellular"));
    }

    #[test]
    fn what_is_no_model_is_a_file_and_wrong_parameters_are_refused() {
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
