//! An endpoint: one socket, its connections, one thread that drives them, and what an
//! application does with them.
//!
//! Every call takes a lock for as long as it copies bytes and leaves the rest to the thread, which is
//! woken only if it sleeps. What waits is a future that stores a waker: it runs under any runtime or,
//! with [`block_on`](crate::block_on) and [`SendStream::blocking`], under none.

mod connection;
mod driver;
mod observer;
mod options;
mod shared;
mod state;
mod stream;

pub use self::connection::Connection;
pub use self::observer::{ConnectionView, Observer};
pub use self::options::{ConnectOptions, Options, connection, new_key};
pub use self::stream::{Blocking, ReceiveStream, SendStream};

use self::connection::ConnectionRef;
use self::options::System;
use self::shared::{Core, Shared};
use self::state::{ConnectionState, Stage};
use crate::clock::Clock;
use crate::error::Error;
use crate::socket::Socket;
use crate::wait::Waker;
use narrows_transport::endpoint::{Connect, Endpoint as TransportEndpoint};
use std::fmt;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

/// Connects and is connected to. Copies are the same endpoint. When the last copy is gone it accepts
/// nobody any more; when the last of its connections is gone too, its thread ends.
#[derive(Clone, Debug)]
pub struct Endpoint {
    listener: Arc<Listener>,
}

/// All copies of an endpoint.
#[derive(Debug)]
struct Listener {
    owner: Arc<Owner>,
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.owner.shared.with(|core, now| {
            core.closed_to_peers = true;
            while let Some(handle) = core.incoming.pop_front() {
                core.abandon(now, handle);
            }
        });
    }
}

/// Everybody who may still want something of the driver's thread.
pub(crate) struct Owner {
    pub(self) shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({})", self.shared.socket.local())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // The thread goes by itself, after what lingers.
        self.shared.with(|core, now| {
            core.leaving.get_or_insert(now);
        });
    }
}

impl Endpoint {
    /// Binds a socket and starts its thread.
    ///
    /// # Errors
    /// The address is not free or not this machine's; the system has no thread or no random bytes.
    pub fn bind(address: SocketAddr, options: Options) -> Result<Endpoint, Error> {
        let socket = Socket::bind(address).map_err(|e| Error::bind(address, &e))?;
        let waker = Waker::new().map_err(|e| Error::system(&e))?;
        getrandom::fill(&mut [0; 1]).map_err(|e| Error::System(e.to_string()))?;
        let tap = options.tap.clone();
        let endpoint =
            TransportEndpoint::new(options.port(socket.local().port()), Box::new(System));
        let shared = Arc::new(Shared::new(Core::new(endpoint, tap), socket, Clock::new(), waker));
        if let Some(tap) = &shared.tap {
            tap.bound(Observer::new(&shared));
        }
        let driven = shared.clone();
        let thread = std::thread::Builder::new()
            .name("narrows-net".into())
            .spawn(move || driver::run(driven))
            .map_err(|e| Error::system(&e))?;
        let owner = Arc::new(Owner { shared, thread: Mutex::new(Some(thread)) });
        Ok(Endpoint { listener: Arc::new(Listener { owner }) })
    }

    /// Where it is bound.
    pub fn local_addr(&self) -> SocketAddr {
        self.shared().socket.local()
    }

    /// Connects to a server.
    ///
    /// # Errors
    /// Nobody answers, the server's key is another one, or it refuses; see [`Error`].
    pub async fn connect(
        &self,
        remote: SocketAddr,
        options: ConnectOptions,
    ) -> Result<Connection, Error> {
        let connection = self.start(remote, options)?;
        poll_fn(|context| connection.hold().poll_open(context)).await?;
        Ok(connection)
    }

    fn start(&self, remote: SocketAddr, options: ConnectOptions) -> Result<Connection, Error> {
        if remote.port() == 0 || remote.ip().is_unspecified() {
            return Err(Error::Address { address: remote });
        }
        let ConnectOptions { server_key, suite, connection, patience } = options;
        let handle = self.shared().with(|core, now| {
            if core.ended || core.leaving.is_some() {
                return Err(Error::EndpointClosed);
            }
            let connect = Connect { remote, server_key, suite, connection, patience };
            let handle = core.endpoint.connect(now, connect).ok_or(Error::TooMany)?;
            core.begin(handle, ConnectionState::new(remote, server_key));
            Ok(handle)
        })?;
        Ok(Connection::new(ConnectionRef::new(self.listener.owner.clone(), handle)))
    }

    /// The next connection that somebody made. Those who waited longest come first.
    ///
    /// # Errors
    /// The endpoint is closed.
    pub async fn accept(&self) -> Result<Connection, Error> {
        poll_fn(|context| self.poll_accept(context)).await
    }

    /// See [`accept`](Endpoint::accept).
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

    /// Connections that are not over, those being opened and those not yet accepted included.
    pub fn connections(&self) -> usize {
        self.shared().lock().alive()
    }

    /// Sends and receives that the system refused, ICMP's messages included.
    pub fn errors(&self) -> u64 {
        self.shared().socket.errors()
    }

    /// Closes all connections; what was not delivered is dropped. A code from 256 on is the
    /// application's.
    pub fn close(&self, code: u64, reason: &str) {
        self.shared().with(|core, now| {
            core.close_all(now, code, reason);
            core.leaving.get_or_insert(now);
        });
    }

    /// Closes all connections and waits until that is said, once, which takes no round trip: for a
    /// process that ends now, whose peers would else wait for their idle timeouts. Blocks the thread,
    /// for 100 ms at most.
    pub fn leave(&self, code: u64, reason: &str) {
        self.close(code, reason);
        for _ in 0..50 {
            let said = {
                let core = self.shared().lock();
                core.ended || core.endpoint.is_quiet()
            };
            // What the endpoint gave away is at the socket a moment later.
            std::thread::sleep(std::time::Duration::from_millis(2));
            if said {
                return;
            }
        }
    }

    /// Closes all connections and waits until the peers know, at most three seconds. Blocks the
    /// thread.
    pub fn shut_down(&self, code: u64, reason: &str) {
        self.close(code, reason);
        let thread =
            self.listener.owner.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    fn shared(&self) -> &Shared {
        &self.listener.owner.shared
    }
}

impl ConnectionRef {
    /// Ready when the handshake is over.
    fn poll_open(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let mut core = self.shared().lock();
        let state = core.state(self.handle)?;
        if state.stage == Stage::Opening {
            state.stages.add(context.waker());
            return Poll::Pending;
        }
        Poll::Ready(Ok(()))
    }
}
