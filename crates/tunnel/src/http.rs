//! An HTTP proxy (RFC 9110 section 9.3.6 and RFC 9112 section 3.2.2): CONNECT, and requests that name their server.
//!
//! A request that names its server is sent to it without the name, and asks it to close the connection afterwards, so
//! that what follows on a connection cannot be for another server.

use crate::client::{NotOpened, Tunnel};
use crate::head;
use crate::listen::accept;
use crate::pipe;
use crate::request::{Refusal, Request};
use std::io::Write as _;
use std::sync::Arc;
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};

/// Bytes of a request's head, and its fields.
const MAX_HEAD: usize = 64 << 10;
const MAX_FIELDS: usize = 128;
/// Fields that are meant for the proxy, or for one connection.
const HOP_BY_HOP: [&str; 5] =
    ["connection", "keep-alive", "proxy-connection", "proxy-authorization", "te"];

/// What a program wants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Asked {
    /// Where to.
    pub target: Request,
    /// What the target is told first; nothing for CONNECT.
    pub told: Option<Vec<u8>>,
}

/// What is wrong with a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wrong;

/// The length of a request's head, and what it asks for; `None` if more bytes are needed.
///
/// # Errors
/// It is none for a proxy.
pub fn request(bytes: &[u8]) -> Result<Option<(usize, Asked)>, Wrong> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut read = httparse::Request::new(&mut fields);
    let length = match read.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(Wrong),
    };
    let (Some(method), Some(target), Some(version)) = (read.method, read.path, read.version) else {
        return Err(Wrong);
    };
    if method == "CONNECT" {
        let target = authority(target, None).ok_or(Wrong)?;
        return Ok(Some((length, Asked { target, told: None })));
    }
    let scheme = target.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
    let rest = scheme.and_then(|_| target.get(7..)).ok_or(Wrong)?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (server, path) = rest.split_at(end);
    // Who is named before the host is not for the server's eyes.
    let target = authority(server.rsplit('@').next().unwrap_or(server), Some(80)).ok_or(Wrong)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut told = format!("{method} {slash}{path} HTTP/1.{version}\r\n").into_bytes();
    for field in read.headers.iter() {
        if !HOP_BY_HOP.iter().any(|name| name.eq_ignore_ascii_case(field.name)) {
            told.extend(field.name.as_bytes());
            told.extend(b": ");
            told.extend(field.value);
            told.extend(b"\r\n");
        }
    }
    told.extend(b"Connection: close\r\n\r\n");
    Ok(Some((length, Asked { target, told: Some(told) })))
}

/// `host:port`; the port may be left out where there is a default.
fn authority(text: &str, port: Option<u16>) -> Option<Request> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inside) => {
            let (host, rest) = inside.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, rest)
        }
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    let port = match rest.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok()?,
        None if rest.is_empty() => port?,
        _ => return None,
    };
    let is_host = host.bytes().all(|b| b.is_ascii_graphic()) && (1..=255).contains(&host.len());
    (is_host && port > 0).then(|| Request::tcp(host, port))
}

fn status(why: NotOpened) -> &'static str {
    match why {
        NotOpened::Refused(Refusal::NotAllowed | Refusal::NotPublic) => "403 Forbidden",
        NotOpened::Refused(Refusal::TimedOut) => "504 Gateway Timeout",
        NotOpened::Refused(Refusal::TooMany) | NotOpened::NoTunnel => "503 Service Unavailable",
        NotOpened::Refused(_) => "502 Bad Gateway",
    }
}

fn answer(status: &str, line: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let length = line.len() + 1;
    // Into a vector everything can be written.
    let _ = write!(
        bytes,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{line}\n"
    );
    bytes
}

/// Serves all programs of a port.
pub async fn run(tunnel: Arc<Tunnel>, listener: TcpListener) {
    loop {
        let tcp = accept(&listener).await;
        let tunnel = tunnel.clone();
        tokio::spawn(async move {
            // Who goes in the middle gets no more than a closed connection.
            let _ = serve(&tunnel, tcp).await;
        });
    }
}

