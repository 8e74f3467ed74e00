//! What is read off a run for the goals of a cell.

use super::cells::Cell;
use narrows_scenario::Plan;
use narrows_sim::RunResult;
use narrows_sim::result::LINK_TICK_S;

/// A figure that goals are set for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Figure {
    /// Goodput over what application bytes can have of the link's rate, with its losses taken off.
    Rate,
    /// Bytes offered to the link for each application byte delivered, times 1 - loss.
    Wire,
    /// Time that the packets in the queue take to be sent, mean over time, ms.
    Queue,
    /// Goodput, Mbit/s.
    Goodput,
    /// Mean round trip, ms.
    Rtt,
    /// Share of the offered packets that the bottleneck's queue dropped.
    Dropped,
    /// Packets sent again beyond those that were dropped or lost, over the packets sent.
    Spurious,
    /// The others' share of the departures.
    Theta,
    /// Goodput of the other flows, Mbit/s.
    Others,
    /// Jain's index of the flows' goodputs.
    Jain,
    /// Mean completion time of the transfers, ms.
    Completion,
    /// Seconds from the last change to 0.8 of what the link then has, over 0.2 s.
    Recovered,
    /// Seconds from the last change until the queue stays below two base round trips.
    Drained,
}

impl Figure {
    /// As in tables and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Figure::Rate => "rate",
            Figure::Wire => "wire",
            Figure::Queue => "queue ms",
            Figure::Goodput => "Mbit/s",
            Figure::Rtt => "RTT ms",
            Figure::Dropped => "dropped",
            Figure::Spurious => "spurious",
            Figure::Theta => "theta",
            Figure::Others => "others Mbit/s",
            Figure::Jain => "Jain",
            Figure::Completion => "completion ms",
            Figure::Recovered => "recovered s",
            Figure::Drained => "drained s",
        }
    }

    /// With as many digits as it deserves.
    pub fn text(self, value: f64) -> String {
        match self {
            _ if !value.is_finite() => "never".into(),
            Figure::Queue | Figure::Rtt | Figure::Completion => format!("{value:.1}"),
            Figure::Dropped | Figure::Spurious => format!("{:.2}%", 100.0 * value),
            Figure::Goodput | Figure::Others | Figure::Recovered | Figure::Drained => {
                format!("{value:.2}")
            }
            _ => format!("{value:.3}"),
        }
    }

    /// Of one run.
    pub fn of(self, cell: &Cell, plan: &Plan, run: &RunResult) -> f64 {
        let link = &run.links[plan.bottleneck(0)];
        let here = link.groups.first().copied().unwrap_or_default();
        let flows = &run.groups[0].flows;
        let sum = |of: fn(&narrows_sim::FlowResult) -> f64| flows.iter().map(of).sum::<f64>();
        let goodput = sum(|f| f.goodput_bytes as f64);
        let mbps = |bytes: f64| bytes * 8e-6 / run.span_s;
        match self {
            Figure::Rate => {
                let share = sum(|f| f.sent_bytes as f64) / here.offered_bytes.max(1) as f64;
                8.0 * goodput / (link.capacity_bits * share * (1.0 - cell.loss))
            }
            Figure::Wire => here.offered_bytes as f64 * (1.0 - cell.loss) / goodput.max(1.0),
            Figure::Queue => {
                let packet_bits = 8.0 * f64::from(cell.question.packet);
                let per_second = link.capacity_bits / run.span_s / packet_bits;
                1e3 * link.queue_mean / per_second
            }
            Figure::Goodput => mbps(goodput),
            Figure::Rtt => run.groups[0].rtt.mean().map_or(f64::NAN, |ns| ns * 1e-6),
            Figure::Dropped => here.dropped as f64 / here.offered.max(1) as f64,
            Figure::Spurious => {
                let again = sum(|f| f.retransmissions as f64);
                let missing = (here.dropped + here.lost) as f64;
                (again - missing).max(0.0) / sum(|f| f.sent_packets as f64).max(1.0)
            }
            Figure::Theta => {
                let all: f64 = link.groups.iter().map(|g| g.served_bits).sum();
                (all - here.served_bits) / all.max(1.0)
            }
            Figure::Others => {
                let others = run.groups.get(1).map_or(&[][..], |g| &g.flows);
                mbps(others.iter().map(|f| f.goodput_bytes as f64).sum())
            }
            Figure::Jain => {
                let each: Vec<f64> = flows.iter().map(|f| f.goodput_bytes as f64).collect();
                narrows_lab::stats::jain(&each)
            }
            Figure::Completion => {
                let took = flows.iter().map(|f| {
                    f.done.map_or(f64::INFINITY, |done| 1e3 * done.since(f.start).as_secs_f64())
                });
                took.sum::<f64>() / flows.len().max(1) as f64
            }
            Figure::Recovered => recovered(cell, link),
            Figure::Drained => drained(cell, plan, run),
        }
    }
}

fn recovered(cell: &Cell, link: &narrows_sim::LinkResult) -> f64 {
    let Some(step) = &cell.step else { return f64::NAN };
    let Some(ticks) = link.ticks.first() else { return f64::NAN };
    let from = (step.at_s / LINK_TICK_S).round() as usize;
    let wanted = 0.8 * step.rate_bps * 2.0 * LINK_TICK_S;
    let after = ticks.served.get(from..).unwrap_or_default();
    let first = after.windows(2).position(|w| w.iter().sum::<f64>() >= wanted);
    first.map_or(f64::INFINITY, |i| i as f64 * LINK_TICK_S)
}

fn drained(cell: &Cell, plan: &Plan, run: &RunResult) -> f64 {
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
