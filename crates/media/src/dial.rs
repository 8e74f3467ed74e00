//! The end that connects: which peer it connects to, and that it does so again whenever the connection is lost.

use crate::connection::for_media;
use narrows_base::Duration;
use narrows_base::text::shown as escaped;
use narrows_files::error::shown;
use narrows_files::{Error, Identity, Kind, key};
use narrows_net::tap::Tap;
use narrows_net::{ConnectOptions, Connection, Endpoint, Error as NetError, Options};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::ServerKey;
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration as Wait;
use tokio::net::lookup_host;
use tokio::time::{sleep, timeout};

/// The next attempt to connect follows after a pause that doubles.
const MIN_PAUSE: Wait = Wait::from_millis(500);
const MAX_PAUSE: Wait = Wait::from_secs(15);
/// A connection that lasted so long was none that is refused at once.
const LASTED: Duration = Duration::from_secs(10);

/// Whether a key is the right one.
pub type Judge = Box<dyn Fn(&PublicKey) -> Result<(), Error> + Send + Sync>;

/// The other end, and how it is connected to.
pub struct Peer {
    /// Its name or address.
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
    /// An attempt is given up after so long.
    pub patience: Duration,
    /// What observes the endpoint of each connection.
    pub tap: Option<Arc<dyn Tap>>,
}

/// Why a connection was of no use.
pub enum Ended {
    /// Another attempt may succeed; the reason.
    Lost(String),
    /// None would.
    Final(Error),
}

/// What connections are for.
pub trait Use {
    /// Goes on with `until`, while there is no connection.
    fn meanwhile<T: Send>(
        &self,
        until: impl Future<Output = T> + Send,
    ) -> impl Future<Output = T> + Send;
    /// Uses a connection until it ends.
    fn over(&self, connection: &Connection) -> impl Future<Output = Ended> + Send;
    /// People are told a line.
    fn tell(&self, line: &str);
}

/// Connects to a peer.
pub struct Dialler {
    peer: Peer,
    application: &'static str,
    key: Mutex<Option<PublicKey>>,
    /// Of the present connection.
    endpoint: Mutex<Option<Endpoint>>,
    is_leaving: AtomicBool,
}

impl Dialler {
    /// For this application protocol.
    pub fn new(peer: Peer, application: &'static str) -> Dialler {
        let key = Mutex::new(peer.key);
        let (endpoint, is_leaving) = (Mutex::default(), AtomicBool::new(false));
        Dialler { peer, application, key, endpoint, is_leaving }
    }

    /// Connects, and does so again whenever the connection is lost, until this end [leaves](Dialler::leave).
    ///
    /// # Errors
    /// What another attempt would not change: the peer has another key, refuses this one, or speaks another version.
    pub async fn keep(&self, purpose: &(impl Use + Sync)) -> Result<(), Error> {
        let (mut pause, mut told) = (MIN_PAUSE, String::new());
        loop {
            let ended = match purpose.meanwhile(self.connect()).await {
                Ok((connection, endpoint)) => {
                    *self.endpoint() = Some(endpoint);
                    let (at, began) = (connection.remote(), connection.now());
                    let at = at.map_or("the other end".into(), |at| at.to_string());
                    purpose.tell(&format!("connected to {at}"));
                    let ended = purpose.over(&connection).await;
                    if connection.now().since(began) > LASTED {
                        (pause, told) = (MIN_PAUSE, String::new());
                    }
                    let refusal = self.refusal(&connection).await;
                    connection.close(0, "");
                    *self.endpoint() = None;
                    if self.is_leaving.load(Ordering::SeqCst) {
                        return Ok(());
                    }
                    match (ended, refusal) {
                        (Ended::Lost(_), Some(e)) => Ended::Final(e),
                        (Ended::Lost(why), None) => {
                            let why = escaped(&why);
                            Ended::Lost(format!("the connection to {at} is lost ({why})"))
                        }
                        (other, _) => other,
                    }
                }
                Err(e) if e.kind == Kind::Unreachable || e.kind == Kind::Busy => {
                    Ended::Lost(e.line)
                }
                Err(e) => Ended::Final(e),
            };
            match ended {
                Ended::Final(e) => return Err(e),
                // Once for each cause, not for each attempt.
                Ended::Lost(why) if told != why => {
                    purpose.tell(&format!("{why}; connecting again"));
                    told = why;
                }
                Ended::Lost(_) => {}
            }
            purpose.meanwhile(sleep(pause)).await;
            pause = (pause * 2).min(MAX_PAUSE);
        }
    }

