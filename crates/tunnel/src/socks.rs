//! SOCKS 5 (RFC 1928) without authentication: CONNECT and UDP ASSOCIATE.
//!
//! Reading is pure: a function takes the bytes that are there, and says what they mean or that more are needed.

use crate::client::{NotOpened, Tunnel};
use crate::datagrams::Programs;
use crate::flow::MAX_DATAGRAM;
use crate::head;
use crate::listen::accept;
use crate::pipe;
use crate::request::{Kind, Refusal, Request};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

const VERSION: u8 = 5;
/// Longest greeting, and longest request.
const MAX_HEAD: usize = 2 + 255 + 4 + 1 + 255 + 2;

/// What a program wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Asked {
    /// A connection, or a flow for one datagram.
    Target(Request),
    /// A port for datagrams.
    Associate,
}

/// What is wrong, as a reply says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wrong(pub u8);

/// The length of a greeting, and whether it offers to go without authentication; `None` if more bytes are needed.
///
/// # Errors
/// It is no greeting of SOCKS 5.
pub fn greeting(bytes: &[u8]) -> Result<Option<(usize, bool)>, Wrong> {
    match bytes {
        [] | [VERSION] => Ok(None),
        [VERSION, count, rest @ ..] => {
            let methods = rest.get(..usize::from(*count));
            Ok(methods.map(|methods| (2 + methods.len(), methods.contains(&0))))
        }
        _ => Err(Wrong(1)),
    }
}

/// The length of a request, and what it asks for; `None` if more bytes are needed.
///
/// # Errors
/// It is none, or asks for what there is not; the reply's code.
pub fn request(bytes: &[u8]) -> Result<Option<(usize, Asked)>, Wrong> {
    let Some((start, _)) = bytes.split_first_chunk::<3>() else { return Ok(None) };
    let command = match start {
        [VERSION, command @ (1 | 3), _] => *command,
        [VERSION, ..] => return Err(Wrong(7)),
        _ => return Err(Wrong(1)),
    };
    let Some((length, host, port)) = address(bytes.get(3..).unwrap_or_default())? else {
        return Ok(None);
    };
    let asked = match command {
        3 => Asked::Associate,
        _ if port == 0 => return Err(Wrong(1)),
        _ => Asked::Target(Request::tcp(&host, port)),
    };
    Ok(Some((3 + length, asked)))
}

/// The length of an address, its host and its port.
fn address(bytes: &[u8]) -> Result<Option<(usize, String, u16)>, Wrong> {
    let (host, rest, length) = match bytes {
        [1, a, b, c, d, rest @ ..] => (Ipv4Addr::new(*a, *b, *c, *d).to_string(), rest, 5),
        [4, rest @ ..] if rest.len() >= 16 => {
            let Some((address, rest)) = rest.split_first_chunk::<16>() else { return Ok(None) };
            (Ipv6Addr::from(*address).to_string(), rest, 17)
        }
        [3, count, rest @ ..] if rest.len() >= usize::from(*count) => {
            let (name, rest) = rest.split_at(usize::from(*count));
            let is_host = !name.is_empty() && name.iter().all(u8::is_ascii_graphic);
            let name = std::str::from_utf8(name).ok().filter(|_| is_host).ok_or(Wrong(1))?;
            (name.to_string(), rest, 2 + name.len())
        }
        [] | [1 | 3 | 4, ..] => return Ok(None),
        _ => return Err(Wrong(8)),
    };
    let port = rest.split_first_chunk::<2>();
    Ok(port.map(|(port, _)| (length + 2, host, u16::from_be_bytes(*port))))
}

/// A datagram of an associated program: the length of its head, and where to. Fragments are not put together.
pub fn datagram(bytes: &[u8]) -> Option<(usize, Request)> {
    let [0, 0, 0, rest @ ..] = bytes else { return None };
    let (length, host, port) = address(rest).ok()??;
    (port > 0).then(|| (3 + length, Request { kind: Kind::Udp, host, port }))
}

fn code(why: NotOpened) -> u8 {
    match why {
        NotOpened::Refused(Refusal::NotAllowed | Refusal::NotPublic) => 2,
        NotOpened::Refused(Refusal::NoSuchName | Refusal::TimedOut) => 4,
        NotOpened::Refused(Refusal::Unreachable) | NotOpened::NoTunnel => 3,
        NotOpened::Refused(Refusal::Refused) => 5,
        NotOpened::Refused(_) => 1,
    }
}

fn reply(code: u8, at: SocketAddr) -> Vec<u8> {
    let mut bytes = vec![VERSION, code, 0];
    match at.ip() {
        IpAddr::V4(address) => {
            bytes.push(1);
            bytes.extend(address.octets());
        }
        IpAddr::V6(address) => {
            bytes.push(4);
            bytes.extend(address.octets());
        }
    }
    bytes.extend(at.port().to_be_bytes());
    bytes
}

/// An address that says nothing.
fn nowhere() -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, 0).into()
}

/// Serves all programs of a port.
pub async fn run(tunnel: Arc<Tunnel>, listener: TcpListener) {
    loop {
        let tcp = accept(&listener).await;
        let tunnel = tunnel.clone();
        tokio::spawn(async move {
            // Who does not speak SOCKS, or goes in the middle, gets no more than a closed connection.
            let _ = serve(tunnel, tcp).await;
        });
    }
}

