//! Where UDP does not pass: the same datagrams, sealed as they are, within a TCP connection.
//!
//! ```text
//! either way: | length (2) | datagram | …
//! ```
//!
//! The far side takes them out and hands them to its own UDP socket, so that everything else is as over UDP: keys,
//! lists, streams, messages. Whoever connects can do no more than who sends UDP packets.

use socket2::SockRef;
use std::collections::HashMap;
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::time::timeout;

/// Longest datagram of an endpoint.
const MAX_DATAGRAM: usize = 2048;
/// Bytes of datagrams that are written together.
const PIECE: usize = 32 << 10;
/// Bytes that TCP takes and has not sent: more would be a queue that the sender cannot see the end of.
const UNSENT: u32 = 64 << 10;
/// A connection on which nothing comes is over; an idle tunnel says something every 15 s.
const SILENCE: Duration = Duration::from_secs(60);
/// Connections of a server, and of one address.
const MAX_CONNECTIONS: usize = 256;
const MAX_OF_ADDRESS: usize = 16;
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

/// Connections of each address.
type Counts = Arc<Mutex<HashMap<IpAddr, usize>>>;

struct Counted(Counts, IpAddr);

impl Counted {
    fn new(counts: &Counts, from: IpAddr) -> Option<Counted> {
        let mut all = counts.lock().unwrap_or_else(PoisonError::into_inner);
        if all.values().sum::<usize>() >= MAX_CONNECTIONS {
            return None;
        }
        let own = all.entry(from).or_default();
        if *own >= MAX_OF_ADDRESS {
            return None;
        }
        *own += 1;
        Some(Counted(counts.clone(), from))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = all.get_mut(&self.1) {
            *own -= 1;
            if *own == 0 {
                all.remove(&self.1);
            }
        }
    }
}

/// Takes what comes over TCP to the endpoint at this UDP address, for ever.
pub async fn serve(listener: &TcpListener, endpoint: SocketAddr) {
    let counts = Counts::default();
    loop {
        let tcp = crate::listen::accept(listener).await;
        let Ok(from) = tcp.peer_addr() else { continue };
        let Some(counted) = Counted::new(&counts, from.ip().to_canonical()) else { continue };
        tokio::spawn(async move {
            if let Ok(udp) = beside(endpoint).await {
                // However it ends, the client learns it from its own end.
                let _ = carry(tcp, udp).await;
            }
            drop(counted);
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