    /// Why the other end refused a connection that this one took for open: whoever is fast learns it only then.
    async fn refusal(&self, connection: &Connection) -> Option<Error> {
        let closed = timeout(Wait::ZERO, connection.closed()).await.ok()?;
        let why = refused(&closed, &self.peer.identity);
        matches!(why.kind, Kind::Refused | Kind::Version | Kind::WrongKey).then_some(why)
    }

    fn endpoint(&self) -> MutexGuard<'_, Option<Endpoint>> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells the other end that this one goes; whether there was a connection.
    pub fn leave(&self) -> bool {
        self.is_leaving.store(true, Ordering::SeqCst);
        let endpoint = self.endpoint().take();
        endpoint.is_some_and(|endpoint| {
            endpoint.leave(0, "");
            true
        })
    }

    async fn connect(&self) -> Result<(Connection, Endpoint), Error> {
        let Peer { host, port, config, identity, patience, judge, tap, .. } = &self.peer;
        let unknown = || {
            let line = format!("{}: no such host", shown(host));
            Error::new(Kind::Unreachable, line)
        };
        let mut found = lookup_host((host.as_str(), *port)).await.map_err(|_| unknown())?;
        let address = found.next().ok_or_else(unknown)?;
        let any: IpAddr = match address {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let local = |e: String| Error::new(Kind::Local, e);
        let ours = StaticKey::new(*identity.private()).map_err(|e| local(e.to_string()))?;
        let config = for_media(config.clone(), self.application)?;
        let options = Options::client(ours, config.clone()).tapped(tap.clone());
        let endpoint =
            Endpoint::bind((any, 0).into(), options).map_err(|e| local(e.to_string()))?;
        let expected = *self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let server = expected.map_or(ServerKey::Any, ServerKey::Is);
        let mut how = ConnectOptions::new(server, config);
        (how.suite, how.patience) = (key::suite(), *patience);
        let connected = endpoint.connect(address, how).await;
        let connection = connected.map_err(|e| refused(&e, identity))?;
        if expected.is_none() {
            let found = connection.peer_key();
            let cut = || Error::new(Kind::Unreachable, "the connection was cut");
            let found = found.ok_or_else(cut)?;
            judge(&found)?;
            *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
        Ok((connection, endpoint))
    }
}

fn refused(e: &NetError, identity: &Identity) -> Error {
    let kind = match e {
        NetError::Refused { .. } => {
            let own = key::text(identity.public());
            let line =
                format!("the other end does not know this one: its list of clients lacks {own}");
            return Error::new(Kind::Refused, line);
        }
        NetError::WrongKey { address, found, .. } => {
            let found = key::text(found);
            let line = format!("{address} has another key than expected ({found} now)");
            return Error::new(Kind::WrongKey, line);
        }
        NetError::NoCommonProtocol { .. } => {
            let line = "what listens there is not the other end of this: a sender connects to `media receive`, a receiver to \
                        `media send --listen`";
            return Error::new(Kind::Version, line);
        }
        NetError::Version { .. } | NetError::UnknownProtocol { .. } => Kind::Version,
        NetError::Busy { .. } => Kind::Busy,
        NetError::System(_) | NetError::TooMany => Kind::Local,
        _ => Kind::Unreachable,
    };
    Error::new(kind, e.to_string())
}
