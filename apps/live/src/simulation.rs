//! Simulations on the page: samples a run between its steps. Observation does not change the result.

use crate::explain::{Explainer, FlowSample};
use crate::feed::history::Merge;
use crate::feed::packets::PacketKind;
use crate::feed::{
    EventMark, Feed, FeedEvent, LiveRun, MAX_PACKET_FLOWS, RunDescription, RunPhase, TrackColumn,
    TrackKind, TrackSpec, Update,
};
use narrows_base::{Duration, Time};
use narrows_lab::buffers;
use narrows_lab::execute::{ObservedRun, RunObserver};
use narrows_link::LinkChange;
use narrows_report::variables;
use narrows_scenario::{Plan, values};
use narrows_sim::SendingLimit;
use narrows_sim::{NetworkSpec, PacketEventKind, SimError, Simulation};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

/// Samples of a run at full speed.
const SAMPLES: u64 = 1200;
/// Updates per second of a run at a set speed.
const UPDATES_PER_SECOND: f64 = 60.0;
/// Shortest sampling interval.
const SHORTEST: Duration = Duration::from_micros(100);
/// Most flows of a run that are shown.
const MAX_FLOWS: usize = 128;

/// Columns of every flow; those of its controller follow.
const FLOW_COLUMNS: [(&str, Merge); 14] = [
    ("cwnd", Merge::Mean),
    ("ssthresh", Merge::Mean),
    ("in_flight", Merge::Mean),
    ("rtt_s", Merge::Mean),
    ("throughput_bps", Merge::Mean),
    ("pacing_bps", Merge::Mean),
    ("acked", Merge::Last),
    ("sent", Merge::Last),
    ("retransmissions", Merge::Sum),
    ("queue_drops", Merge::Sum),
    ("link_losses", Merge::Sum),
    ("timeouts", Merge::Sum),
    ("marks", Merge::Sum),
    ("limited_by", Merge::Last),
];
/// Columns of every link.
const LINK_COLUMNS: [(&str, Merge); 4] = [
    ("queue", Merge::Mean),
    ("capacity_bps", Merge::Last),
    ("drops", Merge::Sum),
    ("losses", Merge::Sum),
];

/// Columns with their units and meanings.
pub(crate) fn columns(list: &[(&'static str, Merge)]) -> Vec<TrackColumn> {
    let column = |&(name, merge): &(&'static str, Merge)| {
        let found = variables::listed(name);
        let (unit, meaning) = found.map_or(("", String::new()), |v| (v.unit, v.explained()));
        TrackColumn { name, unit, meaning, merge }
    };
    list.iter().map(column).collect()
}

/// Shows the first seed of every protocol of a plan.
#[derive(Debug)]
pub struct Simulations<'a> {
    feed: &'a Arc<Feed>,
    plan: &'a Plan,
    detail: String,
    /// Simulated seconds per second; full speed if absent.
    speed: Option<f64>,
    /// Packets outside of it are not shown.
    packets: Range<Time>,
}

impl<'a> Simulations<'a> {
    /// `detail` is the link or the file, for the page's header.
    pub fn new(
        feed: &'a Arc<Feed>,
        plan: &'a Plan,
        detail: &str,
        speed: Option<f64>,
    ) -> Simulations<'a> {
        let packets = Time::ZERO..Time::NEVER;
        Simulations { feed, plan, detail: detail.into(), speed, packets }
    }

    /// Shows single packets of this time alone. The feed stores a bounded number of them, so a short time has them all.
    #[must_use]
    pub fn with_packets_of(self, packets: Range<Time>) -> Simulations<'a> {
        Simulations { packets, ..self }
    }
}

impl RunObserver for Simulations<'_> {
    fn begin(
        &self,
        variant: usize,
        seed: usize,
        network: &NetworkSpec,
    ) -> Option<Box<dyn ObservedRun + '_>> {
        if seed != 0 {
            return None;
        }
        let scenario = &self.plan.scenario;
        let name =
            scenario.protocols.get(variant).map_or(scenario.name.clone(), ToString::to_string);
        let end_s = Some(network.end.as_secs_f64());
        let about = RunDescription { name, detail: self.detail.clone(), real: false, end_s };
        let run = self.feed.begin_at(about, variant)?;
        let interval = match self.speed {
            Some(speed) => Duration::from_secs_f64(speed / UPDATES_PER_SECOND),
            None => Duration::from_nanos(network.end.as_nanos() / SAMPLES),
        };
        let one = One {
            run,
            beside: false,
            speed: self.speed,
            interval: interval.max(SHORTEST),
            begun: self.speed.map(|_| Instant::now()),
            packets: self.packets.clone(),
            flows: Vec::new(),
            links: Vec::new(),
            changes: network
                .changes
                .iter()
                .map(|(at, link, c)| (*at, *link, c.clone()))
                .rev()
                .collect(),
            sampled: Time::ZERO,
        };
        Some(Box::new(one))
    }
}

