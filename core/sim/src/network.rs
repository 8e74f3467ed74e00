//! The engine: endpoints, links and applications in virtual time.
//!
//! There is one pending event per link (deliveries of a FIFO link are already in order) and one
//! lazily re-armed timer per endpoint. A link that only one direction of one flow enters, that
//! keeps the order and that computes its departures needs no event: a packet passes through it when
//! it leaves the previous link. On a dumbbell this leaves four events per delivered packet: the
//! arrivals of the data packet and of its ACK at the bottleneck and at the endpoint.

mod build;
mod by_flow;
mod finish;
mod frames;
mod further_paths;
mod multicast;
mod route;
mod scope;
mod simulation;
mod tree;

pub use self::simulation::Simulation;

use self::by_flow::ByFlow;
use self::further_paths::FurtherPaths;
use self::route::{BACK, FORWARD, FlowRoute, NONE};
use self::scope::within;
use self::tree::Multicast;
use crate::calendar::{Calendar, EventKind, SimEvent};
use crate::endpoints::{SenderInput, SenderOutput};
use crate::flow::{Application, Flow};
use crate::histogram::Histogram;
use crate::meter::{At, Bins, LinkMeter};
use crate::packet_log::PacketLog;
use crate::result::RunResult;
use crate::series::{self, FlowSeries, QueueSeries};
use crate::source::StartedSource;
use crate::spec::{NetworkSpec, SimError};
use narrows_base::{Duration, Machine, Packet, Time};
use narrows_link::Link;

/// Events between two calls of the progress function.
const PROGRESS: u64 = 1 << 18;
/// Packets that enter links between two counts of all packets in the network.
const COUNT: u32 = 1 << 18;
/// Limit on packets in the network at once: 1 GB in the links' rings.
const MAX_PACKETS: usize = if cfg!(test) { 1 << 19 } else { 1 << 24 };
/// Calls of the progress function at the same simulated time before a run is aborted. A million
/// flows that start together need about ten.
const MAX_STANDSTILL: u32 = if cfg!(test) { 4 } else { 100 };

/// A link in the engine: two cache lines.
#[repr(align(64))]
struct LinkNode {
    link: Link<Packet>,
    /// When its pending event fires.
    event: Time,
    /// Whether packets enter it directly when they leave the previous link.
    private: bool,
    computed: bool,
    meter: u32,
}

const _: () = assert!(size_of::<LinkNode>() == 128);

/// Samples over time.
struct SampledSeries {
    flows: Vec<FlowSeries>,
    queues: Vec<QueueSeries>,
    time_s: Vec<f64>,
}

struct Network {
    calendar: Calendar,
    nodes: Vec<LinkNode>,
    hops: Vec<u32>,
    routes: Vec<FlowRoute>,
    flows: Vec<Flow>,
    applications: Vec<Application>,
    multicast: Multicast,
    further: FurtherPaths,
    meters: Vec<LinkMeter>,
    rtts: Vec<Histogram>,
    /// Samples over time.
    series: SampledSeries,
    from: Time,
    end: Time,
    /// Whether flows keep bins of one second.
    keep: bool,
    now: Time,
    digest: u64,
    events: u64,
    /// Packets that may still enter links before all packets are counted.
    until_count: u32,
    /// More than [`MAX_PACKETS`] packets are in the network: no more packets are sent, and the run ends.
    overfull: bool,
    /// Log of single packets, if enabled.
    packet_log: Option<Box<PacketLog>>,
}

/// Runs a network to its end. `progress` is called regularly with the simulated time; returning false stops the run.
/// For any specification, the work between two calls and the memory are bounded.
///
/// # Errors
/// [`SimError::Spec`] names a field with an invalid value; the others give the reason why the run was aborted.
pub fn run(
    spec: &NetworkSpec,
    progress: &mut dyn FnMut(Time) -> bool,
) -> Result<RunResult, SimError> {
    within(spec, progress, &mut |progress| {
        let mut network = Network::begin(spec)?;
        network.play(spec, spec.end, progress)?;
        Ok(network.finish(spec))
    })
}

impl Network {
    /// The network at time zero, before the first packet.
    fn begin(spec: &NetworkSpec) -> Result<Network, SimError> {
        let mut network = Network::build(spec)?;
        network.start(spec);
        Ok(network)
    }

    /// Handles all events up to and at `until`, at most to the end of the run, and calls `progress` in between.
    fn play(
        &mut self,
        spec: &NetworkSpec,
        until: Time,
        progress: &mut dyn FnMut(Time) -> bool,
    ) -> Result<(), SimError> {
        let until = until.min(spec.end);
        self.go(spec, until, progress)?;
        self.now = self.now.max(until);
        Ok(())
    }

