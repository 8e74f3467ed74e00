//! A client's connection, which is reopened while the server is busy.

use super::{static_key, stream, transport_error, wait, wait_and_look};
use crate::busy::{Patience, ServerSignals};
use crate::error::{Error, Kind};
use crate::key::Identity;
use crate::silence::{SILENCE, Silence};
use crate::stream::{Session, Stream};
use crate::tokens::SavedTokens;
use crate::until::Until;
use narrows_base::Duration;
use narrows_congestion::{HintSource, PathHints};
use narrows_net::tap::Tap;
use narrows_net::{
    ConnectOptions, Connection, Driver, EarlyData, Endpoint, Error as E, Options, ReceiveStream,
    SendStream,
};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::ServerKey;
use narrows_wire::noise::PublicKey;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::time::Instant;

/// A client asks for a sign of life when nothing came for so long: a server at work says something
/// every second, so by then it is away, or does not know where the client is now.
const ASK: Duration = Duration::from_secs(5);

/// Whom a client expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// This key.
    Key(PublicKey),
    /// Somebody new: the key is judged by whoever connects.
    Anybody,
}

/// How a client connects.
pub struct Connect {
    /// To whom.
    pub expect: Expect,
    /// How its connections behave.
    pub config: ConnectionConfig,
    /// Who watches them.
    pub tap: Option<Arc<dyn Tap>>,
    /// Address tokens of servers, for this connection and the next ones.
    pub tokens: SavedTokens,
    /// Set when the user has enough.
    pub stop: &'static AtomicBool,
    /// How long a server may say nothing to a request, although the connection lives.
    pub silence: std::time::Duration,
    /// Told a line when the server is busy and is asked again, once.
    pub busy: fn(&str),
}

impl Connect {
    /// To this server; nobody watches, nobody is told.
    pub fn new(expect: Expect, config: ConnectionConfig, stop: &'static AtomicBool) -> Connect {
        let tokens = SavedTokens::default();
        Connect { expect, config, tap: None, tokens, stop, silence: SILENCE, busy: |_| () }
    }
}

/// A client's connection with a server.
pub struct RrtpSession {
    host: String,
    port: u16,
    identity: Identity,
    how: Connect,
    patience: Mutex<Patience>,
    /// None before the first stream of a session that begins with it. Held by whoever connects: the others wait.
    current: Mutex<Option<Arc<Current>>>,
    first: FirstConnection,
}

/// Whether there is a connection yet, for those who do not want to be the first to use it.
#[derive(Default)]
struct FirstConnection {
    /// Whether there is one; none is to be waited for if this is false.
    known: Mutex<Option<bool>>,
    changed: Condvar,
}

impl FirstConnection {
    fn set(&self, is_there: bool) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(is_there);
        self.changed.notify_all();
    }
    fn wait(&self) -> bool {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let known = self.changed.wait_while(known, |known| known.is_none());
        known.unwrap_or_else(PoisonError::into_inner).unwrap_or_default()
    }
}

/// The connection of the latest attempt.
struct Current {
    address: SocketAddr,
    connection: Connection,
    endpoint: Endpoint,
    tokens: SavedTokens,
    signals: ServerSignals,
}

impl RrtpSession {
    /// Connects to `host:port`. A server that is busy is asked again until the patience ends that one
    /// without an answer gets, too.
    ///
    /// # Errors
    /// The name leads nowhere, nobody answers, the server stays busy, the key is another one.
    pub fn connect(
        host: &str,
        port: u16,
        identity: &Identity,
        how: Connect,
    ) -> Result<RrtpSession, Error> {
        let session = RrtpSession::with_first_request(host, port, identity, how);
        session.current()?;
        Ok(session)
    }

    /// The same, but connects with the first stream, whose request ([`Session::ask`]) leaves with the first packet to
    /// a server that is known.
    pub fn with_first_request(
        host: &str,
        port: u16,
        identity: &Identity,
        how: Connect,
    ) -> RrtpSession {
        let patience = Mutex::new(Patience::new(Instant::now(), how.busy));
        let (host, identity) = (host.to_string(), identity.clone());
        let (current, first) = (Mutex::default(), FirstConnection::default());
        RrtpSession { host, port, identity, how, patience, current, first }
    }

