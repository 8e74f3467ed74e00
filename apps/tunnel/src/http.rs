//! An HTTP proxy (RFC 9110 and RFC 9112): CONNECT, and requests that name their server.
//!
//! Each request has a stream of its own to its server, even if it shares the program's connection with others.
//! Hop-by-hop fields stay here, and the Host field is that of the request's target. Everything else passes unchanged and
//! at once: bodies, trailers, and interim answers (1xx). So `Expect: 100-continue` is between program and server.

mod message;

use crate::client::{FarConnection, NotOpened, Stream, Tunnel};
use crate::head;
use crate::listen::accept;
use crate::pipe;
use crate::request::{RESET, Refusal, TunnelRequest};
use http::{Method, StatusCode, Uri};
use message::{AnswerHead, BodyEnd, HttpRequestHead, MAX_HEAD};
use narrows_net::openings::{Opening, Openings};
use narrows_net::{ReceiveStream, SendStream};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::tcp::WriteHalf;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Time for a request's head to be complete, counted from the end of the answer before it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for a program that still sends to read its answer, before its connection is closed.
const LINGER: Duration = Duration::from_secs(2);
/// Maximum number of a body's bytes that are read at once.
const PIECE: usize = 32 << 10;

const EXPECTED: &str = "this is a proxy: CONNECT HOST:PORT, or a request for http://HOST/ or ws://HOST/ is expected; https needs CONNECT";

/// The server of a request; `None` if it is not a request for a proxy. The scheme `ws` is that of an upgrade.
pub fn target(method: &Method, uri: &Uri) -> Option<TunnelRequest> {
    let authority = uri.authority()?.as_str();
    if method == Method::CONNECT {
        return uri.scheme().is_none().then(|| host_and_port(authority, None))?;
    }
    let is_plain = |scheme: &str| ["http", "ws"].iter().any(|s| scheme.eq_ignore_ascii_case(s));
    uri.scheme_str().filter(|scheme| is_plain(scheme))?;
    host_and_port(message::without_user(authority), Some(80))
}

/// Parses `host:port`; the port may be omitted if there is a default.
fn host_and_port(text: &str, port: Option<u16>) -> Option<TunnelRequest> {
    let (host, rest) = match text.strip_prefix('[') {
        Some(inside) => {
            let (host, rest) = inside.split_once(']')?;
            host.parse::<std::net::Ipv6Addr>().ok()?;
            (host, rest)
        }
        None => text.split_at(text.find(':').unwrap_or(text.len())),
    };
    if host.contains(['[', ']']) {
        return None;
    }
    let port = match rest.strip_prefix(':') {
        // RFC 3986 section 3.2.3: an empty port means the scheme's default.
        Some("") => port?,
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok()?,
        None if rest.is_empty() => port?,
        _ => return None,
    };
    let is_host = host.bytes().all(|b| b.is_ascii_graphic()) && (1..=255).contains(&host.len());
    (is_host && port > 0).then(|| TunnelRequest::tcp(host, port))
}

fn status(why: NotOpened) -> StatusCode {
    match why {
        NotOpened::Refused(Refusal::NotAllowed | Refusal::NotPublic) => StatusCode::FORBIDDEN,
        NotOpened::Refused(Refusal::TimedOut) => StatusCode::GATEWAY_TIMEOUT,
        NotOpened::Refused(Refusal::TooMany) | NotOpened::NoTunnel => {
            StatusCode::SERVICE_UNAVAILABLE
        }
        NotOpened::Refused(_) => StatusCode::BAD_GATEWAY,
    }
}

/// An answer of this proxy itself, after which the connection ends.
struct OwnAnswer {
    status: StatusCode,
    line: String,
}

impl OwnAnswer {
    fn new(status: StatusCode, line: &str) -> OwnAnswer {
        OwnAnswer { status, line: line.into() }
    }

    fn bytes(&self) -> String {
        let OwnAnswer { status, line } = self;
        let length = line.len() + 1;
        format!(
            "HTTP/1.1 {status}\r\ncontent-type: text/plain\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{line}\n"
        )
    }
}

