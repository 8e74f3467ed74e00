//! Jitter: the deviation of a packet's arrival from its link's delay.
//!
//! Distributions are formulas; Linux's netem uses tables made of such formulas. As there, a normal or Pareto value is
//! at most [`MOST`] standard deviations, and no packet arrives before it was sent.

use crate::correlated::Correlated;
use narrows_base::{Duration, RandomKey, RandomStream, math};

/// Most standard deviations: where netem's tables end (32,767 / 8192).
const MOST: f64 = 4.0;

/// The exponent of netem's Pareto distribution; its mean is 1.5 and its standard deviation half the root of 3.
const PARETO_SHAPE: f64 = 3.0;

/// Wi-Fi: mean number of contentions before a frame, and the time of one.
const CONTENTIONS: f64 = 1.0;
const CONTENTION: Duration = Duration::from_millis(1);
/// Wi-Fi: mean number of retransmissions of a frame that collides with a hidden station's, and the time of one.
const RETRANSMISSIONS: f64 = 12.0;
const RETRANSMISSION: Duration = Duration::from_micros(7500);

/// How jitter is distributed around a link's delay.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Distribution {
    /// Uniform in [0, size]: only later.
    #[default]
    Late,
    /// Uniform in [-size, size]: netem's default.
    Uniform,
    /// Normal; the size is the standard deviation.
    Normal,
    /// Pareto of shape 3, its mean at the delay.
    Pareto,
    /// A quarter of a normal and three quarters of a Pareto value.
    ParetoNormal,
    /// Contention and, for a share of the packets, retransmissions of Wi-Fi; the size is the mean, from 1 to 91 ms. The
    /// model of draft-huitema-ccwg-c4-test, "Handling of High Jitter Environments".
    Wifi,
}

/// Form of the jitter: all but its size.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct JitterForm {
    /// Shape of the jitter.
    pub distribution: Distribution,
    /// How much of each value is the one before: 0 to 1.
    pub correlation: f64,
    /// Whether packets may overtake earlier ones. If not, they wait for them.
    pub overtakes: bool,
}

/// Draws the jitter of one link.
#[derive(Debug)]
pub(crate) struct Jitter {
    size: Duration,
    distribution: Distribution,
    numbers: Correlated,
    stream: RandomStream,
}

impl Jitter {
    pub fn new(size: Duration, form: &JitterForm, random_key: RandomKey) -> Jitter {
        Jitter {
            size,
            distribution: form.distribution,
            numbers: Correlated::new(form.correlation),
            stream: random_key.named("jitter").stream(),
        }
    }

    /// The delay of one packet on a link of this delay.
    #[inline]
    pub fn delay(&mut self, delay: Duration) -> Duration {
        let u = self.numbers.next(&mut self.stream);
        let x = match self.distribution {
            Distribution::Late => u,
            Distribution::Uniform => 2.0 * u - 1.0,
            Distribution::Normal => normal(u),
            Distribution::Pareto => pareto(u),
            Distribution::ParetoNormal => 0.25 * normal(self.stream.unit()) + 0.75 * pareto(u),
            Distribution::Wifi => return delay + self.wifi(u),
        };
        if x < 0.0 {
            let sooner = self.size.mul_f64(-x).as_nanos();
            Duration::from_nanos(delay.as_nanos().saturating_sub(sooner))
        } else {
            delay + self.size.mul_f64(x)
        }
    }

    /// Time that a frame waits for the channel; the last of its contentions ends early, at a random time.
    fn wifi(&mut self, u: f64) -> Duration {
        let contentions = poisson(u, CONTENTIONS);
        let mut wait = CONTENTION.mul_f64(contentions);
        if contentions > 0.0 {
            wait = wait - CONTENTION.mul_f64(self.stream.unit());
        }
        let most = RETRANSMISSION.mul_f64(RETRANSMISSIONS).as_secs_f64();
        let share = (self.size.as_secs_f64() - CONTENTION.as_secs_f64()) / most;
        if self.stream.chance(share) {
            wait += RETRANSMISSION.mul_f64(poisson(self.stream.unit(), RETRANSMISSIONS));
        }
        wait
    }
}

/// The quantile of a Poisson distribution, at most 64.
fn poisson(u: f64, mean: f64) -> f64 {
    let mut term = math::exp(-mean);
    let mut sum = term;
    let mut n = 0.0;
    while sum <= u && n < 64.0 {
        n += 1.0;
        term *= mean / n;
        sum += term;
    }
    n
}

/// The quantile of a Pareto distribution of mean 0 and standard deviation 1, at most [`MOST`].
fn pareto(u: f64) -> f64 {
    let value = math::pow(1.0 - u, -1.0 / PARETO_SHAPE);
    ((value - 1.5) / (0.5 * 3f64.sqrt())).min(MOST)
}

