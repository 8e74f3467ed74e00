//! Interfaces of the calling thread's network namespace: up, addresses, routes.

use super::netlink::{CREATE, Netlink, NetlinkMessage, attributes};
use super::rights::{NET_ADMIN, failed};
use crate::error::Error;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};
use std::net::IpAddr;

const NEW_LINK: u16 = 16;
const NEW_ADDRESS: u16 = 20;
const OLD_ADDRESS: u16 = 21;
const NEW_ROUTE: u16 = 24;
const OLD_ROUTE: u16 = 25;
const FIND_ROUTE: u16 = 26;
const LINK_MTU: u16 = 4;
const LINK_QUEUE: u16 = 13;
const ADDRESS: u16 = 1;
const ADDRESS_LOCAL: u16 = 2;
const ROUTE_TO: u16 = 1;
const ROUTE_INTERFACE: u16 = 4;
const ROUTE_GATEWAY: u16 = 5;
const MAIN_TABLE: u8 = 254;
const STATIC: u8 = 4;
const UNICAST: u8 = 1;
/// Asks for the routing entry itself, not only for the next hop (`RTM_F_FIB_MATCH`).
const OF_ENTRY: u32 = 0x2000;
/// `IFA_F_NODAD`: the address is usable at once; a link has only two ends, so no duplicate is possible.
const NO_DUPLICATE_DETECTION: u8 = 2;
const UP: u32 = libc::IFF_UP as u32;
const MULTICAST: u32 = libc::IFF_MULTICAST as u32;
/// Length of a device's queue, in frames: long enough that drops happen in the emulated queue, not in the kernel's.
pub const QUEUE: u32 = 10_000;

fn family(address: IpAddr) -> u8 {
    if address.is_ipv4() { libc::AF_INET as u8 } else { libc::AF_INET6 as u8 }
}

fn bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(four) => four.octets().to_vec(),
        IpAddr::V6(six) => six.octets().to_vec(),
    }
}

fn index(name: &str) -> Result<u32, Error> {
    let socket = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    let index = socket.and_then(|socket| netdevice::name_to_index(&socket, name));
    index.map_err(|e| Error::system(format_args!("there is no interface {name}"), &e.into()))
}

fn request(what: &str, message: NetlinkMessage) -> Result<(), Error> {
    let done = Netlink::route().and_then(|mut netlink| netlink.request(message));
    done.map_err(|e| failed(what, &e, NET_ADMIN))
}

fn link(index: u32, flags: u32, change: u32) -> NetlinkMessage {
    let mut fixed = [0; 16];
    for (at, value) in [(4, index), (8, flags), (12, change)] {
        if let Some(place) = fixed.get_mut(at..at + 4) {
            place.copy_from_slice(&value.to_ne_bytes());
        }
    }
    NetlinkMessage::new(NEW_LINK, 0).fixed(&fixed)
}

/// Sets an interface up.
///
/// # Errors
/// No such interface, or no permission.
pub fn up(name: &str) -> Result<(), Error> {
    request(&format!("cannot take the interface {name} up"), link(index(name)?, UP, UP))
}

/// Sets a TUN device up with this MTU and a long queue. The kernel sends no packets of its own (router solicitations,
/// multicast reports) into it, since those would change the random draws of the user's packets.
///
/// # Errors
/// No such interface, or no permission.
pub fn up_tun(name: &str, mtu: u32) -> Result<(), Error> {
    // Without IPv6 the file does not exist, and no such packets are sent.
    let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{name}/addr_gen_mode"), "1");
    let message = link(index(name)?, UP, UP | MULTICAST)
        .attribute(LINK_MTU, &mtu.to_ne_bytes())
        .attribute(LINK_QUEUE, &QUEUE.to_ne_bytes());
    request(&format!("cannot take the interface {name} up"), message)
}

/// Changes the MTU of an interface that is up.
///
/// # Errors
/// No such interface, no permission, or an MTU out of range.
pub fn set_mtu(name: &str, mtu: u32) -> Result<(), Error> {
    let message = link(index(name)?, 0, 0).attribute(LINK_MTU, &mtu.to_ne_bytes());
    request(&format!("cannot give {name} the MTU {mtu}"), message)
}

fn address_message(kind: u16, flags: u16, at: u32, address: IpAddr, prefix: u8) -> NetlinkMessage {
    let no_detection = if address.is_ipv6() { NO_DUPLICATE_DETECTION } else { 0 };
    let mut fixed = vec![family(address), prefix, no_detection, 0];
    fixed.extend(at.to_ne_bytes());
    NetlinkMessage::new(kind, flags)
        .fixed(&fixed)
        .attribute(ADDRESS, &bytes(address))
        .attribute(ADDRESS_LOCAL, &bytes(address))
}

