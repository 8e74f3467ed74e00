//! The TCP server: a thread per connection until its first request is complete, then the threads that answer requests.

use crate::frames;
use crate::message::{FileFrame, Tuning};
use crate::requests::READING;
use crate::service::caps::Caps;
use crate::service::{AnsweredRequest, Caller, RequestChannel, Service, refused};
use crate::silence::SILENCE;
use crate::stream::FileStream;
use crate::tcp::noise;
use crate::tcp::socket::TcpSocket;
use crate::until::Until;
use narrows_base::Rate;
use narrows_net::openings::{Opening, Openings};
use narrows_net::tcp_listener;
use narrows_peers::error::{Error, ErrorKind};
use narrows_peers::key::Identity;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::{Duration, Instant};

/// Most connections without a complete request. Beyond it, the oldest connection of the network with the most is closed.
const MAX_OPENINGS: usize = 128;
/// Most ended connections that still wait for the peer to close.
const MAX_LINGERING: usize = 64;
/// Interval of checking deadlines.
const TICK: Duration = Duration::from_millis(250);

/// A listening socket.
pub struct TcpServer {
    listener: TcpListener,
    identity: Identity,
    service: Arc<Service>,
    caps: Caps,
}

impl TcpServer {
    /// Listens on `address`.
    ///
    /// # Errors
    /// The address is not local, in use, or not permitted.
    pub fn bind(
        address: SocketAddr,
        identity: Identity,
        service: Arc<Service>,
    ) -> Result<TcpServer, Error> {
        let listener = tcp_listener(address).map_err(|e| {
            let why = match e.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "another program listens there already; choose another port with --listen"
                }
                std::io::ErrorKind::AddrNotAvailable => "this machine does not have that address",
                std::io::ErrorKind::PermissionDenied => {
                    "permission denied; ports from 1024 on are free to all"
                }
                _ => "cannot listen there",
            };
            Error::new(ErrorKind::Local, format!("--listen {address}: {why}"))
        })?;
        Ok(TcpServer { listener, identity, service, caps: Caps::default() })
    }

    /// Bounds the rate at which each client is sent bytes, over all of its connections.
    #[must_use]
    pub fn limited(self, rate: Option<Rate>) -> TcpServer {
        self.caps.set(rate);
        self
    }

    /// Local address of the socket.
    ///
    /// # Errors
    /// The system's.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(|e| Error::new(ErrorKind::Local, e.to_string()))
    }

    /// Serves until the process ends.
    pub fn run(self) {
        let openings = Openings::new(MAX_OPENINGS);
        let requests = Arc::downgrade(self.service.requests());
        // Without this thread only the deadlines of the sockets remain.
        let _ = std::thread::Builder::new().spawn(move || {
            while let Some(requests) = requests.upgrade() {
                requests.tick();
                std::thread::sleep(TICK);
            }
        });
        let shared = Arc::new(TcpServerShared {
            identity: self.identity,
            service: self.service,
            caps: self.caps,
            lingering: AtomicUsize::new(0),
        });
        loop {
            let Ok((tcp, from)) = self.listener.accept() else {
                // File descriptors may be exhausted: wait until others are closed.
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            // An unauthenticated connection never takes the slot of a request that is being answered.
            let shared = Arc::clone(&shared);
            let opening = openings.admit(from.ip());
            // If no thread can be started, the connection is closed and its place is free.
            let _ = std::thread::Builder::new().spawn(move || open(&shared, tcp, from, opening));
        }
    }
}

/// State shared by the threads of a server.
struct TcpServerShared {
    identity: Identity,
    service: Arc<Service>,
    caps: Caps,
    lingering: AtomicUsize,
}

/// Closes the connection when its place is given up.
struct HangUp(TcpSocket);

impl Wake for HangUp {
    fn wake(self: Arc<Self>) {
        self.0.hang_up();
    }
}

/// From a connection to its first complete request, which other threads answer.
fn open(shared: &Arc<TcpServerShared>, tcp: TcpStream, from: SocketAddr, opening: Opening) {
    let Ok(socket) = TcpSocket::new(tcp, Until::HungUp, SILENCE) else { return };
    let hang_up = Waker::from(Arc::new(HangUp(socket.clone())));
    if opening.poll_given_up(&Context::from_waker(&hang_up)).is_ready() {
        return;
    }
    // Failed handshakes are not logged: anybody could fill the log.
    let Ok((stream, key)) = noise::server(socket.clone(), &shared.identity) else { return };
    let service = &shared.service;
    if !service.admits(&key) {
        return refuse(shared, from, &socket, stream, refused(&key));
    }
    socket.due(Some(Instant::now() + READING));
    let FileStream { mut input, output } = stream;
    let request = frames::request(&mut input);
    socket.due(None);
    let mut stream = FileStream { input, output };
    let request = match request {
        Ok(Some(request)) => request,
        // There was no request; end this direction properly, too.
        Ok(None) => return drop(stream.output.finish()),
        Err(e) if e.kind == ErrorKind::Cut => return drop(stream.output.finish()),
        Err(e) => return refuse(shared, from, &socket, stream, e),
    };
    let source = service.source(Some(from.ip()), Some(key));
    socket.limit(shared.caps.of(source.narrowest()));
    let asked = match service.requests().admit(source.clone()) {
        Ok(asked) => asked,
        Err(e) => return refuse(shared, from, &socket, stream, e),
    };
    socket.until(Until::GivenUp(asked.view()));
    drop(opening);
    let answering = Arc::clone(shared);
    service.requests().run(asked, move |slot| {
        let slot = match slot {
            Ok(slot) => slot,
            Err(e) => return refuse(&answering, from, &socket, stream, e),
        };
        let from = from.to_string();
        let slot = slot.view();
        let caller = Caller { key, from, source, slot, is_early: false };
        answering.service.converse(&caller, Some(request), stream, &Kernel);
        linger(&answering, socket);
    });
}

/// Sends the reason why a request is not answered.
fn refuse(
    shared: &Arc<TcpServerShared>,
    from: SocketAddr,
    socket: &TcpSocket,
    stream: FileStream,
    e: Error,
) {
    let FileStream { mut output, .. } = stream;
    socket.due(Some(Instant::now() + Duration::from_secs(1)));
    let _ = frames::send(output.as_mut(), &FileFrame::Error(e.clone()));
    let _ = output.finish();
    shared.service.tell(&AnsweredRequest::refused(&from.to_string(), e));
    linger(shared, socket.clone());
}

/// Waits a moment until the peer has read the end, unless too many connections do so.
fn linger(shared: &Arc<TcpServerShared>, mut socket: TcpSocket) {
    if shared.lingering.fetch_add(1, Ordering::Relaxed) >= MAX_LINGERING {
        shared.lingering.fetch_sub(1, Ordering::Relaxed);
        return;
    }
    let counted = Lingering(Arc::clone(shared));
    let _ = std::thread::Builder::new().spawn(move || {
        socket.linger();
        drop(counted);
    });
}

/// Decrements the number of lingering connections, also if no thread could be started.
struct Lingering(Arc<TcpServerShared>);

impl Drop for Lingering {
    fn drop(&mut self) {
        self.0.lingering.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The kernel's TCP ignores hints.
struct Kernel;

impl RequestChannel for Kernel {
    fn tune(&self, _: &Tuning) -> Tuning {
        Tuning { controller: "tcp".into(), ..Tuning::default() }
    }
}
