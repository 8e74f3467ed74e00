//! A local network interface or address from which a path of a connection leaves.

use crate::wildcard;
use narrows_base::SpecError;
use socket2::{Protocol, Type};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Where a path leaves this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LocalPath {
    /// An interface by its name. Its packets take the routes of this interface alone.
    Interface(String),
    /// A local address. On Linux its packets take the routes of its interface.
    Address(IpAddr),
}

impl fmt::Display for LocalPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LocalPath::Interface(name) => f.write_str(name),
            LocalPath::Address(address) => address.fmt(f),
        }
    }
}

impl LocalPath {
    /// Reads an address, or the name of one of this machine's interfaces.
    ///
    /// # Errors
    /// An address that no interface can have; no interface has this name.
    pub fn read(text: &str) -> Result<LocalPath, SpecError> {
        if let Ok(address) = text.parse::<IpAddr>() {
            if address.is_unspecified() || address.is_multicast() {
                let line = format!("{address} is no address of one interface");
                return Err(SpecError::new(line));
            }
            return Ok(LocalPath::Address(address));
        }
        let mut names = system::names();
        names.sort();
        names.dedup();
        if names.iter().any(|name| name == text) {
            return Ok(LocalPath::Interface(text.to_string()));
        }
        let shown = narrows_base::text::shown(text);
        if names.is_empty() {
            let line = format!("'{shown}' is no address; interfaces by name need Linux");
            return Err(SpecError::new(line));
        }
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        Err(SpecError::unknown("interface", &shown, &names))
    }

    /// Interfaces with a default route, in the order of its metric; without any, those that are up and have an address,
    /// except loopback. Empty if the system does not tell.
    pub fn all() -> Vec<LocalPath> {
        let mut routes = system::default_routes();
        routes.sort();
        let mut names: Vec<String> = routes.into_iter().map(|route| route.interface).collect();
        if names.is_empty() {
            names = system::up();
        }
        let mut paths: Vec<LocalPath> = Vec::new();
        for name in names {
            let path = LocalPath::Interface(name);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
        paths
    }

    /// Interfaces of devices, as of a network card or a modem, that are up with an address, but have no default route.
    /// Empty if the system does not tell.
    pub fn unrouted() -> Vec<LocalPath> {
        let routed = system::default_routes();
        let mut names = system::up();
        names.retain(|name| {
            system::is_device(name) && !routed.iter().any(|route| route.interface == *name)
        });
        names.sort();
        names.dedup();
        names.into_iter().map(LocalPath::Interface).collect()
    }

    /// The number of its interface; `None` if there is none now, or the system does not tell. An interface that is made
    /// anew under the same name has another number.
    pub fn interface_index(&self) -> Option<u32> {
        match self {
            LocalPath::Interface(name) => system::index_of(name),
            LocalPath::Address(address) => system::index_of(&system::name_of(*address)?),
        }
    }

    /// Checks that there is a route to a server's address from there. Sends no packet.
    ///
    /// # Errors
    /// As [`bind`](LocalPath::bind), or there is no route.
    pub fn check_route(&self, server: SocketAddr) -> io::Result<()> {
        self.bind(server.is_ipv6())?.connect(server)
    }

    /// Binds a socket at a free port, for servers of either family if `any_ipv6`.
    ///
    /// # Errors
    /// The address is not local, the interface is gone, or the system does not permit to bind to it.
    pub fn bind(&self, any_ipv6: bool) -> io::Result<UdpSocket> {
        let wildcard: IpAddr =
            if any_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let address = match self {
            LocalPath::Interface(_) => wildcard,
            LocalPath::Address(address) => *address,
        };
        let socket = wildcard::bound((address, 0).into(), Type::DGRAM, Protocol::UDP)?;
        match self {
            LocalPath::Interface(name) => system::bind_to(&socket, name)?,
            LocalPath::Address(address) => {
                // Without this, packets take the default route, whatever their source address.
                if let Some(name) = system::name_of(*address) {
                    system::bind_to(&socket, &name)?;
                }
            }
        }
        Ok(socket.into())
    }
}

/// A route to everywhere, ordered by its metric.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
struct DefaultRoute {
    metric: u32,
    interface: String,
}

impl DefaultRoute {
    /// Those of `/proc/net/route` (IPv4): columns Iface, Destination, Gateway, Flags, RefCnt, Use, Metric, Mask.
    fn of_ipv4(table: &str) -> Vec<DefaultRoute> {
        let route = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_default = words.get(1) == Some(&"00000000") && words.get(7) == Some(&"00000000");
            let metric = words.get(6)?.parse().ok()?;
            is_default.then_some(DefaultRoute { metric, interface: words.first()?.to_string() })
        };
        table.lines().filter_map(route).collect()
    }

    /// Those of `/proc/net/ipv6_route`: destination, its prefix length, source, its prefix length, next hop, metric,
    /// reference count, use count, flags, interface. Numbers are hexadecimal.
    fn of_ipv6(table: &str) -> Vec<DefaultRoute> {
        let route = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let is_default = words.get(1) == Some(&"00");
            let metric = u32::from_str_radix(words.get(5)?, 16).ok()?;
            let interface = words.get(9).filter(|name| **name != "lo")?.to_string();
            is_default.then_some(DefaultRoute { metric, interface })
        };
        table.lines().filter_map(route).collect()
    }
}

#[cfg(target_os = "linux")]
mod system {
    use super::DefaultRoute;
    use nix::ifaddrs::getifaddrs;
    use nix::net::if_::InterfaceFlags;
    use nix::sys::socket::{setsockopt, sockopt};
    use socket2::Socket;
    use std::ffi::OsString;
    use std::io;
    use std::net::IpAddr;

