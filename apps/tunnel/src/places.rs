//! Places of which a newcomer always gets one: if all are taken, the least active holder gives way.
//!
//! For the UDP flows of a socket or a client, and for connections to a port that the far side opened for a client. At a
//! port of the near side only silent connections give way, once the far side refuses another.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Activity of a flow or connection.
#[derive(Debug)]
pub(crate) struct HolderActivity(Mutex<LastActivity>);

/// Orders holders: the first gives way first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct LastActivity {
    has_sent: bool,
    at: Instant,
}

impl Default for HolderActivity {
    fn default() -> HolderActivity {
        HolderActivity(Mutex::new(LastActivity { has_sent: false, at: Instant::now() }))
    }
}

impl HolderActivity {
    /// Records bytes in either direction.
    pub fn used(&self) {
        lock(&self.0).at = Instant::now();
    }

    /// Records bytes that the holder has sent.
    pub fn sent(&self) {
        *lock(&self.0) = LastActivity { has_sent: true, at: Instant::now() };
    }

    /// Time since the last bytes in either direction.
    pub fn idle(&self) -> Duration {
        lock(&self.0).at.elapsed()
    }
}

/// The network under which a holder is counted: /24, or /56 of IPv6.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits() & !0xff).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() >> 72 << 72).into(),
    }
}

/// The network of holders that are not counted by network.
pub(crate) const NO_NETWORK: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// Maximum numbers of places.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlaceLimits {
    /// In all; none if 0.
    pub all: usize,
    /// For the holders of one network.
    pub of_network: usize,
}

impl PlaceLimits {
    /// A limit without regard to networks.
    pub fn new(all: usize) -> PlaceLimits {
        PlaceLimits { all, of_network: all }
    }
}

/// Places, and the holders that have one.
#[derive(Default, Debug)]
pub(crate) struct GivenPlaces(Mutex<PlacesState>);

#[derive(Default, Debug)]
struct PlacesState {
    next: u64,
    held: BTreeMap<u64, PlaceHolder>,
}

#[derive(Debug)]
struct PlaceHolder {
    network: IpAddr,
    activity: Arc<HolderActivity>,
    given_up: Arc<Notify>,
}

impl PlacesState {
    fn count(&self, network: IpAddr) -> usize {
        self.held.values().filter(|holder| holder.network == network).count()
    }

    /// The network with most places.
    fn largest(&self) -> Option<IpAddr> {
        let mut counts = BTreeMap::<IpAddr, usize>::new();
        self.held.values().for_each(|holder| *counts.entry(holder.network).or_default() += 1);
        counts.into_iter().max_by_key(|(_, count)| *count).map(|(network, _)| network)
    }

    /// Takes its place from the least active holder of a network: first those that have sent no byte, then by the time
    /// of the last byte.
    fn displace(&mut self, network: IpAddr) {
        let holders = self.held.iter().filter(|(_, holder)| holder.network == network);
        let idlest = holders.min_by_key(|(_, holder)| *lock(&holder.activity.0));
        if let Some(holder) = idlest.map(|(number, _)| *number).and_then(|n| self.held.remove(&n)) {
            holder.given_up.notify_one();
        }
    }
}

impl GivenPlaces {
    /// Takes a place for a flow, or for a connection from this address; `None` if there are no places at all. The
    /// caller must end each flow or connection whose place [is given up](Place::given_up).
    pub fn take(self: &Arc<GivenPlaces>, from: IpAddr, limits: PlaceLimits) -> Option<Place> {
        if limits.all == 0 {
            return None;
        }
        let network = network(from);
        let mut state = lock(&self.0);
        let before = state.held.len();
        while state.count(network) >= limits.of_network.max(1) {
            state.displace(network);
        }
        while state.held.len() >= limits.all
            && let Some(largest) = state.largest()
        {
            state.displace(largest);
        }
        let displaced = before - state.held.len();
        let activity = Arc::<HolderActivity>::default();
        let given_up = Arc::new(Notify::new());
        let number = state.next;
        state.next += 1;
        let holder =
            PlaceHolder { network, activity: activity.clone(), given_up: given_up.clone() };
        state.held.insert(number, holder);
        Some(Place { places: self.clone(), number, activity, given_up, displaced })
    }
}

