//! Local addresses of an endpoint that is bound to all of them.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Most peers with a cached local address.
const MAX_PEERS: usize = 4096;

/// From which of its addresses an endpoint bound to all of them reaches each peer.
#[derive(Debug, Default)]
pub struct Ways(BTreeMap<SocketAddr, IpAddr>);

impl Ways {
    /// The endpoint's own address towards `peer`.
    pub fn local(&mut self, bound: SocketAddr, peer: SocketAddr) -> SocketAddr {
        if !bound.ip().is_unspecified() {
            return bound;
        }
        let found = match self.0.get(&peer) {
            Some(found) => *found,
            None => {
                let found = ask(peer).unwrap_or(match peer {
                    SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
                });
                if self.0.len() < MAX_PEERS {
                    self.0.insert(peer, found);
                }
                found
            }
        };
        SocketAddr::new(found, bound.port())
    }
}

/// The local address for a peer by the system's routing table. Connecting a UDP socket sends no packet.
fn ask(peer: SocketAddr) -> Option<IpAddr> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).ok()?;
    socket.connect(peer).ok()?;
    socket.local_addr().ok().map(|a| a.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoint_bound_to_any_address_is_shown_with_its_own() {
        let mut ways = Ways::default();
        let local = ways.local("0.0.0.0:7".parse().unwrap(), "127.0.0.1:9".parse().unwrap());
        assert_eq!(local, "127.0.0.1:7".parse().unwrap());
    }
}
