//! The far side: accepts listed clients, and opens connections to permitted targets for them.

use crate::allow::Denied;
use crate::connection::for_tunnel;
use crate::dial::{self, Lookup};
use crate::limits::ClientLimits;
use crate::over_tcp;
use crate::peer::serve;
use crate::permissions::Permissions;
pub use crate::shared::TunnelEvent;
use crate::shared::TunnelShared;
use crate::tun::IpNet;
use crate::tun::far::FarTun;
use narrows_net::probe;
use narrows_net::tap::Tap;
use narrows_net::{Connection, Endpoint, Options, SystemError};
use narrows_peers::learned::LearnedPaths;
use narrows_peers::refusals::RefusalLog;
use narrows_peers::{Error, ErrorKind as Cause, Identity, key};
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{Clients, EndpointLimits, Permit};
use narrows_wire::StaticKey;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

/// Maximum number of a server's connections.
const MAX_CONNECTIONS: usize = 512;
/// Close code: the client used the controller for probes in a connection that is not a probe.
const MISUSED: u64 = 259;

/// Identity, permissions and callbacks of a server.
pub struct ServerOptions {
    /// The server's own key.
    pub identity: Identity,
    /// Permitted clients and targets, and limits.
    pub permissions: Permissions,
    /// Networks from which clients get addresses for packets (`--tun`); if empty, no packets are carried.
    pub tun: Vec<IpNet>,
    /// Configuration of connections.
    pub config: ConnectionConfig,
    /// Controllers that the server accepts for its sending at a client's request.
    pub permit: Permit,
    /// File of learned paths to clients.
    pub learned: Option<Arc<LearnedPaths>>,
    /// Observer of the endpoint.
    pub tap: Option<Arc<dyn Tap>>,
    /// Resolves names.
    pub lookup: Lookup,
    /// Called with each log line.
    pub log: Arc<dyn Fn(&TunnelEvent) + Send + Sync>,
}

/// A listening server.
pub struct TunnelServer {
    endpoint: Endpoint,
    /// TCP listener on the same port number, for clients with blocked UDP.
    over_tcp: TcpListener,
    config: ConnectionConfig,
    shared: Arc<TunnelShared>,
}

/// Ports that the system chooses, before one that only TCP can use is an error.
const PORTS: usize = 16;

/// A listener whose port UDP can use as well, even if the system chooses it.
fn tcp_listener(address: SocketAddr) -> std::io::Result<std::net::TcpListener> {
    for _ in 1..PORTS {
        let listener = narrows_net::tcp_listener(address)?;
        if address.port() != 0 || UdpSocket::bind(listener.local_addr()?).is_ok() {
            return Ok(listener);
        }
    }
    narrows_net::tcp_listener(address)
}

