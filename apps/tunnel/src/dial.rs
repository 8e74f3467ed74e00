//! Resolves a name, checks each of its addresses, and connects.
//!
//! A name is looked up once, and only addresses that were checked are connected to. A later change of the name's
//! addresses (DNS rebinding) therefore has no effect.

use crate::address::embedded;
use crate::allow::{Denied, Targets, name};
use crate::request::Refusal;
use narrows_net::dial::{DialFailure, first, ordered, until};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Timeout of a lookup, and of an attempt to connect.
const PATIENCE: Duration = Duration::from_secs(10);

/// A name lookup; it may block.
pub type Lookup = Arc<dyn Fn(&str) -> io::Result<Vec<IpAddr>> + Send + Sync>;

/// The system's resolver.
pub fn system() -> Lookup {
    Arc::new(|name| Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect()))
}

/// The permitted addresses of a requested host and port, in the order of attempts. Each lookup takes a permit of `lookups` until the resolver
/// returns.
///
/// # Errors
/// No address is permitted; contains the reason.
pub async fn resolve(
    targets: &Targets,
    lookup: &Lookup,
    lookups: &Arc<Semaphore>,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, Refusal> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return judged(targets, None, vec![address], port);
    }
    let name = name(host).ok_or(Refusal::NoSuchName)?;
    if !targets.may_permit(&name, port) {
        return Err(Refusal::NotAllowed);
    }
    let place = lookups.clone().acquire_owned().await.map_err(|_| Refusal::Failed)?;
    let lookup = lookup.clone();
    let asked = name.clone();
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
    let mut permitted = Vec::new();
    let mut why = None;
    for address in found {
        // For an IPv4-mapped address the kernel would connect to the IPv4 address.
        let address = address.to_canonical();
        match judge(targets, asked, address, port) {
            Ok(()) => permitted.push((address, port).into()),
            Err(Denied::NotPublic(_) | Denied::NoHost(_)) => why = Some(Refusal::NotPublic),
            Err(Denied::Unchecked) => why = why.or(Some(Refusal::Failed)),
            Err(Denied::NotListed) => why = why.or(Some(Refusal::NotAllowed)),
        }
    }
    match why {
        _ if !permitted.is_empty() => Ok(ordered(permitted, None)),
        Some(why) => Err(why),
        None => Err(Refusal::NoSuchName),
    }
}

/// Checks an address that was requested directly or by this name; see [`Targets::judge`].
///
/// # Errors
/// The reason why it is not permitted. An address that cannot be checked is not permitted.
pub fn judge(
    targets: &Targets,
    asked: Option<&str>,
    address: IpAddr,
    port: u16,
) -> Result<(), Denied> {
    judge_with(targets, asked, address, port, is_own)
}

/// As [`judge`], with this test for the server's own addresses.
fn judge_with(
    targets: &Targets,
    asked: Option<&str>,
    address: IpAddr,
    port: u16,
    is_own: impl Fn(IpAddr) -> io::Result<bool>,
) -> Result<(), Denied> {
    // A NAT64 router may return the packets to this machine.
    let address = targets.meant(address);
    // If no entry permits it, skip the system calls.
    targets.judge(asked, address, port, false)?;
    let is_own = |address| is_own(address).map_err(|_| Denied::Unchecked);
    targets.judge(asked, address, port, is_own(address)?)?;
    let IpAddr::V6(v6) = address else { return Ok(()) };
    for v4 in embedded(v6).into_iter().map(IpAddr::V4) {
        if is_own(v4)? {
            targets.judge(asked, v4, port, true)?;
        }
    }
    Ok(())
}

/// Whether a connection to this address, opened by a request for this host, is still permitted.
pub fn still_permits(targets: &Targets, host: &str, at: SocketAddr) -> bool {
    let asked = if host.parse::<IpAddr>().is_ok() { None } else { name(host) };
    judge(targets, asked.as_deref(), at.ip(), at.port()).is_ok()
}

/// Whether this machine itself receives packets for that address. No packet is sent. A socket can be bound only to such
/// addresses, including those that the kernel would not choose as a source.
///
/// # Errors
/// The system does not answer, or it is a broadcast address, to which a socket may not connect.
fn is_own(address: IpAddr) -> io::Result<bool> {
    match UdpSocket::bind((address, 0)) {
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::AddrNotAvailable => return is_anycast(address),
        Err(e) => return Err(e),
    }
    let source = source(address)?;
    // With `ip_nonlocal_bind` a socket can be bound to any address, including those for documentation.
    let foreign: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    };
    match UdpSocket::bind((foreign, 0)) {
        Ok(_) => Ok(source == Some(address)),
        Err(e) if e.kind() == ErrorKind::AddrNotAvailable => Ok(true),
        Err(e) => Err(e),
    }
}

/// Whether it is the subnet-router anycast address of a subnet of this machine (RFC 4291 section 2.6.1), here a /64.
fn is_anycast(address: IpAddr) -> io::Result<bool> {
    let IpAddr::V6(v6) = address else { return Ok(false) };
    let [subnet @ .., 0, 0, 0, 0] = v6.segments() else { return Ok(false) };
    let own = source(address)?;
    Ok(own.is_some_and(|own| matches!(own, IpAddr::V6(own) if own.segments().starts_with(&subnet))))
}

