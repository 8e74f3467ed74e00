//! The TCP server: a thread per connection until its first request is complete, then the threads that answer requests.

use crate::error::{Error, Kind};
use crate::frames;
use crate::key::Identity;
use crate::message::{Frame, Tuning};
use crate::requests::{Limits, READING, Requests, Slot, watched};
use crate::service::{Caller, Event, RequestChannel, Service, refused};
use crate::silence::SILENCE;
use crate::stream::Stream;
use crate::tcp::noise;
use crate::tcp::socket::Socket;
use crate::until::Until;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::{Duration, Instant};

/// Connections without a complete request at the same time; the oldest of whoever holds most gives way.
const MAX_OPENINGS: Limits = Limits { key: 96, network: 96, all: 128 };
/// Connections that are over but for their last words.
const MAX_LINGERING: usize = 64;
/// How often deadlines are looked at.
const TICK: Duration = Duration::from_millis(250);

/// A listening socket.
pub struct Server {
    listener: TcpListener,
    identity: Identity,
    service: Arc<Service>,
}

impl Server {
    /// Listens here.
    ///
    /// # Errors
    /// The address is not ours, taken, or not permitted.
    pub fn bind(
        address: SocketAddr,
        identity: Identity,
        service: Arc<Service>,
    ) -> Result<Server, Error> {
        let listener = TcpListener::bind(address).map_err(|e| {
            let why = match e.kind() {
                std::io::ErrorKind::AddrInUse => {
                    "somebody listens there already; choose another port with --listen"
                }
                std::io::ErrorKind::AddrNotAvailable => "this machine does not have that address",
                std::io::ErrorKind::PermissionDenied => {
                    "permission denied; ports from 1024 on are free to all"
                }
                _ => "cannot listen there",
            };
            Error::new(Kind::Local, format!("--listen {address}: {why}"))
        })?;
        Ok(Server { listener, identity, service })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's.
    pub fn address(&self) -> Result<SocketAddr, Error> {
        self.listener.local_addr().map_err(|e| Error::new(Kind::Local, e.to_string()))
    }

    /// Serves for ever.
    pub fn run(self) {
        let openings = Requests::new(MAX_OPENINGS, MAX_OPENINGS, Duration::ZERO);
        let requests = Arc::downgrade(self.service.requests());
        // Without this thread the deadlines are those of the sockets alone.
        let _ = std::thread::Builder::new().spawn(move || {
            while let Some(requests) = requests.upgrade() {
                requests.tick();
                std::thread::sleep(TICK);
            }
        });
        let shared = Arc::new(Shared {
            identity: self.identity,
            service: self.service,
            lingering: AtomicUsize::new(0),
        });
        loop {
            let Ok((tcp, from)) = self.listener.accept() else {
                // Out of file descriptors, say: others will end.
                std::thread::sleep(Duration::from_millis(50));
                continue;
            };
            // Who is not known yet never takes the place of one whose request is being answered.
            let source = shared.service.source(Some(from.ip()), None);
            let Ok(slot) = openings.admit(source) else { continue };
            let shared = Arc::clone(&shared);
            // Without a thread the connection is closed and its place is free again.
            let _ = std::thread::Builder::new().spawn(move || open(&shared, tcp, from, slot));
        }
    }
}

/// What the threads of a server share.
struct Shared {
    identity: Identity,
    service: Arc<Service>,
    lingering: AtomicUsize,
}

/// Hangs up when the place of an opening is needed.
struct HangUp(Socket);

impl Wake for HangUp {
    fn wake(self: Arc<Self>) {
        self.0.hang_up();
    }
}

/// From a connection to its first complete request, which is then answered elsewhere.
fn open(shared: &Arc<Shared>, tcp: TcpStream, from: SocketAddr, slot: Slot) {
    let Ok(socket) = Socket::new(tcp, Until::GivenUp(slot.view()), SILENCE) else { return };
    if slot.view().poll(&Waker::from(Arc::new(HangUp(socket.clone())))).is_some() {
        return;
    }
    // Who does not even open gets no line in the log: anybody could fill it.
    let Ok((stream, key)) = noise::server(socket.clone(), &shared.identity) else { return };
    let service = &shared.service;
    if !service.admits(&key) {
        return refuse(shared, from, &socket, stream, refused(&key));
    }
    socket.due(Some(Instant::now() + READING));
    let Stream { mut input, output } = stream;
    let request = frames::request(&mut input);
    socket.due(None);
    let mut stream = Stream { input, output };
    let request = match request {
        Ok(Some(request)) => request,
        // Nothing was asked: the answer to that has an end, too.
        Ok(None) => return drop(stream.output.finish()),
        Err(e) if e.kind == Kind::Cut => return drop(stream.output.finish()),
        Err(e) => return refuse(shared, from, &socket, stream, e),
    };
    let source = service.source(Some(from.ip()), Some(key));
    let asked = match service.requests().admit(source.clone()) {
        Ok(asked) => asked,
        Err(e) => return refuse(shared, from, &socket, stream, e),
    };
    socket.until(Until::GivenUp(asked.view()));
    drop(slot);
    let answering = Arc::clone(shared);
    service.requests().run(asked, move |slot| {
        let slot = match slot {
            Ok(slot) => slot,
            Err(e) => return refuse(&answering, from, &socket, stream, e),
        };
        let slot_view = slot.view();
        let (from, slot) = (from.to_string(), slot_view.clone());
        let caller = Caller { key, from, source, slot, is_early: false };
        let stream = watched(stream, &slot_view);
        answering.service.converse(&caller, Some(request), stream, &Kernel);
        linger(&answering, socket);
    });
}

/// Says why a request is not answered.
fn refuse(shared: &Arc<Shared>, from: SocketAddr, socket: &Socket, stream: Stream, e: Error) {
    let Stream { mut output, .. } = stream;
    socket.due(Some(Instant::now() + Duration::from_secs(1)));
    let _ = frames::send(output.as_mut(), &Frame::Error(e.clone()));
    let _ = output.finish();
    shared.service.tell(&Event::refused(&from.to_string(), e));
    linger(shared, socket.clone());
}

/// Lets the peer hear the end, for a moment, if not too many do so already.
fn linger(shared: &Arc<Shared>, mut socket: Socket) {
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

/// One that lingers less, also where there was no thread for it.
struct Lingering(Arc<Shared>);

impl Drop for Lingering {
    fn drop(&mut self) {
        self.0.lingering.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The kernel's TCP can be told nothing.
struct Kernel;

impl RequestChannel for Kernel {
    fn tune(&self, _: &Tuning) -> Tuning {
        Tuning { controller: "tcp".into(), ..Tuning::default() }
    }
}
