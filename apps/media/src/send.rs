//! The sending end: connects to a receiver, or accepts listed receivers, one at a time.

use crate::connection::{BUSY, REPLACED, STOPPED, for_media};
use crate::dial::{ConnectionUser, DialEnd, Dialler, Peer};
use crate::flow::MediaFlowState;
use crate::hello::{PULL, PUSH};
use crate::outlet::{Outlet, OutletOptions};
use narrows_base::text::shown;
use narrows_net::tap::Tap;
use narrows_net::{Connection, Endpoint, Options};
use narrows_peers::access::AllowList;
use narrows_peers::{Error, ErrorKind, Identity, key};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{ClientFilter, Clients, EndpointLimits, Permit};
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::UdpSocket;

/// Maximum number of concurrent connections: the receiver's, and those about to be refused.
const MAX_CONNECTIONS: usize = 16;

/// A sender that connects to a receiver.
pub struct MediaSending {
    outlet: Outlet,
    dialler: Dialler,
}

impl MediaSending {
    /// A sender of media from these sockets, one for each layer.
    pub fn new(sockets: Vec<UdpSocket>, media: OutletOptions, receiver: Peer) -> Arc<MediaSending> {
        let outlet = Outlet::new(sockets, media);
        let dialler = Dialler::new(receiver, PUSH);
        Arc::new(MediaSending { outlet, dialler })
    }

    /// The current state.
    pub fn state(&self) -> MediaFlowState {
        self.outlet.state()
    }

    /// Connects and sends, and reconnects whenever the connection is lost.
    ///
    /// # Errors
    /// As of [`Dialler::keep`].
    pub async fn keep(&self) -> Result<(), Error> {
        self.dialler.keep(&self.outlet).await
    }

    /// Closes the connection to the receiver.
    pub fn leave(&self) {
        self.dialler.leave();
    }
}

impl ConnectionUser for Outlet {
    async fn meanwhile<T: Send>(&self, until: impl Future<Output = T> + Send) -> T {
        self.discarding(until).await
    }
    async fn over(&self, connection: &Connection) -> DialEnd {
        self.over(connection).await
    }
    fn tell(&self, line: &str) {
        self.tell(line);
    }
}

/// Options of a sender that accepts connections.
pub struct Offer {
    /// The sender's own key.
    pub identity: Identity,
    /// Keys that may receive.
    pub clients: AllowList,
    /// Configuration of connections.
    pub config: ConnectionConfig,
    /// Filter of clients, which may log those that are refused.
    pub filter: ClientFilter,
    /// Observer of the endpoint.
    pub tap: Option<Arc<dyn Tap>>,
}

/// A sender that accepts receivers, one at a time.
pub struct Offering {
    outlet: Outlet,
    endpoint: Endpoint,
}

impl Offering {
    /// Listens. Call it within a tokio runtime, which drives it.
    ///
    /// # Errors
    /// The list of clients is empty, or the address is unavailable, in use, or not permitted.
    pub fn bind(
        address: SocketAddr,
        sockets: Vec<UdpSocket>,
        media: OutletOptions,
        offer: Offer,
    ) -> Result<Offering, Error> {
        let Offer { identity, clients, config, filter, tap } = offer;
        clients.not_empty()?;
        let local = |e: String| Error::new(ErrorKind::Local, e);
        let key = StaticKey::new(*identity.private()).map_err(|e| local(e.to_string()))?;
        let mut options =
            Options::server(key, listed(&clients), for_media(config, PULL)?).tapped(tap);
        // This end sends the media, so only its own choice of a controller counts.
        options.permit = Permit::Own;
        options.filter = filter;
        options.limits = EndpointLimits::new(MAX_CONNECTIONS);
        let endpoint =
            Endpoint::bind(address, options).map_err(|e| local(format!("--listen: {e}")))?;
        Ok(Offering { outlet: Outlet::new(sockets, media), endpoint })
    }

    /// Replaces the list of clients. A connection of a client that is not on it ends.
    pub fn set_clients(&self, clients: &AllowList) {
        self.endpoint.set_clients(listed(clients));
    }

    /// Address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }
    /// The current state.
    pub fn state(&self) -> MediaFlowState {
        self.outlet.state()
    }

    /// Sends to each accepted receiver until the endpoint is closed.
    pub async fn run(&self) {
        let mut next = None;
        loop {
            let connection = match next.take() {
                Some(connection) => connection,
                None => match self.outlet.discarding(self.endpoint.accept()).await {
                    Ok(connection) => connection,
                    Err(_) => return,
                },
            };
            let receiver = named(&connection);
            self.outlet.tell(&format!("{receiver} receives"));
            tokio::select! {
                ended = self.outlet.over(&connection) => {
                    let why = match ended {
                        DialEnd::Lost(why) => why,
                        DialEnd::Final(e) => e.line,
                    };
                    self.outlet.tell(&format!("{receiver} is gone: {}", shown(&why)));
                    connection.close(0, "");
                }
                newer = self.another(&connection) => {
                    self.outlet.idle();
                    connection.close(REPLACED, "the receiver has connected again");
                    let Some(newer) = newer else { return };
                    next = Some(newer);
                }
            }
        }
    }

    /// The next connection of the receiver that is being served; other receivers are refused until then.
    async fn another(&self, served: &Connection) -> Option<Connection> {
        loop {
            let connection = self.endpoint.accept().await.ok()?;
            if connection.peer_key() == served.peer_key() {
                return Some(connection);
            }
            self.outlet.tell(&format!("{} is refused, since another receives", named(&connection)));
            connection.close(BUSY, "another receives");
        }
    }

    /// Closes the connection to the receiver.
    pub fn leave(&self) {
        self.endpoint.leave(STOPPED, "the sender was stopped");
    }
}

/// The clients of a list, for an endpoint.
pub(crate) fn listed(clients: &AllowList) -> Clients {
    Clients::Listed(clients.keys().copied().collect())
}

/// A client for display: the beginning of its key, and its address.
pub fn named(connection: &Connection) -> String {
    let key = connection.peer_key().map(|key: PublicKey| key::text(&key)).unwrap_or_default();
    let short: String = key.chars().take(12).collect();
    let from = connection.remote().map_or("?".into(), |a| a.to_string());
    format!("{short} ({from})")
}
