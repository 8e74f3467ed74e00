//! Steps: times at which a group's fair share of its bottleneck changes, computed from the scenario alone.
//!
//! The fair share is max-min: the rate of unresponsive flows is subtracted from the capacity, and the rest is divided
//! equally among the other flows. No flow gets more than its application writes or its other links carry. Sources with
//! a variable demand (`telnet`, `web`, `transfer`, `cbr` with pauses) are ignored.

use super::{Plan, time, way};
use crate::scenario::Flows;
use narrows_base::{RandomKey, Time};
use narrows_link::LinkChange;
use narrows_sim::protocol::{self, FlowProtocol};

/// A relative change of the share below this is no step.
const MIN_CHANGE: f64 = 0.05;

/// A moment at which a group's fair share of its bottleneck changes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ShareChange {
    /// Time of the step.
    pub at: Time,
    /// Since when the share has been constant: from the previous step, or the start of the group's last flow.
    pub since: Time,
    /// Until when the new share is constant: to the next step, the group's stop or the end.
    pub until: Time,
    /// The group's share before, in bit/s on the wire.
    pub before_bps: f64,
    /// Its share after.
    pub after_bps: f64,
}

impl Plan {
    /// The steps during the group's activity, in order.
    pub fn steps(&self, group: usize, variant: usize) -> Vec<ShareChange> {
        let s = &self.scenario;
        let own = &s.flows[group];
        let started = time(own.start + own.stagger);
        let stops = stop(own).min(time(s.duration));
        let route = &self.groups[group].forward;
        let changes = self.changes.iter().filter(|c| route.contains(&(c.1 as u32))).map(|c| c.0);
        let others = self.others(group).into_iter();
        let others = others.flat_map(|g| [time(s.flows[g].start), stop(&s.flows[g])]);
        let mut times: Vec<Time> = changes.chain(others).collect();
        times.retain(|t| *t > started && *t < stops);
        times.sort_unstable();
        times.dedup();
        let mut steps: Vec<ShareChange> = Vec::new();
        let mut before_bps = self.share(group, variant, started);
        for at in times {
            let after_bps = self.share(group, variant, at);
            if (after_bps - before_bps).abs() > MIN_CHANGE * before_bps {
                let since = steps.last_mut().map_or(started, |last| {
                    last.until = at;
                    last.at
                });
                steps.push(ShareChange { at, since, until: stops, before_bps, after_bps });
                before_bps = after_bps;
            }
        }
        steps
    }

    /// The group's fair share of its bottleneck at a time, in bit/s.
    fn share(&self, group: usize, variant: usize, t: Time) -> f64 {
        let link = self.groups[group].bottleneck;
        let mut left = self.rate(link, t);
        // Flows that share the rest: their number, and the most that each can use.
        let mut sharing: Vec<(usize, f64)> = Vec::new();
        let mut own = 0.0;
        for g in std::iter::once(group).chain(self.others(group)) {
            let flows = &self.scenario.flows[g];
            let count = flows.count as f64;
            let Some(demand) = flows.source.demand_bps() else { continue };
            if t < time(flows.start) || t >= stop(flows) {
                continue;
            }
            let elsewhere = self.groups[g].forward.iter().filter(|l| **l != link);
            let narrow = elsewhere.map(|l| self.rate(*l, t) / count).fold(demand, f64::min);
            let sides = [flows.access, flows.egress].into_iter().flatten();
            let max = sides.map(|o| o.side.slowest().as_bps() as f64).fold(narrow, f64::min);
            match constant_rate(self.protocol(g, variant)) {
                Some(rate) => {
                    let taken = max.min(rate) * count;
                    left = (left - taken).max(0.0);
                    own += if g == group { taken } else { 0.0 };
                }
                None => {
                    sharing.push((flows.count, max));
                    if g == group {
                        own = f64::NAN; // Known after the split.
                    }
                }
            }
        }
        if own.is_nan() { split(left, &sharing) } else { own }
    }

