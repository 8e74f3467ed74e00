//! Multicast: a tree of links along which packets are copied to the receivers of their layer.
//!
//! Groups of flows with the same `multicast(…)` source are receivers of one sender. The tree is the common part of
//! their routes: each stretch without a fork is a *branch*, numbered after the flows. A packet's flow number is that of
//! its present branch. So unicast packets have no additional cost: only packets without a flow look for a branch. The
//! first link carries every layer, as the network of a sender without feedback; links behind it carry the layers that a
//! receiver behind them has joined. A change of membership takes effect at the forks after the propagation delay from
//! the receiver to the sender.

use super::tree::{Branch, GroupMember};
use super::{FORWARD, FlowRoute, NONE, Network};
use crate::endpoints::{FramePart, SimulatedReceiver, SimulatedSender, multicast};
use crate::frames::FrameMeter;
use crate::spec::NetworkSpec;
use narrows_base::{Duration, Packet, RandomKey, Time};

/// The sender spaces its packets at this multiple of the rate of all layers.
const SPACING: f64 = 1.25;

impl Network {
    /// Builds the trees, after all flows.
    pub(super) fn build_multicast(&mut self, spec: &NetworkSpec, users: &mut [u32]) {
        if spec.groups.iter().all(|g| g.source.multicast().is_none()) {
            return;
        }
        let mut done: Vec<&str> = Vec::new();
        for group in &spec.groups {
            let text = group.source.text();
            let Some(session) = group.source.multicast() else { continue };
            if done.contains(&text) {
                continue;
            }
            done.push(text);
            let first = self.multicast.members.len();
            let mut routes: Vec<&[u32]> = Vec::new();
            for (number, route) in self.routes.iter().enumerate().take(self.flows.len()) {
                let of = &spec.groups[route.group as usize];
                if of.source.text() != text {
                    continue;
                }
                let nth =
                    number - self.routes.iter().position(|r| r.group == route.group).unwrap_or(0);
                let flow = &of.flows[nth];
                let delay = flow
                    .back
                    .iter()
                    .fold(Duration::ZERO, |sum, l| sum + spec.links[*l as usize].config.delay);
                routes.push(&flow.forward);
                let next = (Time::ZERO, 1);
                self.multicast.members.push(GroupMember {
                    flow: number as u32,
                    delay,
                    level: 1,
                    next,
                });
            }
            if routes.is_empty() {
                continue;
            }
            let all: Vec<usize> = (0..routes.len()).collect();
            let root = self.add_branch(&routes, first, &all, 0, users);
            let sender = self.multicast.members[first].flow;
            let members = first..self.multicast.members.len();
            let key = RandomKey::from_seed(spec.seed).named("multicast").named(&group.name);
            let protocol = &group.protocol;
            let environment = protocol.environment(protocol.packet_bytes(), key, protocol.hints());
            for member in members.clone() {
                let flow = self.multicast.members[member].flow as usize;
                if let Some(side) = protocol.receiver_side(&environment) {
                    let receiver =
                        multicast::MulticastReceiver::new(side, &session.rates, session.rtt);
                    self.flows[flow].receiver = SimulatedReceiver::Multicast(Box::new(receiver));
                }
                if flow != sender as usize {
                    self.applications[flow].start = Time::NEVER;
                }
            }
            let Some(config) = protocol.datagram() else { continue };
            let payload = config.payload();
            let packet = f64::from(config.packet_bytes.max(1)) / f64::from(payload.max(1));
            let rate = session.rates.iter().sum::<f64>() * packet * SPACING;
            self.flows[sender as usize].sender =
                SimulatedSender::Multicast(Box::new(multicast::MulticastSender::new(
                    protocol.controller(&environment),
                    root,
                    (payload, config.header_bytes),
                    rate,
                    key.bits(),
                )));
            self.routes[sender as usize].ways[FORWARD] = self.routes[root as usize].ways[FORWARD];
            self.multicast.sessions.push((sender, members));
        }
    }