/// Continuation of a program's connection after a request.
enum Next {
    /// It may send another request.
    Request,
    /// It ends in order.
    End,
    /// It is reset, so that a truncated body does not look complete.
    Reset,
    /// It ends after an answer of this proxy.
    Answer(OwnAnswer),
    /// Its bytes pass in both directions.
    Join(Arc<FarConnection>, Stream),
}

/// Serves all programs of a port.
pub async fn run(tunnel: Arc<Tunnel>, listener: TcpListener) {
    let openings = Openings::new(crate::descriptors::openings());
    loop {
        let (tcp, from) = accept(&listener).await;
        tokio::spawn(serve(tunnel.clone(), tcp, openings.admit(from)));
    }
}

async fn serve(tunnel: Arc<Tunnel>, mut tcp: TcpStream, opening: Opening) {
    let _ = tcp.set_nodelay(true);
    let mut opening = Some(opening);
    let mut bytes = Vec::new();
    let next = loop {
        let reading = timeout(
            HEAD_TIMEOUT,
            head::read_slowly(&mut tcp, &mut bytes, MAX_HEAD, HttpRequestHead::read),
        );
        let read = match opening.take() {
            // The place may go to another connection before the first request.
            Some(opening) => tokio::select! {
                read = reading => read,
                () = opening.given_up() => return,
            },
            None => reading.await,
        };
        let next = match read {
            Ok(Ok(Ok(request))) => answer(&tunnel, &mut tcp, &mut bytes, request).await,
            Ok(Ok(Err(_))) => Next::Answer(OwnAnswer::new(StatusCode::BAD_REQUEST, EXPECTED)),
            Ok(Err(_)) | Err(_) => Next::End,
        };
        if !matches!(next, Next::Request) {
            break next;
        }
    };
    // If the program is gone, the rest is of no use.
    match next {
        Next::Request | Next::End => drop(tcp.shutdown().await),
        Next::Reset => pipe::prepare(&tcp),
        Next::Answer(answer) => {
            let _ = tcp.write_all(answer.bytes().as_bytes()).await;
            let _ = timeout(LINGER, end(&mut tcp)).await;
        }
        // Keep the link until the end, so that its connection is not closed.
        Next::Join(_link, (mut send, receive)) => {
            pipe::prepare(&tcp);
            if send.send_all(&bytes).await.is_ok() {
                pipe::run(tcp, send, receive).await;
            }
        }
    }
}

/// Ends a connection, and discards what the program still sends: a socket that is closed with unread bytes resets its
/// connection, and the answer may be lost.
async fn end(tcp: &mut TcpStream) -> std::io::Result<()> {
    tcp.shutdown().await?;
    let mut unread = vec![0; PIECE];
    while tcp.read(&mut unread).await? > 0 {}
    Ok(())
}

/// Handles a request. `bytes` are those that the program has sent after its head.
async fn answer(
    tunnel: &Tunnel,
    tcp: &mut TcpStream,
    bytes: &mut Vec<u8>,
    request: HttpRequestHead,
) -> Next {
    let method = request.method.parse::<Method>().ok();
    let asked = method.zip(request.target.parse::<Uri>().ok());
    let asked = asked.and_then(|(method, uri)| target(&method, &uri));
    let Some((target, body)) = asked.zip(request.body().ok()) else {
        return Next::Answer(OwnAnswer::new(StatusCode::BAD_REQUEST, EXPECTED));
    };
    let (link, stream) = match tunnel.open(&target).await {
        Ok(opened) => opened,
        Err(why) => {
            tunnel.tell_refused(&target.shown(), why);
            let line = format!("{}: {why}", target.target());
            return Next::Answer(OwnAnswer::new(status(why), &line));
        }
    };
    if request.method == "CONNECT" {
        return match tcp.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await {
            Ok(()) => Next::Join(link, stream),
            Err(_) => Next::Reset,
        };
    }
    match (Exchange { request, body, stream }).run(tcp, bytes).await {
        Passed::Next(next) => next,
        Passed::Upgraded(stream) => Next::Join(link, stream),
        Passed::NoAnswer => {
            let line = format!("{}: no answer in HTTP", target.target());
            tunnel.tell(&line);
            Next::Answer(OwnAnswer::new(StatusCode::BAD_GATEWAY, &line))
        }
    }
}

