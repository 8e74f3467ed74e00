//! Opens a session for a URL and flags, with a check of the server's key.

use super::options::{TransferOptions, known_servers, own_key};
use crate::failure::Failure;
use crate::local_paths::CarriedBytes;
use crate::terminal::{STOP, note};
use crate::transport::{Hints, Reconfigure, TransportArgs};
use narrows_base::{Duration, SpecError};
use narrows_congestion::{HintSource, PathHints};
use narrows_files::client;
use narrows_files::message::Tuning;
use narrows_files::rrtp::{Expect, RrtpSession, SessionOptions};
use narrows_files::stream::Session;
use narrows_files::tcp::{Accept, TcpSession};
use narrows_files::{Scheme, Url};
use narrows_net::tap::Tap;
use narrows_peers::access::{KeyCheck, KnownServers};
use narrows_peers::learned::{Delivered, LearnedPaths, MeasuredPath};
use narrows_peers::paths::PathBytes;
use narrows_peers::tokens::SavedTokens;
use narrows_peers::{Error, ErrorKind, Identity, error, key};
use narrows_transport::connection::ConnectionConfig;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Instant;

/// Whether files come from the server or go to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TransferDirection {
    Get,
    Put,
}

/// Time since the server's last packet, and the time after which the connection is given up.
#[derive(Clone, Copy)]
pub struct ServerSilence {
    pub so_far: Duration,
    pub limit: Duration,
}

enum AnySession {
    Tcp(Box<TcpSession>),
    Rrtp(Box<RrtpSession>),
}

/// A session with a server, after its key was checked or pinned.
pub struct OpenSession {
    over: AnySession,
    advice: Option<Advice>,
    direction: TransferDirection,
    /// Requests to the server about its sending: only values given by the user or learned.
    tuning: Tuning,
    /// Whether the user chose the controller.
    asked: bool,
    /// The server's controller, once the server has reported it.
    peer_protocol: Mutex<Option<String>>,
    learned: Option<(LearnedPaths, String)>,
}

/// Advice in case of a wrong key.
struct Advice {
    server: String,
    /// Whether the URL contains a key.
    is_given: bool,
}

impl Advice {
    fn on(&self, e: Error) -> Error {
        match e.kind {
            ErrorKind::WrongKey if self.is_given => e.and("the URL names another"),
            ErrorKind::WrongKey => e.and(&format!(
                "if you know why, run narrows key --forget {}; if not, it may be an impostor",
                self.server
            )),
            _ => e,
        }
    }
}

/// Opens a session; `tap` observes it, over rrtp.
///
/// # Errors
/// One line that describes the error.
pub fn open(
    url: &Url,
    options: &TransferOptions,
    direction: TransferDirection,
    tap: Option<Arc<dyn Tap>>,
) -> Result<OpenSession, Failure> {
    if url.port == 0 {
        return Err(Failure::Input("the URL's port is 0: give the server's".into()));
    }
    let identity = own_key(options.identity.as_deref(), "client.key")?;
    match url.scheme {
        Scheme::Tcp => over_tcp(url, options, direction, identity),
        Scheme::Rrtp => over_rrtp(url, options, direction, &identity, tap),
    }
}

fn over_tcp(
    url: &Url,
    options: &TransferOptions,
    direction: TransferDirection,
    identity: Identity,
) -> Result<OpenSession, Failure> {
    if !options.paths.paths.is_empty() {
        let line = "--path is for rrtp: use an rrtp:// URL";
        return Err(Failure::Input(line.into()));
    }
    if options.hints.rate.is_some()
        || options.hints.rtt.is_some()
        || options.hints.loss.is_some()
        || options.learn
    {
        let line = "--rate, --rtt, --loss and --learn are for rrtp: the kernel's TCP cannot be told; \
                    use an rrtp:// URL";
        return Err(Failure::Input(line.into()));
    }
    let congestion = match options.protocol.as_deref() {
        None | Some("tcp") => None,
        Some(name) => match name.strip_prefix("tcp+") {
            Some(name) => Some(name.to_string()),
            None => {
                let e = SpecError::unknown("protocol", &error::shown(name), &["tcp", "tcp+NAME"]);
                let line = format!("--protocol: {e} (for a tcp:// URL; others go with rrtp://)");
                return Err(Failure::Input(line));
            }
        },
    };
    let server = url.server();
    let accept: Accept = match url.key {
        Some(key) => Box::new(move |found| match key == *found {
            true => Ok(()),
            false => Err(not_the_given(&server, found)),
        }),
        None => {
            let known = known_servers()?;
            Box::new(move |found| pin(&known, &server, found))
        }
    };
    let session = TcpSession::new(&url.host, url.port, identity, congestion, accept, &STOP)?;
    let session = session.telling(note_busy);
    Ok(OpenSession {
        over: AnySession::Tcp(Box::new(session)),
        advice: None,
        direction,
        tuning: Tuning::default(),
        asked: false,
        peer_protocol: Mutex::new(None),
        learned: None,
    })
}

