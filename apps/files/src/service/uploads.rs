//! Running uploads. Of two uploads of one path by the same client the newer one continues: the older usually belongs to
//! a client that died, and its connection has not timed out yet.

use crate::partial_file::PartialFile;
use crate::path::{CleanPath, named};
use narrows_peers::error::{Error, ErrorKind};
use narrows_wire::noise::PublicKey;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// An upload keeps other clients from putting the same path until this time after its last byte.
const CLAIM: Duration = Duration::from_secs(30);

/// The partial file of a running upload; taking it ends that upload.
type Slot = Arc<Mutex<Option<PartialFile>>>;

struct Upload {
    slot: Slot,
    moved: Instant,
}

/// Running uploads by path and client.
#[derive(Default)]
pub(super) struct Uploads(Mutex<BTreeMap<(CleanPath, PublicKey), Upload>>);

/// Removes the upload from the list at its end.
pub(super) struct RunningUpload<'u> {
    uploads: &'u Uploads,
    name: (CleanPath, PublicKey),
    slot: Slot,
}

impl Uploads {
    pub(super) fn begin(
        &self,
        path: &CleanPath,
        key: PublicKey,
    ) -> Result<RunningUpload<'_>, Error> {
        let slot = Slot::default();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_path = all.range((path.clone(), [0; 32])..=(path.clone(), [255; 32]));
        let mut others = of_path.filter(|((_, other), _)| *other != key);
        if others.any(|(_, upload)| upload.moved.elapsed() < CLAIM) {
            let line = "another client is putting this file now; try again later, or another name";
            return Err(Error::new(ErrorKind::Busy, format!("{}: {line}", named(path))));
        }
        let name = (path.clone(), key);
        let upload = Upload { slot: Arc::clone(&slot), moved: Instant::now() };
        let before = all.insert(name.clone(), upload);
        drop(all);
        if let Some(older) = before {
            // Closes the older upload's file, and so unlocks it.
            drop(older.slot.lock().unwrap_or_else(PoisonError::into_inner).take());
        }
        Ok(RunningUpload { uploads: self, name, slot })
    }
}

impl RunningUpload<'_> {
    /// Whether no newer upload took over; if so, records its progress.
    fn is_newest(&self) -> bool {
        let mut all = self.uploads.0.lock().unwrap_or_else(PoisonError::into_inner);
        let newest = all.get_mut(&self.name).filter(|u| Arc::ptr_eq(&u.slot, &self.slot));
        newest.map(|upload| upload.moved = Instant::now()).is_some()
    }

    pub(super) fn hold(&self, part: PartialFile) -> Result<(), Error> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_newest() {
            return Err(superseded(&self.name.0));
        }
        *slot = Some(part);
        Ok(())
    }

    pub(super) fn with<T>(&self, work: impl FnOnce(&mut PartialFile) -> T) -> Result<T, Error> {
        self.is_newest();
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.as_mut().map(work).ok_or_else(|| superseded(&self.name.0))
    }

    pub(super) fn take(&self) -> Result<PartialFile, Error> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.take().ok_or_else(|| superseded(&self.name.0))
    }
}

impl Drop for RunningUpload<'_> {
    fn drop(&mut self) {
        // Check and remove under one lock: in between a newer upload could take the place.
        let mut all = self.uploads.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(&self.name).is_some_and(|u| Arc::ptr_eq(&u.slot, &self.slot)) {
            all.remove(&self.name);
        }
    }
}

fn superseded(path: &CleanPath) -> Error {
    Error::new(ErrorKind::Superseded, format!("{}: a newer upload took over", named(path)))
}
