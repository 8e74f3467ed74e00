//! The local ends of a connection that may have several paths.
//!
//! The handshake takes the first path that answers ([`LocalPaths::first`]).

use crate::path_choice::{PathChoice, PathChoices, normalize_weights};
use crate::path_keeper::PathKeeper;
use crate::{Error, ErrorKind};
use narrows_net::dial::{self, DialFailure};
use narrows_net::{Connection, Endpoint, LocalPath, Options};
use narrows_transport::connection::{ConnectionConfig, MAX_PATHS, PathStats};
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

pub use crate::path_keeper::OpenPaths;

/// Interfaces and addresses of a connection, in the order in which the handshake tries them.
pub struct LocalPaths {
    choices: PathChoices,
    /// Those with a route.
    order: Vec<PathChoice>,
    /// Those without one.
    absent: Vec<PathChoice>,
    /// The peer's addresses that all paths can reach.
    servers: Vec<SocketAddr>,
    /// About paths that are left out, each after a semicolon.
    left_out: String,
}

impl LocalPaths {
    /// Those of the paths with a route to the servers, standby paths last. Of several addresses those remain that most paths
    /// reach, as IPv4 if an interface has no IPv6.
    ///
    /// # Errors
    /// No path has a route.
    pub fn new(choices: &PathChoices, servers: &[SocketAddr]) -> Result<LocalPaths, Error> {
        let mut order: Vec<PathChoice> =
            choices.all.iter().take(MAX_PATHS.into()).cloned().collect();
        order.sort_by_key(|choice| choice.is_standby);
        normalize_weights(&mut order);
        let is_chosen = !order.is_empty();
        let mut left_out = String::new();
        order.retain(|path| {
            let is_used = path.quota.as_ref().is_some_and(|quota| quota.is_used());
            if is_used {
                left_out += &format!("; {} is left out: its quota is used", path.local);
            }
            !is_used
        });
        let count = |server: &SocketAddr| {
            order.iter().filter(|path| path.local.check_route(*server).is_ok()).count()
        };
        let counts: Vec<usize> = servers.iter().map(count).collect();
        let most = counts.iter().max().copied().unwrap_or_default();
        let reached = servers.iter().zip(&counts).filter(|(_, count)| **count == most);
        let servers: Vec<SocketAddr> = reached.map(|(server, _)| *server).collect();
        let absent = order.extract_if(.., |path| {
            let checked = servers.iter().map(|server| path.local.check_route(*server));
            let failed = checked.reduce(Result::or).and_then(Result::err);
            let line = failed.iter().map(|e| format!("; {} is left out: {e}", path.local));
            left_out.extend(line);
            failed.is_some()
        });
        let absent = absent.collect();
        if is_chosen && order.is_empty() {
            let first = servers.first().map_or(String::new(), SocketAddr::to_string);
            let line = format!("no --path leads to {first}{left_out}");
            return Err(Error::new(ErrorKind::Unreachable, line));
        }
        Ok(LocalPaths { choices: choices.clone(), order, absent, servers, left_out })
    }

    /// Connects over the first path that answers: an attempt with a handshake over the next path begins
    /// [`dial::DELAY`] after the one before it, or as soon as that is unreachable. Any other error ends all attempts.
    ///
    /// # Errors
    /// That of the last attempts, or the system provides no socket.
    pub async fn first<T, A, P>(
        &self,
        attempt: impl Fn(BoundPaths) -> A,
        until: impl Fn(Instant) -> P,
    ) -> Result<T, Error>
    where
        A: Future<Output = Result<T, Error>>,
        P: Future<Output = ()>,
    {
        let numbers: Vec<usize> = (0..self.order.len().max(1)).collect();
        let attempt = |first| {
            // An interface that went since the first attempt does not end that.
            let gone = |e: Error| match first {
                0 => e,
                _ => Error::new(ErrorKind::Unreachable, e.to_string()),
            };
            let begun = self.bind(first).map_err(gone).map(&attempt);
            async { begun?.await }
        };
        let is_final = |e: &Error| e.kind != ErrorKind::Unreachable;
        match dial::first(&numbers, attempt, is_final, until).await {
            Ok(dialled) => Ok(dialled.value),
            Err(DialFailure::Final(e)) => Err(e),
            Err(DialFailure::All(failed)) => {
                let over = |first: usize| self.order.get(first).map(|path| path.local.to_string());
                let names: Vec<String> = failed.iter().filter_map(|f| over(f.address)).collect();
                let cause = failed.into_iter().next().map(|f| f.cause.to_string());
                let mut line = cause.unwrap_or_default();
                if names.len() > 1 {
                    line += &format!(" (over {})", names.join(", "));
                }
                Err(Error::new(ErrorKind::Unreachable, line))
            }
        }
    }

    /// Binds all paths, that with this number in the order first.
    fn bind(&self, first: usize) -> Result<BoundPaths, Error> {
        let mut bound = self.order.clone();
        bound.rotate_left(first);
        let mut notes = String::new();
        if first > 0 {
            let silent: Vec<String> =
                self.order[..first].iter().map(|path| path.local.to_string()).collect();
            let silent = silent.join(" and ");
            notes = format!("; no answer over {silent} so far: {} begins", bound[0].local);
        }
        notes += &self.left_out;
        let any_ipv6 = self.servers.iter().any(SocketAddr::is_ipv6);
        let socket = |path: &PathChoice| {
            let failed = |e| Error::new(ErrorKind::Local, format!("--path {}: {e}", path.local));
            path.local.bind(any_ipv6).map_err(failed)
        };
        let sockets = bound.iter().map(socket).collect::<Result<_, _>>()?;
        let names = bound.iter().map(|path| path.local.clone()).collect();
        Ok(BoundPaths {
            servers: self.servers.clone(),
            names: OpenPaths::new(names),
            is_first: first == 0,
            choices: self.choices.clone(),
            bound,
            absent: self.absent.clone(),
            any_ipv6,
            sockets,
            notes,
        })
    }
}

/// Sockets of a connection's paths.
pub struct BoundPaths {
    /// The peer's addresses that all paths can reach.
    pub servers: Vec<SocketAddr>,
    /// Where the paths leave; empty if the system chooses.
    pub names: OpenPaths,
    /// Whether no other attempt began before.
    pub is_first: bool,
    choices: PathChoices,
    /// The paths with a socket, path 0 first; then those without a route so far.
    bound: Vec<PathChoice>,
    absent: Vec<PathChoice>,
    any_ipv6: bool,
    sockets: Vec<UdpSocket>,
    /// About paths that are left out or silent, each after a semicolon.
    notes: String,
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
        let mut notes = self.notes.clone();
        for (number, path) in (0..).zip(&self.bound) {
            let is_set = path.set(connection, number);
            // A peer without several paths uses the first one alone.
            if !is_set && number == 0 && path.is_standby {
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
