//! `get` of one file.

use super::{Summary, ask, last_word, resumable};
use crate::error::{Error, Kind, shown};
use crate::go::{Go, Step};
use crate::hold::{Found, Place};
use crate::message::{Frame, Request};
use crate::path::CleanPath;
use crate::stream::Session;
use cap_std::fs::Dir;

/// Gets the file `path` into `dir` under `name`, going on where an earlier attempt ended.
///
/// # Errors
/// The server's, the connection's, the disk's. Nothing is under the final name then that was not
/// there before.
pub fn get(
    session: &dyn Session,
    path: &CleanPath,
    dir: &Dir,
    name: &str,
    go: &Go,
) -> Result<Summary, Error> {
    let place = |dir: &Dir| {
        let dir = dir.try_clone().map_err(|e| Error::file(&shown(name), &e))?;
        Place::new(dir, name)
    };
    let found = place(dir)?.found(&mut |_| go.check())?;
    match attempt(session, path, place(dir)?, found, go)? {
        Some(done) => Ok(done),
        // The finished file is the beginning of a longer one, which comes from its first byte:
        // the old one stays in its place until then.
        None => attempt(session, path, place(dir)?, None, go)?
            .ok_or_else(|| Error::protocol("an answer to what was not asked")),
    }
}

fn attempt(
    session: &dyn Session,
    path: &CleanPath,
    place: Place,
    found: Option<Found>,
    go: &Go,
) -> Result<Option<Summary>, Error> {
    go.check()?;
    let held = found.as_ref().map(|f| f.held);
    let whole = found.as_ref().is_some_and(|f| f.whole);
    let request = Request::Get { path: path.to_string(), held };
    let (mut frames, mut output) = ask(session, &request)?;
    last_word(output.as_mut());
    let (start, size) = match frames.frame()? {
        Frame::Begin { start, size }
            if start <= size && (start == 0 || held.is_some_and(|h| h.bytes == start)) =>
        {
            (start, size)
        }
        Frame::Begin { .. } => return Err(Error::protocol("a beginning nobody asked for")),
        _ => return Err(Error::protocol("an unexpected answer")),
    };
    go.tell(Step::Begin(size));
    let mut done = Summary { files: 1, bytes: size, held: start, ..Summary::default() };
    if let Some(held) = held.filter(|_| whole && (start > 0 || size == 0)) {
        if start < size || held.bytes != size {
            return Ok(None);
        }
        return match frames.frame()? {
            Frame::End(hash) if hash == held.hash => {
                go.tell(Step::Held(start));
                done.unchanged = 1;
                Ok(Some(done))
            }
            Frame::End(_) => Err(Error::new(Kind::Corrupt, "the server contradicts itself")),
            _ => Err(Error::protocol("an unexpected answer")),
        };
    }
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
    part.finish(&hash)?;
    Ok(Some(done))
}