    /// The branch of these receivers (indices of `routes`) from their hop `depth` on; returns its number.
    fn add_branch(
        &mut self,
        routes: &[&[u32]],
        first: usize,
        of: &[usize],
        depth: usize,
        users: &mut [u32],
    ) -> u32 {
        let lead = routes[of[0]];
        let mut end = depth;
        // The first link is a branch of its own: behind it a router selects layers by membership.
        let common = |end: usize| of.iter().all(|r| routes[*r].get(end) == Some(&lead[end]));
        while end < lead.len() && common(end) && (depth > 0 || end == 0) {
            end += 1;
        }
        let start = self.hops.len() as u32;
        for link in &lead[depth..end] {
            users[*link as usize] += 1;
            self.hops.push(*link);
        }
        let way = (start, (end - depth) as u16);
        let index = self.multicast.branches.len();
        let number = (self.flows.len() + index) as u32;
        let members = &self.multicast.members;
        let flow = |r: usize| members[first + r].flow;
        let leaves: Vec<u32> =
            of.iter().filter(|r| routes[**r].len() == end).map(|r| flow(*r)).collect();
        let group = self.routes[flow(of[0]) as usize].group;
        self.routes.push(FlowRoute { ways: [way, way], group, series: NONE });
        let behind = of.iter().map(|r| first + r).collect();
        self.multicast.branches.push(Branch { children: Vec::new(), leaves, behind });
        let mut rest: Vec<usize> = of.iter().copied().filter(|r| routes[*r].len() > end).collect();
        while let Some(one) = rest.first() {
            let link = routes[*one][end];
            let (same, others): (Vec<usize>, Vec<usize>) =
                rest.iter().partition(|r| routes[**r][end] == link);
            let child = self.add_branch(routes, first, &same, end, users);
            self.multicast.branches[index].children.push(child);
            rest = others;
        }
        number
    }

    /// A packet has arrived at the end of a branch.
    #[cold]
    pub(super) fn fork(&mut self, packet: &Packet) {
        let now = self.now;
        let index = packet.flow as usize - self.flows.len();
        let Some(branch) = self.multicast.branches.get(index) else { return };
        let layer = multicast::layer_of(packet);
        let leaves = branch.leaves.clone();
        let children = branch.children.clone();
        for child in children {
            let behind = &self.multicast.branches[child as usize - self.flows.len()].behind;
            let joined = behind.iter().map(|m| self.multicast.members[*m].level(now)).max();
            if joined.unwrap_or(0) > layer {
                let mut copy = Packet { flow: child, hop: 0, ..*packet };
                let route = self.routes[child as usize];
                self.travel(route.ways[FORWARD], &mut copy, route.group);
            }
        }
        for leaf in leaves {
            self.received(leaf, packet);
        }
    }

    /// A packet has arrived at a receiver.
    fn received(&mut self, number: u32, packet: &Packet) {
        let now = self.now;
        let flow = &mut self.flows[number as usize];
        let SimulatedReceiver::Multicast(receiver) = &mut flow.receiver else { return };
        let before = receiver.delivered();
        receiver.on_arrival(now, packet);
        let after = receiver.delivered();
        let level = receiver.level();
        let frame = receiver.frame_of(packet);
        if after > before {
            flow.stats.delivered(now, self.from, after - before, self.keep);
            if let Some(frames) = &mut self.applications[number as usize].frames {
                frames.arrived(now, frame, after - before);
            }
        }
        let series = self.routes[number as usize].series;
        if series != NONE {
            self.series.flows[series as usize].bits += f64::from(packet.size) * 8.0;
        }
        if let Some(m) = self.multicast.members.iter_mut().find(|m| m.flow == number)
            && m.next.1 != level
        {
            m.level = m.level(now);
            m.next = (now + m.delay, level);
        }
        self.arm_receiver(number);
    }

    /// The sender of a multicast has written these parts: each receiver tracks those of the layers that it has joined.
    /// Returns whether this flow is such a sender.
    pub(super) fn written_to_all(&mut self, sender: u32, parts: &[FramePart]) -> bool {
        let receivers: Vec<(u32, usize)> = self.multicast.receivers(sender).collect();
        for (flow, level) in &receivers {
            let meter: Option<&mut Box<FrameMeter>> =
                self.applications[*flow as usize].frames.as_mut();
            if let Some(meter) = meter {
                for part in parts.iter().filter(|p| usize::from(p.layer) < *level) {
                    meter.written(self.now, part);
                }
            }
        }
        !receivers.is_empty()
    }
}
