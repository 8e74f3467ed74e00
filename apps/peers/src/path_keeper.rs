//! Keeps the paths of an open connection: moves a path to the new interface of the same name, opens a path that gets a
//! route, and closes a path at its quota.

use crate::path_choice::{PathChoice, PathChoices};
use narrows_net::{Connection, LocalPath, WeakConnection};
use narrows_transport::connection::{PathStats, PathStatus};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time between two looks: a path must be used within a second after its interface is back.
const PAUSE: Duration = Duration::from_millis(250);

/// Code of a close by this end: the application's first.
const CLOSED: u64 = 256;

/// Where the paths of a connection leave, by their number.
#[derive(Clone, Debug, Default)]
pub struct OpenPaths {
    list: Arc<Mutex<Vec<LocalPath>>>,
}

impl OpenPaths {
    /// Path 0 first.
    pub fn new(list: Vec<LocalPath>) -> OpenPaths {
        OpenPaths { list: Arc::new(Mutex::new(list)) }
    }
    /// The local end of a path.
    pub fn get(&self, number: u8) -> Option<LocalPath> {
        let list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.get(usize::from(number)).cloned()
    }
    fn add(&self, path: LocalPath) {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).push(path);
    }
}

/// A path that has a socket.
struct KeptPath {
    choice: PathChoice,
    /// The interface to which its socket is bound, by number.
    interface: Option<u32>,
    /// Bytes of this connection that count for the quota already.
    counted: u64,
    /// The path that carries this end's data, or else the peer's, in its place, by number.
    leader: Option<u8>,
}

impl KeptPath {
    fn new(choice: PathChoice) -> KeptPath {
        let interface = choice.local.interface_index();
        KeptPath { choice, interface, counted: 0, leader: None }
    }
}

/// Keeps the paths of one connection.
pub(crate) struct PathKeeper {
    connection: WeakConnection,
    server: SocketAddr,
    any_ipv6: bool,
    /// By number.
    open: Vec<KeptPath>,
    /// Without a route so far.
    absent: Vec<PathChoice>,
    names: OpenPaths,
    note: Option<fn(&str)>,
}

impl PathKeeper {
    /// `bound` are the paths of the connection that have a socket, path 0 first.
    pub fn new(
        connection: &Connection,
        server: SocketAddr,
        any_ipv6: bool,
        bound: &[PathChoice],
        absent: Vec<PathChoice>,
        names: OpenPaths,
        choices: &PathChoices,
    ) -> PathKeeper {
        PathKeeper {
            connection: connection.downgrade(),
            server,
            any_ipv6,
            open: bound.iter().cloned().map(KeptPath::new).collect(),
            absent,
            names,
            note: choices.note,
        }
    }

    /// Runs in a thread of its own until the connection ends. Without a thread, a connection with a quota is closed: it
    /// could not be checked.
    pub fn start(mut self) {
        let connection = self.connection.clone();
        let has_quota = self.open.iter().any(|kept| kept.choice.quota.is_some())
            || self.absent.iter().any(|choice| choice.quota.is_some());
        let keep = move || {
            loop {
                std::thread::sleep(PAUSE);
                let Some(connection) = self.connection.upgrade() else { break };
                let stats = connection.paths();
                if stats.is_empty() {
                    break;
                }
                self.look(&connection, &stats);
            }
        };
        let started = std::thread::Builder::new().name("narrows-paths".into()).spawn(keep);
        if started.is_err() && has_quota {
            let connection = connection.upgrade();
            connection.iter().for_each(|c| c.close(CLOSED, "there is no thread to check a quota"));
        }
    }

    fn tell(&self, line: &str) {
        if let Some(note) = self.note {
            note(line);
        }
    }

    fn look(&mut self, connection: &Connection, stats: &[PathStats]) {
        for path in stats {
            self.count(connection, path);
            self.follow(connection, path.number);
            self.tell_leader(path);
        }
        let has_route = |choice: &PathChoice| choice.local.check_route(self.server).is_ok();
        if let Some(place) = self.absent.iter().position(has_route) {
            let choice = self.absent.remove(place);
            self.open(connection, choice);
        }
    }

    /// Counts a path's bytes, and closes it if its quota is used. If it is the only path, that ends the connection.
    fn count(&mut self, connection: &Connection, path: &PathStats) {
        let Some(kept) = self.open.get_mut(usize::from(path.number)) else { return };
        let Some(quota) = &kept.choice.quota else { return };
        let bytes = path.bytes_sent + path.bytes_received;
        quota.add(bytes.saturating_sub(kept.counted));
        kept.counted = bytes;
        if quota.is_used() && path.status != PathStatus::Unusable {
            let line = format!("{} has used its quota: it carries no more", kept.choice.local);
            let is_only = self.open.len() == 1 && self.absent.is_empty();
            if is_only || !connection.set_path_status(path.number, PathStatus::Unusable) {
                connection.close(CLOSED, "the quota of the only path is used");
            }
            self.tell(&line);
        }
    }

    /// Says when another path begins to carry data in place of this one.
    fn tell_leader(&mut self, path: &PathStats) {
        let Some(kept) = self.open.get_mut(usize::from(path.number)) else { return };
        let leader = path.leader.or(path.peer_leader);
        if std::mem::replace(&mut kept.leader, leader) == leader {
            return;
        }
        let local = kept.choice.local.clone();
        let leader = leader.and_then(|number| self.open.get(usize::from(number)));
        let line = leader.map_or_else(
            || format!("{local} carries data again"),
            |leader| {
                let leader = &leader.choice.local;
                format!("{local} shares its bottleneck with {leader}, which carries the data")
            },
        );
        self.tell(&line);
    }

    /// Moves a path to a new socket if its interface has another number than before: a socket stays bound to the old
    /// one.
    fn follow(&mut self, connection: &Connection, number: u8) {
        let Some(kept) = self.open.get_mut(usize::from(number)) else { return };
        let interface = kept.choice.local.interface_index();
        if interface.is_none() || interface == kept.interface {
            return;
        }
        let local = kept.choice.local.clone();
        if local.check_route(self.server).is_err() {
            return;
        }
        let Ok(socket) = local.bind(self.any_ipv6) else { return };
        if connection.rebind_path(number, socket).unwrap_or(false) {
            kept.interface = interface;
            self.tell(&format!("{local} is back"));
        }
    }

    /// Opens a path that had no route before.
    fn open(&mut self, connection: &Connection, choice: PathChoice) {
        let number = self.open.len() as u8;
        let bound = choice.local.bind(self.any_ipv6);
        let Ok(socket) = bound else { return self.absent.push(choice) };
        choice.set(connection, number);
        if connection.rebind_path(number, socket).unwrap_or(false) && connection.open_path(number) {
            self.names.add(choice.local.clone());
            self.tell(&format!("{} has a route now", choice.local));
            self.open.push(KeptPath::new(choice));
        }
    }
}
