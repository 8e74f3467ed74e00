//! The server: answers requests, confined to one folder.

pub(crate) mod caps;
mod get;
mod list;
mod put;
mod quota;
mod sweep;

pub(crate) use put::UNASKED;

use crate::frames::{self, FileFrameReader};
use crate::hashing::Hashing;
use crate::message::{FileFrame, FileRequest, Tuning};
use crate::mode::make_folder;
use crate::path::CleanPath;
use crate::requests::{
    IDLE, MAX_REQUESTS, MAX_RUNNING, RequestSlot, RequestSource, Requests, SlotView, watched,
};
use crate::stream::{FileStream, Output};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use narrows_base::Rate;
use narrows_peers::access::AllowList;
use narrows_peers::error::{Error, ErrorKind, shown};
use narrows_wire::noise::PublicKey;
use quota::Quota;
use std::fmt;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};

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

/// Where the next request begins after one that failed.
enum ResumePoint {
    /// Directly behind the failed one.
    Request,
    /// Behind the upload that may follow, of at most this many bytes.
    Skip(u64),
    /// The stream cannot continue.
    Nothing,
}

impl Caller {
    fn is_given_up(&self) -> bool {
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
    over: bool,
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

/// Access to the transport of a request.
pub trait RequestChannel {
    /// Applies the client's hints and controller as far as possible. Returns the controller in use and the measurements
    /// of the path.
    fn tune(&self, tuning: &Tuning) -> Tuning;
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
    root: Dir,
    permits: RwLock<Arc<Permits>>,
    uploads: put::Uploads,
    quota: Quota,
    caps: caps::Caps,
    hashing: Hashing,
    requests: Arc<Requests>,
    log: Box<dyn Fn(&AnsweredRequest) + Send + Sync>,
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
        let caps = caps::Caps::default();
        caps.set(permits.rate);
        let uploads = put::Uploads::default();
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
        let found = sweep::sweep(&self.root, SystemTime::now());
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

    /// Answers the requests of a stream without the limits of [`Requests`].
    pub fn answer(
        &self,
        client: &PublicKey,
        from: &str,
        stream: FileStream,
        link: &dyn RequestChannel,
    ) {
        let slot = RequestSlot::unlimited();
        let source = self.source(None, Some(*client));
        let slot = slot.view();
        let from = from.to_string();
        let caller = Caller { key: *client, from, source, slot, is_early: false };
        self.converse(&caller, None, stream, link);
    }

    /// Answers `first` and the requests that follow on its stream. Errors go to the client and to the log.
    pub fn converse(
        &self,
        caller: &Caller,
        mut first: Option<FileRequest>,
        stream: FileStream,
        link: &dyn RequestChannel,
    ) {
        let cap = self.caps.of(caller.source.narrowest());
        let FileStream { input, mut output } = watched(stream, &caller.slot, &cap);
        let mut frames = FileFrameReader::new(input);
        loop {
            let mut event = AnsweredRequest::new(&caller.from);
            let request = match first.take() {
                Some(request) => Ok(Some(request)),
                None => frames::request(frames.input()),
            };
            // A stream waits for its next request for any time.
            let begun = Instant::now();
            let done = match request {
                Ok(None) => break,
                Ok(Some(request)) => {
                    self.one(caller, request, &mut frames, output.as_mut(), &mut event, link)
                }
                // A client that is gone, or resets its stream, is not logged.
                Err(e) if e.kind == ErrorKind::Cut && !caller.is_given_up() => break,
                Err(e) => Err((e, ResumePoint::Nothing)),
            };
            event.took = begun.elapsed();
            event.failed = done.as_ref().err().map(|(e, _)| e.clone());
            if event.what != "tune" {
                (self.log)(&event);
            }
            if let Err((e, next)) = done
                && self.refuse(caller, e, next, &mut frames, output.as_mut()).is_err()
            {
                return;
            }
        }
        let _ = output.finish();
    }

    /// Sends an error, and moves the stream to the next request.
    fn refuse(
        &self,
        caller: &Caller,
        e: Error,
        next: ResumePoint,
        frames: &mut FileFrameReader<Box<dyn Read + Send>>,
        output: &mut dyn Output,
    ) -> Result<(), Error> {
        let is_given_up = caller.is_given_up();
        if is_given_up || matches!(e.kind, ErrorKind::Cut | ErrorKind::Interrupted) {
            // A frame may be incomplete.
            output.abort(&e);
            return Err(e);
        }
        let sent = frames::send(output, &FileFrame::Error(e.clone()));
        let after = match next {
            ResumePoint::Request => Ok(()),
            ResumePoint::Skip(bytes) => frames.skip(bytes),
            ResumePoint::Nothing => Err(e),
        };
        if sent.is_err() || after.is_err() {
            let _ = output.finish();
        }
        sent.and(after)
    }

    fn one(
        &self,
        caller: &Caller,
        request: FileRequest,
        frames: &mut FileFrameReader<Box<dyn Read + Send>>,
        output: &mut dyn Output,
        event: &mut AnsweredRequest,
        link: &dyn RequestChannel,
    ) -> Result<(), (Error, ResumePoint)> {
        let (what, path) = match &request {
            FileRequest::List { path, .. } => ("ls", path),
            FileRequest::Get { path, .. } => ("get", path),
            FileRequest::Put { path, .. } => ("put", path),
            FileRequest::MakeFolder { path, .. } => ("mkdir", path),
            FileRequest::Tune(tuning) => ("tune", &tuning.controller),
        };
        event.what = what;
        event.path = path.clone();
        let next = match &request {
            FileRequest::Put { size, .. } => ResumePoint::Skip(*size),
            _ => ResumePoint::Request,
        };
        if !self.admits(&caller.key) {
            return Err((refused(&caller.key), ResumePoint::Nothing));
        }
        if caller.is_early && !request.is_repeatable() {
            let line = "a request that changes something came as early data, which may come twice";
            return Err((Error::protocol(line), ResumePoint::Nothing));
        }
        let done = self.answered(caller, request, frames, output, event, link);
        done.map_err(|e| {
            let next = match e.kind {
                // After a malformed message the next request cannot be found.
                ErrorKind::Protocol | ErrorKind::Cut | ErrorKind::Interrupted => {
                    ResumePoint::Nothing
                }
                _ if event.over => ResumePoint::Request,
                _ => next,
            };
            (e, next)
        })
    }

    fn answered(
        &self,
        caller: &Caller,
        request: FileRequest,
        frames: &mut FileFrameReader<Box<dyn Read + Send>>,
        output: &mut dyn Output,
        event: &mut AnsweredRequest,
        link: &dyn RequestChannel,
    ) -> Result<(), Error> {
        if let FileRequest::Tune(tuning) = &request {
            return frames::send(output, &FileFrame::Tuned(link.tune(tuning)));
        }
        let path = CleanPath::read(&event.path)?;
        match request {
            FileRequest::Tune(_) => Ok(()),
            FileRequest::List { modes, .. } => list::answer(self, caller, &path, modes, output),
            FileRequest::Get { held, modes, .. } => {
                let wanted = get::WantedPart { held, modes };
                get::answer(self, caller, &path, &wanted, output, &mut event.bytes)
            }
            FileRequest::Put { size, mode, .. } => {
                self.may_put()?;
                let file = put::AnnouncedFile { size, mode };
                put::answer(self, caller, &path, &file, frames, output, event)
            }
            FileRequest::MakeFolder { mode, .. } => {
                self.may_put()?;
                self.quota.take(self.missing(&path).saturating_mul(quota::NAME_BYTES))?;
                make_folder(&self.root, &path, mode).map_err(|e| Error::file(&named(&path), &e))?;
                frames::send(output, &FileFrame::Done)
            }
        }
    }

    /// Number of folders that would have to be created for this one.
    fn missing(&self, path: &CleanPath) -> u64 {
        let mut at = std::path::PathBuf::from(".");
        let mut rest = path.names();
        while let Some(name) = rest.next() {
            at.push(name);
            if self.root.symlink_metadata(&at).is_err() {
                return 1 + rest.count() as u64;
            }
        }
        0
    }

    fn may_put(&self) -> Result<(), Error> {
        if self.permits().put {
            return Ok(());
        }
        let line = "this server takes no files; its owner can start it with --allow-put";
        Err(Error::new(ErrorKind::ReadOnly, line))
    }
}

/// The error for a client that is not on the list.
pub fn refused(client: &PublicKey) -> Error {
    let key = narrows_peers::key::text(client);
    Error::new(
        ErrorKind::Refused,
        format!(
            "the server does not admit this client; its owner can add the key {key} to its list"
        ),
    )
}

/// A path in the form of a request.
fn named(path: &CleanPath) -> String {
    format!("/{}", shown(&path.to_string()))
}
