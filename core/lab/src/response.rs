//! Responses of groups and flows to changes, from a run's time series.
//!
//! **Halving** (after a step down of the fair share): the time until the load that the group *offers* to its bottleneck
//! is, over a second, at most half of its mean before the step. If 1.2 times its new share is more, that is the limit.
//! The offered load counts, not the served one, because a link that has become slower serves less whatever the sender
//! does. Half of the mean before alone would never be reached if the new share is half and the group stays a little
//! above it. The new share alone would measure fairness, which is not the purpose. **Taking up** (after a step up): the
//! time to the first second over which the bottleneck *serves* the group 80% of its new share. Both examine every
//! window of one second that begins at a tenth of a second after the step and ends before the next. They count from the
//! step, so a sender that responds at once has a time of up to 0.1 s. The mean before is over the 5 s before the step,
//! or since the previous step.
//!
//! **Convergence** (of a flow that starts in the measured span): the time to the beginning of the first 5 consecutive
//! seconds in which its goodput is within 20% of an equal share. The share is the mean over all flows at its
//! bottleneck, over the second half of its time. Its time ends at the next step. The share is that of the flows'
//! goodput and not of the capacity, which no flow reaches if packets are lost; a single flow is compared with itself.
//! Seconds are counted from the beginning of the measured span.

use crate::stats::jain;
use narrows_base::{Duration, Time};
use narrows_scenario::plan::{Plan, ShareChange};
use narrows_sim::result::LINK_TICK_S;
use narrows_sim::{FlowResult, RunResult, SeriesTable};
use std::collections::BTreeMap;

/// Relative distance from a share that counts as reached.
const NEAR: f64 = 0.2;
/// Part of the mean before to which the offered load must fall.
const HALF: f64 = 0.5;
/// Most ticks in the mean before a step.
const BEFORE: usize = 50;
/// Ticks of a window, and fewest ticks of a mean before a step.
const WINDOW: usize = 10;
/// Consecutive seconds for convergence.
const HOLD: usize = 5;
const TICK_NS: u64 = (LINK_TICK_S * 1e9) as u64;
const SECOND_NS: u64 = 1_000_000_000;

/// A group's response times.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Response {
    /// Seconds to halve, mean over the steps down; NaN without such steps, or if one was never completed.
    pub halving_s: f64,
    /// Seconds to take up free capacity, mean over the steps up; NaN likewise.
    pub takeup_s: f64,
    /// Per flow: seconds to converge; NaN if it never did.
    pub convergence_s: Vec<f64>,
}

impl Response {
    /// Of a group in a finished run.
    pub fn of(plan: &Plan, variant: usize, run: &RunResult, group: usize) -> Response {
        let from = Time::ZERO + plan.scenario.warmup;
        let steps = plan.steps(group, variant);
        let mut halving = Vec::new();
        let mut takeup = Vec::new();
        let link = &run.links[plan.bottleneck(group)];
        if let Some(ticks) = link.ticks.get(group) {
            for step in steps.iter().filter(|s| s.at >= from) {
                let down = step.after_bps < step.before_bps;
                let before = if down { &ticks.offered } else { &ticks.served };
                let Some(before) = mean_before(before, step, from) else { continue };
                // A group that is already at the new share need not respond.
                if down {
                    let max = (HALF * before).max((1.0 + NEAR) * step.after_bps);
                    if before > max {
                        halving.push(seconds_until(&ticks.offered, step, from, |r| r <= max));
                    }
                } else {
                    let min = (1.0 - NEAR) * step.after_bps;
                    if before < min {
                        takeup.push(seconds_until(&ticks.served, step, from, |r| r >= min));
                    }
                }
            }
        }
        let flows = &run.groups[group].flows;
        let constant = plan.scenario.flows[group].source.demand_bps().is_some();
        let convergence_s = if constant {
            let all = sharing(plan, run, group);
            let mut shares = BTreeMap::new();
            let mut one = |f| convergence(plan, group, f, &all, &steps, &mut shares);
            flows.iter().map(&mut one).collect()
        } else {
            vec![f64::NAN; flows.len()]
        };
        Response { halving_s: mean(&halving), takeup_s: mean(&takeup), convergence_s }
    }
}

/// NaN for an empty slice, or if a value is NaN.
fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// The first tick or second that begins at `t` or later.
fn first_at(t: Time, from: Time, width_ns: u64) -> usize {
    t.since(from).as_nanos().div_ceil(width_ns) as usize
}
/// Number of ticks or seconds that have ended by `t`.
fn ended_at(t: Time, from: Time, width_ns: u64) -> usize {
    (t.since(from).as_nanos() / width_ns) as usize
}

/// The rate in bit/s before a step; `None` if too little of it was measured.
fn mean_before(ticks: &[f64], step: &ShareChange, from: Time) -> Option<f64> {
    let end = ended_at(step.at, from, TICK_NS).min(ticks.len());
    let begin = first_at(step.since, from, TICK_NS).max(end.saturating_sub(BEFORE));
    let known = ticks.get(begin..end).filter(|t| t.len() >= WINDOW)?;
    Some(known.iter().sum::<f64>() / (known.len() as f64 * LINK_TICK_S))
}

/// Time from the step to the beginning of the first second for which `passes` holds for the rate.
fn seconds_until(
    ticks: &[f64],
    step: &ShareChange,
    from: Time,
    passes: impl Fn(f64) -> bool,
) -> f64 {
    let begin = first_at(step.at, from, TICK_NS);
    let end = ended_at(step.until, from, TICK_NS).min(ticks.len());
    let after = ticks.get(begin..end).unwrap_or(&[]);
    let rate = |w: &[f64]| w.iter().sum::<f64>() / (WINDOW as f64 * LINK_TICK_S);
    let found = after.windows(WINDOW).position(|w| passes(rate(w)));
    found.map_or(f64::NAN, |n| {
        let at = from + Duration::from_nanos((begin + n) as u64 * TICK_NS);
        at.since(step.at).as_secs_f64()
    })
}

