//! Addresses at which peers reach a socket that is bound to a wildcard address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Documentation addresses (RFC 5737, RFC 3849). No packet is sent there: the system only selects the source address.
const ELSEWHERE: [(IpAddr, IpAddr); 2] = [
    (IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1))),
    (IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))),
];

/// The address itself; for a wildcard (0.0.0.0 or `[::]`) the machine's addresses on its default routes, then loopback.
pub fn reachable(listens: SocketAddr) -> Vec<SocketAddr> {
    if !listens.ip().is_unspecified() {
        return vec![listens];
    }
    let routes = ELSEWHERE.iter().filter(|(any, _)| listens.is_ipv6() || any.is_ipv4());
    let found = routes.filter_map(|(any, elsewhere)| {
        let socket = UdpSocket::bind((*any, 0)).ok()?;
        socket.connect((*elsewhere, 9)).ok()?;
        socket.local_addr().ok().map(|own| own.ip())
    });
    let mut all: Vec<IpAddr> = found.filter(|own| !own.is_unspecified()).collect();
    all.push(Ipv4Addr::LOCALHOST.into());
    all.dedup();
    all.into_iter().map(|ip| SocketAddr::new(ip, listens.port())).collect()
}

#[cfg(test)]
mod tests {
    use super::reachable;

    #[test]
    fn no_wildcard_is_named() {
        let own = "192.0.2.7:4434".parse().unwrap();
        assert_eq!(reachable(own), [own]);
        for any in ["0.0.0.0:4434", "[::]:4434"] {
            let all = reachable(any.parse().unwrap());
            assert!(all.iter().all(|a| !a.ip().is_unspecified() && a.port() == 4434), "{all:?}");
            assert_eq!(all.last().unwrap().ip().to_string(), "127.0.0.1");
        }
    }
}
