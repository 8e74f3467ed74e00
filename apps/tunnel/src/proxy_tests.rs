//! Programs that use SOCKS or HTTP at the near side.

use crate::both_ends::*;
use hyper::body::Body as _;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{Duration, timeout};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_connects_by_name_and_says_why_not() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let (tunnel, log) = far.near();
    let (listener, at) = listening().await;
    tokio::spawn(crate::socks::run(tunnel, listener));
    let port = target.port().to_be_bytes();
    let by_name = [b"\x05\x01\x00\x03\x09localhost", &port[..]].concat();
    let not_allowed = [&[5, 1, 0, 1, 127, 0, 0, 1, 0, 1][..]].concat();
    for (request, code) in [(&by_name, 0), (&not_allowed, 2), (&vec![5, 2, 0], 7)] {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        // The request does not wait for the answer to the greeting, and the data does not wait for the answer to the
        // request.
        tcp.write_all(&[&[5, 1, 0], &request[..], b"hello"].concat()).await.unwrap();
        let mut answer = [0; 12];
        tcp.read_exact(&mut answer).await.unwrap();
        assert_eq!((&answer[..2], answer[3]), (&[5, 0][..], code));
        if code == 0 {
            let mut hello = [0; 5];
            tcp.read_exact(&mut hello).await.unwrap();
            assert_eq!(&hello, b"hello");
        }
    }
    // A program may use any password. A program that requires another method is refused, and the user is informed.
    let with_password = [&[5, 1, 2, 1, 1, b'u', 1, b'p'][..], &by_name, b"hello"].concat();
    let answer = said(at, &with_password, 2 + 2 + 10 + 5).await;
    assert_eq!((&answer[..6], &answer[14..]), (&[5, 2, 1, 0, 5, 0][..], &b"hello"[..]));
    assert_eq!(said(at, &[5, 1, 1], 9).await, [5, 0xff]);
    assert_eq!(said(at, b"GET / HTTP/1.1\r\n\r\n", 9).await, []);
    for part in ["offers neither", "neither SOCKS 5 nor SOCKS 4 (HTTP has --http-proxy)"] {
        assert!(log.lock().unwrap().iter().any(|line| line.contains(part)), "{log:?}");
    }
}

/// The bytes received after sending `bytes`: at most `max`, or all until the end.
async fn said(at: SocketAddr, bytes: &[u8], max: usize) -> Vec<u8> {
    let mut tcp = TcpStream::connect(at).await.unwrap();
    tcp.write_all(bytes).await.unwrap();
    let mut answer = Vec::new();
    while answer.len() < max && matches!(tcp.read_buf(&mut answer).await, Ok(1..)) {}
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_4_and_4a_connect() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    let (listener, at) = listening().await;
    tokio::spawn(crate::socks::run(tunnel, listener));
    let [high, low] = target.port().to_be_bytes();
    let four = [4, 1, high, low, 127, 0, 0, 1, b'm', b'e', 0];
    let by_name = [&[4, 1, high, low, 0, 0, 0, 1, 0][..], b"localhost\0"].concat();
    for request in [&four[..], &by_name] {
        let answer = said(at, &[request, b"hello"].concat(), 13).await;
        assert_eq!(answer, [&[0, 0x5a, 0, 0, 0, 0, 0, 0][..], b"hello"].concat());
    }
    for refused in [[4, 1, 0, 1, 127, 0, 0, 1, 0], [4, 2, high, low, 127, 0, 0, 1, 0]] {
        assert_eq!(said(at, &refused, 8).await, [0, 0x5b, 0, 0, 0, 0, 0, 0]);
    }
}

