//! UDP sockets of programs on [tokio](https://docs.rs/tokio), whose paused clock is the network's time.
//!
//! tokio moves its clock when no task can run, to the next timer. A task of the network adds its own times. A datagram
//! arrives at its exact time. Timers fire up to 1 ms late, as with tokio's real clock.
//!
//! ```
//! use narrows_testnet::Network;
//! use narrows_testnet::tokio::TokioNetwork;
//! use std::time::Duration;
//! use tokio::time::Instant;
//!
//! #[tokio::main(flavor = "current_thread", start_paused = true)]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let mut network = Network::new(1);
//!     let a = network.add_host(&["10.0.0.1".parse()?])?;
//!     let b = network.add_host(&["10.0.0.2".parse()?])?;
//!     network.add_link(a, b, "8Mbit/s,10ms")?;
//!     let network = TokioNetwork::new(network, Duration::from_secs(60))?;
//!     let client = network.bind(a, "10.0.0.1:0".parse()?)?;
//!     let server = network.bind(b, "10.0.0.2:53".parse()?)?;
//!     let start = Instant::now();
//!     client.send_to(b"hello", server.local_addr()).await?;
//!     let mut buffer = [0; 1500];
//!     let (length, from) = server.recv_from(&mut buffer).await?;
//!     assert_eq!((&buffer[..length], from), (&b"hello"[..], client.local_addr()));
//!     // 33 bytes with headers leave in 33 us.
//!     assert_eq!(start.elapsed(), Duration::from_micros(10_033));
//!     Ok(())
//! }
//! ```

use crate::node::MAX_BURST;
use crate::{Datagram, Network, NodeId};
use std::collections::{BTreeMap, VecDeque};
use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::task::{AbortHandle, consume_budget, yield_now};
use tokio::time::{Instant, advance, sleep, timeout_at};

/// Resolution of tokio's timers.
const TICK: Duration = Duration::from_millis(1);
/// Turns of all ready tasks without a call of a socket, after which the clock moves by less than a tick. tokio tells no
/// task that all others wait.
const QUIET_TURNS: u32 = 8;
/// The first of the dynamic ports (RFC 6335).
const FIRST_PORT: u16 = 49_152;
/// Datagrams that a socket holds until they are read; later ones are dropped.
const MAX_UNREAD: usize = 1 << 16;
/// The two 16-bit length fields, of IPv4 and UDP, less their headers.
const MAX_PAYLOAD: usize = 65_507;

/// A network on tokio's paused clock. Clones are of the same network.
#[derive(Clone)]
pub struct TokioNetwork {
    shared: Arc<Shared>,
    _driver: Arc<Driver>,
}

/// A UDP socket of a host. It is closed when it is dropped.
pub struct TokioSocket {
    network: TokioNetwork,
    host: NodeId,
    local: SocketAddr,
    arrived: Arc<Notify>,
}

struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

/// Ends the network's task with the last handle.
struct Driver(AbortHandle);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The length of a datagram and its source.
type Received = (usize, SocketAddr);

struct Inbox {
    datagrams: VecDeque<Datagram>,
    arrived: Arc<Notify>,
}

struct State {
    network: Network,
    /// The same point in time on both clocks.
    origin: Instant,
    network_origin: std::time::Instant,
    end: Option<Instant>,
    is_ended: bool,
    sockets: BTreeMap<SocketAddr, Inbox>,
    /// Where the search for a free port begins.
    next_port: u16,
    /// Turns of the network's task since the last call of a socket.
    quiet_turns: u32,
    /// Datagrams sent at the latest time of sending.
    sent_at: Instant,
    sent: usize,
}

impl State {
    fn now(&self) -> std::time::Instant {
        let since = Instant::now().saturating_duration_since(self.origin);
        self.network_origin.checked_add(since).unwrap_or(self.network_origin)
    }

