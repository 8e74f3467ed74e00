//! PUT. Of two uploads of the same file the newer one goes on: the older is most often one whose
//! client died and whose connection does not know it yet.

use super::{Service, named};
use crate::error::{Error, Kind};
use crate::frames::{self, Frames, Waiting, while_waiting};
use crate::hold::{Part, Place};
use crate::message::{Frame, Held};
use crate::path::CleanPath;
use crate::stream::Output;
use std::collections::BTreeMap;
use std::io::Read;
use std::sync::{Arc, Mutex, PoisonError};

/// The partial file of a running upload; whoever takes it ends that upload.
type Slot = Arc<Mutex<Option<Part>>>;

/// Uploads that are running, by path.
#[derive(Default)]
pub(super) struct Uploads(Mutex<BTreeMap<CleanPath, Slot>>);

/// Takes the upload off the list at its end.
struct Running<'u> {
    uploads: &'u Uploads,
    path: CleanPath,
    slot: Slot,
}

impl Uploads {
    fn begin(&self, path: &CleanPath) -> Running<'_> {
        let slot = Slot::default();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = all.insert(path.clone(), Arc::clone(&slot));
        drop(all);
        if let Some(older) = before {
            // Its file is closed with this, and so unlocked.
            drop(older.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        Running { uploads: self, path: path.clone(), slot }
    }
}

impl Running<'_> {
    /// Whether no newer one took over.
    fn is_newest(&self) -> bool {
        let all = self.uploads.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(&self.path).is_some_and(|s| Arc::ptr_eq(s, &self.slot))
    }

    fn hold(&self, part: Part) -> Result<(), Error> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_newest() {
            return Err(superseded(&self.path));
        }
        *slot = Some(part);
        Ok(())
    }

    fn with<T>(&self, work: impl FnOnce(&mut Part) -> T) -> Result<T, Error> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_mut().map(work).ok_or_else(|| superseded(&self.path))
    }

    fn take(&self) -> Result<Part, Error> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take().ok_or_else(|| superseded(&self.path))
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if self.is_newest() {
            let mut all = self.uploads.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.remove(&self.path);
        }
    }
}

fn superseded(path: &CleanPath) -> Error {
    Error::new(Kind::Superseded, format!("{}: a newer upload took over", named(path)))
}

pub(super) fn answer(
    service: &Service,
    path: &CleanPath,
    size: u64,
    input: &mut (dyn Read + Send),
    output: &mut dyn Output,
    taken: &mut u64,
) -> Result<(), Error> {
    let Some((folder, name)) = path.split() else {
        let line = "the root is a folder: add the file's name to the address";
        return Err(Error::new(Kind::WrongType, line));
    };
    let dir = service.root.open_dir(folder.relative()).map_err(|e| {
        let e = Error::file(&named(&folder), &e);
        if e.kind == Kind::NotFound { e.and("put into a folder that exists") } else { e }
    })?;
    let running = service.uploads.begin(path);
    let place = Place::new(dir, name)?;
    let mut waiting = Waiting::new();
    let at = |e: Error| if folder.is_root() { e } else { e.at(&named(&folder)) };
    let found = place.found(&mut |_| waiting.tell(&mut *output)).map_err(at)?;
    let whole = found.as_ref().is_some_and(|f| f.whole);
    let held = found.as_ref().map_or(nothing(), |f| f.held);
    frames::send(output, &Frame::Holding { held, whole })?;

    let mut frames = Frames::new(input);
    let start = match frames.frame()? {
        Frame::Start(at) if at == 0 || (at == held.bytes && at <= size) => at,
        _ => return Err(Error::protocol("an upload that begins nowhere")),
    };
    if whole && start > 0 {
        // The file is here already, whole: nothing is to be written.
        if start != size {
            return Err(Error::protocol("an upload that adds to a finished file"));
        }
        return match frames.frame()? {
            Frame::End(hash) if hash == held.hash => frames::send(output, &Frame::Done),
            _ => Err(Error::protocol("an upload that ends in another file")),
        };
    }
    let part = place.part(found.filter(|_| start > 0)).map_err(at)?;
    running.hold(part)?;
    let hash = loop {
        match frames.frame()? {
            Frame::Data(bytes) => {
                let n = bytes.len() as u64;
                running.with(|part| {
                    if part.bytes().saturating_add(n) > size {
                        return Err(Error::protocol("more bytes than the file has"));
                    }
                    part.append(bytes)
                })??;
                *taken += n;
            }
            Frame::End(hash) => break hash,
            _ => return Err(Error::protocol("an unexpected frame in an upload")),
        }
    };
    let part = running.take()?;
    if part.bytes() != size {
        return Err(Error::protocol("fewer bytes than the file has"));
    }
    while_waiting(output, move || part.finish(&hash))?.map_err(at)?;
    frames::send(output, &Frame::Done)
}

fn nothing() -> Held {
    Held { bytes: 0, hash: *blake3::hash(b"").as_bytes() }
}
