//! Both ends in one process over loopback, and targets, for tests.

use crate::client::{ClientOptions, Tunnel};
use crate::dial::{self, Lookup};
use crate::forward::{self, Forward};
use crate::limits::ClientLimits;
use crate::listen;
use crate::permissions::Permissions;
use crate::reverse::ReversePorts;
use crate::server::{ServerOptions, TunnelServer};
use narrows_base::Duration;
use narrows_congestion::PathHints;
use narrows_net::endpoint::connection;
use narrows_net::{ConnectOptions, Connection, Endpoint, Error, Options};
use narrows_peers::access::AllowList;
use narrows_peers::dial::Peer;
use narrows_peers::learned::LearnedPaths;
use narrows_peers::path_choice::PathChoices;
use narrows_peers::{Identity, key};
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Permit, ServerKey};
use narrows_wire::StaticKey;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, Weak};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

pub(crate) fn config() -> ConnectionConfig {
    connection(Protocol::with_controller("cubic").unwrap())
}

pub(crate) type Lines = Arc<Mutex<Vec<String>>>;

pub(crate) struct Far {
    pub at: SocketAddr,
    pub server: Identity,
    pub client: Identity,
    pub log: Lines,
    pub endpoint: Endpoint,
    /// Weak, so that a test can end the server; never alive if the test is the server itself.
    pub bound: Weak<TunnelServer>,
}

/// Options of a near side: the server, the timeout over UDP, the permitted silence, hints for the server, learned
/// paths.
pub(crate) struct Near {
    pub at: SocketAddr,
    pub patience: Duration,
    pub silence: Duration,
    pub receiving: PathHints,
    pub learned: Option<(Arc<LearnedPaths>, String)>,
    pub paths: PathChoices,
}

impl Near {
    pub(crate) fn at(at: SocketAddr) -> Near {
        let patience = Duration::from_secs(10);
        let silence = Duration::from_secs(12);
        let receiving = PathHints::default();
        Near { at, patience, silence, receiving, learned: None, paths: PathChoices::default() }
    }
}

/// A far side: its keys, permissions and address.
pub(crate) struct FarSetup<'a> {
    pub at: SocketAddr,
    pub server: Identity,
    pub client: Identity,
    pub allow: &'a [&'a str],
    /// Networks whose packets it carries.
    pub tun: &'a [&'a str],
    pub limits: ClientLimits,
    pub lookup: Lookup,
    pub learned: Option<Arc<LearnedPaths>>,
}

impl<'a> FarSetup<'a> {
    pub(crate) fn new(allow: &'a [&'a str]) -> FarSetup<'a> {
        FarSetup {
            at: "127.0.0.1:0".parse().unwrap(),
            server: Identity::generate().unwrap(),
            client: Identity::generate().unwrap(),
            allow,
            tun: &[],
            limits: ClientLimits::default(),
            lookup: dial::system(),
            learned: None,
        }
    }

    pub(crate) fn start(self) -> Far {
        let FarSetup { at, server, client, allow, tun, limits, lookup, learned } = self;
        let log = Lines::default();
        let lines = log.clone();
        let options = ServerOptions {
            identity: server.clone(),
            permissions: permissions(&[&client], allow, limits),
            tun: tun.iter().map(|network| network.parse().unwrap()).collect(),
            config: config(),
            permit: Permit::Listed,
            learned,
            tap: None,
            lookup,
            log: Arc::new(move |event| lines.lock().unwrap().extend(event.line.clone())),
        };
        let bound = Arc::new(TunnelServer::bind(at, options).unwrap());
        let at = bound.address();
        let endpoint = bound.endpoint().clone();
        let running = bound.clone();
        tokio::spawn(async move { running.run().await });
        Far { at, server, client, log, endpoint, bound: Arc::downgrade(&bound) }
    }
}

pub(crate) fn far_with(allow: &[&str], limits: ClientLimits, lookup: Lookup) -> Far {
    FarSetup { limits, lookup, ..FarSetup::new(allow) }.start()
}

/// A far side that also carries packets of these networks.
pub(crate) fn far_of_packets(allow: &[&str], tun: &[&str]) -> Far {
    FarSetup { tun, ..FarSetup::new(allow) }.start()
}

pub(crate) fn permissions(
    clients: &[&Identity],
    allow: &[&str],
    limits: ClientLimits,
) -> Permissions {
    let keys: Vec<String> = clients.iter().map(|client| key::text(client.public())).collect();
    Permissions {
        clients: AllowList::read(&keys.join("\n")).unwrap(),
        targets: crate::allow::Targets::new(allow.iter().map(|t| t.parse().unwrap()).collect()),
        reverse: ReversePorts::default(),
        limits,
    }
}

pub(crate) fn far(allow: &[&str]) -> Far {
    far_with(allow, ClientLimits::default(), dial::system())
}

