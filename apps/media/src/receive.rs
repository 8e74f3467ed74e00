//! The receiving end: accepts listed senders, one at a time, or connects to a sender, and releases the media to local
//! UDP ports.

use crate::connection::{REFUSED, REPLACED, STOPPED, for_media};
use crate::dial::{ConnectionUser, DialEnd, Dialler, Peer};
use crate::hello::{PULL, PUSH};
use crate::inlet::{Inlet, InletEvent, Outs};
use crate::send::{listed, named};
use narrows_base::text::shown;
use narrows_net::tap::Tap;
use narrows_net::{Connection, Endpoint, Options};
use narrows_peers::access::AllowList;
use narrows_peers::{Error, ErrorKind, Identity};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{ClientFilter, EndpointLimits, Permit};
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Wait;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Time in which a refused sender can close its connection by itself.
const GOING: Wait = Wait::from_secs(2);
/// Maximum number of concurrent connections.
const MAX_CONNECTIONS: usize = 64;
/// Time for streams to release their buffered datagrams: the maximum latency and a margin.
const DRAINING: Wait = Wait::from_secs(32);

/// Options of a receiver that accepts connections.
pub struct ReceiveOptions {
    /// The receiver's own key.
    pub identity: Identity,
    /// Keys that may send.
    pub clients: AllowList,
    /// Configuration of connections.
    pub config: ConnectionConfig,
    /// Controllers that the receiver accepts from senders.
    pub permit: Permit,
    /// Filter of clients, which may log those that are refused.
    pub filter: ClientFilter,
    /// Observer of the endpoint.
    pub tap: Option<Arc<dyn Tap>>,
}

/// A listening receiver.
pub struct MediaServer {
    endpoint: Endpoint,
    shared: Arc<ReceiverShared>,
}

struct ReceiverShared {
    inlet: Inlet,
    /// The current sender.
    current: Mutex<Option<(PublicKey, Connection)>>,
}

impl MediaServer {
    /// Listens. Call it within a tokio runtime, which drives it.
    ///
    /// # Errors
    /// The list of clients is empty, or the address is unavailable, in use, or not permitted.
    pub async fn bind(
        address: SocketAddr,
        outs: Outs,
        options: ReceiveOptions,
    ) -> Result<MediaServer, Error> {
        let ReceiveOptions { identity, clients, config, permit, filter, tap } = options;
        clients.not_empty()?;
        let inlet = Inlet::new(outs).await?;
        let key = StaticKey::new(*identity.private())
            .map_err(|e| Error::new(ErrorKind::Local, e.to_string()))?;
        let mut options =
            Options::server(key, listed(&clients), for_media(config, PUSH)?).tapped(tap);
        options.permit = permit;
        options.filter = filter;
        options.limits = EndpointLimits::new(MAX_CONNECTIONS);
        let endpoint = Endpoint::bind(address, options)
            .map_err(|e| Error::new(ErrorKind::Local, format!("--listen: {e}")))?;
        Ok(MediaServer {
            endpoint,
            shared: Arc::new(ReceiverShared { inlet, current: Mutex::default() }),
        })
    }

    /// Replaces the list of clients. A connection of a client that is not on it ends.
    pub fn set_clients(&self, clients: &AllowList) {
        self.endpoint.set_clients(listed(clients));
    }

    /// Address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Receives until the endpoint is closed or `stop` is ready. Measures of streams that are still active are then
    /// reported, too.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let mut streams = JoinSet::new();
        let accept = async {
            while let Ok(connection) = self.endpoint.accept().await {
                while streams.try_join_next().is_some() {}
                streams.spawn(serve(self.shared.clone(), connection));
            }
        };
        tokio::select! {
            () = accept => {}
            () = stop => {}
        }
        self.endpoint.leave(STOPPED, "the receiver was stopped");
        // The streams detect that their connections are over, and release their buffered datagrams.
        let all = async { while streams.join_next().await.is_some() {} };
        let _ = timeout(DRAINING, all).await;
    }
}

impl ReceiverShared {
    /// Whether this sender may send: there is no current sender, or it is the same one with a new connection.
    fn take_place(&self, key: PublicKey, connection: &Connection) -> bool {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, before)) = current.as_ref().filter(|(_, before)| !before.is_closed()) {
            if *of != key {
                return false;
            }
            before.close(REPLACED, "the sender has connected again");
        }
        *current = Some((key, connection.clone()));
        true
    }
}

async fn serve(shared: Arc<ReceiverShared>, connection: Connection) {
    let Some(key) = connection.peer_key() else { return };
    let inlet = &shared.inlet;
    let sender = named(&connection);
    let Some(said) = inlet.asked(&sender, &connection).await else {
        // The sender reads the answer and closes the connection.
        let _ = timeout(GOING, connection.closed()).await;
        return connection.close(REFUSED, "no sender of media");
    };
    if !shared.take_place(key, &connection) {
        inlet.line(true, &sender, "refused, since another sends");
        said.busy().await;
        return drop(timeout(GOING, connection.closed()).await);
    }
    inlet.stream(&sender, &connection, said).await;
    let why = connection.closed().await;
    inlet.line(false, &sender, &format!("gone: {}", shown(&why.to_string())));
}

/// A receiver that connects to a sender.
pub struct Viewing {
    inlet: Inlet,
    dialler: Dialler,
}

impl Viewing {
    /// Opens the sockets to the media's destinations.
    ///
    /// # Errors
    /// The system cannot open them.
    pub async fn new(outs: Outs, sender: Peer) -> Result<Viewing, Error> {
        Ok(Viewing { inlet: Inlet::new(outs).await?, dialler: Dialler::new(sender, PULL) })
    }

    /// Connects and receives until `stop` is ready, and reconnects after a lost connection. Finally it releases the
    /// buffered datagrams.
    ///
    /// # Errors
    /// As of [`Dialler::keep`].
    pub async fn run(&self, stop: impl Future<Output = ()>) -> Result<(), Error> {
        let mut kept = std::pin::pin!(self.dialler.keep(&self.inlet));
        tokio::select! {
            ended = &mut kept => return ended,
            () = stop => {}
        }
        if self.dialler.leave() {
            // The stream detects that its connection is over.
            let _ = timeout(DRAINING, kept).await;
        }
        Ok(())
    }
}

impl ConnectionUser for Inlet {
    async fn meanwhile<T: Send>(&self, until: impl Future<Output = T> + Send) -> T {
        until.await
    }
    async fn over(&self, connection: &Connection) -> DialEnd {
        let sender = named(connection);
        if let Some(said) = self.asked(&sender, connection).await {
            self.stream(&sender, connection, said).await;
        }
        connection.close(0, "");
        DialEnd::Lost(connection.closed().await.to_string())
    }
    fn tell(&self, line: &str) {
        self.event(&InletEvent::Line {
            is_warning: false,
            sender: "media".into(),
            line: line.into(),
        });
    }
}
