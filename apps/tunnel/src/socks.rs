//! SOCKS 5 (RFC 1928): CONNECT and UDP ASSOCIATE; and SOCKS 4 and 4a: CONNECT.
//!
//! The proxy requires no authentication. A program that offers only user and password (RFC 1929) may send any.
//!
//! The parsing functions do no I/O: they take the bytes received so far, and return a value or request more bytes.

use crate::client::{NotOpened, Tunnel};
use crate::datagrams::SocketFlows;
use crate::head;
use crate::listen::accept;
use crate::parts::MAX_DATAGRAM;
use crate::pipe;
use crate::request::{Refusal, RequestKind, TunnelRequest};
use narrows_net::openings::Openings;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

const VERSION: u8 = 5;
/// Authentication methods: without authentication; user and password; no acceptable method.
const OPEN: u8 = 0;
const PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;
/// Reply codes of SOCKS 4.
const GRANTED: u8 = 0x5a;
const REJECTED: u8 = 0x5b;
/// Maximum length of a program's message: a SOCKS 4a request with a user and a name of 255 bytes each, both with a
/// final zero.
const MAX_HEAD: usize = 8 + 256 + 256;

/// A program's request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SocksCommand {
    /// A connection, or the target of one datagram.
    Target(TunnelRequest),
    /// A port for datagrams (UDP ASSOCIATE).
    Associate,
}

/// An error, as the code of a SOCKS 5 reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wrong(pub u8);

/// A program's first message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SocksGreeting {
    /// SOCKS 5, with the authentication method that the proxy chooses.
    Five(u8),
    /// SOCKS 4 or 4a, with the requested target.
    Four(TunnelRequest),
}

/// Reason why a program's first message is rejected.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NoHello {
    /// It is not SOCKS. Contains its first byte.
    Other(u8),
    /// It is SOCKS 4, but not a valid request for a connection.
    Four,
}

/// Reads a first message: its length and its content; `None` if more bytes are needed.
///
/// # Errors
/// It is not SOCKS, or not a supported request.
pub fn hello(bytes: &[u8]) -> Result<Option<(usize, SocksGreeting)>, NoHello> {
    match bytes {
        [] | [VERSION] => Ok(None),
        [VERSION, count, rest @ ..] => {
            let methods = rest.get(..usize::from(*count));
            Ok(methods.map(|methods| {
                let method = [OPEN, PASSWORD].into_iter().find(|method| methods.contains(method));
                (2 + methods.len(), SocksGreeting::Five(method.unwrap_or(NO_METHOD)))
            }))
        }
        [4, rest @ ..] => four(rest),
        [other, ..] => Err(NoHello::Other(*other)),
    }
}

/// Reads a SOCKS 4 request after its first byte: `| command (1) | port (2) | address (4) | user | 0 |`. In 4a the
/// address is 0.0.0.x, and `| name | 0 |` follows.
fn four(rest: &[u8]) -> Result<Option<(usize, SocksGreeting)>, NoHello> {
    let Some(([command, high, low, address @ ..], rest)) = rest.split_first_chunk::<7>() else {
        return Ok(None);
    };
    let port = u16::from_be_bytes([*high, *low]);
    if *command != 1 || port == 0 {
        return Err(NoHello::Four);
    }
    let text = |bytes: &[u8]| match bytes.iter().take(256).position(|byte| *byte == 0) {
        None if bytes.len() > 255 => Err(NoHello::Four),
        end => Ok(end),
    };
    let Some(user) = text(rest)? else { return Ok(None) };
    let length = 8 + user + 1;
    let (host, length) = match address {
        [0, 0, 0, last] if *last != 0 => {
            let name = rest.get(user + 1..).unwrap_or_default();
            let Some(end) = text(name)? else { return Ok(None) };
            let name = host(name.get(..end).unwrap_or_default()).ok_or(NoHello::Four)?;
            (name, length + end + 1)
        }
        address => (Ipv4Addr::from(*address).to_string(), length),
    };
    Ok(Some((length, SocksGreeting::Four(TunnelRequest::tcp(&host, port)))))
}

