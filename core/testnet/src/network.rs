//! Hosts, routers and address translators, joined by links.
//!
//! ```text
//!   host ──link── NAT ──link── router ──link── host
//!   send()                                     poll()
//! ```

use crate::datagram::Datagram;
use crate::ids::{LinkId, NodeId};
use crate::nat::{Nat, NatKind};
use crate::observe::{Fate, NetworkEvent, Observers, Place};
use crate::store::{Carried, Counting, LinkCounts, Store};
use narrows_base::random::mix;
use narrows_base::{Duration, RandomKey, SpecError, Time, spec};
use narrows_link::{Link, LinkChange};
use narrows_scenario::link_direction::TraceStart;
use narrows_scenario::{BottleneckLink, change_keys};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::time::Instant;

/// Bytes of the largest packet, for queue limits in BDPs.
const PACKET_BYTES: u32 = 1500;
/// Datagrams that a network holds at most: 2^20. A sender without flow and congestion control fills it in virtual time.
const MAX_HELD: usize = 1 << 20;

/// Datagrams that no link carried or lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct NetworkCounts {
    /// Sent by hosts; each segment counts.
    pub sent: u64,
    /// Delivered to hosts.
    pub delivered: u64,
    /// Refused by an address translator.
    pub filtered: u64,
    /// Without a route, or from an address that is not its host's.
    pub unroutable: u64,
    /// Discarded at their host because they were damaged on a link.
    pub damaged: u64,
    /// Not sent because 2^20 datagrams were in the network.
    pub refused: u64,
}

#[derive(Debug)]
enum Kind {
    Host(Vec<IpAddr>),
    Router,
    Nat(Nat),
}

/// A link as one of its ends sees it.
#[derive(Clone, Copy, Debug)]
struct Port {
    /// Index in `ways`.
    way: usize,
    to: NodeId,
    /// The only source address that leaves by it.
    source: Option<IpAddr>,
    /// Whether the other end is outside, seen from an address translator.
    is_outward: bool,
}

#[derive(Debug)]
struct Site {
    kind: Kind,
    ports: Vec<Port>,
    /// The route of the last datagram: its source, its destination and the port.
    recent: Option<(IpAddr, IpAddr, Option<Port>)>,
}

/// One direction of a link.
#[derive(Debug)]
struct Way {
    link: Link<Carried>,
    to: NodeId,
    /// Whether it leads from the inner to the outer end.
    is_outward: bool,
    counts: LinkCounts,
    /// The link's `next_timeout`.
    due: Time,
}

/// Datagrams from one address to another.
#[derive(Debug)]
struct Flow {
    source: SocketAddr,
    destination: SocketAddr,
    hash: u64,
    /// Of its random numbers.
    key: u64,
    /// Random numbers drawn.
    drawn: u64,
}

#[derive(Clone, Debug)]
enum Event {
    Change { way: usize, change: LinkChange },
    Rebind(NodeId),
}

/// A network in virtual time: takes datagrams from hosts and returns those that have arrived.
///
/// It reads no clock: every method gets the present time. Times are points after [`start`](Network::start), in whole
/// nanoseconds. With the same calls and the same seed it does the same.
///
/// ```
/// use narrows_testnet::{Datagram, Network};
///
/// let mut network = Network::new(1);
/// let a = network.add_host(&["10.0.0.1".parse()?])?;
/// let b = network.add_host(&["10.0.0.2".parse()?])?;
/// network.add_link(a, b, "8Mbit/s,10ms")?;
/// let start = network.start();
/// let hello = Datagram::udp("10.0.0.1:1".parse()?, "10.0.0.2:2".parse()?, b"hello".to_vec());
/// network.send(start, a, hello);
/// while let Some(now) = network.next_timeout() {
///     if let Some((host, datagram)) = network.poll(now) {
///         assert_eq!((host, datagram.payload.as_slice()), (b, b"hello".as_slice()));
///         // 33 bytes with headers leave in 33 us.
///         assert_eq!((now - start).as_micros(), 10_033);
///     }
/// }
/// assert_eq!(network.counts().delivered, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Network {
    seed: u64,
    start: Instant,
    now: Time,
    /// The last argument of `advance`.
    latest: Instant,
    places: Vec<Site>,
    ways: Vec<Way>,
    links: Vec<BottleneckLink>,
    store: Store,
    arrived: VecDeque<(NodeId, Datagram)>,
    events: BTreeMap<(Time, u64), Event>,
    events_added: u64,
    /// When the next datagram leaves a link, or the next event is due.
    next: Time,
    /// Each followed by its reverse.
    flows: Vec<Flow>,
    /// Indices in `flows`.
    flow_numbers: BTreeMap<(SocketAddr, SocketAddr), usize>,
    recent_flow: usize,
    routes: BTreeMap<(NodeId, IpAddr, IpAddr), Option<Port>>,
    counts: NetworkCounts,
    observers: Observers,
}

