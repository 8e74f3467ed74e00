//! The near side's connections, and streams on them.

use crate::connection::for_tunnel;
use crate::flow::{Back, Flows};
use crate::hints;
use crate::learning::Lesson;
use crate::over_tcp;
use crate::pipe::answer;
use crate::request::{Refusal, Request};
use narrows_base::Duration;
use narrows_congestion::PathHints;
use narrows_files::learned::Learned;
use narrows_files::{Error, Identity, Kind, key};
use narrows_net::tap::Tap;
use narrows_net::{
    ConnectOptions, Connection, Endpoint, Error as NetError, Options, ReceiveStream, SendStream,
};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::ServerKey;
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Wait;
use tokio::net::lookup_host;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Whoever connects to the near side waits so long for a connection that answers: as long as UDP is tried, and then TCP.
const PATIENCE: Wait = Wait::from_secs(15);

/// Whether a key is the right one.
pub type Judge = Box<dyn Fn(&PublicKey) -> Result<(), Error> + Send + Sync>;

/// How a near side connects.
pub struct ClientOptions {
    /// The server's name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Its key; without one the first that is met is judged, and kept from then on.
    pub key: Option<PublicKey>,
    /// Judges a key of the first meeting.
    pub judge: Judge,
    /// This end's key.
    pub identity: Identity,
    /// How connections behave.
    pub config: ConnectionConfig,
    /// What the far side is told of the path by which it sends.
    pub receiving: PathHints,
    /// An attempt over UDP is given up after so long.
    pub patience: Duration,
    /// After so long without a packet of the far side's, and with probes unanswered, another connection is tried.
    pub silence: Duration,
    /// Where it is kept what the path there is like, and under which name.
    pub learned: Option<(Arc<Learned>, String)>,
    /// Who watches.
    pub tap: Option<Arc<dyn Tap>>,
    /// Told a line when something happens that people should know.
    pub tell: Box<dyn Fn(&str) + Send + Sync>,
}

/// Why nothing was opened through the tunnel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NotOpened {
    /// The far side refuses.
    Refused(Refusal),
    /// There is no connection to the far side, or it was lost meanwhile.
    NoTunnel,
}

impl fmt::Display for NotOpened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotOpened::Refused(refusal) => refusal.fmt(f),
            NotOpened::NoTunnel => f.write_str("there is no connection to the tunnel's server"),
        }
    }
}

/// A connection to the far side, while there is one.
pub struct Link {
    connection: Connection,
    endpoint: Endpoint,
    /// The UDP flows on it, and where what comes on them goes.
    pub flows: Arc<Flows<Back>>,
    pub(crate) carrier: Option<Carrier>,
    is_over_tcp: bool,
    server: IpAddr,
    lesson: Option<Lesson>,
}

/// Both halves of a stream.
pub type Stream = (SendStream, ReceiveStream);

/// What carries datagrams over TCP; dropped, it ends.
pub(crate) type Carrier = JoinSet<std::io::Result<()>>;

/// The code of connections whose TCP connection is lost.
pub(crate) const CARRIER_LOST: u64 = 258;

impl Link {
    fn new(
        (connection, endpoint): (Connection, Endpoint),
        carrier: Option<Carrier>,
        server: IpAddr,
    ) -> Link {
        let (is_over_tcp, flows, lesson) = (carrier.is_some(), Arc::default(), None);
        Link { connection, endpoint, flows, carrier, is_over_tcp, server, lesson }
    }

    /// The server's address, also where a TCP connection leads there.
    pub fn server(&self) -> IpAddr {
        self.server
    }

    /// Whether its packets travel within a TCP connection.
    pub fn is_over_tcp(&self) -> bool {
        self.is_over_tcp
    }

    /// To be called about once a second: how much was delivered.
    pub(crate) fn measure(&self) {
        if let Some(lesson) = &self.lesson {
            lesson.measure();
        }
    }

    /// Keeps what was learned of the path, where that is wanted.
    pub(crate) fn keep_learned(&self) {
        if let Some(lesson) = &self.lesson {
            lesson.keep();
        }
    }

