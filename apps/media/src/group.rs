//! Addresses and sockets of multicast groups.

use narrows_congestion::layers::MAX_LAYERS;
use narrows_peers::{Error, ErrorKind};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::UdpSocket;

/// Receive buffer in bytes, for times in which this process does not run.
const RECEIVE_BUFFER: usize = 4 << 20;

/// Network interface of a group.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Interface {
    /// The system's default.
    #[default]
    Any,
    /// The interface with this address, for IPv4 groups.
    Address(Ipv4Addr),
    /// The interface with this index, for IPv6 groups.
    Number(u32),
}

/// Address of a layer's group: the base layer's address plus the layer's number.
///
/// # Errors
/// The base layer's or the resulting address is not a multicast address.
pub fn group(base: SocketAddr, layer: usize) -> Result<SocketAddr, String> {
    let bad =
        || format!("{base}: no address of a group, as 239.255.78.87:47480 or [ff15::4e57]:47480");
    let up = u32::try_from(layer).ok().filter(|_| layer < MAX_LAYERS).ok_or_else(bad)?;
    let address: Option<IpAddr> = match base.ip() {
        IpAddr::V4(ip) => ip.to_bits().checked_add(up).map(|bits| Ipv4Addr::from_bits(bits).into()),
        IpAddr::V6(ip) => {
            ip.to_bits().checked_add(up.into()).map(|bits| Ipv6Addr::from_bits(bits).into())
        }
    };
    let address = address.filter(|ip| ip.is_multicast() && base.port() != 0).ok_or_else(bad)?;
    Ok(SocketAddr::new(address, base.port()))
}

fn failed(what: &str, at: SocketAddr, e: &io::Error) -> Error {
    Error::new(ErrorKind::Local, format!("--multicast {at}: {what}: {e}"))
}

fn socket(of: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(of), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// A socket that sends to groups, over at most `ttl` hops.
///
/// # Errors
/// An error of the system, or no such interface.
pub fn sending(base: SocketAddr, interface: Interface, ttl: u8) -> Result<UdpSocket, Error> {
    let made = || {
        let socket = socket(base)?;
        if base.is_ipv4() {
            socket.set_multicast_ttl_v4(ttl.into())?;
            if let Interface::Address(address) = interface {
                socket.set_multicast_if_v4(&address)?;
            }
        } else {
            socket.set_multicast_hops_v6(ttl.into())?;
            if let Interface::Number(number) = interface {
                socket.set_multicast_if_v6(number)?;
            }
        }
        UdpSocket::from_std(socket.into())
    };
    made().map_err(|e| failed("cannot send there", base, &e))
}

/// A socket that receives only the groups that it joins.
///
/// # Errors
/// An error of the system.
pub fn hearing(base: SocketAddr) -> Result<UdpSocket, Error> {
    let made = || {
        let socket = socket(base)?;
        // Several receivers may run on one machine.
        socket.set_reuse_address(true)?;
        let any: IpAddr = match base {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        #[cfg(target_os = "linux")]
        if base.is_ipv4() {
            socket.set_multicast_all_v4(false)?;
        } else {
            socket.set_only_v6(true)?;
            socket.set_multicast_all_v6(false)?;
        }
        // If the system's limit is lower, it applies that limit.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        socket.bind(&SockAddr::from(SocketAddr::new(any, base.port())))?;
        UdpSocket::from_std(socket.into())
    };
    made().map_err(|e| failed("cannot listen there", base, &e))
}

/// Joins or leaves a group.
///
/// # Errors
/// An error of the system, or no such interface.
pub fn set_member(
    socket: &UdpSocket,
    group: SocketAddr,
    interface: Interface,
    is_member: bool,
) -> Result<(), Error> {
    let socket = socket2::SockRef::from(socket);
    let done = match (group.ip(), is_member) {
        (IpAddr::V4(ip), _) => {
            let at = match interface {
                Interface::Address(address) => address,
                _ => Ipv4Addr::UNSPECIFIED,
            };
            if is_member {
                socket.join_multicast_v4(&ip, &at)
            } else {
                socket.leave_multicast_v4(&ip, &at)
            }
        }
        (IpAddr::V6(ip), _) => {
            let number = if let Interface::Number(number) = interface { number } else { 0 };
            if is_member {
                socket.join_multicast_v6(&ip, number)
            } else {
                socket.leave_multicast_v6(&ip, number)
            }
        }
    };
    done.map_err(|e| failed(if is_member { "cannot join" } else { "cannot leave" }, group, &e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_layer_has_the_next_address() {
        let of = |base: &str, layer| group(base.parse().unwrap(), layer).map(|g| g.to_string());
        assert_eq!(of("239.255.78.87:5000", 0).unwrap(), "239.255.78.87:5000");
        assert_eq!(of("239.255.78.255:5000", 1).unwrap(), "239.255.79.0:5000");
        assert_eq!(of("[ff15::4e57]:5000", 3).unwrap(), "[ff15::4e5a]:5000");
        for base in ["10.0.0.1:5000", "239.255.255.255:5000", "239.255.0.1:0", "[::1]:5000"] {
            assert!(of(base, 7).is_err(), "{base}");
        }
        assert_eq!(of("239.255.255.255:1", 7).ok(), None, "the next is no group");
    }
}