impl Network {
    /// An empty network; all losses and delays are drawn from the seed. It starts now; only differences of times count.
    #[allow(
        clippy::disallowed_methods,
        reason = "the origin of virtual time; any instant would do"
    )]
    pub fn new(seed: u64) -> Network {
        Network::starting_at(seed, Instant::now())
    }

    /// The same with another start.
    pub fn starting_at(seed: u64, start: Instant) -> Network {
        Network {
            seed,
            start,
            now: Time::ZERO,
            latest: start,
            places: Vec::new(),
            ways: Vec::new(),
            links: Vec::new(),
            store: Store::default(),
            arrived: VecDeque::new(),
            events: BTreeMap::new(),
            events_added: 0,
            next: Time::NEVER,
            flows: Vec::new(),
            flow_numbers: BTreeMap::new(),
            recent_flow: 0,
            routes: BTreeMap::new(),
            counts: NetworkCounts::default(),
            observers: Observers::default(),
        }
    }

    /// Adds a host with these addresses.
    ///
    /// # Errors
    /// Another host or address translator has one of them.
    pub fn add_host(&mut self, addresses: &[IpAddr]) -> Result<NodeId, SpecError> {
        addresses.iter().try_for_each(|address| self.check_unused(*address))?;
        Ok(self.add(Kind::Host(addresses.to_vec())))
    }

    /// Adds a node that forwards and has no program.
    pub fn add_router(&mut self) -> NodeId {
        self.add(Kind::Router)
    }

    /// Adds an address translator with this outer address. Links added as `(x, translator)` are inside, links added as
    /// `(translator, x)` are outside. Datagrams from one inner host to another by the outer address are filtered.
    ///
    /// # Errors
    /// Another host or address translator has this address.
    pub fn add_nat(&mut self, external: IpAddr, kind: NatKind) -> Result<NodeId, SpecError> {
        self.check_unused(external)?;
        Ok(self.add(Kind::Nat(Nat::new(external, kind))))
    }

    fn check_unused(&self, address: IpAddr) -> Result<(), SpecError> {
        if (0..self.places.len()).any(|i| self.owns(NodeId(i), address)) {
            return Err(SpecError::new(format!("two nodes have the address {address}")));
        }
        Ok(())
    }

    fn add(&mut self, kind: Kind) -> NodeId {
        self.places.push(Site { kind, ports: Vec::new(), recent: None });
        self.forget_routes();
        NodeId(self.places.len() - 1)
    }

    pub(crate) fn add_observer(&mut self, observer: Box<dyn FnMut(&NetworkEvent<'_>) + Send>) {
        self.observers.add(observer);
    }

    fn forget_routes(&mut self) {
        self.routes.clear();
        self.places.iter_mut().for_each(|place| place.recent = None);
    }

    /// The node of this number, as [`NodeId::index`] returns it.
    pub fn node(&self, index: usize) -> Option<NodeId> {
        (index < self.places.len()).then_some(NodeId(index))
    }

    /// Ends mappings of an address translator that were idle for so long; by default they never end.
    pub fn set_nat_timeout(&mut self, nat: NodeId, timeout: std::time::Duration) {
        if let Some(Site { kind: Kind::Nat(nat), .. }) = self.places.get_mut(nat.0) {
            nat.timeout = nanos(timeout);
        }
    }

    /// Joins two nodes. The text is one line, `RATE,DELAY[,key=value]*`, or the name of a link, as for `narrows compare`;
    /// keys that begin with `reverse-` are for the direction from `b` to `a`.
    ///
    /// # Errors
    /// An invalid text, `host-delay=` or a faster link's `access=`.
    pub fn add_link(&mut self, a: NodeId, b: NodeId, text: &str) -> Result<LinkId, SpecError> {
        self.join(a, b, text, None)
    }

    /// An interface of host `a`: a link by which only datagrams from this address leave.
    ///
    /// # Errors
    /// As [`add_link`](Network::add_link), or the address is not the host's.
    pub fn add_interface(
        &mut self,
        a: NodeId,
        address: IpAddr,
        b: NodeId,
        text: &str,
    ) -> Result<LinkId, SpecError> {
        if !self.owns(a, address) {
            return Err(SpecError::new(format!("{address} is no address of this host")));
        }
        self.join(a, b, text, Some(address))
    }

    fn join(
        &mut self,
        a: NodeId,
        b: NodeId,
        text: &str,
        source: Option<IpAddr>,
    ) -> Result<LinkId, SpecError> {
        let link = BottleneckLink::parse(text, Path::new(""))?;
        if link.host_delay.is_some() {
            return Err(SpecError::new("host-delay= is the host's own here: delay its datagrams"));
        }
        let link = link.folded()?;
        let number = self.links.len();
        let base_rtt = link.base_rtt();
        let mut built = Vec::new();
        for (direction, name) in [(&link.forward, "forward"), (&link.reverse, "reverse")] {
            let mut config = direction.config(base_rtt, PACKET_BYTES, true);
            let name = format!("link{number}.{name}");
            let trace_start = direction.trace_start.unwrap_or(TraceStart::Random);
            trace_start.enter(&mut config, &name, self.seed);
            built.push(Link::new(&config, RandomKey::from_seed(self.seed).named(&name))?);
        }
        for (link, is_outward) in built.into_iter().zip([true, false]) {
            let from = if is_outward { a } else { b };
            let to = if is_outward { b } else { a };
            let source = source.filter(|_| is_outward);
            let port = Port { way: self.ways.len(), to, source, is_outward };
            let counts = LinkCounts::default();
            self.ways.push(Way { link, to, is_outward, counts, due: Time::NEVER });
            if let Some(place) = self.places.get_mut(from.0) {
                place.ports.push(port);
            }
        }
        self.links.push(link);
        self.forget_routes();
        Ok(LinkId(number))
    }

    /// Changes a link after this time from the start: `rate=5Mbit/s`, `delay=`, `loss=` or `mtu=`, several with commas.
    /// With `reverse-` the change is for the direction from `b` to `a`. Without, a rate, a delay or an MTU that is equal
    /// in both directions stays equal.
    ///
    /// # Errors
    /// An unknown key or an invalid value.
    pub fn change_at(
        &mut self,
        at: std::time::Duration,
        link: LinkId,
        text: &str,
    ) -> Result<(), SpecError> {
        const FORM: &str = "a change is key=value, such as rate=5Mbit/s";
        let description = self.links.get(link.0).ok_or_else(|| SpecError::new("no such link"))?;
        let mut changes = Vec::new();
        for piece in spec::split(text)? {
            let (key, value) = piece
                .split_once('=')
                .ok_or_else(|| SpecError::new(format!("'{}': {FORM}", piece.trim())))?;
            let key = key.trim();
            let value = value.trim();
            let reverse = key.strip_prefix(narrows_scenario::keys::REVERSE);
            let found = change_keys::find(reverse.unwrap_or(key))?;
            let change = (found.read)(value).map_err(|e| e.at(key))?;
            change.check()?;
            let is_both =
                reverse.is_none() && (found.both_ways)(&description.forward, &description.reverse);
            if reverse.is_none() {
                changes.push(Event::Change { way: 2 * link.0, change: change.clone() });
            }
            if reverse.is_some() || is_both {
                changes.push(Event::Change { way: 2 * link.0 + 1, change });
            }
        }
        changes.into_iter().for_each(|event| self.schedule(at, event));
        Ok(())
    }

    /// Makes an address translator forget its mappings after this time from the start; new ones get other ports.
    pub fn rebind_at(&mut self, at: std::time::Duration, nat: NodeId) {
        self.schedule(at, Event::Rebind(nat));
    }

    fn schedule(&mut self, at: std::time::Duration, event: Event) {
        let at = Time::ZERO + nanos(at);
        self.events.insert((at.max(self.now), self.events_added), event);
        self.events_added += 1;
        self.next = self.next.min(at.max(self.now));
    }

    /// The first point in time.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// The latest time that a method was given.
    pub fn now(&self) -> Instant {
        self.instant(self.now)
    }

    /// The seed of all random draws.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Datagrams that no link carried or lost.
    pub fn counts(&self) -> NetworkCounts {
        self.counts
    }

    /// Counts of a link, from its first end to its second and back. `None` for a link of another network.
    pub fn link_counts(&self, link: LinkId) -> Option<[LinkCounts; 2]> {
        let forward = self.ways.get(2 * link.0)?;
        let back = self.ways.get(2 * link.0 + 1)?;
        Some([forward.counts, back.counts])
    }

    /// A link's description, its values in full.
    pub fn link_text(&self, link: LinkId) -> Option<String> {
        self.links.get(link.0).map(ToString::to_string)
    }

    /// Rate of a link from its first end to its second, in bit/s; with a trace its mean.
    pub fn link_rate(&self, link: LinkId) -> Option<f64> {
        self.links.get(link.0).map(|l| l.forward.mean_bps())
    }

    /// A host sends a datagram, or with a segment size several.
    pub fn send(&mut self, now: Instant, host: NodeId, datagram: Datagram) {
        self.advance(now);
        match datagram.segment_size.filter(|size| *size > 0 && *size < datagram.payload.len()) {
            None => self.send_one(host, Datagram { segment_size: None, ..datagram }),
            Some(_) => datagram.segments().into_iter().for_each(|part| self.send_one(host, part)),
        }
    }

    fn report(&mut self, node: NodeId, fate: Fate, datagram: &Datagram) {
        self.observers.report(self.now, Place::Node(node), fate, datagram);
    }

    /// A datagram leaves the network at a node.
    fn end(&mut self, node: NodeId, fate: Fate, slot: u32) {
        if let Some(datagram) = self.store.take(slot) {
            self.report(node, fate, &datagram);
        }
    }

    fn send_one(&mut self, host: NodeId, datagram: Datagram) {
        self.counts.sent += 1;
        if self.store.held() + self.arrived.len() >= MAX_HELD {
            self.counts.refused += 1;
            return self.report(host, Fate::Refused, &datagram);
        }
        if !self.owns(host, datagram.source.ip()) {
            self.counts.unroutable += 1;
            return self.report(host, Fate::Unroutable, &datagram);
        }
        self.report(host, Fate::Sent, &datagram);
        let flow = self.flow(datagram.source, datagram.destination);
        flow.drawn += 1;
        let random_key = mix(flow.key.wrapping_add(flow.drawn - 1)) as u32;
        let flow = flow.hash;
        let size = (datagram.payload.len() as u64 + u64::from(datagram.header_bytes))
            .min(u64::from(u32::MAX)) as u32;
        let ecn = datagram.ecn;
        let slot = self.store.put(datagram);
        let carried = Carried { slot, size, flow, random_key, ecn, is_damaged: false };
        self.forward(self.now, host, None, carried);
    }

    /// When [`poll`](Network::poll) next has something to do; `None` without a datagram on its way or a change to come.
    pub fn next_timeout(&self) -> Option<Instant> {
        if !self.arrived.is_empty() {
            return Some(self.instant(self.now));
        }
        (!self.next.is_never()).then(|| self.instant(self.next))
    }

    /// The next datagram that has arrived at a host by `now`; call until `None`.
    pub fn poll(&mut self, now: Instant) -> Option<(NodeId, Datagram)> {
        self.advance(now);
        self.arrived.pop_front()
    }

    /// Moves datagrams until `now`.
    fn advance(&mut self, now: Instant) {
        if now == self.latest && self.next > self.now {
            return;
        }
        self.latest = now;
        let until = self.time(now).max(self.now);
        while self.next <= until && !self.next.is_never() {
            let now = self.next;
            self.now = self.now.max(now);
            let event = self.events.first_entry().filter(|event| event.key().0 <= now);
            if let Some(event) = event {
                let event = event.remove();
                self.apply(event);
            } else if let Some(way) = self.ways.iter().position(|way| way.due == now) {
                self.serve(now, way);
            }
            let links = self.ways.iter().map(|way| way.due).min().unwrap_or(Time::NEVER);
            self.next = self.events.keys().next().map_or(links, |(at, _)| links.min(*at));
        }
        self.now = until;
    }

    fn apply(&mut self, event: Event) {
        match event {
            Event::Change { way, change } => {
                if let Some(way) = self.ways.get_mut(way) {
                    way.link.change(self.now, &change);
                    way.due = way.link.next_timeout();
                }
            }
            Event::Rebind(nat) => {
                if let Some(Site { kind: Kind::Nat(nat), .. }) = self.places.get_mut(nat.0) {
                    nat.rebind();
                }
            }
        }
    }

    /// Takes one datagram from the end of a link.
    fn serve(&mut self, now: Time, way: usize) {
        let link = LinkId(way / 2);
        let Some(way) = self.ways.get_mut(way) else { return };
        let counts = &mut way.counts;
        let store = &mut self.store;
        let observers = &mut self.observers;
        let mut meter = Counting { counts, store, observers, link };
        let carried = way.link.poll(now, &mut meter);
        way.due = way.link.next_timeout();
        let Some(carried) = carried else { return };
        way.counts.delivered += 1;
        way.counts.delivered_bytes += u64::from(carried.size);
        let counts = &mut way.counts;
        let store = &mut self.store;
        let observers = &mut self.observers;
        let mut meter = Counting { counts, store, observers, link };
        let next = way.link.first_due(now, &mut meter).copied();
        way.due = way.link.next_timeout();
        let from_outside = !way.is_outward;
        let to = way.to;
        let mut carried = carried;
        // A duplicate follows its original at the same time.
        if next.is_some_and(|next| next.slot == carried.slot)
            && let Some(copy) = self.store.get_mut(carried.slot).cloned()
        {
            carried.slot = self.store.put(copy);
        }
        self.forward(now, to, Some(from_outside), carried);
    }

    /// Moves a datagram on from a node: into its next link, or to its host.
    fn forward(&mut self, now: Time, at: NodeId, from_outside: Option<bool>, carried: Carried) {
        let mut carried = carried;
        let Some(datagram) = self.store.get_mut(carried.slot) else { return };
        if let Some(Site { kind: Kind::Nat(nat), .. }) = self.places.get_mut(at.0) {
            if !translate(nat, now, from_outside, datagram) {
                self.counts.filtered += 1;
                return self.end(at, Fate::Filtered, carried.slot);
            }
            carried.flow = flow_hash(datagram.source, datagram.destination);
        }
        let source = datagram.source;
        let destination = datagram.destination;
        if self.is_host_of(at, destination.ip()) {
            self.deliver(at, carried);
            return;
        }
        let port = self.route(at, source.ip(), destination.ip());
        let way = port.map(|port| port.way);
        let Some((number, way)) = way.and_then(|n| Some((n, self.ways.get_mut(n)?))) else {
            self.counts.unroutable += 1;
            return self.end(at, Fate::Unroutable, carried.slot);
        };
        let counts = &mut way.counts;
        let store = &mut self.store;
        let observers = &mut self.observers;
        let mut meter = Counting { counts, store, observers, link: LinkId(number / 2) };
        way.link.accept(now, carried, &mut meter);
        way.due = way.link.next_timeout();
        self.next = self.next.min(way.due);
    }

    fn deliver(&mut self, host: NodeId, carried: Carried) {
        let Some(datagram) = self.store.take(carried.slot) else { return };
        // IP or UDP checksums detect the damage.
        if carried.is_damaged {
            self.counts.damaged += 1;
            return self.report(host, Fate::Damaged, &datagram);
        }
        self.counts.delivered += 1;
        let datagram = datagram.with_ecn(carried.ecn);
        self.report(host, Fate::Delivered, &datagram);
        self.arrived.push_back((host, datagram));
    }

    pub(crate) fn is_host_of(&self, node: NodeId, address: IpAddr) -> bool {
        let kind = self.places.get(node.0).map(|p| &p.kind);
        matches!(kind, Some(Kind::Host(addresses)) if addresses.contains(&address))
    }

    fn owns(&self, node: NodeId, address: IpAddr) -> bool {
        match self.places.get(node.0).map(|p| &p.kind) {
            Some(Kind::Host(addresses)) => addresses.contains(&address),
            Some(Kind::Nat(nat)) => nat.external == address,
            _ => false,
        }
    }

    /// The link by which a datagram leaves a node: the shortest way in hops, of several the one that was added first.
    fn route(&mut self, from: NodeId, source: IpAddr, to: IpAddr) -> Option<Port> {
        let recent = self.places.get(from.0).and_then(|place| place.recent);
        if let Some((_, _, known)) = recent.filter(|r| r.0 == source && r.1 == to) {
            return known;
        }
        let key = (from, source, to);
        let found = match self.routes.get(&key) {
            Some(known) => *known,
            None => self.search(from, source, to),
        };
        self.routes.insert(key, found);
        if let Some(place) = self.places.get_mut(from.0) {
            place.recent = Some((source, to, found));
        }
        found
    }

    fn search(&self, from: NodeId, source: IpAddr, to: IpAddr) -> Option<Port> {
        let mut seen = vec![false; self.places.len()];
        *seen.get_mut(from.0)? = true;
        let place = self.places.get(from.0)?;
        let is_bound = place.ports.iter().any(|p| p.source == Some(source));
        let first = place.ports.iter().filter(|p| match is_bound {
            true => p.source == Some(source),
            false => p.source.is_none(),
        });
        let mut ahead: VecDeque<(NodeId, Port, bool)> =
            first.map(|p| (p.to, *p, p.is_outward)).collect();
        while let Some((node, port, entered_outward)) = ahead.pop_front() {
            if self.owns(node, to) {
                return Some(port);
            }
            let Some(place) = self.places.get(node.0) else { continue };
            // Only inner hosts find a way through a translator, and hosts do not forward.
            let is_passable = match &place.kind {
                Kind::Host(_) => false,
                Kind::Router => true,
                Kind::Nat(_) => entered_outward,
            };
            if !is_passable || std::mem::replace(seen.get_mut(node.0)?, true) {
                continue;
            }
            let is_nat = matches!(place.kind, Kind::Nat(_));
            let onward = place.ports.iter().filter(|p| !is_nat || p.is_outward);
            ahead.extend(onward.map(|p| (p.to, port, p.is_outward)));
        }
        None
    }

    /// A flow. Those of a network, numbered in the order of their first datagrams, draw as the flows of the group `main`
    /// of a simulation with this seed: both lose the same packets of a link.
    fn flow(&mut self, source: SocketAddr, destination: SocketAddr) -> &mut Flow {
        let is_it = |flow: &Flow| flow.source == source && flow.destination == destination;
        let recent = [self.recent_flow, self.recent_flow ^ 1];
        let recent = recent.into_iter().find(|n| self.flows.get(*n).is_some_and(is_it));
        let known = recent.or_else(|| self.flow_numbers.get(&(source, destination)).copied());
        let number = known.unwrap_or_else(|| self.add_flow(source, destination));
        self.recent_flow = number;
        &mut self.flows[number]
    }

    /// Adds a flow and its reverse.
    fn add_flow(&mut self, source: SocketAddr, destination: SocketAddr) -> usize {
        let number = self.flows.len();
        let pair = (number / 2) as u64;
        let key = RandomKey::from_seed(self.seed).named("flow").named("main").numbered(pair);
        let data = key.named("data").bits();
        // A simulation's names that tell the two directions apart.
        let acks = key.named("acks").bits() ^ 0xAC0_AC0;
        for (source, destination, key) in [(source, destination, data), (destination, source, acks)]
        {
            let hash = flow_hash(source, destination);
            self.flow_numbers.insert((source, destination), self.flows.len());
            self.flows.push(Flow { source, destination, hash, key, drawn: 0 });
        }
        number
    }

    pub(crate) fn time(&self, at: Instant) -> Time {
        Time::ZERO + nanos(at.saturating_duration_since(self.start))
    }

    pub(crate) fn instant(&self, at: Time) -> Instant {
        let since = std::time::Duration::from_nanos(at.as_nanos());
        self.start.checked_add(since).unwrap_or(self.start)
    }
}

