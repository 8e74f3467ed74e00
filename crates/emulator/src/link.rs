//! An emulated link between two network namespaces.

use crate::error::Error;
use crate::stats::{LinkStats, WayStats};
use crate::system::interface;
use crate::system::namespace::Namespace;
use crate::system::slot::Slot;
use crate::system::tun::Tun;
use crate::tap::{End, LinkTap};
use crate::way::{Shared, Wakes, Way};
use narrows_base::Time;
use narrows_link::{Change, LinkConfig};
use narrows_net::Clock;
use narrows_net::relay::{Direction, LossNumbers, RelaySnapshot, RelayStats};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// Bytes of an IP packet on the link.
pub const MTU: u32 = 1500;

/// What a link is made of.
#[derive(Clone, Debug)]
pub struct LinkOptions {
    /// From A to B.
    pub there: LinkConfig,
    /// From B to A.
    pub back: LinkConfig,
    /// Of all random draws: the n-th packet that enters the link meets the same fate for the same seed.
    pub seed: u64,
    /// Its name in a simulation that draws the same; the other way is `name.back`.
    pub name: String,
    /// Scheduled changes of each way, by the clock below; its config must have `changes` set.
    pub changes: [Vec<(Time, Change)>; 2],
    /// Of all times that are told; scheduled changes count from its start.
    pub clock: Clock,
    /// Whether the kernel may hand over super-frames, which are split here; otherwise it splits them itself. The
    /// packets on the link are the same.
    pub super_frames: bool,
    /// The longest packet, at both ends.
    pub mtu: u32,
    /// Who watches it.
    pub tap: Option<Arc<dyn LinkTap>>,
}

impl LinkOptions {
    /// Seed 1, nothing scheduled, nobody watching.
    pub fn new(there: LinkConfig, back: LinkConfig) -> LinkOptions {
        let changes = [Vec::new(), Vec::new()];
        let (name, clock) = ("bottleneck".into(), Clock::new());
        let (super_frames, mtu, tap) = (true, MTU, None);
        LinkOptions { there, back, seed: 1, name, changes, clock, super_frames, mtu, tap }
    }
}

/// One end of a link: a TUN device in its namespace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkEnd {
    /// The interface's name.
    pub interface: String,
    /// Its addresses, IPv4 and (where the namespace has IPv6) IPv6.
    pub addresses: Vec<IpAddr>,
}

/// A running link. Dropping it removes its devices and with them addresses and routes.
#[derive(Debug)]
pub struct EmulatedLink {
    ends: [LinkEnd; 2],
    clock: Clock,
    ways: [(Arc<Shared>, Option<JoinHandle<()>>); 2],
    /// Where each way's packets enter.
    entries: [Arc<Tun>; 2],
    slot: Slot,
}

impl EmulatedLink {
    /// Joins two namespaces, which get an interface with an IPv4 and an IPv6 address each.
    ///
    /// # Errors
    /// One line: a link that is not possible, no permission, no TUN devices.
    pub fn between(
        a: &Namespace,
        b: &Namespace,
        options: LinkOptions,
    ) -> Result<EmulatedLink, Error> {
        let way = |config: &LinkConfig, name: &str| {
            Direction::new(config, options.seed, name)
                .map_err(|e| Error::new(format!("{name}: {e}")))
        };
        let there = way(&options.there, &options.name)?;
        let back = way(&options.back, &format!("{}.back", options.name))?;
        let slot = Slot::take()?;
        let (tun_a, end_a) = end(a, &slot, End::A, &options)?;
        let (tun_b, end_b) = end(b, &slot, End::B, &options)?;
        let (tun_a, tun_b) = (Arc::new(tun_a), Arc::new(tun_b));
        let clock = options.clock;
        let numbers = [LossNumbers::there(options.seed, 0), LossNumbers::back(options.seed, 0)];
        let [changes_there, changes_back] = options.changes;
        let start = |entry,
                     from: &Arc<Tun>,
                     to: &Arc<Tun>,
                     direction,
                     numbers,
                     changes: Vec<(Time, Change)>| {
            let shared =
                Arc::new(Shared::new().map_err(|e| Error::system("no descriptor is left", &e))?);
            let way = Way {
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
        let [there_numbers, back_numbers] = numbers;
        let first = start(End::A, &tun_a, &tun_b, there, there_numbers, changes_there)?;
        let mut link = EmulatedLink {
            ends: [end_a, end_b],
            clock,
            ways: [
                first,
                (
                    Arc::new(
                        Shared::new().map_err(|e| Error::system("no descriptor is left", &e))?,
                    ),
                    None,
                ),
            ],
            entries: [tun_a.clone(), tun_b.clone()],
            slot,
        };
        let second = start(End::B, &tun_b, &tun_a, back, back_numbers, changes_back)?;
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

    /// Its number among the machine's links.
    pub(crate) fn slot(&mut self) -> &mut Slot {
        &mut self.slot
    }

    /// What was counted so far.
    pub fn stats(&self) -> LinkStats {
        let ([there, back], [a, b]) = (&self.ways, &self.entries);
        LinkStats {
            there: WayStats { unread: a.dropped(), ..there.0.stats() },
            back: WayStats { unread: b.dropped(), ..back.0.stats() },
        }
    }

    /// Looks at it, and does not keep it running.
    pub fn observer(&self) -> LinkObserver {
        let [there, back] = &self.ways;
        LinkObserver { ways: [there.0.clone(), back.0.clone()], clock: self.clock }
    }

    /// Whether its threads run in real time.
    pub fn is_real_time(&self) -> bool {
        self.ways.iter().all(|(shared, _)| shared.real_time.load(Ordering::Acquire))
    }

    /// Stops it. What was counted.
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

/// Looks at a link as often as it likes, and changes it.
#[derive(Clone, Debug)]
pub struct LinkObserver {
    ways: [Arc<Shared>; 2],
    clock: Clock,
}

impl LinkObserver {
    /// What is seen now, in the form of a relay's.
    pub fn look(&self) -> RelaySnapshot {
        let [there, back] = &self.ways;
        let at = self.clock.now();
        let most = [there.most(), back.most()];
        let (there, back) = (there.stats(), back.stats());
        let late = [there.lateness, back.lateness];
        let worst = late.into_iter().max_by(|a, b| a.p99_s.total_cmp(&b.p99_s)).unwrap_or_default();
        let mut stats = RelayStats::default();
        (stats.there, stats.back, stats.lateness) = (there.packets, back.packets, worst);
        RelaySnapshot { at, stats, waiting: [there.waiting, back.waiting], most }
    }

    /// Its clock.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Changes a direction, 0 there or 1 back, at this time of its clock or as soon as that has passed. Its config must
    /// have `changes` set.
    pub fn change(&self, at: Time, direction: usize, change: Change) {
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
    slot: &Slot,
    end: End,
    options: &LinkOptions,
) -> Result<(Tun, LinkEnd), Error> {
    let number = if end == End::A { 0 } else { 1 };
    let name = slot.interface(number);
    namespace.enter(|| {
        let tun = Tun::create(&name, options.super_frames)?;
        interface::up_tun(&name, options.mtu)?;
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