fn over_rrtp(
    url: &Url,
    options: &TransferOptions,
    direction: TransferDirection,
    identity: &Identity,
    tap: Option<Arc<dyn Tap>>,
) -> Result<OpenSession, Failure> {
    if let Some(name) = options.protocol.as_deref().filter(|n| *n == "tcp" || n.starts_with("tcp+"))
    {
        let line = format!("--protocol {}: goes with a tcp:// URL", error::shown(name));
        return Err(Failure::Input(line));
    }
    let learned = if options.learn { Some(remembered(url, direction)?) } else { None };
    let before = learned.as_ref().and_then(|(_, _, c)| *c).unwrap_or_default();
    let transport = TransportArgs {
        protocol: options.protocol.clone().unwrap_or_else(|| "rrtp".into()),
        hints: Hints {
            rate: options.hints.rate.or(before.path.rate),
            rtt: options.hints.rtt.or(before.path.rtt),
            loss: options.hints.loss.or(before.path.loss),
            limit: options.hints.limit,
        },
    };
    let probes_rate = direction == TransferDirection::Put;
    let said = options.hints.rate.is_some() || before.path.rate.is_none();
    let hint_source = if said { HintSource::User } else { HintSource::Stored };
    let config = ConnectionConfig { probes_rate, hint_source, ..transport.connection()? };
    let paths = options.paths.named()?;
    let server = url.server();
    let expect = match url.key {
        Some(key) => Expect::Key(key),
        None => known_servers()?.get(&server)?.map_or(Expect::Anybody, Expect::Key),
    };
    // Without a folder for them, each connection takes a round trip more.
    let folder = key::config_folder().ok();
    let tokens = folder.map_or_else(SavedTokens::default, |f| SavedTokens::at(f.join("tokens")));
    let how = SessionOptions {
        tap,
        tokens,
        busy: note_busy,
        paths,
        note: note_busy,
        ..SessionOptions::new(expect, config, &STOP)
    };
    let advice = Advice { server: server.clone(), is_given: url.key.is_some() };
    // With a known key, a `get` request is sent in the first packet: it is safe to replay, as it changes no state at
    // the server.
    let session = match (expect, direction) {
        (Expect::Key(_), TransferDirection::Get) => {
            RrtpSession::with_first_request(&url.host, url.port, identity, how)
        }
        _ => RrtpSession::connect(&url.host, url.port, identity, how).map_err(|e| advice.on(e))?,
    };
    if expect == Expect::Anybody {
        let found = session
            .peer_key()
            .ok_or_else(|| Failure::Outside(format!("{server}: the connection was cut")))?;
        pin(&known_servers()?, &server, &found)?;
    }
    let hints = transport.hints.to_path_hints();
    Ok(OpenSession {
        over: AnySession::Rrtp(Box::new(session)),
        advice: Some(advice),
        direction,
        tuning: Tuning { path: hints, controller: options.protocol.clone().unwrap_or_default() },
        asked: options.protocol.is_some(),
        peer_protocol: Mutex::new(None),
        learned: learned.map(|(file, name, _)| (file, name)),
    })
}

/// The file of learned paths, this path's name in it, and its stored values. Each direction of a path has a name of its
/// own.
fn remembered(
    url: &Url,
    direction: TransferDirection,
) -> Result<(LearnedPaths, String, Option<MeasuredPath>), Failure> {
    let file = LearnedPaths::at(key::config_folder()?.join("paths.toml"));
    let options = if direction == TransferDirection::Get { "from" } else { "to" };
    let name = format!("{options} {}", url.server());
    let found = file.get(&name)?;
    Ok((file, name, found))
}

fn note_busy(line: &str) {
    note(&format!("narrows: {line}"));
}

