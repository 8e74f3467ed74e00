//! The server: answers requests, confined to one folder.

pub(crate) mod caps;
mod get;
mod list;
mod put;
mod quota;
mod state;
mod sweep;
mod uploads;

pub use state::{AnsweredRequest, Caller, PATH_SHOWN, Permits, Service};

use crate::frames::{self, FileFrameReader};
use crate::message::{FileFrame, FileRequest, Tuning};
use crate::mode::make_folder;
use crate::path::{CleanPath, named};
use crate::requests::{RequestSlot, watched};
use crate::stream::{FileStream, Output};
use narrows_peers::error::{Error, ErrorKind};
use narrows_wire::noise::PublicKey;
use std::io::Read;
use std::time::Instant;

/// Where the next request begins after one that failed.
enum ResumePoint {
    /// Directly behind the failed one.
    Request,
    /// Behind the upload that may follow, of at most this many bytes.
    Skip(u64),
    /// The stream cannot continue.
    Nothing,
}

/// Access to the transport of a request.
pub trait RequestChannel {
    /// Applies the client's hints and controller as far as possible. Returns the controller in use and the measurements
    /// of the path.
    fn tune(&self, tuning: &Tuning) -> Tuning;
}

impl Service {
    /// Answers the requests of a stream without the limits of `Requests`.
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
