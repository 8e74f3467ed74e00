//! A client's connection, which is opened again while the server is busy.

use super::patience::Patience;
use super::{LOOK, static_key, stream, told, wait};
use crate::error::{Error, Kind};
use crate::key::Identity;
use crate::silence::{SILENCE, Silence};
use crate::stream::{Session, Stream};
use crate::until::Until;
use narrows_base::Duration;
use narrows_congestion::PathHints;
use narrows_net::tap::Tap;
use narrows_net::{ConnectOptions, Connection, Endpoint, Error as E, Options};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::ServerKey;
use narrows_wire::noise::PublicKey;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
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
    /// Set when the user has enough.
    pub stop: &'static AtomicBool,
    /// How long a server may say nothing to a request, although the connection lives.
    pub silence: std::time::Duration,
    /// Told a line when the server has been busy for a while and is asked again.
    pub busy: fn(&str),
}

impl Connect {
    /// To this server; nobody watches, nobody is told.
    pub fn new(expect: Expect, config: ConnectionConfig, stop: &'static AtomicBool) -> Connect {
        Connect { expect, config, tap: None, stop, silence: SILENCE, busy: |_| () }
    }
}

/// A client's connection with a server.
pub struct RrtpSession {
    address: SocketAddr,
    identity: Identity,
    how: Connect,
    patience: Mutex<Patience>,
    current: Mutex<Arc<Current>>,
}

