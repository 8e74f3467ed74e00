//! Recommends a protocol for a given aim, with reasons, from the measures.
//!
//! 1. Each [`Aim`] defines which protocols suit it, their value in one number, and bounds of what it bears, with their
//!    sources. A protocol beyond a bound is not recommended.
//! 2. Only protocols that can be used today compete ([`Obtain`]), with their parameters. A better one is named, with
//!    the reason why it is not recommended.
//! 3. CUBIC, Linux's default, is recommended unless others gain `GAIN` over it, significantly. Of these the best wins,
//!    unless one of Linux's own loses nothing to it. The best has the highest lower end of its value's 95% interval:
//!    a mean that the seeds contradict is not to be followed blindly.
//! 4. The exchange rate of the aim ([`Aim::near`]): within it, values count as equal, and less delay (for `live`, less
//!    variation) decides.
//! 5. A controller of Linux's TCP is not recommended if a flow with it keeps less than `KEEPS` of an equal share beside
//!    one CUBIC flow on the same link.
//! 6. CUBIC with a queue beyond the aim's bound gives way to a protocol within the bounds that loses less than `GAIN`
//!    to it. If there is none, it is recommended, and the text states its queue.
//! 7. Differences are paired by seed: all protocols get the same losses and start times.
//! 8. Several paths are simulated only: protocols are ranked for them, but no command is named.
//! 9. The reasons come from the same numbers: where packets were lost, the queueing delay, and the buffer that was the
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
use crate::outcome::{Estimate, Outcome, ProtocolOutcome, Recommendation};
use aim::{PathValues, completes, fair_share, loss, mean};
use narrows_base::Status;
use narrows_sim::protocol::Preset;
use text::{milliseconds, seconds};

/// A relative difference below this is no gain: in value, delay or variation.
const GAIN: f64 = 0.05;
/// A controller of Linux's TCP keeps at least this fraction of an equal share beside CUBIC.
const KEEPS: f64 = 0.8;

/// Linux's congestion control without a setting.
const LINUX_DEFAULT: &str = "cubic";

type Candidate<'a> = &'a ProtocolOutcome;

/// Measures the share of a protocol's flow beside one CUBIC flow, over an equal share; `None` if it is not measured.
pub type ShareBesideCubic<'a> = dyn FnMut(&str) -> Option<f64> + 'a;

/// How the protocols were simulated.
#[derive(Clone, Copy, Debug)]
pub struct SimulationBasis {
    /// The TCP that was simulated.
    pub preset: Preset,
    /// Bytes of a data packet.
    pub packet: u32,
    /// Number of paths that a flow used.
    pub paths: usize,
}

/// One recommendation for protocols simulated on this basis; empty if no run finished.
pub fn recommend(
    outcome: &Outcome,
    aim: Aim,
    basis: SimulationBasis,
    share_beside_cubic: &mut ShareBesideCubic<'_>,
) -> Recommendation {
    if outcome.results.is_empty() {
        return Recommendation::default();
    }
    let all: Vec<Candidate<'_>> =
        outcome.results.iter().filter(|r| mean(r, "goodput_bps") > 0.0).collect();
    if all.is_empty() {
        let why = undelivered::why(outcome, basis.packet);
        return Recommendation::none(format!(
            "None: no protocol delivered a single byte here. {why}"
        ));
    }
    let suited: Vec<Candidate<'_>> =
        all.iter().copied().filter(|r| aim.unsuited(r).is_none()).collect();
    if suited.is_empty() {
        let why = unsuited(&all, aim).unwrap_or_default();
        return Recommendation::none(format!("None of these is made for {}. {why}", aim.name()));
    }
    let question = RecommendationBasis { aim, basis, path: path_of(&suited, aim) };
    let bearable: Vec<Candidate<'_>> =
        suited.iter().copied().filter(|r| question.why_not(r).is_none()).collect();
    let available: Vec<Candidate<'_>> =
        bearable.iter().copied().filter(|r| question.obtain(r).is_deployable()).collect();
    let mut fair = question.choose_fair(&available, share_beside_cubic);
    let queueing = suited.iter().copied().find(|r| question.is_queueing_default(r));
    if let Some(default) = queueing.filter(|r| {
        fair.chosen.is_none_or(|c| question.value(c) < (1.0 - GAIN) * question.value(r))
    }) {
        fair.chosen = Some(default);
        fair.share = None;
    }
    let chosen = fair.chosen;
    let mut sentences = match chosen {
        Some(_) => question.advice(&suited, &fair),
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
    sentences.extend(fair.starved_sentence());
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
        sentences.push(aim.ranking().into());
    }
    Recommendation {
        protocol: chosen.map_or_else(String::new, |r| r.protocol.clone()),
        command: chosen.and_then(|r| question.command(r)),
        sentences,
    }
}

