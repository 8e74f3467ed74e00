//! The service over `rrtp`: one connection, one stream per request.

use crate::error::{Error, Kind};
use crate::key::Identity;
use crate::learned::{Characteristics, LEARN_LEAST, Learned, network};
use crate::message::Wishes;
use crate::service::{Link, Service};
use crate::stream::{Output, Session, Stream};
use narrows_base::{Duration, Rate};
use narrows_control::Profile;
use narrows_drive::tap::Tap;
use narrows_drive::{
    ConnectOptions, Connection, Endpoint, Options, ReceiveStream, SendStream, block_on,
    block_on_for,
};
use narrows_flow::connection::ConnectionConfig;
pub use narrows_flow::port::Permit;
use narrows_flow::port::{Clients, ServerKey};
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::future::{Future, poll_fn};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A client asks for a sign of life when nothing came for so long: a server at work says something
/// every second, so by then it is away, or does not know where the client is now.
const ASK: Duration = Duration::from_secs(5);
/// How often a waiting call looks whether the user has stopped it.
const LOOK: std::time::Duration = std::time::Duration::from_millis(250);
/// Connections of a server, and requests that it answers at the same time.
const CONNECTIONS_MOST: usize = 512;
const STREAMS_MOST: usize = 1024;

/// Waits for something, but not longer than the user wants.
fn wait<F: Future>(stop: Option<&AtomicBool>, future: F) -> Result<F::Output, Error> {
    let Some(stop) = stop else { return Ok(block_on(future)) };
    let mut future = pin!(future);
    loop {
        if let Some(done) = block_on_for(LOOK, future.as_mut()) {
            return Ok(done);
        }
        if stop.load(Ordering::SeqCst) {
            return Err(Error::interrupted());
        }
    }
}

fn told(e: narrows_drive::Error, ours: &PublicKey) -> Error {
    use narrows_drive::Error as E;
    let kind = match &e {
        E::Refused { .. } => return crate::service::refused(ours),
        E::NoAnswer { .. } | E::Address { .. } | E::Bind { .. } => Kind::Unreachable,
        E::WrongKey { address, found, .. } => {
            let found = crate::key::text(found);
            let line = format!("{address} has another key than expected ({found} now)");
            return Error::new(Kind::WrongKey, line);
        }
        E::Version { .. } => Kind::Version,
        E::System(_) | E::TooMany => Kind::Local,
        _ => return Error::new(Kind::Cut, format!("the connection was cut ({e})")),
    };
    Error::new(kind, e.to_string())
}

fn static_key(identity: &Identity) -> Result<StaticKey, Error> {
    StaticKey::new(*identity.private()).map_err(|e| Error::new(Kind::Local, e.to_string()))
}

/// Whom a client expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// This key.
    Key(PublicKey),
    /// Somebody new: the key is judged by whoever connects.
    Anybody,
}

/// A client's connection.
pub struct RrtpSession {
    connection: Connection,
    endpoint: Endpoint,
    label: String,
    ours: PublicKey,
    stop: &'static AtomicBool,
}

impl RrtpSession {
    /// Connects to `host:port`; `tap` watches.
    ///
    /// # Errors
    /// The name leads nowhere, nobody answers, the key is another one.
    pub fn connect(
        host: &str,
        port: u16,
        identity: &Identity,
        expect: Expect,
        config: ConnectionConfig,
        tap: Option<Arc<dyn Tap>>,
        stop: &'static AtomicBool,
    ) -> Result<RrtpSession, Error> {
        let addresses = (host, port)
            .to_socket_addrs()
            .map_err(|_| Error::new(Kind::Unreachable, format!("{host}: no such host is known")))?;
        let mut last = Error::new(Kind::Unreachable, format!("{host}: the name has no address"));
        for address in addresses {
            match RrtpSession::to(address, identity, expect, config.clone(), tap.clone(), stop) {
                Err(e) if e.kind == Kind::Unreachable => last = e,
                other => return other,
            }
        }
        Err(last)
    }

