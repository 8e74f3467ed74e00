//! Assignment of addresses in the server's networks to clients.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of an answer after its first.
pub const LENGTH: usize = 40;

/// Private networks (RFC 1918, RFC 6598, RFC 2544, RFC 4193). A server's addresses must be in one of them, so that it
/// cannot divert a client's other traffic into the tunnel.
const PRIVATE: [IpNet; 6] = [
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(10, 0, 0, 0), 8)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(172, 16, 0, 0), 12)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(192, 168, 0, 0), 16)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(100, 64, 0, 0), 10)),
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15)),
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7)),
];

/// The networks of a server: at most one of each address family.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Networks(Vec<IpNet>);

impl Networks {
    /// Checks these networks for a number of clients.
    ///
    /// # Errors
    /// A network is not private, has host bits set, is too small, or is the second of its family.
    pub fn new(networks: &[IpNet], clients: usize) -> Result<Networks, String> {
        let networks = Networks(networks.to_vec());
        networks.check(clients).map(|()| networks)
    }

    /// Checks the networks for another number of clients.
    ///
    /// # Errors
    /// As of [`new`](Networks::new).
    pub fn check(&self, clients: usize) -> Result<(), String> {
        let networks = &self.0;
        for (at, network) in networks.iter().enumerate() {
            let bad = |why: String| Err(format!("--tun {network}: {why}"));
            if network.addr() != network.network() {
                return bad(format!("that network begins at {}", network.trunc()));
            }
            if !PRIVATE.iter().any(|private| private.contains(network)) {
                return bad("addresses are given of private networks only, as 10.7.0.0/24".into());
            }
            let is_four = network.addr().is_ipv4();
            if networks.iter().take(at).any(|other| other.addr().is_ipv4() == is_four) {
                return bad("one network of IPv4 and one of IPv6 is all that is needed".into());
            }
            let bits = u32::from(network.max_prefix_len() - network.prefix_len());
            // The first address names the network, the second is the server's; the last IPv4 address is for broadcasts.
            let room = 1u128
                .checked_shl(bits)
                .unwrap_or(u128::MAX)
                .saturating_sub(2 + u128::from(is_four));
            if room < clients as u128 {
                return bad(format!(
                    "it has addresses for {room} clients, and {clients} are listed"
                ));
            }
        }
        Ok(())
    }

    /// The server's own addresses, with the prefix lengths of their networks.
    pub fn server(&self) -> Vec<(IpAddr, u8)> {
        self.0.iter().map(|n| (nth(n, 1), n.prefix_len())).collect()
    }

    /// The addresses of the client at this place of the list, counted from zero.
    pub fn given(&self, place: usize) -> TunnelAddresses {
        let pair = |network: &IpNet| (nth(network, 2 + place as u128), nth(network, 1));
        TunnelAddresses(self.0.iter().map(pair).collect())
    }
}

/// The n-th address of a network, counted from zero.
fn nth(network: &IpNet, n: u128) -> IpAddr {
    match network {
        IpNet::V4(four) => {
            Ipv4Addr::from_bits(four.network().to_bits().wrapping_add(n as u32)).into()
        }
        IpNet::V6(six) => Ipv6Addr::from_bits(six.network().to_bits().wrapping_add(n)).into(),
    }
}

/// A client's address and the server's, for each address family in use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelAddresses(Vec<(IpAddr, IpAddr)>);

impl TunnelAddresses {
    /// Pairs of the client's address and the server's, one for each family.
    pub fn pairs(&self) -> &[(IpAddr, IpAddr)] {
        &self.0
    }

    /// Whether an address is the client's.
    pub fn is_near(&self, address: IpAddr) -> bool {
        self.0.iter().any(|(near, _)| *near == address)
    }

    /// Whether an address is the server's.
    pub fn is_far(&self, address: IpAddr) -> bool {
        self.0.iter().any(|(_, far)| *far == address)
    }

    /// The server's address of the same family.
    pub fn far_of(&self, like: IpAddr) -> Option<IpAddr> {
        self.0.iter().map(|(_, far)| *far).find(|far| far.is_ipv4() == like.is_ipv4())
    }

    /// The client's addresses for display.
    pub fn shown(&self) -> String {
        let near: Vec<String> = self.0.iter().map(|(near, _)| near.to_string()).collect();
        near.join(" and ")
    }

    /// The server's addresses for display.
    pub fn far_shown(&self) -> String {
        let far: Vec<String> = self.0.iter().map(|(_, far)| far.to_string()).collect();
        far.join(" and ")
    }

