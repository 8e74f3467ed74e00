//! State shared by all clients of a server: permitted targets, the clients' connections, the log.

use crate::allow::Targets;
use crate::descriptors::Descriptors;
use crate::dial::Lookup;
use crate::learning::Lesson;
use crate::limits::{Client, ClientLimits};
use crate::over_tcp::Carriers;
use crate::tun::far::FarTun;
use narrows_files::learned::Learned;
use narrows_net::Connection;
use narrows_net::probe::ProbeGate;
use narrows_wire::noise::PublicKey;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Maximum number of connections of one client; the newest are kept.
const MAX_CONNECTIONS_OF_CLIENT: usize = 4;
/// Close code: the same client has opened newer connections.
const REPLACED: u64 = 257;

/// A line for the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Whether it is a refusal or a failure.
    pub is_warning: bool,
    /// The beginning of the client's key.
    pub client: String,
    /// Text of the line.
    pub line: String,
}

/// A client, and its connections, the oldest first.
type Known = (Arc<Client>, Vec<Connection>);

/// State shared by all clients of a server.
pub(crate) struct Shared {
    pub targets: Targets,
    pub limits: ClientLimits,
    pub lookup: Lookup,
    pub log: Box<dyn Fn(&Event) + Send + Sync>,
    /// Contains only keys of the list, so its size is bounded.
    clients: Mutex<HashMap<PublicKey, Known>>,
    descriptors: Arc<Descriptors>,
    /// TCP connections of clients with blocked UDP.
    pub carriers: Arc<Carriers>,
    pub probes: ProbeGate,
    /// The interface for clients' packets, if `--tun` is set.
    pub tun: Option<FarTun>,
    learned: Option<Arc<Learned>>,
    /// Measurements of open connections.
    lessons: Mutex<Vec<Weak<Lesson>>>,
}

impl Shared {
    /// State without any client.
    pub fn new(
        targets: Targets,
        limits: ClientLimits,
        lookup: Lookup,
        log: Box<dyn Fn(&Event) + Send + Sync>,
        learned: Option<Arc<Learned>>,
        tun: Option<FarTun>,
    ) -> Shared {
        let (clients, descriptors, carriers, probes, lessons) = <_>::default();
        Shared {
            targets,
            limits,
            lookup,
            log,
            clients,
            descriptors,
            carriers,
            probes,
            tun,
            learned,
            lessons,
        }
    }

    /// Adds a connection to its client; if there are too many, closes the oldest.
    pub fn client(&self, key: PublicKey, connection: &Connection) -> Arc<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || (Arc::new(Client::new(self.limits, self.descriptors.clone())), Vec::new());
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
