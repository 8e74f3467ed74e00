//! Scripts: events at given times, and conditions on the programs' variables.

use crate::ids::NodeId;
use crate::network::Network;
use crate::node::{Ended, Node, Steps, run_scripted};
use std::fmt;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// When a value must be in its range.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// At this time.
    At(Duration),
    /// At one time at least, until this.
    By(Duration),
    /// Whenever a program was polled between these times.
    During(Duration, Duration),
}

/// A range that a variable of a program must be in.
#[derive(Clone, PartialEq, Debug)]
pub struct Expectation {
    /// Host of the program.
    pub node: NodeId,
    /// Name of the variable, as for [`Node::variable`].
    pub variable: String,
    /// When it counts.
    pub when: When,
    /// Permitted values.
    pub range: RangeInclusive<f64>,
}

/// An expectation that was not met.
#[derive(Clone, PartialEq, Debug)]
pub struct Failure {
    /// As the script writes it: variable, comparison and value.
    pub expectation: Expectation,
    /// The last value seen; `None` before the first.
    pub value: Option<f64>,
    /// When.
    pub at: Duration,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Expectation { variable, range, when, .. } = &self.expectation;
        let value = self.value.map_or("absent".into(), |v| v.to_string());
        let when = match when {
            When::At(at) => format!("at {at:?}"),
            When::By(by) => format!("by {by:?}"),
            When::During(from, to) => format!("from {from:?} to {to:?}"),
        };
        write!(
            f,
            "at {:?}, {variable} was {value}: {} to {} were expected {when}",
            self.at,
            range.start(),
            range.end()
        )
    }
}

/// Events for programs, and expectations. Events of the network are given to it directly
/// ([`Network::change_at`], [`Network::rebind_at`]).
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Script {
    commands: Vec<(Duration, NodeId, String)>,
    expectations: Vec<Expectation>,
}

impl Script {
    /// Without events and expectations.
    pub fn new() -> Script {
        Script::default()
    }

    /// Gives a host's program an instruction ([`Node::command`]) at this time.
    #[must_use]
    pub fn command(mut self, at: Duration, node: NodeId, text: &str) -> Script {
        self.commands.push((at, node, text.into()));
        self
    }

    /// Expects a variable of a host's program to be in a range.
    #[must_use]
    pub fn expect(
        mut self,
        node: NodeId,
        variable: &str,
        when: When,
        range: RangeInclusive<f64>,
    ) -> Script {
        self.expectations.push(Expectation { node, variable: variable.into(), when, range });
        self
    }

    /// Runs programs with this script until all are done and no event is left, the network is idle, or the limit is
    /// reached.
    ///
    /// # Errors
    /// The expectations that were not met.
    pub fn run(
        &self,
        network: &mut Network,
        nodes: &mut [(NodeId, &mut dyn Node)],
        limit: Duration,
    ) -> Result<Ended, Vec<Failure>> {
        let mut running = self.begin();
        let ended = run_scripted(network, nodes, limit, &mut running);
        let failures = running.finish(ended.at(), nodes);
        if failures.is_empty() { Ok(ended) } else { Err(failures) }
    }

    pub(crate) fn begin(&self) -> Running<'_> {
        let mut commands: Vec<_> = self.commands.iter().collect();
        commands.sort_by_key(|(at, _, _)| *at);
        let watched = self.expectations.iter().map(|expectation| Watched {
            expectation,
            is_settled: false,
            value: None,
            failure: None,
        });
        let mut times: Vec<Duration> = Vec::new();
        for expectation in &self.expectations {
            match expectation.when {
                When::At(at) | When::By(at) => times.push(at),
                When::During(from, to) => times.extend([from, to]),
            }
        }
        times.sort_unstable();
        Running { commands, done: 0, times, passed: 0, watched: watched.collect() }
    }

    /// The smallest part of the script with which a test still fails: commands are left out one by one. The test gets
    /// each shorter script and returns whether it fails.
    #[must_use]
    pub fn minimise(mut self, mut fails: impl FnMut(&Script) -> bool) -> Script {
        let mut at = 0;
        while at < self.commands.len() {
            let mut shorter = self.clone();
            shorter.commands.remove(at);
            if fails(&shorter) {
                self = shorter;
            } else {
                at += 1;
            }
        }
        self
    }
}

struct Watched<'a> {
    expectation: &'a Expectation,
    is_settled: bool,
    value: Option<f64>,
    failure: Option<Duration>,
}

/// A script during a run.
pub(crate) struct Running<'a> {
    commands: Vec<&'a (Duration, NodeId, String)>,
    done: usize,
    /// Times at which expectations begin or end.
    times: Vec<Duration>,
    passed: usize,
    watched: Vec<Watched<'a>>,
}

fn find<'a, 'n>(
    nodes: &'a mut [(NodeId, &'n mut dyn Node)],
    id: NodeId,
) -> Option<&'a mut &'n mut dyn Node> {
    nodes.iter_mut().find(|(node, _)| *node == id).map(|(_, node)| node)
}

impl Steps for Running<'_> {
    fn next(&self) -> Option<Duration> {
        let command = self.commands.get(self.done).map(|(at, _, _)| *at);
        command.into_iter().chain(self.times.get(self.passed).copied()).min()
    }

    fn step(&mut self, since: Duration, now: Instant, nodes: &mut [(NodeId, &mut dyn Node)]) {
        while let Some((at, node, text)) = self.commands.get(self.done).filter(|c| c.0 <= since) {
            let understood = find(nodes, *node).is_some_and(|node| node.command(now, text));
            debug_assert!(understood, "at {at:?}: no program understands '{text}'");
            self.done += 1;
        }
        while self.times.get(self.passed).is_some_and(|at| *at <= since) {
            self.passed += 1;
        }
        self.observe(since, nodes);
    }

    fn observe(&mut self, since: Duration, nodes: &mut [(NodeId, &mut dyn Node)]) {
        for watched in self.watched.iter_mut().filter(|w| !w.is_settled) {
            let Expectation { node, variable, when, range } = watched.expectation;
            let is_within = match when {
                When::At(at) => since >= *at,
                When::By(by) => since <= *by,
                When::During(from, to) => since >= *from && since <= *to,
            };
            if !is_within {
                continue;
            }
            let value = find(nodes, *node).and_then(|node| node.variable(variable));
            let is_good = value.is_some_and(|value| range.contains(&value));
            watched.value = value;
            match when {
                When::By(_) => watched.is_settled = is_good,
                When::At(_) | When::During(..) => {
                    watched.failure = (!is_good).then_some(since);
                    watched.is_settled = !is_good || matches!(when, When::At(_));
                }
            }
        }
    }
}

impl Running<'_> {
    /// The expectations that were not met, at the end of a run.
    fn finish(mut self, at: Duration, nodes: &mut [(NodeId, &mut dyn Node)]) -> Vec<Failure> {
        self.observe(at, nodes);
        let is_unmet = |w: &Watched<'_>| match w.expectation.when {
            When::During(from, _) => w.failure.is_some() || at < from,
            When::At(_) => w.failure.is_some() || !w.is_settled,
            When::By(_) => !w.is_settled,
        };
        let unmet = self.watched.into_iter().filter(is_unmet);
        unmet
            .map(|w| Failure {
                expectation: w.expectation.clone(),
                value: w.value,
                at: w.failure.unwrap_or(at),
            })
            .collect()
    }
}