impl TunnelServer {
    /// Listens. Call it within a tokio runtime, which drives it.
    ///
    /// # Errors
    /// The list of clients or targets is empty, or the address is unavailable, in use, or not permitted.
    pub fn bind(address: SocketAddr, options: ServerOptions) -> Result<TunnelServer, Error> {
        let ServerOptions { identity, permissions, config, permit, .. } = options;
        let ServerOptions { learned, tap, lookup, log, tun, .. } = options;
        permissions.check()?;
        let of_connections = for_clients(&config, &permissions.limits)?;
        let key = StaticKey::new(*identity.private())
            .map_err(|e| Error::new(Cause::Local, e.to_string()))?;
        let mut options = Options::server(key, listed(&permissions), of_connections).tapped(tap);
        options.permit = permit;
        let logger = Arc::clone(&log);
        options.filter = RefusalLog::filter(move |from, key, reason| {
            let client = key::text(key).chars().take(12).collect();
            let line = Some(format!("{} ({from}): {reason}", key::text(key)));
            logger(&TunnelEvent { is_warning: true, client, line, refusal: None });
        });
        options.limits = EndpointLimits::new(MAX_CONNECTIONS);
        let failed = |e: String| Error::new(Cause::Local, format!("--listen: {e}"));
        let over_tcp = tcp_listener(address).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok((listener.local_addr()?, TcpListener::from_std(listener)?))
        });
        let (address, over_tcp) = over_tcp.map_err(|e| {
            failed(format!("cannot use TCP at {address}: {}", SystemError::from(e)))
        })?;
        let endpoint = Endpoint::bind(address, options).map_err(|e| failed(e.to_string()))?;
        let tun = match &tun[..] {
            [] => None,
            tun => Some(FarTun::open(tun, &permissions)?),
        };
        let shared = TunnelShared::new(permissions, lookup, log, learned, tun);
        Ok(TunnelServer { endpoint, over_tcp, config, shared: Arc::new(shared) })
    }

    /// Address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Name and addresses of the interface for packets; `None` without `--tun`.
    pub fn tun(&self) -> Option<String> {
        self.shared.tun.as_ref().map(FarTun::shown)
    }

    /// The endpoint, for closing it.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Replaces permissions and limits. Connections and flows that are still permitted go on; all others end. A larger
    /// number of streams holds for new connections.
    ///
    /// # Errors
    /// A list is empty, or the network of `--tun` has too few addresses. The former permissions then stay.
    pub fn set_permissions(&self, permissions: Permissions) -> Result<(), Error> {
        permissions.check()?;
        let config = for_clients(&self.config, &permissions.limits)?;
        if let Some(tun) = &self.shared.tun {
            let moved = tun.set_permissions(&permissions)?;
            self.shared.close(&moved, "this client has another address now: connect again");
        }
        self.endpoint.set_connection_config(config);
        self.endpoint.set_clients(listed(&permissions));
        self.shared.set_permissions(permissions);
        Ok(())
    }

    /// Stores the learned paths of all open connections. Blocks on the disk.
    pub fn keep_learned(&self) {
        self.shared.living_lessons().iter().for_each(|lesson| lesson.keep());
    }

    /// A line for each listed name that leads only to addresses that are not permitted. Looks all of them up, and may
    /// block.
    pub fn useless_names(&self) -> Vec<String> {
        let permissions = self.shared.permissions();
        let lookup = &self.shared.lookup;
        let targets = &permissions.targets;
        let lines = targets.names().filter_map(|(name, port)| {
            let found = lookup(name).ok()?;
            let judge = |a: &IpAddr| dial::judge(targets, Some(name), *a, port.unwrap_or(1));
            let address = found.first().filter(|_| found.iter().all(|a| judge(a).is_err()))?;
            let Err(Denied::NotPublic(what)) = judge(address) else { return None };
            let port = port.map_or("*".into(), |port| port.to_string());
            let shown = match address {
                IpAddr::V4(address) => address.to_string(),
                IpAddr::V6(address) => format!("[{address}]"),
            };
            Some(format!(
                "--allow {name}:{port}: {name} leads to {address}, {what}, which is permitted only if it is \
                 listed itself: --allow {shown}:{port}"
            ))
        });
        lines.collect()
    }

    /// Serves until the endpoint is closed.
    pub async fn run(&self) {
        tokio::select! {
            () = self.accept() => {}
            () = over_tcp::serve(&self.over_tcp, self.address(), &self.shared.carriers, over_tcp::OPENING) => {}
            () = packets(&self.shared) => {}
        }
    }

    async fn accept(&self) {
        let mut connections = JoinSet::new();
        while let Ok(connection) = self.endpoint.accept().await {
            while connections.try_join_next().is_some() {}
            connections.spawn(accepted(self.shared.clone(), connection));
        }
    }
}

/// The configuration of clients' connections.
fn for_clients(
    config: &ConnectionConfig,
    limits: &ClientLimits,
) -> Result<ConnectionConfig, Error> {
    let send_buffer = config.send_buffer.min(limits.unsent);
    let max_buffered = limits.unsent;
    let config = ConnectionConfig { send_buffer, max_buffered, ..config.clone() };
    probe::answering(for_tunnel(config, limits.streams)?)
        .map_err(|e| Error::new(Cause::Local, e.to_string()))
}

fn listed(permissions: &Permissions) -> Clients {
    Clients::Listed(permissions.clients.keys().copied().collect())
}

/// Carries packets to clients; never returns if there is no interface.
async fn packets(shared: &TunnelShared) {
    match &shared.tun {
        Some(tun) => tun.run().await,
        None => std::future::pending().await,
    }
}

/// Handles an accepted connection of a client or a probe.
async fn accepted(shared: Arc<TunnelShared>, connection: Connection) {
    shared.carriers.admitted(&connection);
    if probe::is_probe(&connection).await {
        return probe::answer(connection, &shared.probes);
    }
    if probe::is_misused(&connection) {
        return connection.close(MISUSED, "that controller is for probes");
    }
    let Some(key) = connection.peer_key() else { return };
    let client = shared.client(key, &connection);
    serve(shared, connection, client, key).await;
}
