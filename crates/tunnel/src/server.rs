//! The far side: accepts clients on its list, and opens for them what its targets permit.

use crate::allow::{Denied, Targets};
use crate::connection::for_tunnel;
use crate::dial::{self, Lookup};
use crate::flow::{self, Flows};
use crate::hints;
use crate::limits::{Client, ClientLimits};
use crate::over_tcp;
use crate::pipe;
use crate::request::{HEAD, Kind, Refusal, Request};
use narrows_base::text::shown;
use narrows_congestion::{HintSource, PathHints};
use narrows_files::access::AllowList;
use narrows_files::{Error, Identity, Kind as Cause, key};
use narrows_net::tap::Tap;
use narrows_net::{Connection, Endpoint, Options, ReceiveStream, SendStream, SystemError};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, EndpointLimits, Permit};
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

/// A client has so long to say what it wants on a stream.
const ASKING: std::time::Duration = std::time::Duration::from_secs(10);
/// Connections of a server, and of one client: its newest ones.
const MAX_CONNECTIONS: usize = 512;
const MAX_CONNECTIONS_OF_CLIENT: usize = 4;
/// The code of connections that are closed for a newer one of the same client.
const REPLACED: u64 = 257;

/// A line for the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Whether something was refused or broke.
    pub is_warning: bool,
    /// Whom it is about.
    pub client: String,
    /// What happened.
    pub line: String,
}

/// How a server is made.
pub struct ServerOptions {
    /// Its key.
    pub identity: Identity,
    /// Who may come.
    pub clients: AllowList,
    /// Where to.
    pub targets: Targets,
    /// What each client may have.
    pub limits: ClientLimits,
    /// How connections behave.
    pub config: ConnectionConfig,
    /// Which of the clients' protocols are sent with.
    pub permit: Permit,
    /// Who watches.
    pub tap: Option<Arc<dyn Tap>>,
    /// Where names lead.
    pub lookup: Lookup,
    /// The log.
    pub log: Box<dyn Fn(&Event) + Send + Sync>,
}

/// A listening server.
pub struct Server {
    endpoint: Endpoint,
    /// The same port of TCP, for clients whose UDP does not pass.
    over_tcp: TcpListener,
    shared: Arc<Shared>,
}

/// A client, and its connections, the oldest first.
type Known = (Arc<Client>, Vec<Connection>);

struct Shared {
    targets: Targets,
    limits: ClientLimits,
    lookup: Lookup,
    log: Box<dyn Fn(&Event) + Send + Sync>,
    /// Only keys on the list get here, so there are no more than these.
    clients: Mutex<HashMap<PublicKey, Known>>,
}

impl Server {
    /// Listens; within a tokio runtime, which drives it.
    ///
    /// # Errors
    /// Nobody may come or nothing is permitted; or the address is not ours, taken, or not permitted.
    pub fn bind(address: SocketAddr, options: ServerOptions) -> Result<Server, Error> {
        let ServerOptions { identity, clients, targets, limits, config, permit, tap, lookup, log } =
            options;
        if clients.is_empty() {
            return Err(Error::new(
                Cause::Input,
                "--clients: no key is listed, so nobody may come",
            ));
        }
        if targets.is_empty() {
            return Err(Error::new(Cause::Input, "--allow: no target is listed"));
        }
        let config = ConnectionConfig { send_buffer: limits.unsent, ..config };
        let config = for_tunnel(config, limits.streams)?;
        let key = StaticKey::new(*identity.private())
            .map_err(|e| Error::new(Cause::Local, e.to_string()))?;
        let listed = Clients::Listed(clients.keys().copied().collect());
        let mut options = Options::server(key, listed, config).tapped(tap);
        options.permit = permit;
        options.limits = EndpointLimits::new(MAX_CONNECTIONS);
        let failed = |e: String| Error::new(Cause::Local, format!("--listen: {e}"));
        // The same number for both, also where the system chooses it.
        let over_tcp = std::net::TcpListener::bind(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, TcpListener::from_std(listener)?))
        });
        let (address, over_tcp) = over_tcp.map_err(|e| {
            failed(format!("cannot use TCP at {address}: {}", SystemError::from(e)))
        })?;
        let endpoint = Endpoint::bind(address, options).map_err(|e| failed(e.to_string()))?;
        let shared = Shared { targets, limits, lookup, log, clients: Mutex::default() };
        Ok(Server { endpoint, over_tcp, shared: Arc::new(shared) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Its endpoint, to end it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Names that are listed and lead only to addresses that are not permitted: a line for each. Looks all of them up.
    pub fn useless_names(&self) -> Vec<String> {
        let Shared { targets, lookup, .. } = &*self.shared;
        let lines = targets.names().filter_map(|(name, port)| {
            let found = lookup(name).ok()?;
            let judge = |a: &IpAddr| dial::judge(targets, Some(name), *a, port.unwrap_or(1));
            let address = found.first().filter(|_| found.iter().all(|a| judge(a).is_err()))?;
            let Err(Denied::NotPublic(what)) = judge(address) else { return None };
            let port = port.map_or("*".into(), |port| port.to_string());
            let shown = match address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            };
            Some(format!(
                "--allow {name}:{port}: {name} leads to {address}, {what}, which is permitted only if it is \
                 listed itself: --allow {shown}:{port}"
            ))
        });
        lines.collect()
    }

    /// Serves until the endpoint is closed.
    pub async fn run(&self) {
        tokio::select! {
            () = self.accept() => {}
            () = over_tcp::serve(&self.over_tcp, self.address()) => {}
        }
    }

    async fn accept(&self) {
        let mut connections = JoinSet::new();
        while let Ok(connection) = self.endpoint.accept().await {
            while connections.try_join_next().is_some() {}
            // Known in the order in which they came.
            let Some(key) = connection.peer_key() else { continue };
            let client = self.shared.client(key, &connection);
            connections.spawn(serve(self.shared.clone(), connection, client, key));
        }
    }
}

