//! The clients of a relay: each client's address, and its own socket towards B.

use super::datagrams::LossNumbers;
use crate::socket::Socket;
use narrows_base::{Duration, Time};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A client and its socket.
#[derive(Debug)]
pub(super) struct RelayClient {
    pub address: SocketAddr,
    /// Connected to B.
    pub socket: Socket,
    pub there: LossNumbers,
    pub back: LossNumbers,
    last_received: Time,
}

/// All clients, by a number that is never reused.
#[derive(Debug)]
pub(super) struct RelayClients {
    list: BTreeMap<u32, RelayClient>,
    numbers: BTreeMap<SocketAddr, u32>,
    seen: u32,
    most: usize,
    idle: Duration,
    /// Errors of sockets that have been closed.
    errors: u64,
}

impl RelayClients {
    /// At most `most` clients. A client is removed after `idle` without a datagram in either direction.
    pub fn new(most: usize, idle: Duration) -> RelayClients {
        RelayClients {
            list: BTreeMap::new(),
            numbers: BTreeMap::new(),
            seen: 0,
            most,
            idle,
            errors: 0,
        }
    }

    /// The client at this address, created if necessary; `None` if the limit is reached.
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
        if self.list.len() >= self.most {
            self.forget(now);
            if self.list.len() >= self.most {
                return None;
            }
        }
        let socket = towards(to).ok()?;
        let number = self.seen;
        self.seen = self.seen.checked_add(1)?;
        let (there, back) = (LossNumbers::there(seed, number), LossNumbers::back(seed, number));
        self.list.insert(number, RelayClient { address, socket, there, back, last_received: now });
        self.numbers.insert(address, number);
        Some(number)
    }

    /// Removes idle clients.
    pub fn forget(&mut self, now: Time) {
        let (idle, errors) = (self.idle, &mut self.errors);
        self.list.retain(|_, c| {
            let keep = now.since(c.last_received) < idle;
            if !keep {
                *errors += c.socket.errors();
            }
            keep
        });
        let list = &self.list;
        self.numbers.retain(|_, n| list.contains_key(n));
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
    pub fn errors(&self) -> u64 {
        self.errors + self.list.values().map(|c| c.socket.errors()).sum::<u64>()
    }
}

impl RelayClient {
    /// Records that B sent a datagram to this client.
    pub fn hear(&mut self, now: Time) {
        self.last_received = now;
    }
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