    /// Delivers what has arrived. Returns the time until the network's next event, or until the limit.
    fn turn(&mut self) -> Option<Duration> {
        self.quiet_turns = self.quiet_turns.saturating_add(1);
        let now = self.now();
        while let Some((_, datagram)) = self.network.poll(now) {
            let inbox = self.sockets.get_mut(&datagram.destination);
            if let Some(inbox) = inbox.filter(|inbox| inbox.datagrams.len() < MAX_UNREAD) {
                inbox.datagrams.push_back(datagram);
                inbox.arrived.notify_one();
            }
        }
        let left = self.end.map(|end| end.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            self.is_ended = true;
            self.sockets.values().for_each(|inbox| inbox.arrived.notify_waiters());
            return None;
        }
        let next = self.network.next_timeout().map(|at| at.saturating_duration_since(now));
        next.into_iter().chain(left).min()
    }

    /// Takes a datagram from a socket; `None` if none has arrived.
    fn take(&mut self, local: SocketAddr, buffer: &mut [u8]) -> Result<Option<Received>> {
        self.quiet_turns = 0;
        let inbox = self.sockets.get_mut(&local);
        let Some(datagram) = inbox.and_then(|inbox| inbox.datagrams.pop_front()) else {
            return self.check_limit().map(|()| None);
        };
        let length = datagram.payload.len().min(buffer.len());
        buffer[..length].copy_from_slice(&datagram.payload[..length]);
        Ok(Some((length, datagram.source)))
    }

