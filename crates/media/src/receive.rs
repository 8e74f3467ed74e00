//! The receiving end: lets senders on a list come, one at a time, or connects to a sender, and hands out what comes to local
//! UDP ports.

use crate::connection::{REFUSED, REPLACED, STOPPED, for_media};
use crate::dial::{Dialler, Ended, Peer, Use};
use crate::hello::{PULL, PUSH};
use crate::inlet::{Event, Inlet, Outs};
use crate::send::named;
use narrows_base::text::shown;
use narrows_files::access::AllowList;
use narrows_files::{Error, Identity, Kind};
use narrows_net::tap::Tap;
use narrows_net::{Connection, Endpoint, Options};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, EndpointLimits, Permit};
use narrows_wire::StaticKey;
use narrows_wire::noise::PublicKey;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration as Wait;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// A sender that is refused has so long to go by itself.
const GOING: Wait = Wait::from_secs(2);
/// Connections at the same time.
const MAX_CONNECTIONS: usize = 64;
/// Streams have so long to hand out what they hold: the longest latency, and a little.
const DRAINING: Wait = Wait::from_secs(32);

/// How a receiver is made that senders connect to.
pub struct ReceiveOptions {
    /// Its key.
    pub identity: Identity,
    /// Who may send.
    pub clients: AllowList,
    /// How connections behave.
    pub config: ConnectionConfig,
    /// Which of the senders' protocols are answered with.
    pub permit: Permit,
    /// What observes the endpoint.
    pub tap: Option<Arc<dyn Tap>>,
}

/// A listening receiver.
pub struct Server {
    endpoint: Endpoint,
    shared: Arc<Shared>,
}

struct Shared {
    inlet: Inlet,
    /// Who sends.
    current: Mutex<Option<(PublicKey, Connection)>>,
}

impl Server {
    /// Listens; within a tokio runtime, which drives it.
    ///
    /// # Errors
    /// Nobody may come; or the address is not ours, taken, or not permitted.
    pub async fn bind(
        address: SocketAddr,
        outs: Outs,
        options: ReceiveOptions,
    ) -> Result<Server, Error> {
        let ReceiveOptions { identity, clients, config, permit, tap } = options;
        if clients.is_empty() {
            return Err(Error::new(Kind::Input, "--clients: no key is listed, so nobody may come"));
        }
        let inlet = Inlet::new(outs).await?;
        let key = StaticKey::new(*identity.private())
            .map_err(|e| Error::new(Kind::Local, e.to_string()))?;
        let listed = Clients::Listed(clients.keys().copied().collect());
        let mut options = Options::server(key, listed, for_media(config, PUSH)?).tapped(tap);
        options.permit = permit;
        options.limits = EndpointLimits::new(MAX_CONNECTIONS);
        let endpoint = Endpoint::bind(address, options)
            .map_err(|e| Error::new(Kind::Local, format!("--listen: {e}")))?;
        Ok(Server { endpoint, shared: Arc::new(Shared { inlet, current: Mutex::default() }) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Receives until the endpoint is closed or `stop` is ready; the measures of streams that go on are told then, too.
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
        // They notice that their connections are over, and hand out what they hold.
        let all = async { while streams.join_next().await.is_some() {} };
        let _ = timeout(DRAINING, all).await;
    }
}

impl Shared {
    /// Whether this sender may send: nobody does, or the same one did, which has connected again.
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

async fn serve(shared: Arc<Shared>, connection: Connection) {
    let Some(key) = connection.peer_key() else { return };
    let (inlet, sender) = (&shared.inlet, named(&connection));
    let Some(said) = inlet.asked(&sender, &connection).await else {
        // It reads the answer, and goes.
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

/// Receives from a sender that it connects to.
pub struct Viewing {
    inlet: Inlet,
    dialler: Dialler,
}

impl Viewing {
    /// With sockets to where the media go.
    ///
    /// # Errors
    /// The system has none for them.
    pub async fn new(outs: Outs, sender: Peer) -> Result<Viewing, Error> {
        Ok(Viewing { inlet: Inlet::new(outs).await?, dialler: Dialler::new(sender, PULL) })
    }

    /// Connects and receives, and does so again whenever the connection is lost, until `stop` is ready; what is held then
    /// is handed out.
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
            // It notices that its connection is over.
            let _ = timeout(DRAINING, kept).await;
        }
        Ok(())
    }
}

impl Use for Inlet {
    async fn meanwhile<T: Send>(&self, until: impl Future<Output = T> + Send) -> T {
        until.await
    }
    async fn over(&self, connection: &Connection) -> Ended {
        let sender = named(connection);
        if let Some(said) = self.asked(&sender, connection).await {
            self.stream(&sender, connection, said).await;
        }
        connection.close(0, "");
        Ended::Lost(connection.closed().await.to_string())
    }
    fn tell(&self, line: &str) {
        self.event(&Event::Line { is_warning: false, sender: "media".into(), line: line.into() });
    }
}
