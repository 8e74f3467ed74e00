//! The bounded queue from the endpoints' threads and the sampler to the writer.

use crate::observed_link::ObservedLink;
use crate::recording::MAX_CONNECTIONS;
use narrows_base::Time;
use narrows_net::Clock;
use narrows_net::endpoint::Observer;
use narrows_net::relay::RelaySnapshot;
use narrows_net::socket::ReceivedDatagram;
use narrows_net::tap::{ConnectionOpened, Tap};
use narrows_transport::connection::{Closed, Stats, Transmit};
use narrows_transport::endpoint::Handle;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes that wait at most.
const MAX_WAITING: usize = 64 << 20;
/// So much more may be figures.
const MAX_FIGURES: usize = 16 << 20;
/// Bytes that a message occupies besides its datagrams.
const OVERHEAD: usize = 128;
/// Bytes that figures occupy.
const FIGURES: usize = 1024;

/// A connection's figures at one moment.
#[derive(Debug)]
pub struct StatsSample {
    pub at: Time,
    pub stats: Stats,
    pub watched: Vec<(&'static str, f64)>,
}

/// Datagrams that passed together.
#[derive(Debug)]
pub struct Datagrams {
    pub at: Time,
    /// Whether the datagram was sent; else it was received.
    pub sent: bool,
    /// The relay's own address; endpoints are bound to a single one.
    pub local: Option<SocketAddr>,
    pub peer: SocketAddr,
    pub ecn: u8,
    /// Bytes of each but perhaps the last.
    pub segment: usize,
    pub bytes: Vec<u8>,
}

/// A whole packet at one end of an emulated link.
#[derive(Debug)]
pub struct RecordedIpPacket {
    pub at: Time,
    pub bytes: Vec<u8>,
}

/// An event for the writer. Endpoints have numbers.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecordEvent {
    /// An endpoint: its name, where it is bound, and the nanoseconds since 1970 at which its clock
    /// showed zero.
    Endpoint(usize, &'static str, SocketAddr, u64),
    Datagrams(usize, Datagrams),
    Packet(usize, RecordedIpPacket),
    ConnectionOpened(usize, Time, ConnectionOpened),
    Closed(usize, Time, Handle, Option<Stats>, Closed),
    Figures(usize, Handle, StatsSample),
    /// State of the links of a relay or an emulator, by the clock of this endpoint, and whether it is the last one.
    RelaySnapshot(usize, Box<RelaySnapshot>, bool),
    End,
}

impl RecordEvent {
    /// Bytes that count against the bounds while it waits.
    pub fn cost(&self) -> usize {
        match self {
            RecordEvent::Datagrams(_, d) => d.bytes.len() + OVERHEAD,
            RecordEvent::Packet(_, p) => p.bytes.len() + OVERHEAD,
            RecordEvent::Figures(..) | RecordEvent::RelaySnapshot(..) => FIGURES,
            RecordEvent::Endpoint(..)
            | RecordEvent::ConnectionOpened(..)
            | RecordEvent::Closed(..)
            | RecordEvent::End => 0,
        }
    }

    /// The endpoint and the event's time by its clock; `None` for events without a time.
    pub fn when(&self) -> Option<(usize, Time)> {
        Some(match self {
            RecordEvent::Datagrams(endpoint, d) => (*endpoint, d.at),
            RecordEvent::Packet(endpoint, p) => (*endpoint, p.at),
            RecordEvent::ConnectionOpened(endpoint, at, _) => (*endpoint, *at),
            RecordEvent::Closed(endpoint, at, ..) => (*endpoint, *at),
            RecordEvent::Figures(endpoint, _, f) => (*endpoint, f.at),
            RecordEvent::RelaySnapshot(endpoint, look, _) => (*endpoint, look.at),
            RecordEvent::Endpoint(..) | RecordEvent::End => return None,
        })
    }
}

/// The way to the writer.
#[derive(Debug)]
pub struct WriterQueue {
    to: Sender<RecordEvent>,
    waiting: AtomicUsize,
    dropped: AtomicU64,
    endpoints: AtomicUsize,
    /// Connections of which more than datagrams is kept.
    kept: Mutex<BTreeSet<(usize, Handle)>>,
    beyond: AtomicU64,
}

impl WriterQueue {
    pub fn new() -> (Arc<WriterQueue>, Receiver<RecordEvent>) {
        let (to, from) = channel();
        let queue = WriterQueue {
            to,
            waiting: AtomicUsize::new(0),
            dropped: AtomicU64::new(0),
            endpoints: AtomicUsize::new(0),
            kept: Mutex::default(),
            beyond: AtomicU64::new(0),
        };
        (Arc::new(queue), from)
    }

