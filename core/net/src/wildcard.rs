//! Sockets at the wildcard address `[::]`, which serve IPv6 and IPv4.

use rustix::io::Errno;
use socket2::{Domain, Protocol, Socket, Type};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

/// Connections that wait to be accepted, as in tokio.
const BACKLOG: i32 = 1024;

/// Listens for TCP connections. An IPv6 wildcard also serves IPv4; without IPv6 it serves IPv4 alone.
///
/// # Errors
/// The address is in use or not local, or the system lacks such sockets.
pub fn tcp_listener(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = bound(address, Type::STREAM, Protocol::TCP)?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Binds to an address, as [`tcp_listener`].
pub(crate) fn bound(address: SocketAddr, kind: Type, protocol: Protocol) -> io::Result<Socket> {
    let raw = match Socket::new(Domain::for_address(address), kind, Some(protocol)) {
        Err(e) if lacks_family(&e) && address.ip() == Ipv6Addr::UNSPECIFIED => {
            return bound((Ipv4Addr::UNSPECIFIED, address.port()).into(), kind, protocol);
        }
        made => made?,
    };
    if address.ip() == Ipv6Addr::UNSPECIFIED {
        // A system without dual-stack sockets serves IPv6 alone.
        let _ = raw.set_only_v6(false);
    }
    #[cfg(unix)]
    if kind == Type::STREAM {
        // Otherwise the connections of an earlier process block the port for a minute.
        raw.set_reuse_address(true)?;
    }
    raw.bind(&address.into())?;
    Ok(raw)
}

/// Whether the system has no sockets of a family.
fn lacks_family(e: &io::Error) -> bool {
    e.raw_os_error() == Some(Errno::AFNOSUPPORT.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpStream, UdpSocket};

    #[test]
    fn ipv6_wildcard_serves_both_families() {
        let listener = tcp_listener((Ipv6Addr::UNSPECIFIED, 0).into()).unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let datagrams: UdpSocket =
            bound((Ipv6Addr::UNSPECIFIED, 0).into(), Type::DGRAM, Protocol::UDP).unwrap().into();
        let port = datagrams.local_addr().unwrap().port();
        let client = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        client.send_to(b"four", (Ipv4Addr::LOCALHOST, port)).unwrap();
        assert_eq!(datagrams.recv(&mut [0; 9]).unwrap(), 4);
        assert!(lacks_family(&Errno::AFNOSUPPORT.into()) && !lacks_family(&Errno::ACCESS.into()));
    }
}