    fn to(
        address: SocketAddr,
        identity: &Identity,
        expect: Expect,
        config: ConnectionConfig,
        tap: Option<Arc<dyn Tap>>,
        stop: &'static AtomicBool,
    ) -> Result<RrtpSession, Error> {
        let ours = *identity.public();
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let label = config.protocol.label().to_string();
        let config = ConnectionConfig { keep_alive: ASK, ..config };
        let options = Options::client(static_key(identity)?, config.clone()).tapped(tap);
        let endpoint =
            Endpoint::bind(SocketAddr::new(any, 0), options).map_err(|e| told(e, &ours))?;
        let server_key = match expect {
            Expect::Key(key) => ServerKey::Is(key),
            Expect::Anybody => ServerKey::Any,
        };
        let options = ConnectOptions {
            suite: crate::key::suite(),
            ..ConnectOptions::new(server_key, config)
        };
        let connected = wait(Some(stop), endpoint.connect(address, options))?;
        let connection = connected.map_err(|e| told(e, &ours))?;
        Ok(RrtpSession { connection, endpoint, label, ours, stop })
    }

    /// The server's key.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.connection.peer_key()
    }

    /// What this end has learned of the path.
    pub fn learned(&self) -> Profile {
        self.connection.learned()
    }

    /// For how long nothing has come from the server, and after how much of it the connection is
    /// given up; `None` when it is over.
    pub fn silence(&self) -> Option<(Duration, Duration)> {
        self.connection.silence().ok()
    }
}

impl Drop for RrtpSession {
    /// The server shall not have to find out by silence.
    fn drop(&mut self) {
        self.endpoint.leave(0, "");
    }
}

impl Session for RrtpSession {
    fn open(&self) -> Result<Stream, Error> {
        let (send, receive) =
            wait(Some(self.stop), self.connection.open_bi())?.map_err(|e| told(e, &self.ours))?;
        Ok(stream(send, receive, Some(self.stop), self.ours))
    }
    fn protocol(&self) -> String {
        self.label.clone()
    }
}

fn stream(
    send: SendStream,
    receive: ReceiveStream,
    stop: Option<&'static AtomicBool>,
    ours: PublicKey,
) -> Stream {
    let input = Box::new(Half { half: receive, stop, ours });
    Stream { input, output: Box::new(Half { half: send, stop, ours }) }
}

/// A half that blocks, until the user has enough.
struct Half<S> {
    half: S,
    stop: Option<&'static AtomicBool>,
    ours: PublicKey,
}

impl Read for Half<ReceiveStream> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        wait(self.stop, self.half.receive(into))
            .and_then(|read| read.map_err(|e| told(e, &self.ours)))
            .map_err(Error::into_io)
    }
}

impl Write for Half<SendStream> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let half = &mut self.half;
        wait(self.stop, poll_fn(|context| half.poll_send(context, bytes)))
            .and_then(|sent| sent.map_err(|e| told(e, &self.ours)))
            .map_err(Error::into_io)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Output for Half<SendStream> {
    fn finish(&mut self) -> io::Result<()> {
        self.half.finish().map_err(|e| told(e, &self.ours).into_io())
    }
}

/// A listening endpoint.
pub struct Server {
    endpoint: Endpoint,
    service: Arc<Service>,
    label: String,
    ours: PublicKey,
    learned: Option<Arc<Learned>>,
}

impl Server {
    /// Listens here; connections behave as `config` says, but send with what the client asked for if
    /// `permit` says so; `tap` watches.
    ///
    /// # Errors
    /// The address is not ours, taken, or not permitted.
    pub fn bind(
        address: SocketAddr,
        identity: &Identity,
        service: Arc<Service>,
        config: ConnectionConfig,
        permit: Permit,
        tap: Option<Arc<dyn Tap>>,
    ) -> Result<Server, Error> {
        let ours = *identity.public();
        let label = config.protocol.label().to_string();
        let clients = service
            .clients()
            .map_or(Clients::Any, |list| Clients::Listed(list.keys().copied().collect()));
        let mut options = Options::server(static_key(identity)?, clients, config).tapped(tap);
        options.permit = permit;
        options.max_connections = CONNECTIONS_MOST;
        let endpoint = Endpoint::bind(address, options)
            .map_err(|e| Error::new(Kind::Local, format!("--listen: {e}")))?;
        Ok(Server { endpoint, service, label, ours, learned: None })
    }

