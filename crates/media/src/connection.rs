//! How the connections of both ends behave, and the local sockets beside them.

use narrows_base::{Duration, Time};
use narrows_files::{Error, Kind};
use narrows_net::{ApplicationProtocols, Connection};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::streams::Limits;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::task::Poll;
use tokio::net::UdpSocket;

/// A peer that says nothing for so long has vanished.
const IDLE_TIMEOUT: Duration = Duration::from_secs(15);
const KEEP_ALIVE: Duration = Duration::from_secs(4);
/// Messages that wait to be read; a busy machine reads late.
const MESSAGES_HELD: usize = 4096;
/// Bytes that wait in a local socket while this process waits for the processor.
const RECEIVE_BUFFER: usize = 4 << 20;
/// Longest datagram of a program.
pub const MAX_DATAGRAM: usize = 65_535;
/// The code of connections whose end was stopped.
pub const STOPPED: u64 = 256;
/// The code of those that are closed for a newer one of the same peer.
pub const REPLACED: u64 = 257;
/// The code of those whose end says nothing that a sender of media says.
pub const REFUSED: u64 = 258;
/// The code of receivers' connections that are closed since another receives.
pub const BUSY: u64 = 259;

/// A connection with media, of [`PUSH`](crate::hello::PUSH) or [`PULL`](crate::hello::PULL): its peers send messages and one
/// small stream.
///
/// # Errors
/// If the name of the application protocol were none.
pub fn for_media(config: ConnectionConfig, application: &str) -> Result<ConnectionConfig, Error> {
    let applications = ApplicationProtocols::new([application])
        .map_err(|e| Error::new(Kind::Local, e.to_string()))?;
    let limits = Limits { data: 1 << 16, stream: 1 << 16, both: 1, one_way: 0 };
    Ok(ConnectionConfig {
        applications,
        limits,
        idle_timeout: IDLE_TIMEOUT,
        keep_alive: KEEP_ALIVE,
        max_message: config.max_datagram,
        messages_held: MESSAGES_HELD,
        ..config
    })
}

/// The next message, and when its packet arrived.
///
/// # Errors
/// The connection is over.
pub async fn message(connection: &Connection) -> Result<(Time, Vec<u8>), narrows_net::Error> {
    let message = poll_fn(|context| connection.poll_whole_message(context)).await?;
    Ok((message.at, message.bytes))
}

/// Sleeps until then by a connection's clock; for `Time::NEVER`, for ever.
pub async fn until(connection: &Connection, time: Time) {
    if time.is_never() {
        return std::future::pending().await;
    }
    let left = time.since(connection.now()).as_nanos();
    // Timers are exact to a millisecond, and late rather than early.
    if left > 0 {
        tokio::time::sleep(std::time::Duration::from_nanos(left)).await;
    }
}

/// Until one of these sockets has something to read.
pub async fn readable(sockets: &[UdpSocket]) {
    poll_fn(|context| {
        // All are asked, so that each wakes this task.
        let ready = sockets.iter().filter(|s| s.poll_recv_ready(context).is_ready()).count();
        if ready > 0 { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// A local UDP socket of this flag.
///
/// # Errors
/// The port is in use, or not ours.
pub async fn bind(flag: &str, address: SocketAddr) -> Result<UdpSocket, Error> {
    let socket = UdpSocket::bind(address).await.map_err(|e| {
        let why = match e.kind() {
            std::io::ErrorKind::AddrInUse => "somebody listens there already",
            std::io::ErrorKind::AddrNotAvailable => "this machine does not have that address",
            std::io::ErrorKind::PermissionDenied => {
                "permission denied; ports from 1024 on are free to all"
            }
            _ => "cannot listen there",
        };
        Error::new(Kind::Local, format!("{flag} {address}: {why}"))
    })?;
    // Where the system permits less, it takes what it permits.
    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(RECEIVE_BUFFER);
    Ok(socket)
}