/// Simulates a network in real time beside a real run: its flows, and the first link's queue, are drawn dashed in that
/// run. Ends with the network, or when `goes_on` returns false.
///
/// # Errors
/// The simulator's.
pub fn beside(
    run: &Arc<LiveRun>,
    network: &NetworkSpec,
    goes_on: &dyn Fn() -> bool,
) -> Result<(), SimError> {
    let mut one = One {
        run: run.clone(),
        beside: true,
        speed: Some(1.0),
        interval: Duration::from_secs_f64(1.0 / UPDATES_PER_SECOND),
        begun: Some(Instant::now()),
        packets: Time::ZERO..Time::NEVER,
        flows: Vec::new(),
        links: Vec::new(),
        changes: Vec::new(),
        sampled: Time::ZERO,
    };
    let mut simulation = Simulation::new(network)?;
    one.started(&mut simulation);
    while simulation.now() < network.end && goes_on() {
        simulation.advance(simulation.now() + one.interval, &mut |_| goes_on())?;
        one.sample(&mut simulation);
    }
    Ok(())
}

/// One run.
#[derive(Debug)]
struct One {
    run: Arc<LiveRun>,
    /// Whether it is shown beside a real run.
    beside: bool,
    speed: Option<f64>,
    interval: Duration,
    /// The start of a run at a set speed.
    begun: Option<Instant>,
    /// Packets outside of it are not shown.
    packets: Range<Time>,
    flows: Vec<SeenFlow>,
    links: Vec<SeenLink>,
    /// Pending changes, the next one last.
    changes: Vec<(Time, usize, LinkChange)>,
    sampled: Time,
}

#[derive(Debug)]
struct SeenFlow {
    track: usize,
    /// Names of the controller's columns, in order.
    watched: Vec<&'static str>,
    explainer: Explainer,
    /// Whether an event has reported that a buffer binds.
    bound: bool,
    sent: u64,
    received_bits: f64,
    retransmissions: u64,
    timeouts: u64,
    marks: u64,
    drops: u64,
    losses: u64,
}

#[derive(Debug)]
struct SeenLink {
    link: usize,
    track: usize,
    capacity_bps: f64,
    drops: u64,
    losses: u64,
}

impl ObservedRun for One {
    fn interval(&self) -> Duration {
        self.interval
    }

    fn started(&mut self, simulation: &mut Simulation<'_>) {
        simulation.log_packets(MAX_PACKET_FLOWS);
        let spec = simulation.spec().clone();
        for (link, made) in spec.links.iter().enumerate().filter(|(_, l)| l.metered) {
            if self.beside && link > 0 {
                break;
            }
            let name = if self.beside { "there, simulated" } else { &made.name };
            let Some(track) = self.track(TrackKind::Link, name, columns(&LINK_COLUMNS)) else {
                break;
            };
            let config = &made.config;
            let rate = config.trace.as_ref().map_or(config.rate.as_bps() as f64, |t| t.mean_bps());
            self.links.push(SeenLink { link, track, capacity_bps: rate, drops: 0, losses: 0 });
        }
        let names = spec.groups.iter().flat_map(|g| (0..g.flows.len()).map(move |n| (g, n)));
        for ((group, n), flow) in names.take(MAX_FLOWS).zip(0..simulation.flows()) {
            // A controller's variables may appear later: all of them get columns.
            let watched = watched(simulation, flow, group.protocol.label());
            let mut all = columns(&FLOW_COLUMNS);
            all.extend(columns(&watched.iter().map(|n| (*n, Merge::Mean)).collect::<Vec<_>>()));
            let name = match self.beside {
                true => format!("simulated.{}", n + 1),
                false => format!("{}.{n}", group.name),
            };
            let Some(track) = self.track(TrackKind::Flow, &name, all) else { break };
            self.flows.push(SeenFlow {
                track,
                watched,
                explainer: Explainer::new(variables::listed),
                bound: false,
                sent: 0,
                received_bits: 0.0,
                retransmissions: 0,
                timeouts: 0,
                marks: 0,
                drops: 0,
                losses: 0,
            });
        }
    }

