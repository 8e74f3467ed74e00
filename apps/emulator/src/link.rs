//! An emulated link between two network namespaces.

use crate::error::Error;
use crate::stats::{LinkStats, WayStats};
use crate::system::interface;
use crate::system::namespace::Namespace;
use crate::system::slot::ReservedSlot;
use crate::system::tun::Tun;
use crate::tap::{LinkSide, LinkTap};
use crate::way::{Wakes, WayShared, WayThread};
use narrows_base::Time;
use narrows_link::{LinkChange, LinkConfig};
use narrows_net::Clock;
use narrows_net::relay::{LossNumbers, RelayDirection, RelaySnapshot, RelayStats};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// MTU of the interfaces of a link that carries no larger packets, in bytes of an IP packet.
pub const MTU: u32 = 1500;
/// Largest IP packet, in bytes; the MTU of an unlimited link is above.
const MAX_MTU: u32 = 65_535;

/// Configuration of a link.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// From A to B.
    pub forward: LinkConfig,
    /// From B to A.
    pub reverse: LinkConfig,
    /// Seed of all random draws. With the same seed, the n-th packet that enters the link has the same outcome.
    pub seed: u64,
    /// The link's name in a simulation with the same random draws; the reverse direction is `name.back`.
    pub name: String,
    /// Scheduled changes of each direction, by the clock below; its config must have `changes` set.
    pub changes: [Vec<(Time, LinkChange)>; 2],
    /// Clock of all reported times; scheduled changes count from its start.
    pub clock: Clock,
    /// Whether the kernel may hand over super-frames, which are split here; otherwise it splits them itself. The
    /// packets on the link are the same.
    pub super_frames: bool,
    /// MTU of both ends, in bytes; larger if the link passes larger packets.
    pub mtu: u32,
    /// Observer of all packets that enter or leave; absent by default.
    pub tap: Option<Arc<dyn LinkTap>>,
}

impl LinkOptions {
    /// Seed 1, no scheduled changes, no observer.
    pub fn new(forward: LinkConfig, reverse: LinkConfig) -> LinkOptions {
        let changes = [Vec::new(), Vec::new()];
        let name = "bottleneck".into();
        let clock = Clock::new();
        let super_frames = true;
        let mtu = MTU;
        let tap = None;
        LinkOptions { forward, reverse, seed: 1, name, changes, clock, super_frames, mtu, tap }
    }

    /// MTU of the interfaces at both ends: the largest that a direction has at first or by a scheduled change, and at
    /// least the given one. A smaller one is that of a link further on, which reports packets that are too large.
    fn interface_mtu(&self) -> u32 {
        let first = [&self.forward, &self.reverse].map(|way| way.impairments.mtu);
        let later = self.changes.iter().flatten().map(|(_, change)| match change {
            LinkChange::Mtu(bytes) => Some(*bytes),
            _ => None,
        });
        let all = first.into_iter().chain(later).flatten();
        all.filter(|bytes| *bytes <= MAX_MTU).fold(self.mtu, u32::max)
    }
}

/// One end of a link: a TUN device in its namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkEnd {
    /// Name of the network interface.
    pub interface: String,
    /// Its addresses, IPv4 and (where the namespace has IPv6) IPv6.
    pub addresses: Vec<IpAddr>,
}

/// A running link. Dropping it removes its devices and with them addresses and routes.
#[derive(Debug)]
pub struct EmulatedLink {
    ends: [LinkEnd; 2],
    clock: Clock,
    ways: [(Arc<WayShared>, Option<JoinHandle<()>>); 2],
    /// For each direction, the device where packets enter.
    entries: [Arc<Tun>; 2],
    slot: ReservedSlot,
}

impl EmulatedLink {
    /// Joins two namespaces, which get an interface with an IPv4 and an IPv6 address each.
    ///
    /// # Errors
    /// One line: an invalid link, no permission, no TUN devices.
    pub fn between(
        a: &Namespace,
        b: &Namespace,
        options: LinkOptions,
    ) -> Result<EmulatedLink, Error> {
        let way = |config: &LinkConfig, name: &str| {
            RelayDirection::new(config, options.seed, name)
                .map_err(|e| Error::new(format!("{name}: {e}")))
        };
        let forward = way(&options.forward, &options.name)?;
        let reverse = way(&options.reverse, &format!("{}.back", options.name))?;
        let slot = ReservedSlot::take()?;
        let (tun_a, end_a) = end(a, &slot, LinkSide::A, &options)?;
        let (tun_b, end_b) = end(b, &slot, LinkSide::B, &options)?;
        let tun_a = Arc::new(tun_a);
        let tun_b = Arc::new(tun_b);
        let clock = options.clock;
        let numbers =
            [LossNumbers::forward(options.seed, 0), LossNumbers::reverse(options.seed, 0)];
        let [forward_changes, reverse_changes] = options.changes;
        let start = |entry,
                     from: &Arc<Tun>,
                     to: &Arc<Tun>,
                     direction,
                     numbers,
                     changes: Vec<(Time, LinkChange)>| {
            let shared =
                Arc::new(WayShared::new().map_err(|e| Error::system("no descriptor is left", &e))?);
            let way = WayThread {
                shared: shared.clone(),
                clock,
                from: from.clone(),
                to: to.clone(),
                entry,
                direction,
                numbers,
                changes: VecDeque::from(changes),
                tap: options.tap.clone(),
                wakes: Wakes::default(),
            };
            let thread =
                std::thread::Builder::new().name("narrows-link".into()).spawn(move || way.run());
            let thread = thread.map_err(|e| Error::system("the system has no thread left", &e))?;
            Ok::<_, Error>((shared, Some(thread)))
        };
        let [forward_numbers, reverse_numbers] = numbers;
        let first = start(LinkSide::A, &tun_a, &tun_b, forward, forward_numbers, forward_changes)?;
        let mut link = EmulatedLink {
            ends: [end_a, end_b],
            clock,
            ways: [
                first,
                (
                    Arc::new(
                        WayShared::new().map_err(|e| Error::system("no descriptor is left", &e))?,
                    ),
                    None,
                ),
            ],
            entries: [tun_a.clone(), tun_b.clone()],
            slot,
        };
        let second = start(LinkSide::B, &tun_b, &tun_a, reverse, reverse_numbers, reverse_changes)?;
        let [_, place] = &mut link.ways;
        *place = second;
        Ok(link)
    }

