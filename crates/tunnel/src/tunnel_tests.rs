//! Both ends in one process, over loopback.

use crate::client::{ClientOptions, NotOpened, Tunnel};
use crate::dial::{self, Lookup};
use crate::forward::{self, Forward};
use crate::limits::ClientLimits;
use crate::listen;
use crate::request::{Refusal, Request};
use crate::server::{Server, ServerOptions};
use futures_util::FutureExt as _;
use narrows_base::{Rate, Spec};
use narrows_congestion::PathHints;
use narrows_files::access::AllowList;
use narrows_files::{Identity, Kind, key};
use narrows_net::endpoint::connection;
use narrows_net::{ConnectOptions, Connection, Endpoint, Options};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Permit, ServerKey};
use narrows_transport::{Preset, Protocol};
use narrows_wire::StaticKey;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

fn config() -> ConnectionConfig {
    connection(Protocol::read(&Spec::named("rrtp+cubic"), Preset::Rfc, 1500).unwrap())
}

type Lines = Arc<Mutex<Vec<String>>>;

struct Far {
    at: SocketAddr,
    server: Identity,
    client: Identity,
    log: Lines,
    endpoint: Endpoint,
}

fn far_with(allow: &[&str], limits: ClientLimits, lookup: Lookup) -> Far {
    let (server, client) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let at = "127.0.0.1:0".parse().unwrap();
    far_at(at, server, client, allow, limits, lookup)
}

fn far_at(
    at: SocketAddr,
    server: Identity,
    client: Identity,
    allow: &[&str],
    limits: ClientLimits,
    lookup: Lookup,
) -> Far {
    let log = Lines::default();
    let lines = log.clone();
    let options = ServerOptions {
        identity: server.clone(),
        clients: AllowList::read(&key::text(client.public())).unwrap(),
        targets: crate::allow::Targets::new(allow.iter().map(|t| t.parse().unwrap()).collect()),
        limits,
        config: config(),
        permit: Permit::Listed,
        tap: None,
        lookup,
        log: Box::new(move |event| lines.lock().unwrap().push(event.line.clone())),
    };
    let bound = Server::bind(at, options).unwrap();
    let (at, endpoint) = (bound.address(), bound.endpoint().clone());
    tokio::spawn(async move { bound.run().await });
    Far { at, server, client, log, endpoint }
}

fn far(allow: &[&str]) -> Far {
    far_with(allow, ClientLimits::default(), dial::system())
}

impl Far {
    /// A near side, and what it tells its user.
    fn near(&self) -> (Arc<Tunnel>, Lines) {
        let patience = narrows_base::Duration::from_secs(10);
        self.near_at(self.at, patience, PathHints::default())
    }

    /// One that connects to this address, waits so long for an answer over UDP, and tells this of the path.
    fn near_at(
        &self,
        at: SocketAddr,
        patience: narrows_base::Duration,
        receiving: PathHints,
    ) -> (Arc<Tunnel>, Lines) {
        let told = Lines::default();
        let lines = told.clone();
        let tunnel = Tunnel::new(ClientOptions {
            host: at.ip().to_string(),
            port: at.port(),
            key: Some(*self.server.public()),
            judge: Box::new(|_| Ok(())),
            identity: self.client.clone(),
            config: config(),
            receiving,
            patience,
            tap: None,
            tell: Box::new(move |line| lines.lock().unwrap().push(line.into())),
        });
        let kept = tunnel.clone();
        tokio::spawn(async move { kept.keep().await });
        (tunnel, told)
    }

    /// A client that follows no rule but the transport's.
    async fn hostile(&self, streams: usize) -> Connection {
        let config = crate::connection::for_tunnel(config(), streams).unwrap();
        let key = StaticKey::new(*self.client.private()).unwrap();
        let endpoint =
            Endpoint::bind("127.0.0.1:0".parse().unwrap(), Options::client(key, config.clone()));
        let options = ConnectOptions::new(ServerKey::Is(*self.server.public()), config);
        endpoint.unwrap().connect(self.at, options).await.unwrap()
    }