    fn sample(&mut self, simulation: &mut Simulation<'_>) {
        let now = simulation.now();
        let interval_s = now.since(self.sampled).as_secs_f64();
        self.sampled = now;
        let run = self.run.clone();
        run.update(micros(now), |update| {
            self.packets(simulation, update);
            self.links(simulation, update);
            self.flows(simulation, update, interval_s);
            self.link_changes(now, update);
        });
        if let (Some(speed), Some(begun)) = (self.speed, self.begun) {
            let due = std::time::Duration::from_secs_f64(now.as_secs_f64() / speed);
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
        }
    }

    fn ended(&mut self, interrupted: bool) {
        self.run.end(if interrupted {
            RunPhase::Stopped("interrupted".into())
        } else {
            RunPhase::Done
        });
    }
}

impl One {
    fn track(&self, kind: TrackKind, name: &str, columns: Vec<TrackColumn>) -> Option<usize> {
        let spec = TrackSpec::new(kind, name, columns);
        self.run.add(TrackSpec { simulated: self.beside, ..spec })
    }

    fn packets(&mut self, simulation: &mut Simulation<'_>, update: &mut Update<'_>) {
        let flows = &mut self.flows;
        let links = &mut self.links;
        let shown = &self.packets;
        simulation.packets(&mut |event, link| {
            let lost = |kind: &PacketEventKind| match kind {
                PacketEventKind::Dropped => (1, 0),
                PacketEventKind::Lost => (0, 1),
                _ => (0, 0),
            };
            let (dropped, missing) = lost(&event.kind);
            if let Some(link) = link.and_then(|n| links.iter_mut().find(|l| l.link == n)) {
                link.drops += dropped;
                link.losses += missing;
            }
            let number = event.flow as usize;
            let Some(flow) = flows.get_mut(number) else { return };
            flow.drops += dropped;
            flow.losses += missing;
            let kind = match event.kind {
                PacketEventKind::Sent { again } => {
                    flow.sent = flow.sent.max(event.number + 1);
                    if again { PacketKind::Retransmitted } else { PacketKind::Sent }
                }
                PacketEventKind::Acknowledged => PacketKind::Acknowledged,
                PacketEventKind::Dropped => PacketKind::Dropped,
                _ => PacketKind::Lost,
            };
            if number < MAX_PACKET_FLOWS && !self.beside && shown.contains(&event.at) {
                update.packet(flow.track, micros(event.at), event.number, kind);
            }
        });
    }

    fn links(&mut self, simulation: &Simulation<'_>, update: &mut Update<'_>) {
        for link in &mut self.links {
            let waiting = simulation.waiting(link.link);
            let drops = std::mem::take(&mut link.drops);
            let losses = std::mem::take(&mut link.losses);
            let row = [waiting as f64, link.capacity_bps, drops as f64, losses as f64];
            update.row(link.track, &row.map(|x| x as f32));
        }
    }