    pub(super) fn push(&self, event: RecordEvent) {
        // A writer that has ended has reported its error already.
        let _ = self.to.send(event);
    }

    /// A number for one more endpoint.
    pub(super) fn endpoint(&self) -> usize {
        self.endpoints.fetch_add(1, Ordering::Relaxed)
    }

    /// Queues datagrams, if there is space.
    pub(super) fn offer(
        &self,
        endpoint: usize,
        count: u64,
        datagrams: impl FnOnce() -> Datagrams,
        bytes: usize,
    ) {
        if self.has_room(count, bytes) {
            self.push(RecordEvent::Datagrams(endpoint, datagrams()));
        }
    }

    /// Queues a packet, if there is space.
    pub(super) fn offer_packet(
        &self,
        end: usize,
        bytes: usize,
        packet: impl FnOnce() -> RecordedIpPacket,
    ) {
        if self.has_room(1, bytes) {
            self.push(RecordEvent::Packet(end, packet()));
        }
    }

    /// Reserves space for more bytes. Without space, the items count as dropped.
    fn has_room(&self, count: u64, bytes: usize) -> bool {
        let cost = bytes + OVERHEAD;
        if self.waiting.load(Ordering::Relaxed) + cost > MAX_WAITING {
            self.dropped.fetch_add(count, Ordering::Relaxed);
            return false;
        }
        self.waiting.fetch_add(cost, Ordering::Relaxed);
        true
    }

    /// Queues figures, if there is space; without them the series is coarser.
    fn offer_figures(&self, event: RecordEvent) {
        if self.waiting.load(Ordering::Relaxed) <= MAX_WAITING + MAX_FIGURES {
            self.waiting.fetch_add(FIGURES, Ordering::Relaxed);
            self.push(event);
        }
    }

    /// The writer has removed this event from the queue.
    pub fn taken(&self, event: &RecordEvent) {
        self.waiting.fetch_sub(event.cost(), Ordering::Relaxed);
    }

    /// Ends the queue.
    pub fn end(&self) {
        self.push(RecordEvent::End);
    }

    /// Datagrams dropped for lack of space, and connections beyond the limit.
    pub fn missed(&self) -> (u64, u64) {
        (self.dropped.load(Ordering::Relaxed), self.beyond.load(Ordering::Relaxed))
    }

    fn kept(&self) -> MutexGuard<'_, BTreeSet<(usize, Handle)>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, endpoint: usize, handle: Handle) -> bool {
        let mut kept = self.kept();
        let room = kept.len() < MAX_CONNECTIONS;
        if room {
            kept.insert((endpoint, handle));
        } else {
            self.beyond.fetch_add(1, Ordering::Relaxed);
        }
        room
    }
}

/// The endpoints that can be looked at.
#[derive(Clone, Debug, Default)]
pub struct Observers(Arc<Mutex<Vec<(usize, AnyObserver)>>>);

#[derive(Debug)]
enum AnyObserver {
    Endpoint(Observer),
    Link(Box<dyn ObservedLink>),
}