    fn logged(&self, text: &str) -> bool {
        self.log.lock().unwrap().iter().any(|line| line.contains(text))
    }
}

/// A server on loopback that handles each connection so.
async fn target<F>(handle: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
where
    F: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(handle(tcp));
        }
    });
    at
}

/// Answers only after the client's end, with what it sent twice.
async fn twice(mut tcp: TcpStream) {
    let mut all = Vec::new();
    tcp.read_to_end(&mut all).await.unwrap();
    tcp.write_all(&all).await.unwrap();
    tcp.write_all(&all).await.unwrap();
}

async fn echo(mut tcp: TcpStream) {
    let (mut read, mut write) = tcp.split();
    let _ = tokio::io::copy(&mut read, &mut write).await;
}

/// A port of the near side that leads to `host:port`.
async fn port(tunnel: &Arc<Tunnel>, host: &str, port: u16) -> SocketAddr {
    let listener = listen::tcp("--tcp", "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let listen = listener.local_addr().unwrap();
    let forward = Forward { listen, host: host.into(), port };
    tokio::spawn(forward::run(tunnel.clone(), listener, forward));
    listen
}

/// A connection there is reset, perhaps before its program knows that there is one.
async fn assert_reset(port: SocketAddr) {
    let read = async { TcpStream::connect(port).await?.read(&mut [0; 9]).await };
    assert_eq!(read.await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_and_ends_pass_each_way_by_themselves() {
    let target = target(twice).await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    let port = port(&tunnel, "127.0.0.1", target.port()).await;
    let data: Vec<u8> = (0..3_000_000u32).map(|i| (i * 7 / 3) as u8).collect();
    let mut tcp = TcpStream::connect(port).await.unwrap();
    let (mut read, mut write) = tcp.split();
    let sent = async {
        write.write_all(&data).await.unwrap();
        write.shutdown().await.unwrap();
    };
    let mut got = Vec::new();
    let (_, read) = tokio::join!(sent, read.read_to_end(&mut got));
    read.unwrap();
    assert!(got == [&data[..], &data[..]].concat(), "{} bytes came", got.len());
    assert!(far.logged(&format!("tcp {target} opened to {target}")), "{:?}", far.log);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_cause_has_its_line_and_resets_the_connection() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let lookup: Lookup = Arc::new(|name| match name {
        "inside.test" => Ok(vec!["127.0.0.1".parse().unwrap(), "::ffff:10.0.0.1".parse().unwrap()]),
        "nat.test" => Ok(vec!["64:ff9b::7f00:1".parse().unwrap()]),
        _ => Err(std::io::Error::other("no such name")),
    });
    let allow = [&closed.to_string(), "*.test:80", "*:81"];
    let far = far_with(&allow, ClientLimits::default(), lookup);
    let (tunnel, told) = far.near();
    for (host, at, refusal) in [
        ("127.0.0.1", closed.port(), Refusal::Refused),
        ("127.0.0.1", 81, Refusal::NotPublic),
        ("::1", 81, Refusal::NotPublic),
        ("127.0.0.1", 80, Refusal::NotAllowed),
        ("inside.test", 80, Refusal::NotPublic),
        ("nat.test", 80, Refusal::NotPublic),
        ("absent.test", 80, Refusal::NoSuchName),
        ("inside.example", 80, Refusal::NotAllowed),
        ("bad name", 81, Refusal::BadRequest),
        ("a..b", 81, Refusal::NoSuchName),
    ] {
        let opened = tunnel.open(&Request::tcp(host, at)).await;
        assert_eq!(opened.err(), Some(NotOpened::Refused(refusal)), "{host}");
        assert_reset(port(&tunnel, host, at).await).await;
        let line = format!("{}: {refusal}", Request::tcp(host, at).shown());
        // The line follows the reset.
        while !told.lock().unwrap().contains(&line) {
            tokio::task::yield_now().await;
        }
    }
}

/// The name is looked up once, and what was judged is what is connected to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_that_changes_its_answer_gains_nothing() {
    let target = target(echo).await;
    let asked = Arc::new(Mutex::new(0));
    let count = asked.clone();
    // Public for the judge, the server's own machine for who asks again.
    let lookup: Lookup = Arc::new(move |_| {
        let mut asked = count.lock().unwrap();
        *asked += 1;
        let answer = if *asked == 1 { "192.0.2.1" } else { "127.0.0.1" };
        Ok(vec![answer.parse().unwrap()])
    });
    let port = target.port();
    // A network for documentation stands for a public one: nobody answers there.
    let far = far_with(
        &[&format!("192.0.2.0/24:{port}"), &format!("*:{port}")],
        ClientLimits::default(),
        lookup,
    );
    let (tunnel, _) = far.near();
    let first = tunnel.open(&Request::tcp("evil.test", port)).await.err();
    assert!(!matches!(first, None | Some(NotOpened::Refused(Refusal::NotPublic))), "{first:?}");
    assert_eq!(*asked.lock().unwrap(), 1);
    let second = tunnel.open(&Request::tcp("evil.test", port)).await.err();
    assert_eq!(second, Some(NotOpened::Refused(Refusal::NotPublic)));
}

/// A download that is cut off must not look whole.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reset_and_a_lost_tunnel_reset_what_is_open() {
    let target = target(|mut tcp| async move {
        let mut wish = [0];
        tcp.write_all(b"half").await.unwrap();
        tcp.read_exact(&mut wish).await.unwrap();
        if wish == *b"r" {
            crate::pipe::prepare(&tcp);
        } else {
            std::future::pending::<()>().await;
        }
    })
    .await;
    let far = far(&[&target.to_string()]);
    let (tunnel, told) = far.near();
    let port = port(&tunnel, "127.0.0.1", target.port()).await;
    for wish in [b"r", b"k"] {
        let mut tcp = TcpStream::connect(port).await.unwrap();
        tcp.read_exact(&mut [0; 4]).await.unwrap();
        tcp.write_all(wish).await.unwrap();
        if wish == b"k" {
            far.endpoint.close(256, "over");
        }
        let read = tcp.read(&mut [0; 9]).await;
        assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    }
    while !told.lock().unwrap().iter().any(|line| line.contains("is lost")) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_starts_again_is_found_again() {
    let target = target(echo).await;
    let old = far(&[&target.to_string()]);
    let (tunnel, told) = old.near();
    let port = port(&tunnel, "127.0.0.1", target.port()).await;
    let mut tcp = TcpStream::connect(port).await.unwrap();
    tcp.write_all(b"1234").await.unwrap();
    tcp.read_exact(&mut [0; 4]).await.unwrap();
    let Far { at, server, client, endpoint, .. } = old;
    endpoint.close(256, "stopped");
    endpoint.closed().await;
    drop(endpoint);
    assert!(tcp.read(&mut [0]).await.is_err());
    // The old socket goes a moment after its endpoint.
    while std::net::UdpSocket::bind(at).is_err() || std::net::TcpListener::bind(at).is_err() {
        tokio::task::yield_now().await;
    }
    let allow = [&*target.to_string()];
    let again = far_at(at, server, client, &allow, ClientLimits::default(), dial::system());
    let mut tcp = TcpStream::connect(port).await.unwrap();
    tcp.write_all(b"5678").await.unwrap();
    let mut got = [0; 4];
    tcp.read_exact(&mut got).await.unwrap();
    assert_eq!(got, *b"5678");
    assert!(again.logged("opened to"));
    let told = told.lock().unwrap();
    assert_eq!(told.iter().filter(|l| l.starts_with("connected to")).count(), 2, "{told:?}");
}

/// Ten thousand requests of a client that reads no answer: as many are open as may be, and another client is served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_opens_without_end_has_what_it_may() {
    let open = Arc::new(Mutex::new((0usize, 0usize)));
    let counted = open.clone();
    let target = target(move |mut tcp| {
        let counted = counted.clone();
        async move {
            {
                let mut open = counted.lock().unwrap();
                open.0 += 1;
                open.1 = open.1.max(open.0);
            }
            let _ = tcp.read(&mut [0]).await;
            counted.lock().unwrap().0 -= 1;
        }
    })
    .await;
    let limits = ClientLimits { streams: 20, openings: 1000, ..ClientLimits::default() };
    let far = far_with(&[&target.to_string()], limits, dial::system());
    let request = Request::tcp("127.0.0.1", target.port()).bytes().unwrap();
    // Two connections of one key, with twenty streams each by the transport's own limit.
    let mut kept = Vec::new();
    for expected in [None, Some(Refusal::TooMany)] {
        let connection = far.hostile(0).await;
        let mut streams = Vec::new();
        for _ in 0..20 {
            let (mut send, receive) = connection.open_bi().await.unwrap();
            send.send_all(&request).await.unwrap();
            streams.push((send, receive));
        }
        for (_, receive) in &mut streams {
            assert_eq!(crate::pipe::answer(receive).await.unwrap(), expected);
        }
        if expected.is_none() {
            let more = connection.open_bi().now_or_never();
            assert!(more.is_none(), "the transport permits no more than twenty");
        }
        kept.push((connection, streams));
    }
    assert!(open.lock().unwrap().1 <= 20);
    // Beyond four connections of one key the oldest goes.
    let mut more = Vec::new();
    for _ in 0..3 {
        more.push(far.hostile(0).await);
    }
    assert!(kept[0].0.closed().await.to_string().contains("newer"));
    assert!(!kept[1].0.is_closed());
}

/// Requests that are none, or never end, are answered or wait; nothing else falls over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_on_a_stream_is_answered_and_harms_no_other() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let hostile = far.hostile(0).await;
    let mut kept = Vec::new();
    for bytes in
        [&[0u8; 4][..], &[1, 0, 80, 0], &[1, 0, 0, 1, b'a'], &[1, 0, 80, 2, 0xff, 0xfe], &[9; 300]]
    {
        let (mut send, mut receive) = hostile.open_bi().await.unwrap();
        send.send_all(bytes).await.unwrap();
        assert_eq!(crate::pipe::answer(&mut receive).await, Ok(Some(Refusal::BadRequest)));
        kept.push((send, receive));
    }
    for bytes in [&[][..], &[1], &[1, 0, 80, 200, b'a']] {
        let (mut send, receive) = hostile.open_bi().await.unwrap();
        send.send_all(bytes).await.unwrap();
        kept.push((send, receive));
    }
    let (tunnel, _) = far.near();
    let (mut send, mut receive) =
        tunnel.open(&Request::tcp("127.0.0.1", target.port())).await.unwrap();
    send.send_last(b"still here").await.unwrap();
    assert_eq!(receive.receive_all(100).await.unwrap(), b"still here");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_for_nobody_or_nothing_does_not_start() {
    let options = |clients: &str, targets: &[&str]| ServerOptions {
        identity: Identity::generate().unwrap(),
        clients: AllowList::read(clients).unwrap(),
        targets: crate::allow::Targets::new(targets.iter().map(|t| t.parse().unwrap()).collect()),
        limits: ClientLimits::default(),
        config: config(),
        permit: Permit::Listed,
        tap: None,
        lookup: dial::system(),
        log: Box::new(|_| ()),
    };
    let at = "127.0.0.1:0".parse().unwrap();
    let client = key::text(Identity::generate().unwrap().public());
    for (clients, targets) in [("", &["*:80"][..]), (&client, &[])] {
        assert_eq!(Server::bind(at, options(clients, targets)).err().unwrap().kind, Kind::Input);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unlisted_client_ends_with_one_line() {
    let mut far = far(&["*:80"]);
    far.client = Identity::generate().unwrap();
    let tunnel = Tunnel::new(ClientOptions {
        host: "127.0.0.1".into(),
        port: far.at.port(),
        key: Some(*far.server.public()),
        judge: Box::new(|_| Ok(())),
        identity: far.client.clone(),
        config: config(),
        receiving: PathHints::default(),
        patience: narrows_base::Duration::from_secs(10),
        tap: None,
        tell: Box::new(|_| ()),
    });
    let e = tunnel.keep().await.unwrap_err();
    assert!(e.kind == Kind::Refused && e.line.contains(&key::text(far.client.public())), "{e}");
}

/// A UDP target on loopback that answers each datagram with itself twice, but nothing to `quiet`.
async fn udp_target() -> SocketAddr {
    let socket = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    tokio::spawn(async move {
        let mut bytes = [0; 2000];
        while let Ok((n, from)) = socket.recv_from(&mut bytes).await {
            if &bytes[..n] != b"quiet" {
                socket.send_to(&[&bytes[..n], &bytes[..n]].concat(), from).await.unwrap();
            }
        }
    });
    at
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_of_each_program_come_back_to_it() {
    let target = udp_target().await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    let socket = crate::datagrams::listen("--udp", "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let listen = socket.local_addr().unwrap();
    let forward = Forward { listen, host: "127.0.0.1".into(), port: target.port() };
    tokio::spawn(crate::datagrams::run(tunnel, socket, forward));
    let mut programs = Vec::new();
    for i in 0..3u8 {
        let program = tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap();
        program.connect(listen).await.unwrap();
        program.send(&[i; 20]).await.unwrap();
        programs.push(program);
    }
    for (i, program) in (0u8..).zip(&programs) {
        // The first, which opens the flow, and one after it.
        for value in [i, i + 100] {
            if value > 50 {
                program.send(&[value; 20]).await.unwrap();
            }
            let mut bytes = [0; 100];
            let n = program.recv(&mut bytes).await.unwrap();
            assert_eq!(bytes[..n], [value; 40]);
        }
    }
    assert!(far.logged(&format!("udp {target} opened to {target}")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_has_as_many_flows_as_it_may() {
    let target = udp_target().await;
    let limits = ClientLimits { flows: 3, ..ClientLimits::default() };
    let far = far_with(&[&target.to_string()], limits, dial::system());
    let (tunnel, _) = far.near();
    let link = tunnel.link().await.unwrap();
    let request = Request::udp("127.0.0.1", target.port());
    let mut kept = Vec::new();
    for i in 0..5 {
        let (send, mut receive) =
            link.ask(&request, &[0, 5, b'q', b'u', b'i', b'e', b't']).await.unwrap();
        let answer = crate::pipe::answer(&mut receive).await.unwrap();
        assert_eq!(answer, (i >= 3).then_some(Refusal::TooMany));
        kept.push((send, receive));
    }
    // Messages of flows that are not there, and that are none at all.
    for message in [&[][..], &[1], &[0xff; 40], &[0, 0, 0, 200, 1]] {
        link.connection().send_message(message, narrows_base::Duration::ZERO).unwrap();
    }
    kept.clear();
    // Their places come back.
    loop {
        let (_send, mut receive) = link.ask(&request, &[0, 1, b'x']).await.unwrap();
        if crate::pipe::answer(&mut receive).await.unwrap().is_none() {
            break;
        }
    }
}

async fn listening() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_connects_by_name_and_says_why_not() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    let (listener, at) = listening().await;
    tokio::spawn(crate::socks::run(tunnel, listener));
    let port = target.port().to_be_bytes();
    let by_name = [b"\x05\x01\x00\x03\x09localhost", &port[..]].concat();
    let not_allowed = [&[5, 1, 0, 1, 127, 0, 0, 1, 0, 1][..]].concat();
    for (request, code) in [(&by_name, 0), (&not_allowed, 2), (&vec![5, 2, 0], 7)] {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        // The request does not wait for the answer to the greeting, nor the data for that to the request.
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
    let mut tcp = TcpStream::connect(at).await.unwrap();
    tcp.write_all(&[5, 1, 2]).await.unwrap();
    let mut answer = Vec::new();
    tcp.read_to_end(&mut answer).await.unwrap();
    assert_eq!(answer, [5, 0xff], "a program that insists on a password");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn socks_associates_a_program_and_nobody_beside_it() {
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
    let (program, other) = (
        tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        tokio::net::UdpSocket::bind("127.0.0.1:0").await.unwrap(),
    );
    let head = [&[0, 0, 0, 1, 127, 0, 0, 1][..], &target.port().to_be_bytes()].concat();
    for text in ["one", "two"] {
        program.send_to(&[&head, text.as_bytes()].concat(), ("127.0.0.1", port)).await.unwrap();
        other.send_to(&[&head[..], b"three"].concat(), ("127.0.0.1", port)).await.unwrap();
        let mut bytes = [0; 100];
        let n = program.recv(&mut bytes).await.unwrap();
        assert_eq!(bytes[..n], [&head[..], text.as_bytes(), text.as_bytes()].concat());
    }
    assert!(other.try_recv(&mut [0; 9]).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_http_proxy_connects_and_passes_requests_on() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let (tunnel, _) = far.near();
    let (listener, at) = listening().await;
    tokio::spawn(crate::http::run(tunnel, listener));
    for (sent, begins) in [
        (
            format!("CONNECT {target} HTTP/1.1\r\n\r\nhello"),
            "HTTP/1.1 200 Connection established\r\n\r\nhello",
        ),
        (
            format!("GET http://{target}/x HTTP/1.1\r\n\r\n"),
            "GET /x HTTP/1.1\r\nConnection: close\r\n\r\n",
        ),
        ("CONNECT 127.0.0.1:1 HTTP/1.1\r\n\r\n".into(), "HTTP/1.1 403 Forbidden\r\n"),
        ("GET / HTTP/1.1\r\n\r\n".into(), "HTTP/1.1 400 Bad Request\r\n"),
    ] {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        tcp.write_all(sent.as_bytes()).await.unwrap();
        let mut answer = vec![0; begins.len()];
        tcp.read_exact(&mut answer).await.unwrap();
        assert_eq!(String::from_utf8(answer).unwrap(), begins);
    }
}

/// A server that answers nonsense: whatever it says, a program sees a reset or an answer of SOCKS, and the next one is
/// served.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_answers_nonsense_ends_one_connection_at_a_time() {
    let (server, client) = (Identity::generate().unwrap(), Identity::generate().unwrap());
    let config = crate::connection::for_tunnel(config(), 100).unwrap();
    let key = StaticKey::new(*server.private()).unwrap();
    let options = Options::server(key, narrows_transport::endpoint::Clients::Any, config);
    let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
    let at = endpoint.local_addr();
    tokio::spawn(async move {
        let connection = endpoint.accept().await.unwrap();
        for answer in [&[][..], &[77], &[0xff; 50]] {
            let (mut send, _receive) = connection.accept_bi().await.unwrap();
            connection.send_message(&[7; 30], narrows_base::Duration::ZERO).unwrap();
            send.send_last(answer).await.unwrap();
        }
        let (mut send, _receive) = connection.accept_bi().await.unwrap();
        send.reset(9).unwrap();
        let (mut send, mut receive) = connection.accept_bi().await.unwrap();
        send.send_last(b"\0fine").await.unwrap();
        let _ = receive.receive_all(1000).await;
    });
    let log = Lines::default();
    let endpoint = Endpoint::bind(
        "127.0.0.1:0".parse().unwrap(),
        Options::client(StaticKey::new([7; 32]).unwrap(), config_of_client()),
    );
    let far = Far { at, server, client, log, endpoint: endpoint.unwrap() };
    let (tunnel, told) = far.near();
    let port = port(&tunnel, "target.test", 80).await;
    for _ in 0..4 {
        assert_reset(port).await;
    }
    let mut tcp = TcpStream::connect(port).await.unwrap();
    tcp.shutdown().await.unwrap();
    let mut fine = String::new();
    let read = tcp.read_to_string(&mut fine).await;
    assert!(read.is_ok() && fine == "fine", "{read:?} {told:?}");
}

fn config_of_client() -> ConnectionConfig {
    crate::connection::for_tunnel(config(), 0).unwrap()
}

/// A port at which only TCP is answered, before a server: streams and datagrams pass.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_udp_does_not_pass_tcp_carries_the_same() {
    let (target, udp) = (target(twice).await, udp_target().await);
    let far = far(&[&target.to_string(), &udp.to_string()]);
    let (listener, at) = listening().await;
    let inside = far.at;
    tokio::spawn(async move { crate::over_tcp::serve(&listener, inside).await });
    // Silent, as a firewall is: a closed port would answer.
    let _silent = std::net::UdpSocket::bind(at).unwrap();
    let (tunnel, told) =
        far.near_at(at, narrows_base::Duration::from_millis(300), PathHints::default());
    let (mut send, mut receive) =
        tunnel.open(&Request::tcp("127.0.0.1", target.port())).await.unwrap();
    let data = vec![7; 400_000];
    let (sent, got) = tokio::join!(send.send_last(&data), receive.receive_all(1_000_000));
    sent.unwrap();
    assert!(got.unwrap() == [7; 800_000]);
    let line = format!("connected to {at} over TCP, since UDP is not answered");
    assert_eq!(*told.lock().unwrap(), [line]);
    let link = tunnel.link().await.unwrap();
    let (_send, mut receive) =
        link.ask(&Request::udp("127.0.0.1", udp.port()), &[0, 1, b'x']).await.unwrap();
    assert_eq!(crate::pipe::answer(&mut receive).await, Ok(None));
}

/// What comes over TCP and is no datagram ends that connection, and no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_over_tcp_ends_that_connection() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    for bytes in [&[0, 0][..], &[0xff; 5000], b"GET / HTTP/1.1\r\n\r\n"] {
        let mut tcp = TcpStream::connect(far.at).await.unwrap();
        tcp.write_all(bytes).await.unwrap();
        assert!(!matches!(tcp.read(&mut [0; 9]).await, Ok(1..)), "{bytes:?}");
    }
    // One that says nothing stays for a while; sixteen of an address, not more.
    let mut silent = Vec::new();
    for _ in 0..16 {
        silent.push(TcpStream::connect(far.at).await.unwrap());
    }
    let mut more = TcpStream::connect(far.at).await.unwrap();
    assert!(!matches!(more.read(&mut [0]).await, Ok(1..)));
    let (tunnel, _) = far.near();
    assert!(tunnel.open(&Request::tcp("127.0.0.1", target.port())).await.is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_far_side_is_told_of_the_path() {
    let target = target(echo).await;
    let far = far(&[&target.to_string()]);
    let hints = PathHints { rate: Some(Rate::from_bps(5_000_000)), ..PathHints::default() };
    let (tunnel, _) = far.near_at(far.at, narrows_base::Duration::from_secs(10), hints);
    let link = tunnel.link().await.unwrap();
    // Said before anything is opened.
    while !far.logged("carries 5 Mbit/s") {
        tokio::task::yield_now().await;
    }
    assert!(!link.connection().is_closed());
}
