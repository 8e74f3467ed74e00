//! Programs on the hosts of a network, and the loop that runs them.

use crate::datagram::Datagram;
use crate::ids::NodeId;
use crate::network::Network;
use std::time::{Duration, Instant};

/// Datagrams that a program may send at one point in time: more means that it does not count them.
pub(crate) const MAX_BURST: usize = 1 << 17;

/// A program on a host: a protocol stack, with the application that uses it.
///
/// The form is that of poll-based stacks. [`run`] calls [`handle`](Node::handle) with each datagram that arrives, and
/// [`poll_transmit`](Node::poll_transmit) until it returns `None`, after arrivals and when
/// [`next_timeout`](Node::next_timeout) is due. So due timers are handled in `poll_transmit`.
pub trait Node {
    /// A datagram has arrived.
    fn handle(&mut self, now: Instant, datagram: Datagram);
    /// Handles due timers and the application's turn, and returns the next datagram to send.
    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram>;
    /// When the program wants to be polled next, without an arrival; `None` if it only waits for datagrams.
    fn next_timeout(&mut self) -> Option<Instant>;
    /// Whether it has finished. A run ends when all programs have.
    fn done(&self) -> bool;
    /// A number that scripts check, such as `bytes` or `cwnd`; `None` for an unknown name.
    fn variable(&self, name: &str) -> Option<f64> {
        let _ = name;
        None
    }
    /// An instruction of a script to the application; returns whether it was understood.
    fn command(&mut self, now: Instant, text: &str) -> bool {
        let _ = (now, text);
        false
    }
}

/// How a run ended, and when.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ended {
    /// All programs were done after this time.
    Done(Duration),
    /// No datagram was on its way and no timer was set, but a program was not done.
    Idle(Duration),
    /// The time limit was reached.
    Limit(Duration),
    /// This host's program sent 131,072 datagrams at one point in time.
    Endless(NodeId, Duration),
}

impl Ended {
    /// The time from the start.
    pub fn at(self) -> Duration {
        match self {
            Ended::Done(at) | Ended::Idle(at) | Ended::Limit(at) | Ended::Endless(_, at) => at,
        }
    }

    /// Whether all programs were done.
    pub fn is_done(self) -> bool {
        matches!(self, Ended::Done(_))
    }
}

/// Runs programs on hosts of a network until all are done, no event is left, or the limit is reached.
pub fn run(network: &mut Network, nodes: &mut [(NodeId, &mut dyn Node)], limit: Duration) -> Ended {
    run_scripted(network, nodes, limit, &mut NoSteps)
}

/// A running script between the steps of a run.
pub(crate) trait Steps {
    /// When it next has something to do.
    fn next(&self) -> Option<Duration>;
    /// Runs the due events.
    fn step(&mut self, since: Duration, now: Instant, nodes: &mut [(NodeId, &mut dyn Node)]);
    /// Looks at the programs after they were polled.
    fn observe(&mut self, since: Duration, nodes: &mut [(NodeId, &mut dyn Node)]);
}

/// A run without a script.
struct NoSteps;

impl Steps for NoSteps {
    fn next(&self) -> Option<Duration> {
        None
    }
    fn step(&mut self, _: Duration, _: Instant, _: &mut [(NodeId, &mut dyn Node)]) {}
    fn observe(&mut self, _: Duration, _: &mut [(NodeId, &mut dyn Node)]) {}
}

/// A program's timers and whether it must be polled.
#[derive(Clone, Copy)]
struct Turn {
    is_due: bool,
    timeout: Option<Instant>,
}

pub(crate) fn run_scripted(
    network: &mut Network,
    nodes: &mut [(NodeId, &mut dyn Node)],
    limit: Duration,
    steps: &mut dyn Steps,
) -> Ended {
    let mut turns = vec![Turn { is_due: true, timeout: None }; nodes.len()];
    let mut now = network.now();
    let mut since = now.saturating_duration_since(network.start());
    loop {
        if steps.next().is_some_and(|at| at <= since) {
            steps.step(since, now, nodes);
            turns.iter_mut().for_each(|turn| turn.is_due = true);
        }
        if let Some(endless) = transmit(network, nodes, &mut turns, now) {
            return Ended::Endless(endless, since);
        }
        if let Some((host, datagram)) = network.poll(now) {
            let at = nodes.iter().position(|(id, _)| *id == host);
            if let (Some((_, node)), Some(turn)) =
                (at.and_then(|at| nodes.get_mut(at)), at.and_then(|at| turns.get_mut(at)))
            {
                node.handle(now, datagram);
                turn.is_due = true;
            }
            continue;
        }
        steps.observe(since, nodes);
        if nodes.iter().all(|(_, node)| node.done()) && steps.next().is_none() {
            return Ended::Done(since);
        }
        let timeouts = turns.iter().filter_map(|turn| turn.timeout);
        let script = steps.next().and_then(|at| network.start().checked_add(at));
        let Some(next) = timeouts.chain(network.next_timeout()).chain(script).min() else {
            return Ended::Idle(since);
        };
        // A timer that stays due must not stop time.
        let next = next.max(now + Duration::from_nanos(1));
        since = next.saturating_duration_since(network.start());
        if since > limit {
            return Ended::Limit(limit);
        }
        now = next;
        for turn in &mut turns {
            turn.is_due |= turn.timeout.is_some_and(|at| at <= now);
        }
    }
}

/// Polls the programs that have a turn. Returns the host of one that does not stop.
fn transmit(
    network: &mut Network,
    nodes: &mut [(NodeId, &mut dyn Node)],
    turns: &mut [Turn],
    now: Instant,
) -> Option<NodeId> {
    for ((host, node), turn) in nodes.iter_mut().zip(turns) {
        if !std::mem::replace(&mut turn.is_due, false) {
            continue;
        }
        let mut sent = 0;
        while let Some(datagram) = node.poll_transmit(now) {
            network.send(now, *host, datagram);
            sent += 1;
            if sent == MAX_BURST {
                return Some(*host);
            }
        }
        turn.timeout = node.next_timeout();
    }
    None
}
