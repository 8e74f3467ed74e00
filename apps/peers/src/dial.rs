//! Repeated connection attempts to one peer, at the first of its name's addresses that answers. The peer's key is
//! configured, or stored at the first connection; each error tells whether another attempt may succeed. The caller
//! defines the content of the connections.

use crate::key::{self, Identity};
use crate::path_choice::PathChoices;
use crate::paths::{BoundPaths, LocalPaths};
use crate::{Error, ErrorKind};
use narrows_base::Duration;
use narrows_net::dial::{DialledAddress, lookup, ordered, until};
use narrows_net::tap::Tap;
use narrows_net::{ConnectOptions, Connection, Endpoint, Error as NetError, Options};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::ServerKey;
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

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
    /// Local ends of each connection's paths.
    pub paths: PathChoices,
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
    /// The address that answered last.
    answered: Mutex<Option<SocketAddr>>,
    /// Addresses that are not looked up again.
    fixed: OnceLock<Vec<SocketAddr>>,
}

/// A connection, and the attempts that led to it.
pub struct DialledPeer {
    /// The connection after its handshake.
    pub connection: Connection,
    /// The endpoint, which has this connection only.
    pub endpoint: Endpoint,
    /// The peer's address.
    pub address: SocketAddr,
    /// Other addresses that were tried ([`DialledAddress::others`]), and paths that are not used.
    pub others: String,
}

impl Dial {
    /// Makes no connection yet.
    pub fn new(peer: Peer, words: DialWords) -> Dial {
        let key = Mutex::new(peer.key);
        Dial { peer, words, key, answered: Mutex::default(), fixed: OnceLock::new() }
    }

    /// The peer's addresses in the order of the attempts: the one that answered last is the first.
    ///
    /// # Errors
    /// The name has no address.
    pub async fn addresses(&self) -> Result<Vec<SocketAddr>, Error> {
        let Peer { host, port, .. } = &self.peer;
        let found = match self.fixed.get() {
            Some(fixed) => Ok(fixed.clone()),
            None => lookup(host, *port).await,
        };
        let answered = *self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        in_order(found.map(Vec::into_iter), host, answered)
    }

    /// Looks the name up now, and never again.
    ///
    /// # Errors
    /// The name has no address.
    pub async fn fix_addresses(&self) -> Result<(), Error> {
        let found = self.addresses().await?;
        // An earlier call has the same purpose.
        let _ = self.fixed.set(found);
        Ok(())
    }

    /// The addresses of [`fix_addresses`](Dial::fix_addresses), if it was called.
    pub fn fixed_addresses(&self) -> &[SocketAddr] {
        self.fixed.get().map_or(&[], Vec::as_slice)
    }

    /// Makes this address the first one of later attempts.
    pub fn prefer(&self, address: SocketAddr) {
        *self.answered.lock().unwrap_or_else(PoisonError::into_inner) = Some(address);
    }

    /// An endpoint of this machine's loopback interface, at a free port.
    ///
    /// # Errors
    /// [`ErrorKind::Local`]: the system provides no socket.
    pub fn loopback_endpoint(&self, config: &ConnectionConfig) -> Result<Endpoint, Error> {
        let bound = Endpoint::bind((Ipv4Addr::LOCALHOST, 0).into(), self.options(config)?);
        bound.map_err(|e| Error::new(ErrorKind::Local, e.to_string()))
    }

    fn options(&self, config: &ConnectionConfig) -> Result<Options, Error> {
        let own_key = StaticKey::new(*self.peer.identity.private());
        let own_key = own_key.map_err(|e| Error::new(ErrorKind::Local, e.to_string()))?;
        Ok(Options::client(own_key, config.clone()).tapped(self.peer.tap.clone()))
    }

    /// Connects to the first of the peer's [`addresses`](Dial::addresses) that answers.
    ///
    /// # Errors
    /// As [`connect_any`](Dial::connect_any), or [`ErrorKind::Local`]: the system provides no socket.
    pub async fn connect(
        &self,
        addresses: &[SocketAddr],
        config: ConnectionConfig,
    ) -> Result<DialledPeer, Error> {
        let paths = LocalPaths::new(&self.peer.paths, addresses)?;
        paths.first(|bound| self.connect_over(bound, config.clone()), until).await
    }

    async fn connect_over(
        &self,
        mut bound: BoundPaths,
        config: ConnectionConfig,
    ) -> Result<DialledPeer, Error> {
        let config = bound.configured(config);
        let endpoint = bound.endpoint(self.options(&config)?);
        let endpoint = endpoint.map_err(|e| Error::new(ErrorKind::Local, e.to_string()))?;
        let dialled = self.connect_any(&endpoint, &bound.servers, config).await?;
        let address = dialled.address;
        let mut others = dialled.others(NetError::brief);
        self.prefer(address);
        let connection = dialled.value;
        others += &bound.open(&connection, address);
        Ok(DialledPeer { connection, endpoint, address, others })
    }

    /// Connects to the first of these addresses that answers.
    ///
    /// # Errors
    /// As [`failure`](Dial::failure), or those of [`Peer::judge`].
    pub async fn connect_any(
        &self,
        endpoint: &Endpoint,
        addresses: &[SocketAddr],
        config: ConnectionConfig,
    ) -> Result<DialledAddress<Connection, NetError>, Error> {
        let expected = *self.key.lock().unwrap_or_else(PoisonError::into_inner);
        let mut how = ConnectOptions::new(expected.map_or(ServerKey::Any, ServerKey::Is), config);
        how.suite = key::suite();
        how.patience = self.peer.patience;
        let dialled = endpoint.connect_any(addresses, how, until).await;
        let dialled = dialled.map_err(|e| self.failure(&e))?;
        if expected.is_none() {
            let cut = || Error::new(ErrorKind::Unreachable, "the connection was cut");
            let found = dialled.value.peer_key().ok_or_else(cut)?;
            (self.peer.judge)(&found)?;
            *self.key.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
        Ok(dialled)
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
            NetError::NoAddress { failed } => {
                let kinds = failed.iter().map(|failed| self.failure(&failed.cause).kind);
                (kind_of_all(kinds), e.to_string())
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

/// The addresses of a host in the order of attempts. Blocks the thread.
///
/// # Errors
/// The name has no address.
pub fn resolved(host: &str, port: u16) -> Result<Vec<SocketAddr>, Error> {
    in_order((host, port).to_socket_addrs(), host, None)
}

fn in_order(
    found: std::io::Result<impl Iterator<Item = SocketAddr>>,
    host: &str,
    preferred: Option<SocketAddr>,
) -> Result<Vec<SocketAddr>, Error> {
    let ordered = ordered(found.into_iter().flatten(), preferred);
    if ordered.is_empty() {
        let host = crate::error::shown(host);
        return Err(Error::new(ErrorKind::Unreachable, format!("{host}: no such host is known")));
    }
    Ok(ordered)
}

/// The kind of a failure at several addresses: a later attempt may succeed if it may at one of them.
pub fn kind_of_all(kinds: impl Iterator<Item = ErrorKind>) -> ErrorKind {
    let all: Vec<ErrorKind> = kinds.collect();
    let passing = [ErrorKind::Busy, ErrorKind::Unreachable];
    let best = passing.iter().find(|kind| all.contains(kind)).or(all.first());
    best.copied().unwrap_or(ErrorKind::Unreachable)
}

/// Whether a later [attempt](Dial::connect) may succeed after this error.
pub fn may_pass(e: &Error) -> bool {
    matches!(e.kind, ErrorKind::Unreachable | ErrorKind::Busy)
}