/// Length of a message with user and password (RFC 1929), which may be any; `None` if more bytes are needed.
///
/// # Errors
/// It is invalid.
pub fn password(bytes: &[u8]) -> Result<Option<(usize, ())>, Wrong> {
    let [version, rest @ ..] = bytes else { return Ok(None) };
    let [user, rest @ ..] = rest else {
        return if *version == 1 { Ok(None) } else { Err(Wrong(1)) };
    };
    if *version != 1 {
        return Err(Wrong(1));
    }
    let Some(password) = rest.get(usize::from(*user)) else { return Ok(None) };
    let length = 3 + usize::from(*user) + usize::from(*password);
    Ok((bytes.len() >= length).then_some((length, ())))
}

/// A name, or an address as text; IPv6 may be in brackets, as in URLs.
fn host(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address = inside.and_then(|inside| inside.parse::<Ipv6Addr>().ok());
    let is_host = !text.is_empty() && text.bytes().all(|b| b.is_ascii_graphic());
    is_host.then(|| address.map_or_else(|| text.into(), |address| address.to_string()))
}

/// Reads a request: its length and its content; `None` if more bytes are needed.
///
/// # Errors
/// It is invalid or not supported; contains the reply's code.
pub fn request(bytes: &[u8]) -> Result<Option<(usize, SocksCommand)>, Wrong> {
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
        3 => SocksCommand::Associate,
        _ if port == 0 => return Err(Wrong(1)),
        _ => SocksCommand::Target(TunnelRequest::tcp(&host, port)),
    };
    Ok(Some((3 + length, asked)))
}

/// Reads an address: its length, host and port.
fn address(bytes: &[u8]) -> Result<Option<(usize, String, u16)>, Wrong> {
    let (host, rest, length) = match bytes {
        [1, a, b, c, d, rest @ ..] => (Ipv4Addr::new(*a, *b, *c, *d).to_string(), rest, 5),
        [4, rest @ ..] if rest.len() >= 16 => {
            let Some((address, rest)) = rest.split_first_chunk::<16>() else { return Ok(None) };
            (Ipv6Addr::from(*address).to_string(), rest, 17)
        }
        [3, count, rest @ ..] if rest.len() >= usize::from(*count) => {
            let (name, rest) = rest.split_at(usize::from(*count));
            (host(name).ok_or(Wrong(1))?, rest, 2 + name.len())
        }
        [] | [1 | 3 | 4, ..] => return Ok(None),
        _ => return Err(Wrong(8)),
    };
    let port = rest.split_first_chunk::<2>();
    Ok(port.map(|(port, _)| (length + 2, host, u16::from_be_bytes(*port))))
}