    /// Encodes the addresses.
    pub fn bytes(&self) -> [u8; LENGTH] {
        let mut bytes = [0; LENGTH];
        for (near, far) in &self.0 {
            let (at, both) = match (near, far) {
                (IpAddr::V4(near), IpAddr::V4(far)) => (0, [near.octets(), far.octets()].concat()),
                (IpAddr::V6(near), IpAddr::V6(far)) => (8, [near.octets(), far.octets()].concat()),
                _ => continue,
            };
            if let Some(place) = bytes.get_mut(at..at + both.len()) {
                place.copy_from_slice(&both);
            }
        }
        bytes
    }

    /// Decodes the addresses of an answer.
    ///
    /// # Errors
    /// There is no address, one without its counterpart, the same address for both ends, or one that is not private.
    pub fn read(bytes: [u8; LENGTH]) -> Result<TunnelAddresses, String> {
        let [a, b, c, d, e, f, g, h, six @ ..] = bytes;
        let mut given = Vec::new();
        if [a, b, c, d, e, f, g, h] != [0; 8] {
            given.push((IpAddr::from([a, b, c, d]), IpAddr::from([e, f, g, h])));
        }
        if six != [0; 32]
            && let (Some(near), Some(far)) = (six.first_chunk::<16>(), six.last_chunk::<16>())
        {
            given.push((IpAddr::from(*near), IpAddr::from(*far)));
        }
        for (near, far) in &given {
            let is_private = |a: &IpAddr| PRIVATE.iter().any(|network| network.contains(a));
            if near == far || !is_private(near) || !is_private(far) {
                return Err(format!(
                    "the server gives the address {near} and says that it has {far}: two private addresses are expected"
                ));
            }
        }
        if given.is_empty() {
            return Err("the server gives no address".into());
        }
        Ok(TunnelAddresses(given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn networks(texts: &[&str], clients: usize) -> Result<Networks, String> {
        let all: Vec<IpNet> = texts.iter().map(|text| text.parse().unwrap()).collect();
        Networks::new(&all, clients)
    }

    #[test]
    fn clients_get_addresses_in_the_order_of_their_list() {
        let networks = networks(&["10.7.0.0/29", "fd00:7::/64"], 5).unwrap();
        let server = [("10.7.0.1".parse().unwrap(), 29), ("fd00:7::1".parse().unwrap(), 64)];
        assert_eq!(networks.server(), server);
        let last = networks.given(4);
        assert_eq!(
            (last.shown(), last.far_shown()),
            ("10.7.0.6 and fd00:7::6".into(), "10.7.0.1 and fd00:7::1".into())
        );
        assert!(last.is_near([10, 7, 0, 6].into()) && !last.is_near([10, 7, 0, 5].into()));
        assert_eq!(last.far_of([1, 1, 1, 1].into()), Some([10, 7, 0, 1].into()));
        assert_eq!(TunnelAddresses::read(last.bytes()), Ok(last));
    }

    #[test]
    fn networks_that_cannot_work_are_named() {
        for (texts, clients, part) in [
            (&["10.7.0.0/29"][..], 6, "addresses for 5 clients, and 6 are listed"),
            (&["10.7.0.0/31"], 1, "for 0 clients"),
            (&["10.7.0.4/24"], 1, "begins at 10.7.0.0/24"),
            (&["8.8.8.0/24"], 1, "private networks only"),
            (&["0.0.0.0/0"], 1, "private networks only"),
            (&["10.7.0.0/24", "10.8.0.0/24"], 1, "one network of IPv4"),
        ] {
            let why = networks(texts, clients).unwrap_err();
            assert!(why.contains(part) && !why.contains('\n'), "{why}");
        }
        assert!(networks(&["fc00::/7"], usize::MAX).is_ok());
    }

    proptest! {
        /// For arbitrary answers, a client accepts only private addresses, and at most one of each family.
        #[test]
        fn only_private_addresses_are_taken(four: [u8; 8], six: [u8; 32], has_four: bool, has_six: bool) {
            let mut bytes = [0; LENGTH];
            if has_four {
                bytes[..8].copy_from_slice(&four);
            }
            if has_six {
                bytes[8..].copy_from_slice(&six);
            }
            if let Ok(given) = TunnelAddresses::read(bytes) {
                prop_assert_eq!(given.bytes(), bytes);
                for (near, far) in given.pairs() {
                    prop_assert!(crate::address::special(*near).is_some() && crate::address::special(*far).is_some());
                }
            }
        }
    }
}