    fn check_limit(&self) -> Result<()> {
        match self.is_ended {
            true => Err(Error::new(ErrorKind::TimedOut, "the network's time limit was reached")),
            false => Ok(()),
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the network with the clock, and the clock to the network's events.
    async fn drive(self: Arc<Shared>) {
        loop {
            let wait = self.state().turn();
            let is_quiet = self.state().quiet_turns > QUIET_TURNS;
            match wait {
                None => self.changed.notified().await,
                Some(wait) if wait >= TICK => {
                    // tokio rounds the end up to a tick of its own and then moves the clock by whole ticks. From any
                    // time within a tick this end is `ticks` away.
                    let ticks = wait.as_millis().min(u128::from(u32::MAX)) as u32;
                    let end = Instant::now() + TICK * (ticks - 1) + Duration::from_nanos(1);
                    let _ = timeout_at(end, self.changed.notified()).await;
                }
                Some(_) if !is_quiet => yield_now().await,
                Some(wait) if is_paused() => advance(wait.max(Duration::from_nanos(1))).await,
                Some(wait) => sleep(wait).await,
            }
        }
    }
}

impl TokioNetwork {
    /// Starts a network on the clock of the present runtime. After so much time, sockets return errors of the kind
    /// `TimedOut`, so that a program that retransmits over a dead link ends.
    ///
    /// # Errors
    /// No runtime of tokio, or its time is not paused.
    pub fn new(network: Network, limit: Duration) -> Result<TokioNetwork> {
        let runtime = Handle::try_current().map_err(Error::other)?;
        if !is_paused() {
            let text =
                "tokio's time is not paused: use start_paused = true or tokio::time::pause()";
            return Err(Error::other(text));
        }
        let origin = Instant::now();
        let network_origin = network.now();
        let end = origin.checked_add(limit);
        let sockets = BTreeMap::new();
        let state = Mutex::new(State {
            network,
            origin,
            network_origin,
            end,
            is_ended: false,
            sockets,
            next_port: FIRST_PORT,
            quiet_turns: 0,
            sent_at: origin,
            sent: 0,
        });
        let shared = Arc::new(Shared { state, changed: Notify::new() });
        let driver = Driver(runtime.spawn(shared.clone().drive()).abort_handle());
        Ok(TokioNetwork { shared, _driver: Arc::new(driver) })
    }

    /// A socket at an address of a host. Port 0 selects a free one.
    ///
    /// # Errors
    /// An address that is not the host's, or that another socket has.
    pub fn bind(&self, host: NodeId, address: SocketAddr) -> Result<TokioSocket> {
        let ip = address.ip();
        let mut state = self.shared.state();
        if !state.network.is_host_of(host, ip) {
            let text = format!("{address} is no address of this host");
            return Err(Error::new(ErrorKind::AddrNotAvailable, text));
        }
        let mut local = Some(address);
        if address.port() == 0 {
            let first = state.next_port;
            let mut ports = (first..=u16::MAX).chain(FIRST_PORT..first);
            let is_free = |port| !state.sockets.contains_key(&SocketAddr::new(ip, port));
            local = ports.find(|port| is_free(*port)).map(|port| SocketAddr::new(ip, port));
        }
        let local = local.filter(|local| !state.sockets.contains_key(local)).ok_or_else(|| {
            Error::new(ErrorKind::AddrInUse, format!("another socket has the address {address}"))
        })?;
        if address.port() == 0 {
            state.next_port = local.port().checked_add(1).unwrap_or(FIRST_PORT);
        }
        let arrived = Arc::new(Notify::new());
        let inbox = Inbox { datagrams: VecDeque::new(), arrived: arrived.clone() };
        state.sockets.insert(local, inbox);
        Ok(TokioSocket { network: self.clone(), host, local, arrived })
    }

    /// Calls a function with the network: to read counts or to change links. It must not use sockets or this handle.
    pub fn with<R>(&self, call: impl FnOnce(&mut Network) -> R) -> R {
        let result = call(&mut self.shared.state().network);
        self.shared.changed.notify_one();
        result
    }
}

impl TokioSocket {
    /// The socket's address.
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Sends a datagram.
    ///
    /// # Errors
    /// More than 65,507 bytes, an address of the other version of IP or without a port, the time limit, or
    /// 131,072 datagrams sent at one point in time.
    pub async fn send_to(&self, payload: &[u8], destination: SocketAddr) -> Result<usize> {
        consume_budget().await;
        let invalid = |text: &str| Err(Error::new(ErrorKind::InvalidInput, text));
        if payload.len() > MAX_PAYLOAD {
            return invalid("a datagram has at most 65507 bytes");
        }
        if destination.is_ipv4() != self.local.is_ipv4() || destination.port() == 0 {
            return invalid(&format!("{} cannot send to {destination}", self.local));
        }
        let mut state = self.network.shared.state();
        state.check_limit()?;
        let now = Instant::now();
        state.sent = if state.sent_at == now { state.sent + 1 } else { 1 };
        state.sent_at = now;
        if state.sent > MAX_BURST {
            return Err(Error::other("131072 datagrams were sent at one point in time"));
        }
        state.quiet_turns = 0;
        let now = state.now();
        state.network.send(
            now,
            self.host,
            Datagram::udp(self.local, destination, payload.to_vec()),
        );
        drop(state);
        self.network.shared.changed.notify_one();
        Ok(payload.len())
    }

    /// Waits for a datagram. Returns its length, or the buffer's if that is smaller, and its source. It can be
    /// cancelled without loss.
    ///
    /// # Errors
    /// The time limit.
    pub async fn recv_from(&self, buffer: &mut [u8]) -> Result<(usize, SocketAddr)> {
        consume_budget().await;
        loop {
            let arrived = self.arrived.notified();
            let taken = self.network.shared.state().take(self.local, buffer)?;
            if let Some(received) = taken {
                return Ok(received);
            }
            arrived.await;
        }
    }
}

impl Drop for TokioSocket {
    fn drop(&mut self) {
        self.network.shared.state().sockets.remove(&self.local);
    }
}

/// Whether tokio's clock stands still while the real one moves.
#[allow(clippy::disallowed_methods, reason = "tokio does not show whether its clock is paused")]
fn is_paused() -> bool {
    let before = Instant::now();
    let real = std::time::Instant::now();
    while real.elapsed().is_zero() {
        std::hint::spin_loop();
    }
    Instant::now() == before
}
