//! An HTTP proxy (RFC 9110 and RFC 9112): CONNECT, and requests that name their server. hyper reads and writes messages.
//!
//! Each request has a stream of its own to its server, even if it shares the program's connection with others.
//! Hop-by-hop fields stay here, and the Host field is that of the request's target.

use crate::client::{FarConnection, NotOpened, Stream, Tunnel};
use crate::listen::accept;
use crate::pipe;
use crate::request::{Refusal, TunnelRequest};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{
    CONNECTION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE,
};
use hyper::service::service_fn;
use hyper::{Method, Response, StatusCode, Uri, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use narrows_net::openings::{Opening, Openings};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncWriteExt as _, Join, join};
use tokio::net::{TcpListener, TcpStream};

/// Maximum size of a head in bytes; below, the maximum number of its fields.
const MAX_HEAD: usize = 64 << 10;
const MAX_FIELDS: usize = 128;
/// Time for a request's head to be complete, counted from the end of the answer before it.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Hop-by-hop fields (RFC 9110 sections 7.6.1 and 11.7), in addition to those that the Connection field names.
const ONE_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "upgrade",
];

const EXPECTED: &str = "this is a proxy: CONNECT HOST:PORT, or a request for http://HOST/ or ws://HOST/ is expected; https needs CONNECT";

/// The server of a request; `None` if it is not a request for a proxy. The scheme `ws` is that of an upgrade.
pub fn target(method: &Method, uri: &Uri) -> Option<TunnelRequest> {
    let authority = uri.authority()?.as_str();
    if method == Method::CONNECT {
        return uri.scheme().is_none().then(|| host_and_port(authority, None))?;
    }
    let is_plain = |scheme: &str| ["http", "ws"].iter().any(|s| scheme.eq_ignore_ascii_case(s));
    uri.scheme_str().filter(|scheme| is_plain(scheme))?;
    host_and_port(without_user(authority), Some(80))
}

