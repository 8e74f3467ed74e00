//! Network address translation (RFC 4787): mappings of inner to outer addresses, and filters.

use narrows_base::{Duration, Time};
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

/// First outer port: those below are of services.
const FIRST_PORT: u16 = 1024;

/// Which datagrams from outside an address translator lets in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NatKind {
    /// Any to a mapped port (RFC 4787: endpoint-independent filtering).
    FullCone,
    /// From hosts to which the inner address has sent (address-dependent filtering).
    AddressRestricted,
    /// From addresses and ports to which the inner address has sent (address- and port-dependent filtering).
    PortRestricted,
    /// As [`PortRestricted`](NatKind::PortRestricted), with an outer port for each destination.
    Symmetric,
}

impl NatKind {
    /// All kinds and their names.
    pub const NAMES: [(&'static str, NatKind); 4] = [
        ("full-cone", NatKind::FullCone),
        ("address-restricted", NatKind::AddressRestricted),
        ("port-restricted", NatKind::PortRestricted),
        ("symmetric", NatKind::Symmetric),
    ];
}

/// An inner address, and for a symmetric translator the destination.
type MappingKey = (SocketAddr, Option<SocketAddr>);

#[derive(Debug)]
struct Mapping {
    key: MappingKey,
    /// Destinations of the inner address, and when it last sent to each.
    sent_to: BTreeMap<SocketAddr, Time>,
    used: Time,
}

/// The state of one translator.
#[derive(Debug)]
pub(crate) struct Nat {
    pub(crate) external: IpAddr,
    kind: NatKind,
    /// Idle mappings and permissions end after this time.
    pub(crate) timeout: Duration,
    ports: BTreeMap<MappingKey, u16>,
    mappings: BTreeMap<u16, Mapping>,
    next_port: u16,
}

impl Nat {
    pub(crate) fn new(external: IpAddr, kind: NatKind) -> Nat {
        Nat {
            external,
            kind,
            timeout: Duration::MAX,
            ports: BTreeMap::new(),
            mappings: BTreeMap::new(),
            next_port: FIRST_PORT,
        }
    }

    /// The outer source of a datagram from inside. `None` if all ports are taken.
    pub(crate) fn outbound(
        &mut self,
        now: Time,
        source: SocketAddr,
        destination: SocketAddr,
    ) -> Option<SocketAddr> {
        let key = (source, (self.kind == NatKind::Symmetric).then_some(destination));
        let current = self.ports.get(&key).copied();
        let current = current.filter(|port| self.is_current(now, *port));
        let port = match current {
            Some(port) => port,
            None => self.assign(now, key)?,
        };
        let mapping = self.mappings.get_mut(&port)?;
        mapping.used = now;
        mapping.sent_to.insert(destination, now);
        Some(SocketAddr::new(self.external, port))
    }

    /// The inner destination of a datagram from outside, if it is let in.
    pub(crate) fn inbound(
        &mut self,
        now: Time,
        source: SocketAddr,
        port: u16,
    ) -> Option<SocketAddr> {
        if !self.is_current(now, port) {
            return None;
        }
        let timeout = self.timeout;
        let mapping = self.mappings.get(&port)?;
        let mut sent = mapping.sent_to.iter().filter(|(_, at)| now.since(**at) <= timeout);
        let admitted = match self.kind {
            NatKind::FullCone => true,
            NatKind::AddressRestricted => sent.any(|(to, _)| to.ip() == source.ip()),
            NatKind::PortRestricted | NatKind::Symmetric => sent.any(|(to, _)| *to == source),
        };
        admitted.then_some(mapping.key.0)
    }

    /// Forgets all mappings; the next ones get other ports.
    pub(crate) fn rebind(&mut self) {
        self.ports.clear();
        self.mappings.clear();
    }

    fn is_current(&self, now: Time, port: u16) -> bool {
        self.mappings.get(&port).is_some_and(|m| now.since(m.used) <= self.timeout)
    }

    fn assign(&mut self, now: Time, key: MappingKey) -> Option<u16> {
        let first = self.next_port;
        loop {
            let port = self.next_port;
            self.next_port = port.checked_add(1).unwrap_or(FIRST_PORT);
            if !self.is_current(now, port) {
                if let Some(old) = self.mappings.remove(&port) {
                    self.ports.remove(&old.key);
                }
                self.ports.insert(key, port);
                self.mappings.insert(port, Mapping { key, sent_to: BTreeMap::new(), used: now });
                return Some(port);
            }
            if self.next_port == first {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    #[test]
    fn inbound_datagram_passes_by_kind_of_nat() {
        let inner = address("10.0.0.1:500");
        let peer = address("192.0.2.1:1");
        let same_host = address("192.0.2.1:2");
        let stranger = address("192.0.2.9:1");
        for (kind, passes) in [
            (NatKind::FullCone, [true, true, true]),
            (NatKind::AddressRestricted, [true, true, false]),
            (NatKind::PortRestricted, [true, false, false]),
            (NatKind::Symmetric, [true, false, false]),
        ] {
            let mut nat = Nat::new("203.0.113.1".parse().unwrap(), kind);
            let outer = nat.outbound(Time::ZERO, inner, peer).unwrap();
            let let_in = [peer, same_host, stranger]
                .map(|source| nat.inbound(Time::ZERO, source, outer.port()) == Some(inner));
            assert_eq!(let_in, passes, "{kind:?}");
            let other = nat.outbound(Time::ZERO, inner, stranger).unwrap();
            assert_eq!(other != outer, kind == NatKind::Symmetric, "{kind:?}");
        }
    }

    #[test]
    fn rebinding_changes_the_port_and_closes_the_old_one() {
        let mut nat = Nat::new("203.0.113.1".parse().unwrap(), NatKind::PortRestricted);
        let inner = address("10.0.0.1:500");
        let peer = address("192.0.2.1:1");
        let before = nat.outbound(Time::ZERO, inner, peer).unwrap();
        nat.rebind();
        assert_eq!(nat.inbound(Time::ZERO, peer, before.port()), None);
        let after = nat.outbound(Time::ZERO, inner, peer).unwrap();
        assert_ne!(before, after);
        assert_eq!(nat.inbound(Time::ZERO, peer, after.port()), Some(inner));
    }

    #[test]
    fn idle_mapping_ends_after_its_timeout() {
        let mut nat = Nat::new("203.0.113.1".parse().unwrap(), NatKind::FullCone);
        nat.timeout = Duration::from_secs(30);
        let inner = address("10.0.0.1:500");
        let peer = address("192.0.2.1:1");
        let outer = nat.outbound(Time::ZERO, inner, peer).unwrap();
        let at = |s| Time::ZERO + Duration::from_secs(s);
        assert_eq!(nat.inbound(at(30), peer, outer.port()), Some(inner));
        assert_eq!(nat.inbound(at(31), peer, outer.port()), None);
        assert_ne!(nat.outbound(at(31), inner, peer), Some(outer));
    }
}