    fn start(&mut self, spec: &NetworkSpec) {
        for (i, a) in self.applications.iter().enumerate() {
            if a.start <= self.end {
                self.calendar.push(SimEvent::new(a.start, EventKind::Source, i as u32));
            }
        }
        for (i, (at, _, _)) in spec.changes.iter().enumerate() {
            self.calendar.push(SimEvent::new(*at, EventKind::Change, i as u32));
        }
        for (i, (at, _, _)) in spec.reconfigurations.iter().enumerate() {
            let number = (spec.changes.len() + i) as u32;
            self.calendar.push(SimEvent::new(*at, EventKind::Change, number));
        }
        if self.from > Time::ZERO {
            self.calendar.push(SimEvent::new(self.from, EventKind::Measure, 0));
        }
        if let Some(s) = &spec.series {
            self.calendar.push(SimEvent::new(s.from, EventKind::Sample, 0));
            let n = series::sample_times(s.from, s.interval, self.end);
            self.series.time_s.reserve(n.min(1 << 20));
            for link in &s.links {
                let meter = self.nodes[*link].meter;
                if let Some(m) = self.meters.get_mut(meter as usize) {
                    m.bins = Some(Bins::new(s.from, s.interval.as_nanos(), self.end));
                    self.series.queues.push(QueueSeries::new(*link));
                }
            }
        }
    }

    /// Handles all events up to and at `until`.
    fn go(
        &mut self,
        spec: &NetworkSpec,
        until: Time,
        progress: &mut dyn FnMut(Time) -> bool,
    ) -> Result<(), SimError> {
        let mut until_progress = PROGRESS;
        let mut before = Time::NEVER;
        let mut standstill = 0;
        while let Some(event) = self.calendar.pop(until) {
            self.now = event.time;
            self.events += 1;
            let number = event.number();
            match event.kind() {
                EventKind::Link => self.on_link(number),
                EventKind::Sender => self.on_sender_timer(number),
                EventKind::Receiver => self.on_receiver_timer(number),
                EventKind::Source => self.on_source(number),
                EventKind::Change => self.on_change(spec, number as usize),
                EventKind::Measure => {
                    for f in &mut self.flows {
                        f.stats.begin(self.now, &f.sender, &f.receiver);
                    }
                }
                EventKind::Sample => self.on_sample(spec),
            }
            until_progress -= 1;
            if until_progress == 0 {
                until_progress = PROGRESS;
                if !progress(self.now) {
                    return Err(SimError::Interrupted);
                }
                standstill = if self.now == before { standstill + 1 } else { 0 };
                before = self.now;
                if standstill == MAX_STANDSTILL {
                    return Err(SimError::TimeStandsStill { at: self.now });
                }
            }
            if self.overfull {
                return Err(SimError::TooManyPackets { at: self.now, max: MAX_PACKETS });
            }
        }
        Ok(())
    }

    /// A link changes, or an application gives new hints about the path. The latter are numbered after the links'
    /// changes.
    #[cold]
    fn on_change(&mut self, spec: &NetworkSpec, number: usize) {
        if let Some((at, link, change)) = spec.changes.get(number) {
            let changed = &mut self.nodes[*link].link;
            changed.change(*at, change);
            let due = changed.next_timeout();
            self.arm_link(*link as u32, due);
            return;
        }
        let (_, group, hints) = spec.reconfigurations[number - spec.changes.len()];
        for flow in 0..self.flows.len() {
            if self.routes[flow].group as usize == group {
                self.flows[flow].sender.reconfigure(self.now, &hints);
                self.pump(flow as u32);
            }
        }
    }

    /// A link's pending event fires.
    #[inline]
    fn on_link(&mut self, number: u32) {
        let now = self.now;
        let node = &mut self.nodes[number as usize];
        if node.event != now {
            return; // An earlier event replaced it.
        }
        node.event = Time::NEVER;
        let due = loop {
            let node = &mut self.nodes[number as usize];
            let first = if node.meter == NONE {
                node.link.first_due(now, &mut ())
            } else {
                // Served links report to their meter when a transmission ends; the packet
                // identifies the group.
                let routes = &self.routes;
                let meter = &mut self.meters[node.meter as usize];
                node.link.first_due(now, &mut ByFlow { meter, routes })
            };
            let Some(&(mut packet)) = first else { break node.link.next_timeout() };
            node.link.remove_first();
            self.arrived(&mut packet);
            let due = self.nodes[number as usize].link.next_timeout();
            if due > now || self.overfull {
                break due;
            }
        };
        self.arm_link(number, due);
    }

    /// Makes the link's pending event no later than `due`, its next timeout.
    #[inline]
    fn arm_link(&mut self, number: u32, due: Time) {
        let node = &mut self.nodes[number as usize];
        if due < node.event {
            node.event = due;
            self.calendar.push(SimEvent::new(due.max(self.now), EventKind::Link, number));
        }
    }