impl Shared {
    /// The client of a new connection; of too many connections the oldest is closed.
    fn client(&self, key: PublicKey, connection: &Connection) -> Arc<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || (Arc::new(Client::new(self.limits)), Vec::new());
        let (client, connections) = clients.entry(key).or_insert_with(new);
        connections.retain(|c| !c.is_closed());
        if connections.len() >= MAX_CONNECTIONS_OF_CLIENT {
            connections.remove(0).close(REPLACED, "newer connections took its place");
        }
        connections.push(connection.clone());
        client.clone()
    }
}

/// Somebody for whom something is opened.
struct Peer {
    shared: Arc<Shared>,
    client: Arc<Client>,
    connection: Connection,
    /// The beginning of the key, enough for people.
    name: String,
    flows: Arc<Flows<Arc<UdpSocket>>>,
}

impl Peer {
    fn log(&self, is_warning: bool, what: &str) {
        let from = self.connection.remote().map_or("?".into(), |a| a.to_string());
        let line = format!("{} ({from}): {what}", self.name);
        (self.shared.log)(&Event { is_warning, client: self.name.clone(), line });
    }
}

async fn serve(shared: Arc<Shared>, connection: Connection, client: Arc<Client>, key: PublicKey) {
    let name = key::text(&key).chars().take(12).collect();
    let flows = Arc::new(Flows::default());
    let peer = Peer { shared, client, connection: connection.clone(), name, flows: flows.clone() };
    let peer = Arc::new(peer);
    peer.log(false, "connected");
    // Dropped with the connection, and with it all that was opened for it: their targets see resets.
    let mut streams = JoinSet::new();
    streams.spawn(flow::to_targets(connection.clone(), flows));
    while let Ok((send, receive)) = connection.accept_bi().await {
        while streams.try_join_next().is_some() {}
        // Those that follow wait at the client, since their number is limited.
        sleep(peer.client.delay(Instant::now())).await;
        streams.spawn(stream(peer.clone(), send, receive));
    }
    let why = connection.closed().await;
    peer.log(false, &format!("gone: {}", shown(&why.to_string())));
}

async fn stream(peer: Arc<Peer>, mut send: SendStream, mut receive: ReceiveStream) {
    let Some(_place) = peer.client.place() else {
        return refuse(&mut send, Refusal::TooMany).await;
    };
    let asked = timeout(ASKING, request(&mut receive)).await;
    let request = match asked.unwrap_or(Err(Refusal::BadRequest)) {
        Ok(request) => request,
        Err(refusal) => return refuse(&mut send, refusal).await,
    };
    match request {
        Asked::Open(request) if request.kind == Kind::Tcp => {
            tcp(&peer, &request, send, receive).await
        }
        Asked::Open(request) => udp(&peer, &request, send, receive).await,
        Asked::Know(hints) => know(&peer, hints, send).await,
    }
}

/// Answers why not; the request's stream is stopped as it is dropped.
async fn refuse(send: &mut SendStream, refusal: Refusal) {
    // A client that is gone needs no answer.
    let _ = send.send_last(&[refusal.code()]).await;
}

/// What a client wants on a stream.
enum Asked {
    Open(Request),
    /// To tell what the path to it is like.
    Know(PathHints),
}

