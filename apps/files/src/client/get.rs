//! `get` of one file.

use super::request::{ask, last_word, newest, resumable};
use super::stall::Input;
use super::summary::Summary;
use crate::frames::FileFrameReader;
use crate::message::{FileFrame, FileRequest};
use crate::partial_file::{ExistingFile, TargetFile, hash_front};
use crate::path::CleanPath;
use crate::source_file::UNASKED;
use crate::stream::Session;
use crate::transfer_control::{ProgressEvent, TransferControl};
use cap_std::fs::Dir;
use narrows_peers::error::{Error, ErrorKind, shown};

/// A file to get: its local place, and the part of it that is there.
pub(super) struct WantedFile {
    place: TargetFile,
    found: Option<ExistingFile>,
    /// Whether it may replace another file of that name.
    replace: bool,
}

/// Outcome of receiving one file.
pub(super) enum Got {
    Done(Summary),
    /// The finished local file is a different one. The given number of bytes is still to be read from the stream.
    Differs(u64),
    /// The server cannot read this file; its answer ends here.
    Refused(Error),
}

/// Gets the file `path` into `dir` under `name`, resuming an earlier attempt.
///
/// # Errors
/// The server's, the connection's or the disk's; or another file has the name and must not be replaced. On error the
/// final name is as it was before.
pub fn get(
    session: &dyn Session,
    path: &CleanPath,
    dir: &Dir,
    name: &str,
    control: &TransferControl,
) -> Result<Summary, Error> {
    newest(|modes| get_with(session, path, dir, name, modes, control))
}

/// As [`get`], with the file's permissions or without.
pub(super) fn get_with(
    session: &dyn Session,
    path: &CleanPath,
    dir: &Dir,
    name: &str,
    modes: bool,
    control: &TransferControl,
) -> Result<Summary, Error> {
    let attempt = |wanted: WantedFile| {
        control.check()?;
        let (mut frames, mut output) = ask(session, &wanted.request(path, modes))?;
        last_word(output.as_mut());
        wanted.receive(&mut frames, control)
    };
    let got = match attempt(WantedFile::look(place(dir, name)?, control)?)? {
        Got::Differs(_) => attempt(WantedFile::instead(place(dir, name)?, control)?)?,
        got => got,
    };
    match got {
        Got::Done(done) => Ok(done),
        Got::Differs(_) => Err(Error::protocol("an answer without a request")),
        Got::Refused(e) => Err(e),
    }
}

/// Whether other files may be read although this one gives such an error.
fn is_of_one_file(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::NotFound
            | ErrorKind::Denied
            | ErrorKind::WrongType
            | ErrorKind::Changed
            | ErrorKind::Remote
    )
}

pub(super) fn place(dir: &Dir, name: &str) -> Result<TargetFile, Error> {
    let dir = dir.try_clone().map_err(|e| Error::file(&shown(name), &e))?;
    TargetFile::new(dir, name)
}

impl WantedFile {
    /// Looks for a finished file, else for a partial one.
    pub fn look(place: TargetFile, control: &TransferControl) -> Result<WantedFile, Error> {
        let mut hash = |file: &mut _, max: u64, what: &str| {
            hash_front(file, max, what, &mut |_| control.check())
        };
        if !place.is_taken() {
            let found = place.partial(&mut hash)?;
            return Ok(WantedFile { place, found, replace: false });
        }
        match place.whole(&mut hash)? {
            Some(found) => Ok(WantedFile { place, found: Some(found), replace: false }),
            None => WantedFile::instead(place, control),
        }
    }

    /// As [`WantedFile::look`], with the file's size in the server's listing. Small files may have another size than
    /// their content (procfs, sysfs).
    pub fn sized(
        place: TargetFile,
        size: u64,
        control: &TransferControl,
    ) -> Result<WantedFile, Error> {
        if size > UNASKED && place.is_taken() && place.size()? != Some(size) {
            return WantedFile::instead(place, control);
        }
        WantedFile::look(place, control)
    }

    /// Another file has the name; it is replaced if the user permits that.
    ///
    /// # Errors
    /// The user does not permit it.
    pub fn instead(place: TargetFile, control: &TransferControl) -> Result<WantedFile, Error> {
        if place.is_taken() && !control.may_replace(place.name()) {
            return Err(place.exists().and("--overwrite replaces it"));
        }
        let mut hash = |file: &mut _, max: u64, what: &str| {
            hash_front(file, max, what, &mut |_| control.check())
        };
        let found = place.partial(&mut hash)?;
        Ok(WantedFile { place, found, replace: true })
    }

    /// The GET request for `path`.
    pub fn request(&self, path: &CleanPath, modes: bool) -> FileRequest {
        let held = self.found.as_ref().map(|f| f.held);
        FileRequest::Get { path: path.to_string(), held, modes }
    }

    /// Reads the answer.
    ///
    /// # Errors
    /// As [`get`].
    pub fn receive(
        self,
        frames: &mut FileFrameReader<Input>,
        control: &TransferControl,
    ) -> Result<Got, Error> {
        let WantedFile { place, found, replace } = self;
        let held = found.as_ref().map(|f| f.held);
        let first = match frames.frame() {
            Err(e) if is_of_one_file(e.kind) => return Ok(Got::Refused(e)),
            first => first?,
        };
        let (start, size, mode) = match first {
            FileFrame::Begin { start, size, mode }
                if start <= size && (start == 0 || held.is_some_and(|h| h.bytes == start)) =>
            {
                (start, size, mode)
            }
            FileFrame::Begin { .. } => {
                return Err(Error::protocol("a beginning without a request"));
            }
            _ => return Err(Error::protocol("an unexpected answer")),
        };
        let mut done = Summary { files: 1, bytes: size, held: start, ..Summary::default() };
        if let Some(held) = found.as_ref().filter(|f| f.whole).map(|f| f.held) {
            if start != size || held.bytes != size {
                return Ok(Got::Differs(size - start));
            }
            control.tell(ProgressEvent::Begin(size));
            return match frames.frame()? {
                FileFrame::End(hash) if hash == held.hash => {
                    control.tell(ProgressEvent::Held(start));
                    done.unchanged = 1;
                    Ok(Got::Done(done))
                }
                FileFrame::End(_) => {
                    Err(Error::new(ErrorKind::Corrupt, "the server contradicts itself"))
                }
                _ => Err(Error::protocol("an unexpected answer")),
            };
        }
        control.tell(ProgressEvent::Begin(size));
        let kept = place.part_name().to_string();
        let mut part = place.part(found.filter(|_| start > 0))?;
        control.tell(ProgressEvent::Held(start));
        let hash = loop {
            let step = frames.frame().and_then(|frame| match frame {
                FileFrame::Data(bytes) => {
                    let n = bytes.len() as u64;
                    if part.bytes().saturating_add(n) > size {
                        return Err(Error::protocol("more bytes than the file has"));
                    }
                    control.pass(bytes.len())?;
                    part.append(bytes)?;
                    control.tell(ProgressEvent::Moved(n));
                    done.moved += n;
                    Ok(None)
                }
                FileFrame::End(hash) => Ok(Some(hash)),
                _ => Err(Error::protocol("an unexpected frame in a file")),
            });
            match step {
                Ok(None) => {}
                Ok(Some(hash)) => break hash,
                Err(e) => return Err(resumable(e, part.bytes(), &shown(&kept))),
            }
        };
        if part.bytes() != size {
            return Err(Error::protocol("fewer bytes than the file has"));
        }
        part.finish(&hash, replace, mode)?;
        Ok(Got::Done(done))
    }
}
