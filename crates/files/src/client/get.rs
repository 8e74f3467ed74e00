//! `get` of one file.

use super::{Input, Summary, ask, last_word, resumable};
use crate::error::{Error, Kind, shown};
use crate::frames::Frames;
use crate::go::{Go, Step};
use crate::hold::{Found, Place, hash_front};
use crate::message::{Frame, Request};
use crate::path::CleanPath;
use crate::stream::Session;
use cap_std::fs::Dir;

/// A file that is asked for: where it is to be, and what is there.
pub(super) struct Wanted {
    place: Place,
    found: Option<Found>,
    /// Whether it may take a name that another file has.
    replace: bool,
}

/// What came of it.
pub(super) enum Got {
    Done(Summary),
    /// A finished file that is there is not this one. So many bytes of this one still come.
    Differs(u64),
}

/// Gets the file `path` into `dir` under `name`, going on where an earlier attempt ended.
///
/// # Errors
/// The server's, the connection's, the disk's; or another file has the name and is not to be replaced.
/// Nothing is under the final name then that was not there before.
pub fn get(
    session: &dyn Session,
    path: &CleanPath,
    dir: &Dir,
    name: &str,
    go: &Go,
) -> Result<Summary, Error> {
    let wanted = Wanted::look(place(dir, name)?, go)?;
    if let Got::Done(done) = attempt(session, path, wanted, go)? {
        return Ok(done);
    }
    let wanted = Wanted::instead(place(dir, name)?, go)?;
    match attempt(session, path, wanted, go)? {
        Got::Done(done) => Ok(done),
        Got::Differs(_) => Err(Error::protocol("an answer to what was not asked")),
    }
}

pub(super) fn place(dir: &Dir, name: &str) -> Result<Place, Error> {
    let dir = dir.try_clone().map_err(|e| Error::file(&shown(name), &e))?;
    Place::new(dir, name)
}

impl Wanted {
    /// What is at a place: a finished file, or else a partial one.
    pub fn look(place: Place, go: &Go) -> Result<Wanted, Error> {
        let mut hash =
            |file: &mut _, most: u64, what: &str| hash_front(file, most, what, &mut |_| go.check());
        if !place.is_taken() {
            let found = place.partial(&mut hash)?;
            return Ok(Wanted { place, found, replace: false });
        }
        match place.whole(&mut hash)? {
            Some(found) => Ok(Wanted { place, found: Some(found), replace: false }),
            None => Wanted::instead(place, go),
        }
    }

    /// The same, of a file that is known to have this size there.
    pub fn sized(place: Place, size: u64, go: &Go) -> Result<Wanted, Error> {
        if place.is_taken() && place.size()? != Some(size) {
            return Wanted::instead(place, go);
        }
        Wanted::look(place, go)
    }

    /// Another file is there: this one may take its name if the user wants that.
    ///
    /// # Errors
    /// He does not.
    pub fn instead(place: Place, go: &Go) -> Result<Wanted, Error> {
        if place.is_taken() && !go.may_replace(place.name()) {
            return Err(place.exists().and("--overwrite replaces it"));
        }
        let mut hash =
            |file: &mut _, most: u64, what: &str| hash_front(file, most, what, &mut |_| go.check());
        let found = place.partial(&mut hash)?;
        Ok(Wanted { place, found, replace: true })
    }

    /// The request for it.
    pub fn request(&self, path: &CleanPath) -> Request {
        Request::Get { path: path.to_string(), held: self.found.as_ref().map(|f| f.held) }
    }

    /// Takes the answer.
    ///
    /// # Errors
    /// As [`get`].
    pub fn receive(self, frames: &mut Frames<Input>, go: &Go) -> Result<Got, Error> {
        let Wanted { place, found, replace } = self;
        let held = found.as_ref().map(|f| f.held);
        let (start, size) = match frames.frame()? {
            Frame::Begin { start, size }
                if start <= size && (start == 0 || held.is_some_and(|h| h.bytes == start)) =>
            {
                (start, size)
            }
            Frame::Begin { .. } => return Err(Error::protocol("a beginning nobody asked for")),
            _ => return Err(Error::protocol("an unexpected answer")),
        };
        let mut done = Summary { files: 1, bytes: size, held: start, ..Summary::default() };
        if let Some(held) = found.as_ref().filter(|f| f.whole).map(|f| f.held) {
            if start != size || held.bytes != size {
                return Ok(Got::Differs(size - start));
            }
            go.tell(Step::Begin(size));
            return match frames.frame()? {
                Frame::End(hash) if hash == held.hash => {
                    go.tell(Step::Held(start));
                    done.unchanged = 1;
                    Ok(Got::Done(done))
                }
                Frame::End(_) => Err(Error::new(Kind::Corrupt, "the server contradicts itself")),
                _ => Err(Error::protocol("an unexpected answer")),
            };
        }
        go.tell(Step::Begin(size));
        let kept = place.part_name().to_string();
        let mut part = place.part(found.filter(|_| start > 0))?;
        go.tell(Step::Held(start));
        let hash = loop {
            let step = frames.frame().and_then(|frame| match frame {
                Frame::Data(bytes) => {
                    let n = bytes.len() as u64;
                    if part.bytes().saturating_add(n) > size {
                        return Err(Error::protocol("more bytes than the file has"));
                    }
                    go.pass(n)?;
                    part.append(bytes)?;
                    go.tell(Step::Moved(n));
                    done.moved += n;
                    Ok(None)
                }
                Frame::End(hash) => Ok(Some(hash)),
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
        part.finish(&hash, replace)?;
        Ok(Got::Done(done))
    }
}

fn attempt(session: &dyn Session, path: &CleanPath, wanted: Wanted, go: &Go) -> Result<Got, Error> {
    go.check()?;
    let (mut frames, mut output) = ask(session, &wanted.request(path))?;
    last_word(output.as_mut());
    wanted.receive(&mut frames, go)
}
