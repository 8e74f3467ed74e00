//! Recommends a protocol for a given aim, with reasons, from the measures.
//!
//! 1. Each [`Aim`] defines which protocols suit it, their value in one number, and bounds of what it bears, with their
//!    sources. A protocol beyond a bound is not recommended.
//! 2. Only protocols that can be used today compete ([`Obtain`]), with their parameters. A better one is named, with
//!    the reason why it is not recommended.
//! 3. The best of these wins, unless another within `NEAR` of it has less delay (for `live`, less variation).
//! 4. CUBIC, Linux's default, or else another of Linux's own controllers replaces a protocol that gains less than
//!    `NEAR` over it.
//! 5. Differences are paired by seed: all protocols get the same losses and start times.
//! 6. The reasons come from the same numbers: where packets were lost, the queueing delay, and the buffer that was the
//!    limit.

mod aim;
mod obtain;
mod text;
mod undelivered;

pub use aim::{AIMS, Aim};
pub use obtain::Obtain;
pub use text::{list, percent, rate};

use crate::buffers;
use crate::interval::Resamples;
use crate::outcome::{Estimate, Outcome, ProtocolOutcome};
use aim::{PathValues, completes, fair_share, loss, mean};
use narrows_base::Status;
use narrows_transport::Preset;
use text::{milliseconds, seconds};

/// A relative difference below this is no gain: in value, delay or variation.
const NEAR: f64 = 0.05;

/// Linux's congestion control without a setting.
const LINUX_DEFAULT: &str = "cubic";

type Candidate<'a> = &'a ProtocolOutcome;

/// One recommendation for protocols simulated in this preset with data packets of `packet` bytes; empty if no run
/// finished.
pub fn recommend(outcome: &Outcome, aim: Aim, preset: Preset, packet: u32) -> String {
    if outcome.results.is_empty() {
        return String::new();
    }
    let all: Vec<Candidate<'_>> =
        outcome.results.iter().filter(|r| mean(r, "goodput_bps") > 0.0).collect();
    if all.is_empty() {
        let why = undelivered::why(outcome, packet);
        return format!("None: no protocol delivered a single byte here. {why}");
    }
    let suited: Vec<Candidate<'_>> =
        all.iter().copied().filter(|r| aim.unsuited(r).is_none()).collect();
    if suited.is_empty() {
        let why = unsuited(&all, aim).unwrap_or_default();
        return format!("None of these is made for {}. {why}", aim.name());
    }
    let question = RecommendationBasis { aim, preset, path: path_of(&suited, aim) };
    let bearable: Vec<Candidate<'_>> =
        suited.iter().copied().filter(|r| question.why_not(r).is_none()).collect();
    let available: Vec<Candidate<'_>> =
        bearable.iter().copied().filter(|r| question.obtain(r).is_deployable()).collect();
    let chosen = question.choose(&available);
    let mut sentences = match chosen {
        Some(best) => question.advice(&suited, &available, best),
        None => vec![question.refusal(&suited)],
    };
    let value = |r| question.value(r);
    if let Some(chosen) = chosen
        && let Some(ideal) = question.choose(&bearable).filter(|r| value(r) > value(chosen))
        && let Obtain::Nowhere(why) = question.obtain(ideal)
    {
        sentences.push(format!(
            "{} is better here, {}, but not to be had: {why}.",
            ideal.protocol,
            question.what_it_does(ideal)
        ));
    }
    let shown = chosen.or(suited.first().copied());
    sentences.extend(shown.and_then(|r| aim.path_beyond(r, question.path)));
    sentences.extend(buffers::sentence(all.iter().copied(), outcome.capacity_bps));
    sentences.extend(unsuited(&all, aim));
    if let Some(chosen) = chosen {
        sentences.extend(cause(&all, chosen));
        if chosen.status == Status::NotValidated.to_string() {
            let name = &chosen.protocol;
            sentences.push(format!("{name} is not validated against published numbers yet."));
        }
    }
    sentences.join(" ")
}

/// The aim, and the path for which protocols are ranked.
struct RecommendationBasis {
    aim: Aim,
    preset: Preset,
    path: PathValues,
}

impl RecommendationBasis {
    fn value(&self, r: Candidate<'_>) -> f64 {
        let value = self.aim.value(r);
        if value.is_finite() { value } else { 0.0 }
    }

    fn why_not(&self, r: Candidate<'_>) -> Option<String> {
        self.aim.why_not(r, self.path)
    }

    fn obtain(&self, r: Candidate<'_>) -> Obtain {
        Obtain::of(&r.protocol, self.preset)
    }