    /// A link's rate at a time; for a trace, its mean.
    fn rate(&self, link: u32, t: Time) -> f64 {
        let way = way(&self.scenario, link);
        if way.trace.is_some() {
            return way.mean_bps();
        }
        let changed = self.changes.iter().rev().filter(|c| c.1 == link as usize && c.0 <= t);
        let mut rates = changed.filter_map(|c| match c.2 {
            LinkChange::Rate(rate) => Some(rate.as_bps() as f64),
            _ => None,
        });
        rates.next().unwrap_or(way.mean_bps())
    }
}

/// The rate in bit/s of a protocol that ignores the network; `None` for others.
fn constant_rate(protocol: &FlowProtocol) -> Option<f64> {
    let name = protocol.label().split('(').next()?;
    let entry = protocol::find(name).ok()?;
    let descriptor = narrows_congestion::find(entry.controller).ok()?.descriptor;
    if descriptor.senses != "nothing" {
        return None;
    }
    let (sender, _) = narrows_sim::endpoints::build(protocol, 0, RandomKey::from_seed(0), 1);
    sender.controller().send_limits().pacing_rate.map(|r| r.as_bps() as f64)
}

fn stop(flows: &Flows) -> Time {
    flows.stop.map_or(Time::NEVER, time)
}

/// The max-min fair share of the first of several groups (flows, most per flow).
fn split(capacity: f64, groups: &[(usize, f64)]) -> f64 {
    let Some(own) = groups.first() else { return 0.0 };
    let mut left = capacity;
    let mut flows = groups.iter().map(|g| g.0).sum::<usize>() as f64;
    let mut by_need: Vec<(usize, f64)> = groups.to_vec();
    by_need.sort_by(|a, b| a.1.total_cmp(&b.1));
    for (count, max) in by_need {
        if max * flows >= left {
            break;
        }
        left -= max * count as f64;
        flows -= count as f64;
    }
    let equal = if flows > 0.0 { left / flows } else { f64::INFINITY };
    own.1.min(equal) * own.0 as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, scenario_file};
    use std::path::Path;

    #[test]
    fn capacity_is_split_max_min() {
        let any = f64::INFINITY;
        assert_eq!(split(10.0, &[(1, any)]), 10.0);
        assert_eq!(split(10.0, &[(2, any), (3, any)]), 4.0);
        // Three flows of 1 each leave 7 for two.
        assert_eq!(split(10.0, &[(2, any), (3, 1.0)]), 7.0);
        assert_eq!(split(10.0, &[(3, 1.0), (2, any)]), 3.0);
        // The flows cannot use all of it.
        assert_eq!(split(10.0, &[(3, 1.0), (2, 1.0)]), 3.0);
        assert_eq!(split(10.0, &[]), 0.0);
    }

    #[test]
    fn steps_come_from_changes_and_from_other_groups() {
        let text = r#"
            duration = "100s"
            [[link]]
            name = "l"
            from = "a"
            to = "b"
            rate = "8Mbit/s"
            delay = "10ms"
            [[flows]]
            name = "main"
            protocol = "sack"
            from = "a"
            to = "b"
            [[flows]]
            name = "second"
            protocol = "reno"
            count = 3
            from = "a"
            to = "b"
            start = "20s"
            stop = "40s"
            [[flows]]
            name = "constant"
            protocol = "fixed(rate=6Mbit/s)"
            from = "a"
            to = "b"
            start = "70s"
            [[flows]]
            name = "typing"
            protocol = "reno"
            source = "telnet"
            from = "a"
            to = "b"
            start = "80s"
            [[change]]
            at = "60s"
            link = "l"
            rate = "7Mbit/s"
        "#;
        let plan = Plan::new(scenario_file::parse(text, Path::new("")).unwrap()).unwrap();
        let at = |s: f64| Time::from_secs_f64(s);
        let seen: Vec<_> =
            plan.steps(0, 0).iter().map(|s| (s.at, s.until, s.before_bps, s.after_bps)).collect();
        assert_eq!(
            seen,
            [
                (at(20.0), at(40.0), 8e6, 2e6),
                (at(40.0), at(60.0), 2e6, 8e6),
                (at(60.0), at(70.0), 8e6, 7e6),
                (at(70.0), at(100.0), 7e6, 1e6),
            ]
        );
        assert!(plan.steps(1, 0).is_empty(), "nothing changes while the second group is there");
    }
}
