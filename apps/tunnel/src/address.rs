//! Public addresses, and the purposes of all others.
//!
//! A tunnel's far side opens connections from inside its own network on behalf of clients. Addresses for internal use
//! are listed in the registries of special-purpose addresses (RFC 6890 and its updates). The addresses of cloud
//! metadata services, which return a machine's credentials, are added here.

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use narrows_base::text::shown;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

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

/// A NAT64 prefix (RFC 6052): addresses in it lead to the IPv4 addresses that they contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Nat64Prefix(Ipv6Net);

impl Nat64Prefix {
    /// The IPv4 address in this address; `None` outside of the prefix.
    pub fn embedded(&self, address: Ipv6Addr) -> Option<Ipv4Addr> {
        self.0.contains(&address).then(|| embedded_after(address, self.0.prefix_len()))
    }
}

impl FromStr for Nat64Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Nat64Prefix, String> {
        let prefix = text.parse::<Ipv6Net>().ok().filter(|network| {
            network.trunc() == *network
                && matches!(network.prefix_len(), 32 | 40 | 48 | 56 | 64 | 96)
        });
        prefix.map(Nat64Prefix).ok_or_else(|| {
            let shown = shown(text);
            format!(
                "'{shown}': that is no NAT64 prefix; an IPv6 network with a length of 32, 40, 48, 56, 64 or 96 is expected, as in 64:ff9b:1:fffe::/96"
            )
        })
    }
}

/// The IPv4 address after a prefix of this length (RFC 6052 section 2.2, which skips bits 64 to 71).
fn embedded_after(address: Ipv6Addr, length: u8) -> Ipv4Addr {
    let mut octets = address.octets().into_iter().zip(0u8..);
    let mut next = || {
        let found = octets.find(|(_, place)| *place >= length / 8 && *place != 8);
        found.map_or(0, |(octet, _)| octet)
    };
    Ipv4Addr::new(next(), next(), next(), next())
}

/// IPv4 addresses that a router or this machine may extract from an address whose prefix does not tell: of the local
/// NAT64 block (RFC 8215) in all lengths, 6to4, Teredo, ISATAP, IPv4-compatible and IPv4-translated addresses.
pub fn embedded(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let last = embedded_after(address, 96);
    let found = match address.segments() {
        [0x64, 0xff9b, 1, ..] => [48, 56, 64, 96].map(|n| embedded_after(address, n)).to_vec(),
        [0x2002, ..] => vec![Ipv4Addr::from_bits((address.to_bits() >> 80) as u32)],
        [0x2001, 0, ..] => vec![Ipv4Addr::from_bits(!last.to_bits())],
        [0, 0, 0, 0, 0, 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => vec![last],
        _ if is_isatap(address) => vec![last],
        _ => Vec::new(),
    };
    // Zeros and ones are other bits of the prefix.
    found.into_iter().filter(|v4| (1..224).contains(&v4.octets()[0])).collect()
}

/// Whether the interface identifier is that of ISATAP (RFC 5214 section 6.1).
fn is_isatap(address: Ipv6Addr) -> bool {
    matches!(address.segments(), [.., 0 | 0x200, 0x5efe, _, _])
}

/// Global addresses of ISATAP.
const ISATAP: AddressBlock = v6([0x2000, 0, 0], 0, 3, "an ISATAP address");

/// The special block of an address; `None` if the address is public.
pub fn special(address: IpAddr) -> Option<&'static AddressBlock> {
    let address = meant(address);
    let isatap = Some(&ISATAP).filter(|block| {
        let IpAddr::V6(v6) = address else { return false };
        is_isatap(v6) && block.network.contains(&address)
    });
    let holding = BLOCKS.iter().chain(isatap).filter(|block| block.network.contains(&address));
    holding.max_by_key(|block| block.network.prefix_len())
}

#[cfg(test)]
#[path = "address_tests.rs"]
mod tests;