/// Adds an address to an interface.
///
/// # Errors
/// The interface has the address already, or no permission.
pub fn add_address(name: &str, address: IpAddr, prefix: u8) -> Result<(), Error> {
    let message = address_message(NEW_ADDRESS, CREATE, index(name)?, address, prefix);
    request(&format!("cannot give {name} the address {address}"), message)
}

/// Removes an address from an interface.
///
/// # Errors
/// The interface does not have the address, or no permission.
pub fn remove_address(name: &str, address: IpAddr, prefix: u8) -> Result<(), Error> {
    let message = address_message(OLD_ADDRESS, 0, index(name)?, address, prefix);
    request(&format!("cannot take the address {address} from {name}"), message)
}

fn route_message(
    kind: u16,
    flags: u16,
    to: IpAddr,
    prefix: u8,
    at: u32,
    gateway: Option<IpAddr>,
) -> NetlinkMessage {
    let mut fixed = vec![family(to), prefix, 0, 0, MAIN_TABLE, STATIC, 0, UNICAST];
    fixed.extend([0; 4]);
    let mut message = NetlinkMessage::new(kind, flags).fixed(&fixed);
    if prefix > 0 {
        message = message.attribute(ROUTE_TO, &bytes(to));
    }
    if let Some(gateway) = gateway {
        message = message.attribute(ROUTE_GATEWAY, &bytes(gateway));
    }
    message.attribute(ROUTE_INTERFACE, &at.to_ne_bytes())
}

/// Adds a route to a network (`prefix` 0: a default route) through an interface, by a gateway if one is given.
///
/// # Errors
/// Such a route exists already, or no permission.
pub fn add_route(to: IpAddr, prefix: u8, name: &str, gateway: Option<IpAddr>) -> Result<(), Error> {
    let message = route_message(NEW_ROUTE, CREATE, to, prefix, index(name)?, gateway);
    request(&format!("cannot add a route to {to}/{prefix} through {name}"), message)
}

/// The route to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundRoute {
    /// Prefix length of the matching route: 0 for a default route.
    pub prefix: u8,
    /// The next hop, unless the address itself is a neighbour.
    pub gateway: Option<IpAddr>,
    /// Index of the outgoing interface.
    pub interface: u32,
}

/// Looks up the route to this address; `None` if it is unreachable. With `of_entry` the result has the route's prefix,
/// otherwise the next hop that is used now.
///
/// # Errors
/// The kernel does not answer.
pub fn find_route(to: IpAddr, of_entry: bool) -> Result<Option<FoundRoute>, Error> {
    let mut fixed = vec![family(to), if to.is_ipv4() { 32 } else { 128 }, 0, 0, 0, 0, 0, 0];
    fixed.extend(if of_entry { OF_ENTRY } else { 0 }.to_ne_bytes());
    let question =
        NetlinkMessage::question(FIND_ROUTE).fixed(&fixed).attribute(ROUTE_TO, &bytes(to));
    let answer = match Netlink::route().and_then(|mut netlink| netlink.ask(question)) {
        Ok(answer) => answer,
        Err(e) => match e.raw_os_error() {
            Some(
                libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ESRCH | libc::EINVAL | libc::EACCES,
            ) => return Ok(None),
            _ => return Err(Error::system(format_args!("cannot ask for the way to {to}"), &e)),
        },
    };
    let mut found = FoundRoute {
        prefix: answer.get(1).copied().unwrap_or_default(),
        gateway: None,
        interface: 0,
    };
    for (kind, value) in attributes(&answer, fixed.len()) {
        match (kind, value.len()) {
            (ROUTE_GATEWAY, 4) => {
                found.gateway = value.first_chunk::<4>().map(|b| IpAddr::from(*b));
            }
            (ROUTE_GATEWAY, 16) => {
                found.gateway = value.first_chunk::<16>().map(|b| IpAddr::from(*b));
            }
            (ROUTE_INTERFACE, _) => {
                found.interface = value.first_chunk().map_or(0, |b| u32::from_ne_bytes(*b));
            }
            _ => {}
        }
    }
    Ok(Some(found))
}

/// Adds a route to one address as [`find_route`] found it, or removes it.
///
/// # Errors
/// The route exists already, does not exist any more, or no permission.
pub fn keep_route(to: IpAddr, found: &FoundRoute, is_kept: bool) -> Result<(), Error> {
    let prefix = if to.is_ipv4() { 32 } else { 128 };
    let (kind, flags) = if is_kept { (NEW_ROUTE, CREATE) } else { (OLD_ROUTE, 0) };
    let message = route_message(kind, flags, to, prefix, found.interface, found.gateway);
    request(&format!("cannot keep the route to {to}"), message)
}