    fn most<'a>(&self, pool: &[Candidate<'a>]) -> Option<Candidate<'a>> {
        let some = pool.iter().copied().filter(|r| self.value(r) > 0.0);
        some.max_by(|a, b| self.value(a).total_cmp(&self.value(b)))
    }

    /// The best protocol of a pool within the bounds: rules 3 and 4 above.
    fn choose<'a>(&self, pool: &[Candidate<'a>]) -> Option<Candidate<'a>> {
        let best = self.first_of(pool)?;
        let default = pool.iter().copied().find(|r| r.protocol == LINUX_DEFAULT);
        let mut linux = default.into_iter().chain(self.linux(pool));
        Some(linux.find(|r| !self.gains(best, r)).unwrap_or(best))
    }

    /// Whether a protocol gains something over one of Linux's own.
    fn gains(&self, best: Candidate<'_>, linux: Candidate<'_>) -> bool {
        self.value(best) >= (1.0 + NEAR) * self.value(linux)
            || surely_less(best, linux, self.aim.tie_breaker())
    }

    fn first_of<'a>(&self, pool: &[Candidate<'a>]) -> Option<Candidate<'a>> {
        let top = self.most(pool)?;
        let by = self.aim.tie_breaker();
        let near = pool.iter().copied().filter(|r| self.value(r) >= (1.0 - NEAR) * self.value(top));
        let least = near
            .filter(|r| r.protocol != top.protocol && surely_less(r, top, by))
            .min_by(|a, b| mean(a, by).total_cmp(&mean(b, by)));
        Some(least.unwrap_or(top))
    }

    /// The best of Linux's own congestion controls without changed settings.
    fn linux<'a>(&self, pool: &[Candidate<'a>]) -> Option<Candidate<'a>> {
        let is_own =
            |r: Candidate<'_>| matches!(self.obtain(r), Obtain::Linux(_, s) if s.is_empty());
        let own: Vec<Candidate<'a>> = pool.iter().copied().filter(|r| is_own(r)).collect();
        self.first_of(&own)
    }

    /// Which protocol to use, how to get it, and its gain.
    fn advice(
        &self,
        suited: &[Candidate<'_>],
        pool: &[Candidate<'_>],
        chosen: Candidate<'_>,
    ) -> Vec<String> {
        let others = |r: &Candidate<'_>| r.protocol != chosen.protocol;
        let linux = self.linux(pool).filter(others).filter(|r| self.gains(chosen, r));
        let rest: Vec<Candidate<'_>> = pool.iter().copied().filter(others).collect();
        let mut sentences = vec![self.first_sentence(chosen, &rest, linux)];
        sentences.push(self.obtain(chosen).sentence(&chosen.protocol));
        if let Some(linux) = linux {
            let by = self.aim.tie_breaker();
            let gained = match (self.gain(chosen, linux), self.aim) {
                ((gain, sure), _) if gain >= NEAR => format!("{}{sure}", percent(gain)),
                (_, Aim::Live) => "steadiness".into(),
                _ => format!("{} of delay", milliseconds(mean(linux, by) - mean(chosen, by))),
            };
            let name = &linux.protocol;
            sentences
                .push(format!("Over {name}, the best that Linux has here, it gains {gained}."));
        } else if let Some(best) = self.first_of(pool).filter(others) {
            sentences.push(format!("{} gains nothing over it.", best.protocol));
        }
        sentences.extend(self.ruled_out(suited, chosen));
        sentences
    }

    /// The text if no available protocol is within the bounds: the one that is nearest to them.
    fn refusal(&self, suited: &[Candidate<'_>]) -> String {
        let excess = |r: Candidate<'_>| self.aim.excess(r, self.path);
        let nearest = suited.iter().copied().min_by(|a, b| {
            excess(a).total_cmp(&excess(b)).then(self.value(b).total_cmp(&self.value(a)))
        });
        let mut text = format!("None of these suits {}", self.aim.name());
        if let Some(best) = nearest {
            let why = self.why_not(best).or_else(|| match self.obtain(best) {
                Obtain::Nowhere(why) => Some(format!("it is not to be had: {why}")),
                _ => None,
            });
            text +=
                &format!("; the best of them is {}: {}", best.protocol, self.what_it_does(best));
            text += &why.map_or(String::new(), |why| format!(", but {why}"));
        }
        text + "."
    }

    /// `1.377 ± 0.003 Mbit/s goodput (99% of the link in use), RTT 11 ms above the least`.
    fn what_it_does(&self, r: Candidate<'_>) -> String {
        let above = |name: &str| milliseconds(mean(r, name) - self.path.floor_s);
        let goodput = rate(measured(r, "goodput_bps"));
        let mut text = match self.aim {
            Aim::Bulk | Aim::Web if completes(r) => {
                format!("{} per transfer on average", seconds(measured(r, "completion_s")))
            }
            Aim::Bulk | Aim::Web => format!("{goodput} goodput"),
            Aim::Calls | Aim::Live => {
                let steady = Estimate::symmetric(self.value(r), None);
                let scale = if self.aim == Aim::Calls { 1 } else { 5 };
                format!(
                    "{goodput} goodput, {} when its variation over {scale} s is taken off",
                    rate(steady)
                )
            }
        };
        let used = mean(r, "utilisation");
        if used.is_finite() && !completes(r) {
            text += &format!(" ({} of the link in use)", percent(used));
        }
        if mean(r, "rtt_s_mean").is_finite() && self.path.floor_s.is_finite() {
            text += &match self.aim {
                Aim::Bulk => format!(", mean RTT {} above the least", above("rtt_s_mean")),
                _ => format!(", 95% of RTTs within {} of the least", above("rtt_s_p95")),
            };
        }
        if loss(r) > 0.0 {
            text += &format!(", {} lost", percent(loss(r)));
        }
        let share = mean(r, "share");
        if share.is_finite() && r.rivals > 0 {
            let (share, fair) = (percent(share), percent(fair_share(r, r.rivals)));
            text += &format!(", {share} of what all deliver ({fair} is equal)");
        }
        text
    }

    /// The chosen protocol and its advantage over the rest. A sentence of its own compares it with `linux`.
    fn first_sentence(
        &self,
        chosen: Candidate<'_>,
        rest: &[Candidate<'_>],
        linux: Option<Candidate<'_>>,
    ) -> String {
        let text = format!("Use {}: {}", chosen.protocol, self.what_it_does(chosen));
        let above: Vec<Candidate<'_>> =
            rest.iter().copied().filter(|r| self.value(r) > self.value(chosen)).collect();
        if let Some(more) = self.most(&above) {
            // It was chosen for its delay or its variation, or because Linux has it.
            let names: Vec<&str> = above.iter().map(|r| r.protocol.as_str()).collect();
            let by = percent(self.value(more) / self.value(chosen) - 1.0);
            let tie = self.aim.tie_breaker();
            let nearest = above.iter().map(|r| mean(r, tie)).fold(f64::INFINITY, f64::min);
            let cost = match self.aim {
                _ if nearest <= mean(chosen, tie) => String::new(),
                Aim::Live => ", and vary more".to_string(),
                _ => format!(", and take {} longer", milliseconds(nearest - mean(chosen, tie))),
            };
            return format!("{text}. {} would give {by} more at most{cost}.", list(&names));
        }
        let next = self.most(rest).filter(|r| linux.is_none_or(|l| l.protocol != r.protocol));
        match next.map(|next| (self.gain(chosen, next), next)) {
            Some(((gain, sure), next)) if gain > 0.0 => {
                let word = if self.aim.measure(chosen).1 { "more" } else { "sooner" };
                format!("{text}; {} {word} than the next, {}{sure}.", percent(gain), next.protocol)
            }
            _ => text + ".",
        }
    }

    /// The relative gain of one protocol over another in the aim's measure, and how sure it is.
    fn gain(&self, chosen: Candidate<'_>, other: Candidate<'_>) -> (f64, String) {
        let (measure, more) = self.aim.measure(chosen);
        let (ours, theirs) = (mean(chosen, measure), mean(other, measure));
        let gain = if more { ours / theirs - 1.0 } else { 1.0 - ours / theirs };
        let sure = match paired(chosen, other, measure) {
            _ if chosen.one_trajectory || other.one_trajectory => {
                ", on one trajectory that another start may change".into()
            }
            Some(Estimate { ci95: Some(ends), .. }) if ends.low > 0.0 || ends.high < 0.0 => {
                let least = ends.low.abs().min(ends.high.abs());
                let most = ends.low.abs().max(ends.high.abs());
                format!(
                    " (95% interval, paired by seed: {} to {})",
                    percent(least / theirs.abs()),
                    percent(most / theirs.abs())
                )
            }
            _ => format!(", which {} seeds do not make sure", chosen.seeds.min(other.seeds)),
        };
        (gain, sure)
    }

    /// Protocols with a higher value that are ruled out, with the reason.
    fn ruled_out(&self, pool: &[Candidate<'_>], chosen: Candidate<'_>) -> Option<String> {
        let worse = |r: &&ProtocolOutcome| self.value(r) > self.value(chosen);
        let better: Vec<Candidate<'_>> = (pool.iter().copied())
            .filter(|r| r.protocol != chosen.protocol)
            .filter(worse)
            .filter(|r| self.why_not(r).is_some())
            .collect();
        let best = self.most(&better)?;
        let by = percent(self.value(best) / self.value(chosen) - 1.0);
        Some(format!("{} would give {by} more, but {}.", best.protocol, self.why_not(best)?))
    }
}

/// The path's values, as a pool shows them.
fn path_of(pool: &[Candidate<'_>], aim: Aim) -> PathValues {
    let least = |of: &dyn Fn(&ProtocolOutcome) -> f64| {
        pool.iter().map(|r| of(r)).filter(|x| x.is_finite()).fold(f64::INFINITY, f64::min)
    };
    PathValues {
        floor_s: least(&|r| mean(r, "rtt_s_min")),
        least_variation: least(&|r| aim.variation(r)),
    }
}

/// The difference of a measure, seed by seed, so that common random draws cancel out.
fn paired(a: Candidate<'_>, b: Candidate<'_>, measure: &str) -> Option<Estimate> {
    let theirs: Vec<(u64, f64)> = b.seeds_of(measure).collect();
    let differences: Vec<f64> = a
        .seeds_of(measure)
        .filter_map(|(seed, x)| theirs.iter().find(|t| t.0 == seed).map(|t| x - t.1))
        .filter(|d| d.is_finite())
        .collect();
    (differences.len() > 1).then(|| Resamples::of(differences.len()).estimate(&differences))
}

/// Whether `a` has less of a measure than `b`, by more than `NEAR` and significantly. Completion times contain the
/// delay, so it does not count twice.
fn surely_less(a: Candidate<'_>, b: Candidate<'_>, measure: &str) -> bool {
    !completes(a)
        && mean(a, measure) < (1.0 - NEAR) * mean(b, measure)
        && paired(a, b, measure).is_none_or(|d| d.ci95.is_some_and(|ends| ends.high < 0.0))
}

/// Protocols left out because they do not suit the aim, with the reasons.
fn unsuited(all: &[Candidate<'_>], aim: Aim) -> Option<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for r in all {
        let Some(why) = aim.unsuited(r) else { continue };
        match reasons.iter_mut().find(|(reason, _)| *reason == why) {
            Some((_, names)) => names.push(&r.protocol),
            None => reasons.push((why, vec![&r.protocol])),
        }
    }
    let parts: Vec<String> =
        reasons.iter().map(|(why, names)| format!("{}, which {why}", list(names))).collect();
    (!parts.is_empty()).then(|| format!("Not considered: {}.", parts.join("; ")))
}

/// The cause of their difference: radio losses that are taken for congestion, or queue drops.
fn cause(all: &[Candidate<'_>], chosen: Candidate<'_>) -> Option<String> {
    let random = mean(chosen, "random_loss_rate");
    let queue = mean(chosen, "queue_loss_rate");
    // Controllers that sense only loss are misled by random losses.
    let misled = all
        .iter()
        .copied()
        .filter(|r| senses(r) == "loss" && r.protocol != chosen.protocol)
        .filter(|r| mean(r, "goodput_bps") < 0.9 * mean(chosen, "goodput_bps"))
        .max_by(|a, b| mean(a, "goodput_bps").total_cmp(&mean(b, "goodput_bps")));
    if random > 1e-5
        && let Some(misled) = misled
        && !completes(chosen)
    {
        return Some(format!(
            "Why: {} of the packets are lost at random; {} goes by {}, while {} goes by loss alone, \
             takes these for congestion and gets {}.",
            percent(random),
            chosen.protocol,
            senses(chosen).replace("; ", " and ").replace(", ", " and "),
            misled.protocol,
            rate(measured(misled, "goodput_bps"))
        ));
    }
    if queue > 0.01 && queue > random {
        return Some(format!("It still loses {} of its packets at the queue.", percent(queue)));
    }
    None
}

/// The signals that the protocol's controller uses, as its descriptor lists them.
fn senses(r: &ProtocolOutcome) -> &'static str {
    obtain::entry(&r.protocol)
        .and_then(|e| e.descriptor().ok())
        .map_or("", |descriptor| descriptor.senses)
}

fn measured(r: &ProtocolOutcome, name: &str) -> Estimate {
    r.measure(name).unwrap_or(Estimate::symmetric(f64::NAN, None))
}

#[cfg(test)]
mod tests;
