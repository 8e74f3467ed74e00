//! A namespace with access to other networks through a link. The link's far end is in the caller's namespace, which
//! forwards packets and translates their addresses.
//!
//! Changes there: an nftables table `narrowsN` for IPv4 and one for IPv6, `forwarding` of each interface where it is
//! off, and the settings of the link's own interface. All of it is undone when the last link that needs it ends.

use crate::error::Error;
use crate::link::{EmulatedLink, LinkOptions};
use crate::system::forwarding::{self, Forwarding};
use crate::system::namespace::Namespace;
use crate::system::nft::Tables;
use crate::system::{interface, leftovers};
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

const RESOLVER_FILE: &str = "/etc/resolv.conf";
/// Index of the link's IPv4 address that stands for the host's own resolver.
const RESOLVER: u32 = 3;

/// A namespace behind a link.
#[derive(Debug)]
pub struct Behind {
    link: Option<EmulatedLink>,
    tables: Option<Tables>,
    forwarding: Option<Forwarding>,
    namespace: Namespace,
    files: Vec<(PathBuf, PathBuf)>,
}

impl Behind {
    /// Creates a namespace (A) that reaches all other networks through the link. The calling thread's namespace is at
    /// the other end (B), so the forward direction leads out.
    ///
    /// # Errors
    /// As [`EmulatedLink::between`]; a kernel without nftables.
    pub fn new(options: LinkOptions) -> Result<Behind, Error> {
        let outside = Namespace::current()?;
        let namespace = Namespace::create("behind the link")?;
        let mut link = EmulatedLink::between(&namespace, &outside, options)?;
        link.slot().note(&leftovers::note(&namespace))?;
        let inner = link.a().clone();
        let outer = link.b().clone();
        let mut redirect = Vec::new();
        let host = link.slot().ipv4(2);
        // Servers that listen only on the loopback address are reached at the far end's address.
        redirect.push((host, Ipv4Addr::LOCALHOST));
        let mut files = Vec::new();
        if let Some((resolver, text)) = own_resolver(link.slot().ipv4(RESOLVER)) {
            redirect.push((link.slot().ipv4(RESOLVER), resolver));
            let file = link.slot().write_beside("resolv.conf", &text)?;
            files.push((PathBuf::from(RESOLVER_FILE), file));
        }
        let tables = Tables::create(&link.slot().name(), &inner.addresses, &redirect)?;
        // This setting of the link's own interface disappears with the interface.
        let setting = format!("/proc/sys/net/ipv4/conf/{}/route_localnet", outer.interface);
        fs::write(&setting, "1")
            .map_err(|e| Error::system(format_args!("cannot write {setting}"), &e))?;
        let forwarding = Forwarding::turn_on(link.slot())?;
        let behind = Behind {
            link: Some(link),
            tables: Some(tables),
            forwarding: Some(forwarding),
            namespace,
            files,
        };
        // If the host has no IPv6 route, programs should not try IPv6 first.
        let six = forwarding::has_ipv6();
        behind.namespace.enter(|| {
            for address in inner.addresses.iter().filter(|a| a.is_ipv4() || six) {
                let everything: IpAddr = match address {
                    IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                    IpAddr::V6(_) => std::net::Ipv6Addr::UNSPECIFIED.into(),
                };
                interface::add_route(everything, 0, &inner.interface, None)?;
            }
            Ok(())
        })??;
        Ok(behind)
    }

    /// The namespace for commands.
    pub fn namespace(&self) -> &Namespace {
        &self.namespace
    }

    /// Pairs of files; commands see the second in place of the first.
    pub fn files(&self) -> &[(PathBuf, PathBuf)] {
        &self.files
    }

    /// The running link; `None` only while this is being dropped.
    pub fn link(&self) -> Option<&EmulatedLink> {
        self.link.as_ref()
    }
}

impl Drop for Behind {
    fn drop(&mut self) {
        self.tables = None;
        // The slot is released with the link; forwarding counts the remaining slots.
        self.link = None;
        if let Some(forwarding) = self.forwarding.take() {
            forwarding.turn_off();
        }
    }
}

/// If the host's resolver has a loopback address: that address, and a `resolv.conf` with `instead` in its place.
fn own_resolver(instead: Ipv4Addr) -> Option<(Ipv4Addr, String)> {
    let text = fs::read_to_string(RESOLVER_FILE).ok()?;
    translated(&text, instead)
}

fn translated(text: &str, instead: Ipv4Addr) -> Option<(Ipv4Addr, String)> {
    let server = |line: &str| line.strip_prefix("nameserver")?.trim().parse::<IpAddr>().ok();
    let own = text.lines().filter_map(server).find(IpAddr::is_loopback)?;
    let IpAddr::V4(own) = own else {
        return Some((Ipv4Addr::LOCALHOST, replaced(text, instead)));
    };
    Some((own, replaced(text, instead)))
}

/// The text with `instead` in place of every name server with a loopback address.
fn replaced(text: &str, instead: Ipv4Addr) -> String {
    let mut out = String::new();
    let mut named = false;
    for line in text.lines() {
        let server = line.strip_prefix("nameserver").and_then(|s| s.trim().parse::<IpAddr>().ok());
        match server {
            Some(address) if address.is_loopback() => {
                if !named {
                    out += &format!("nameserver {instead}\n");
                }
                named = true;
            }
            _ => out += &format!("{line}\n"),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resolver_on_loopback_is_reached_by_the_links_address() {
        let instead = Ipv4Addr::new(198, 18, 0, 3);
        let text = "# systemd\nnameserver 127.0.0.53\nnameserver ::1\noptions edns0\nsearch lan\n";
        let (own, file) = translated(text, instead).unwrap();
        assert_eq!(own, Ipv4Addr::new(127, 0, 0, 53));
        assert_eq!(file, "# systemd\nnameserver 198.18.0.3\noptions edns0\nsearch lan\n");
        assert_eq!(
            translated("nameserver 192.0.2.1\n", instead),
            None,
            "reached over the link as it is"
        );
    }
}
