//! Listening TCP sockets.

use narrows_peers::{Error, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;

/// Listens for TCP connections; `flag` names the option in errors.
///
/// # Errors
/// The port is in use, or the address is not one of this machine's.
pub async fn tcp(flag: &str, address: SocketAddr) -> Result<TcpListener, Error> {
    bound(address).map_err(|e| {
        let why = match e.kind() {
            std::io::ErrorKind::AddrInUse => "another program listens there already",
            std::io::ErrorKind::AddrNotAvailable => "this machine does not have that address",
            std::io::ErrorKind::PermissionDenied => {
                "permission denied; ports from 1024 on are free to all"
            }
            _ => "cannot listen there",
        };
        Error::new(ErrorKind::Local, format!("{flag} {address}: {why}"))
    })
}

/// Listens at an address; an IPv6 wildcard also serves IPv4. Call it within a tokio runtime.
pub fn bound(address: SocketAddr) -> std::io::Result<TcpListener> {
    let listener = narrows_net::tcp_listener(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// The next connection of a listener, and its peer's address.
pub async fn accept(listener: &TcpListener) -> (TcpStream, IpAddr) {
    loop {
        match listener.accept().await {
            Ok((tcp, from)) => return (tcp, from.ip()),
            // Probably no descriptor is free; wait until other connections end.
            Err(_) => sleep(Duration::from_millis(50)).await,
        }
    }
}
