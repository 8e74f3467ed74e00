//! For paths that block UDP: the same sealed datagrams within a TCP connection.
//!
//! ```text
//! either way: | length (2) | datagram | …
//! ```
//!
//! The far side extracts the datagrams and passes them to its own UDP socket, so that the rest is as over UDP: keys,
//! lists, streams, messages. A TCP connection lives as long as the rrtp connection that it carries. Before there is
//! one, its place is limited in time and number, as in the file service.

use crate::listen::accept;
use narrows_net::Connection;
use narrows_net::dial::{DialFailure, DialledAddress, first, until};
use narrows_net::openings::Openings;
use socket2::SockRef;
use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::oneshot::{Receiver, Sender, channel};
use tokio::time::{sleep, timeout};

/// Maximum size of an endpoint's datagram.
const MAX_DATAGRAM: usize = 2048;
/// Maximum number of bytes that are written at once.
const PIECE: usize = 32 << 10;
/// Limit on unsent bytes in TCP's send buffer: a longer queue would add delay that rrtp's sender cannot control.
const UNSENT: u32 = 64 << 10;
/// A TCP connection without incoming bytes is closed after this time; an idle tunnel sends every 15 s.
const SILENCE: Duration = Duration::from_secs(60);
/// Time for the endpoint to admit the client, including a few retries of the handshake.
pub(crate) const OPENING: Duration = Duration::from_secs(45);
/// Time for the last packets of an rrtp connection to leave.
const LINGER: Duration = Duration::from_secs(2);
/// Timeout of a client's attempt to connect.
const PATIENCE: Duration = Duration::from_secs(25);

/// Carries datagrams in both directions until the TCP connection ends.
pub async fn carry(mut tcp: TcpStream, udp: UdpSocket) -> Result<()> {
    let _ = tcp.set_nodelay(true);
    #[cfg(target_os = "linux")]
    let _ = SockRef::from(&tcp).set_tcp_notsent_lowat(UNSENT);
    let (read, write) = tcp.split();
    tokio::try_join!(unpack(read, &udp), pack(&udp, write)).map(drop)
}

async fn unpack(tcp: ReadHalf<'_>, udp: &UdpSocket) -> Result<()> {
    let mut tcp = BufReader::with_capacity(PIECE, tcp);
    let mut datagram = [0; MAX_DATAGRAM];
    loop {
        let one = async {
            let length = usize::from(tcp.read_u16().await?);
            let place = datagram.get_mut(..length).filter(|place| !place.is_empty());
            let place = place.ok_or(Error::from(ErrorKind::InvalidData))?;
            tcp.read_exact(place).await?;
            Ok::<_, Error>(length)
        };
        let length = timeout(SILENCE, one).await.map_err(|_| ErrorKind::TimedOut)??;
        // If the endpoint does not accept the datagram, it is lost, as on any path.
        let _ = udp.send(datagram.get(..length).unwrap_or_default()).await;
    }
}

async fn pack(udp: &UdpSocket, mut tcp: WriteHalf<'_>) -> Result<()> {
    let mut piece = Vec::with_capacity(PIECE);
    let mut datagram = [0; MAX_DATAGRAM];
    loop {
        // If the TCP connection is full, datagrams wait in the socket, which drops the excess.
        udp.readable().await?;
        piece.clear();
        while piece.len() + MAX_DATAGRAM + 2 <= PIECE {
            let Ok(length) = udp.try_recv(&mut datagram) else { break };
            piece.extend((length as u16).to_be_bytes());
            piece.extend(datagram.iter().take(length));
        }
        tcp.write_all(&piece).await?;
    }
}

/// A local UDP socket from which the endpoint at this address is reachable.
async fn beside(endpoint: SocketAddr) -> Result<UdpSocket> {
    let loopback: IpAddr = match endpoint.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let udp = UdpSocket::bind((loopback, 0)).await?;
    udp.connect((loopback, endpoint.port())).await?;
    Ok(udp)
}

/// TCP connections that do not carry an rrtp connection yet, by the UDP address that the endpoint sees.
#[derive(Default)]
pub(crate) struct Carriers(Mutex<HashMap<SocketAddr, Sender<Connection>>>);

impl Carriers {
    fn add(&self, at: SocketAddr) -> Receiver<Connection> {
        let (sender, admitted) = channel();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(at, sender);
        admitted
    }

    fn remove(&self, at: SocketAddr) -> Option<Sender<Connection>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&at)
    }

    /// Call this when the endpoint has admitted a connection: its TCP connection, if any, then stays open for as long.
    pub fn admitted(&self, connection: &Connection) {
        let at = connection.remote().map(|at| SocketAddr::new(at.ip().to_canonical(), at.port()));
        if let Some(sender) = at.and_then(|at| self.remove(at)) {
            // The TCP connection may have ended meanwhile.
            let _ = sender.send(connection.clone());
        }
    }
}

/// Passes datagrams from TCP connections to the endpoint at this UDP address; does not return. A connection ends unless
/// the endpoint admits its client within `opening`.
pub(crate) async fn serve(
    listener: &TcpListener,
    endpoint: SocketAddr,
    carriers: &Arc<Carriers>,
    opening: Duration,
) {
    let openings = Openings::new(crate::descriptors::openings());
    loop {
        let (tcp, from) = accept(listener).await;
        let place = openings.admit(from);
        let carriers = carriers.clone();
        tokio::spawn(async move {
            let Ok(udp) = beside(endpoint).await else { return };
            let Ok(at) = udp.local_addr() else { return };
            let admitted = carriers.add(at);
            let over = async {
                let connection = tokio::select! {
                    connection = admitted => connection,
                    () = place.given_up() => return,
                    () = sleep(opening) => return,
                };
                drop(place);
                if let Ok(connection) = connection {
                    connection.closed().await;
                    sleep(LINGER).await;
                }
            };
            // The client detects the end of the TCP connection by itself.
            tokio::select! {
                _ = carry(tcp, udp) => {}
                () = over => {}
            }
            carriers.remove(at);
        });
    }
}

/// A TCP connection, and the local UDP socket through which an endpoint uses it.
type TcpCarrier = (TcpStream, UdpSocket);

/// Connects over TCP to the first of a server's addresses that answers.
///
/// # Errors
/// None answers.
pub async fn connect(
    servers: &[SocketAddr],
) -> std::result::Result<DialledAddress<TcpCarrier, Error>, DialFailure<Error>> {
    let attempt = |server| async move {
        let tcp = timeout(PATIENCE, TcpStream::connect(server)).await;
        let tcp = tcp.unwrap_or(Err(ErrorKind::TimedOut.into()))?;
        let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        Ok((tcp, udp))
    };
    first(servers, attempt, |_| false, until).await
}
