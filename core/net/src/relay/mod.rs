//! A link emulator for UDP that needs no privilege. Clients send to A; the relay passes their datagrams in real time
//! through the simulator's links to B, and likewise in the other direction.
//!
//! The links run in virtual time: their inputs are the kernel's receive times, and their outputs have exact departure
//! times. So a late wake-up delays a datagram a little ([`RelayStats::lateness`]) but never costs capacity. A
//! datagram's size on the link is its payload and 28 bytes of IP and UDP headers. Each direction has a link of its own,
//! which all clients share.
//!
//! **Random draws.** Losses follow the seed as in a simulation: the links are `bottleneck` and `bottleneck.back`, and
//! the clients are the flows of group `main` in the order of their first datagrams. A flow's packets are numbered in
//! order of arrival: its data towards B, its acknowledgements from B. Data from B to a client uses the random draws of
//! acknowledgements.

mod clients;
mod datagrams;
mod direction;
mod run;
mod shared;
mod stats;
mod watch;

pub use self::datagrams::{HEADERS, LossNumbers};
pub use self::direction::{Arriving, Out, RelayDirection, damage};
pub use self::stats::{DirectionStats, Lateness, LatenessCounter, RelayStats};
pub use self::watch::{
    MissedDatagram, RelayObserver, RelaySide, RelaySnapshot, RelayTap, RelayedDatagram,
};

use self::clients::{RelayClients, towards};
use self::run::Runner;
use self::shared::{RelayCounts, RelayShared, lock};
use crate::clock::Clock;
use crate::error::Error;
use crate::socket::Socket;
use crate::wait::Waker;
use narrows_base::Duration;
use narrows_link::LinkConfig;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Most clients at once; each needs a socket. Beyond, one gives way to each newcomer.
pub const MAX_CLIENTS: usize = 512;
/// A client without a datagram in either direction for this time is removed.
const IDLE: Duration = Duration::from_secs(300);

/// A running relay. Dropping it stops the relay.
#[derive(Debug)]
pub struct Relay {
    local: SocketAddr,
    shared: Arc<RelayShared>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts a relay on a thread of its own: datagrams received at `listen` go over `link` to
    /// `to`, and answers return over `link_back`.
    ///
    /// # Errors
    /// `listen` cannot be bound, `to` is unreachable, or a link's configuration is invalid.
    pub fn bind(
        listen: SocketAddr,
        to: SocketAddr,
        link: &LinkConfig,
        link_reverse: &LinkConfig,
        seed: u64,
    ) -> Result<Relay, Error> {
        Relay::watched(listen, to, link, link_reverse, seed, None)
    }

    /// As [`bind`](Relay::bind), observed by `watch` if given.
    ///
    /// # Errors
    /// As [`bind`](Relay::bind).
    pub fn watched(
        listen: SocketAddr,
        to: SocketAddr,
        link: &LinkConfig,
        link_reverse: &LinkConfig,
        seed: u64,
        watch: Option<Arc<dyn RelayTap>>,
    ) -> Result<Relay, Error> {
        let mut forward =
            RelayDirection::new(link, seed, "bottleneck").map_err(|e| Error::link("--link", &e))?;
        let mut reverse = RelayDirection::new(link_reverse, seed, "bottleneck.back")
            .map_err(|e| Error::link("--link-back", &e))?;
        let front = Socket::bind(listen).map_err(|e| Error::bind(listen, &e))?;
        if to.port() == 0 || to.ip().is_unspecified() {
            return Err(Error::Address { address: to });
        }
        towards(to).map_err(|e| Error::bind(to, &e))?;
        let local = front.local();
        let counts = RelayCounts {
            stats: RelayStats::default(),
            late: LatenessCounter::new(),
            waiting: [0; 2],
            max: [0; 2],
        };
        let shared = Arc::new(RelayShared {
            stop: AtomicBool::new(false),
            over: AtomicBool::new(false),
            waker: Waker::new().map_err(|e| Error::system(&e))?,
            counts: Mutex::new(counts),
            changes: Mutex::default(),
        });
        let clock = Clock::new();
        if let Some(watch) = &watch {
            forward.keep_missed();
            reverse.keep_missed();
            watch.bound(RelayObserver::new(&shared, clock, local, to));
        }
        let runner = Runner {
            shared: shared.clone(),
            clock,
            watch,
            front,
            to,
            seed,
            forward,
            reverse,
            clients: RelayClients::new(MAX_CLIENTS, IDLE),
            changes: Vec::new(),
        };
        let thread = std::thread::Builder::new()
            .name("narrows-relay".into())
            .spawn(move || runner.run())
            .map_err(|e| Error::system(&e))?;
        Ok(Relay { local, shared, thread: Some(thread) })
    }

    /// The local address that clients send to.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The counters so far.
    pub fn stats(&self) -> RelayStats {
        let counts = lock(&self.shared.counts);
        RelayStats { lateness: counts.late.read(), ..counts.stats }
    }

    /// Stops the relay and returns its counters; datagrams on the links are lost.
    pub fn stop(mut self) -> RelayStats {
        self.end();
        self.stats()
    }

    fn end(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.waker.wake();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.end();
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod change_tests;