    /// Tells the far side of the path, if there is something to tell. The answer is not waited for.
    async fn tell_path(&self, hints: &PathHints) {
        if *hints != PathHints::default()
            && let Ok((mut send, _)) = self.connection.open_bi().await
        {
            // A connection that is over is noticed elsewhere.
            let _ = send.send_last(&hints::bytes(hints)).await;
        }
    }

    /// The connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Asks for something at the far side, and says `more` with it, in the same packet if that has room. The first byte
    /// that comes is the [answer](Refusal::from_code).
    ///
    /// # Errors
    /// Why nothing could be asked.
    pub async fn ask(&self, request: &Request, more: &[u8]) -> Result<Stream, NotOpened> {
        let mut asked = request.bytes().ok_or(NotOpened::Refused(Refusal::NoSuchName))?;
        asked.extend(more);
        self.say(&asked).await
    }

    /// Opens a stream and says this first.
    pub(crate) async fn say(&self, asked: &[u8]) -> Result<Stream, NotOpened> {
        let opened = self.connection.open_bi().await;
        let (mut send, receive) = opened.map_err(|_| NotOpened::NoTunnel)?;
        send.send_all(asked).await.map_err(|_| NotOpened::NoTunnel)?;
        Ok((send, receive))
    }
}

/// The near side of a tunnel.
pub struct Tunnel {
    pub(crate) options: ClientOptions,
    key: Mutex<Option<PublicKey>>,
    pub(crate) current: watch::Sender<Option<Arc<Link>>>,
}

impl Tunnel {
    /// Without a connection: [`keep`](Tunnel::keep) makes one.
    pub fn new(options: ClientOptions) -> Arc<Tunnel> {
        let (key, current) = (Mutex::new(options.key), watch::Sender::new(None));
        Arc::new(Tunnel { options, key, current })
    }

    /// Tells the user.
    pub fn tell(&self, line: &str) {
        (self.options.tell)(line);
    }

    /// A new connection, to which the far side is told what is known of the path.
    pub(crate) async fn connect(&self) -> Result<Link, Error> {
        let mut link = self.connect_somehow().await?;
        if let Some((learned, place)) = &self.options.learned {
            let over = if link.is_over_tcp { " over TCP" } else { "" };
            let place = format!("{place}{over}");
            link.lesson = Some(Lesson::begin(&link.connection, learned.clone(), place));
        }
        link.tell_path(&self.options.receiving).await;
        Ok(link)
    }

    /// Over UDP, and if that is not answered over TCP.
    async fn connect_somehow(&self) -> Result<Link, Error> {
        let ClientOptions { host, port, .. } = &self.options;
        let mut found = lookup_host((host.as_str(), *port)).await.map_err(|_| {
            let line = format!("{}: no such host", narrows_files::error::shown(host));
            Error::new(Kind::Unreachable, line)
        })?;
        let address = found.next().ok_or_else(|| Error::new(Kind::Unreachable, "no such host"))?;
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let failed = match self.attempt(self.endpoint(any)?, address).await {
            Err(e) if e.kind == Kind::Unreachable => e,
            made => {
                let (connection, endpoint) = made?;
                self.tell(&format!("connected to {address}"));
                return Ok(Link::new((connection, endpoint), None, address.ip()));
            }
        };
        let Ok((tcp, udp)) = over_tcp::connect(address).await else { return Err(failed) };
        let local = |e: std::io::Error| Error::new(Kind::Local, e.to_string());
        let endpoint = self.endpoint(Ipv4Addr::LOCALHOST.into())?;
        let beside = udp.local_addr().map_err(local)?;
        udp.connect(endpoint.local_addr()).await.map_err(local)?;
        let mut carrier = JoinSet::new();
        carrier.spawn(over_tcp::carry(tcp, udp));
        let Ok((connection, endpoint)) = self.attempt(endpoint, beside).await else {
            return Err(failed);
        };
        self.tell(&format!("connected to {address} over TCP, since UDP is not answered"));
        Ok(Link::new((connection, endpoint), Some(carrier), address.ip()))
    }

