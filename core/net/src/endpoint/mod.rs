//! An endpoint: one socket, its connections, their driver ([`Driver`]), and the API for applications.
//!
//! Every call takes a lock while it copies bytes, and leaves the rest to the driver, which is woken only if it sleeps.
//! Waiting calls are futures that store a waker. They run under any runtime. Without a runtime, use
//! [`block_on`](crate::block_on) and [`SendStream::blocking`].

mod blocking;
mod buffers;
mod connection;
mod connection_ref;
mod driver;
mod early;
mod observer;
mod options;
mod owner;
mod receive_stream;
mod send_stream;
mod shared;
mod state;
mod stream_states;
mod take_turn;
mod turn;
mod wait_queue;

pub use self::blocking::Blocking;
pub use self::connection::{Connection, WeakConnection};
pub use self::observer::{ConnectionView, Observer};
pub use self::options::{ConnectOptions, Driver, OPENING_TIMEOUT, Options, connection, new_key};
pub use self::receive_stream::ReceiveStream;
pub use self::send_stream::SendStream;

use self::connection_ref::ConnectionRef;
use self::driver::thread;
#[cfg(feature = "runtime-tokio")]
use self::driver::{Ending, task, task::RuntimeRegistration};
use self::options::System;
use self::owner::Owner;
use self::shared::{Core, DriverWaker, EndpointShared, bound};
use self::state::{AppConnection, ConnectionStage};
use crate::clock::Clock;
use crate::dial::{self, DialledAddress};
use crate::error::Error;
use crate::socket::Socket;
use crate::wait::Waker;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{
    Clients, ConnectRequest, Endpoint as TransportEndpoint, MemoryTokens,
};
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Instant;
#[cfg(feature = "runtime-tokio")]
use tokio::runtime::Handle;

/// Opens connections and accepts them. Clones refer to the same endpoint. When the last clone is dropped, no more
/// connections are accepted; when the last of its connections is dropped, too, its driver ends.
///
/// A server that admits any client and answers each stream with its own bytes:
///
/// ```no_run
/// use narrows_net::{Endpoint, Options, endpoint};
/// use narrows_transport::{Protocol, endpoint::Clients};
///
/// # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
/// let connection = endpoint::connection(Protocol::rrtp());
/// let options = Options::server(endpoint::new_key()?, Clients::Any, connection);
/// let server = Endpoint::bind("[::]:4433".parse()?, options)?;
/// loop {
///     let connection = server.accept().await?;
///     let (mut send, mut receive) = connection.accept_bi().await?;
///     let bytes = receive.receive_all(1 << 20).await?;
///     send.send_last(&bytes).await?;
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Endpoint {
    listener: Arc<Listener>,
}

/// All clones of an endpoint share one; it stops accepting when dropped.
#[derive(Debug)]
struct Listener {
    owner: Arc<Owner>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.owner.shared.with_now(|core, now| {
            core.closed_to_peers = true;
            while let Some(handle) = core.incoming.pop_front() {
                core.abandon(now, handle);
            }
        });
    }
}

impl Endpoint {
    /// Binds a socket and starts the driver.
    ///
    /// # Errors
    /// The address is in use or not local; the system has no thread, descriptor or random bytes left; or [`Driver`]
    /// demands a task and there is no tokio runtime here.
    pub fn bind(address: SocketAddr, options: Options) -> Result<Endpoint, Error> {
        let socket = Socket::bind(address).map_err(|e| Error::bind(address, &e))?;
        Endpoint::on(socket, Vec::new(), options)
    }

    /// Binds a free port, for connections to these addresses: if they are of both families, one socket for both.
    ///
    /// # Errors
    /// As with [`bind`](Endpoint::bind).
    pub fn to_any(addresses: &[SocketAddr], options: Options) -> Result<Endpoint, Error> {
        let any: IpAddr = if addresses.iter().any(SocketAddr::is_ipv6) {
            Ipv6Addr::UNSPECIFIED.into()
        } else {
            Ipv4Addr::UNSPECIFIED.into()
        };
        Endpoint::bind((any, 0).into(), options)
    }

    /// Uses a socket that the caller has bound and configured: to a device, with a mark, or an inherited descriptor.
    /// The endpoint takes it over and makes it non-blocking.
    ///
    /// # Errors
    /// The socket is not bound, or as with [`bind`](Endpoint::bind).
    pub fn with_socket(socket: UdpSocket, options: Options) -> Result<Endpoint, Error> {
        Endpoint::on(bound(socket)?, Vec::new(), options)
    }

    /// Uses several sockets that the caller has bound, each to an interface or local address. Path *n* of a connection
    /// that this endpoint opens leaves from socket *n*, once [`Connection::open_path`] has opened it. A thread drives the
    /// endpoint.
    ///
    /// # Errors
    /// There is no socket, one is not bound, or as with [`bind`](Endpoint::bind).
    pub fn with_sockets(sockets: Vec<UdpSocket>, options: Options) -> Result<Endpoint, Error> {
        let mut sockets = sockets.into_iter().map(bound);
        let missing = || Error::system(&std::io::ErrorKind::InvalidInput.into());
        let first = sockets.next().ok_or_else(missing)??;
        let further: Vec<Socket> = sockets.collect::<Result<_, Error>>()?;
        Endpoint::on(first, further, options.driven_by(Driver::Thread))
    }