/// A choice among protocols that were tried beside CUBIC.
struct FairChoice<'a> {
    chosen: Option<Candidate<'a>>,
    /// The share of the chosen one over an equal share.
    share: Option<f64>,
    /// Controllers of Linux's TCP that keep too little, with their shares.
    starved: Vec<(Candidate<'a>, f64)>,
    /// What is left to choose from.
    pool: Vec<Candidate<'a>>,
}

impl FairChoice<'_> {
    /// `Not recommended, since they keep less than 80% of an equal share beside one CUBIC flow: vegas (11.4%).`
    fn starved_sentence(&self) -> Option<String> {
        let names: Vec<String> = (self.starved.iter())
            .map(|(r, share)| format!("{} ({:.1}%)", r.protocol, 100.0 * share))
            .collect();
        (!names.is_empty()).then(|| {
            format!(
                "Not recommended, since they keep less than {} of an equal share beside one CUBIC flow: {}.",
                percent(KEEPS),
                names.join(", ")
            )
        })
    }
}

/// The aim, and the path for which protocols are ranked.
struct RecommendationBasis {
    aim: Aim,
    basis: SimulationBasis,
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

    /// Where it is available for this aim: media leave by `narrows media`, whatever carries files.
    fn obtain(&self, r: Candidate<'_>) -> Obtain {
        match Obtain::of(&r.protocol, self.basis.preset) {
            Obtain::Stream(name) if matches!(self.aim, Aim::Calls | Aim::Live) => {
                Obtain::Messages(name)
            }
            other => other,
        }
    }

    /// The command that uses it as simulated; a command has one path.
    fn command(&self, r: Candidate<'_>) -> Option<String> {
        self.obtain(r).command().filter(|_| self.basis.paths == 1)
    }

