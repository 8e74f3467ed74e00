//! What all clients of a server share: what is permitted, who has which connections, the log.

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

/// Connections of one client: its newest ones.
const MAX_CONNECTIONS_OF_CLIENT: usize = 4;
/// The code of connections that are closed for a newer one of the same client.
const REPLACED: u64 = 257;

/// A line for the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Whether something was refused or broke.
    pub is_warning: bool,
    /// Whom it is about.
    pub client: String,
    /// What happened.
    pub line: String,
}

/// A client, and its connections, the oldest first.
type Known = (Arc<Client>, Vec<Connection>);

/// What all clients of a server share.
pub(crate) struct Shared {
    pub targets: Targets,
    pub limits: ClientLimits,
    pub lookup: Lookup,
    pub log: Box<dyn Fn(&Event) + Send + Sync>,
    /// Only keys on the list get here, so there are no more than these.
    clients: Mutex<HashMap<PublicKey, Known>>,
    descriptors: Arc<Descriptors>,
    /// Of clients whose UDP does not pass.
    pub carriers: Arc<Carriers>,
    pub probes: ProbeGate,
    /// Of clients' packets, if the owner wants any.
    pub tun: Option<FarTun>,
    learned: Option<Arc<Learned>>,
    /// Of the connections that live.
    lessons: Mutex<Vec<Weak<Lesson>>>,
}

impl Shared {
    /// With no client yet.
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

    /// The client of a new connection; of too many connections the oldest is closed.
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

    /// Begins a connection with what is known of its path, if that is wanted.
    pub fn lesson(&self, connection: &Connection, key: PublicKey) -> Option<Arc<Lesson>> {
        let lesson = Lesson::of_client(connection, self.learned.clone()?, key).map(Arc::new)?;
        let mut lessons = self.lessons.lock().unwrap_or_else(PoisonError::into_inner);
        lessons.retain(|lesson| lesson.strong_count() > 0);
        lessons.push(Arc::downgrade(&lesson));
        Some(lesson)
    }

    /// What connections that live learn.
    pub fn living_lessons(&self) -> Vec<Arc<Lesson>> {
        let lessons = self.lessons.lock().unwrap_or_else(PoisonError::into_inner);
        lessons.iter().filter_map(Weak::upgrade).collect()
    }
}