/// The connection of the latest attempt.
struct Current {
    connection: Connection,
    endpoint: Endpoint,
    /// Whether a byte of an answer has come.
    is_answered: Arc<AtomicBool>,
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
        let addresses = (host, port)
            .to_socket_addrs()
            .map_err(|_| Error::new(Kind::Unreachable, format!("{host}: no such host is known")))?;
        let mut last = Error::new(Kind::Unreachable, format!("{host}: the name has no address"));
        for address in addresses {
            let mut patience = Patience::new(Instant::now());
            match open(address, identity, &how, &mut patience) {
                Err(e) if matches!(e.kind, Kind::Unreachable | Kind::Busy) => last = e,
                Err(e) => return Err(e),
                Ok(current) => {
                    return Ok(RrtpSession {
                        address,
                        identity: identity.clone(),
                        how,
                        patience: Mutex::new(patience),
                        current: Mutex::new(Arc::new(current)),
                    });
                }
            }
        }
        Err(last)
    }

    /// Does `work`, and does it again over a new connection when the server took the place away before it
    /// answered anything, since it was busy; not for longer than the patience lasts.
    ///
    /// # Errors
    /// Those of the work.
    pub fn while_busy<T>(&self, mut work: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        loop {
            let e = match work() {
                Err(e) if self.current().is_put_out() => e,
                other => return other,
            };
            let mut patience = self.patience.lock().unwrap_or_else(PoisonError::into_inner);
            if !pause(self.address, &self.how, &mut patience)? {
                return Err(e);
            }
            // Who was met at first, and nobody else.
            let expect = self.peer_key().map_or(self.how.expect, Expect::Key);
            let (config, tap) = (self.how.config.clone(), self.how.tap.clone());
            let how = Connect { expect, config, tap, ..self.how };
            let opened = open(self.address, &self.identity, &how, &mut patience);
            // What is left of the patience may be too short for an answer.
            let opened = opened.map_err(|new| if new.kind == Kind::Unreachable { e } else { new });
            let current = opened?;
            *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(current);
        }
    }

    fn current(&self) -> Arc<Current> {
        Arc::clone(&self.current.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The server's key.
    pub fn peer_key(&self) -> Option<PublicKey> {
        self.current().connection.peer_key()
    }

    /// What this end has learned of the path.
    pub fn learned(&self) -> PathHints {
        self.current().connection.learned()
    }

    /// For how long nothing has come from the server, and after how much of it the connection is
    /// given up; `None` when it is over.
    pub fn silence(&self) -> Option<(Duration, Duration)> {
        self.current().connection.silence().ok()
    }
}

/// Connects; a server that is busy is asked again.
fn open(
    address: SocketAddr,
    identity: &Identity,
    how: &Connect,
    patience: &mut Patience,
) -> Result<Current, Error> {
    let mut busy = None;
    loop {
        match attempt(address, identity, how, patience.left(Instant::now())) {
            Err(e) if e.kind == Kind::Busy && pause(address, how, patience)? => busy = Some(e),
            // What was left of the patience may have been too short for an answer.
            Err(e) if e.kind == Kind::Unreachable => return Err(busy.unwrap_or(e)),
            other => return other,
        }
    }
}

/// Waits before the next attempt; false if there may be none.
fn pause(address: SocketAddr, how: &Connect, patience: &mut Patience) -> Result<bool, Error> {
    let mut random_key = [0; 2];
    // Without randomness this client comes again when others do.
    let _ = getrandom::fill(&mut random_key);
    let random_key = f64::from(u16::from_be_bytes(random_key)) / f64::from(u16::MAX);
    let Some(mut left) = patience.next(Instant::now(), random_key) else { return Ok(false) };
    if patience.tells(Instant::now()) {
        let seconds = patience.left(Instant::now()).as_secs_f64();
        (how.busy)(&format!("{address} is busy: it is asked again for {seconds:.0} s more"));
    }
    while !left.is_zero() {
        if how.stop.load(Ordering::SeqCst) {
            return Err(Error::interrupted());
        }
        let now = left.min(LOOK);
        std::thread::sleep(now);
        left -= now;
    }
    Ok(true)
}

fn attempt(
    address: SocketAddr,
    identity: &Identity,
    how: &Connect,
    patience: std::time::Duration,
) -> Result<Current, Error> {
    let ours = *identity.public();
    let any: IpAddr = match address {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let config = ConnectionConfig { keep_alive: ASK, ..how.config.clone() };
    let options = Options::client(static_key(identity)?, config.clone()).tapped(how.tap.clone());
    let endpoint = Endpoint::bind(SocketAddr::new(any, 0), options).map_err(|e| told(e, &ours))?;
    let server_key = match how.expect {
        Expect::Key(key) => ServerKey::Is(key),
        Expect::Anybody => ServerKey::Any,
    };
    let options = ConnectOptions {
        suite: crate::key::suite(),
        patience: Duration::from_secs_f64(patience.as_secs_f64()),
        ..ConnectOptions::new(server_key, config)
    };
    let connected = wait(&Until::Stopped(how.stop), None, endpoint.connect(address, options))?;
    let connection = connected.map_err(|e| told(e, &ours))?;
    Ok(Current { connection, endpoint, is_answered: Arc::default() })
}

impl Current {
    /// Whether the server gave its place to another before it answered anything. Of a CLOSE that got lost
    /// a RESET tells.
    fn is_put_out(&self) -> bool {
        let over = self.connection.silence().err();
        let is_busy = matches!(over, Some(E::Busy { .. } | E::PeerRestarted));
        is_busy && !self.is_answered.load(Ordering::SeqCst)
    }
}

impl Drop for Current {
    /// The server shall not have to find out by silence.
    fn drop(&mut self) {
        self.endpoint.leave(0, "");
    }
}

impl Session for RrtpSession {
    fn open(&self) -> Result<Stream, Error> {
        let (current, ours) = (self.current(), *self.identity.public());
        let (until, silence) = (Until::Stopped(self.how.stop), Silence::new(self.how.silence));
        let (send, receive) = wait(&until, Some(&silence), current.connection.open_bi())?
            .map_err(|e| told(e, &ours))?;
        let Stream { input, output } = stream((send, receive), until, Some(silence), ours);
        let is_answered = Arc::clone(&current.is_answered);
        Ok(Stream { input: Box::new(Noticed { input, is_answered }), output })
    }
    fn protocol(&self) -> String {
        self.how.config.protocol.label().to_string()
    }
}

/// A reader that notes when something came.
struct Noticed {
    input: Box<dyn Read + Send>,
    is_answered: Arc<AtomicBool>,
}

impl Read for Noticed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(into)?;
        if read > 0 {
            self.is_answered.store(true, Ordering::Relaxed);
        }
        Ok(read)
    }
}