/// A flow that shares a bottleneck, and when it stops.
type Sharing<'a> = (&'a FlowResult, Time);

/// The flows with data through the group's bottleneck that always have data to send.
fn sharing<'a>(plan: &Plan, run: &'a RunResult, group: usize) -> Vec<Sharing<'a>> {
    let s = &plan.scenario;
    let mut all = Vec::new();
    for g in std::iter::once(group).chain(plan.others(group)) {
        if s.flows[g].source.demand_bps().is_some_and(f64::is_infinite) || g == group {
            let stop = s.flows[g].stop.unwrap_or(s.duration).min(s.duration);
            all.extend(run.groups[g].flows.iter().map(|f| (f, Time::ZERO + stop)));
        }
    }
    all
}

/// Bytes in a second of the measured span.
fn bytes(flow: &FlowResult, second: usize) -> f64 {
    let kept = flow.detail.as_ref().and_then(|d| d.seconds.get(second.checked_sub(d.first)?));
    kept.map_or(0.0, |b| *b as f64)
}

fn convergence(
    plan: &Plan,
    group: usize,
    flow: &FlowResult,
    all: &[Sharing<'_>],
    steps: &[ShareChange],
    shares: &mut BTreeMap<(usize, usize), f64>,
) -> f64 {
    let s = &plan.scenario;
    let from = Time::ZERO + s.warmup;
    let stop = Time::ZERO + s.flows[group].stop.unwrap_or(s.duration).min(s.duration);
    let until = steps.iter().map(|s| s.at).find(|at| *at > flow.start).unwrap_or(stop).min(stop);
    let begin = first_at(flow.start, from, SECOND_NS);
    let end = ended_at(until, from, SECOND_NS);
    let known = flow.detail.as_ref().is_some_and(|d| !d.seconds.is_empty());
    if flow.start < from || end < begin + 2 * HOLD || !known {
        return f64::NAN;
    }
    let middle = usize::midpoint(begin, end);
    let time = |second: usize| from + Duration::from_nanos(second as u64 * SECOND_NS);
    let there = |f: &&Sharing<'_>| f.0.start <= time(middle) && f.1 >= time(end);
    // Flows that start in the same second have the same share.
    let share = *shares.entry((middle, end)).or_insert_with(|| {
        let total = |f: &Sharing<'_>| (middle..end).map(|k| bytes(f.0, k)).sum();
        let totals: Vec<f64> = all.iter().filter(there).map(total).collect();
        mean(&totals) / (end - middle) as f64
    });
    let near = |second: usize| (bytes(flow, second) - share).abs() <= NEAR * share;
    let found = (begin..=end - HOLD).find(|k| (*k..k + HOLD).all(near));
    found.map_or(f64::NAN, |k| time(k).since(flow.start).as_secs_f64())
}

/// A group's values per second: its throughput at its bottleneck, theta if it has competitors there, Jain's index of
/// its flows' goodputs if it has several.
pub fn over_time(plan: &Plan, run: &RunResult, group: usize) -> Option<SeriesTable> {
    let s = &plan.scenario;
    let from = Time::ZERO + s.warmup;
    let link = &run.links[plan.bottleneck(group)];
    let per_second = |g: usize| -> Vec<f64> {
        let ticks = link.ticks.get(g).map_or(&[][..], |t| &t.served);
        ticks.chunks_exact(WINDOW).map(|w| w.iter().sum()).collect()
    };
    let own = per_second(group);
    if own.is_empty() {
        return None;
    }
    let n = own.len();
    let mut columns = vec![("throughput_bps", own.clone())];
    let others: Vec<Vec<f64>> = plan.others(group).into_iter().map(per_second).collect();
    if !others.is_empty() {
        let theta = |k: usize| {
            let others: f64 = others.iter().filter_map(|o| o.get(k)).sum();
            let all = others + own[k];
            if all > 0.0 { others / all } else { f64::NAN }
        };
        columns.push(("theta", (0..n).map(theta).collect()));
    }
    let flows = &run.groups[group].flows;
    let kept = flows.iter().any(|f| f.detail.as_ref().is_some_and(|d| !d.seconds.is_empty()));
    if flows.len() > 1 && kept {
        let stop = Time::ZERO + s.flows[group].stop.unwrap_or(s.duration);
        let equality = |k: usize| {
            let at = |k: usize| from + Duration::from_nanos(k as u64 * SECOND_NS);
            // Only flows that are active for the whole second count in it.
            let there = |f: &&FlowResult| {
                f.start <= at(k) && stop >= at(k + 1) && f.done.is_none_or(|done| done >= at(k + 1))
            };
            let x: Vec<f64> = flows.iter().filter(there).map(|f| bytes(f, k)).collect();
            if x.len() > 1 { jain(&x) } else { f64::NAN }
        };
        columns.push(("jain", (0..n).map(equality).collect()));
    }
    let end = |k: usize| (from + Duration::from_nanos((k + 1) as u64 * SECOND_NS)).as_secs_f64();
    Some(SeriesTable {
        kind: "group",
        name: s.flows[group].name.clone(),
        group: s.flows[group].name.clone(),
        time_s: (0..n).map(end).collect(),
        columns,
    })
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;
