//! Connecting to one peer, as often as it takes: its key is given, or kept from the first meeting on, and each failure
//! says whether another attempt may succeed. What the connections carry is the caller's.

use crate::key::{self, Identity};
use crate::{Error, Kind};
use narrows_base::Duration;
use narrows_net::tap::Tap;
use narrows_net::{ConnectOptions, Connection, Endpoint, Error as NetError, Options};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::ServerKey;
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

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

/// What people are told where the ends do not fit.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// That this end's key is not on the other's list; the key follows.
    pub stranger: &'static str,
    /// That what listens there speaks something else, if there is more to say than what the two speak.
    pub other_protocol: Option<&'static str>,
}

/// Connects to a peer.
pub struct Dial {
    /// To which.
    pub peer: Peer,
    words: Words,
    /// The key that is expected.
    key: Mutex<Option<PublicKey>>,
}

impl Dial {
    /// Without a connection.
    pub fn new(peer: Peer, words: Words) -> Dial {
        let key = Mutex::new(peer.key);
        Dial { peer, words, key }
    }

    /// The peer's name leads nowhere.
    pub fn no_such_host(&self) -> Error {
        let host = crate::error::shown(&self.peer.host);
        Error::new(Kind::Unreachable, format!("{host}: no such host"))
    }

    /// An endpoint at this address of the machine's, at a free port.
    ///
    /// # Errors
    /// [`Kind::Local`]: the system has none left.
    pub fn endpoint(&self, at: IpAddr, config: &ConnectionConfig) -> Result<Endpoint, Error> {
        let local = |e: String| Error::new(Kind::Local, e);
        let ours = StaticKey::new(*self.peer.identity.private());
        let ours = ours.map_err(|e| local(e.to_string()))?;
        let options = Options::client(ours, config.clone()).tapped(self.peer.tap.clone());
        Endpoint::bind((at, 0).into(), options).map_err(|e| local(e.to_string()))
    }

    /// One attempt.
    ///
    /// # Errors
    /// As [`failure`](Dial::failure); the judge's.
    pub async fn connect(
        &self,
        endpoint: &Endpoint,
        address: SocketAddr,
        config: ConnectionConfig,
    ) -> Result<Connection, Error> {
        let expected = *self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let mut how = ConnectOptions::new(expected.map_or(ServerKey::Any, ServerKey::Is), config);
        (how.suite, how.patience) = (key::suite(), self.peer.patience);
        let connected = endpoint.connect(address, how).await;
        let connection = connected.map_err(|e| self.failure(&e))?;
        if expected.is_none() {
            let cut = || Error::new(Kind::Unreachable, "the connection was cut");
            let found = connection.peer_key().ok_or_else(cut)?;
            (self.peer.judge)(&found)?;
            *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
        Ok(connection)
    }

    /// Why there is no connection, or none any more.
    pub fn failure(&self, e: &NetError) -> Error {
        let (kind, line) = match e {
            NetError::Refused { .. } => {
                let own = key::text(self.peer.identity.public());
                let line = format!("{}: its list of clients lacks {own}", self.words.stranger);
                (Kind::Refused, line)
            }
            NetError::WrongKey { address, found, .. } => {
                let found = key::text(found);
                let line = format!("{address} has another key than expected ({found} now)");
                (Kind::WrongKey, line)
            }
            NetError::NoCommonProtocol { .. } => {
                let line = self.words.other_protocol.map(str::to_string);
                (Kind::Version, line.unwrap_or_else(|| e.to_string()))
            }
            NetError::Version { .. } | NetError::UnknownProtocol { .. } => {
                (Kind::Version, e.to_string())
            }
            NetError::Busy { .. } => (Kind::Busy, e.to_string()),
            NetError::System(_) | NetError::TooMany => (Kind::Local, e.to_string()),
            _ => (Kind::Unreachable, e.to_string()),
        };
        Error::new(kind, line)
    }

    /// Why the other end refused a connection, also one that this end took for open, as whoever is fast does; `None` if
    /// it ended otherwise, and another one may be of use.
    pub fn refusal(&self, closed: &NetError) -> Option<Error> {
        let why = self.failure(closed);
        matches!(why.kind, Kind::Refused | Kind::Version | Kind::WrongKey).then_some(why)
    }
}

/// Whether an [attempt](Dial::connect) that failed so may succeed later.
pub fn may_pass(e: &Error) -> bool {
    matches!(e.kind, Kind::Unreachable | Kind::Busy)
}

/// All addresses of the machine, of this one's family.
pub fn unspecified(address: &SocketAddr) -> IpAddr {
    match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}