    /// Connects, to the first of the server's addresses that answers.
    fn first_connection(&self, request: Option<&[u8]>) -> Result<Current, Error> {
        let host = &self.host;
        let addresses = (host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|_| Error::new(Kind::Unreachable, format!("{host}: no such host is known")))?;
        let mut last = Error::new(Kind::Unreachable, format!("{host}: the name has no address"));
        for address in addresses {
            let mut patience = self.patience.lock().unwrap_or_else(PoisonError::into_inner);
            *patience = Patience::new(Instant::now(), self.how.busy);
            match open(address, &self.identity, &self.how, &mut patience, request) {
                Err(e) if matches!(e.kind, Kind::Unreachable | Kind::Busy) => last = e,
                other => return other,
            }
        }
        Err(last)
    }

    /// Waits until something else has connected; false if that will not happen.
    pub fn wait_connected(&self) -> bool {
        self.first.wait()
    }
    /// Nothing else will connect, if nothing has.
    pub fn give_up_waiting(&self) {
        self.first.set(false);
    }

    /// Does `work`, and does it again when the server said that it is busy, or took this connection's place away: over
    /// a new connection then. Not for longer than the patience lasts, which begins anew when `work` has come forward.
    /// What `work` began, it must be able to go on with.
    ///
    /// # Errors
    /// Those of the work.
    pub fn while_busy<T>(&self, mut work: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        loop {
            let e = match work() {
                Err(e) if matches!(e.kind, Kind::Busy | Kind::Cut) => e,
                other => return other,
            };
            let Some(current) = self.existing() else { return Err(e) };
            let mut patience = self.patience.lock().unwrap_or_else(PoisonError::into_inner);
            let (why, moved) = current.why_busy();
            patience.moved(Instant::now(), moved);
            let Some(why) = why else { return Err(e) };
            if !patience.pause(&format!("{} {why}", current.address), self.how.stop)? {
                return Err(e);
            }
            if current.connection.silence().is_ok() {
                continue;
            }
            // Who was met at first, and nobody else.
            let expect = self.peer_key().map_or(self.how.expect, Expect::Key);
            let (config, tap) = (self.how.config.clone(), self.how.tap.clone());
            let tokens = self.how.tokens.clone();
            let how = Connect { expect, config, tap, tokens, ..self.how };
            let opened = open(current.address, &self.identity, &how, &mut patience, None);
            // What is left of the patience may be too short for an answer.
            let opened = opened.map_err(|new| if new.kind == Kind::Unreachable { e } else { new });
            let current = Arc::new(opened?);
            *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(current);
        }
    }

    /// The connection, made now if there is none.
    fn current(&self) -> Result<Arc<Current>, Error> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(current) = &*current {
            return Ok(Arc::clone(current));
        }
        let made = Arc::new(self.first_connection(None)?);
        *current = Some(Arc::clone(&made));
        self.first.set(true);
        Ok(made)
    }
    /// The connection, if there is one. Waits for nobody who connects.
    fn existing(&self) -> Option<Arc<Current>> {
        match self.current.try_lock() {
            Ok(current) => current.clone(),
            Err(TryLockError::Poisoned(current)) => current.into_inner().clone(),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The server's key.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.existing()?.connection.peer_key()
    }

    /// What the server sends with, if it said so and is still there.
    pub fn peer_protocol(&self) -> Option<String> {
        let label = self.existing()?.connection.peer_protocol().ok()?;
        (!label.is_empty()).then(|| crate::error::shown(&label))
    }

    /// Whether the server took the first request with the first packet.
    #[cfg(test)]
    pub(crate) fn went_early(&self) -> Option<bool> {
        self.existing()?.connection.early_data_accepted().ok()
    }

    /// What this end has learned of the path.
    pub fn learned(&self) -> PathHints {
        self.existing().map_or_else(PathHints::default, |current| current.connection.learned())
    }

    /// Whether there is a connection, alive or over.
    pub fn is_connected(&self) -> bool {
        self.existing().is_some()
    }

    /// Says what is known of the path from now on; nothing happens where there is no connection yet, or no more.
    pub fn reconfigure(&self, hints: &PathHints) {
        if let Some(current) = self.existing() {
            let _ = current.connection.reconfigure(hints, HintSource::User);
        }
    }

    /// For how long nothing has come from the server, and after how much of it the connection is
    /// given up; `None` when there is none, or it is over.
    pub fn silence(&self) -> Option<(Duration, Duration)> {
        self.existing()?.connection.silence().ok()
    }
}