    fn flows(&mut self, simulation: &Simulation<'_>, update: &mut Update<'_>, interval_s: f64) {
        let slowest = self.links.iter().map(|l| l.capacity_bps).fold(f64::INFINITY, f64::min);
        for (n, flow) in self.flows.iter_mut().enumerate() {
            let limits = simulation.controller(n).send_limits();
            let finite = |x: f64| if x < 1e14 { x } else { f64::NAN };
            let counters = simulation.counters(n);
            let (rtt, bits) = simulation.received(n);
            let rtt_s = if rtt == Duration::ZERO { f64::NAN } else { rtt.as_secs_f64() };
            let since =
                |now: u64, before: &mut u64| now.saturating_sub(std::mem::replace(before, now));
            let retransmissions = since(counters.retransmissions, &mut flow.retransmissions);
            let timeouts = since(counters.timeouts, &mut flow.timeouts);
            let marks = since(counters.marks, &mut flow.marks);
            let drops = std::mem::take(&mut flow.drops);
            let losses = std::mem::take(&mut flow.losses);
            let throughput =
                (bits - std::mem::replace(&mut flow.received_bits, bits)) / interval_s.max(1e-9);
            let mut watched: Vec<(&'static str, f64)> = Vec::new();
            simulation.controller(n).watch(&mut |name, value| watched.push((name, value)));
            let cwnd = finite(limits.cwnd);
            let pacing_bps = limits.pacing_rate.map_or(f64::NAN, |r| finite(r.as_bps() as f64));
            let own = [
                cwnd,
                limits.ssthresh.map_or(f64::NAN, finite),
                simulation.flight(n) as f64,
                rtt_s,
                throughput,
                pacing_bps,
                simulation.acknowledged(n) as f64,
                flow.sent as f64,
                retransmissions as f64,
                drops as f64,
                losses as f64,
                timeouts as f64,
                marks as f64,
                f64::from(simulation.limit(n) as u8),
            ];
            let of = |name| watched.iter().find(|(n, _)| n == name).map_or(f64::NAN, |w| w.1);
            let row: Vec<f32> =
                own.into_iter().chain(flow.watched.iter().map(of)).map(|x| x as f32).collect();
            update.row(flow.track, &row);
            let sample = FlowSample {
                time_us: micros(self.sampled),
                cwnd,
                pacing_bps,
                rtt_s,
                timeouts,
                queue_drops: drops,
                link_losses: losses,
                declared_lost: retransmissions,
                marks,
                watched,
            };
            let events = flow.explainer.look(flow.track, sample);
            let limit = simulation.limit(n);
            if matches!(limit, SendingLimit::SendBuffer | SendingLimit::ReceiveWindow)
                && !flow.bound
                && !self.beside
            {
                flow.bound = true;
                let flight = 2.0 * slowest * rtt_s / 8.0;
                update.event(FeedEvent {
                    time_us: micros(self.sampled),
                    track: flow.track,
                    mark: EventMark::State,
                    title: format!("the {} binds, not cwnd", SendingLimit::NAMES[limit as usize]),
                    why: vec![if flight.is_finite() {
                        format!("sysctl {} lift it", buffers::sysctls(flight))
                    } else {
                        "net.ipv4.tcp_wmem and net.ipv4.tcp_rmem set the most that is in flight"
                            .into()
                    }],
                });
            }
            // Beside a real run only the real flows' events are shown.
            for event in events.into_iter().filter(|_| !self.beside) {
                update.event(event);
            }
        }
    }

    /// Reports the scenario's changes of links.
    fn link_changes(&mut self, now: Time, update: &mut Update<'_>) {
        while let Some((at, link, change)) = self.changes.pop_if(|c| c.0 <= now) {
            let Some(seen) = self.links.iter_mut().find(|l| l.link == link) else { continue };
            let title = match &change {
                LinkChange::Rate(rate) => {
                    seen.capacity_bps = rate.as_bps() as f64;
                    format!("link: rate {}", values::rate_text(*rate))
                }
                LinkChange::Delay(delay) => format!("link: delay {}", values::time_text(*delay)),
                LinkChange::Loss(loss) => format!("link: loss {}", values::loss_text(loss)),
                LinkChange::Mtu(mtu) => format!("link: MTU {}", values::mtu_text(*mtu)),
            };
            let why = vec!["The scenario changes the link here.".to_string()];
            update.event(FeedEvent {
                time_us: micros(at),
                track: seen.track,
                mark: EventMark::Link,
                title,
                why,
            });
        }
    }
}

/// Names of all variables that a flow's controller may report: those of the controllers in the protocol's label, and
/// those that it reports now.
fn watched(simulation: &Simulation<'_>, flow: usize, label: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    simulation.controller(flow).watch(&mut |name, _| names.push(name));
    names.extend(of_controllers(label));
    let mut seen = BTreeSet::new();
    names.retain(|n| seen.insert(*n));
    names
}

/// Variables of the controllers in a protocol's label.
pub(crate) fn of_controllers(label: &str) -> Vec<&'static str> {
    let name = label.split('(').next().unwrap_or_default();
    let entries =
        name.split('+').filter_map(|part| narrows_congestion::CONTROLLERS.find(part).ok());
    entries.flat_map(|entry| entry.variables.iter().map(|v| v.name)).collect()
}

fn micros(time: Time) -> i64 {
    i64::try_from(time.as_nanos() / 1000).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[path = "simulation_tests.rs"]
mod tests;