    pub fn names() -> Vec<String> {
        getifaddrs().map_or_else(|_| Vec::new(), |all| all.map(|i| i.interface_name).collect())
    }
    pub fn up() -> Vec<String> {
        let is_usable = |flags: InterfaceFlags| {
            flags.contains(InterfaceFlags::IFF_UP) && !flags.contains(InterfaceFlags::IFF_LOOPBACK)
        };
        let Ok(all) = getifaddrs() else { return Vec::new() };
        let has_address = |found: &nix::sys::socket::SockaddrStorage| {
            found.as_sockaddr_in().is_some() || found.as_sockaddr_in6().is_some()
        };
        let usable =
            all.filter(|i| is_usable(i.flags) && i.address.as_ref().is_some_and(has_address));
        usable.map(|i| i.interface_name).collect()
    }
    /// Whether it is no tunnel, bridge or other interface of software.
    pub fn is_device(name: &str) -> bool {
        std::path::Path::new("/sys/class/net").join(name).join("device").exists()
    }
    pub fn name_of(address: IpAddr) -> Option<String> {
        let has_it = |found: &nix::sys::socket::SockaddrStorage| match address {
            IpAddr::V4(v4) => found.as_sockaddr_in().is_some_and(|found| found.ip() == v4),
            IpAddr::V6(v6) => found.as_sockaddr_in6().is_some_and(|found| found.ip() == v6),
        };
        let mut all = getifaddrs().ok()?;
        all.find(|i| i.address.as_ref().is_some_and(has_it)).map(|i| i.interface_name)
    }
    pub fn default_routes() -> Vec<DefaultRoute> {
        let table = |name| std::fs::read_to_string(name).unwrap_or_default();
        let mut routes = DefaultRoute::of_ipv4(&table("/proc/net/route"));
        routes.extend(DefaultRoute::of_ipv6(&table("/proc/net/ipv6_route")));
        routes
    }
    pub fn index_of(name: &str) -> Option<u32> {
        nix::net::if_::if_nametoindex(name).ok()
    }
    pub fn bind_to(socket: &Socket, name: &str) -> io::Result<()> {
        Ok(setsockopt(socket, sockopt::BindToDevice, &OsString::from(name))?)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use socket2::Socket;
    use std::io;
    use std::net::IpAddr;

    pub fn names() -> Vec<String> {
        Vec::new()
    }
    pub fn up() -> Vec<String> {
        Vec::new()
    }
    pub fn is_device(_: &str) -> bool {
        false
    }
    pub fn name_of(_: IpAddr) -> Option<String> {
        None
    }
    pub fn index_of(_: &str) -> Option<u32> {
        None
    }
    pub fn default_routes() -> Vec<super::DefaultRoute> {
        Vec::new()
    }
    pub fn bind_to(_: &Socket, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_is_an_address_or_an_existing_interface() {
        let address: IpAddr = "127.0.0.2".parse().unwrap();
        assert_eq!(LocalPath::read("127.0.0.2"), Ok(LocalPath::Address(address)));
        for text in ["0.0.0.0", "::", "224.0.0.1", "no such", "", "192.0.2", "eth0=2"] {
            assert!(LocalPath::read(text).is_err(), "{text}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn unknown_interface_gets_a_suggestion() {
        assert_eq!(LocalPath::read("lo"), Ok(LocalPath::Interface("lo".into())));
        let line = LocalPath::read("l0").unwrap_err().to_string();
        assert!(line.contains("did you mean 'lo'"), "{line}");
    }

    #[test]
    fn default_routes_are_read_from_the_system_tables() {
        let ipv4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                    wwan0\t00000000\t0100A8C0\t0003\t0\t0\t700\t00000000\t0\t0\t0\n\
                    eth0\t00000000\t0100A8C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
                    eth0\t0000A8C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
        let zeros = "0".repeat(32);
        let ipv6 = format!(
            "{zeros} 00 {zeros} 00 fe80{z} 00000400 00000001 00000000 00000003 eth0\n\
             {zeros} 00 {zeros} 00 {zeros} ffffffff 00000001 00000000 00200200 lo\n",
            z = "0".repeat(28)
        );
        let named = |routes: Vec<DefaultRoute>| -> Vec<(u32, String)> {
            routes.into_iter().map(|route| (route.metric, route.interface)).collect()
        };
        let expected = vec![(700, "wwan0".to_string()), (100, "eth0".to_string())];
        assert_eq!(named(DefaultRoute::of_ipv4(ipv4)), expected);
        assert_eq!(named(DefaultRoute::of_ipv6(&ipv6)), vec![(1024, "eth0".to_string())]);
        assert_eq!(named(DefaultRoute::of_ipv4("eth0 00000000\n\u{0}")), vec![]);
        assert_eq!(named(DefaultRoute::of_ipv6("x")), vec![]);
    }

    #[test]
    fn address_of_another_machine_cannot_be_bound() {
        let here = LocalPath::read("127.0.0.1").unwrap();
        assert!(here.bind(false).unwrap().local_addr().unwrap().port() > 0);
        let elsewhere = LocalPath::read("192.0.2.77").unwrap();
        assert!(elsewhere.bind(false).is_err());
        assert!(here.check_route("127.0.0.1:1".parse().unwrap()).is_ok());
        assert!(here.check_route("[::1]:1".parse().unwrap()).is_err());
        assert!(elsewhere.check_route("127.0.0.1:1".parse().unwrap()).is_err());
    }
}