impl Observers {
    fn lock(&self) -> MutexGuard<'_, Vec<(usize, AnyObserver)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, endpoint: usize, observer: Observer) {
        self.lock().push((endpoint, AnyObserver::Endpoint(observer)));
    }

    /// Adds a link. Its times are by the clock of that endpoint.
    pub fn add_link(&self, endpoint: usize, link: Box<dyn ObservedLink>) {
        self.lock().push((endpoint, AnyObserver::Link(link)));
    }

    /// Whether any endpoint is still there.
    pub fn any(&self) -> bool {
        !self.lock().is_empty()
    }

    /// Samples every recorded connection and every link, and removes ended ones.
    pub fn sample(&self, queue: &WriterQueue) {
        let mut seen = Vec::new();
        self.lock().retain(|(endpoint, observed)| {
            let observer = match observed {
                AnyObserver::Endpoint(observer) => observer,
                AnyObserver::Link(link) => {
                    let over = link.is_over();
                    seen.push(RecordEvent::RelaySnapshot(*endpoint, Box::new(link.look()), over));
                    return !over;
                }
            };
            observer.each(|at, connection| {
                let handle = connection.handle;
                if !queue.kept().contains(&(*endpoint, handle)) {
                    return;
                }
                let mut watched = Vec::new();
                connection.watch(&mut |name, value| watched.push((name, value)));
                let figures = StatsSample { at, stats: connection.stats(), watched };
                seen.push(RecordEvent::Figures(*endpoint, handle, figures));
            })
        });
        for event in seen {
            queue.offer_figures(event);
        }
    }
}

/// The nanoseconds since 1970 at which a clock showed zero.
pub fn zero(clock: Clock) -> u64 {
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let wall = u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX);
    wall.saturating_sub(clock.now().as_nanos())
}

/// The tap of one endpoint.
#[derive(Debug)]
pub struct EndTap {
    name: &'static str,
    endpoint: OnceLock<usize>,
    queue: Arc<WriterQueue>,
    observers: Observers,
}

impl EndTap {
    pub fn new(name: &'static str, queue: Arc<WriterQueue>, observers: Observers) -> EndTap {
        EndTap { name, endpoint: OnceLock::new(), queue, observers }
    }

    fn endpoint(&self) -> usize {
        *self.endpoint.get_or_init(|| self.queue.endpoint())
    }
}

impl Tap for EndTap {
    fn bound(&self, observer: Observer) {
        let endpoint = self.endpoint();
        let zero = zero(observer.clock());
        self.queue.push(RecordEvent::Endpoint(endpoint, self.name, observer.local(), zero));
        self.observers.add(endpoint, observer);
    }

    fn sent(&self, at: Time, transmit: &Transmit, bytes: &[u8]) {
        let Transmit { to, segment, ecn, .. } = *transmit;
        let count = bytes.len().div_ceil(segment.max(1)) as u64;
        let copy = || Datagrams {
            at,
            sent: true,
            local: None,
            peer: to,
            ecn,
            segment,
            bytes: bytes.to_vec(),
        };
        self.queue.offer(self.endpoint(), count, copy, bytes.len());
    }

    fn received(&self, datagram: &ReceivedDatagram<'_>) {
        let length = datagram.bytes.len();
        let bytes = &*datagram.bytes;
        let copy = || Datagrams {
            at: datagram.at,
            sent: false,
            local: None,
            peer: datagram.from,
            ecn: datagram.ecn,
            segment: length,
            bytes: bytes.to_vec(),
        };
        self.queue.offer(self.endpoint(), 1, copy, length);
    }

    fn opened(&self, now: Time, opened: &ConnectionOpened) {
        let endpoint = self.endpoint();
        if self.queue.keep(endpoint, opened.handle) {
            self.queue.push(RecordEvent::ConnectionOpened(endpoint, now, *opened));
        }
    }

    fn closed(&self, now: Time, handle: Handle, stats: Option<&Stats>, why: &Closed) {
        let endpoint = self.endpoint();
        if self.queue.kept().contains(&(endpoint, handle)) {
            self.queue.push(RecordEvent::Closed(
                endpoint,
                now,
                handle,
                stats.copied(),
                why.clone(),
            ));
        }
    }
}