    /// Moves to another socket, as after a change of network. Connections keep their keys, streams and messages, and
    /// their peers learn the new address from a packet that is sent at once. If more than the port changes for a peer,
    /// congestion control is reset. Pending attempts to connect are restarted, or time out. The new socket must have
    /// the same address family; new clients of a server must use its new address.
    ///
    /// ```no_run
    /// # fn moved(endpoint: &narrows_net::Endpoint) -> Result<(), Box<dyn std::error::Error>> {
    /// endpoint.rebind(std::net::UdpSocket::bind("0.0.0.0:0")?)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The socket is not bound or of the other family, or the system refuses a needed option. The old socket is kept
    /// then.
    pub fn rebind(&self, socket: UdpSocket) -> Result<(), Error> {
        let socket = bound(socket)?;
        if socket.local().is_ipv4() != self.local_addr().is_ipv4() {
            return Err(Error::Address { address: socket.local() });
        }
        self.shared().rebind(0, Arc::new(socket));
        Ok(())
    }

    fn on(socket: Socket, further: Vec<Socket>, mut options: Options) -> Result<Endpoint, Error> {
        getrandom::fill(&mut [0; 1]).map_err(|e| Error::system(&std::io::Error::other(e)))?;
        let tap = options.tap.clone();
        #[cfg(feature = "runtime-tokio")]
        let runtime = match options.driver {
            Driver::Tokio => Some(Handle::try_current().map_err(|_| Error::NoRuntime)?),
            Driver::Auto => Handle::try_current().ok(),
            Driver::Thread => None,
        };
        let tokens = std::mem::replace(&mut options.token_store, Box::new(MemoryTokens::default()));
        let mut endpoint =
            TransportEndpoint::new(options.port(socket.local().port()), Box::new(System));
        endpoint.set_token_store(tokens);
        #[cfg(feature = "runtime-tokio")]
        let waker = runtime.as_ref().map(|_| DriverWaker::Task(Mutex::new(None)));
        #[cfg(not(feature = "runtime-tokio"))]
        let waker = None;
        let waker = match waker {
            Some(waker) => waker,
            None => DriverWaker::Thread(Waker::new().map_err(|e| Error::system(&e))?),
        };
        let core = Core::new(endpoint, tap);
        let shared = Arc::new(EndpointShared::new(core, socket, further, Clock::new(), waker));
        if let Some(tap) = &shared.tap {
            let observed: Arc<dyn observer::ObservedEndpoint> = shared.clone();
            let clock = shared.clock;
            let local = shared.socket().local();
            tap.bound(Observer::new(Arc::downgrade(&observed), clock, local));
        }
        let driven = shared.clone();
        #[cfg(feature = "runtime-tokio")]
        if let Some(runtime) = runtime {
            let registered = RuntimeRegistration::new(&shared).map_err(|e| Error::system(&e))?;
            runtime.spawn(task::run(Ending(driven), registered));
            let owner = Arc::new(Owner { shared, thread: Mutex::new(None) });
            return Ok(Endpoint { listener: Arc::new(Listener { owner }) });
        }
        let thread = std::thread::Builder::new()
            .name("narrows-net".into())
            .spawn(move || thread::run(driven))
            .map_err(|e| Error::system(&e))?;
        let owner = Arc::new(Owner { shared, thread: Mutex::new(Some(thread)) });
        Ok(Endpoint { listener: Arc::new(Listener { owner }) })
    }

    /// The local address.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared().socket().local()
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// The server does not answer, has another key, or refuses; see [`Error`].
    pub async fn connect(
        &self,
        remote: SocketAddr,
        options: ConnectOptions,
    ) -> Result<Connection, Error> {
        let connection = self.start(remote, options)?;
        poll_fn(|context| connection.hold().poll_open(context)).await?;
        Ok(connection)
    }

    /// Connects to the first of these [ordered](dial::ordered) addresses of a server that answers. Its refusal ends the
    /// attempts at the others. `until` waits for a time: [`sleep_until`](crate::block::sleep_until), or a runtime's.
    ///
    /// # Errors
    /// As with [`connect`](Endpoint::connect); if several addresses fail, [`Error::NoAddress`].
    pub async fn connect_any<P: Future<Output = ()>>(
        &self,
        addresses: &[SocketAddr],
        options: ConnectOptions,
        until: impl Fn(Instant) -> P,
    ) -> Result<DialledAddress<Connection, Error>, Error> {
        let attempt = |address| self.connect(address, options.clone());
        Ok(dial::first(addresses, attempt, Error::is_of_all_addresses, until).await?)
    }

