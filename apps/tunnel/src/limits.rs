//! Limits on a client's open streams, and on the rate of new ones. A client is a key, with all of its connections.

use crate::descriptors::Descriptors;
use crate::places::{GivenPlaces, NO_NETWORK, Place, PlaceLimits};
use narrows_base::Rate;
use narrows_peers::rate_cap::RateCap;
use narrows_peers::refusals::RareLine;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Limits for each client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientLimits {
    /// Maximum number of concurrent TCP connections and UDP flows.
    pub streams: usize,
    /// Maximum number of concurrent UDP flows.
    pub flows: usize,
    /// New connections and flows per second, in the long run; a burst may have ten times as many.
    pub openings: u32,
    /// Maximum rate of bytes, over all connections and in both directions together; unlimited if `None`.
    pub rate: Option<Rate>,
    /// Maximum number of unsent bytes per connection to the client.
    pub unsent: usize,
    /// Time for a stream's request to arrive.
    pub asking: Duration,
}

impl Default for ClientLimits {
    fn default() -> ClientLimits {
        let asking = Duration::from_secs(10);
        let streams = 1024;
        let flows = 256;
        let openings = 100;
        ClientLimits { streams, flows, openings, rate: None, unsent: 32 << 20, asking }
    }
}

/// Size of a burst of openings, in seconds of the permitted rate.
const BURST: f64 = 10.0;
/// Maximum number of concurrent name lookups for a client.
const MAX_LOOKUPS: usize = 16;

/// A rate of new connections: a token bucket.
#[derive(Debug)]
pub struct OpeningRate(Mutex<OpeningTokens>);

#[derive(Debug)]
struct OpeningTokens {
    left: f64,
    at: Instant,
}

impl OpeningRate {
    /// A full bucket of ten seconds at this rate per second.
    pub fn new(rate: u32) -> OpeningRate {
        let left = f64::from(rate) * BURST;
        OpeningRate(Mutex::new(OpeningTokens { left, at: Instant::now() }))
    }

    /// Counts an opening, and returns the time for which it must wait at this rate per second.
    pub fn delay(&self, now: Instant, rate: u32) -> Duration {
        let rate = f64::from(rate).max(1.0);
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = now.saturating_duration_since(tokens.at).as_secs_f64();
        tokens.left = (tokens.left + gone * rate).min(rate * BURST) - 1.0;
        tokens.at = now;
        Duration::from_secs_f64((-tokens.left / rate).max(0.0))
    }
}

/// Counters of a client.
#[derive(Debug)]
pub struct ClientUsage {
    limits: RwLock<ClientLimits>,
    open: AtomicUsize,
    flows: Arc<GivenPlaces>,
    /// Flows that gave way to newer ones.
    pub(crate) displaced: RareLine,
    reverse: AtomicUsize,
    openings: OpeningRate,
    descriptors: Arc<Descriptors>,
    /// The rate of its bytes.
    pub cap: RateCap,
    /// Permits for lookups.
    pub lookups: Arc<Semaphore>,
}

impl ClientUsage {
    /// A client without open streams. All clients share `descriptors`.
    pub fn new(limits: ClientLimits, descriptors: Arc<Descriptors>) -> ClientUsage {
        ClientUsage {
            openings: OpeningRate::new(limits.openings),
            cap: RateCap::new(limits.rate),
            limits: RwLock::new(limits),
            open: AtomicUsize::new(0),
            flows: Arc::default(),
            displaced: RareLine::default(),
            reverse: AtomicUsize::new(0),
            descriptors,
            lookups: Arc::new(Semaphore::new(MAX_LOOKUPS)),
        }
    }