impl Far {
    pub(crate) fn set_permissions(
        &self,
        permissions: Permissions,
    ) -> Result<(), narrows_peers::Error> {
        self.bound.upgrade().unwrap().set_permissions(permissions)
    }

    /// A near side, and its log lines.
    pub(crate) fn near(&self) -> (Arc<Tunnel>, Lines) {
        self.near_as(Near::at(self.at))
    }

    /// A near side with these options.
    pub(crate) fn near_as(&self, near: Near) -> (Arc<Tunnel>, Lines) {
        let near_log = Lines::default();
        let lines = near_log.clone();
        let tunnel = Tunnel::new(ClientOptions {
            peer: Peer {
                host: near.at.ip().to_string(),
                port: near.at.port(),
                key: Some(*self.server.public()),
                judge: Box::new(|_| Ok(())),
                identity: self.client.clone(),
                config: config(),
                patience: near.patience,
                tap: None,
                paths: near.paths,
            },
            receiving: near.receiving,
            silence: near.silence,
            incoming: crate::reverse::incoming(1),
            learned: near.learned,
            tell: Box::new(move |line| lines.lock().unwrap().push(line.into())),
        });
        let kept = tunnel.clone();
        tokio::spawn(async move { kept.keep().await });
        (tunnel, near_log)
    }

    /// A client that follows only the transport's rules.
    pub(crate) async fn hostile(&self, streams: usize) -> Connection {
        let config = crate::connection::for_tunnel(config(), streams).unwrap();
        self.hostile_as(config).await.unwrap()
    }

    /// A client that follows only the transport's rules, with this configuration.
    pub(crate) async fn hostile_as(&self, config: ConnectionConfig) -> Result<Connection, Error> {
        let applications = crate::connection::for_tunnel(config.clone(), 0).unwrap().applications;
        let config = ConnectionConfig { applications, ..config };
        let key = StaticKey::new(*self.client.private()).unwrap();
        let endpoint =
            Endpoint::bind("127.0.0.1:0".parse().unwrap(), Options::client(key, config.clone()));
        let options = ConnectOptions::new(ServerKey::Is(*self.server.public()), config);
        endpoint.unwrap().connect(self.at, options).await
    }

    pub(crate) fn logged(&self, text: &str) -> bool {
        self.log.lock().unwrap().iter().any(|line| line.contains(text))
    }
}

/// A server on loopback that passes each connection to `handle`.
pub(crate) async fn target<F>(handle: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr
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

/// Reads to the client's end, then sends the received bytes twice.
pub(crate) async fn twice(mut tcp: TcpStream) {
    let mut all = Vec::new();
    tcp.read_to_end(&mut all).await.unwrap();
    tcp.write_all(&all).await.unwrap();
    tcp.write_all(&all).await.unwrap();
}

pub(crate) async fn echo(mut tcp: TcpStream) {
    let (mut read, mut write) = tcp.split();
    let _ = tokio::io::copy(&mut read, &mut write).await;
}

/// A port of the near side that leads to `host:port`.
pub(crate) async fn port(tunnel: &Arc<Tunnel>, host: &str, port: u16) -> SocketAddr {
    let listener = listen::tcp("--tcp", "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let listen = listener.local_addr().unwrap();
    let forward = Forward { listen, host: host.into(), port };
    tokio::spawn(forward::run(tunnel.clone(), listener, forward));
    listen
}

/// A connection to this port is reset, perhaps before its program detects that it is open.
pub(crate) async fn assert_reset(port: SocketAddr) {
    let read = async { TcpStream::connect(port).await?.read(&mut [0; 9]).await };
    assert_eq!(read.await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

/// Sends this until a datagram is received, since one may be lost on a busy machine: it expires, or a buffer is full.
/// Returns the received one, which may answer an earlier question.
pub(crate) async fn question(program: &tokio::net::UdpSocket, datagram: &[u8]) -> Vec<u8> {
    let mut bytes = [0; 2000];
    loop {
        program.send(datagram).await.unwrap();
        let second = std::time::Duration::from_secs(1);
        if let Ok(received) = tokio::time::timeout(second, program.recv(&mut bytes)).await {
            return bytes[..received.unwrap()].to_vec();
        }
    }
}

/// A UDP target on loopback that sends each datagram back twice, but does not answer datagrams from `quiet`.
pub(crate) async fn udp_target() -> SocketAddr {
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

pub(crate) async fn listening() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    (listener, at)
}

/// A port of TCP and UDP. A UDP port of another test may have the number of a free TCP port, so several are tried.
pub(crate) async fn listening_over_both() -> (TcpListener, tokio::net::UdpSocket, SocketAddr) {
    loop {
        let (listener, at) = listening().await;
        if let Ok(udp) = tokio::net::UdpSocket::bind(at).await {
            return (listener, udp, at);
        }
    }
}

pub(crate) fn config_of_client() -> ConnectionConfig {
    crate::connection::for_tunnel(config(), 0).unwrap()
}