    /// A packet has left the last link that it was on.
    #[inline]
    fn arrived(&mut self, packet: &mut Packet) {
        let route = self.routes[packet.flow as usize];
        let way = route.ways[usize::from(packet.has(Packet::ACK))];
        packet.hop += 1;
        if u16::from(packet.hop) < way.1 {
            self.travel(way, packet, route.group);
            return;
        }
        let word =
            packet.seq << 33 ^ u64::from(packet.flow) << 1 ^ u64::from(packet.has(Packet::ACK));
        self.digest = (self.digest.rotate_left(5) ^ self.now.as_nanos() ^ word)
            .wrapping_mul(0x9E37_79B9_7F4A_7C15);
        if packet.has(Packet::ACK) {
            self.ack_arrived(packet, route);
        } else {
            self.data_arrived(packet, route);
        }
    }

    #[inline]
    fn ack_arrived(&mut self, packet: &Packet, route: FlowRoute) {
        let now = self.now;
        if !packet.has(Packet::SYN) && now >= self.from {
            let rtt = now.since(packet.stamp);
            self.rtts[route.group as usize].record(rtt.as_nanos());
        }
        if route.series != NONE && !packet.has(Packet::SYN) {
            self.series.flows[route.series as usize].rtt = now.since(packet.stamp);
        }
        if let Some(log) = self.packet_log.as_mut().filter(|_| !packet.has(Packet::SYN)) {
            log.acknowledged(now, packet);
        }
        let number = match self.flows.get(packet.flow as usize) {
            Some(_) => packet.flow as usize,
            None => self.further.owner(packet.flow as usize).unwrap_or_default(),
        };
        self.flows[number].sender.on_packet(now, packet);
        self.pump(number as u32);
    }

    #[inline]
    fn data_arrived(&mut self, packet: &Packet, route: FlowRoute) {
        let now = self.now;
        if route.series != NONE {
            self.series.flows[route.series as usize].bits += f64::from(packet.size) * 8.0;
        }
        if let Some(log) = &mut self.packet_log {
            log.arrived(packet);
        }
        let number = match self.flows.get(packet.flow as usize) {
            Some(_) => packet.flow as usize,
            None => match self.further.owner(packet.flow as usize) {
                Some(number) => number,
                None => return self.fork(packet),
            },
        };
        let flow = &mut self.flows[number];
        let before = flow.receiver.delivered();
        let ack = flow.receiver.on_packet(now, packet);
        let after = flow.receiver.delivered();
        if after > before {
            flow.stats.delivered(now, self.from, after - before, self.keep);
            let application = &mut self.applications[number];
            if after == application.wanted {
                flow.stats.done = Some(now);
            }
            if let Some(frames) = &mut application.frames {
                match flow.receiver.frame_of(packet) {
                    Some(of) => frames.arrived(now, of, after - before),
                    None => frames.in_order(now, after),
                }
            }
        }
        let classified = flow.receiver.classified();
        let due = flow.receiver.next_timeout();
        if due < flow.receiver_event {
            flow.receiver_event = due;
            self.calendar.push(SimEvent::new(due, EventKind::Receiver, number as u32));
        }
        if let Some((from, to, radio)) = classified {
            self.classified(number as u32, from..to, radio);
        }
        if let Some(mut ack) = ack {
            self.travel(route.ways[BACK], &mut ack, route.group);
        }
    }

    /// A receiver has classified missing packets: compares them with the packets that queues dropped.
    #[cold]
    fn classified(&mut self, number: u32, missing: std::ops::Range<u64>, radio: bool) {
        for drops in self.meters.iter_mut().filter_map(|m| m.drops.as_mut()) {
            for (flow, seq) in drops.drain(..) {
                if let Some(flow) = self.flows.get_mut(flow as usize) {
                    flow.stats.dropped(seq);
                }
            }
        }
        let counts = self.now >= self.from;
        self.flows[number as usize].stats.classified(missing, radio, counts);
    }

    /// Polls a sender until it waits.
    #[inline]
    fn pump(&mut self, number: u32) {
        let route = self.routes[number as usize];
        while !self.overfull {
            let flow = &mut self.flows[number as usize];
            match flow.sender.poll(self.now) {
                SenderOutput::Send(mut packet) => {
                    flow.stats.sent_bytes += u64::from(packet.payload());
                    if let Some(log) = &mut self.packet_log {
                        log.sent(self.now, &packet);
                    }
                    let ways = match packet.flow == number {
                        true => route.ways,
                        false => self.routes[packet.flow as usize].ways,
                    };
                    self.travel(ways[FORWARD], &mut packet, route.group);
                }
                SenderOutput::Wait(due) => {
                    flow.stats.waits(self.now, flow.sender.limit());
                    if flow.timer.arm(due) {
                        self.calendar.push(SimEvent::new(
                            due.max(self.now),
                            EventKind::Sender,
                            number,
                        ));
                    }
                    return;
                }
            }
        }
    }

