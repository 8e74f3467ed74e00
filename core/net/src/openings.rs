//! Places for accepted TCP connections without a complete first request: a newcomer always gets one.
//!
//! If all are taken, one gives way, by the rule that endpoints use for connections
//! ([`narrows_transport::endpoint::share`]): of the network that holds most, the oldest. So silent connections cost
//! their own network its places, and delay no other client.

use narrows_base::Time;
use narrows_transport::endpoint::share::{CountedClient, Holder, gives_way};
use narrows_transport::endpoint::source::ClientNetwork;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// The places of a server.
#[derive(Debug)]
pub struct Openings {
    max: usize,
    state: Mutex<OpeningsState>,
}

#[derive(Debug, Default)]
struct OpeningsState {
    next: u64,
    held: BTreeMap<u64, (CountedClient, Arc<Mutex<OpeningFlags>>)>,
}

#[derive(Debug, Default)]
struct OpeningFlags {
    is_given_up: bool,
    waker: Option<Waker>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Openings {
    /// With `max` places, at least one.
    pub fn new(max: usize) -> Arc<Openings> {
        Arc::new(Openings { max: max.max(1), state: Mutex::default() })
    }

    /// Takes a place for a connection from this address. The caller must close each connection whose place [is given
    /// up](Opening::given_up).
    pub fn admit(self: &Arc<Openings>, from: IpAddr) -> Opening {
        let client =
            CountedClient { source: ClientNetwork::of(from), key: [0; 32], is_listed: false };
        let mut state = lock(&self.state);
        let mut given_up = Vec::new();
        while state.held.len() >= self.max {
            let holder = |(place, (client, _)): (&u64, &(CountedClient, _))| Holder {
                client: *client,
                moved: (0, 0),
                is_new: false,
                since: Time::from_nanos(*place),
                place: *place,
            };
            let holders = state.held.iter().map(holder).collect();
            let Some(place) = gives_way(holders, &client) else { break };
            given_up.extend(state.held.remove(&place));
        }
        let place = state.next;
        let mark = Arc::<Mutex<OpeningFlags>>::default();
        state.next += 1;
        state.held.insert(place, (client, mark.clone()));
        drop(state);
        for (_, mark) in given_up {
            let mut mark = lock(&mark);
            mark.is_given_up = true;
            let waker = mark.waker.take();
            drop(mark);
            waker.into_iter().for_each(Waker::wake);
        }
        Opening { openings: self.clone(), place, mark }
    }
}

/// A place. Dropping it frees it.
#[derive(Debug)]
pub struct Opening {
    openings: Arc<Openings>,
    place: u64,
    mark: Arc<Mutex<OpeningFlags>>,
}

impl Opening {
    /// Ready once the place was given to another connection.
    pub fn poll_given_up(&self, context: &Context<'_>) -> Poll<()> {
        let mut mark = lock(&self.mark);
        if mark.is_given_up {
            return Poll::Ready(());
        }
        mark.waker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Waits until the place was given to another connection.
    pub async fn given_up(&self) {
        std::future::poll_fn(|context| self.poll_given_up(context)).await;
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        lock(&self.openings.state).held.remove(&self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(all: &[Opening]) -> Vec<bool> {
        let context = Context::from_waker(Waker::noop());
        all.iter().map(|opening| opening.poll_given_up(&context).is_pending()).collect()
    }

    #[test]
    fn the_oldest_of_the_network_that_holds_most_gives_way() {
        let openings = Openings::new(4);
        let from = |text: &str| openings.admit(text.parse().unwrap());
        let mut all = vec![from("192.0.2.9")];
        all.extend((0..5).map(|_| from("198.51.100.1")));
        assert_eq!(open(&all), [true, false, false, true, true, true]);
        // Addresses of one /64 are one network.
        all.extend((0..9).map(|n| from(&format!("2001:db8::{n}"))));
        let left = open(&all);
        assert!(left[0], "the lone client keeps its place");
        assert_eq!(left.iter().filter(|is_open| **is_open).count(), 4);
        assert!(left.last() == Some(&true), "a newcomer is always admitted");
    }

    #[test]
    fn freed_place_wakes_a_waiter() {
        struct Woken(std::sync::atomic::AtomicBool);
        impl std::task::Wake for Woken {
            fn wake(self: Arc<Self>) {
                self.0.store(true, std::sync::atomic::Ordering::Release);
            }
        }
        let openings = Openings::new(2);
        let from = || openings.admit(IpAddr::from([127, 0, 0, 1]));
        let first = from();
        let second = from();
        drop(second);
        let woken = Arc::new(Woken(Default::default()));
        let waker = Waker::from(woken.clone());
        let _third = from();
        assert!(first.poll_given_up(&Context::from_waker(&waker)).is_pending());
        let _fourth = from();
        assert!(woken.0.load(std::sync::atomic::Ordering::Acquire));
        assert!(first.poll_given_up(&Context::from_waker(&waker)).is_ready());
    }
}