fn not_the_given(server: &str, found: &[u8; 32]) -> Error {
    let line = format!("{server} has the key {}, the URL names another", key::text(found));
    Error::new(ErrorKind::WrongKey, line)
}

/// Compares a key with the pinned one; pins it and prints a line at the first connection.
///
/// # Errors
/// The server has another key than the pinned one.
pub fn pin(known: &KnownServers, server: &str, found: &[u8; 32]) -> Result<(), Error> {
    if known.check(server, found)? == KeyCheck::New {
        let key = key::text(found);
        let line = format!("first meeting with {server}: its key is {key}, kept from now on");
        note(&format!("narrows: {line}"));
    }
    Ok(())
}

/// Bytes written to a socket and not acknowledged.
#[cfg(target_os = "linux")]
fn unacknowledged(socket: &std::net::TcpStream) -> u64 {
    narrows_kernel::TcpInfo::of(socket).map_or(0, |info| info.bytes_unacknowledged)
}
#[cfg(not(target_os = "linux"))]
fn unacknowledged(_: &std::net::TcpStream) -> u64 {
    0
}

/// Starts a thread within a scope.
///
/// # Errors
/// The system has no thread left.
fn thread<'scope>(
    scope: &'scope Scope<'scope, '_>,
    work: impl FnOnce() + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, ()>, Error> {
    std::thread::Builder::new().spawn_scoped(scope, work).map_err(|e| Error::no_thread(&e))
}

/// Ends the wait for a connection when the work has ended without making one.
struct GiveUpWaiting<'a>(&'a RrtpSession);

impl Drop for GiveUpWaiting<'_> {
    fn drop(&mut self) {
        self.0.give_up_waiting();
    }
}

impl OpenSession {
    /// The session, for requests.
    pub fn session(&self) -> &dyn Session {
        match &self.over {
            AnySession::Tcp(s) => s.as_ref(),
            AnySession::Rrtp(s) => s.as_ref(),
        }
    }

    /// Runs `work`, and repeats it while the server is too busy to answer ([`RrtpSession::while_busy`]).
    ///
    /// # Errors
    /// Those of `work`.
    pub fn while_busy<T>(&self, work: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
        match &self.over {
            AnySession::Tcp(session) => session.while_busy(work),
            AnySession::Rrtp(session) => session
                .while_busy(work)
                .map_err(|e| self.advice.as_ref().map_or(e.clone(), |advice| advice.on(e))),
        }
    }

    /// Runs `work` and sends the tuning request to the server in parallel; before `work` if the user named the protocol
    /// with which the server is to send.
    ///
    /// # Errors
    /// Those of `work`; the server sends with another protocol than the named one; the system has no thread left.
    pub fn told_beside<T>(
        &self,
        work: impl FnOnce(&dyn Session) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let AnySession::Rrtp(rrtp) = &self.over else { return work(self.session()) };
        let peer_protocol = |label| {
            *self.peer_protocol.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = label;
        };
        if self.tuning == Tuning::default() {
            // There is no tuning, so a small file need not wait for its answer.
            let done = work(self.session());
            peer_protocol(rrtp.peer_protocol());
            return done;
        }
        if self.asked && self.direction == TransferDirection::Get {
            let answer = client::tune(self.session(), self.tuning.clone())?;
            let asked = self.session().protocol();
            if answer.controller != asked {
                return Err(Error::new(
                    ErrorKind::Denied,
                    format!(
                        "the server sends with {}, not with {asked}: `narrows serve` needs `--permit-rate-driven RATE` \
                         for a protocol whose rate the receiver gives, and its own --protocol must be rrtp",
                        answer.controller
                    ),
                ));
            }
            peer_protocol(Some(answer.controller));
            return work(self.session());
        }
        std::thread::scope(|scope| {
            let _waiting = GiveUpWaiting(rrtp);
            thread(scope, || {
                // Send the tuning after the request itself.
                if !rrtp.wait_connected() {
                    return;
                }
                // If the tuning fails, so does the request in parallel, which reports the error.
                let Ok(answer) = client::tune(self.session(), self.tuning.clone()) else {
                    return;
                };
                peer_protocol(Some(answer.controller));
            })?;
            work(self.session())
        })
    }

