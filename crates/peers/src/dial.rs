//! Repeated connection attempts to one peer. The peer's key is configured, or stored at the first connection; each
//! error tells whether another attempt may succeed. The caller defines the content of the connections.

use crate::key::{self, Identity};
use crate::{Error, ErrorKind};
use narrows_base::Duration;
use narrows_net::tap::Tap;
use narrows_net::{ConnectOptions, Connection, Endpoint, Error as NetError, Options};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::ServerKey;
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

/// Checks a key.
pub type Judge = Box<dyn Fn(&PublicKey) -> Result<(), Error> + Send + Sync>;

/// The peer, and how to connect to it.
pub struct Peer {
    /// Host name or IP address.
    pub host: String,
    /// UDP port.
    pub port: u16,
    /// Expected key. If `None`, `judge` checks the first key, which is then expected from all later connections.
    pub key: Option<PublicKey>,
    /// Checks the key of the first connection.
    pub judge: Judge,
    /// Key pair of this end.
    pub identity: Identity,
    /// Configuration of the connections.
    pub config: ConnectionConfig,
    /// Time limit of an attempt.
    pub patience: Duration,
    /// Observer of each connection's endpoint.
    pub tap: Option<Arc<dyn Tap>>,
}

/// Error texts of the application for peers that do not match.
#[derive(Clone, Copy, Debug)]
pub struct DialWords {
    /// The peer's allow list lacks this end's key; the key follows the text.
    pub stranger: &'static str,
    /// The peer uses another application protocol. If `None`, the error names both protocols.
    pub other_protocol: Option<&'static str>,
}

/// Connects to a peer.
pub struct Dial {
    /// The peer to connect to.
    pub peer: Peer,
    words: DialWords,
    /// The expected key.
    key: Mutex<Option<PublicKey>>,
}

impl Dial {
    /// Makes no connection yet.
    pub fn new(peer: Peer, words: DialWords) -> Dial {
        let key = Mutex::new(peer.key);
        Dial { peer, words, key }
    }

    /// The error for a host name without an address.
    pub fn no_such_host(&self) -> Error {
        let host = crate::error::shown(&self.peer.host);
        Error::new(ErrorKind::Unreachable, format!("{host}: no such host"))
    }

    /// An endpoint at a local address and a free port.
    ///
    /// # Errors
    /// [`ErrorKind::Local`]: the system provides no socket.
    pub fn endpoint(&self, at: IpAddr, config: &ConnectionConfig) -> Result<Endpoint, Error> {
        let local = |e: String| Error::new(ErrorKind::Local, e);
        let ours = StaticKey::new(*self.peer.identity.private());
        let ours = ours.map_err(|e| local(e.to_string()))?;
        let options = Options::client(ours, config.clone()).tapped(self.peer.tap.clone());
        Endpoint::bind((at, 0).into(), options).map_err(|e| local(e.to_string()))
    }

    /// Makes one attempt.
    ///
    /// # Errors
    /// As [`failure`](Dial::failure), or those of [`Peer::judge`].
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
            let cut = || Error::new(ErrorKind::Unreachable, "the connection was cut");
            let found = connection.peer_key().ok_or_else(cut)?;
            (self.peer.judge)(&found)?;
            *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
        Ok(connection)
    }

    /// Converts a connection's error.
    pub fn failure(&self, e: &NetError) -> Error {
        let (kind, line) = match e {
            NetError::Refused { .. } => {
                let own = key::text(self.peer.identity.public());
                let line = format!("{}: its list of clients lacks {own}", self.words.stranger);
                (ErrorKind::Refused, line)
            }
            NetError::WrongKey { address, found, .. } => {
                let found = key::text(found);
                let line = format!("{address} has another key than expected ({found} now)");
                (ErrorKind::WrongKey, line)
            }
            NetError::NoCommonProtocol { .. } => {
                let line = self.words.other_protocol.map(str::to_string);
                (ErrorKind::Version, line.unwrap_or_else(|| e.to_string()))
            }
            NetError::Version { .. } | NetError::UnknownProtocol { .. } => {
                (ErrorKind::Version, e.to_string())
            }
            NetError::Busy { .. } => (ErrorKind::Busy, e.to_string()),
            NetError::System(_) | NetError::TooMany => (ErrorKind::Local, e.to_string()),
            _ => (ErrorKind::Unreachable, e.to_string()),
        };
        Error::new(kind, line)
    }

    /// Why the peer refused a connection; `None` if it ended for another reason, so that another attempt may succeed. A
    /// refusal may arrive after the handshake has completed at this end.
    pub fn refusal(&self, closed: &NetError) -> Option<Error> {
        let why = self.failure(closed);
        matches!(why.kind, ErrorKind::Refused | ErrorKind::Version | ErrorKind::WrongKey)
            .then_some(why)
    }
}

/// Whether a later [attempt](Dial::connect) may succeed after this error.
pub fn may_pass(e: &Error) -> bool {
    matches!(e.kind, ErrorKind::Unreachable | ErrorKind::Busy)
}

/// The unspecified address of this address's family.
pub fn unspecified(address: &SocketAddr) -> IpAddr {
    match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    }
}