/// Removes the user information before the host; it is not sent to the server.
fn without_user(authority: &str) -> &str {
    authority.rsplit('@').next().unwrap_or(authority)
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

/// Removes hop-by-hop fields. Returns the protocols to which the connection may be upgraded.
fn strip(fields: &mut HeaderMap) -> Option<HeaderValue> {
    let named: Vec<HeaderName> = fields
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let upgrade = fields.get(UPGRADE).filter(|_| named.contains(&UPGRADE)).cloned();
    for name in named.iter().filter(|name| !FRAMING.contains(&name.as_str())) {
        fields.remove(name);
    }
    for name in ONE_HOP {
        fields.remove(name);
    }
    upgrade
}

/// Fields of framing and routing, which a Connection field may not remove.
const FRAMING: [&str; 3] = ["content-length", "host", "transfer-encoding"];

/// The request for its server, and whether it asks for an upgrade; `None` if its parts are not a valid request.
fn forwarded<B>(mut request: hyper::Request<B>) -> Option<(hyper::Request<B>, bool)> {
    let host = HeaderValue::from_str(without_user(request.uri().authority()?.as_str())).ok()?;
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    let slash = if path.starts_with(['/', '*']) { "" } else { "/" };
    *request.uri_mut() = format!("{slash}{path}").parse().ok()?;
    *request.version_mut() = Version::HTTP_11;
    let fields = request.headers_mut();
    let upgrade = strip(fields);
    fields.insert(HOST, host);
    let is_upgrade = upgrade.is_some();
    fields
        .insert(CONNECTION, HeaderValue::from_static(if is_upgrade { "upgrade" } else { "close" }));
    if let Some(upgrade) = upgrade {
        fields.insert(UPGRADE, upgrade);
    }
    Some((request, is_upgrade))
}

/// The body of an answer: a line of this proxy, or a server's body.
enum ResponseBody {
    Line(Option<Bytes>),
    Passed(Incoming),
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match self.get_mut() {
            ResponseBody::Line(line) => Poll::Ready(line.take().map(|line| Ok(Frame::data(line)))),
            ResponseBody::Passed(body) => Pin::new(body).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ResponseBody::Line(line) => line.is_none(),
            ResponseBody::Passed(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Line(line) => {
                SizeHint::with_exact(line.as_ref().map_or(0, Bytes::len) as u64)
            }
            ResponseBody::Passed(body) => body.size_hint(),
        }
    }
}

fn line(status: StatusCode, line: &str) -> Response<ResponseBody> {
    let mut response = Response::new(ResponseBody::Line(Some(format!("{line}\n").into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
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

/// A program's connection after an upgrade or CONNECT, and its stream.
struct Joined {
    link: Arc<FarConnection>,
    stream: Stream,
    /// Bytes that the server sent after its answer.
    begun: Bytes,
}

/// State of one program's connection.
struct HttpConnection {
    tunnel: Arc<Tunnel>,
    joined: Mutex<Option<Joined>>,
    /// Kept until the first request.
    opening: Mutex<Option<Opening>>,
}

/// Serves all programs of a port.
pub async fn run(tunnel: Arc<Tunnel>, listener: TcpListener) {
    let openings = Openings::new(crate::descriptors::openings());
    loop {
        let (tcp, from) = accept(&listener).await;
        tokio::spawn(serve(tunnel.clone(), tcp, openings.admit(from)));
    }
}

async fn serve(tunnel: Arc<Tunnel>, tcp: TcpStream, opening: Opening) {
    let _ = tcp.set_nodelay(true);
    let (joined, opening) = (Mutex::default(), Mutex::new(Some(opening)));
    let program = Arc::new(HttpConnection { tunnel, joined, opening });
    let answering = program.clone();
    let service = service_fn(move |request| {
        let program = answering.clone();
        Box::pin(async move { Ok::<_, Infallible>(program.answer(request).await) })
    });
    let mut connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .max_headers(MAX_FIELDS)
        .half_close(true)
        .auto_date_header(false)
        .preserve_header_case(true)
        .serve_connection(TokioIo::new(tcp), service);
    let done = tokio::select! {
        done = poll_fn(|cx| connection.poll_without_shutdown(cx)) => done,
        () = poll_fn(|cx| program.poll_given_up(cx)) => return,
    };
    let parts = connection.into_parts();
    let mut tcp = parts.io.into_inner();
    let joined = program.joined.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (done, joined) {
        (Ok(()), Some(joined)) => {
            // Its end needs no further handling.
            let _ = joined.run(tcp, &parts.read_buf).await;
        }
        // Reset the connection, so that a truncated body does not look complete.
        (Err(e), _) if e.is_user() => pipe::prepare(&tcp),
        _ => drop(tcp.shutdown().await),
    }
}

impl Joined {
    async fn run(self, mut tcp: TcpStream, read: &[u8]) -> std::io::Result<()> {
        let Joined { link, stream: (mut send, receive), begun } = self;
        tcp.write_all(&begun).await?;
        pipe::prepare(&tcp);
        if send.send_all(read).await.is_ok() {
            pipe::run(tcp, (send, receive)).await;
        }
        // Keep the link until here, so that its connection is not closed.
        drop(link);
        Ok(())
    }
}

impl HttpConnection {
    /// Ready if the place goes to another connection before the first request.
    fn poll_given_up(&self, context: &Context<'_>) -> Poll<()> {
        let opening = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        opening.as_ref().map_or(Poll::Pending, |opening| opening.poll_given_up(context))
    }

    async fn answer(&self, request: hyper::Request<Incoming>) -> Response<ResponseBody> {
        drop(self.opening.lock().unwrap_or_else(PoisonError::into_inner).take());
        let Some(target) = target(request.method(), request.uri()) else {
            return line(StatusCode::BAD_REQUEST, EXPECTED);
        };
        let (link, stream) = match self.tunnel.open(&target).await {
            Ok(opened) => opened,
            Err(why) => {
                self.tunnel.tell(&format!("{}: {why}", target.shown()));
                return line(status(why), &format!("{}: {why}", target.target()));
            }
        };
        if request.method() == Method::CONNECT {
            self.join(Joined { link, stream, begun: Bytes::new() });
            return Response::new(ResponseBody::Line(None));
        }
        let Some((request, is_upgrade)) = forwarded(request) else {
            return line(StatusCode::BAD_REQUEST, EXPECTED);
        };
        match self.pass(link, stream, request, is_upgrade).await {
            Ok(response) => response,
            Err(e) => {
                let why = format!("{}: no answer in HTTP: {e}", target.target());
                self.tunnel.tell(&why);
                line(StatusCode::BAD_GATEWAY, &why)
            }
        }
    }

    /// Connects the program with this stream after the answer.
    fn join(&self, joined: Joined) {
        *self.joined.lock().unwrap_or_else(PoisonError::into_inner) = Some(joined);
    }

    /// Forwards one request, and its answer back.
    async fn pass(
        &self,
        link: Arc<FarConnection>,
        (send, receive): Stream,
        request: hyper::Request<Incoming>,
        is_upgrade: bool,
    ) -> hyper::Result<Response<ResponseBody>> {
        if request.body().is_end_stream() {
            // If the connection is over, the calls below detect it.
            let _ = send.set_priority(pipe::FIRST);
        }
        let io = TokioIo::new(join(receive, send));
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(MAX_HEAD)
            .max_headers(MAX_FIELDS)
            .preserve_header_case(true)
            .handshake(io)
            .await?;
        let held = link.clone();
        tokio::spawn(async move {
            // An error also shows in the answer or its body.
            let _ = connection.with_upgrades().await;
            drop(held);
        });
        let mut response = sender.send_request(request).await?;
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            if !is_upgrade {
                let why = "the server switches to a protocol that was not asked for";
                return Ok(line(StatusCode::BAD_GATEWAY, why));
            }
            let upgraded = hyper::upgrade::on(&mut response).await?;
            let Ok(parts) = upgraded.downcast::<TokioIo<Join<_, _>>>() else {
                return Ok(line(StatusCode::BAD_GATEWAY, "the connection cannot be upgraded"));
            };
            let (receive, send) = parts.io.into_inner().into_inner();
            self.join(Joined { link, stream: (send, receive), begun: parts.read_buf });
        }
        *response.version_mut() = Version::HTTP_11;
        // hyper chooses the framing of the body by the program's version of HTTP.
        response.headers_mut().remove(TRANSFER_ENCODING);
        let upgrade = strip(response.headers_mut());
        if let Some(upgrade) = upgrade.filter(|_| is_upgrade) {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("upgrade"));
            response.headers_mut().insert(UPGRADE, upgrade);
        }
        Ok(response.map(ResponseBody::Passed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(method: &str, uri: &str) -> Option<TunnelRequest> {
        target(&method.parse().unwrap(), &uri.parse().ok()?)
    }

    fn passed(uri: &str, fields: &[(&'static str, &str)]) -> (String, HeaderMap, bool) {
        let mut request = hyper::Request::new(());
        *request.uri_mut() = uri.parse().unwrap();
        for (name, value) in fields {
            request.headers_mut().append(*name, HeaderValue::from_str(value).unwrap());
        }
        let (request, is_upgrade) = forwarded(request).unwrap();
        (request.uri().to_string(), request.headers().clone(), is_upgrade)
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

    #[test]
    fn fields_for_one_hop_stay_and_the_host_is_the_targets() {
        let (path, fields, is_upgrade) = passed(
            "http://u:p@example.org:81?a=b",
            &[
                ("host", "other.example"),
                ("host", "third.example"),
                ("connection", "keep-alive, x-Hop"),
                ("connection", "X-second,content-length"),
                ("x-hop", "1"),
                ("x-second", "1"),
                ("x-end", "1"),
                ("content-length", "4"),
                ("keep-alive", "timeout=5"),
                ("proxy-connection", "keep-alive"),
                ("proxy-authorization", "Basic eDp5"),
                ("te", "trailers"),
                ("upgrade", "h2c"),
                ("authorization", "for the server"),
            ],
        );
        assert_eq!((&*path, is_upgrade), ("/?a=b", false));
        let mut left: Vec<_> =
            fields.iter().map(|(n, v)| (n.as_str(), v.to_str().unwrap())).collect();
        left.sort_unstable();
        let end = ("x-end", "1");
        let host = ("host", "example.org:81");
        let length = ("content-length", "4");
        let closes = ("connection", "close");
        assert_eq!(left, [("authorization", "for the server"), closes, length, host, end]);
    }

    #[test]
    fn an_upgrade_is_passed_on_where_the_connection_field_names_it() {
        let fields = [("connection", "Upgrade"), ("upgrade", "websocket")];
        let (path, fields, is_upgrade) = passed("ws://example.org", &fields);
        assert_eq!((&*path, is_upgrade), ("/", true));
        assert_eq!(
            (&fields["connection"], &fields["upgrade"]),
            (&"upgrade".parse().unwrap(), &"websocket".parse().unwrap())
        );
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
