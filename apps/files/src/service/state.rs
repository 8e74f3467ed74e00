//! A served folder: its permissions and limits, its clients, and the log of its requests.

use super::caps::Caps;
use super::quota::Quota;
use super::sweep::sweep;
use super::uploads::Uploads;
use crate::hashing::Hashing;
use crate::requests::{IDLE, MAX_REQUESTS, MAX_RUNNING, RequestSource, Requests, SlotView};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use narrows_base::Rate;
use narrows_peers::access::AllowList;
use narrows_peers::error::{Error, shown};
use narrows_wire::noise::PublicKey;
use std::fmt;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

/// Permissions and limits of a service.
#[derive(Default)]
pub struct Permits {
    /// Whether clients may upload files under new names.
    pub put: bool,
    /// Whether uploads may replace existing files.
    pub overwrite: bool,
    /// Most bytes of an uploaded file; unlimited if `None`.
    pub max_size: Option<u64>,
    /// Most bytes in the folder, uploads included; unlimited if `None`.
    pub quota: Option<u64>,
    /// Most bytes per second of a client, over all of its connections and in both directions together.
    pub rate: Option<Rate>,
    /// Admitted clients; all if `None`.
    pub clients: Option<AllowList>,
}

impl Caller {
    pub(super) fn is_given_up(&self) -> bool {
        self.slot.given_up().is_some()
    }
}

/// One answered request, for a log.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnsweredRequest {
    /// Address of the client.
    pub from: String,
    /// `get`, `put`, `ls`, `mkdir`, `tune`.
    pub what: &'static str,
    /// Path below the root.
    pub path: String,
    /// File bytes moved.
    pub bytes: u64,
    /// Time from the request until the transport took the last byte of the answer, some of which it may still hold.
    pub took: Duration,
    /// Error text and kind; `None` after success.
    pub failed: Option<Error>,
    /// A failed upload was read to its end.
    pub(super) over: bool,
}

impl AnsweredRequest {
    /// An event of a client, without a request yet.
    pub fn new(from: &str) -> AnsweredRequest {
        let what = "?";
        let path = String::new();
        let took = Duration::ZERO;
        AnsweredRequest {
            from: from.to_string(),
            what,
            path,
            bytes: 0,
            took,
            failed: None,
            over: false,
        }
    }

    /// A request that was never answered.
    pub fn refused(from: &str, e: Error) -> AnsweredRequest {
        AnsweredRequest { failed: Some(e), ..AnsweredRequest::new(from) }
    }
}

/// Most characters of a path in the log.
pub const PATH_SHOWN: usize = 300;

impl fmt::Display for AnsweredRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        let path: String = self.path.chars().take(PATH_SHOWN).collect();
        write!(f, "{} {} /{}", self.from, self.what, shown(&path))?;
        match &self.failed {
            Some(e) => {
                write!(f, ": {} (after {} bytes, {seconds:.1} s)", shown(&e.line), self.bytes)
            }
            None => write!(f, ": {} bytes, {seconds:.1} s", self.bytes),
        }
    }
}

/// The client of a request.
#[derive(Clone)]
#[non_exhaustive]
pub struct Caller {
    /// The client's public key.
    pub key: PublicKey,
    /// The client's address, for the log.
    pub from: String,
    /// The scopes that its requests count for.
    pub source: RequestSource,
    /// The slot of the current request.
    pub slot: SlotView,
    /// The request came as early data, which may arrive a second time on another connection.
    pub is_early: bool,
}

/// A folder that is served.
pub struct Service {
    pub(super) root: Dir,
    pub(super) permits: RwLock<Arc<Permits>>,
    pub(super) uploads: Uploads,
    pub(super) quota: Quota,
    pub(super) caps: Caps,
    pub(super) hashing: Hashing,
    pub(super) requests: Arc<Requests>,
    pub(super) log: Box<dyn Fn(&AnsweredRequest) + Send + Sync>,
}

impl Service {
    /// Serves this folder.
    ///
    /// # Errors
    /// It is not a folder, or cannot be read.
    pub fn new(
        root: &Path,
        permits: Permits,
        log: impl Fn(&AnsweredRequest) + Send + Sync + 'static,
    ) -> Result<Service, Error> {
        let what = root.display().to_string();
        let dir =
            Dir::open_ambient_dir(root, ambient_authority()).map_err(|e| Error::file(&what, &e))?;
        // A folder that opens may still refuse to be listed.
        dir.entries().map_err(|e| Error::file(&what, &e))?;
        let quota = Quota::new(permits.quota);
        let caps = Caps::default();
        caps.set(permits.rate);
        let uploads = Uploads::default();
        let hashing = Hashing::default();
        let requests = Requests::new(MAX_REQUESTS, MAX_RUNNING, IDLE);
        let log = Box::new(log);
        let may_put = permits.put;
        let permits = RwLock::new(Arc::new(permits));
        let service = Service { root: dir, permits, uploads, quota, caps, hashing, requests, log };
        if may_put {
            service.sweep();
        }
        Ok(service)
    }

    /// Requests give way only after this time without bytes.
    #[cfg(test)]
    pub(crate) fn giving_way_after(self, idle: std::time::Duration) -> Service {
        Service { requests: Requests::new(MAX_REQUESTS, MAX_RUNNING, idle), ..self }
    }

    /// The permissions and limits in force.
    pub fn permits(&self) -> Arc<Permits> {
        self.permits.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Replaces permissions and limits. Requests of clients that are no longer admitted end; others go on.
    pub fn set_permits(&self, permits: Permits) {
        let permits = Arc::new(permits);
        self.quota.limit(permits.quota);
        self.caps.set(permits.rate);
        let before = {
            let mut current = self.permits.write().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *current, permits.clone())
        };
        if permits.put && (!before.put || before.quota.is_none() && permits.quota.is_some()) {
            self.sweep();
        }
        if let Some(list) = &permits.clients {
            self.requests.end_others(|key| list.holds(key));
        }
    }

    /// Whether this client is admitted.
    pub fn admits(&self, client: &PublicKey) -> bool {
        self.permits().clients.as_ref().is_none_or(|list| list.holds(client))
    }

    /// The scopes that a client's requests count for.
    pub fn source(&self, address: Option<IpAddr>, client: Option<PublicKey>) -> RequestSource {
        let permits = self.permits();
        let listed =
            client.is_some_and(|key| permits.clients.as_ref().is_some_and(|l| l.holds(&key)));
        RequestSource::new(address, client, listed)
    }

    /// Removes abandoned partial uploads, and measures the folder if there is a quota; runs from time to time.
    pub fn sweep(&self) {
        let before = self.quota.used();
        let found = sweep(&self.root, SystemTime::now());
        self.quota.measured(found, before);
    }

    /// The requests of all clients, over all transports.
    pub fn requests(&self) -> &Arc<Requests> {
        &self.requests
    }

    /// Passes an event to the log.
    pub fn tell(&self, event: &AnsweredRequest) {
        (self.log)(event);
    }
}
