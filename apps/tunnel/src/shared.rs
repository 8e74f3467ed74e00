//! State shared by all clients of a server: permitted targets, the clients' connections, the log.

use crate::descriptors::Descriptors;
use crate::dial::Lookup;
use crate::learning::Lesson;
use crate::limits::ClientUsage;
use crate::over_tcp::Carriers;
use crate::permissions::Permissions;
use crate::request::Refusal;
use crate::reverse::Listeners;
use crate::tun::far::FarTun;
use narrows_net::Connection;
use narrows_net::probe::ProbeGate;
use narrows_peers::learned::LearnedPaths;
use narrows_peers::refusals::RareLine;
use narrows_wire::noise::PublicKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use tokio::sync::watch;

/// Maximum number of connections of one client; the newest are kept.
const MAX_CONNECTIONS_OF_CLIENT: usize = 4;
/// Close code: the same client has opened newer connections.
const REPLACED: u64 = 257;

/// A line for the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TunnelEvent {
    /// Whether it is a refusal or a failure.
    pub is_warning: bool,
    /// The beginning of the client's key.
    pub client: String,
    /// Text of the line; absent if there were too many lines of its kind.
    pub line: Option<String>,
    /// The reason, if a request was refused or its target was not reached.
    pub refusal: Option<Refusal>,
}

/// Lines about connections to clients' ports at once; afterwards one in ten seconds.
const STRANGERS_LINES: u32 = 20;

/// A client, and its connections, the oldest first.
type Known = (Arc<ClientUsage>, Vec<Connection>);

/// State shared by all clients of a server.
pub(crate) struct TunnelShared {
    permissions: watch::Sender<Arc<Permissions>>,
    pub lookup: Lookup,
    pub log: Arc<dyn Fn(&TunnelEvent) + Send + Sync>,
    /// Contains only keys of the list, so its size is bounded.
    clients: Mutex<HashMap<PublicKey, Known>>,
    descriptors: Arc<Descriptors>,
    /// TCP connections of clients with blocked UDP.
    pub carriers: Arc<Carriers>,
    pub probes: ProbeGate,
    /// Ports that listen for clients.
    pub listeners: Listeners,
    /// Limits the lines about connections to these ports, which any host may open.
    pub strangers: RareLine,
    /// The interface for clients' packets, if `--tun` is set.
    pub tun: Option<FarTun>,
    learned: Option<Arc<LearnedPaths>>,
    /// Measurements of open connections.
    lessons: Mutex<Vec<Weak<Lesson>>>,
}

impl TunnelShared {
    /// State without any client.
    pub fn new(
        permissions: Permissions,
        lookup: Lookup,
        log: Arc<dyn Fn(&TunnelEvent) + Send + Sync>,
        learned: Option<Arc<LearnedPaths>>,
        tun: Option<FarTun>,
    ) -> TunnelShared {
        let (clients, descriptors, carriers, probes, lessons) = <_>::default();
        let listeners = Listeners::default();
        let strangers = RareLine::new(STRANGERS_LINES);
        let permissions = watch::Sender::new(Arc::new(permissions));
        TunnelShared {
            permissions,
            lookup,
            log,
            clients,
            descriptors,
            carriers,
            probes,
            listeners,
            strangers,
            tun,
            learned,
            lessons,
        }
    }

    /// The permissions in force.
    pub fn permissions(&self) -> Arc<Permissions> {
        self.permissions.borrow().clone()
    }

    /// Changes of the permissions from now on.
    pub fn changes(&self) -> watch::Receiver<Arc<Permissions>> {
        self.permissions.subscribe()
    }

    /// Replaces the permissions, and forgets clients that are no longer listed.
    pub fn set_permissions(&self, permissions: Permissions) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|key, _| permissions.clients.holds(key));
        clients.values().for_each(|(client, _)| client.set_limits(permissions.limits));
        self.permissions.send_replace(Arc::new(permissions));
    }

    /// Closes the connections of these clients.
    pub fn close(&self, keys: &[PublicKey], reason: &str) {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let known = keys.iter().filter_map(|key| clients.get(key));
        known.flat_map(|(_, open)| open).for_each(|connection| connection.close(REPLACED, reason));
    }

    /// Adds a connection to its client; if there are too many, closes the oldest.
    pub fn client(&self, key: PublicKey, connection: &Connection) -> Arc<ClientUsage> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let limits = self.permissions.borrow().limits;
        let new = || (Arc::new(ClientUsage::new(limits, self.descriptors.clone())), Vec::new());
        let (client, connections) = clients.entry(key).or_insert_with(new);
        connections.retain(|c| !c.is_closed());
        if connections.len() >= MAX_CONNECTIONS_OF_CLIENT {
            connections.remove(0).close(REPLACED, "newer connections took its place");
        }
        connections.push(connection.clone());
        client.clone()
    }

    /// Begins a connection with the stored path, if `--learn` is set.
    pub fn lesson(&self, connection: &Connection, key: PublicKey) -> Option<Arc<Lesson>> {
        let lesson = Lesson::of_client(connection, self.learned.clone()?, key).map(Arc::new)?;
        let mut lessons = self.lessons.lock().unwrap_or_else(PoisonError::into_inner);
        lessons.retain(|lesson| lesson.strong_count() > 0);
        lessons.push(Arc::downgrade(&lesson));
        Some(lesson)
    }

    /// Measurements of the open connections.
    pub fn living_lessons(&self) -> Vec<Arc<Lesson>> {
        let lessons = self.lessons.lock().unwrap_or_else(PoisonError::into_inner);
        lessons.iter().filter_map(Weak::upgrade).collect()
    }
}