    /// The end at A.
    pub fn a(&self) -> &LinkEnd {
        &self.ends[0]
    }

    /// The end at B.
    pub fn b(&self) -> &LinkEnd {
        &self.ends[1]
    }

    /// The link's number, unique on this machine.
    pub(crate) fn slot(&mut self) -> &mut ReservedSlot {
        &mut self.slot
    }

    /// Counters since the start.
    pub fn stats(&self) -> LinkStats {
        let [forward, reverse] = &self.ways;
        let [a, b] = &self.entries;
        LinkStats {
            forward: WayStats { unread: a.dropped(), ..forward.0.stats() },
            reverse: WayStats { unread: b.dropped(), ..reverse.0.stats() },
        }
    }

    /// A handle that reads and changes the link; it does not keep the link running.
    pub fn observer(&self) -> LinkObserver {
        let [forward, reverse] = &self.ways;
        LinkObserver { ways: [forward.0.clone(), reverse.0.clone()], clock: self.clock }
    }

    /// Whether both threads have real-time priority.
    pub fn is_real_time(&self) -> bool {
        self.ways.iter().all(|(shared, _)| shared.real_time.load(Ordering::Acquire))
    }

    /// Stops the link and returns its final counters.
    pub fn stop(mut self) -> LinkStats {
        self.end();
        self.stats()
    }

    fn end(&mut self) {
        for (shared, _) in &self.ways {
            shared.stop.store(true, Ordering::Release);
            shared.waker.wake();
        }
        for (_, thread) in &mut self.ways {
            if let Some(thread) = thread.take() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for EmulatedLink {
    fn drop(&mut self) {
        self.end();
    }
}

/// A handle that reads a link's state at any time, and changes the link.
#[derive(Clone, Debug)]
pub struct LinkObserver {
    ways: [Arc<WayShared>; 2],
    clock: Clock,
}

impl LinkObserver {
    /// A snapshot of the link's current state, in the relay's format.
    pub fn look(&self) -> RelaySnapshot {
        let [forward, reverse] = &self.ways;
        let at = self.clock.now();
        let max = [forward.take_max_waiting(), reverse.take_max_waiting()];
        let (stats, waiting) = self.counters();
        RelaySnapshot { at, stats, waiting, max }
    }

    /// Counters in the relay's format, and the packets in the queues: forward, reverse.
    pub fn counters(&self) -> (RelayStats, [usize; 2]) {
        let [forward, reverse] = &self.ways;
        let forward = forward.stats();
        let reverse = reverse.stats();
        let late = [forward.lateness, reverse.lateness];
        let worst = late.into_iter().max_by(|a, b| a.p99_s.total_cmp(&b.p99_s)).unwrap_or_default();
        let mut stats = RelayStats::default();
        stats.forward = forward.packets;
        stats.reverse = reverse.packets;
        stats.lateness = worst;
        (stats, [forward.waiting, reverse.waiting])
    }

    /// The clock of [`look`](LinkObserver::look) and [`change`](LinkObserver::change).
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Changes a direction (0 forward, 1 reverse) at this time of the link's clock, or at once if that has passed. The
    /// direction's config must have `changes` set.
    pub fn change(&self, at: Time, direction: usize, change: LinkChange) {
        if let Some(way) = self.ways.get(direction) {
            way.change(at, change);
        }
    }

    /// Whether the link has stopped.
    pub fn is_over(&self) -> bool {
        self.ways.iter().all(|w| w.stop.load(Ordering::Acquire))
    }
}

/// Makes the device of one end, with its addresses.
fn end(
    namespace: &Namespace,
    slot: &ReservedSlot,
    end: LinkSide,
    options: &LinkOptions,
) -> Result<(Tun, LinkEnd), Error> {
    let number = if end == LinkSide::A { 0 } else { 1 };
    let name = slot.interface(number);
    namespace.enter(|| {
        let tun = Tun::create(&name, options.super_frames)?;
        interface::up_tun(&name, options.interface_mtu())?;
        let mut addresses = Vec::new();
        for (address, prefix) in slot.addresses(number) {
            match interface::add_address(&name, address, prefix) {
                Ok(()) => addresses.push(address),
                // A system without IPv6, or with IPv6 turned off.
                Err(_) if address.is_ipv6() => {}
                Err(e) => return Err(e),
            }
        }
        Ok((tun, LinkEnd { interface: name.clone(), addresses }))
    })?
}