    /// The limits in force.
    pub fn limits(&self) -> ClientLimits {
        *self.limits.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the limits. Open streams and flows stay.
    pub fn set_limits(&self, limits: ClientLimits) {
        self.cap.set(limits.rate);
        *self.limits.write().unwrap_or_else(PoisonError::into_inner) = limits;
    }

    /// Counts an opening, and returns the time for which it must wait.
    pub fn delay(&self, now: Instant) -> Duration {
        self.openings.delay(now, self.limits().openings)
    }

    /// Takes a place for a stream, with one descriptor; `None` if the limit is reached.
    pub fn place(self: &Arc<ClientUsage>) -> Option<LimitPermit> {
        let place = LimitPermit(self.clone(), LimitKind::Open);
        let own = self.open.fetch_add(1, Ordering::Relaxed);
        let may = self.descriptors.take(own);
        (may && own < self.limits().streams).then_some(place)
    }

    /// Takes a place for a UDP flow, in addition to its place as a stream. If all are taken, the longest idle flow gives
    /// way. `None` if the client may have no flows.
    pub(crate) fn flow(&self) -> Option<Place> {
        self.flows.take(NO_NETWORK, PlaceLimits::new(self.limits().flows))
    }

    /// Takes a descriptor for a connection to a port that listens for this client. These connections have a share of
    /// their own, so that strangers cannot use up that of the client's own connections.
    pub fn reverse(self: &Arc<ClientUsage>) -> Option<LimitPermit> {
        let place = LimitPermit(self.clone(), LimitKind::Reverse);
        let own = self.reverse.fetch_add(1, Ordering::Relaxed);
        self.descriptors.take(own).then_some(place)
    }

    /// Takes a descriptor for another attempt to connect, in addition to that of the stream.
    pub fn attempt(self: &Arc<ClientUsage>) -> Option<LimitPermit> {
        let place = LimitPermit(self.clone(), LimitKind::Attempt);
        self.descriptors.take(self.open.load(Ordering::Relaxed)).then_some(place)
    }
}

#[derive(Clone, Copy, Debug)]
enum LimitKind {
    Open,
    Reverse,
    Attempt,
}

/// A place; it is free again when this is dropped.
#[derive(Debug)]
pub struct LimitPermit(Arc<ClientUsage>, LimitKind);

impl Drop for LimitPermit {
    fn drop(&mut self) {
        let LimitPermit(client, kind) = self;
        match kind {
            LimitKind::Open => {
                client.open.fetch_sub(1, Ordering::Relaxed);
                client.descriptors.give_back();
            }
            LimitKind::Reverse => {
                client.reverse.fetch_sub(1, Ordering::Relaxed);
                client.descriptors.give_back();
            }
            LimitKind::Attempt => client.descriptors.give_back(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(limits: ClientLimits, descriptors: &Arc<Descriptors>) -> Arc<ClientUsage> {
        Arc::new(ClientUsage::new(limits, descriptors.clone()))
    }

    #[test]
    fn clients_share_descriptors_and_leave_some_to_newcomers() {
        let all = Arc::new(Descriptors::new(60));
        let take =
            |client: &Arc<ClientUsage>| std::iter::from_fn(|| client.place()).collect::<Vec<_>>();
        let first = client(ClientLimits::default(), &all);
        let second = client(ClientLimits::default(), &all);
        let one = take(&first);
        assert_eq!(one.len(), 30, "half of them");
        let two = take(&second);
        assert_eq!(two.len(), 15, "half of the rest");
        assert!(second.attempt().is_none(), "attempts take descriptors, too");
        drop(one);
        assert_eq!(take(&second).len(), 15);
        drop(two);
        assert_eq!(take(&first).len(), 30, "all are given back");
    }

    #[test]
    fn places_are_counted_and_come_back() {
        let limits = ClientLimits { streams: 2, ..ClientLimits::default() };
        let client = client(limits, &Arc::default());
        let one = client.place();
        let two = client.place();
        assert!(one.is_some() && two.is_some() && client.place().is_none());
        drop(one);
        assert!(client.place().is_some());
    }

    #[test]
    fn openings_beyond_the_burst_wait_for_their_turn() {
        let limits = ClientLimits { openings: 10, ..ClientLimits::default() };
        let client = client(limits, &Arc::default());
        let now = Instant::now();
        assert!((0..100).all(|_| client.delay(now) == Duration::ZERO));
        let waits: Vec<_> = (0..5).map(|_| client.delay(now).as_millis()).collect();
        assert_eq!(waits, [100, 200, 300, 400, 500]);
        assert_eq!(client.delay(now + Duration::from_secs(20)), Duration::ZERO);
    }
}
