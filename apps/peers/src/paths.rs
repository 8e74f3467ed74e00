//! The local ends of a connection that may have several paths.
//!
//! The handshake takes the first path. If no answer comes there, the next one begins.

use crate::{Error, ErrorKind};
use narrows_base::Duration;
use narrows_net::{Connection, Endpoint, LocalPath, Options};
use narrows_transport::connection::{ConnectionConfig, MAX_PATHS, PathStats};
use std::net::{SocketAddr, UdpSocket};

/// Time for an answer over one path, if another one is left: the first START and its repetitions pass a lossy path.
const ONE_PATH: Duration = Duration::from_secs(8);

/// Interfaces and addresses of an attempt, in the order in which the handshake tries them.
pub struct LocalPaths {
    order: Vec<LocalPath>,
    /// How many have not been first yet.
    untried: usize,
    /// About paths without a route, each after a semicolon.
    left_out: String,
}

impl LocalPaths {
    /// Paths of one connection, at most [`MAX_PATHS`]; without any, the system chooses.
    pub fn new(paths: &[LocalPath]) -> LocalPaths {
        let order: Vec<LocalPath> = paths.iter().take(MAX_PATHS.into()).cloned().collect();
        LocalPaths { untried: order.len().saturating_sub(1), order, left_out: String::new() }
    }

    /// Time limit of an attempt that has so much time in all.
    pub fn patience(&self, left: Duration) -> Duration {
        if self.untried > 0 { left.min(ONE_PATH) } else { left }
    }

    /// After a failed attempt: lets the next path begin. Returns a line about the silent one; `None` if another path
    /// cannot help.
    pub fn next(&mut self, failed: &Error) -> Option<String> {
        if failed.kind != ErrorKind::Unreachable || self.untried == 0 {
            return None;
        }
        self.untried -= 1;
        self.order.rotate_left(1);
        let silent = self.order.last()?;
        Some(format!("no answer over {silent}: {} begins", self.order.first()?))
    }

    /// Binds the paths with a route to the servers, and leaves the others out. Of several addresses those remain that
    /// most paths reach, as IPv4 if an interface has no IPv6.
    ///
    /// # Errors
    /// No path has a route, or the system provides no socket.
    pub fn bind(&mut self, servers: &[SocketAddr]) -> Result<BoundPaths, Error> {
        let count = |server: &SocketAddr| {
            self.order.iter().filter(|path| path.check_route(*server).is_ok()).count()
        };
        let counts: Vec<usize> = servers.iter().map(count).collect();
        let most = counts.iter().max().copied().unwrap_or_default();
        let reached = servers.iter().zip(&counts).filter(|(_, count)| **count == most);
        let servers: Vec<SocketAddr> = reached.map(|(server, _)| *server).collect();
        let is_chosen = !self.order.is_empty();
        self.order.retain(|path| {
            let checked = servers.iter().map(|server| path.check_route(*server));
            let failed = checked.reduce(Result::or).and_then(Result::err);
            self.left_out.extend(failed.iter().map(|e| format!("; {path} is left out: {e}")));
            failed.is_none()
        });
        self.untried = self.untried.min(self.order.len().saturating_sub(1));
        if is_chosen && self.order.is_empty() {
            let first = servers.first().map_or(String::new(), SocketAddr::to_string);
            let line = format!("no --path leads to {first}{}", self.left_out);
            return Err(Error::new(ErrorKind::Unreachable, line));
        }
        let any_ipv6 = servers.iter().any(SocketAddr::is_ipv6);
        let socket = |path: &LocalPath| {
            let failed = |e| Error::new(ErrorKind::Local, format!("--path {path}: {e}"));
            path.bind(any_ipv6).map_err(failed)
        };
        let sockets = self.order.iter().map(socket).collect::<Result<_, _>>()?;
        let left_out = self.left_out.clone();
        Ok(BoundPaths { servers, paths: self.order.clone(), sockets, left_out })
    }
}

/// Sockets of a connection's paths.
pub struct BoundPaths {
    /// The peer's addresses that all paths can reach.
    pub servers: Vec<SocketAddr>,
    /// Where the paths leave, path 0 first; empty if the system chooses.
    pub paths: Vec<LocalPath>,
    sockets: Vec<UdpSocket>,
    /// About paths without a route, each after a semicolon.
    left_out: String,
}

impl BoundPaths {
    /// The configuration of a connection over these paths.
    pub fn configured(&self, config: ConnectionConfig) -> ConnectionConfig {
        ConnectionConfig { paths: self.count(), ..config }
    }

    /// An endpoint for one connection over these paths.
    ///
    /// # Errors
    /// The system provides no socket.
    pub fn endpoint(&mut self, options: Options) -> Result<Endpoint, narrows_net::Error> {
        match std::mem::take(&mut self.sockets) {
            sockets if sockets.is_empty() => Endpoint::to_any(&self.servers, options),
            sockets => Endpoint::with_sockets(sockets, options),
        }
    }

    /// Opens the further paths of a connection. Returns notes about paths that are not used, each after a semicolon.
    pub fn open(&self, connection: &Connection) -> String {
        let count = self.count();
        let mut notes = self.left_out.clone();
        let unused = (1..count).filter(|path| !connection.open_path(*path)).count();
        if unused > 0 {
            notes += &format!("; the peer uses {} of {count} paths", usize::from(count) - unused);
        }
        notes
    }

    /// Their number, at least 1.
    fn count(&self) -> u8 {
        self.paths.len().clamp(1, MAX_PATHS.into()) as u8
    }
}

/// Bytes that one path has carried, as UDP payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathBytes {
    /// Where it leaves this machine.
    pub path: LocalPath,
    /// Bytes from the peer.
    pub received: u64,
    /// Bytes to the peer.
    pub sent: u64,
}

impl PathBytes {
    /// Bytes of each path of a connection that has begun; empty if the system chose its path.
    pub fn of(connection: &Connection, paths: &[LocalPath]) -> Vec<PathBytes> {
        let of_path = |stats: PathStats| {
            let path = paths.get(usize::from(stats.number))?.clone();
            Some(PathBytes { path, received: stats.bytes_received, sent: stats.bytes_sent })
        };
        connection.paths().into_iter().filter_map(of_path).collect()
    }
}