async fn serve(tunnel: Arc<Tunnel>, mut tcp: TcpStream) -> std::io::Result<()> {
    let _ = tcp.set_nodelay(true);
    let mut bytes = Vec::new();
    let Ok(may) = head::read(&mut tcp, &mut bytes, MAX_HEAD, greeting).await? else {
        return Ok(());
    };
    tcp.write_all(&[VERSION, if may { 0 } else { 0xff }]).await?;
    if !may {
        return Ok(());
    }
    match head::read(&mut tcp, &mut bytes, MAX_HEAD, request).await? {
        Err(Wrong(code)) => tcp.write_all(&reply(code, nowhere())).await,
        Ok(Asked::Associate) => associate(tunnel, tcp).await,
        Ok(Asked::Target(target)) => match tunnel.open(&target).await {
            Ok((_link, (mut send, receive))) => {
                tcp.write_all(&reply(0, nowhere())).await?;
                pipe::prepare(&tcp);
                // What came behind the request.
                if send.send_all(&bytes).await.is_ok() {
                    pipe::run(tcp, (send, receive), true).await;
                }
                Ok(())
            }
            Err(why) => {
                tunnel.tell(&format!("{}: {why}", target.shown()));
                tcp.write_all(&reply(code(why), nowhere())).await
            }
        },
    }
}

/// A socket for the datagrams of one program, for as long as its connection stays.
async fn associate(tunnel: Arc<Tunnel>, mut tcp: TcpStream) -> std::io::Result<()> {
    let (own, program) = (tcp.local_addr()?.ip(), tcp.peer_addr()?.ip());
    let socket = Arc::new(UdpSocket::bind((own, 0)).await?);
    tcp.write_all(&reply(0, socket.local_addr()?)).await?;
    let mut programs = Programs::new(tunnel, socket.clone());
    let mut bytes = vec![0; MAX_DATAGRAM];
    let mut source = None;
    let mut closed = [0];
    loop {
        tokio::select! {
            came = socket.recv_from(&mut bytes) => {
                let Ok((length, from)) = came else { continue };
                // One program, and nobody beside it.
                if from.ip() != program || *source.get_or_insert(from) != from {
                    continue;
                }
                let bytes = bytes.get(..length).unwrap_or_default();
                if let Some((at, target)) = datagram(bytes) {
                    let (head, datagram) = bytes.split_at(at);
                    programs.sent(from, &target, datagram, head);
                }
            }
            read = tcp.read(&mut closed) => {
                if !matches!(read, Ok(1..)) {
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn requests_are_read_as_the_rfc_writes_them() {
        let target = |host: &str, port| Ok(Some(Asked::Target(Request::tcp(host, port))));
        let asked = |bytes: &[u8]| request(bytes).map(|r| r.map(|(_, asked)| asked));
        assert_eq!(greeting(&[5, 2, 0, 2]), Ok(Some((4, true))));
        assert_eq!(greeting(&[5, 1, 2]), Ok(Some((3, false))));
        assert_eq!((greeting(&[5, 2, 0]), greeting(&[4, 1])), (Ok(None), Err(Wrong(1))));
        assert_eq!(asked(&[5, 1, 0, 1, 10, 0, 0, 1, 0, 80]), target("10.0.0.1", 80));
        assert_eq!(asked(b"\x05\x01\x00\x03\x04host\x01\xbb"), target("host", 443));
        let six = [&[5, 1, 0, 4][..], &[0; 15], &[1, 0, 22]].concat();
        assert_eq!(asked(&six), target("::1", 22));
        assert_eq!(asked(&[5, 3, 0, 1, 0, 0, 0, 0, 0, 0]), Ok(Some(Asked::Associate)));
        assert_eq!(asked(&[5, 2, 0]), Err(Wrong(7)), "BIND");
        assert_eq!(asked(&[5, 1, 0, 9]), Err(Wrong(8)));
        assert_eq!(asked(b"\x05\x01\x00\x03\x00\x01\xbb"), Err(Wrong(1)));
        assert_eq!(asked(b"\x05\x01\x00\x03\x02a\n\x01\xbb"), Err(Wrong(1)));
        let sent = [0, 0, 0, 1, 9, 9, 9, 9, 0, 53, b'?'];
        assert_eq!(datagram(&sent), Some((10, Request::udp("9.9.9.9", 53))));
        assert_eq!(datagram(&[0, 0, 1, 1, 9, 9, 9, 9, 0, 53]), None, "a fragment");
    }

    proptest! {
        /// Nothing is read from less than it takes, and more behind it changes nothing.
        #[test]
        fn what_is_read_does_not_depend_on_how_it_comes(mut bytes in prop::collection::vec(any::<u8>(), 0..600), kind in 0u8..5) {
            for (at, byte) in [5, 1, 0, kind].iter().enumerate() {
                if let Some(place) = bytes.get_mut(at) {
                    *place = *byte;
                }
            }
            let whole = request(&bytes);
            for cut in 0..bytes.len() {
                match request(&bytes[..cut]) {
                    Ok(None) => {}
                    Ok(Some((length, asked))) => {
                        prop_assert!(length <= cut && length <= MAX_HEAD);
                        prop_assert_eq!(Ok(Some((length, asked))), whole.clone());
                    }
                    Err(wrong) => prop_assert_eq!(Err(wrong), whole.clone()),
                }
            }
            let _ = (greeting(&bytes), datagram(&bytes));
        }
    }
}
