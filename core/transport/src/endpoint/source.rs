//! The network that a client's address belongs to.

use std::net::IpAddr;

/// The network under which a client is counted: an IPv4 address, or an IPv6 /64, because a host with one IPv6 address
/// usually has the whole /64. The /56 (one customer) and the /48 (one site) are counted, too: see [`ClientNetwork::prefixes`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClientNetwork {
    is_ipv6: bool,
    /// The 32 bits of an IPv4 address in the upper half, or the first 64 bits of an IPv6 address.
    bits: u64,
}

/// A [`ClientNetwork`] or a larger network that contains it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Prefix {
    is_ipv6: bool,
    length: u8,
    bits: u64,
}

/// Lengths of the counted IPv6 prefixes, the widest first.
const IPV6_LENGTHS: [u8; 3] = [48, 56, 64];

impl ClientNetwork {
    /// The source of an address; an IPv4-mapped IPv6 address counts as IPv4.
    pub fn of(address: IpAddr) -> ClientNetwork {
        match address.to_canonical() {
            IpAddr::V4(v4) => ClientNetwork { is_ipv6: false, bits: u64::from(v4.to_bits()) << 32 },
            IpAddr::V6(v6) => ClientNetwork { is_ipv6: true, bits: (v6.to_bits() >> 64) as u64 },
        }
    }

    /// The networks that contain it, the widest first; for an IPv4 address only that address.
    pub fn prefixes(self) -> impl Iterator<Item = Prefix> {
        let lengths: &[u8] = if self.is_ipv6 { &IPV6_LENGTHS } else { &[32] };
        lengths.iter().map(move |length| self.prefix(*length))
    }

    /// The widest network that contains it.
    pub fn widest(self) -> Prefix {
        self.prefix(if self.is_ipv6 { IPV6_LENGTHS[0] } else { 32 })
    }

    fn prefix(self, length: u8) -> Prefix {
        let ClientNetwork { is_ipv6, bits } = self;
        let host = 64 - u32::from(length);
        Prefix { is_ipv6, length, bits: bits >> host << host }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv4_counts_by_address_ipv6_by_64_56_48() {
        let of = |text: &str| ClientNetwork::of(text.parse().unwrap());
        let prefixes = |text: &str| of(text).prefixes().collect::<Vec<_>>();
        assert_eq!(prefixes("192.0.2.1").len(), 1);
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        // All 64 bits in common, then 56, 48, and fewer.
        let pairs = [
            ("2001:db8:1:1::1", 3),
            ("2001:db8:1:7f::1", 2),
            ("2001:db8:1:ff00::1", 1),
            ("2001:db8:2:1::1", 0),
        ];
        for (other, shared) in pairs {
            let a = prefixes("2001:db8:1:1::9");
            let b = prefixes(other);
            let same = a.iter().zip(&b).filter(|(a, b)| a == b).count();
            assert_eq!(same, shared, "{other}");
        }
        // An IPv4 address differs from the IPv6 network with the same leading bits.
        assert_ne!(of("32.1.13.184").widest(), of("2001:db8::").widest());
        assert_eq!(of("2001:db8:1:1::9").widest(), prefixes("2001:db8:1:1::9")[0]);
    }
}
