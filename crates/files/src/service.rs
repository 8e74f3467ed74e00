//! The server: answers one request per stream, below one folder and never out of it.

mod get;
mod list;
mod put;

use crate::access::AllowList;
use crate::error::{Error, Kind, shown};
use crate::frames;
use crate::message::{Frame, Request, Wishes};
use crate::path::CleanPath;
use crate::stream::{Output, Stream};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use narrows_wire::noise::PublicKey;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

/// What a service permits.
#[derive(Default)]
pub struct Permits {
    /// Whether clients may leave files here.
    pub put: bool,
    /// Who may come; without it everybody.
    pub clients: Option<AllowList>,
}

/// One answered request, for a log.
#[derive(Clone, Debug)]
pub struct Event {
    /// Where the client is.
    pub from: String,
    /// `get`, `put`, `ls`, `mkdir`, `tune`.
    pub what: &'static str,
    /// Path below the root.
    pub path: String,
    /// Bytes of files that were moved.
    pub bytes: u64,
    /// How long it took.
    pub took: Duration,
    /// Why it failed, if it did.
    pub failed: Option<String>,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.took.as_secs_f64();
        write!(f, "{} {} /{}", self.from, self.what, shown(&self.path))?;
        match &self.failed {
            Some(why) => write!(f, ": {why} (after {} bytes, {seconds:.1} s)", self.bytes),
            None => write!(f, ": {} bytes, {seconds:.1} s", self.bytes),
        }
    }
}

/// The transport under a request, as far as the service has to do with it.
pub trait Link {
    /// Sends from now on as the client would have it, as far as that is possible; says with what,
    /// and what is known of the path.
    fn tune(&self, wishes: &Wishes) -> Wishes;
}

/// A folder that is served.
pub struct Service {
    root: Dir,
    permits: Permits,
    uploads: put::Uploads,
    log: Box<dyn Fn(&Event) + Send + Sync>,
}

impl Service {
    /// Serves this folder.
    ///
    /// # Errors
    /// It is no folder, or may not be read.
    pub fn new(
        root: &Path,
        permits: Permits,
        log: impl Fn(&Event) + Send + Sync + 'static,
    ) -> Result<Service, Error> {
        let what = root.display().to_string();
        let dir =
            Dir::open_ambient_dir(root, ambient_authority()).map_err(|e| Error::file(&what, &e))?;
        // A folder may open and still not let itself be listed.
        dir.entries().map_err(|e| Error::file(&what, &e))?;
        Ok(Service { root: dir, permits, uploads: put::Uploads::default(), log: Box::new(log) })
    }

    /// Who may come; without a list everybody.
    pub fn clients(&self) -> Option<&AllowList> {
        self.permits.clients.as_ref()
    }

    /// Whether this client may come at all.
    pub fn admits(&self, client: &PublicKey) -> bool {
        self.permits.clients.as_ref().is_none_or(|list| list.holds(client))
    }

    /// Answers the one request of a stream. What fails is told to the client and the log.
    pub fn answer(&self, client: &PublicKey, from: &str, stream: Stream, link: &dyn Link) {
        let Stream { mut input, mut output } = stream;
        let begun = Instant::now();
        let mut event = Event {
            from: from.to_string(),
            what: "?",
            path: String::new(),
            bytes: 0,
            took: Duration::ZERO,
            failed: None,
        };
        let done = match frames::request(&mut input) {
            Ok(None) => return,
            Ok(Some(request)) => {
                self.answered(client, request, &mut input, output.as_mut(), &mut event, link)
            }
            Err(e) => Err(e),
        };
        if let Err(e) = done {
            event.failed = Some(e.line.clone());
            if !matches!(e.kind, Kind::Cut | Kind::Interrupted) {
                // If it cannot be told, the client sees a cut connection.
                let _ = frames::send(output.as_mut(), &Frame::Error(e));
            }
        }
        let _ = output.finish();
        event.took = begun.elapsed();
        if event.what != "tune" {
            (self.log)(&event);
        }
    }

    fn answered(
        &self,
        client: &PublicKey,
        request: Request,
        input: &mut (dyn std::io::Read + Send),
        output: &mut dyn Output,
        event: &mut Event,
        link: &dyn Link,
    ) -> Result<(), Error> {
        let (what, path) = match &request {
            Request::List { path } => ("ls", path),
            Request::Get { path, .. } => ("get", path),
            Request::Put { path, .. } => ("put", path),
            Request::MakeFolder { path } => ("mkdir", path),
            Request::Tune(wishes) => ("tune", &wishes.controller),
        };
        (event.what, event.path) = (what, path.clone());
        if !self.admits(client) {
            return Err(refused(client));
        }
        if let Request::Tune(wishes) = &request {
            return frames::send(output, &Frame::Tuned(link.tune(wishes)));
        }
        let path = CleanPath::read(path)?;
        match request {
            Request::Tune(_) => Ok(()),
            Request::List { .. } => list::answer(&self.root, &path, output),
            Request::Get { held, .. } => {
                get::answer(&self.root, &path, held, output, &mut event.bytes)
            }
            Request::Put { size, .. } => {
                self.may_put()?;
                put::answer(self, &path, size, input, output, &mut event.bytes)
            }
            Request::MakeFolder { .. } => {
                self.may_put()?;
                self.root
                    .create_dir_all(path.relative())
                    .map_err(|e| Error::file(&named(&path), &e))?;
                frames::send(output, &Frame::Done)
            }
        }
    }

    fn may_put(&self) -> Result<(), Error> {
        if self.permits.put {
            return Ok(());
        }
        let line = "this server takes no files; its owner can start it with --allow-put";
        Err(Error::new(Kind::ReadOnly, line))
    }
}

/// What a client that is not on the list is told.
pub fn refused(client: &PublicKey) -> Error {
    let key = crate::key::text(client);
    Error::new(
        Kind::Refused,
        format!(
            "the server does not admit this client; its owner can add the key {key} to its list"
        ),
    )
}

/// A path as clients wrote it.
fn named(path: &CleanPath) -> String {
    format!("/{}", shown(&path.to_string()))
}
