//! The server over `rrtp`: a thread per connection, and one per request.

use super::{static_key, stream};
use crate::error::{Error, Kind};
use crate::key::Identity;
use crate::learned::{Characteristics, LEARN_LEAST, Learned, network};
use crate::message::Wishes;
use crate::service::{Link, Service};
use narrows_control::{HintSource, Profile};
use narrows_drive::tap::Tap;
use narrows_drive::{Connection, Endpoint, Options, block_on};
use narrows_flow::connection::ConnectionConfig;
pub use narrows_flow::port::Permit;
use narrows_flow::port::{Clients, PortLimits};
use narrows_wire::noise::PublicKey;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Connections of a server, and requests that it answers at the same time.
const CONNECTIONS_MOST: usize = 512;
const STREAMS_MOST: usize = 1024;

/// A listening endpoint.
pub struct Server {
    endpoint: Endpoint,
    service: Arc<Service>,
    label: String,
    ours: PublicKey,
    learned: Option<Arc<Learned>>,
}

impl Server {
    /// Listens here; connections behave as `config` says, but send with what the client asked for if
    /// `permit` says so; `tap` watches.
    ///
    /// # Errors
    /// The address is not ours, taken, or not permitted.
    pub fn bind(
        address: SocketAddr,
        identity: &Identity,
        service: Arc<Service>,
        config: ConnectionConfig,
        permit: Permit,
        tap: Option<Arc<dyn Tap>>,
    ) -> Result<Server, Error> {
        let ours = *identity.public();
        let label = config.protocol.label().to_string();
        let clients = service
            .clients()
            .map_or(Clients::Any, |list| Clients::Listed(list.keys().copied().collect()));
        let mut options = Options::server(static_key(identity)?, clients, config).tapped(tap);
        options.permit = permit;
        options.limits = PortLimits::new(CONNECTIONS_MOST);
        let endpoint = Endpoint::bind(address, options)
            .map_err(|e| Error::new(Kind::Local, format!("--listen: {e}")))?;
        Ok(Server { endpoint, service, label, ours, learned: None })
    }

    /// Remembers there what the paths to clients' networks are like, and begins with it when one
    /// comes again.
    #[must_use]
    pub fn learning(self, learned: Learned) -> Server {
        Server { learned: Some(Arc::new(learned)), ..self }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// What ends it.
    pub fn end(&self) -> End {
        End(self.endpoint.clone())
    }

    /// Serves until it is ended.
    pub fn run(self) {
        let streams = Arc::new(AtomicUsize::new(0));
        while let Ok(connection) = block_on(self.endpoint.accept()) {
            let (service, streams) = (Arc::clone(&self.service), Arc::clone(&streams));
            let (label, ours, learned) = (self.label.clone(), self.ours, self.learned.clone());
            let started = std::thread::Builder::new().spawn(move || {
                let network = connection.remote().map(|a| network(a.ip()));
                let memory = learned.as_deref().zip(network.as_deref());
                if let Some((learned, network)) = memory {
                    remember(&connection, learned, network);
                }
                let connection = Arc::new(connection);
                one(&connection, &service, &streams, &label, ours);
                if let Some((learned, network)) = memory {
                    keep(&connection, learned, network);
                }
            });
            // Without a thread the connection is dropped, and so closed.
            drop(started);
        }
    }
}

/// Ends a server from elsewhere.
pub struct End(Endpoint);

impl End {
    /// Tells all clients that it is over, so that none waits in vain.
    pub fn now(&self) {
        self.0.shut_down(256, "the server was stopped");
    }
}

/// Begins with what is known of the path, if this may be that path.
pub(crate) fn remember(connection: &Connection, learned: &Learned, network: &str) {
    // A file that is broken was complained of when the server started.
    let Ok(Some(known)) = learned.get(network) else { return };
    if known.may_be(connection.stats().srtt) {
        let _ = connection.reconfigure(&known.profile(), HintSource::Peer);
    }
}

/// Keeps what a connection that is over has learned, if it sent enough to say something.
fn keep(connection: &Connection, learned: &Learned, network: &str) {
    // A client that has moved was on two paths.
    let here = connection.remote().is_some_and(|a| self::network(a.ip()) == network);
    let found = Characteristics::from(&connection.learned());
    if here && found.rate_bps.is_some() && connection.stats().bytes_sent >= LEARN_LEAST {
        // A disk that takes nothing costs the next connection its head start, nothing else.
        let _ = learned.keep(network, found);
    }
}

/// Answers the requests of one connection, each in a thread.
fn one(
    connection: &Arc<Connection>,
    service: &Arc<Service>,
    streams: &Arc<AtomicUsize>,
    label: &str,
    ours: PublicKey,
) {
    let Some(client) = connection.peer_key() else { return };
    while let Ok((send, receive)) = block_on(connection.accept_bi()) {
        if streams.fetch_add(1, Ordering::SeqCst) >= STREAMS_MOST {
            streams.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let place = Place(Arc::clone(streams));
        let link = Remote { connection: Arc::clone(connection), label: label.to_string() };
        let service = Arc::clone(service);
        let started = std::thread::Builder::new().spawn(move || {
            let _place = place;
            // A client may move: where it is now is where it is shown.
            let from = link.connection.remote().map_or("?".to_string(), |a| a.to_string());
            service.answer(&client, &from, stream(send, receive, None, ours), &link);
        });
        drop(started);
    }
}

/// A request's place among those that are being answered.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Remote {
    connection: Arc<Connection>,
    label: String,
}

impl Link for Remote {
    fn tune(&self, wishes: &Wishes) -> Wishes {
        let profile = super::profile(wishes);
        if profile != Profile::default() {
            // A connection that is over has nothing to tune.
            let _ = self.connection.reconfigure(&profile, HintSource::Peer);
        }
        let learned = self.connection.learned();
        let label = self.connection.protocol().unwrap_or_else(|_| self.label.clone());
        super::wishes(&learned, &label)
    }
}