/// The source address of packets to this address; `None` if no route leads there.
fn source(address: IpAddr) -> io::Result<Option<IpAddr>> {
    let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any)?;
    match socket.connect((address, 9)) {
        Ok(()) => Ok(Some(socket.local_addr()?.ip())),
        Err(e) => match e.kind() {
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => Ok(None),
            _ => Err(e),
        },
    }
}

/// Connects to the first of these addresses that answers. Each attempt after the first takes a permit from `more`, and
/// is skipped if there is none.
///
/// # Errors
/// No address answers.
pub async fn tcp<P>(
    addresses: &[SocketAddr],
    more: impl Fn() -> Option<P>,
) -> Result<TcpStream, Refusal> {
    let more = &more;
    let attempt = |address| async move {
        let _descriptor = match addresses.first() {
            Some(first) if *first == address => None,
            _ => Some(more().ok_or(ErrorKind::Other)?),
        };
        TcpStream::connect(address).await
    };
    match timeout(PATIENCE, first(addresses, attempt, |_| false, until)).await {
        Ok(Ok(connected)) => Ok(connected.value),
        Ok(Err(DialFailure::Final(e))) => Err(cause(&e)),
        Ok(Err(DialFailure::All(failed))) => {
            Err(failed.last().map_or(Refusal::Unreachable, |failed| cause(&failed.cause)))
        }
        Err(_) => Err(Refusal::TimedOut),
    }
}

/// The reason for a failed attempt to connect.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Nat64Prefix;

    /// Addresses that lead to 9.9.9.9, which is the server's own, by translators and tunnels.
    #[test]
    fn own_address_within_ipv6_is_denied_unless_listed() {
        let local = "64:ff9b:1:fffe::/96".parse().unwrap();
        let judged = |allow: &[&str], nat64: &[Nat64Prefix], address: &str| {
            let entries = allow.iter().map(|target| target.parse().unwrap()).collect();
            let targets = Targets::new(entries).with_nat64(nat64.to_vec());
            let is_own = |address: IpAddr| Ok(address == IpAddr::from([9, 9, 9, 9]));
            judge_with(&targets, None, address.parse().unwrap(), 22, is_own)
        };
        let all = ["*:22", "[64:ff9b:1::/48]:22", "[2002::/16]:22", "[2001:470::/32]:22"];
        for address in [
            "9.9.9.9",
            "::ffff:9.9.9.9",
            "64:ff9b::9.9.9.9",
            "64:ff9b:1:fffe::9.9.9.9",
            "64:ff9b:1:909:9:900::",
            "2002:909:909::1",
            "2001:470::5efe:9.9.9.9",
            "2001:470::200:5efe:9.9.9.9",
        ] {
            assert!(judged(&all, &[], address).is_err(), "{address}");
        }
        let own = ["9.9.9.9:22", "[2002::/16]:22"];
        for address in ["64:ff9b::9.9.9.9", "2002:909:909::1"] {
            assert!(judged(&own, &[], address).is_ok(), "{address} is listed");
        }
        assert!(judged(&all, &[], "64:ff9b:1:fffe::8.8.8.8").is_ok());
        assert!(judged(&["*:22"], &[], "64:ff9b:1:fffe::8.8.8.8").is_err());
        assert!(judged(&["*:22"], &[local], "64:ff9b:1:fffe::8.8.8.8").is_ok());
        for address in ["64:ff9b:1:fffe::9.9.9.9", "64:ff9b:1:fffe::10.0.0.1"] {
            assert!(judged(&all, &[local], address).is_err(), "{address}");
        }
    }

    #[test]
    fn permitted_addresses_alternate_and_others_are_left_out() {
        let targets = ["[2001:db8::/32]:80", "192.0.2.7:80"].map(|target| target.parse().unwrap());
        let six = (1..20).map(|n| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n).into());
        let four = [[192, 0, 2, 6], [192, 0, 2, 7]].map(IpAddr::from);
        let found = six.chain(four).collect();
        let to = judged(&Targets::new(targets.to_vec()), Some("host"), found, 80).unwrap();
        let order: Vec<String> = to.iter().take(3).map(SocketAddr::to_string).collect();
        assert_eq!(order, ["[2001:db8::1]:80", "192.0.2.7:80", "[2001:db8::2]:80"]);
        assert_eq!(to.len(), 8);
    }

    #[test]
    fn own_addresses_are_found_and_others_are_not() {
        assert!(is_own([127, 0, 0, 1].into()).unwrap());
        // The kernel chooses 127.0.0.1 as the source to it, but receives packets for it nevertheless.
        assert!(is_own([127, 9, 9, 9].into()).unwrap());
        assert!(!is_own([192, 0, 2, 7].into()).unwrap());
        #[cfg(target_os = "linux")]
        assert!(is_own([127, 255, 255, 255].into()).is_err(), "a broadcast address");
    }
}
