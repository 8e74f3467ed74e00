//! From a name to addresses, each of them judged, and from these to a connection.
//!
//! A name is looked up once, and what is connected to is one of the addresses that were judged: a name that changes
//! its answer afterwards gains nothing.

use crate::allow::{Denied, Targets, name};
use crate::request::Refusal;
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// A lookup is given up after so long, and a connection that nobody answers.
const PATIENCE: Duration = Duration::from_secs(10);
/// The next address is tried beside the one before after so long (RFC 8305 section 5).
const STAGGER: Duration = Duration::from_millis(250);
/// Addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Where names lead, as the system says it; may block.
pub type Lookup = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// The system's resolver.
pub fn system() -> Lookup {
    Arc::new(|name| Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect()))
}

/// The addresses that somebody may connect to who asks for this host and port. Lookups take a place each of
/// `lookups`, until the resolver returns.
///
/// # Errors
/// There is none, and why.
pub async fn resolve(
    targets: &Targets,
    lookup: &Lookup,
    lookups: &Arc<Semaphore>,
    (host, port): (&str, u16),
) -> Result<Vec<SocketAddr>, Refusal> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return judged(targets, None, vec![address], port);
    }
    let name = name(host).ok_or(Refusal::NoSuchName)?;
    if !targets.may_permit(&name, port) {
        return Err(Refusal::NotAllowed);
    }
    let place = lookups.clone().acquire_owned().await.map_err(|_| Refusal::Failed)?;
    let (lookup, asked) = (lookup.clone(), name.clone());
    let looking = tokio::task::spawn_blocking(move || {
        let found = lookup(&asked);
        drop(place);
        found
    });
    let found = timeout(PATIENCE, looking).await.map_err(|_| Refusal::TimedOut)?;
    let found = found.map_err(|_| Refusal::Failed)?.map_err(|_| Refusal::NoSuchName)?;
    judged(targets, Some(&name), found, port)
}

fn judged(
    targets: &Targets,
    asked: Option<&str>,
    found: Vec<IpAddr>,
    port: u16,
) -> Result<Vec<SocketAddr>, Refusal> {
    let (mut permitted, mut why) = (Vec::new(), None);
    for address in found {
        // Of IPv4 in IPv6 the kernel would connect to the IPv4 address.
        let address = address.to_canonical();
        match judge(targets, asked, address, port) {
            Ok(()) if permitted.len() < MAX_ADDRESSES => permitted.push((address, port).into()),
            Ok(()) => {}
            Err(Denied::NotPublic(_)) => why = Some(Refusal::NotPublic),
            Err(Denied::NotListed) => why = why.or(Some(Refusal::NotAllowed)),
        }
    }
    match why {
        _ if !permitted.is_empty() => Ok(permitted),
        Some(why) => Err(why),
        None => Err(Refusal::NoSuchName),
    }
}

/// Whether an address is permitted to who asked for it, or for this name; see [`Targets::judge`].
///
/// # Errors
/// Why not.
pub fn judge(
    targets: &Targets,
    asked: Option<&str>,
    address: IpAddr,
    port: u16,
) -> Result<(), Denied> {
    targets.judge(asked, address, port, is_own(address.to_canonical()))
}

/// Whether this machine has that address: from there to itself the two ends are the same. Nothing is sent.
fn is_own(address: IpAddr) -> bool {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let local = UdpSocket::bind(any).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    local.is_ok_and(|local| local.ip() == address)
}

/// Connects to the first of these addresses that answers.
///
/// # Errors
/// None does.
pub async fn tcp(addresses: &[SocketAddr]) -> Result<TcpStream, Refusal> {
    let mut attempts: FuturesUnordered<_> = addresses
        .iter()
        .zip(0u32..)
        .map(|(address, place)| async move {
            sleep(STAGGER * place).await;
            TcpStream::connect(address).await
        })
        .collect();
    let mut last = Refusal::Unreachable;
    let any = async {
        while let Some(done) = attempts.next().await {
            match done {
                Ok(tcp) => return Ok(tcp),
                Err(e) => last = cause(&e),
            }
        }
        Err(last)
    };
    timeout(PATIENCE, any).await.unwrap_or(Err(Refusal::TimedOut))
}

/// Why the system could not connect.
pub fn cause(e: &io::Error) -> Refusal {
    match e.kind() {
        ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Refusal::Refused,
        ErrorKind::TimedOut => Refusal::TimedOut,
        ErrorKind::NetworkUnreachable
        | ErrorKind::HostUnreachable
        | ErrorKind::AddrNotAvailable => Refusal::Unreachable,
        _ => Refusal::Failed,
    }
}