    fn endpoint(&self, at: IpAddr) -> Result<Endpoint, Error> {
        let ClientOptions { config, identity, tap, .. } = &self.options;
        let local = |e: String| Error::new(Kind::Local, e);
        let ours = StaticKey::new(*identity.private()).map_err(|e| local(e.to_string()))?;
        // The server opens no streams.
        let options = Options::client(ours, for_tunnel(config.clone(), 0)?).tapped(tap.clone());
        Endpoint::bind((at, 0).into(), options).map_err(|e| local(e.to_string()))
    }

    async fn attempt(
        &self,
        endpoint: Endpoint,
        address: SocketAddr,
    ) -> Result<(Connection, Endpoint), Error> {
        let ClientOptions { config, identity, .. } = &self.options;
        let config = for_tunnel(config.clone(), 0)?;
        let expected = *self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let mut how = ConnectOptions::new(expected.map_or(ServerKey::Any, ServerKey::Is), config);
        (how.suite, how.patience) = (key::suite(), self.options.patience);
        let connected = endpoint.connect(address, how).await;
        let connection = connected.map_err(|e| refused(&e, identity))?;
        if expected.is_none() {
            let found = connection.peer_key();
            let found =
                found.ok_or_else(|| Error::new(Kind::Unreachable, "the connection was cut"))?;
            (self.options.judge)(&found)?;
            *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
        Ok((connection, endpoint))
    }

    /// The connection, once there is one.
    ///
    /// # Errors
    /// There is none for as long as somebody who waits should wait.
    pub async fn link(&self) -> Result<Arc<Link>, NotOpened> {
        let mut current = self.current.subscribe();
        let there = timeout(PATIENCE, current.wait_for(Option::is_some)).await;
        let there = there.map_err(|_| NotOpened::NoTunnel)?.map_err(|_| NotOpened::NoTunnel)?;
        there.clone().ok_or(NotOpened::NoTunnel)
    }

    /// Opens something at the far side, and waits for the answer. The connection is to be held for as long as the stream.
    ///
    /// # Errors
    /// Why not.
    pub async fn open(&self, request: &Request) -> Result<(Arc<Link>, Stream), NotOpened> {
        let link = self.link().await?;
        let (send, mut receive) = link.ask(request, &[]).await?;
        match answer(&mut receive).await {
            Ok(None) => Ok((link, (send, receive))),
            Ok(Some(refusal)) => Err(NotOpened::Refused(refusal)),
            Err(_) => Err(NotOpened::NoTunnel),
        }
    }

    /// Tells the server that this end goes.
    pub fn leave(&self) {
        if let Some(link) = self.current.send_replace(None) {
            link.keep_learned();
            link.endpoint.leave(0, "");
        }
    }
}

/// Whether another attempt would end the same way.
pub(crate) fn is_final(e: &NetError) -> bool {
    matches!(
        e,
        NetError::WrongKey { .. }
            | NetError::Refused { .. }
            | NetError::Version { .. }
            | NetError::NoCommonProtocol { .. }
            | NetError::UnknownProtocol { .. }
    )
}

pub(crate) fn refused(e: &NetError, identity: &Identity) -> Error {
    let kind = match e {
        NetError::Refused { .. } => {
            let own = key::text(identity.public());
            let line =
                format!("the server does not know this client: its list of clients lacks {own}");
            return Error::new(Kind::Refused, line);
        }
        NetError::WrongKey { address, found, .. } => {
            let found = key::text(found);
            return Error::new(
                Kind::WrongKey,
                format!("{address} has another key than expected ({found} now)"),
            );
        }
        e if is_final(e) => Kind::Version,
        NetError::Busy { .. } => Kind::Busy,
        NetError::System(_) | NetError::TooMany => Kind::Local,
        _ => Kind::Unreachable,
    };
    Error::new(kind, e.to_string())
}
