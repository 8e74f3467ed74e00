//! The local ends of a connection that may have several paths.
//!
//! The handshake takes the first path. If no answer comes there, the next one begins.

use crate::path_choice::{PathChoice, PathChoices};
use crate::path_keeper::PathKeeper;
use crate::{Error, ErrorKind};
use narrows_base::Duration;
use narrows_net::{Connection, Endpoint, LocalPath, Options};
use narrows_transport::connection::{ConnectionConfig, MAX_PATHS, PathStats, PathStatus};
use std::net::{SocketAddr, UdpSocket};

pub use crate::path_keeper::OpenPaths;

/// Time for an answer over one path, if another one is left: the first START and its repetitions pass a lossy path.
const ONE_PATH: Duration = Duration::from_secs(8);

/// Interfaces and addresses of an attempt, in the order in which the handshake tries them.
pub struct LocalPaths {
    choices: PathChoices,
    /// Those with a route.
    order: Vec<PathChoice>,
    /// Those without one.
    absent: Vec<PathChoice>,
    /// How many have not been first yet.
    untried: usize,
    /// About paths without a route, each after a semicolon.
    left_out: String,
}

impl LocalPaths {
    /// Paths of one connection, those on standby last.
    pub fn new(choices: &PathChoices) -> LocalPaths {
        let mut order: Vec<PathChoice> =
            choices.all.iter().take(MAX_PATHS.into()).cloned().collect();
        order.sort_by_key(|choice| choice.is_standby);
        let untried = order.len().saturating_sub(1);
        let choices = choices.clone();
        LocalPaths { choices, order, absent: Vec::new(), untried, left_out: String::new() }
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
        let silent = &self.order.last()?.local;
        Some(format!("no answer over {silent}: {} begins", self.order.first()?.local))
    }

    /// Binds the paths with a route to the servers, and leaves the others out. Of several addresses those remain that
    /// most paths reach, as IPv4 if an interface has no IPv6.
    ///
    /// # Errors
    /// No path has a route, or the system provides no socket.
    pub fn bind(&mut self, servers: &[SocketAddr]) -> Result<BoundPaths, Error> {
        let is_chosen = !self.order.is_empty();
        self.order.retain(|path| {
            let is_used = path.quota.as_ref().is_some_and(|quota| quota.is_used());
            if is_used {
                self.left_out += &format!("; {} is left out: its quota is used", path.local);
            }
            !is_used
        });
        let count = |server: &SocketAddr| {
            self.order.iter().filter(|path| path.local.check_route(*server).is_ok()).count()
        };
        let counts: Vec<usize> = servers.iter().map(count).collect();
        let most = counts.iter().max().copied().unwrap_or_default();
        let reached = servers.iter().zip(&counts).filter(|(_, count)| **count == most);
        let servers: Vec<SocketAddr> = reached.map(|(server, _)| *server).collect();
        let absent = self.order.extract_if(.., |path| {
            let checked = servers.iter().map(|server| path.local.check_route(*server));
            let failed = checked.reduce(Result::or).and_then(Result::err);
            let line = failed.iter().map(|e| format!("; {} is left out: {e}", path.local));
            self.left_out.extend(line);
            failed.is_some()
        });
        self.absent.extend(absent);
        self.untried = self.untried.min(self.order.len().saturating_sub(1));
        if is_chosen && self.order.is_empty() {
            let first = servers.first().map_or(String::new(), SocketAddr::to_string);
            let line = format!("no --path leads to {first}{}", self.left_out);
            return Err(Error::new(ErrorKind::Unreachable, line));
        }
        let any_ipv6 = servers.iter().any(SocketAddr::is_ipv6);
        let socket = |path: &PathChoice| {
            let failed = |e| Error::new(ErrorKind::Local, format!("--path {}: {e}", path.local));
            path.local.bind(any_ipv6).map_err(failed)
        };
        let sockets = self.order.iter().map(socket).collect::<Result<_, _>>()?;
        let names = self.order.iter().map(|path| path.local.clone()).collect();
        Ok(BoundPaths {
            servers,
            names: OpenPaths::new(names),
            choices: self.choices.clone(),
            bound: self.order.clone(),
            absent: self.absent.clone(),
            any_ipv6,
            sockets,
            left_out: self.left_out.clone(),
        })
    }
}

/// Sockets of a connection's paths.
pub struct BoundPaths {
    /// The peer's addresses that all paths can reach.
    pub servers: Vec<SocketAddr>,
    /// Where the paths leave; empty if the system chooses.
    pub names: OpenPaths,
    choices: PathChoices,
    /// The paths with a socket, path 0 first; then those without a route so far.
    bound: Vec<PathChoice>,
    absent: Vec<PathChoice>,
    any_ipv6: bool,
    sockets: Vec<UdpSocket>,
    /// About paths without a route, each after a semicolon.
    left_out: String,
}

impl BoundPaths {
    /// The configuration of a connection over these paths, and over those that may get a route later.
    pub fn configured(&self, config: ConnectionConfig) -> ConnectionConfig {
        let count = self.bound.len() + self.absent.len();
        ConnectionConfig { paths: count.clamp(1, MAX_PATHS.into()) as u8, ..config }
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

    /// Opens the further paths of a connection to this address, and keeps all of them while it lasts. Returns notes about
    /// paths that are not used, each after a semicolon.
    pub fn open(&self, connection: &Connection, server: SocketAddr) -> String {
        let count = self.bound.len() as u8;
        let mut notes = self.left_out.clone();
        for (number, path) in (0..).zip(&self.bound).filter(|(_, path)| path.is_standby) {
            let is_set = connection.set_path_status(number, PathStatus::Standby);
            // A peer without several paths uses the first one alone.
            if !is_set && number == 0 {
                notes += &format!("; the peer knows no standby: {} is used as usual", path.local);
            }
        }
        let unused = (1..count).filter(|path| !connection.open_path(*path)).count();
        if unused > 0 {
            notes += &format!("; the peer uses {} of {count} paths", usize::from(count) - unused);
        }
        if count > 0 {
            let BoundPaths { any_ipv6, bound, absent, names, choices, .. } = self;
            let absent = absent.clone();
            let names = names.clone();
            let keeper =
                PathKeeper::new(connection, server, *any_ipv6, bound, absent, names, choices);
            keeper.start();
        }
        notes
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
    pub fn of(connection: &Connection, paths: &OpenPaths) -> Vec<PathBytes> {
        let of_path = |stats: PathStats| {
            let path = paths.get(stats.number)?;
            Some(PathBytes { path, received: stats.bytes_received, sent: stats.bytes_sent })
        };
        connection.paths().into_iter().filter_map(of_path).collect()
    }
}