/// A request and the stream to its server.
struct Exchange {
    request: HttpRequestHead,
    body: BodyEnd,
    stream: Stream,
}

/// Outcome of an exchange.
enum Passed {
    Next(Next),
    /// The server has switched to another protocol.
    Upgraded(Stream),
    /// The server's answer is not in HTTP.
    NoAnswer,
}

/// Reason why a body was not copied to its end.
enum CopyError {
    /// The source ended early, broke, or sent an invalid body.
    Source,
    /// The destination broke.
    Destination,
}

impl Exchange {
    /// Forwards the request, and the answer back.
    async fn run(self, tcp: &mut TcpStream, bytes: &mut Vec<u8>) -> Passed {
        let Exchange { mut request, mut body, stream: (mut send, mut receive) } = self;
        let is_persistent = request.is_persistent();
        let Some(is_upgrade) = request.forward() else {
            return Passed::Next(Next::Answer(OwnAnswer::new(StatusCode::BAD_REQUEST, EXPECTED)));
        };
        if body.is_reached() {
            // If the connection is over, the calls below detect it.
            let _ = send.set_priority(pipe::FIRST);
        }
        // If the server reads no request, it may have sent an answer nevertheless.
        let _ = send.send_all(&request.bytes()).await;
        let is_sent = AtomicBool::new(body.is_reached());
        let (mut read, mut write) = tcp.split();
        let answered = {
            let upload = async {
                let copied = copy(&mut read, bytes, &mut send, &mut body, false).await;
                is_sent.store(copied.is_ok(), Ordering::Relaxed);
                if let Err(CopyError::Source) = copied {
                    return;
                }
                std::future::pending().await
            };
            let answer =
                AnsweringSide { request: &request, is_upgrade, is_persistent, is_sent: &is_sent };
            tokio::select! {
                answered = answer.pass(&mut receive, &mut write) => answered,
                () = upload => Answered::Broken,
            }
        };
        match answered {
            Answered::Switched(more) => match write.write_all(&more).await {
                Ok(()) => Passed::Upgraded((send, receive)),
                Err(_) => broken(&mut send, &mut receive),
            },
            Answered::Whole(true) if is_sent.load(Ordering::Relaxed) => Passed::Next(Next::Request),
            Answered::Whole(_) => {
                if !is_sent.load(Ordering::Relaxed) {
                    let _ = send.reset(RESET);
                }
                let _ = timeout(LINGER, end(tcp)).await;
                Passed::Next(Next::End)
            }
            Answered::NotHttp => Passed::NoAnswer,
            Answered::Broken => broken(&mut send, &mut receive),
        }
    }
}

/// Resets stream and connection.
fn broken(send: &mut SendStream, receive: &mut ReceiveStream) -> Passed {
    // One of them may have ended already.
    let _ = send.reset(RESET);
    let _ = receive.stop(RESET);
    Passed::Next(Next::Reset)
}

/// How the server's answer has ended.
enum Answered {
    /// It passed, and the program's connection may stay.
    Whole(bool),
    /// The server has switched protocols; contains the bytes after its head.
    Switched(Vec<u8>),
    /// There was no answer in HTTP, and no part of one has passed.
    NotHttp,
    /// One of the connections broke.
    Broken,
}

/// The side of an exchange that passes the answer.
struct AnsweringSide<'e> {
    request: &'e HttpRequestHead,
    is_upgrade: bool,
    is_persistent: bool,
    /// Whether the request's body has been read to its end.
    is_sent: &'e AtomicBool,
}

