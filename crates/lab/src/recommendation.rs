//! Recommends a protocol for a given aim, with reasons, from the measures.
//!
//! 1. Each [`Aim`] defines which protocols suit it, their value in one number, and limits. The limits are on queueing
//!    delay that affects other traffic, waste, losses and variation that reach the application, transfers that do not
//!    end, and flows that starve competitors. A protocol beyond a limit is not recommended.
//! 2. Only protocols that can be used today compete ([`Obtain`]), with their parameters. A better one is named, with
//!    the reason why it is not recommended.
//! 3. The best of these wins, unless another within `NEAR` of it has significantly less delay (for `live`, less
//!    variation). Means count as equal only if they are near, not if their difference is insignificant.
//! 4. A protocol without a gain over Linux's own congestion control is replaced by it.
//! 5. Differences are paired by seed: all protocols get the same losses and start times.
//! 6. The reasons come from the same numbers: where packets were lost, the queueing delay, and the buffer that was the
//!    limit.

mod aim;
mod obtain;
mod text;

pub use aim::{AIMS, Aim};
pub use obtain::Obtain;
pub use text::{list, percent, rate};

use crate::buffers;
use crate::interval::Resamples;
use crate::outcome::{Estimate, Outcome, ProtocolOutcome};
use aim::{Best, completes, fair_share, loss, mean};
use narrows_base::Status;
use narrows_transport::Preset;
use text::{milliseconds, seconds};

/// A relative difference in value below this does not justify more delay.
const NEAR: f64 = 0.05;
/// A relative difference below this counts as zero if there are no seeds to compare.
const UNSURE: f64 = 0.02;

type Candidate<'a> = &'a ProtocolOutcome;

/// One recommendation for protocols simulated in this preset; empty if no run finished.
pub fn recommend(outcome: &Outcome, aim: Aim, preset: Preset) -> String {
    if outcome.results.is_empty() {
        return String::new();
    }
    let all: Vec<Candidate<'_>> =
        outcome.results.iter().filter(|r| mean(r, "goodput_bps") > 0.0).collect();
    if all.is_empty() {
        return "None: no protocol delivered a single byte here.".into();
    }
    let suited: Vec<Candidate<'_>> = all.iter().copied().filter(|r| aim.suits(r)).collect();
    if suited.is_empty() {
        return unsuited(&all, &suited, aim).unwrap_or_default();
    }
    let question = Question { aim, preset, best: best_of(&suited, aim) };
    let bearable: Vec<Candidate<'_>> =
        suited.iter().copied().filter(|r| question.why_not(r).is_none()).collect();
    let to_be_had: Vec<Candidate<'_>> =
        bearable.iter().copied().filter(|r| question.obtain(r).is_deployable()).collect();
    let mut sentences = match question.choose(&to_be_had) {
        Some(best) => question.advice(&suited, &to_be_had, best),
        None => question.refusal(&suited),
    };
    let chosen = question.choose(&to_be_had);
    if let Some(ideal) = question.choose(&bearable)
        && let Obtain::Nowhere(why) = question.obtain(ideal)
    {
        sentences.push(format!(
            "{} is better here, {}, but not to be had: {why}.",
            ideal.protocol,
            question.what_it_does(ideal)
        ));
    }
    sentences.extend(buffers::sentence(all.iter().copied(), outcome.capacity_bps));
    sentences.extend(unsuited(&all, &suited, aim));
    if let Some(chosen) = chosen {
        sentences.extend(cause(&all, chosen));
        if chosen.status == Status::NotValidated.to_string() {
            let name = &chosen.protocol;
            sentences.push(format!("{name} is not validated against published numbers yet."));
        }
    }
    sentences.join(" ")
}

/// The basis of a recommendation.
struct Question {
    aim: Aim,
    preset: Preset,
    best: Best,
}

impl Question {
    fn value(&self, r: Candidate<'_>) -> f64 {
        let value = self.aim.value(r);
        if value.is_finite() { value } else { 0.0 }
    }

    fn why_not(&self, r: Candidate<'_>) -> Option<String> {
        self.aim.why_not(r, self.best)
    }