/// Rewrites a datagram at an address translator. Returns whether it passes.
fn translate(
    nat: &mut Nat,
    now: Time,
    from_outside: Option<bool>,
    datagram: &mut Datagram,
) -> bool {
    let is_to_translator = datagram.destination.ip() == nat.external;
    match from_outside {
        Some(true) if is_to_translator => {
            let inner = nat.inbound(now, datagram.source, datagram.destination.port());
            inner.map(|inner| datagram.destination = inner).is_some()
        }
        Some(false) if !is_to_translator => {
            let outer = nat.outbound(now, datagram.source, datagram.destination);
            outer.map(|outer| datagram.source = outer).is_some()
        }
        _ => false,
    }
}

fn nanos(d: std::time::Duration) -> Duration {
    Duration::from_nanos(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
}

/// Identifies a flow for queues that treat flows separately; equal in every run.
fn flow_hash(source: SocketAddr, destination: SocketAddr) -> u64 {
    let part = |address: SocketAddr| {
        let ip = match address.ip() {
            IpAddr::V4(ip) => u128::from(u32::from(ip)),
            IpAddr::V6(ip) => u128::from(ip),
        };
        mix(mix(ip as u64 ^ u64::from(address.port())) ^ (ip >> 64) as u64)
    };
    mix(part(source) ^ mix(part(destination)))
}