/// Reads the header of an associated program's datagram: its length and the target. Fragments are not reassembled.
pub fn datagram(bytes: &[u8]) -> Option<(usize, TunnelRequest)> {
    let [0, 0, 0, rest @ ..] = bytes else { return None };
    let (length, host, port) = address(rest).ok()??;
    (port > 0).then(|| (3 + length, TunnelRequest { kind: RequestKind::Udp, host, port }))
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

/// The unspecified address, for replies without an address.
fn nowhere() -> SocketAddr {
    (Ipv4Addr::UNSPECIFIED, 0).into()
}

/// Serves all programs that connect to a port.
pub async fn run(tunnel: Arc<Tunnel>, listener: TcpListener) {
    let openings = Openings::new(crate::descriptors::openings());
    loop {
        let (mut tcp, from) = accept(&listener).await;
        let opening = openings.admit(from);
        let tunnel = tunnel.clone();
        tokio::spawn(async move {
            let asked = tokio::select! {
                asked = asked(&tunnel, &mut tcp) => asked,
                () = opening.given_up() => return,
            };
            drop(opening);
            // If the program has closed its connection meanwhile, it is just dropped.
            if let Ok(Some(asked)) = asked {
                let _ = serve(tunnel, tcp, asked).await;
            }
        });
    }
}

/// A program's request in either version, and the bytes that it sent after it.
struct SocksRequest {
    asked: SocksCommand,
    is_four: bool,
    more: Vec<u8>,
}

/// Negotiates with a program until it has sent a request; `None` if that was refused.
async fn asked(tunnel: &Tunnel, tcp: &mut TcpStream) -> std::io::Result<Option<SocksRequest>> {
    let _ = tcp.set_nodelay(true);
    let mut more = Vec::new();
    let method = match head::read(tcp, &mut more, MAX_HEAD, hello).await? {
        Ok(SocksGreeting::Four(target)) => {
            return Ok(Some(SocksRequest {
                asked: SocksCommand::Target(target),
                is_four: true,
                more,
            }));
        }
        Ok(SocksGreeting::Five(method)) => method,
        Err(NoHello::Four) => {
            tunnel.tell("--socks: a program asked by SOCKS 4 for something else than a connection");
            tcp.write_all(&reply_of_four(REJECTED)).await?;
            return Ok(None);
        }
        Err(NoHello::Other(byte)) => {
            let hint = if byte.is_ascii_alphabetic() { " (HTTP has --http-proxy)" } else { "" };
            tunnel.tell(&format!(
                "--socks: a program began with the byte {byte}, which is neither SOCKS 5 nor SOCKS 4{hint}"
            ));
            return Ok(None);
        }
    };
    tcp.write_all(&[VERSION, method]).await?;
    if method == NO_METHOD {
        tunnel.tell(
            "--socks: a program offers neither \"no authentication\" nor \"user and password\"",
        );
        return Ok(None);
    }
    if method == PASSWORD {
        if head::read(tcp, &mut more, MAX_HEAD, password).await?.is_err() {
            tcp.write_all(&[1, 1]).await?;
            return Ok(None);
        }
        tcp.write_all(&[1, 0]).await?;
    }
    match head::read(tcp, &mut more, MAX_HEAD, request).await? {
        Ok(asked) => Ok(Some(SocksRequest { asked, is_four: false, more })),
        Err(Wrong(code)) => {
            tunnel.tell(&format!("--socks: a program's request was refused with code {code}"));
            tcp.write_all(&reply(code, nowhere())).await?;
            Ok(None)
        }
    }
}

/// A reply of SOCKS 4.
fn reply_of_four(code: u8) -> Vec<u8> {
    vec![0, code, 0, 0, 0, 0, 0, 0]
}

async fn serve(
    tunnel: Arc<Tunnel>,
    mut tcp: TcpStream,
    wanted: SocksRequest,
) -> std::io::Result<()> {
    let SocksRequest { asked, is_four, more } = wanted;
    let target = match asked {
        SocksCommand::Associate => return associate(tunnel, tcp).await,
        SocksCommand::Target(target) => target,
    };
    match tunnel.open(&target).await {
        Ok((_link, (mut send, receive))) => {
            let granted = if is_four { reply_of_four(GRANTED) } else { reply(0, nowhere()) };
            tcp.write_all(&granted).await?;
            pipe::prepare(&tcp);
            // Bytes that came after the request.
            if send.send_all(&more).await.is_ok() {
                pipe::run(tcp, send, receive).await;
            }
            Ok(())
        }
        Err(why) => {
            tunnel.tell_refused(&target.shown(), why);
            let refused =
                if is_four { reply_of_four(REJECTED) } else { reply(code(why), nowhere()) };
            tcp.write_all(&refused).await
        }
    }
}

/// Serves the datagrams of one program for as long as its TCP connection is open.
async fn associate(tunnel: Arc<Tunnel>, mut tcp: TcpStream) -> std::io::Result<()> {
    let own = tcp.local_addr()?.ip();
    let program = tcp.peer_addr()?.ip();
    let Ok(socket) = UdpSocket::bind((own, 0)).await else {
        tunnel.tell("--socks: this machine has no socket for a program's datagrams");
        return tcp.write_all(&reply(1, nowhere())).await;
    };
    let socket = Arc::new(socket);
    tcp.write_all(&reply(0, socket.local_addr()?)).await?;
    let mut programs = SocketFlows::new(tunnel, socket.clone());
    let mut bytes = vec![0; MAX_DATAGRAM];
    let mut source = None;
    let mut closed = [0];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut bytes) => {
                let Ok((length, from)) = received else { continue };
                // Accept datagrams only from one port of the program's address.
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
        let target =
            |host: &str, port| Ok(Some(SocksCommand::Target(TunnelRequest::tcp(host, port))));
        let asked = |bytes: &[u8]| request(bytes).map(|r| r.map(|(_, asked)| asked));
        assert_eq!(hello(&[5, 2, 2, 0]), Ok(Some((4, SocksGreeting::Five(OPEN)))));
        assert_eq!(hello(&[5, 2, 1, 2]), Ok(Some((4, SocksGreeting::Five(PASSWORD)))));
        assert_eq!(hello(&[5, 1, 1]), Ok(Some((3, SocksGreeting::Five(NO_METHOD)))));
        assert_eq!((hello(&[5, 2, 0]), hello(b"GET")), (Ok(None), Err(NoHello::Other(b'G'))));
        assert_eq!(password(b"\x01\x01u\x02pwX"), Ok(Some((6, ()))));
        assert_eq!((password(b"\x01\x01u\x02p"), password(&[5])), (Ok(None), Err(Wrong(1))));
        let four = |bytes: &[u8]| hello(bytes).map(|found| found.map(|(length, _)| length));
        let is = |bytes: &[u8], host, port| {
            let target = SocksGreeting::Four(TunnelRequest::tcp(host, port));
            assert_eq!(hello(bytes), Ok(Some((bytes.len() - 1, target))), "{bytes:?}");
        };
        is(b"\x04\x01\x00\x50\x7f\x00\x00\x01\x00!", "127.0.0.1", 80);
        is(b"\x04\x01\x00\x50\x00\x00\x00\x01me\x00host.example\x00!", "host.example", 80);
        is(b"\x04\x01\x00\x50\x00\x00\x00\x09\x00[::1]\x00!", "::1", 80);
        assert_eq!(four(b"\x04\x01\x00\x50\x00\x00\x00\x01me\x00host"), Ok(None));
        assert_eq!(four(b"\x04\x02\x00\x50\x7f\x00\x00\x01\x00"), Err(NoHello::Four), "BIND");
        assert_eq!(four(b"\x04\x01\x00\x50\x00\x00\x00\x01\x00\x00"), Err(NoHello::Four));
        assert_eq!(
            four(&[&[4, 1, 0, 80, 1, 2, 3, 4][..], &[b'u'; 256]].concat()),
            Err(NoHello::Four)
        );
        let bracketed = address(b"\x03\x05[::1]\x00\x50").unwrap().unwrap();
        assert_eq!((bracketed.1.as_str(), bracketed.2), ("::1", 80));
        assert_eq!(asked(&[5, 1, 0, 1, 10, 0, 0, 1, 0, 80]), target("10.0.0.1", 80));
        assert_eq!(asked(b"\x05\x01\x00\x03\x04host\x01\xbb"), target("host", 443));
        let six = [&[5, 1, 0, 4][..], &[0; 15], &[1, 0, 22]].concat();
        assert_eq!(asked(&six), target("::1", 22));
        assert_eq!(asked(&[5, 3, 0, 1, 0, 0, 0, 0, 0, 0]), Ok(Some(SocksCommand::Associate)));
        assert_eq!(asked(&[5, 2, 0]), Err(Wrong(7)), "BIND");
        assert_eq!(asked(&[5, 1, 0, 9]), Err(Wrong(8)));
        assert_eq!(asked(b"\x05\x01\x00\x03\x00\x01\xbb"), Err(Wrong(1)));
        assert_eq!(asked(b"\x05\x01\x00\x03\x02a\n\x01\xbb"), Err(Wrong(1)));
        let sent = [0, 0, 0, 1, 9, 9, 9, 9, 0, 53, b'?'];
        assert_eq!(datagram(&sent), Some((10, TunnelRequest::udp("9.9.9.9", 53))));
        assert_eq!(datagram(&[0, 0, 1, 1, 9, 9, 9, 9, 0, 53]), None, "a fragment");
    }

    proptest! {
        /// A message is read only when it is complete, and bytes after it do not change the result.
        #[test]
        fn parsing_is_independent_of_segmentation(mut bytes in prop::collection::vec(any::<u8>(), 0..600), kind in 0u8..5) {
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
            let _ = (hello(&bytes), password(&bytes), datagram(&bytes));
        }
    }
}