    fn obtain(&self, r: Candidate<'_>) -> Obtain {
        Obtain::of(&r.protocol, self.preset)
    }

    fn most<'a>(&self, pool: &[Candidate<'a>]) -> Option<Candidate<'a>> {
        let some = pool.iter().copied().filter(|r| self.value(r) > 0.0);
        some.max_by(|a, b| self.value(a).total_cmp(&self.value(b)))
    }

    /// The best protocol of a pool within the limits: rules 3 and 4 above.
    fn choose<'a>(&self, pool: &[Candidate<'a>]) -> Option<Candidate<'a>> {
        let best = self.first_of(pool)?;
        let linux = self.linux(pool).filter(|linux| {
            let gain = self.value(best) / self.value(linux) - 1.0;
            gain < NEAR && !surely_less(best, linux, self.aim.tie_breaker())
        });
        Some(linux.unwrap_or(best))
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
        let mut sentences = vec![self.first_sentence(chosen, pool)];
        sentences.push(self.obtain(chosen).sentence(&chosen.protocol));
        if let Some(linux) = self.linux(pool).filter(|l| l.protocol != chosen.protocol) {
            let gain = self.value(chosen) / self.value(linux) - 1.0;
            let name = &linux.protocol;
            let by = self.aim.tie_breaker();
            let less = mean(linux, by) - mean(chosen, by);
            let (measure, _) = self.aim.measure(chosen);
            let unsure = paired(chosen, linux, measure)
                .is_some_and(|d| d.ci95.is_some_and(|half| d.mean.abs() <= half));
            let unsure = if unsure { ", which these seeds do not make sure" } else { "" };
            sentences.push(match (gain >= NEAR, self.aim) {
                (true, _) => format!(
                    "Over {name}, the best that Linux has here, it gains {}{unsure}.",
                    percent(gain)
                ),
                (false, Aim::Live) => format!("Over {name}, which Linux has, it gains steadiness."),
                (false, _) => {
                    let less = milliseconds(less);
                    format!("Over {name}, which Linux has, it gains {less} of delay.")
                }
            });
        } else if let Some(best) = self.first_of(pool).filter(|b| b.protocol != chosen.protocol) {
            sentences.push(format!("{} gains nothing over it.", best.protocol));
        }
        sentences.extend(self.ruled_out(suited, chosen));
        sentences
    }

    /// The text if no available protocol is within the limits.
    fn refusal(&self, suited: &[Candidate<'_>]) -> Vec<String> {
        let aim = self.aim.name();
        let mut text = format!("None of these for {aim}, which bears {}", self.aim.bears());
        if let Some(best) = self.most(suited) {
            let why = self.why_not(best).or_else(|| match self.obtain(best) {
                Obtain::Nowhere(why) => Some(format!("it is not to be had: {why}")),
                _ => None,
            });
            text += &format!(": {} has {}", best.protocol, self.what_it_does(best));
            text += &why.map_or(String::new(), |why| format!(", but {why}"));
        }
        vec![text + "."]
    }

    /// `1.377 ± 0.003 Mbit/s goodput (99% of the link in use), RTT 11 ms above the least`.
    fn what_it_does(&self, r: Candidate<'_>) -> String {
        let above = |name: &str| milliseconds(mean(r, name) - self.best.floor_s);
        let goodput = rate(measured(r, "goodput_bps"));
        let mut text = match self.aim {
            Aim::Bulk | Aim::Web if completes(r) => {
                format!("{} per transfer on average", seconds(measured(r, "completion_s")))
            }
            Aim::Bulk | Aim::Web => format!("{goodput} goodput"),
            Aim::Calls | Aim::Live => {
                let steady = Estimate { mean: self.value(r), ci95: None };
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
        if mean(r, "rtt_s_mean").is_finite() && self.best.floor_s.is_finite() {
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

    fn first_sentence(&self, chosen: Candidate<'_>, pool: &[Candidate<'_>]) -> String {
        let mut text = format!("Use {}: {}", chosen.protocol, self.what_it_does(chosen));
        let rest: Vec<Candidate<'_>> =
            pool.iter().copied().filter(|r| r.protocol != chosen.protocol).collect();
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
        if let Some(next) = self.most(&rest) {
            text += &self.against(chosen, next);
        }
        text + "."
    }

    /// Its advantage over the next one, and the significance.
    fn against(&self, chosen: Candidate<'_>, next: Candidate<'_>) -> String {
        let (measure, more) = self.aim.measure(chosen);
        let (ours, theirs) = (mean(chosen, measure), mean(next, measure));
        let gain = if more { ours / theirs - 1.0 } else { 1.0 - ours / theirs };
        let word = if more { "more" } else { "sooner" };
        if !gain.is_finite() || gain < 0.0 {
            return format!("; {} comes next", next.protocol);
        }
        let name = &next.protocol;
        let by = percent(gain);
        if chosen.one_trajectory || next.one_trajectory {
            return format!(
                "; {by} {word} than the next, {name}, on one trajectory that another start may change"
            );
        }
        match paired(chosen, next, measure) {
            Some(Estimate { mean, ci95: Some(half) }) if mean.abs() > half => {
                let scale = theirs.abs();
                let (low, high) = ((mean.abs() - half) / scale, (mean.abs() + half) / scale);
                format!(
                    "; {by} {word} than the next, {name} (95% interval, paired by seed: {} to {})",
                    percent(low),
                    percent(high)
                )
            }
            Some(Estimate { ci95: Some(_), .. }) => {
                let seeds = chosen.seeds.min(next.seeds);
                let what = if more { "has {by} less" } else { "takes {by} longer" };
                let what = what.replace("{by}", &by);
                format!("; {seeds} seeds cannot tell it from {name}, which {what}")
            }
            _ => format!("; {by} {word} than the next, {name}, by too few seeds to be sure"),
        }
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

/// The best values of a pool.
fn best_of(pool: &[Candidate<'_>], aim: Aim) -> Best {
    let least = |of: &dyn Fn(&ProtocolOutcome) -> f64| {
        pool.iter().map(|r| of(r)).filter(|x| x.is_finite()).fold(f64::INFINITY, f64::min)
    };
    Best {
        floor_s: least(&|r| mean(r, "rtt_s_min")),
        least_loss: least(&|r| loss(r)),
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

/// Whether `a` has significantly less of a measure than `b`.
fn surely_less(a: Candidate<'_>, b: Candidate<'_>, measure: &str) -> bool {
    match paired(a, b, measure) {
        Some(d) => d.ci95.is_some_and(|half| d.mean < -half),
        None => mean(a, measure) < (1.0 - UNSURE) * mean(b, measure),
    }
}

/// Protocols left out because they do not suit the aim, or that no protocol suits it.
fn unsuited(all: &[Candidate<'_>], suited: &[Candidate<'_>], aim: Aim) -> Option<String> {
    let what = match aim {
        Aim::Bulk | Aim::Web => "leaves lost packets lost, so that no file would be whole",
        Aim::Calls => "waits for retransmissions, which a call cannot",
        Aim::Live => "listens to nothing",
    };
    if suited.is_empty() {
        return Some(format!("None of these is made for {}: each {what}.", aim.name()));
    }
    let out = all.iter().filter(|r| suited.iter().all(|p| p.protocol != r.protocol));
    let (deaf, others): (Vec<&str>, Vec<&str>) = out
        .map(|r| (r.protocol.as_str(), senses(r) == "nothing"))
        .fold((Vec::new(), Vec::new()), |(mut deaf, mut others), (name, is_deaf)| {
            if is_deaf {
                deaf.push(name)
            } else {
                others.push(name)
            };
            (deaf, others)
        });
    let parts: Vec<String> = [(deaf, "sends whatever is lost"), (others, what)]
        .into_iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, why)| format!("{}, which {why}", list(&names)))
        .collect();
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
    r.measure(name).unwrap_or(Estimate { mean: f64::NAN, ci95: None })
}

#[cfg(test)]
mod tests;
