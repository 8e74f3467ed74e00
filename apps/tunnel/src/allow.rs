//! The targets that a tunnel's server permits.
//!
//! | `--allow` | permits |
//! |---|---|
//! | `example.org:443` | that name, where it leads to public addresses |
//! | `*.example.org:443` | every name below it, likewise |
//! | `*:443` | everything public |
//! | `10.0.0.0/8:22`, `10.1.2.3:22`, `[fd00::/8]:22` | these addresses, and names that lead to them |
//! | `example.org:*` | every port |
//!
//! A name alone never permits an address that is not public: the owner of the name's zone could point it to the
//! server's own machine. Such an address is permitted only if it is listed itself, by a network that lies entirely
//! within its block. Neither `*:22` nor `0.0.0.0/0:22` permits 127.0.0.1.

use crate::address::{Nat64Prefix, meant, special};
use ipnet::IpNet;
use narrows_base::text::shown;
use std::net::IpAddr;
use std::str::FromStr;

/// Maximum length of a host name in bytes (RFC 1035 section 2.3.4).
pub const MAX_NAME: usize = 253;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Host {
    Any,
    Name(String),
    /// All names below this name, but not the name itself.
    Below(String),
    Network(IpNet),
}

/// One entry of `--allow`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AllowedTarget {
    host: Host,
    /// `None` for all ports.
    port: Option<u16>,
}

/// Reason why an address is not permitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// No entry permits it.
    NotListed,
    /// The name is permitted, but its address is neither public nor listed. Contains the address's purpose.
    NotPublic(&'static str),
    /// A broadcast, multicast or unspecified address, which is never permitted. Contains its kind.
    NoHost(&'static str),
    /// The system cannot tell whether it is one of the server's own addresses.
    Unchecked,
}

/// The kind of a broadcast, multicast or unspecified address. Broadcast addresses of subnets cannot be detected.
fn no_host(address: IpAddr) -> Option<&'static str> {
    let is_broadcast = address == IpAddr::from([255; 4]);
    let block = special(address)
        .filter(|_| address.is_multicast() || address.is_unspecified() || is_broadcast);
    block.map(|block| block.name)
}

/// A name in its form for comparison; `None` if it is not a valid name.
pub fn name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        let taken = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(taken)
    };
    (text.len() <= MAX_NAME && text.split('.').all(is_label)).then(|| text.to_ascii_lowercase())
}

impl FromStr for AllowedTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<AllowedTarget, String> {
        let bad = |why: &str| {
            format!(
                "'{}': {why}; a target is HOST:PORT, *.NAME:PORT, *:PORT, 10.0.0.0/8:PORT or \
                 [fd00::/8]:PORT, and PORT a number or *",
                shown(text)
            )
        };
        let (host, port) = text.rsplit_once(':').ok_or_else(|| bad("the port is missing"))?;
        let port = match port {
            "*" => None,
            _ => match port.parse() {
                Ok(0) | Err(_) => return Err(bad("that is no port")),
                Ok(port) => Some(port),
            },
        };
        let bare = match host.strip_prefix('[') {
            Some(rest) => {
                let inside = rest.strip_suffix(']').ok_or_else(|| bad("a ']' is missing"))?;
                if !inside.contains(':') {
                    return Err(bad("brackets are for IPv6 addresses"));
                }
                inside
            }
            None if host.contains(':') => return Err(bad("an IPv6 address stands in brackets")),
            None => host,
        };
        let host = if bare == "*" {
            Host::Any
        } else if let Ok(address) = bare.parse::<IpAddr>() {
            let address = meant(address);
            if let Some(what) = no_host(address) {
                return Err(bad(&format!("{what} leads to no host")));
            }
            Host::Network(address.into())
        } else if bare.contains('/') {
            let network: IpNet = bare.parse().map_err(|_| bad("that is no network"))?;
            if network.addr() != network.network() {
                return Err(bad(&format!("that network begins at {}", network.trunc())));
            }
            if network.addr().is_multicast() {
                return Err(bad("a multicast address leads to no host"));
            }
            Host::Network(network)
        } else if let Some(below) = bare.strip_prefix("*.") {
            Host::Below(name(below).ok_or_else(|| bad("that is no name"))?)
        } else {
            let name = name(bare).ok_or_else(|| bad("that is no name"))?;
            if name.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
                return Err(bad("that is neither an address nor a name"));
            }
            Host::Name(name)
        };
        Ok(AllowedTarget { host, port })
    }
}

