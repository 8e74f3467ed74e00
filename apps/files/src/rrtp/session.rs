//! A client's connection, which is reopened while the server is busy.

use super::{static_key, stream, transport_error, wait, wait_and_look};
use crate::busy::{PATIENCE, Patience, ServerSignals};
use crate::silence::{SILENCE, Silence};
use crate::stream::{FileStream, Session};
use crate::until::Until;
use narrows_base::Duration;
use narrows_congestion::{HintSource, PathHints};
use narrows_net::block::sleep_until;
use narrows_net::tap::Tap;
use narrows_net::{
    ConnectOptions, Connection, Driver, EarlyData, Endpoint, Error as E, Options, ReceiveStream,
    SendStream,
};
use narrows_peers::dial::resolved;
use narrows_peers::error::{Error, ErrorKind};
use narrows_peers::key::Identity;
use narrows_peers::path_choice::PathChoices;
use narrows_peers::paths::{BoundPaths, LocalPaths, OpenPaths, PathBytes};
use narrows_peers::tokens::SavedTokens;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::ServerKey;
use narrows_wire::noise::PublicKey;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, PoisonError, TryLockError};
use std::time::Instant;

/// Keep-alive interval of a client. A working server sends WAIT every second, so after this time it is gone, or does
/// not have the client's current address.
const ASK: Duration = Duration::from_secs(5);

/// The server key that a client expects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    /// Only this key.
    Key(PublicKey),
    /// Any key: the caller checks it.
    Anybody,
}

/// Options of a client's connections.
pub struct SessionOptions {
    /// The expected key.
    pub expect: Expect,
    /// Configuration of the connections.
    pub config: ConnectionConfig,
    /// Observer of the endpoint.
    pub tap: Option<Arc<dyn Tap>>,
    /// Address tokens of servers, for this connection and later ones.
    pub tokens: SavedTokens,
    /// Set when the user stops the transfer.
    pub stop: &'static AtomicBool,
    /// Time for which a server may send no answer to a request, although the connection lives.
    pub silence: std::time::Duration,
    /// Time for which requests to a busy server are repeated without progress.
    pub patience: std::time::Duration,
    /// Receives one line, once, when the server is busy and the request is repeated.
    pub busy: fn(&str),
    /// Local ends of the connection's paths.
    pub paths: PathChoices,
    /// Receives one line if the server does not use all paths.
    pub note: fn(&str),
}

impl SessionOptions {
    /// Without an observer, stored tokens or messages.
    pub fn new(
        expect: Expect,
        config: ConnectionConfig,
        stop: &'static AtomicBool,
    ) -> SessionOptions {
        let tokens = SavedTokens::default();
        let silence = SILENCE;
        let patience = PATIENCE;
        SessionOptions {
            expect,
            config,
            tap: None,
            tokens,
            stop,
            silence,
            patience,
            busy: |_| (),
            paths: PathChoices::default(),
            note: |_| (),
        }
    }
}

/// A client's connection with a server.
pub struct RrtpSession {
    host: String,
    port: u16,
    identity: Identity,
    how: SessionOptions,
    patience: Mutex<Patience>,
    /// `None` before the first connection. Locked during the first connection attempt: other threads wait.
    current: Mutex<Option<Arc<Current>>>,
    first: FirstConnection,
}

/// Lets threads wait for a connection that another thread makes.
#[derive(Default)]
struct FirstConnection {
    /// Whether there is a connection; false if there will be none.
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
    /// Where its paths leave.
    paths: OpenPaths,
}

impl RrtpSession {
    /// Connects to `host:port`. A busy server is retried for as long as one that does not answer.
    ///
    /// # Errors
    /// The name has no address, the server does not answer, stays busy, or has another key.
    pub fn connect(
        host: &str,
        port: u16,
        identity: &Identity,
        how: SessionOptions,
    ) -> Result<RrtpSession, Error> {
        let session = RrtpSession::with_first_request(host, port, identity, how);
        session.current()?;
        Ok(session)
    }

    /// As [`RrtpSession::connect`], but connects with the first stream. Its request ([`Session::ask`]) leaves with the
    /// first packet if a token of the server is stored.
    pub fn with_first_request(
        host: &str,
        port: u16,
        identity: &Identity,
        how: SessionOptions,
    ) -> RrtpSession {
        let patience = Mutex::new(Patience::new(Instant::now(), how.patience, how.busy));
        let host = host.to_string();
        let identity = identity.clone();
        let current = Mutex::default();
        let first = FirstConnection::default();
        RrtpSession { host, port, identity, how, patience, current, first }
    }