    /// Remembers there what the paths to clients' networks are like, and begins with it when one
    /// comes again.
    #[must_use]
    pub fn learning(self, learned: Learned) -> Server {
        Server { learned: Some(Arc::new(learned)), ..self }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// What ends it.
    pub fn end(&self) -> End {
        End(self.endpoint.clone())
    }

    /// Serves until it is ended.
    pub fn run(self) {
        let streams = Arc::new(AtomicUsize::new(0));
        while let Ok(connection) = block_on(self.endpoint.accept()) {
            let (service, streams) = (Arc::clone(&self.service), Arc::clone(&streams));
            let (label, ours, learned) = (self.label.clone(), self.ours, self.learned.clone());
            let started = std::thread::Builder::new().spawn(move || {
                let network = connection.remote().map(|a| network(a.ip()));
                let memory = learned.as_deref().zip(network.as_deref());
                if let Some((learned, network)) = memory {
                    remember(&connection, learned, network);
                }
                let connection = Arc::new(connection);
                one(&connection, &service, &streams, &label, ours);
                if let Some((learned, network)) = memory {
                    keep(&connection, learned, network);
                }
            });
            // Without a thread the connection is dropped, and so closed.
            drop(started);
        }
    }
}

/// Ends a server from elsewhere.
pub struct End(Endpoint);

impl End {
    /// Tells all clients that it is over, so that none waits in vain.
    pub fn now(&self) {
        self.0.shut_down(256, "the server was stopped");
    }
}

/// Begins with what is known of the path, if this may be that path.
pub(crate) fn remember(connection: &Connection, learned: &Learned, network: &str) {
    // A file that is broken was complained of when the server started.
    let Ok(Some(known)) = learned.get(network) else { return };
    if known.may_be(connection.stats().srtt) {
        let _ = connection.reconfigure(&known.profile());
    }
}

/// Keeps what a connection that is over has learned, if it sent enough to say something.
fn keep(connection: &Connection, learned: &Learned, network: &str) {
    // A client that has moved was on two paths.
    let here = connection.remote().is_some_and(|a| self::network(a.ip()) == network);
    let found = Characteristics::from(&connection.learned());
    if here && found.rate_bps.is_some() && connection.stats().bytes_sent >= LEARN_LEAST {
        // A disk that takes nothing costs the next connection its head start, nothing else.
        let _ = learned.keep(network, found);
    }
}

/// Answers the requests of one connection, each in a thread.
fn one(
    connection: &Arc<Connection>,
    service: &Arc<Service>,
    streams: &Arc<AtomicUsize>,
    label: &str,
    ours: PublicKey,
) {
    let Some(client) = connection.peer_key() else { return };
    while let Ok((send, receive)) = block_on(connection.accept_bi()) {
        if streams.fetch_add(1, Ordering::SeqCst) >= STREAMS_MOST {
            streams.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let place = Place(Arc::clone(streams));
        let link = Remote { connection: Arc::clone(connection), label: label.to_string() };
        let service = Arc::clone(service);
        let started = std::thread::Builder::new().spawn(move || {
            let _place = place;
            // A client may move: where it is now is where it is shown.
            let from = link.connection.remote().map_or("?".to_string(), |a| a.to_string());
            service.answer(&client, &from, stream(send, receive, None, ours), &link);
        });
        drop(started);
    }
}

/// A request's place among those that are being answered.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Remote {
    connection: Arc<Connection>,
    label: String,
}

impl Link for Remote {
    fn tune(&self, wishes: &Wishes) -> Wishes {
        let profile = profile(wishes);
        if profile != Profile::default() {
            // A connection that is over has nothing to tune.
            let _ = self.connection.reconfigure(&profile);
        }
        let learned = self.connection.learned();
        let label = self.connection.protocol().unwrap_or_else(|_| self.label.clone());
        self::wishes(&learned, &label)
    }
}

/// What a profile is on the wire.
pub fn wishes(profile: &Profile, controller: &str) -> Wishes {
    Wishes {
        rate_bps: profile.rate.map(Rate::as_bps),
        rtt_ns: profile.rtt.map(Duration::as_nanos),
        loss_ppb: profile.loss.map(|x| (x * 1e9) as u64),
        controller: controller.to_string(),
    }
}

/// And back.
pub fn profile(wishes: &Wishes) -> Profile {
    Profile {
        rate: wishes.rate_bps.filter(|r| *r > 0).map(Rate::from_bps),
        rtt: wishes.rtt_ns.map(Duration::from_nanos),
        loss: wishes.loss_ppb.map(|n| n as f64 * 1e-9),
    }
}
