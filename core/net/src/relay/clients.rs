//! The clients of a relay: each client's address, and its own socket towards B.
//!
//! Addresses may be forged, so a newcomer always gets a place. If all are taken, one client gives way: of those that B
//! never answered the oldest, of the network with most of them; else the one that was idle for longest. A network that
//! holds more than half of all places frees one of its own.

use super::datagrams::LossNumbers;
use crate::socket::Socket;
use narrows_base::{Duration, Time};
use narrows_transport::endpoint::share::{CountedClient, Holder, gives_way};
use narrows_transport::endpoint::source::ClientNetwork;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A client and its socket.
#[derive(Debug)]
pub(super) struct RelayClient {
    pub address: SocketAddr,
    /// Connected to B.
    pub socket: Socket,
    pub forward: LossNumbers,
    pub reverse: LossNumbers,
    /// Whether a datagram of B arrived for it.
    is_answered: bool,
    last_received: Time,
}

/// All clients, by a number that is never reused.
#[derive(Debug)]
pub(super) struct RelayClients {
    list: BTreeMap<u32, RelayClient>,
    numbers: BTreeMap<SocketAddr, u32>,
    seen: u32,
    max: usize,
    idle: Duration,
    /// Clients that gave way to newcomers.
    replaced: u64,
    /// Errors of sockets that have been closed.
    errors: u64,
}

impl RelayClients {
    /// At most `max` clients. A client is removed after `idle` without a datagram in either direction.
    pub fn new(max: usize, idle: Duration) -> RelayClients {
        RelayClients {
            list: BTreeMap::new(),
            numbers: BTreeMap::new(),
            seen: 0,
            max,
            idle,
            replaced: 0,
            errors: 0,
        }
    }

    /// The client at this address, created if necessary; `None` if the system has no socket for it.
    pub fn from(
        &mut self,
        now: Time,
        address: SocketAddr,
        to: SocketAddr,
        seed: u64,
    ) -> Option<(u32, &mut RelayClient)> {
        let number = match self.numbers.get(&address) {
            Some(number) => *number,
            None => self.add(now, address, to, seed)?,
        };
        let client = self.list.get_mut(&number)?;
        client.last_received = now;
        Some((number, client))
    }

    fn add(&mut self, now: Time, address: SocketAddr, to: SocketAddr, seed: u64) -> Option<u32> {
        if self.list.len() >= self.max {
            self.forget(now);
        }
        if self.list.len() >= self.max {
            let number = self.gives_way(address.ip())?;
            self.remove(number);
            self.replaced += 1;
        }
        let socket = towards(to).ok()?;
        let number = self.seen;
        self.seen = self.seen.checked_add(1)?;
        let client = RelayClient {
            address,
            socket,
            forward: LossNumbers::forward(seed, number),
            reverse: LossNumbers::reverse(seed, number),
            is_answered: false,
            last_received: now,
        };
        self.list.insert(number, client);
        self.numbers.insert(address, number);
        Some(number)
    }

    /// The client that gives way to a newcomer from this address.
    fn gives_way(&self, newcomer: IpAddr) -> Option<u32> {
        let newcomer = counted(newcomer);
        let network = newcomer.source.widest();
        let is_own = |client: &RelayClient| counted(client.address.ip()).source.widest() == network;
        let is_largest = self.iter().filter(|client| is_own(client)).count() > self.max / 2;
        let candidates = || self.list.iter().filter(|(_, client)| !is_largest || is_own(client));
        let unanswered = candidates().filter(|(_, client)| !client.is_answered);
        let holders = unanswered.map(|(number, client)| Holder {
            client: counted(client.address.ip()),
            moved: (0, 0),
            is_new: false,
            since: Time::from_nanos(u64::from(*number)),
            place: *number,
        });
        let idle_longest = || {
            candidates().min_by_key(|(_, client)| client.last_received).map(|(number, _)| *number)
        };
        gives_way(holders.collect(), &newcomer).or_else(idle_longest)
    }

    fn remove(&mut self, number: u32) {
        if let Some(client) = self.list.remove(&number) {
            self.errors += client.socket.errors();
            self.numbers.remove(&client.address);
        }
    }

    /// Removes idle clients.
    pub fn forget(&mut self, now: Time) {
        let is_idle = |client: &RelayClient| now.since(client.last_received) >= self.idle;
        let idle = self.list.iter().filter(|(_, client)| is_idle(client));
        for number in idle.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.remove(number);
        }
    }

    pub fn get(&self, number: u32) -> Option<&RelayClient> {
        self.list.get(&number)
    }
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (u32, &mut RelayClient)> {
        self.list.iter_mut().map(|(n, c)| (*n, c))
    }
    pub fn iter(&self) -> impl Iterator<Item = &RelayClient> {
        self.list.values()
    }
    pub fn len(&self) -> usize {
        self.list.len()
    }
    pub fn seen(&self) -> u32 {
        self.seen
    }
    pub fn replaced(&self) -> u64 {
        self.replaced
    }
    pub fn errors(&self) -> u64 {
        self.errors + self.list.values().map(|c| c.socket.errors()).sum::<u64>()
    }
}

impl RelayClient {
    /// Records that B sent a datagram to this client.
    pub fn on_answer(&mut self, now: Time) {
        self.is_answered = true;
        self.last_received = now;
    }
}

/// A client as it is counted for its network.
fn counted(address: IpAddr) -> CountedClient {
    CountedClient { source: ClientNetwork::of(address), key: [0; 32], is_listed: false }
}

/// A socket on any port, of the address family of `to`.
pub(super) fn towards(to: SocketAddr) -> io::Result<Socket> {
    let any: IpAddr = match to {
        SocketAddr::V4(a) if a.ip().is_loopback() => Ipv4Addr::LOCALHOST.into(),
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(a) if a.ip().is_loopback() => Ipv6Addr::LOCALHOST.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    Socket::bind(SocketAddr::new(any, 0))
}

#[cfg(test)]
#[path = "clients_tests.rs"]
mod tests;