    /// Connects to the first of the server's addresses that answers.
    fn first_connection(&self, request: Option<&[u8]>) -> Result<Current, Error> {
        let addresses = resolved(&self.host, self.port)?;
        let mut patience = self.patience.lock().unwrap_or_else(PoisonError::into_inner);
        *patience = Patience::new(Instant::now(), self.how.patience, self.how.busy);
        open(&addresses, &self.identity, &self.how, &mut patience, request)
    }

    /// Waits until another thread has connected; false if that will not happen.
    pub fn wait_connected(&self) -> bool {
        self.first.wait()
    }
    /// Ends the waits of [`wait_connected`](RrtpSession::wait_connected) if there is no connection.
    pub fn give_up_waiting(&self) {
        self.first.set(false);
    }

    /// Runs `work`, and repeats it while the server is busy, over a new connection if the server closed this one. Ends
    /// at the retry deadline, which progress of `work` restarts. `work` must be able to resume.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn while_busy<T>(&self, mut work: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        loop {
            let e = match work() {
                Err(e) if matches!(e.kind, ErrorKind::Busy | ErrorKind::Cut) => e,
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
            // Expect the server's first key, and no other.
            let expect = self.peer_key().map_or(self.how.expect, Expect::Key);
            let config = self.how.config.clone();
            let tap = self.how.tap.clone();
            let tokens = self.how.tokens.clone();
            let paths = self.how.paths.clone();
            let how = SessionOptions { expect, config, tap, tokens, paths, ..self.how };
            let opened = open(&[current.address], &self.identity, &how, &mut patience, None);
            // The time until the deadline may be too short for an answer.
            let opened =
                opened.map_err(|new| if new.kind == ErrorKind::Unreachable { e } else { new });
            let current = Arc::new(opened?);
            *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(current);
        }
    }

    /// The connection, made now if necessary.
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
    /// The connection, if there is one. Does not wait for an attempt under way.
    fn existing(&self) -> Option<Arc<Current>> {
        match self.current.try_lock() {
            Ok(current) => current.clone(),
            Err(TryLockError::Poisoned(current)) => current.into_inner().clone(),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The server's key; `None` without a connection.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.existing()?.connection.peer_key()
    }

    /// Label of the server's sender; `None` if it sent none or the connection has ended.
    pub fn peer_protocol(&self) -> Option<String> {
        let label = self.existing()?.connection.peer_protocol().ok()?;
        (!label.is_empty()).then(|| narrows_peers::error::shown(&label))
    }

    /// Whether the server accepted the first request as early data.
    #[cfg(test)]
    pub(crate) fn went_early(&self) -> Option<bool> {
        self.existing()?.connection.early_data_accepted().ok()
    }

    /// This end's measurements of the path.
    pub fn learned(&self) -> PathHints {
        self.existing().map_or_else(PathHints::default, |current| current.connection.learned())
    }

    /// Whether the first flight by a stored rate met congestion.
    pub fn has_retreated(&self) -> bool {
        self.existing().is_some_and(|current| current.connection.stats().counters.retreats > 0)
    }

    /// Bytes written to its streams that the server has not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.existing().map_or(0, |current| current.connection.stats().bytes_unacknowledged)
    }

    /// Bytes of each path that has begun; empty without [`SessionOptions::paths`] or a connection.
    pub fn path_bytes(&self) -> Vec<PathBytes> {
        let Some(current) = self.existing() else { return Vec::new() };
        PathBytes::of(&current.connection, &current.paths)
    }

    /// Whether there is a connection, open or ended.
    pub fn is_connected(&self) -> bool {
        self.existing().is_some()
    }

    /// Sets path hints from now on; does nothing without an open connection.
    pub fn reconfigure(&self, hints: &PathHints) {
        if let Some(current) = self.existing() {
            let _ = current.connection.reconfigure(hints, HintSource::User);
        }
    }

    /// Time since the last packet of the server, and the idle timeout of the connection; `None` without an open
    /// connection.
    pub fn silence(&self) -> Option<(Duration, Duration)> {
        self.existing()?.connection.silence().ok()
    }
}

