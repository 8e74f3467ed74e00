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

/// Interfaces and addresses in the order in which the handshake tries them.
pub struct LocalPaths {
    order: Vec<LocalPath>,
    /// How many have not been first yet.
    untried: usize,
}

impl LocalPaths {
    /// Paths of one connection, at most [`MAX_PATHS`]; without any, the system chooses.
    pub fn new(paths: &[LocalPath]) -> LocalPaths {
        let order: Vec<LocalPath> = paths.iter().take(MAX_PATHS.into()).cloned().collect();
        LocalPaths { untried: order.len().saturating_sub(1), order }
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
        let silent = self.order.remove(0);
        let line = format!("no answer over {silent}: {} begins", self.order.first()?);
        self.order.push(silent);
        Some(line)
    }

    /// Binds the paths with a route to the servers. Of several addresses those remain that most paths reach, as IPv4 if
    /// an interface has no IPv6.
    ///
    /// # Errors
    /// No path has a route, or the system provides no socket.
    pub fn bind(&self, servers: &[SocketAddr]) -> Result<BoundPaths, Error> {
        let mut bound = BoundPaths {
            servers: servers.to_vec(),
            paths: Vec::new(),
            sockets: Vec::new(),
            left_out: String::new(),
        };
        if self.order.is_empty() {
            return Ok(bound);
        }
        let count = |server: &SocketAddr| -> usize {
            self.order.iter().filter(|path| path.reaches(*server)).count()
        };
        let most = servers.iter().map(count).max().unwrap_or_default();
        bound.servers.retain(|server| count(server) == most);
        let any_ipv6 = bound.servers.iter().any(SocketAddr::is_ipv6);
        for path in &self.order {
            if !bound.servers.iter().any(|server| path.reaches(*server)) {
                bound.left_out += &format!("; no route over {path}");
                continue;
            }
            let socket = path.bind(any_ipv6);
            let failed = |e| Error::new(ErrorKind::Local, format!("--path {path}: {e}"));
            bound.sockets.push(socket.map_err(failed)?);
            bound.paths.push(path.clone());
        }
        if bound.paths.is_empty() {
            let first = servers.first().map_or(String::new(), SocketAddr::to_string);
            let line = format!("{first} is not reached by --path{}", bound.left_out);
            return Err(Error::new(ErrorKind::Unreachable, line));
        }
        Ok(bound)
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
