//! The figures of a run that a cell's goals need.

use super::cells::BadLinkCell;
use super::figure::GoalFigure;
use narrows_scenario::Plan;
use narrows_sim::result::LINK_TICK_S;
use narrows_sim::{LinkResult, RunResult};

impl GoalFigure {
    /// Of one run.
    pub fn of(self, cell: &BadLinkCell, plan: &Plan, run: &RunResult) -> f64 {
        let link = &run.links[plan.bottleneck(0)];
        let here = link.groups.first().copied().unwrap_or_default();
        let flows = &run.groups[0].flows;
        let sum = |of: fn(&narrows_sim::FlowResult) -> f64| flows.iter().map(of).sum::<f64>();
        let goodput = sum(|f| f.goodput_bytes as f64);
        let mbps = |bytes: f64| bytes * 8e-6 / run.span_s;
        match self {
            GoalFigure::Rate => {
                let share = sum(|f| f.sent_bytes as f64) / here.offered_bytes.max(1) as f64;
                8.0 * goodput / (link.capacity_bits * share * (1.0 - cell.loss))
            }
            GoalFigure::Wire => here.offered_bytes as f64 * (1.0 - cell.loss) / goodput.max(1.0),
            GoalFigure::Queue => {
                let packet_bits = 8.0 * f64::from(cell.question.packet);
                let per_second = link.capacity_bits / run.span_s / packet_bits;
                1e3 * link.queue_mean / per_second
            }
            GoalFigure::Goodput => mbps(goodput),
            GoalFigure::Rtt => run.groups[0].rtt.mean().map_or(f64::NAN, |ns| ns * 1e-6),
            GoalFigure::Dropped => here.dropped as f64 / here.offered.max(1) as f64,
            GoalFigure::Spurious => {
                let again = sum(|f| f.retransmissions as f64);
                let missing = (here.dropped + here.lost) as f64;
                (again - missing).max(0.0) / sum(|f| f.sent_packets as f64).max(1.0)
            }
            GoalFigure::Acks => {
                let name = format!("{}.back", plan.bottleneck_name(0));
                run.links.iter().find(|l| l.name == name).map_or(f64::NAN, |back| {
                    let data: f64 = back.groups.iter().map(|g| g.served_bits).sum();
                    (back.served_bits - data) / back.capacity_bits
                })
            }
            GoalFigure::Theta => {
                let all: f64 = link.groups.iter().map(|g| g.served_bits).sum();
                (all - here.served_bits) / all.max(1.0)
            }
            GoalFigure::Inequality => (GoalFigure::Theta.of(cell, plan, run) - 0.5).abs(),
            GoalFigure::Others => {
                let others = run.groups.get(1).map_or(&[][..], |g| &g.flows);
                mbps(others.iter().map(|f| f.goodput_bytes as f64).sum())
            }
            GoalFigure::Jain => {
                let each: Vec<f64> = flows.iter().map(|f| f.goodput_bytes as f64).collect();
                narrows_lab::stats::jain(&each)
            }
            GoalFigure::Completion => {
                let took = flows.iter().map(|f| {
                    f.done.map_or(f64::INFINITY, |done| 1e3 * done.since(f.start).as_secs_f64())
                });
                took.sum::<f64>() / flows.len().max(1) as f64
            }
            GoalFigure::Resumed => {
                resumed(cell, link).map_or(f64::NAN, |ticks| ticks as f64 * LINK_TICK_S)
            }
            GoalFigure::Recovered => recovered(cell, link),
            GoalFigure::Drained => drained(cell, plan, run),
        }
    }
}

/// Packets that the link served in each tick after the last change.
fn served<'r>(cell: &BadLinkCell, link: &'r LinkResult) -> Option<&'r [f64]> {
    let from = (cell.step?.at_s / LINK_TICK_S).round() as usize;
    link.ticks.first()?.served.get(from..)
}

fn resumed(cell: &BadLinkCell, link: &LinkResult) -> Option<usize> {
    let after = served(cell, link)?;
    Some(after.iter().position(|bits| *bits > 0.0).unwrap_or(after.len()))
}

fn recovered(cell: &BadLinkCell, link: &LinkResult) -> f64 {
    let (Some(step), Some(begin)) = (&cell.step, resumed(cell, link)) else { return f64::NAN };
    let wanted = 0.8 * step.rate_bps * 2.0 * LINK_TICK_S;
    let after = served(cell, link).and_then(|s| s.get(begin..)).unwrap_or_default();
    let first = after.windows(2).position(|w| w.iter().sum::<f64>() >= wanted);
    first.map_or(f64::INFINITY, |i| i as f64 * LINK_TICK_S)
}

fn drained(cell: &BadLinkCell, plan: &Plan, run: &RunResult) -> f64 {
    let Some(step) = &cell.step else { return f64::NAN };
    let name = plan.bottleneck_name(0);
    let table = run.series.iter().find(|t| t.kind == "link" && t.name == name);
    let Some((table, queue)) = table.and_then(|t| Some((t, t.column("queue")?))) else {
        return f64::NAN;
    };
    let most = 2.0 * step.base_rtt_s * step.rate_bps / (8.0 * f64::from(cell.question.packet));
    let until = step.at_s + 10.0;
    let high = (table.time_s.iter().zip(queue))
        .filter(|(t, q)| **t >= step.at_s && **t <= until && **q > most)
        .map(|(t, _)| *t - step.at_s)
        .next_back();
    high.unwrap_or(0.0)
}
