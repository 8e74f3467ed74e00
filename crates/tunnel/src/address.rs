//! Public addresses, and the purposes of all others.
//!
//! A tunnel's far side opens connections from inside its own network on behalf of clients. Addresses for internal use
//! are listed in the registries of special-purpose addresses (RFC 6890 and its updates). The addresses of cloud
//! metadata services, which return a machine's credentials, are added here.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A block of addresses that are not public.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddressBlock {
    /// The block's network.
    pub network: IpNet,
    /// Purpose, as a phrase with an article for messages.
    pub name: &'static str,
}

const fn v4(a: u8, b: u8, c: u8, d: u8, length: u8, name: &'static str) -> AddressBlock {
    AddressBlock {
        network: IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)),
        name,
    }
}

const fn v6(groups: [u16; 3], last: u16, length: u8, name: &'static str) -> AddressBlock {
    let [a, b, c] = groups;
    let address = Ipv6Addr::new(a, b, c, 0, 0, 0, 0, last);
    AddressBlock { network: IpNet::V6(Ipv6Net::new_assert(address, length)), name }
}

const METADATA: &str = "a cloud's metadata address";

/// All special blocks. If two contain an address, the longer prefix counts.
const BLOCKS: &[AddressBlock] = &[
    v4(0, 0, 0, 0, 8, "an unspecified address"),
    v4(10, 0, 0, 0, 8, "a private address"),
    v4(100, 64, 0, 0, 10, "an address behind a carrier's NAT"),
    v4(100, 100, 100, 200, 32, METADATA),
    v4(127, 0, 0, 0, 8, "a loopback address"),
    v4(168, 63, 129, 16, 32, METADATA),
    v4(169, 254, 0, 0, 16, "a link-local address"),
    v4(169, 254, 169, 254, 32, METADATA),
    v4(172, 16, 0, 0, 12, "a private address"),
    v4(192, 0, 0, 0, 24, "an address of protocols"),
    v4(192, 0, 0, 192, 32, METADATA),
    v4(192, 0, 2, 0, 24, "an address for documentation"),
    v4(192, 88, 99, 0, 24, "a 6to4 relay"),
    v4(192, 168, 0, 0, 16, "a private address"),
    v4(198, 18, 0, 0, 15, "an address for benchmarks"),
    v4(198, 51, 100, 0, 24, "an address for documentation"),
    v4(203, 0, 113, 0, 24, "an address for documentation"),
    v4(224, 0, 0, 0, 4, "a multicast address"),
    v4(240, 0, 0, 0, 4, "a reserved address"),
    v4(255, 255, 255, 255, 32, "the broadcast address"),
    // In IPv6 only 2000::/3 is public.
    v6([0, 0, 0], 0, 3, "a reserved address"),
    v6([0, 0, 0], 0, 128, "the unspecified address"),
    v6([0, 0, 0], 1, 128, "a loopback address"),
    v6([0x4000, 0, 0], 0, 2, "a reserved address"),
    v6([0x8000, 0, 0], 0, 1, "a reserved address"),
    v6([0xfc00, 0, 0], 0, 7, "a private address"),
    v6([0xfd00, 0xec2, 0], 0x254, 128, METADATA),
    v6([0xfe80, 0, 0], 0, 10, "a link-local address"),
    v6([0xfec0, 0, 0], 0, 10, "a private address"),
    v6([0xff00, 0, 0], 0, 8, "a multicast address"),
    v6([0x2001, 0, 0], 0, 23, "an address of protocols"),
    v6([0x2001, 0, 0], 0, 32, "a Teredo address"),
    v6([0x2001, 0xdb8, 0], 0, 32, "an address for documentation"),
    v6([0x2002, 0, 0], 0, 16, "a 6to4 address"),
    v6([0x3fff, 0, 0], 0, 20, "an address for documentation"),
];

/// The address that is effectively reached: for IPv4 in IPv6 (`::ffff:0:0/96`, and NAT64's `64:ff9b::/96`) the IPv4
/// address. IPv4 addresses within 6to4 or Teredo addresses need no decoding, since those blocks are not public at all.
pub fn meant(address: IpAddr) -> IpAddr {
    let IpAddr::V6(v6) = address else { return address };
    let [a, b, c, d, e, f, ..] = v6.segments();
    match [a, b, c, d, e, f] {
        [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => {
            let [.., w, x, y, z] = v6.octets();
            Ipv4Addr::new(w, x, y, z).into()
        }
        _ => address,
    }
}

/// The special block of an address; `None` if the address is public.
pub fn special(address: IpAddr) -> Option<&'static AddressBlock> {
    let address = meant(address);
    let holding = BLOCKS.iter().filter(|block| block.network.contains(&address));
    holding.max_by_key(|block| block.network.prefix_len())
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
