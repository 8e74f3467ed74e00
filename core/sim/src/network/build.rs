//! Builds a network from its specification: links, routes, flows, transfers.

use super::{COUNT, FlowRoute, FurtherPaths, LinkNode, Multicast, NONE, Network, SampledSeries};
use crate::calendar::Calendar;
use crate::check;
use crate::endpoints::{SimulatedReceiver, SimulatedSender};
use crate::flow::{Application, Flow, FlowStats, FlowTimers};
use crate::frames::FrameMeter;
use crate::histogram::Histogram;
use crate::meter::LinkMeter;
use crate::result::MAX_BINS;
use crate::series::FlowSeries;
use crate::source::{StartedSource, transfer};

use crate::spec::{FlowSpec, GroupSpec, MAX_FLOWS, NetworkSpec, SimError};
use narrows_base::{FieldError, RandomKey, Time};
use narrows_link::Link;

/// A flow, identified by its group and its index.
#[derive(Clone, Copy)]
struct FlowIndex<'a> {
    spec: &'a NetworkSpec,
    index: usize,
    group: &'a GroupSpec,
    n: usize,
}

impl FlowIndex<'_> {
    /// The key of the flow's random draws, derived from the group's name and the flow's index.
    fn key(&self, random_key: RandomKey) -> RandomKey {
        random_key.named("flow").named(&self.group.name).numbered(self.n as u64)
    }
}

impl Network {
    pub(super) fn build(spec: &NetworkSpec) -> Result<Network, SimError> {
        check::network(spec).map_err(SimError::Spec)?;
        let random_key = RandomKey::from_seed(spec.seed);
        let transfers = transfers(spec, random_key)?;
        let made = spec.groups.iter().zip(&transfers);
        let total: usize = made.map(|(g, t)| t.as_ref().map_or(g.flows.len(), Vec::len)).sum();
        let seconds = spec.end.since(spec.measure_from).as_nanos() / 1_000_000_000;
        let mut network = Network {
            calendar: Calendar::new(),
            nodes: Vec::with_capacity(spec.links.len()),
            hops: Vec::with_capacity(6 * total),
            routes: Vec::with_capacity(total),
            flows: Vec::with_capacity(total),
            applications: Vec::with_capacity(total),
            multicast: Multicast::default(),
            further: FurtherPaths::default(),
            meters: Vec::new(),
            rtts: vec![Histogram::default(); spec.groups.len()],
            series: SampledSeries { flows: Vec::new(), queues: Vec::new(), time_s: Vec::new() },
            from: spec.measure_from,
            end: spec.end,
            keep: (total as u64).saturating_mul(seconds) <= MAX_BINS,
            now: Time::ZERO,
            digest: 0,
            events: 0,
            until_count: COUNT,
            overfull: false,
            packet_log: None,
        };
        network.build_links(spec, random_key)?;
        let mut users = vec![0u32; spec.links.len()];
        for (index, (group, transfers)) in spec.groups.iter().zip(&transfers).enumerate() {
            let place = |n| FlowIndex { spec, index, group, n };
            match transfers {
                None => {
                    for (n, flow) in group.flows.iter().enumerate() {
                        let stream = place(n).key(random_key).named("source").stream();
                        let Some(source) = group.source.start(stream) else { continue };
                        let one_file = group.source.is_transfer();
                        let times = (flow.start, flow.stop);
                        let frames = match &source {
                            StartedSource::Frames(f) => Some(Box::new(FrameMeter::new(
                                f.frame_interval(),
                                f.layers(),
                                spec.measure_from.max(flow.start),
                            ))),
                            StartedSource::Bytes(_) => None,
                        };
                        let application = Application::new(source, frames, one_file, times);
                        network.add_flow(place(n), flow, application, &mut users);
                    }
                }
                Some(list) => {
                    for (n, (flow, start, bytes)) in list.iter().enumerate() {
                        let source =
                            StartedSource::Bytes(Box::new(transfer::Transfer { bytes: *bytes }));
                        let times = (*start, Time::NEVER);
                        let application = Application::new(source, None, true, times);
                        let flow = &group.flows[*flow];
                        network.add_flow(place(n), flow, application, &mut users);
                    }
                }
            }
        }
        network.build_multicast(spec, &mut users);
        network.build_further_paths(&mut users);
        if network.flows.iter().any(|f| f.receiver.classifies()) {
            network.meters.iter_mut().for_each(|m| m.drops = Some(Vec::new()));
        }
        let sampled = spec.series.as_ref().map_or(&[][..], |s| &s.links);
        for (i, node) in network.nodes.iter_mut().enumerate() {
            node.private = node.computed && users[i] <= 1 && !sampled.contains(&i);
        }
        Ok(network)
    }

