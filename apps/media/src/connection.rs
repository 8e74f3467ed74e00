//! Settings of the connections of both ends, and the local sockets.

use narrows_base::{Duration, Time};
use narrows_net::{ApplicationProtocols, Connection};
use narrows_peers::{Error, ErrorKind};
use narrows_transport::connection::{ConnectionConfig, MAX_PATHS};
use narrows_transport::streams::FlowControlLimits;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::task::Poll;
use tokio::net::UdpSocket;

/// Idle timeout of a connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
const KEEP_ALIVE: Duration = Duration::from_secs(4);
/// Messages that may wait to be read; large, since a busy machine reads late.
const MESSAGES_HELD: usize = 4096;
/// Receive buffer of a local socket in bytes, for times in which this process does not run.
pub(crate) const RECEIVE_BUFFER: usize = 4 << 20;
/// Maximum size of a program's datagram, in bytes.
pub const MAX_DATAGRAM: usize = 65_535;
/// Close code: the end was stopped.
pub const STOPPED: u64 = 256;
/// Close code: the same peer has opened a newer connection.
pub const REPLACED: u64 = 257;
/// Close code: the peer did not send a valid hello.
pub const REFUSED: u64 = 258;
/// Close code for a receiver's connection: another receiver is being served.
pub const BUSY: u64 = 259;

/// Settings for media with [`PUSH`](crate::hello::PUSH) or [`PULL`](crate::hello::PULL): peers may send messages and
/// one small stream.
///
/// # Errors
/// `application` is not a valid name of an application protocol.
pub fn for_media(config: ConnectionConfig, application: &str) -> Result<ConnectionConfig, Error> {
    let applications = ApplicationProtocols::new([application])
        .map_err(|e| Error::new(ErrorKind::Local, e.to_string()))?;
    let limits = FlowControlLimits { data: 1 << 16, stream: 1 << 16, both: 1, one_way: 0 };
    Ok(ConnectionConfig {
        applications,
        limits,
        idle_timeout: IDLE_TIMEOUT,
        keep_alive: KEEP_ALIVE,
        max_message: config.max_datagram,
        messages_held: MESSAGES_HELD,
        paths: MAX_PATHS,
        ..config
    })
}

/// The next message, with its packet's arrival time.
///
/// # Errors
/// The connection is over.
pub async fn message(connection: &Connection) -> Result<(Time, Vec<u8>), narrows_net::Error> {
    let message = poll_fn(|context| connection.poll_whole_message(context)).await?;
    Ok((message.at, message.bytes))
}

/// Sleeps until `time` of the connection's clock; for ever if it is `Time::NEVER`.
pub async fn until(connection: &Connection, time: Time) {
    if time.is_never() {
        return std::future::pending().await;
    }
    let left = time.since(connection.now()).as_nanos();
    // Timers have a resolution of a millisecond, and fire late rather than early.
    if left > 0 {
        tokio::time::sleep(std::time::Duration::from_nanos(left)).await;
    }
}

/// Waits until one of these sockets is readable.
pub async fn readable(sockets: &[UdpSocket]) {
    poll_fn(|context| {
        // Poll all of them, so that each can wake this task.
        let ready = sockets.iter().filter(|s| s.poll_recv_ready(context).is_ready()).count();
        if ready > 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// Binds a local UDP socket; `flag` names the option in errors.
///
/// # Errors
/// The port is in use, or the address is not one of this machine's.
pub async fn bind(flag: &str, address: SocketAddr) -> Result<UdpSocket, Error> {
    let socket = UdpSocket::bind(address).await.map_err(|e| {
        let why = match e.kind() {
            std::io::ErrorKind::AddrInUse => "another program listens there already",
            std::io::ErrorKind::AddrNotAvailable => "this machine does not have that address",
            std::io::ErrorKind::PermissionDenied => {
                "permission denied; ports from 1024 on are free to all"
            }
            _ => "cannot listen there",
        };
        Error::new(ErrorKind::Local, format!("{flag} {address}: {why}"))
    })?;
    // If the system's limit is lower, it applies that limit.
    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER);
    Ok(socket)
}