/// Connects; a server that is busy is asked again.
fn open(
    address: SocketAddr,
    identity: &Identity,
    how: &Connect,
    patience: &mut Patience,
    request: Option<&[u8]>,
) -> Result<Current, Error> {
    let (mut busy, what) = (None, format!("{address} is busy"));
    loop {
        match attempt(address, identity, how, patience, request) {
            Err(e) if e.kind == Kind::Busy && patience.pause(&what, how.stop)? => busy = Some(e),
            // What was left of the patience may have been too short for an answer.
            Err(e) if e.kind == Kind::Unreachable => return Err(busy.unwrap_or(e)),
            other => return other,
        }
    }
}

fn attempt(
    address: SocketAddr,
    identity: &Identity,
    how: &Connect,
    patience: &mut Patience,
    request: Option<&[u8]>,
) -> Result<Current, Error> {
    let ours = *identity.public();
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let config = super::for_files(ConnectionConfig { keep_alive: ASK, ..how.config.clone() })?;
    // Whoever asks blocks a thread, which may be a runtime's.
    let options = Options::client(static_key(identity)?, config.clone())
        .tapped(how.tap.clone())
        .with_token_store(Box::new(how.tokens.clone()))
        .driven_by(Driver::Thread);
    let endpoint =
        Endpoint::bind(SocketAddr::new(any, 0), options).map_err(|e| transport_error(e, &ours))?;
    let server_key = match how.expect {
        Expect::Key(key) => ServerKey::Is(key),
        Expect::Anybody => ServerKey::Any,
    };
    let mut options = ConnectOptions::new(server_key, config);
    options.suite = crate::key::suite();
    options.early_data = request.and_then(EarlyData::new);
    options.patience = Duration::from_secs_f64(patience.left(Instant::now()).as_secs_f64());
    // An attempt that meets BUSY goes on: the user does not have to wait for its end to learn why.
    let look = || {
        if endpoint.meets_busy() {
            patience.tell(&format!("{address} is busy"));
        }
    };
    let until = Until::Stopped(how.stop);
    let connected = wait_and_look(&until, None, look, endpoint.connect(address, options))?;
    let connection = connected.map_err(|e| transport_error(e, &ours))?;
    let tokens = how.tokens.clone();
    let signals = ServerSignals::default();
    Ok(Current { address, connection, endpoint, tokens, signals })
}

impl Current {
    /// Why the server is to be asked again, if it is, and how many bytes were moved. Of a CLOSE that got lost a RESET
    /// tells, as it tells of a restart.
    fn why_busy(&self) -> (Option<&'static str>, u64) {
        let (is_busy, moved) = self.signals.take();
        let why = match self.connection.silence().err() {
            Some(E::PeerRestarted) => Some("knows this connection no longer"),
            Some(E::Busy { .. }) => Some("is busy"),
            Some(_) => None,
            None => is_busy.then_some("is busy"),
        };
        (why, moved)
    }
}

impl Drop for Current {
    /// The server shall not have to find out by silence.
    fn drop(&mut self) {
        self.endpoint.leave(0, "");
        self.tokens.save();
    }
}

impl RrtpSession {
    /// A stream for the session's user.
    fn watched(&self, current: &Current, halves: (SendStream, ReceiveStream)) -> Stream {
        let (until, silence) = (Until::Stopped(self.how.stop), Silence::new(self.how.silence));
        let ours = *self.identity.public();
        current.signals.observe(stream(halves, until, Some(silence), ours))
    }
}

impl Session for RrtpSession {
    fn open(&self) -> Result<Stream, Error> {
        let (current, ours) = (self.current()?, *self.identity.public());
        let (until, silence) = (Until::Stopped(self.how.stop), Silence::new(self.how.silence));
        let halves = wait(&until, Some(&silence), current.connection.open_bi())?
            .map_err(|e| transport_error(e, &ours))?;
        Ok(self.watched(&current, halves))
    }
    fn ask(&self, request: &[u8]) -> Result<Stream, Error> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_none() {
            let made = Arc::new(self.first_connection(Some(request))?);
            *current = Some(Arc::clone(&made));
            self.first.set(true);
            if let Some(halves) = made.connection.early_stream() {
                return Ok(self.watched(&made, halves));
            }
        }
        drop(current);
        let mut stream = self.open()?;
        stream.output.write_all(request).map_err(Error::stream)?;
        Ok(stream)
    }
    fn protocol(&self) -> String {
        self.how.config.protocol.label().to_string()
    }
}