    fn build_links(&mut self, spec: &NetworkSpec, random_key: RandomKey) -> Result<(), SimError> {
        for (i, link) in spec.links.iter().enumerate() {
            let key = random_key.named("link").named(&link.name);
            let mut built = Link::new(&link.config, key).map_err(|e| {
                SimError::Spec(FieldError::new(format!("links[{i}].config"), e.to_string()))
            })?;
            let mut meter = NONE;
            if link.metered {
                built.count_waiting();
                meter = self.meters.len() as u32;
                self.meters.push(LinkMeter::new(self.from, self.end, spec.groups.len()));
            }
            let computed = built.is_computed();
            self.nodes.push(LinkNode {
                link: built,
                event: Time::NEVER,
                private: false,
                computed,
                meter,
            });
        }
        Ok(())
    }

    fn add_flow(
        &mut self,
        place: FlowIndex<'_>,
        flow: &FlowSpec,
        application: Application,
        users: &mut [u32],
    ) {
        let FlowIndex { spec, index, group, n } = place;
        let number = self.flows.len() as u32;
        let ways = [&flow.forward, &flow.back].map(|links| self.add_route(links, users));
        let mut series = NONE;
        if spec.series.as_ref().is_some_and(|s| n < s.flows_per_group) {
            series = self.series.flows.len() as u32;
            let name = format!("{}.{n}", group.name);
            self.series.flows.push(FlowSeries::new(number, name, group.name.clone()));
        }
        self.routes.push(FlowRoute { ways, group: index as u32, series });
        self.further.add(number, &flow.further);
        let key = place.key(RandomKey::from_seed(spec.seed));
        let paths = 1 + flow.further.len();
        let (sender, receiver) = crate::endpoints::build(&group.protocol, number, key, paths);
        self.flows.push(Flow {
            sender,
            receiver,
            timer: FlowTimers::default(),
            receiver_event: Time::NEVER,
            stats: FlowStats::default(),
        });
        self.applications.push(application);
    }

    pub(super) fn add_route(&mut self, links: &[u32], users: &mut [u32]) -> (u32, u16) {
        let start = self.hops.len();
        for l in links {
            users[*l as usize] += 1;
            self.hops.push(*l);
        }
        (start as u32, links.len() as u16)
    }
}

/// A transfer of a `web` source: flow index, start, bytes.
type Transfer = (usize, Time, u64);

/// The transfers of groups with a `web` source.
fn transfers(
    spec: &NetworkSpec,
    random_key: RandomKey,
) -> Result<Vec<Option<Vec<Transfer>>>, SimError> {
    let mut out = Vec::with_capacity(spec.groups.len());
    let mut total: usize = spec.groups.iter().map(|g| g.flows.len()).sum();
    for (i, group) in spec.groups.iter().enumerate() {
        let mut list = None;
        for (n, flow) in group.flows.iter().enumerate() {
            let stream = random_key.named("web").named(&group.name).numbered(n as u64).stream();
            let until = flow.stop.min(spec.end);
            let Some(made) = group.source.transfers(flow.start, stream) else { break };
            let made: Vec<(Time, u64)> =
                made.take_while(|t| t.0 < until).take(MAX_FLOWS + 1).collect();
            total = total.saturating_add(made.len());
            if total > MAX_FLOWS {
                let why = format!("flows and their transfers are more than {MAX_FLOWS} in all");
                return Err(SimError::Spec(FieldError::new(format!("groups[{i}].source"), why)));
            }
            let list = list.get_or_insert_with(Vec::new);
            list.extend(made.into_iter().map(|(start, bytes)| (n, start, bytes)));
        }
        out.push(list);
    }
    Ok(out)
}

impl Network {
    /// Adds the routes of further paths and numbers these, after flows and branches.
    fn build_further_paths(&mut self, users: &mut [u32]) {
        self.further.first = self.routes.len();
        for (number, paths) in std::mem::take(&mut self.further.unnumbered) {
            let first = self.routes.len() as u32;
            let group = self.routes[number as usize].group;
            for path in &paths {
                let ways = [&path.forward, &path.back].map(|links| self.add_route(links, users));
                self.routes.push(FlowRoute { ways, group, series: NONE });
                self.further.owners.push(number);
            }
            let flow = &mut self.flows[number as usize];
            if let SimulatedSender::Multipath(sender) = &mut flow.sender {
                sender.number_paths(first);
            }
            if let SimulatedReceiver::Multipath(receiver) = &mut flow.receiver {
                receiver.number_paths(first);
            }
        }
    }
}