async fn request(receive: &mut ReceiveStream) -> Result<Asked, Refusal> {
    let mut head = [0; HEAD];
    fill(receive, &mut head).await?;
    if head == hints::MARK {
        let mut told = [0; hints::LENGTH];
        fill(receive, &mut told).await?;
        return Ok(Asked::Know(hints::read(told)));
    }
    let mut host = vec![0; Request::host_length(head)?];
    fill(receive, &mut host).await?;
    Request::read(head, &host).map(Asked::Open)
}

/// Sends to this client as the path is said to be, as far as that is borne out.
async fn know(peer: &Peer, hints: PathHints, mut send: SendStream) {
    // A connection that is over has nothing to be told.
    let _ = peer.connection.reconfigure(&hints, HintSource::Peer);
    let rate = hints.rate.map_or(0.0, |rate| rate.as_bps() as f64 * 1e-6);
    peer.log(false, &format!("says that the path to it carries {rate} Mbit/s (0: not said)"));
    let _ = send.send_last(&[0]).await;
}

async fn fill(receive: &mut ReceiveStream, mut into: &mut [u8]) -> Result<(), Refusal> {
    while !into.is_empty() {
        let n = receive.receive(into).await.map_err(|_| Refusal::BadRequest)?;
        into = into.get_mut(n..).filter(|_| n > 0).ok_or(Refusal::BadRequest)?;
    }
    Ok(())
}

/// The addresses behind a request, each of them permitted.
async fn resolve(peer: &Peer, request: &Request) -> Result<Vec<SocketAddr>, Refusal> {
    let Shared { targets, lookup, .. } = &*peer.shared;
    let host = (&*request.host, request.port);
    dial::resolve(targets, lookup, &peer.client.lookups, host).await
}

async fn tcp(peer: &Peer, request: &Request, mut send: SendStream, receive: ReceiveStream) {
    let what = request.shown();
    let opened = match resolve(peer, request).await {
        Ok(addresses) => dial::tcp(&addresses).await,
        Err(refusal) => Err(refusal),
    };
    let tcp = match opened {
        Ok(tcp) => tcp,
        Err(refusal) => {
            peer.log(true, &format!("{what}: {refusal}"));
            return refuse(&mut send, refusal).await;
        }
    };
    pipe::prepare(&tcp);
    let at = tcp.peer_addr().map_or("?".into(), |address| address.to_string());
    peer.log(false, &format!("{what} opened to {at}"));
    if send.send_all(&[0]).await.is_ok() {
        pipe::run(tcp, (send, receive), true).await;
    }
}

async fn udp(peer: &Peer, request: &Request, mut send: SendStream, mut receive: ReceiveStream) {
    let what = request.shown();
    let opened = match peer.client.flow() {
        Some(place) => open_flow(peer, request, &mut receive).await.map(|socket| (place, socket)),
        None => Err(Refusal::TooMany),
    };
    let (_place, socket) = match opened {
        Ok(opened) => opened,
        Err(refusal) => {
            peer.log(true, &format!("{what}: {refusal}"));
            return refuse(&mut send, refusal).await;
        }
    };
    let at = socket.peer_addr().map_or("?".into(), |address| address.to_string());
    peer.log(false, &format!("{what} opened to {at}"));
    let Some(flow) = Flows::add(&peer.flows, send.id(), socket.clone()) else { return };
    if send.send_all(&[0]).await.is_err() {
        return;
    }
    // The near side ends the stream with the flow, and sends nothing more on it.
    let mut over = [0];
    tokio::select! {
        () = flow::from_target(&peer.connection, &flow, &socket) => {}
        _ = receive.receive(&mut over) => {}
    }
}

/// A socket that is connected to what was asked for, and has sent the first datagram there.
async fn open_flow(
    peer: &Peer,
    request: &Request,
    receive: &mut ReceiveStream,
) -> Result<Arc<UdpSocket>, Refusal> {
    let first = timeout(ASKING, first_datagram(receive)).await;
    let first = first.unwrap_or(Err(Refusal::BadRequest))?;
    let addresses = resolve(peer, request).await?;
    let mut last = Refusal::Unreachable;
    for address in addresses {
        let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any).await.map_err(|_| Refusal::Failed)?;
        match socket.connect(address).await {
            Ok(()) => {
                // A datagram may be lost here, too.
                let _ = socket.send(&first).await;
                return Ok(Arc::new(socket));
            }
            Err(e) => last = dial::cause(&e),
        }
    }
    Err(last)
}

async fn first_datagram(receive: &mut ReceiveStream) -> Result<Vec<u8>, Refusal> {
    let mut length = [0; 2];
    fill(receive, &mut length).await?;
    let mut datagram = vec![0; u16::from_be_bytes(length).into()];
    fill(receive, &mut datagram).await?;
    Ok(datagram)
}