/// A place. Dropping it frees it.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<GivenPlaces>,
    number: u64,
    /// Activity of the holder, which updates it.
    pub activity: Arc<HolderActivity>,
    given_up: Arc<Notify>,
    /// Number of holders that gave way to this one.
    pub displaced: usize,
}

impl Place {
    /// Waits until the place was given to a newcomer.
    pub async fn given_up(&self) {
        self.given_up.notified().await;
    }

    /// Takes its place from the oldest other holder that has sent no byte. False if there is none.
    pub fn displace_silent(&self) -> bool {
        let mut state = lock(&self.places.0);
        let mut others = state.held.iter().filter(|(number, _)| **number != self.number);
        let oldest = others.find(|(_, holder)| !lock(&holder.activity.0).has_sent);
        let oldest = oldest.map(|(number, _)| *number);
        let displaced = oldest.and_then(|number| state.held.remove(&number));
        displaced.is_some_and(|holder| {
            holder.given_up.notify_one();
            true
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.places.0).held.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    fn kept(places: &[Place]) -> Vec<bool> {
        places.iter().map(|place| place.given_up().now_or_never().is_none()).collect()
    }

    #[test]
    fn silent_holders_give_way_first_then_the_longest_idle() {
        let places = Arc::new(GivenPlaces::default());
        let limits = PlaceLimits { all: 8, of_network: 4 };
        let take = |text: &str| places.take(address(text), limits).unwrap();
        let mut all: Vec<_> = (0..4).map(|n| take(&format!("192.0.2.{n}"))).collect();
        all[0].activity.sent();
        all[3].activity.sent();
        all[0].activity.used();
        let next = take("192.0.2.200");
        assert_eq!(next.displaced, 1);
        assert_eq!(kept(&all), [true, false, true, true], "the oldest silent one");
        next.activity.sent();
        all.push(next);
        all.push(take("192.0.2.201"));
        all.last().unwrap().activity.sent();
        assert_eq!(kept(&all), [true, true, false, true, true, true], "the other silent one");
        all.push(take("192.0.2.202"));
        assert_eq!(kept(&all), [true, true, true, false, true, true, true], "the longest idle");
    }

    #[test]
    fn networks_with_most_places_give_way_to_others() {
        let places = Arc::new(GivenPlaces::default());
        let limits = PlaceLimits { all: 8, of_network: 4 };
        let take = |text: &str| places.take(address(text), limits).unwrap();
        let own = take("203.0.113.1");
        let strangers: Vec<_> =
            (0..100).map(|n| take(&format!("2001:db8:0:{:x}::{n}", n % 200))).collect();
        assert_eq!(kept(&strangers).iter().filter(|kept| **kept).count(), 4, "half for a /56");
        let more: Vec<_> = (0..100).map(|n| take(&format!("198.51.100.{n}"))).collect();
        assert_eq!(kept(&more).iter().filter(|kept| **kept).count(), 4);
        let newcomer = take("203.0.113.2");
        assert_eq!(kept(&[own, newcomer]), [true, true]);
        assert!(lock(&places.0).held.len() <= 8);
        drop((strangers, more));
        assert_eq!(lock(&places.0).held.len(), 0);
        assert!(places.take(address("::1"), PlaceLimits::new(0)).is_none());
    }

    #[test]
    fn holders_that_have_sent_keep_their_places() {
        let places = Arc::new(GivenPlaces::default());
        let limits = PlaceLimits::new(usize::MAX);
        let all: Vec<_> = (0..4).map(|_| places.take(NO_NETWORK, limits).unwrap()).collect();
        all[0].activity.sent();
        all[1].activity.used();
        assert!(all[3].displace_silent() && all[3].displace_silent());
        assert!(!all[3].displace_silent());
        assert_eq!(kept(&all), [true, false, false, true]);
    }
}