impl AllowedTarget {
    fn permits_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
    /// Whether it permits this name, provided that the address is public.
    fn permits_name(&self, name: &str) -> bool {
        match &self.host {
            Host::Any => true,
            Host::Name(own) => own == name,
            Host::Below(own) => {
                name.strip_suffix(own.as_str()).is_some_and(|rest| rest.ends_with('.'))
            }
            Host::Network(_) => false,
        }
    }
    /// Whether it lists this address; [`meant`] must have been applied.
    fn lists(&self, address: IpAddr) -> bool {
        let Host::Network(network) = &self.host else { return false };
        let block = special(address).map(|block| block.network);
        network.contains(&address) && block.is_none_or(|block| block.contains(network))
    }
}

/// The list of all entries.
#[derive(Clone, Debug, Default)]
pub struct Targets {
    entries: Vec<AllowedTarget>,
    nat64: Vec<Nat64Prefix>,
}

impl Targets {
    /// A list of these entries.
    pub fn new(targets: Vec<AllowedTarget>) -> Targets {
        Targets { entries: targets, nat64: Vec::new() }
    }
    /// The same list, in a network with these NAT64 prefixes in addition to 64:ff9b::/96.
    pub fn with_nat64(self, nat64: Vec<Nat64Prefix>) -> Targets {
        Targets { nat64, ..self }
    }
    /// The address that is effectively reached: for IPv4 in IPv6 the IPv4 address, see [`meant`].
    pub fn meant(&self, address: IpAddr) -> IpAddr {
        let IpAddr::V6(v6) = address else { return address };
        let embedded = self.nat64.iter().find_map(|prefix| prefix.embedded(v6));
        embedded.map_or_else(|| meant(address), IpAddr::V4)
    }
    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// Names that are listed in full, with their ports, for a check of their addresses at the start.
    pub fn names(&self) -> impl Iterator<Item = (&str, Option<u16>)> {
        self.entries.iter().filter_map(|target| match &target.host {
            Host::Name(name) => Some((name.as_str(), target.port)),
            _ => None,
        })
    }
    fn of_port(&self, port: u16) -> impl Iterator<Item = &AllowedTarget> {
        self.entries.iter().filter(move |target| target.permits_port(port))
    }
    /// Whether a lookup of this name can lead to a permitted address: the name is listed, or any network with this port
    /// is.
    pub fn may_permit(&self, name: &str, port: u16) -> bool {
        self.of_port(port).any(|t| t.permits_name(name) || matches!(t.host, Host::Network(_)))
    }
    /// Checks an address that was requested directly (`asked` is `None`) or by a name. `is_own` marks the server's own
    /// addresses, which must be listed, too.
    ///
    /// # Errors
    /// The reason why it is not permitted.
    pub fn judge(
        &self,
        asked: Option<&str>,
        address: IpAddr,
        port: u16,
        is_own: bool,
    ) -> Result<(), Denied> {
        let address = self.meant(address);
        if let Some(what) = no_host(address) {
            return Err(Denied::NoHost(what));
        }
        let is_listed = self.of_port(port).any(|t| match &t.host {
            // A prefix shorter than half of the address does not list the server's own public addresses.
            Host::Network(n) if is_own && n.prefix_len() < n.max_prefix_len() / 2 => {
                special(address).is_some() && t.lists(address)
            }
            _ => t.lists(address),
        });
        if is_listed {
            return Ok(());
        }
        // An address requested without a name is permitted only by `*`, unless it is listed.
        let is_permitted = self.of_port(port).any(|t| match asked {
            Some(name) => t.permits_name(name),
            None => t.host == Host::Any,
        });
        let why = special(address).map(|block| block.name);
        match why.or(is_own.then_some("an address of the server itself")) {
            Some(what) if is_permitted => Err(Denied::NotPublic(what)),
            None if is_permitted => Ok(()),
            _ => Err(Denied::NotListed),
        }
    }
}

#[cfg(test)]
#[path = "allow_tests.rs"]
mod tests;