/// The quantile of the standard normal distribution, at most [`MOST`] away from 0: P. J. Acklam's rational
/// approximation, exact to 1.2e-9 of the value.
fn normal(u: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    /// Below this probability and above its complement, the formula for the tails is used.
    const TAIL: f64 = 0.024_25;
    let horner = |terms: &[f64], x: f64| terms.iter().fold(0.0, |sum, term| sum * x + term);
    let tail = |p: f64| {
        let q = (-2.0 * math::ln(p.max(f64::MIN_POSITIVE))).sqrt();
        horner(&C, q) / horner(&D, q)
    };
    let x = if u < TAIL {
        tail(u)
    } else if u > 1.0 - TAIL {
        -tail(1.0 - u)
    } else {
        let q = u - 0.5;
        q * horner(&A, q * q) / horner(&B, q * q)
    };
    x.clamp(-MOST, MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_tables() {
        for (u, x) in
            [(0.5, 0.0), (0.841_344_746, 1.0), (0.975, 1.959_963_985), (0.01, -2.326_347_874)]
        {
            assert!((normal(u) - x).abs() < 1e-6, "{u}: {}", normal(u));
        }
        assert_eq!((normal(0.0), normal(1.0 - 1e-16)), (-4.0, 4.0));
        // 1 / (1 - 7/8)^(1/3) is 2.
        assert!((pareto(0.875) - 0.5 / 0.75f64.sqrt()).abs() < 1e-12);
        assert_eq!(pareto(1.0 - 1e-9), 4.0);
        // Of a Poisson distribution of mean 1, 0.368 is 0, 0.368 is 1 and 0.184 is 2.
        assert_eq!(
            [0.0, 0.367, 0.369, 0.735, 0.737].map(|u| poisson(u, 1.0)),
            [0.0, 0.0, 1.0, 1.0, 2.0]
        );
        assert_eq!(poisson(0.5, 12.0), 12.0);
        assert!((32.0..=64.0).contains(&poisson(1.0 - 1e-16, 12.0)));
    }

    /// With a mean of m ms, (m - 1) / 90 of the packets are retransmitted 12 times, for 90 ms. Contention alone takes
    /// 1 ms less half of one for the 0.632 with any.
    #[test]
    fn wifi_jitter_has_its_mean_and_share_of_long_delays() {
        for (size_ms, share, mean_ms) in
            [(1, 0.0, 0.684), (7, 6.0 / 90.0, 6.684), (91, 1.0, 90.684), (500, 1.0, 90.684)]
        {
            let form = JitterForm { distribution: Distribution::Wifi, ..JitterForm::default() };
            let mut jitter =
                Jitter::new(Duration::from_millis(size_ms), &form, RandomKey::from_seed(5));
            let base = Duration::from_millis(100);
            let all: Vec<f64> =
                (0..200_000).map(|_| 1e3 * jitter.delay(base).as_secs_f64() - 100.0).collect();
            let n = all.len() as f64;
            let mean = all.iter().sum::<f64>() / n;
            // More than 7 contentions are 1e-5 of all, fewer than 2 retransmissions 8e-5.
            let long = all.iter().filter(|ms| **ms > 8.0).count() as f64 / n;
            assert!((mean - mean_ms).abs() < 0.2, "{size_ms} ms: mean {mean}");
            assert!((long - share).abs() < 0.003, "{size_ms} ms: {long} long");
            assert!(all.iter().all(|ms| *ms >= 0.0));
        }
    }

    /// Mean and standard deviation of 200,000 delays around 100 ms with 10 ms of jitter. The bound at four standard
    /// deviations removes some of Pareto's.
    #[test]
    fn delays_have_their_distributions_mean_and_spread() {
        for (distribution, mean, deviation, min) in [
            (Distribution::Late, 0.105, 0.010 / 12f64.sqrt(), 0.1),
            (Distribution::Uniform, 0.1, 0.010 / 3f64.sqrt(), 0.09),
            (Distribution::Normal, 0.1, 0.010, 0.06),
            (Distribution::Pareto, 0.09977, 0.0074, 0.0942),
            (Distribution::ParetoNormal, 0.09982, 0.0061, 0.0856),
        ] {
            let form = JitterForm { distribution, ..JitterForm::default() };
            let mut jitter = Jitter::new(Duration::from_millis(10), &form, RandomKey::from_seed(5));
            let base = Duration::from_millis(100);
            let all: Vec<f64> = (0..200_000).map(|_| jitter.delay(base).as_secs_f64()).collect();
            let n = all.len() as f64;
            let found = all.iter().sum::<f64>() / n;
            let spread = (all.iter().map(|x| (x - found) * (x - found)).sum::<f64>() / n).sqrt();
            assert!((found - mean).abs() < 2e-4, "{distribution:?}: mean {found}");
            assert!(
                (spread / deviation - 1.0).abs() < 0.05,
                "{distribution:?}: deviation {spread}"
            );
            assert!(all.iter().all(|x| *x >= min), "{distribution:?}");
        }
    }

    #[test]
    fn no_packet_arrives_before_it_was_sent() {
        let form = JitterForm { distribution: Distribution::Normal, ..JitterForm::default() };
        let mut jitter = Jitter::new(Duration::from_millis(10), &form, RandomKey::from_seed(5));
        let all: Vec<Duration> =
            (0..1000).map(|_| jitter.delay(Duration::from_millis(1))).collect();
        let earliest = all.iter().filter(|d| **d == Duration::ZERO).count();
        assert!((300..600).contains(&earliest), "{earliest}");
    }
}
