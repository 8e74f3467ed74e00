//! What one client may have open, and how fast it may open more. A client is its key, whatever its connections.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Limits of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClientLimits {
    /// TCP connections and UDP flows at the same time.
    pub streams: usize,
    /// Of them UDP flows.
    pub flows: usize,
    /// New ones in a second, in the long run; ten times as many at once.
    pub openings: u32,
    /// Bytes of each connection that wait to be sent to the client.
    pub unsent: usize,
    /// How long it may take to say on a stream what it wants.
    pub asking: Duration,
}

impl Default for ClientLimits {
    fn default() -> ClientLimits {
        let asking = Duration::from_secs(10);
        ClientLimits { streams: 1024, flows: 256, openings: 100, unsent: 6 << 20, asking }
    }
}

/// Seconds of openings that may come at once.
const BURST: f64 = 10.0;
/// Names that are looked up for a client at the same time.
const MAX_LOOKUPS: usize = 16;

/// A client, as far as it is counted.
#[derive(Debug)]
pub struct Client {
    limits: ClientLimits,
    open: AtomicUsize,
    flows: AtomicUsize,
    openings: Mutex<(f64, Instant)>,
    /// Places of lookups.
    pub lookups: Arc<Semaphore>,
}

impl Client {
    /// With nothing open.
    pub fn new(limits: ClientLimits) -> Client {
        let openings = Mutex::new((f64::from(limits.openings) * BURST, Instant::now()));
        let lookups = Arc::new(Semaphore::new(MAX_LOOKUPS));
        Client { limits, open: AtomicUsize::new(0), flows: AtomicUsize::new(0), openings, lookups }
    }

    /// How long the next opening has to wait; it counts from now on.
    pub fn delay(&self, now: Instant) -> Duration {
        let rate = f64::from(self.limits.openings).max(1.0);
        let mut openings = self.openings.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, at) = *openings;
        let gone = now.saturating_duration_since(at).as_secs_f64();
        let left = (left + gone * rate).min(rate * BURST) - 1.0;
        *openings = (left, now);
        Duration::from_secs_f64((-left / rate).max(0.0))
    }

    /// A place for something open, if there is one.
    pub fn place(self: &Arc<Client>) -> Option<Place> {
        let place = Place(self.clone(), false);
        (self.open.fetch_add(1, Ordering::Relaxed) < self.limits.streams).then_some(place)
    }

    /// A place for a UDP flow, beside that which it has as something open.
    pub fn flow(self: &Arc<Client>) -> Option<Place> {
        let place = Place(self.clone(), true);
        (self.flows.fetch_add(1, Ordering::Relaxed) < self.limits.flows).then_some(place)
    }
}

/// One that is open; free again when it is dropped.
#[derive(Debug)]
pub struct Place(Arc<Client>, bool);

impl Drop for Place {
    fn drop(&mut self) {
        let Place(client, is_flow) = self;
        let count = if *is_flow { &client.flows } else { &client.open };
        count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_and_come_back() {
        let client = Arc::new(Client::new(ClientLimits { streams: 2, ..ClientLimits::default() }));
        let (one, two) = (client.place(), client.place());
        assert!(one.is_some() && two.is_some() && client.place().is_none());
        drop(one);
        assert!(client.place().is_some());
    }

    #[test]
    fn openings_beyond_the_burst_wait_for_their_turn() {
        let client = Client::new(ClientLimits { openings: 10, ..ClientLimits::default() });
        let now = Instant::now();
        assert!((0..100).all(|_| client.delay(now) == Duration::ZERO));
        let waits: Vec<_> = (0..5).map(|_| client.delay(now).as_millis()).collect();
        assert_eq!(waits, [100, 200, 300, 400, 500]);
        assert_eq!(client.delay(now + Duration::from_secs(20)), Duration::ZERO);
    }
}