/// Connects; retries while the server is busy.
fn open(
    addresses: &[SocketAddr],
    identity: &Identity,
    how: &SessionOptions,
    patience: &mut Patience,
    request: Option<&[u8]>,
) -> Result<Current, Error> {
    let all: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    let mut busy = None;
    let what = format!("{} is busy", all.join(" or "));
    loop {
        let paths = LocalPaths::new(&how.paths, addresses)?;
        let e = match attempt(&paths, identity, how, patience, &what, request) {
            Err(e) => e,
            opened => return opened,
        };
        if e.kind == ErrorKind::Busy && patience.pause(&what, how.stop)? {
            busy = Some(e);
        } else {
            // The time until the deadline may have been too short for an answer.
            return Err(if e.kind == ErrorKind::Unreachable { busy.unwrap_or(e) } else { e });
        }
    }
}

fn attempt(
    paths: &LocalPaths,
    identity: &Identity,
    how: &SessionOptions,
    patience: &mut Patience,
    busy: &str,
    request: Option<&[u8]>,
) -> Result<Current, Error> {
    let own_key = *identity.public();
    let server_key = match how.expect {
        Expect::Key(key) => ServerKey::Is(key),
        Expect::Anybody => ServerKey::Any,
    };
    let left = Duration::from_secs_f64(patience.left(Instant::now()).as_secs_f64());
    let config = ConnectionConfig { keep_alive: ASK, ..how.config.clone() };
    let config = super::for_files(config)?;
    let endpoints = RefCell::new(Vec::<Endpoint>::new());
    let connect = async |mut bound: BoundPaths| {
        let config = bound.configured(config.clone());
        // The calling thread blocks, and it may belong to an async runtime.
        let options = Options::client(static_key(identity)?, config.clone())
            .tapped(how.tap.clone())
            .with_token_store(Box::new(how.tokens.clone()))
            .driven_by(Driver::Thread);
        let endpoint = bound.endpoint(options).map_err(|e| transport_error(e, &own_key))?;
        endpoints.borrow_mut().push(endpoint.clone());
        let mut options = ConnectOptions::new(server_key, config);
        options.suite = narrows_peers::key::suite();
        // A request must not leave twice.
        options.early_data = request.filter(|_| bound.is_first).and_then(EarlyData::new);
        options.patience = left;
        let dialled = endpoint.connect_any(&bound.servers, options, sleep_until).await;
        let dialled = dialled.map_err(|e| transport_error(e, &own_key))?;
        Ok((bound, endpoint, dialled))
    };
    // The attempt continues after BUSY: report it to the user now rather than at its end.
    let look = || {
        if endpoints.borrow().iter().any(Endpoint::meets_busy) {
            patience.tell(busy);
        }
    };
    let until = Until::Stopped(how.stop);
    let (bound, endpoint, dialled) =
        wait_and_look(&until, None, look, paths.first(&connect, sleep_until))??;
    let address = dialled.address;
    let connection = dialled.value;
    let tokens = how.tokens.clone();
    let signals = ServerSignals::default();
    let notes = bound.open(&connection, address);
    if !notes.is_empty() {
        (how.note)(&format!("connected to {address}{notes}"));
    }
    Ok(Current { address, connection, endpoint, tokens, signals, paths: bound.names })
}

impl Current {
    /// Why the request is to be repeated, if it is, and the bytes moved. If a CLOSE was lost, the server answers with a
    /// RESET, as after a restart.
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
    /// Closes the connection, so that the server does not need its idle timeout.
    fn drop(&mut self) {
        self.endpoint.leave(0, "");
        self.tokens.save();
    }
}

impl RrtpSession {
    /// Wraps the halves of a stream for the session's user.
    fn watched(&self, current: &Current, send: SendStream, receive: ReceiveStream) -> FileStream {
        let until = Until::Stopped(self.how.stop);
        let silence = Silence::new(self.how.silence);
        let own_key = *self.identity.public();
        current.signals.observe(stream(send, receive, until, Some(silence), own_key))
    }
}

impl Session for RrtpSession {
    fn open(&self) -> Result<FileStream, Error> {
        let current = self.current()?;
        let own_key = *self.identity.public();
        let until = Until::Stopped(self.how.stop);
        let silence = Silence::new(self.how.silence);
        let (send, receive) = wait(&until, Some(&silence), current.connection.open_bi())?
            .map_err(|e| transport_error(e, &own_key))?;
        Ok(self.watched(&current, send, receive))
    }
    fn ask(&self, request: &[u8]) -> Result<FileStream, Error> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.is_none() {
            let made = Arc::new(self.first_connection(Some(request))?);
            *current = Some(Arc::clone(&made));
            self.first.set(true);
            if let Some((send, receive)) = made.connection.early_stream() {
                return Ok(self.watched(&made, send, receive));
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