    fn best_of<'a>(&self, pool: &[Candidate<'a>]) -> Option<Candidate<'a>> {
        let some = pool.iter().copied().filter(|r| self.value(r) > 0.0);
        some.max_by(|a, b| self.value(a).total_cmp(&self.value(b)))
    }

    /// The lower end of the value's 95% interval: what can be relied on. One seed has no interval, only its value.
    fn assured(&self, r: Candidate<'_>) -> f64 {
        let values: Vec<f64> =
            self.aim.values(r).map(|(_, value)| value).filter(|v| v.is_finite()).collect();
        if values.len() < 2 {
            return self.value(r);
        }
        let interval = Resamples::of(values.len()).estimate(&values).ci95();
        interval.map_or(self.value(r), |ends| ends.low)
    }

    /// Whether this is CUBIC, and only its queue is beyond the aim's bounds.
    fn is_queueing_default(&self, r: Candidate<'_>) -> bool {
        r.protocol == LINUX_DEFAULT
            && self.obtain(r).is_deployable()
            && self.aim.only_queues(r, self.path)
    }

    /// Chooses until the choice keeps its share beside CUBIC, or is no controller of Linux's TCP.
    fn choose_fair<'a>(
        &self,
        pool: &[Candidate<'a>],
        share_beside_cubic: &mut ShareBesideCubic<'_>,
    ) -> FairChoice<'a> {
        let mut fair =
            FairChoice { chosen: None, share: None, starved: Vec::new(), pool: pool.to_vec() };
        while let Some(best) = self.choose(&fair.pool) {
            let share = match best.protocol.as_str() {
                LINUX_DEFAULT => None,
                _ if best.rivals > 0 => Some(mean(best, "share") / fair_share(best, best.rivals)),
                _ if self.aim == Aim::Calls => None,
                name => share_beside_cubic(name),
            };
            match share.filter(|share| *share < KEEPS) {
                Some(share) if self.obtain(best).is_of_linux() => {
                    fair.starved.push((best, share));
                    fair.pool.retain(|r| r.protocol != best.protocol);
                }
                _ => {
                    fair.chosen = Some(best);
                    fair.share = share;
                    break;
                }
            }
        }
        fair
    }

    /// The best protocol of a pool within the bounds: rules 3 and 4 above.
    fn choose<'a>(&self, pool: &[Candidate<'a>]) -> Option<Candidate<'a>> {
        let default = pool.iter().copied().find(|r| r.protocol == LINUX_DEFAULT);
        let Some(default) = default.or_else(|| self.linux(pool)) else {
            return self.first_of(pool);
        };
        let gaining: Vec<Candidate<'a>> =
            pool.iter().copied().filter(|r| self.gains(r, default)).collect();
        let Some(best) = self.first_of(&gaining) else { return Some(default) };
        Some(self.linux(&gaining).filter(|own| !self.gains(best, own)).unwrap_or(best))
    }

    /// Whether a protocol gains something over one that Linux has: in value, or where the aim asks for it, in delay or
    /// variation at an equal value.
    fn gains(&self, best: Candidate<'_>, linux: Candidate<'_>) -> bool {
        let is_more = self.value(best) >= (1.0 + GAIN) * self.value(linux)
            && paired(self.aim.values(best), self.aim.values(linux))
                .is_none_or(|d| d.ci95().is_some_and(|ends| ends.low > 0.0));
        let is_equal = self.value(best) >= (1.0 - self.aim.near()) * self.value(linux);
        is_more
            || (self.aim != Aim::Bulk
                && is_equal
                && surely_less(best, linux, self.aim.tie_breaker()))
    }

    /// The one with the highest value that can be relied on, or with less delay (`live`: variation) near it.
    fn first_of<'a>(&self, pool: &[Candidate<'a>]) -> Option<Candidate<'a>> {
        let top = (pool.iter().copied())
            .filter(|r| self.value(r) > 0.0)
            .max_by(|a, b| self.assured(a).total_cmp(&self.assured(b)))?;
        let by = self.aim.tie_breaker();
        let least_value = (1.0 - self.aim.near()) * self.assured(top);
        let least = (pool.iter().copied())
            .filter(|r| self.assured(r) >= least_value)
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

    /// Which protocol to use, how to get it, its gain, its share beside CUBIC, and the alternatives.
    fn advice(&self, suited: &[Candidate<'_>], fair: &FairChoice<'_>) -> Vec<String> {
        let Some(chosen) = fair.chosen else { return Vec::new() };
        let others: Vec<Candidate<'_>> =
            fair.pool.iter().copied().filter(|r| r.protocol != chosen.protocol).collect();
        let linux = self.linux(&others).filter(|r| self.gains(chosen, r));
        let mut sentences = vec![self.first_sentence(chosen, &others, linux)];
        if self.basis.paths == 1 {
            sentences.push(self.obtain(chosen).sentence(&chosen.protocol));
        }
        if let Some(linux) = linux {
            let by = self.aim.tie_breaker();
            let gained = match (self.gain(chosen, linux), self.aim) {
                (gain, _) if gain.size >= GAIN => format!("{}{}", percent(gain.size), gain.sure),
                (_, Aim::Live) => "steadiness".into(),
                _ => format!("{} less delay", milliseconds(mean(linux, by) - mean(chosen, by))),
            };
            let name = &linux.protocol;
            let other = if self.obtain(chosen).is_of_linux() { "next best" } else { "best" };
            let sentence =
                format!("Over {name}, the {other} that Linux has here, it gains {gained}.");
            sentences.push(sentence.replace("it gains steadiness", "it is steadier"));
        }
        sentences.extend(fair.share.filter(|_| chosen.rivals == 0).map(|share| {
            let share = percent(share);
            format!("Beside one CUBIC flow on this link it gets {share} of an equal share.")
        }));
        if let Some(why) = self.why_not(chosen) {
            sentences.push(format!("What shares its queue suffers: {why}."));
        }
        sentences.extend(self.alternatives(&others, chosen));
        sentences.extend(self.ruled_out(suited, chosen));
        sentences
    }

    /// The alternative with the highest value, if it is higher, and for `bulk` the one with the least delay that loses
    /// less than [`GAIN`]: each with its own figures. If there is none that gains anything, the best other one.
    fn alternatives(&self, others: &[Candidate<'_>], chosen: Candidate<'_>) -> Vec<String> {
        let more = self.best_of(others).filter(|r| self.value(r) > 1.005 * self.value(chosen));
        let by = self.aim.tie_breaker();
        let quick = (others.iter().copied())
            .filter(|r| self.aim == Aim::Bulk && surely_less(r, chosen, by))
            .filter(|r| more.is_none_or(|more| more.protocol != r.protocol))
            .filter(|r| self.value(r) >= (1.0 - GAIN) * self.value(chosen))
            .min_by(|a, b| mean(a, by).total_cmp(&mean(b, by)));
        let named: Vec<Candidate<'_>> = more.into_iter().chain(quick).collect();
        if named.is_empty() && chosen.protocol == LINUX_DEFAULT {
            let best = self.first_of(others);
            return best
                .map(|r| format!("{} gains nothing over it.", r.protocol))
                .into_iter()
                .collect();
        }
        named.into_iter().map(|r| self.in_comparison(r, chosen)).collect()
    }

    /// `newreno would give 3.0% more, with 0.8 ms more delay.`
    fn in_comparison(&self, other: Candidate<'_>, chosen: Candidate<'_>) -> String {
        let ratio = self.value(other) / self.value(chosen) - 1.0;
        let word = if ratio < 0.0 { "less" } else { "more" };
        let paired = paired(self.aim.values(other), self.aim.values(chosen));
        let sure = match paired.and_then(|d| d.ci95()) {
            Some(ends) if ends.low <= 0.0 && ends.high >= 0.0 => {
                format!(", which {} seeds do not make sure", other.seeds.min(chosen.seeds))
            }
            _ => String::new(),
        };
        let by = self.aim.tie_breaker();
        let difference = mean(other, by) - mean(chosen, by);
        let cost = match self.aim {
            _ if completes(other) || !difference.is_finite() => String::new(),
            Aim::Live if difference > 0.0 => ", and vary more".into(),
            Aim::Live => ", and vary less".into(),
            _ => {
                let word = if difference < 0.0 { "less" } else { "more" };
                format!(", with {} {word} delay", milliseconds(difference.abs()))
            }
        };
        let name = &other.protocol;
        if ratio.abs() < 5e-4 {
            return format!("{name} would give as much{cost}.");
        }
        let size = percent(ratio.abs());
        format!("{name} would give {size} {word}{sure}{cost}.")
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
            let share = percent(share);
            let fair = percent(fair_share(r, r.rivals));
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
        let next = self.best_of(rest).filter(|r| linux.is_none_or(|l| l.protocol != r.protocol));
        match next.map(|next| (self.gain(chosen, next), next)) {
            Some((gain, next)) if gain.size > 0.0 => {
                let word = if self.aim.measure(chosen).1 { "more" } else { "sooner" };
                let size = percent(gain.size);
                format!("{text}; {size} {word} than the next, {}{}.", next.protocol, gain.sure)
            }
            _ => text + ".",
        }
    }

    /// The relative gain of one protocol over another in the aim's measure, and how sure it is.
    fn gain(&self, chosen: Candidate<'_>, other: Candidate<'_>) -> RelativeGain {
        let (measure, more) = self.aim.measure(chosen);
        let of_chosen = mean(chosen, measure);
        let of_other = mean(other, measure);
        let size = if more { of_chosen / of_other - 1.0 } else { 1.0 - of_chosen / of_other };
        let paired = paired(chosen.seeds_of(measure), other.seeds_of(measure));
        let sure = match paired.and_then(|d| d.ci95()) {
            _ if chosen.one_trajectory || other.one_trajectory => {
                ", on one trajectory that another start may change".into()
            }
            Some(ends) if ends.low > 0.0 || ends.high < 0.0 => {
                let least = ends.low.abs().min(ends.high.abs());
                let most = ends.low.abs().max(ends.high.abs());
                format!(
                    " (95% interval, paired by seed: {} to {})",
                    percent(least / of_other.abs()),
                    percent(most / of_other.abs())
                )
            }
            _ => format!(", which {} seeds do not make sure", chosen.seeds.min(other.seeds)),
        };
        RelativeGain { size, sure }
    }

    /// Protocols that are ruled out, with the reason: the best with a higher value, and Linux's default.
    fn ruled_out(&self, pool: &[Candidate<'_>], chosen: Candidate<'_>) -> Vec<String> {
        let out: Vec<Candidate<'_>> = (pool.iter().copied())
            .filter(|r| r.protocol != chosen.protocol && self.why_not(r).is_some())
            .collect();
        let best = self.best_of(&out).filter(|r| self.value(r) > self.value(chosen));
        let default = out.iter().copied().find(|r| r.protocol == LINUX_DEFAULT);
        let default = default.filter(|r| best.is_none_or(|best| best.protocol != r.protocol));
        let sentence = |r: Candidate<'_>| {
            let ratio = self.value(r) / self.value(chosen) - 1.0;
            let word = if ratio < 0.0 { "less" } else { "more" };
            let size = percent(ratio.abs());
            Some(format!("{} would give {size} {word}, but {}.", r.protocol, self.why_not(r)?))
        };
        best.into_iter().chain(default).filter_map(sentence).collect()
    }
}

/// A gain as a fraction, and the words on its certainty that follow the number.
struct RelativeGain {
    size: f64,
    sure: String,
}

/// The path's values, as a pool shows them.
fn path_of(pool: &[Candidate<'_>], aim: Aim) -> PathValues {
    let least = |of: &dyn Fn(&ProtocolOutcome) -> f64| {
        pool.iter().map(|r| of(r)).filter(|x| x.is_finite()).fold(f64::INFINITY, f64::min)
    };
    PathValues {
        floor_s: least(&|r| mean(r, "rtt_s_min")),
        least_variation: least(&|r| aim.variation(r)),
        least_unfinished: least(&|r| 1.0 - mean(r, "finished")),
    }
}

/// The difference of two lists of seeds and values, seed by seed, so that common random draws cancel out.
fn paired(
    a: impl Iterator<Item = (u64, f64)>,
    b: impl Iterator<Item = (u64, f64)>,
) -> Option<Estimate> {
    let of_other: Vec<(u64, f64)> = b.collect();
    let differences: Vec<f64> = a
        .filter_map(|(seed, x)| of_other.iter().find(|t| t.0 == seed).map(|t| x - t.1))
        .filter(|d| d.is_finite())
        .collect();
    (differences.len() > 1).then(|| Resamples::of(differences.len()).estimate(&differences))
}

/// Whether `a` has less of a measure than `b`, by more than `GAIN` and significantly. Completion times contain the
/// delay, so it does not count twice.
fn surely_less(a: Candidate<'_>, b: Candidate<'_>, measure: &str) -> bool {
    !completes(a)
        && mean(a, measure) < (1.0 - GAIN) * mean(b, measure)
        && paired(a.seeds_of(measure), b.seeds_of(measure))
            .is_none_or(|d| d.ci95().is_some_and(|ends| ends.high < 0.0))
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