    fn on_sender_timer(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        if !flow.timer.fires(self.now) {
            return; // An earlier event replaced it.
        }
        // Timers are lazily re-armed: if the deadline has moved, this has no effect.
        flow.sender.handle(self.now, SenderInput::Timeout);
        self.pump(number);
    }

    fn arm_receiver(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        let due = flow.receiver.next_timeout();
        if due < flow.receiver_event {
            flow.receiver_event = due;
            self.calendar.push(SimEvent::new(due, EventKind::Receiver, number));
        }
    }

    fn on_receiver_timer(&mut self, number: u32) {
        let flow = &mut self.flows[number as usize];
        if flow.receiver_event != self.now {
            return;
        }
        flow.receiver_event = Time::NEVER;
        let ack = flow.receiver.on_timeout(self.now);
        if let Some(mut ack) = ack {
            let route = self.routes[ack.flow as usize];
            self.travel(route.ways[BACK], &mut ack, route.group);
        }
        self.arm_receiver(number);
    }

    /// Puts a packet into the link that `packet.hop` names, and passes it through private links as
    /// far as possible.
    #[inline]
    fn travel(&mut self, (start, length): (u32, u16), packet: &mut Packet, group: u32) {
        self.until_count -= 1;
        if self.until_count == 0 {
            self.count_packets();
        }
        let mut at = self.now;
        let mut index = self.hops[start as usize + usize::from(packet.hop)];
        loop {
            let node = &mut self.nodes[index as usize];
            if !node.computed {
                if node.meter == NONE {
                    node.link.accept(at, *packet, &mut ());
                } else {
                    let meter = &mut self.meters[node.meter as usize];
                    node.link.accept(at, *packet, &mut ByFlow { meter, routes: &self.routes });
                }
                let due = node.link.next_timeout();
                self.arm_link(index, due);
                return;
            }
            let out = if node.meter == NONE {
                node.link.pass(at, packet, &mut ())
            } else {
                let meter = &mut self.meters[node.meter as usize];
                node.link.pass(at, packet, &mut At { meter, group })
            };
            let Some(out) = out else { return };
            at = out;
            let next = packet.hop + 1;
            if u16::from(next) < length {
                let next_index = self.hops[start as usize + usize::from(next)];
                if self.nodes[next_index as usize].private {
                    packet.hop = next;
                    index = next_index;
                    continue;
                }
            }
            let node = &mut self.nodes[index as usize];
            if node.link.hold(at, *packet) && at < node.event {
                node.event = at;
                self.calendar.push(SimEvent::new(at, EventKind::Link, index));
            }
            return;
        }
    }

    /// Whether more than [`MAX_PACKETS`] packets are in the network.
    #[cold]
    fn count_packets(&mut self) {
        self.until_count = COUNT;
        let held: usize = self.nodes.iter().map(|n| n.link.held()).sum();
        self.overfull = held > MAX_PACKETS;
    }

    /// An application writes.
    fn on_source(&mut self, number: u32) {
        let now = self.now;
        let a = &mut self.applications[number as usize];
        let flow = &mut self.flows[number as usize];
        if now >= a.stop {
            flow.sender.handle(now, SenderInput::Stop);
            return;
        }
        let source = match &mut a.source {
            StartedSource::Bytes(source) => source,
            StartedSource::Frames(_) => return self.on_frames(number),
        };
        let sender = &flow.sender;
        let (bytes, next) = source.write(now, &|| sender.allowed().as_bps() as f64);
        if !a.opened {
            a.opened = true;
            flow.sender.handle(now, SenderInput::Open);
            if a.is_transfer {
                a.wanted = bytes;
            }
        }
        flow.sender.handle(now, SenderInput::Data(bytes));
        let next = next.min(a.stop);
        if !next.is_never() {
            self.calendar.push(SimEvent::new(next, EventKind::Source, number));
        }
        self.pump(number);
    }

    fn on_sample(&mut self, spec: &NetworkSpec) {
        let Some(s) = &spec.series else { return };
        let interval_s = s.interval.as_secs_f64();
        self.series.time_s.push(self.now.as_secs_f64());
        for one in &mut self.series.flows {
            let application = &self.applications[one.flow as usize];
            one.sample(self.now, &self.flows[one.flow as usize], &application.source, interval_s);
        }
        for one in &mut self.series.queues {
            one.sample(self.now, &self.nodes[one.link].link);
        }
        let next = self.now + s.interval.max(Duration::from_nanos(1));
        self.calendar.push(SimEvent::new(next, EventKind::Sample, 0));
    }
}

#[cfg(test)]
#[path = "network/limits_tests.rs"]
mod tests;