async fn serve(tunnel: &Tunnel, mut tcp: TcpStream) -> std::io::Result<()> {
    let _ = tcp.set_nodelay(true);
    let mut bytes = Vec::new();
    let Ok(Asked { target, told }) = head::read(&mut tcp, &mut bytes, MAX_HEAD, request).await?
    else {
        let line = "this is a proxy: CONNECT HOST:PORT or GET http://HOST/ is expected";
        return tcp.write_all(&answer("400 Bad Request", line)).await;
    };
    match tunnel.open(&target).await {
        Ok((_link, (mut send, receive))) => {
            match told {
                Some(told) => bytes.splice(..0, told).for_each(drop),
                None => tcp.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?,
            }
            pipe::prepare(&tcp);
            if send.send_all(&bytes).await.is_ok() {
                pipe::run(tcp, (send, receive), true).await;
            }
            Ok(())
        }
        Err(why) => {
            tunnel.tell(&format!("{}: {why}", target.shown()));
            tcp.write_all(&answer(status(why), &format!("{}: {why}", target.target()))).await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn asked(text: &str) -> Result<Asked, Wrong> {
        request(text.as_bytes()).map(|found| found.expect("more is needed").1)
    }

    #[test]
    fn requests_for_a_proxy_are_read() {
        let connect = asked("CONNECT example.org:443 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        assert_eq!(connect, Asked { target: Request::tcp("example.org", 443), told: None });
        let six = asked("CONNECT [2001:db8::1]:443 HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(six.target, Request::tcp("2001:db8::1", 443));
        let get = asked("GET http://u:p@example.org:81?a=b HTTP/1.1\r\nHost: example.org:81\r\nProxy-Connection: keep-alive\r\nConnection: x\r\nAccept: */*\r\n\r\n").unwrap();
        assert_eq!(get.target, Request::tcp("example.org", 81));
        assert_eq!(
            String::from_utf8(get.told.unwrap()).unwrap(),
            "GET /?a=b HTTP/1.1\r\nHost: example.org:81\r\nAccept: */*\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(asked("GET http://example.org/ HTTP/1.0\r\n\r\n").unwrap().target.port, 80);
    }

    #[test]
    fn what_is_no_request_for_a_proxy_is_refused() {
        for line in [
            "GET / HTTP/1.1",
            "GET https://example.org/ HTTP/1.1",
            "CONNECT example.org HTTP/1.1",
            "CONNECT example.org:0 HTTP/1.1",
            "CONNECT :443 HTTP/1.1",
            "CONNECT ::1:443 HTTP/1.1",
            "CONNECT [host]:443 HTTP/1.1",
            "CONNECT h:+44 HTTP/1.1",
            "GET http:///x HTTP/1.1",
            "\u{5}\u{1}",
        ] {
            assert_eq!(asked(&format!("{line}\r\n\r\n")), Err(Wrong), "{line}");
        }
    }

    proptest! {
        #[test]
        fn what_is_told_is_a_request_and_one_only(bytes in "(GET|CONNECT|POST) (http://)?[a-z:@/?\\[\\] .0-9]{0,20} HTTP/1.1\r\n([A-Za-z-]{1,12}: ?[ -~]{0,10}\r\n){0,4}\r\n.{0,9}") {
            if let Ok(Some((length, asked))) = request(bytes.as_bytes()) {
                prop_assert!(length <= bytes.len() && asked.target.port > 0);
                if let Some(told) = asked.told {
                    let text = String::from_utf8(told).unwrap();
                    prop_assert_eq!(text.matches("\r\n\r\n").count(), 1, "{}", text);
                    prop_assert!(text.split(' ').nth(1).unwrap().starts_with('/'));
                }
            }
        }
    }
}
