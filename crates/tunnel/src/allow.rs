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
//! A name alone never permits an address that is not public: who runs the name's zone could make it lead to the
//! server's own machine. Such an address is permitted only if it is listed itself, by a network that lies wholly
//! within its block: neither `*:22` nor `0.0.0.0/0:22` permits 127.0.0.1.

use crate::address::{meant, special};
use ipnet::IpNet;
use narrows_base::text::shown;
use std::net::IpAddr;
use std::str::FromStr;

/// Bytes of a host's name at most (RFC 1035 section 2.3.4).
pub const MAX_NAME: usize = 253;

#[derive(Clone, PartialEq, Eq, Debug)]
enum Host {
    Any,
    Name(String),
    /// Everything below this name, not the name itself.
    Below(String),
    Network(IpNet),
}

/// One permission.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    host: Host,
    /// `None` for all.
    port: Option<u16>,
}

/// Why an address is not permitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Denied {
    /// Nothing permits it.
    NotListed,
    /// The name is permitted, but leads to an address that is not public and not listed; what it is.
    NotPublic(&'static str),
    /// It is the address of no host or of many, which no list permits; what it is.
    NoHost(&'static str),
    /// The system does not say whether it is one of the server's own.
    Unchecked,
}

/// Of an address that is no host's: what it is. A subnet's broadcast address is one, too, but does not look like one.
fn no_host(address: IpAddr) -> Option<&'static str> {
    let is_broadcast = address == IpAddr::from([255; 4]);
    let block = special(address)
        .filter(|_| address.is_multicast() || address.is_unspecified() || is_broadcast);
    block.map(|block| block.name)
}

/// A name as names are compared; `None` if it cannot be one.
pub fn name(text: &str) -> Option<String> {
    let text = text.strip_suffix('.').unwrap_or(text);
    let is_label = |label: &str| {
        let taken = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        (1..=63).contains(&label.len()) && label.bytes().all(taken)
    };
    (text.len() <= MAX_NAME && text.split('.').all(is_label)).then(|| text.to_ascii_lowercase())
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Target, String> {
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
        Ok(Target { host, port })
    }
}

impl Target {
    fn permits_port(&self, port: u16) -> bool {
        self.port.is_none_or(|own| own == port)
    }
    /// Whether it permits this name, as far as it leads to public addresses.
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
    /// Whether it lists this address, which is not what [`meant`] would change.
    fn lists(&self, address: IpAddr) -> bool {
        let Host::Network(network) = &self.host else { return false };
        let block = special(address).map(|block| block.network);
        network.contains(&address) && block.is_none_or(|block| block.contains(network))
    }
}

/// All that is permitted.
#[derive(Clone, Debug, Default)]
pub struct Targets(Vec<Target>);

impl Targets {
    /// These.
    pub fn new(targets: Vec<Target>) -> Targets {
        Targets(targets)
    }
    /// Whether nothing is permitted.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    /// Names that are permitted by themselves, for a look at where they lead.
    pub fn names(&self) -> impl Iterator<Item = (&str, Option<u16>)> {
        self.0.iter().filter_map(|target| match &target.host {
            Host::Name(name) => Some((name.as_str(), target.port)),
            _ => None,
        })
    }
    fn of_port(&self, port: u16) -> impl Iterator<Item = &Target> {
        self.0.iter().filter(move |target| target.permits_port(port))
    }
    /// Whether it is worth asking where a name leads: it is permitted, or some addresses with this port are.
    pub fn may_permit(&self, name: &str, port: u16) -> bool {
        self.of_port(port).any(|t| t.permits_name(name) || matches!(t.host, Host::Network(_)))
    }
    /// Whether this address is permitted to whoever asked for it or for a name that leads to it. `is_own` says that it is
    /// one of the server's own addresses: these must be listed, too.
    ///
    /// # Errors
    /// Why not.
    pub fn judge(
        &self,
        asked: Option<&str>,
        address: IpAddr,
        port: u16,
        is_own: bool,
    ) -> Result<(), Denied> {
        let address = meant(address);
        if let Some(what) = no_host(address) {
            return Err(Denied::NoHost(what));
        }
        let is_listed = self.of_port(port).any(|t| match &t.host {
            // Listing half of the Internet lists no machine of one's own.
            Host::Network(n) if is_own && n.prefix_len() < n.max_prefix_len() / 2 => {
                special(address).is_some() && t.lists(address)
            }
            _ => t.lists(address),
        });
        if is_listed {
            return Ok(());
        }
        // Without a name only `*` permits an address that is not listed.
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
