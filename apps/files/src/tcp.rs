//! The service over the kernel's TCP: one connection per stream, encrypted as `rrtp` (Noise XX, the same keys and
//! ciphers).

mod noise;
mod server;
mod socket;

pub use server::TcpServer;

use crate::busy::{PATIENCE, Patience, ServerSignals};
use crate::silence::SILENCE;
use crate::stream::{FileStream, Session};
use crate::until::Until;
use narrows_net::dial::{DialFailure, listed, ordered, tcp};
use narrows_peers::dial::resolved;
use narrows_peers::error::{Error, ErrorKind};
use narrows_peers::key::Identity;
use narrows_wire::noise::PublicKey;
use socket::{OPENING, TcpSocket};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Checks a server's key.
pub type Accept = Box<dyn Fn(&PublicKey) -> Result<(), Error> + Send + Sync>;

/// The client's side: makes a connection for each stream.
pub struct TcpSession {
    server: String,
    addresses: Vec<SocketAddr>,
    identity: Identity,
    congestion: Option<String>,
    accept: Accept,
    stop: &'static AtomicBool,
    silence: Duration,
    // The last address that answered is tried first.
    good: Mutex<Option<SocketAddr>>,
    signals: ServerSignals,
    sockets: Mutex<Vec<Weak<TcpStream>>>,
    /// Receives one line, once, when the server is busy and the request is repeated.
    busy: fn(&str),
}

impl TcpSession {
    /// Connects to `host:port` with the first stream. `congestion` names a congestion control of both kernels; `accept`
    /// checks the server's key before the client's own is sent.
    ///
    /// # Errors
    /// The name has no address.
    pub fn new(
        host: &str,
        port: u16,
        identity: Identity,
        congestion: Option<String>,
        accept: Accept,
        stop: &'static AtomicBool,
    ) -> Result<TcpSession, Error> {
        let server =
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
        let addresses = resolved(host, port)?;
        if let Some(name) = &congestion {
            socket::check_congestion_name(name)?;
        }
        Ok(TcpSession {
            server,
            addresses,
            identity,
            congestion,
            accept,
            stop,
            silence: SILENCE,
            good: Mutex::new(None),
            signals: ServerSignals::default(),
            sockets: Mutex::default(),
            busy: |_| (),
        })
    }

    /// `busy` receives one line, once, when the server is busy and the request is repeated.
    #[must_use]
    pub fn telling(self, busy: fn(&str)) -> TcpSession {
        TcpSession { busy, ..self }
    }

    /// Runs `work`, and repeats it while the server is busy, as over rrtp.
    ///
    /// # Errors
    /// Those of `work`.
    pub fn while_busy<T>(&self, mut work: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        let mut patience = Patience::new(Instant::now(), PATIENCE, self.busy);
        loop {
            let e = match work() {
                Err(e) if e.kind == ErrorKind::Busy => e,
                other => return other,
            };
            let (is_busy, moved) = self.signals.take();
            patience.moved(Instant::now(), moved);
            if !is_busy || !patience.pause(&format!("{} is busy", self.server), self.stop)? {
                return Err(e);
            }
        }
    }

    /// Sets the longest permitted silence of the server within a transfer.
    #[must_use]
    pub fn silent_for(self, silence: Duration) -> TcpSession {
        TcpSession { silence, ..self }
    }

    /// The sockets of its open streams.
    pub fn sockets(&self) -> Vec<Arc<TcpStream>> {
        let sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.iter().filter_map(Weak::upgrade).collect()
    }

    fn connect(&self) -> Result<TcpStream, Error> {
        let good = *self.good.lock().unwrap_or_else(PoisonError::into_inner);
        let addresses = ordered(self.addresses.iter().copied(), good);
        let is_stopped = || self.stop.load(Ordering::SeqCst);
        let failed = match tcp::connect(&addresses, OPENING, is_stopped) {
            Ok(connected) => {
                let good = Some(connected.address);
                *self.good.lock().unwrap_or_else(PoisonError::into_inner) = good;
                return Ok(connected.value);
            }
            Err(DialFailure::Final(_)) => return Err(Error::interrupted()),
            Err(DialFailure::All(failed)) => failed,
        };
        let why = match failed.as_slice() {
            [only] => match only.cause.kind() {
                io::ErrorKind::ConnectionRefused => {
                    "no server listens there; is narrows serve running, with this port?".into()
                }
                io::ErrorKind::TimedOut => {
                    "no answer; is the address right and the way open?".into()
                }
                io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
                    "there is no way there from here".into()
                }
                _ => "the connection failed".into(),
            },
            several => {
                format!("no connection to any of its addresses ({})", listed(several, tcp::brief))
            }
        };
        Err(Error::new(ErrorKind::Unreachable, format!("{}: {why}", self.server)))
    }
}

impl Session for TcpSession {
    fn open(&self) -> Result<FileStream, Error> {
        let tcp = self.connect()?;
        let socket =
            TcpSocket::new(tcp, Until::Stopped(self.stop), self.silence).map_err(Error::stream)?;
        if let Some(name) = &self.congestion {
            socket.set_congestion(name)?;
        }
        let mut sockets = self.sockets.lock().unwrap_or_else(PoisonError::into_inner);
        sockets.retain(|socket| socket.strong_count() > 0);
        sockets.push(socket.downgrade());
        drop(sockets);
        let stream =
            noise::client(socket, &self.identity, self.congestion.as_deref(), &self.accept)
                // The error of a wrong key already names the server.
                .map_err(|e| if e.kind == ErrorKind::WrongKey { e } else { e.at(&self.server) })?;
        Ok(self.signals.observe(stream))
    }

    fn protocol(&self) -> String {
        match &self.congestion {
            Some(name) => format!("tcp+{name}"),
            None => "tcp".into(),
        }
    }
}