impl AnsweringSide<'_> {
    /// Passes interim answers, and the final one.
    async fn pass(&self, receive: &mut ReceiveStream, write: &mut WriteHalf<'_>) -> Answered {
        let mut bytes = Vec::new();
        loop {
            let read = head::read_slowly(receive, &mut bytes, MAX_HEAD, AnswerHead::read).await;
            let Ok(Ok(mut answer)) = read else { return Answered::NotHttp };
            let Ok(mut body) = answer.body(&self.request.method) else { return Answered::NotHttp };
            let upgrade = answer.fields.strip().filter(|_| self.is_upgrade);
            let is_switched = answer.status == StatusCode::SWITCHING_PROTOCOLS;
            if is_switched && upgrade.is_none() {
                return Answered::NotHttp;
            }
            if let Some(protocols) = upgrade {
                answer.fields.add("connection", "upgrade");
                answer.fields.add("upgrade", &protocols);
            }
            let is_interim = answer.status.is_informational() && !is_switched;
            if is_interim && self.request.is_old {
                continue;
            }
            let only_content = self.request.is_old && body == BodyEnd::ChunkSize;
            if only_content {
                answer.fields.remove("transfer-encoding");
            }
            let stays = self.is_persistent
                && self.is_sent.load(Ordering::Relaxed)
                && body != BodyEnd::Connection;
            if !is_interim && !is_switched && !stays {
                answer.fields.add("connection", "close");
            }
            if write.write_all(&answer.bytes()).await.is_err() {
                return Answered::Broken;
            }
            if is_switched {
                return Answered::Switched(bytes);
            }
            if is_interim {
                continue;
            }
            return match copy(receive, &mut bytes, write, &mut body, only_content).await {
                Ok(()) => Answered::Whole(stays),
                Err(_) => Answered::Broken,
            };
        }
    }
}

/// Copies a body to its end. `bytes` have been read already, and then contain those after the body.
async fn copy(
    from: &mut (impl AsyncRead + Unpin),
    bytes: &mut Vec<u8>,
    to: &mut (impl AsyncWrite + Unpin),
    end: &mut BodyEnd,
    only_content: bool,
) -> Result<(), CopyError> {
    loop {
        while let Some(part) = end.next(bytes).map_err(|_| CopyError::Source)? {
            if part.is_content || !only_content {
                let piece = bytes.get(..part.length).unwrap_or_default();
                to.write_all(piece).await.map_err(|_| CopyError::Destination)?;
            }
            bytes.drain(..part.length);
        }
        if end.is_reached() {
            return Ok(());
        }
        match (&mut *from).take(PIECE as u64).read_buf(bytes).await {
            Ok(0) if *end == BodyEnd::Connection => return Ok(()),
            Ok(1..) => {}
            _ => return Err(CopyError::Source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(method: &str, uri: &str) -> Option<TunnelRequest> {
        target(&method.parse().unwrap(), &uri.parse().ok()?)
    }

    #[test]
    fn targets_of_requests_are_read() {
        assert_eq!(
            read("CONNECT", "example.org:443"),
            Some(TunnelRequest::tcp("example.org", 443))
        );
        let six = Some(TunnelRequest::tcp("2001:db8::1", 443));
        assert_eq!(read("CONNECT", "[2001:db8::1]:443"), six);
        let named = Some(TunnelRequest::tcp("example.org", 81));
        assert_eq!(read("GET", "http://u:p@example.org:81?a=b"), named);
        assert_eq!(read("POST", "HTTP://example.org"), Some(TunnelRequest::tcp("example.org", 80)));
        assert_eq!(read("GET", "ws://[::1]:9/x"), Some(TunnelRequest::tcp("::1", 9)));
        for (method, uri) in [
            ("GET", "/"),
            ("OPTIONS", "*"),
            ("GET", "https://example.org/"),
            ("GET", "wss://example.org/"),
            ("GET", "example.org:80"),
            ("CONNECT", "http://example.org:80/"),
            ("CONNECT", "example.org"),
            ("CONNECT", "example.org:0"),
            ("CONNECT", "[host]:443"),
            ("GET", "http://a[]"),
            ("GET", "http://h:99999/"),
            ("GET", "http://h:0/"),
        ] {
            assert_eq!(read(method, uri), None, "{method} {uri}");
        }
    }

    proptest! {
        #[test]
        fn any_uri_has_a_whole_target_or_none(uri in "(http|ws)?(://)?[a-z:@/?\\[\\] .0-9]{0,20}") {
            for method in ["GET", "CONNECT"] {
                if let Some(target) = read(method, &uri) {
                    prop_assert!(target.port > 0 && (1..=255).contains(&target.host.len()));
                    prop_assert!(!target.host.contains(['@', '/', '[']));
                }
            }
        }
    }
}
