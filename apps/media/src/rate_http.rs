//! The encoder's rate over HTTP, for programs of this machine: `GET /` returns JSON.
//!
//! It listens on loopback only, and accepts only requests with a loopback address as Host. A web page therefore cannot
//! read it under a name of its own (DNS rebinding). Requests that a browser marks as cross-site are refused.

use narrows_net::openings::Openings;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// Maximum size of a request's head in bytes; below, the maximum number of its fields.
const MAX_HEAD: usize = 8 << 10;
const MAX_FIELDS: usize = 64;
/// Maximum number of concurrent requests; a new one replaces the oldest.
const MAX_REQUESTS: usize = 16;
/// Time limit of a request.
const PATIENCE: Duration = Duration::from_secs(5);

/// The HTTP status for a request's head; `None` if more bytes are needed.
pub fn judge(head: &[u8]) -> Option<u16> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Partial) => return None,
        Ok(httparse::Status::Complete(_)) => {}
        Err(_) => return Some(400),
    }
    let hosts: Vec<_> =
        request.headers.iter().filter(|f| f.name.eq_ignore_ascii_case("host")).collect();
    let is_local = match &hosts[..] {
        [host] => std::str::from_utf8(host.value).is_ok_and(is_loopback),
        // Host is optional in HTTP/1.0.
        _ => hosts.is_empty(),
    };
    let is_foreign = |f: &httparse::Header<'_>| {
        f.name.eq_ignore_ascii_case("sec-fetch-site")
            && !matches!(f.value, b"none" | b"same-origin")
    };
    let is_foreign = request.headers.iter().any(is_foreign);
    Some(match (request.method, request.path) {
        _ if !is_local || is_foreign => 403,
        (Some("GET"), Some("/" | "/rate")) => 200,
        (Some("GET"), _) => 404,
        _ => 405,
    })
}

fn is_loopback(host: &str) -> bool {
    let address = host.parse().map(|at: SocketAddr| at.ip()).ok();
    let address = address.or_else(|| host.trim_matches(['[', ']']).parse::<IpAddr>().ok());
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    address.is_some_and(|ip| ip.is_loopback()) || name.eq_ignore_ascii_case("localhost")
}

/// Answers requests with the text that `state` returns; does not return.
pub async fn serve(listener: TcpListener, state: impl Fn() -> String) {
    let openings = Openings::new(MAX_REQUESTS);
    let mut requests = JoinSet::new();
    loop {
        let Ok((tcp, from)) = listener.accept().await else {
            // Probably no descriptor is free; wait until other requests end.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        while requests.try_join_next().is_some() {}
        let opening = openings.admit(from.ip());
        let state = state();
        requests.spawn(async move {
            tokio::select! {
                _ = timeout(PATIENCE, answer(tcp, state)) => {}
                () = opening.given_up() => {}
            }
        });
    }
}

async fn answer(mut tcp: TcpStream, state: String) -> std::io::Result<()> {
    let mut head = Vec::new();
    let status = loop {
        let room = MAX_HEAD.saturating_sub(head.len()) as u64;
        if room == 0 {
            break 400;
        }
        if (&mut tcp).take(room).read_buf(&mut head).await? == 0 {
            return Ok(());
        }
        if let Some(status) = judge(&head) {
            break status;
        }
    };
    let (name, body) = match status {
        200 => ("OK", state),
        403 => (
            "Forbidden",
            "{\"error\":\"only programs of this machine may ask, at a loopback address\"}".into(),
        ),
        404 => ("Not Found", "{\"error\":\"the rate is at /\"}".into()),
        405 => ("Method Not Allowed", "{\"error\":\"only GET\"}".into()),
        _ => ("Bad Request", "{\"error\":\"that is no HTTP request\"}".into()),
    };
    let length = body.len() + 1;
    let answer = format!(
        "HTTP/1.1 {status} {name}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Cache-Control: no-store\r\nConnection: close\r\n\r\n{body}\n"
    );
    tcp.write_all(answer.as_bytes()).await?;
    tcp.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_a_get_for_a_loopback_host_is_answered() {
        for (request, status) in [
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n", Some(200)),
            ("GET /rate HTTP/1.1\r\nHost: localhost:8080\r\n\r\n", Some(200)),
            ("GET / HTTP/1.1\r\nHost: [::1]:8080\r\n\r\n", Some(200)),
            ("GET / HTTP/1.0\r\n\r\n", Some(200)),
            ("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n", Some(403)),
            ("GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: example.org\r\n\r\n", Some(403)),
            ("GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n\r\n", Some(403)),
            ("GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: none\r\n\r\n", Some(200)),
            ("GET /keys HTTP/1.1\r\nHost: localhost\r\n\r\n", Some(404)),
            ("POST / HTTP/1.1\r\nHost: localhost\r\n\r\n", Some(405)),
            ("GET / HTTP/1.1\r\nHost: local", None),
            ("\0\r\n\r\n", Some(400)),
        ] {
            assert_eq!(judge(request.as_bytes()), status, "{request:?}");
        }
    }

    /// Connections that send no request do not delay a later client, since they are replaced before their deadline.
    #[tokio::test]
    async fn silent_connections_delay_no_request() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let server = tokio::spawn(serve(listener, || "{}".into()));
        let mut silent = Vec::new();
        for _ in 0..3 * MAX_REQUESTS {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        let is_open = |tcp: &TcpStream| tcp.try_read(&mut [0]).is_err();
        let open = silent.iter().filter(|tcp| is_open(tcp)).count();
        assert_eq!(open, MAX_REQUESTS - 1, "of {}", silent.len());
        server.abort();
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged(bytes: Vec<u8>) {
            let _ = judge(&bytes);
        }
    }
}
