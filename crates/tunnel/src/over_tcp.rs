//! Where UDP does not pass: the same datagrams, sealed as they are, within a TCP connection.
//!
//! ```text
//! either way: | length (2) | datagram | …
//! ```
//!
//! The far side takes them out and hands them to its own UDP socket, so that everything else is as over UDP: keys,
//! lists, streams, messages. A TCP connection lives as long as the rrtp connection that it carries. Until there is one its
//! place is bounded, in time and in number, as that of an opening of the file service.

use crate::listen::accept;
use narrows_net::Connection;
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

/// Longest datagram of an endpoint.
const MAX_DATAGRAM: usize = 2048;
/// Bytes of datagrams that are written together.
const PIECE: usize = 32 << 10;
/// Bytes that TCP takes and has not sent: more would be a queue that the sender cannot see the end of.
const UNSENT: u32 = 64 << 10;
/// A connection on which nothing comes is over; an idle tunnel says something every 15 s.
const SILENCE: Duration = Duration::from_secs(60);
/// A client must be admitted by the endpoint within this time: it retries its handshake a few times.
const OPENING: Duration = Duration::from_secs(15);
/// The end of an rrtp connection has this long to leave.
const LINGER: Duration = Duration::from_secs(2);
/// A client gives up after so long.
const PATIENCE: Duration = Duration::from_secs(10);

/// Carries datagrams until the connection ends.
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
        // What the endpoint does not take is lost, as on any path.
        let _ = udp.send(datagram.get(..length).unwrap_or_default()).await;
    }
}

async fn pack(udp: &UdpSocket, mut tcp: WriteHalf<'_>) -> Result<()> {
    let mut piece = Vec::with_capacity(PIECE);
    let mut datagram = [0; MAX_DATAGRAM];
    loop {
        // Behind a full TCP connection datagrams wait in the socket, which drops those that are too many.
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

/// A UDP socket at which an endpoint with this address can be reached from here.
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

/// TCP connections that carry no rrtp connection yet, by the UDP address that the endpoint sees.
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

    /// The endpoint has admitted this connection: if a TCP connection carries it, that stays as long.
    pub fn admitted(&self, connection: &Connection) {
        let at = connection.remote().map(|at| SocketAddr::new(at.ip().to_canonical(), at.port()));
        if let Some(sender) = at.and_then(|at| self.remove(at)) {
            // Its TCP connection may have ended meanwhile.
            let _ = sender.send(connection.clone());
        }
    }
}

/// Takes what comes over TCP to the endpoint at this UDP address, for ever.
pub(crate) async fn serve(listener: &TcpListener, endpoint: SocketAddr, carriers: &Arc<Carriers>) {
    let openings = Openings::new(crate::descriptors::openings());
    loop {
        let (tcp, from) = accept(listener).await;
        let opening = openings.admit(from);
        let carriers = carriers.clone();
        tokio::spawn(async move {
            let Ok(udp) = beside(endpoint).await else { return };
            let Ok(at) = udp.local_addr() else { return };
            let admitted = carriers.add(at);
            let over = async {
                let connection = tokio::select! {
                    connection = admitted => connection,
                    () = opening.given_up() => return,
                    () = sleep(OPENING) => return,
                };
                drop(opening);
                if let Ok(connection) = connection {
                    connection.closed().await;
                    sleep(LINGER).await;
                }
            };
            // However it ends, the client learns it from its own end.
            tokio::select! {
                _ = carry(tcp, udp) => {}
                () = over => {}
            }
            carriers.remove(at);
        });
    }
}

/// A connection to a server that takes datagrams over TCP, and a UDP socket beside which an endpoint can use it.
///
/// # Errors
/// Nobody answers there.
pub async fn connect(server: SocketAddr) -> Result<(TcpStream, UdpSocket)> {
    let tcp = timeout(PATIENCE, TcpStream::connect(server)).await;
    let tcp = tcp.unwrap_or(Err(ErrorKind::TimedOut.into()))?;
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await?;
    Ok((tcp, udp))
}