    /// Runs `work`. Twice a second calls `tell` with the server's silence, if the transport measures it. Applies
    /// `reconfigure` at its times, over rrtp.
    ///
    /// # Errors
    /// Those of `work`, or the system has no thread left.
    pub fn watched<T>(
        &self,
        tell: impl Fn(Option<ServerSilence>) + Sync,
        reconfigure: &Reconfigure,
        work: impl FnOnce() -> Result<T, Error>,
    ) -> Result<T, Error> {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let watching = thread(scope, || {
                while !done.load(Ordering::SeqCst) {
                    tell(self.silence());
                    std::thread::park_timeout(std::time::Duration::from_millis(500));
                }
            })?;
            let telling = match &self.over {
                AnySession::Tcp(_) => Ok(None),
                AnySession::Rrtp(session) => {
                    thread(scope, || self.reconfigured(session, reconfigure, &done)).map(Some)
                }
            };
            let worked = match &telling {
                Ok(_) => work(),
                Err(e) => Err(e.clone()),
            };
            done.store(true, Ordering::SeqCst);
            watching.thread().unpark();
            if let Ok(Some(telling)) = telling {
                telling.thread().unpark();
            }
            worked
        })
    }

    /// Bytes of each `--path` that has begun.
    pub fn carried(&self) -> Vec<CarriedBytes> {
        let AnySession::Rrtp(session) = &self.over else { return Vec::new() };
        let of_path = |path: &PathBytes| {
            let bytes = match self.direction {
                TransferDirection::Get => path.received,
                TransferDirection::Put => path.sent,
            };
            CarriedBytes { path: path.path.to_string(), bytes }
        };
        session.path_bytes().iter().map(of_path).collect()
    }

    fn silence(&self) -> Option<ServerSilence> {
        let AnySession::Rrtp(session) = &self.over else { return None };
        session.silence().map(|(so_far, limit)| ServerSilence { so_far, limit })
    }

    /// Bytes of an upload that were written and that the server has not acknowledged. Over TCP only Linux reports them.
    pub fn unacknowledged(&self) -> u64 {
        match (&self.over, self.direction) {
            (_, TransferDirection::Get) => 0,
            (AnySession::Rrtp(session), _) => session.unacknowledged(),
            (AnySession::Tcp(session), _) => {
                session.sockets().iter().map(|socket| unacknowledged(socket)).sum()
            }
        }
    }

    /// Passes the hints to the sending end, each at its time, until the work is done.
    fn reconfigured(&self, session: &RrtpSession, reconfigure: &Reconfigure, done: &AtomicBool) {
        let begun = Instant::now();
        for (at, hints) in reconfigure.in_order() {
            let at = std::time::Duration::from_nanos(at.as_nanos());
            loop {
                if done.load(Ordering::SeqCst) {
                    return;
                }
                match at.checked_sub(begun.elapsed()) {
                    Some(left) if !left.is_zero() => std::thread::park_timeout(left),
                    _ => break,
                }
            }
            match self.direction {
                TransferDirection::Put => session.reconfigure(&hints),
                TransferDirection::Get => self.reconfigure_server(session, hints),
            }
        }
    }

    fn reconfigure_server(&self, session: &RrtpSession, path: PathHints) {
        if !session.is_connected() {
            return;
        }
        // If the connection ends meanwhile, the transfer reports the error.
        let _ = client::tune(session, Tuning { path, ..Tuning::default() });
    }

    /// Protocol of the sending end.
    pub fn protocol(&self) -> String {
        let peer_protocol =
            self.peer_protocol.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        match self.direction {
            TransferDirection::Get => peer_protocol.unwrap_or_else(|| self.session().protocol()),
            TransferDirection::Put => self.session().protocol(),
        }
    }

    /// Stores the path's properties, if `--learn` is set, as far as the bytes delivered at this end confirm them,
    /// whatever the server reports.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn learn(&self, delivered: &Delivered) -> Result<(), Error> {
        let (Some((file, name)), AnySession::Rrtp(session)) = (&self.learned, &self.over) else {
            return Ok(());
        };
        // The sending end has measured the path.
        let found = match self.direction {
            TransferDirection::Put => Some(session.learned()),
            TransferDirection::Get if delivered.says_something() => {
                client::tune(session.as_ref(), Tuning::default())
                    .ok()
                    .map(|peer_protocol| peer_protocol.path)
            }
            TransferDirection::Get => None,
        };
        let found = found.and_then(|found| MeasuredPath::verified(&found, delivered));
        file.end(name, found, session.has_retreated())
    }
}