/// More silent connections than there are places.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_programs_block_no_other() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    for is_http in [false, true] {
        let (listener, at) = listening().await;
        if is_http {
            tokio::spawn(crate::http::run(tunnel.clone(), listener));
        } else {
            tokio::spawn(crate::socks::run(tunnel.clone(), listener));
        }
        let mut silent = Vec::new();
        for _ in 0..150 {
            silent.push(TcpStream::connect(at).await.unwrap());
        }
        // The first one was closed long before its timeout.
        assert!(!matches!(silent[0].read(&mut [0]).await, Ok(1..)));
        let port = target.port().to_be_bytes();
        let request = match is_http {
            true => format!("CONNECT {target} HTTP/1.1\r\n\r\nhello").into_bytes(),
            false => [&[5, 1, 0, 5, 1, 0, 1, 127, 0, 0, 1][..], &port, b"hello"].concat(),
        };
        let answer = said(at, &request, if is_http { 24 } else { 17 }).await;
        assert!(answer.ends_with(b"hello"), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_association_serves_only_its_program() {
    let target = udp_target().await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    let (listener, at) = listening().await;
    tokio::spawn(crate::socks::run(tunnel, listener));
    let mut tcp = TcpStream::connect(at).await.unwrap();
    tcp.write_all(&[5, 1, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0]).await.unwrap();
    let mut answer = [0; 12];
    tcp.read_exact(&mut answer).await.unwrap();
    let port = u16::from_be_bytes([answer[10], answer[11]]);
    let program = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let other = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let head = [&[0, 0, 0, 1, 127, 0, 0, 1][..], &target.port().to_be_bytes()].concat();
    program.connect(("127.0.0.1", port)).await.unwrap();
    let answer = |text: &str| [&head[..], text.as_bytes(), text.as_bytes()].concat();
    for text in ["one", "two"] {
        loop {
            let received = question(&program, &[&head, text.as_bytes()].concat()).await;
            if received == answer(text) {
                break;
            }
            assert_eq!(received, answer("one"));
        }
        other.send_to(&[&head[..], b"three"].concat(), ("127.0.0.1", port)).await.unwrap();
    }
    assert!(other.try_recv(&mut [0; 9]).is_err());
}

/// An HTTP server that answers each request with its own name and the request's head. It keeps the connection open
/// unless the request asks for its end.
async fn named(name: &'static str) -> SocketAddr {
    target(move |mut tcp: TcpStream| async move {
        let mut bytes = Vec::new();
        while let Ok(1..) = tcp.read_buf(&mut bytes).await {
            let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head: Vec<u8> = bytes.drain(..end + 4).collect();
            let body = format!("{name} {}", String::from_utf8(head).unwrap());
            let closes = body.contains("close");
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nX-Hop: 1\r\nConnection: x-hop\r\nContent-Length: {length}\r\n\r\n");
            tcp.write_all((head + &body).as_bytes()).await.unwrap();
            if closes {
                return;
            }
        }
    })
    .await
}

/// An HTTP proxy that may connect to these addresses.
async fn http_proxy(allow: &[SocketAddr]) -> (Far, SocketAddr) {
    let allow: Vec<_> = allow.iter().map(ToString::to_string).collect();
    let far = far(&allow.iter().map(String::as_str).collect::<Vec<_>>());
    let (tunnel, _) = far.near();
    let (listener, at) = listening().await;
    tokio::spawn(crate::http::run(tunnel, listener));
    (far, at)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http_proxy_connects_and_refuses() {
    let target = target(echo).await;
    let (_far, at) = http_proxy(&[target]).await;
    for (sent, begins) in [
        (format!("CONNECT {target} HTTP/1.1\r\n\r\nhello"), "HTTP/1.1 200 OK\r\n\r\nhello"),
        ("CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n".into(), "HTTP/1.1 403 Forbidden\r\n"),
        ("GET http://127.0.0.1:1/ HTTP/1.1\r\n\r\n".into(), "HTTP/1.1 403 Forbidden\r\n"),
        ("GET / HTTP/1.1\r\nHost: x\r\n\r\n".into(), "HTTP/1.1 400 Bad Request\r\n"),
        ("GET https://x/ HTTP/1.1\r\n\r\n".into(), "HTTP/1.1 400 Bad Request\r\n"),
        // The target does not answer in HTTP.
        (format!("GET http://{target}/ HTTP/1.1\r\n\r\n"), "HTTP/1.1 502 Bad Gateway\r\n"),
    ] {
        let answer = said(at, sent.as_bytes(), begins.len()).await;
        let answer = String::from_utf8(answer).unwrap();
        assert!(answer.starts_with(begins), "{sent}: {answer}");
    }
}

/// Sequential and pipelined requests of one connection: each goes to its own server, with its fields.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_request_of_a_connection_goes_to_its_own_server() {
    let one = named("one").await;
    let two = named("two").await;
    let (_far, at) = http_proxy(&[one, two]).await;
    let get = |server: SocketAddr, secret: &str| {
        format!(
            "GET http://{server}/ HTTP/1.1\r\nHost: other.example\r\nAuthorization: {secret}\r\nProxy-Connection: keep-alive\r\n\r\n"
        )
    };
    for is_pipelined in [false, true] {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        let requests = [get(one, "for-one"), get(two, "for-two"), get(one, "again")];
        if is_pipelined {
            tcp.write_all(requests.concat().as_bytes()).await.unwrap();
        }
        let mut bytes = Vec::new();
        for (request, (server, name, secret)) in requests.iter().zip([
            (one, "one", "for-one"),
            (two, "two", "for-two"),
            (one, "one", "again"),
        ]) {
            if !is_pipelined {
                tcp.write_all(request.as_bytes()).await.unwrap();
            }
            let body = format!(
                "{name} GET / HTTP/1.1\r\nHost: {server}\r\nAuthorization: {secret}\r\nconnection: close\r\n\r\n"
            );
            let ends = |bytes: &[u8]| {
                let at = bytes.windows(body.len()).position(|part| part == body.as_bytes());
                at.map(|at| at + body.len())
            };
            let end = loop {
                if let Some(end) = ends(&bytes) {
                    break end;
                }
                let text = String::from_utf8_lossy(&bytes).into_owned();
                assert!(matches!(tcp.read_buf(&mut bytes).await, Ok(1..)), "{text} for {body}");
            };
            let answer: Vec<u8> = bytes.drain(..end).collect();
            let answer = String::from_utf8(answer).unwrap().to_lowercase();
            assert!(answer.starts_with("http/1.1 200 ok") && !answer.contains("x-hop"), "{answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upgrade_passes_and_both_sides_speak_on() {
    let target = target(|mut tcp: TcpStream| async move {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"\r\n\r\n") {
            assert!(tcp.read_buf(&mut bytes).await.unwrap() > 0);
        }
        let head = String::from_utf8(bytes).unwrap().to_lowercase();
        assert!(head.contains("upgrade: websocket") && head.contains("connection: upgrade"));
        let switches = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nfirst";
        tcp.write_all(switches).await.unwrap();
        echo(tcp).await;
    })
    .await;
    let (_far, at) = http_proxy(&[target]).await;
    let asked = format!(
        "GET ws://{target}/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    );
    let mut tcp = TcpStream::connect(at).await.unwrap();
    tcp.write_all(asked.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\nfirst") {
        assert!(tcp.read_buf(&mut bytes).await.unwrap() > 0);
    }
    assert!(bytes.starts_with(b"HTTP/1.1 101 "));
    tcp.write_all(b"more").await.unwrap();
    let mut more = [0; 4];
    tcp.read_exact(&mut more).await.unwrap();
    assert_eq!(&more, b"more");
}

/// A body without a length, for an HTTP/1.0 program, ends with the connection: a reset shows that it was truncated.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_cut_off_does_not_look_whole() {
    let target = target(|mut tcp: TcpStream| async move {
        let mut bytes = Vec::new();
        // A socket that is closed with unread bytes would reset its connection.
        while !bytes.ends_with(b"\r\n\r\n") {
            assert!(tcp.read_buf(&mut bytes).await.unwrap() > 0);
        }
        let is_whole = bytes.starts_with(b"GET /whole");
        tcp.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n")
            .await
            .unwrap();
        if is_whole {
            tcp.write_all(b"0\r\n\r\n").await.unwrap();
        }
    })
    .await;
    let (_far, at) = http_proxy(&[target]).await;
    for (path, is_whole) in [("/whole", true), ("/part", false)] {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        let get = format!("GET http://{target}{path} HTTP/1.0\r\n\r\n");
        tcp.write_all(get.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        let read = tcp.read_to_end(&mut answer).await;
        assert_eq!(read.is_ok(), is_whole, "{path}: {read:?}");
        let text = String::from_utf8_lossy(&answer);
        assert!(!is_whole || text.ends_with("\r\n\r\npart"), "{text}");
    }
}

/// Reads to the end of a head.
async fn head(tcp: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(tcp.read(&mut byte).await.unwrap(), 1, "{bytes:?}");
        bytes.extend(byte);
    }
    String::from_utf8(bytes).unwrap()
}

/// The server refuses one upload by its head, and takes the other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn expectation_of_100_is_left_to_the_server() {
    let server = target(|mut tcp: TcpStream| async move {
        let request = head(&mut tcp).await;
        assert!(request.contains("Expect: 100-continue"), "{request}");
        if request.starts_with("PUT /refused") {
            let none = timeout(Duration::from_millis(200), tcp.read(&mut [0])).await;
            assert!(none.is_err(), "no byte of the body comes before the answer");
            tcp.write_all(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        } else {
            tcp.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
            let mut body = [0; 4];
            tcp.read_exact(&mut body).await.unwrap();
            assert_eq!(&body, b"body");
            tcp.write_all(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        }
        let _ = tcp.read(&mut [0]).await;
    })
    .await;
    let (_far, at) = http_proxy(&[server]).await;
    let put = |path: &str| {
        format!(
            "PUT http://{server}/{path} HTTP/1.1\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
        )
    };
    let mut tcp = TcpStream::connect(at).await.unwrap();
    tcp.write_all(put("taken").as_bytes()).await.unwrap();
    assert_eq!(head(&mut tcp).await, "HTTP/1.1 100 Continue\r\n\r\n");
    tcp.write_all(b"body").await.unwrap();
    assert!(head(&mut tcp).await.starts_with("HTTP/1.1 201 Created\r\n"));
    // The same connection, and a body that the program then does not send.
    tcp.write_all(put("refused").as_bytes()).await.unwrap();
    let answer = head(&mut tcp).await;
    assert!(
        answer.starts_with("HTTP/1.1 401 ") && answer.contains("connection: close"),
        "{answer}"
    );
    assert!(!matches!(tcp.read(&mut [0]).await, Ok(1..)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn interim_answers_and_trailers_pass_unchanged() {
    const SENT: &str = "4\r\nbody\r\n0\r\nSum: 9\r\n\r\n";
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n";
    let rest = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Checksum\r\n\r\n\
        4\r\npart\r\n0\r\nChecksum: 7\r\n\r\n";
    let server = target(move |mut tcp: TcpStream| async move {
        let request = head(&mut tcp).await;
        tcp.write_all(hints.as_bytes()).await.unwrap();
        if request.starts_with("POST") {
            // Trailers of the request.
            let mut body = vec![0; SENT.len()];
            tcp.read_exact(&mut body).await.unwrap();
            assert_eq!(body, SENT.as_bytes());
        }
        tcp.write_all(rest.as_bytes()).await.unwrap();
    })
    .await;
    let (_far, at) = http_proxy(&[server]).await;
    let mut tcp = TcpStream::connect(at).await.unwrap();
    for request in [
        format!("GET http://{server}/ HTTP/1.1\r\nTE: trailers\r\n\r\n"),
        format!("POST http://{server}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{SENT}"),
    ] {
        tcp.write_all(request.as_bytes()).await.unwrap();
        let expected = [hints, rest].concat();
        let mut answer = vec![0; expected.len()];
        tcp.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&answer), expected);
    }
}

/// curl by each method of both proxies: two servers by one command, so that connections to the proxy are reused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_reaches_servers_by_every_kind_of_proxy() {
    if std::process::Command::new("curl").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no curl here");
    }
    let one = named("one").await;
    let two = named("two").await;
    let (far, http) = http_proxy(&[one, two]).await;
    let (tunnel, log) = far.near();
    let (listener, socks) = listening().await;
    tokio::spawn(crate::socks::run(tunnel, listener));
    for (proxy, more) in [
        (format!("http://{http}"), &[][..]),
        (format!("http://user:word@{http}"), &["--proxytunnel"]),
        (format!("socks4://{socks}"), &[]),
        (format!("socks4a://{socks}"), &[]),
        (format!("socks5://{socks}"), &[]),
        (format!("socks5h://user:word@{socks}"), &["--socks5-basic"]),
    ] {
        let first = format!("http://{one}/first");
        let second = format!("http://{two}/second");
        let curl = tokio::process::Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--noproxy",
                "",
                "--max-time",
                "60",
                "--proxy",
                &proxy,
            ])
            .args(more)
            .args([&first, &second])
            .output();
        let output = curl.await.unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{proxy}: {output:?} {log:?}");
        for part in ["one GET /first ", "two GET /second "] {
            assert!(text.contains(part), "{proxy}: {text}");
        }
        assert!(!text.to_lowercase().contains("proxy-"), "{proxy}: {text}");
    }
}

/// A hyper client sends requests for two servers in turn on one connection, and one by CONNECT.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hyper_reaches_servers_on_one_connection_and_by_connect() {
    use hyper::client::conn::http1::handshake;
    use hyper_util::rt::TokioIo;
    let one = named("one").await;
    let two = named("two").await;
    let (_far, proxy) = http_proxy(&[one, two]).await;
    let asked = |method, uri: String| {
        let request = hyper::Request::builder().method(method).uri(uri).header("host", "proxy");
        request.body(String::new()).unwrap()
    };
    let text = async |response: hyper::Response<hyper::body::Incoming>| {
        assert_eq!(response.status(), 200);
        let mut body = response.into_body();
        let mut all = Vec::new();
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            all.extend(frame.unwrap().into_data().unwrap());
        }
        String::from_utf8(all).unwrap()
    };
    let tcp = TcpStream::connect(proxy).await.unwrap();
    let (mut kept, connection) = handshake(TokioIo::new(tcp)).await.unwrap();
    tokio::spawn(connection);
    for (name, at) in [("one", one), ("two", two), ("one", one)] {
        kept.ready().await.unwrap();
        let answer = kept.send_request(asked("GET", format!("http://{at}/kept"))).await.unwrap();
        let answer = text(answer).await;
        assert!(answer.starts_with(&format!("{name} GET /kept ")), "{answer}");
        assert!(answer.to_lowercase().contains(&format!("host: {at}")), "{answer}");
    }
    let tcp = TcpStream::connect(proxy).await.unwrap();
    let (mut through, connection) = handshake(TokioIo::new(tcp)).await.unwrap();
    tokio::spawn(connection.with_upgrades());
    let answer = through.send_request(asked("CONNECT", two.to_string())).await.unwrap();
    assert_eq!(answer.status(), 200);
    let tcp = hyper::upgrade::on(answer).await.unwrap();
    let (mut inside, connection) = handshake(tcp).await.unwrap();
    tokio::spawn(connection);
    let answer = inside.send_request(asked("GET", "/inside".into())).await.unwrap();
    assert!(text(answer).await.starts_with("two GET /inside "));
}