    fn start(&self, remote: SocketAddr, options: ConnectOptions) -> Result<Connection, Error> {
        let is_foreign = remote.is_ipv6() && self.local_addr().is_ipv4();
        if remote.port() == 0 || remote.ip().is_unspecified() || is_foreign {
            return Err(Error::Address { address: remote });
        }
        let ConnectOptions { server_key, suite, connection, patience, early_data } = options;
        let handle = self.shared().with_now(|core, now| {
            if core.ended || core.leaving.is_some() {
                return Err(Error::EndpointClosed);
            }
            let mut state = AppConnection::new(remote, server_key);
            if let Some(early_data) = &early_data {
                state.begin_early(early_data.is_finished());
            }
            let connect =
                ConnectRequest { remote, server_key, suite, connection, patience, early_data };
            let handle = core.endpoint.connect(now, connect).ok_or(Error::TooMany)?;
            core.begin(handle, state);
            Ok(handle)
        })?;
        Ok(Connection::new(ConnectionRef::new(self.listener.owner.clone(), handle)))
    }

    /// The next connection opened by a peer. If several tasks wait, the one that has waited longest
    /// gets it.
    ///
    /// # Errors
    /// The endpoint is closed.
    pub async fn accept(&self) -> Result<Connection, Error> {
        poll_fn(|context| self.poll_accept(context)).await
    }

    /// The polling form of [`accept`](Endpoint::accept).
    pub fn poll_accept(&self, context: &mut Context<'_>) -> Poll<Result<Connection, Error>> {
        let mut core = self.shared().lock();
        let Some(handle) = core.incoming.pop_front() else {
            if core.ended || core.leaving.is_some() {
                return Poll::Ready(Err(Error::EndpointClosed));
            }
            core.accepting.add(context.waker());
            return Poll::Pending;
        };
        drop(core);
        Poll::Ready(Ok(Connection::new(ConnectionRef::new(self.listener.owner.clone(), handle))))
    }

    /// Replaces the list of permitted clients of a server. Connections of clients that may not connect any more are
    /// closed with code 4; all others go on.
    pub fn set_clients(&self, clients: Clients) {
        self.shared().with_now(|core, now| core.endpoint.set_clients(now, clients));
    }

    /// Replaces the configuration of connections that a server accepts from now on.
    pub fn set_connection_config(&self, connection: ConnectionConfig) {
        self.shared().lock().endpoint.set_connection_config(connection);
    }

    /// Number of open connections, including those being opened and those not yet accepted.
    pub fn connections(&self) -> usize {
        self.shared().lock().alive()
    }

    /// Whether a server answered one of the pending attempts with BUSY. The attempt goes on; the application may inform
    /// its user.
    pub fn meets_busy(&self) -> bool {
        self.shared().lock().endpoint.meets_busy()
    }

    /// Number of failed sends and receives, including ICMP errors.
    pub fn errors(&self) -> u64 {
        self.shared().errors()
    }

    /// Closes all connections and drops undelivered data. Codes from 256 on belong to the
    /// application.
    pub fn close(&self, code: u64, reason: &str) {
        self.shared().with_now(|core, now| {
            core.close_all(now, code, reason);
            core.leaving.get_or_insert(now);
        });
    }

    /// Closes all connections and sends one CLOSE to each peer without waiting for an answer. For a process that exits
    /// now and whose peers would otherwise wait for their idle timeouts. Blocks the thread while the socket is full,
    /// for at most 100 ms.
    pub fn leave(&self, code: u64, reason: &str) {
        self.close(code, reason);
        for _ in 0..50 {
            let next = self.shared().turn().run(self.shared());
            let is_said = {
                let core = self.shared().lock();
                core.ended || core.endpoint.is_quiet()
            };
            if is_said && !next.is_full {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        self.shared().kick();
    }

    /// Closes all connections and waits until the peers are informed, for at most three seconds.
    /// Blocks the thread; [`closed`](Endpoint::closed) is the asynchronous form.
    pub fn shut_down(&self, code: u64, reason: &str) {
        self.close(code, reason);
        let thread =
            self.listener.owner.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
            return;
        }
        // The driving task may belong to this thread, which blocks here: so drive the endpoint from here.
        loop {
            let is_over = {
                let mut turn = self.shared().turn();
                turn.receive();
                turn.run(self.shared()).is_over
            };
            if is_over || self.shared().lock().ended {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        self.shared().kick();
    }

    /// After [`close`](Endpoint::close): waits until the peers are informed, for at most three seconds.
    pub async fn closed(&self) {
        poll_fn(|context| {
            let mut core = self.shared().lock();
            if core.ended {
                return Poll::Ready(());
            }
            core.accepting.add(context.waker());
            Poll::Pending
        })
        .await;
    }

    fn shared(&self) -> &EndpointShared {
        &self.listener.owner.shared
    }
}

impl ConnectionRef {
    /// Ready when the handshake is over.
    fn poll_open(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut core = self.shared().lock();
        let state = core.state(self.handle)?;
        if state.stage == ConnectionStage::Opening {
            state.stages.add(context.waker());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}
