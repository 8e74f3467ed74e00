//! Answers LIST.

use super::{Caller, Service, named};
use crate::entry;
use crate::frames;
use crate::message::{DirectoryEntry, EntryKind, FileFrame, MAX_FRAME};
use crate::path::CleanPath;
use crate::requests::{IDLE, SlotView};
use crate::stream::Output;
use cap_std::fs::Metadata;
use narrows_peers::error::{Error, ErrorKind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Most entries of one folder.
pub const MAX_ENTRIES: usize = if cfg!(test) { 2_000 } else { 200_000 };

/// Most left-out entries of one folder that are named; the others are only counted.
const MAX_NAMED: u64 = 1_000;
/// Most bytes of such an entry's name with the reason.
const MAX_LEFT_OUT_BYTES: usize = 480;
/// Most bytes of an entry in a LISTED frame: 17 and 2, and its name.
const MAX_ENTRY_BYTES: usize = 500;

/// Most entries of all concurrent listings.
const MAX_LISTED: usize = 2 * MAX_ENTRIES;

/// A listing that is being sent must move this many bytes per second, or gives way when another needs its memory.
const MIN_BYTES_PER_S: f64 = 1000.0;

/// Entries of the concurrent listings.
#[derive(Default)]
pub(super) struct Listings {
    entries: AtomicUsize,
    sent: Mutex<Vec<SentListing>>,
}

/// A complete listing that is being sent.
struct SentListing {
    view: SlotView,
    /// Time of the last check, and the bytes moved by then.
    looked: Instant,
    moved: u64,
}

impl SentListing {
    /// Whether the listing stalled since the last check; false if that was less than [`IDLE`] ago.
    fn stands_still(&mut self) -> bool {
        let (passed, moved) = (self.looked.elapsed(), self.view.bytes());
        if passed < IDLE {
            return false;
        }
        let least = MIN_BYTES_PER_S * passed.as_secs_f64();
        let stands_still = (moved.saturating_sub(self.moved) as f64) < least;
        (self.looked, self.moved) = (Instant::now(), moved);
        stands_still
    }
}

impl Listings {
    /// Number of entries that they hold.
    #[cfg(test)]
    pub fn entries(&self) -> usize {
        self.entries.load(Ordering::Relaxed)
    }

    fn sent(&self) -> MutexGuard<'_, Vec<SentListing>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Revokes the slots of stalled listings, so that a later request finds memory.
    fn make_room(&self) {
        let still = |sent: &mut SentListing| sent.stands_still().then(|| sent.view.clone());
        let views: Vec<SlotView> = self.sent().iter_mut().filter_map(still).collect();
        views.iter().for_each(SlotView::give_way);
    }
}

/// Entries of a concurrent listing; dropping it releases them.
struct OpenListing<'s> {
    all: &'s Listings,
    ours: usize,
    view: SlotView,
}

impl OpenListing<'_> {
    fn one_more(&mut self) -> Result<(), Error> {
        self.ours += 1;
        if self.all.entries.fetch_add(1, Ordering::Relaxed) < MAX_LISTED {
            return Ok(());
        }
        self.all.make_room();
        Err(crate::requests::busy())
    }

    /// The listing is complete and is being sent.
    fn is_sent(&self) {
        let (view, moved) = (self.view.clone(), self.view.bytes());
        self.all.sent().push(SentListing { view, looked: Instant::now(), moved });
    }
}

impl Drop for OpenListing<'_> {
    fn drop(&mut self) {
        self.all.sent().retain(|sent| !sent.view.is_of(&self.view));
        self.all.entries.fetch_sub(self.ours, Ordering::Relaxed);
    }
}

pub(super) fn answer(
    service: &Service,
    caller: &Caller,
    path: &CleanPath,
    output: &mut dyn Output,
) -> Result<(), Error> {
    let (root, what) = (&service.root, named(path));
    let mut listed = OpenListing { all: &service.listings, ours: 0, view: caller.slot.clone() };
    let file_error = |e: std::io::Error| Error::file(&what, &e);
    let about = root.metadata(path.relative()).map_err(file_error)?;
    if !about.is_dir() {
        let name = path.name().unwrap_or_default();
        let kind = entry::kind(&about, false).ok_or_else(|| {
            Error::new(ErrorKind::WrongType, format!("{what}: is neither a file nor a folder"))
        })?;
        let entry = listed_entry(name, kind, &about);
        frames::write(output, &FileFrame::Listed(vec![entry]))?;
        return frames::send(output, &FileFrame::ListEnd { folder: false, hidden: 0 });
    }
    let dir = root.open_dir(path.relative()).map_err(file_error)?;
    let (mut entries, mut named, mut hidden) = (Vec::new(), 0, 0);
    for found in dir.entries().map_err(file_error)? {
        let found = found.map_err(file_error)?;
        let one = match entry::read(&dir, &found) {
            Ok(Some(found)) => Some(listed_entry(&found.name, found.kind, &found.about)),
            Ok(None) => None,
            Err(_) if named >= MAX_NAMED => {
                hidden += 1;
                None
            }
            Err(line) => {
                named += 1;
                Some(left_out(line))
            }
        };
        if let Some(one) = one {
            listed.one_more()?;
            entries.push(one);
        }
        // Reading an entry takes about as long as moving this many bytes.
        caller.slot.moved(100);
        if let Some(e) = caller.slot.given_up() {
            return Err(e);
        }
        if entries.len() > MAX_ENTRIES {
            let line = format!("{what}: has more than {MAX_ENTRIES} entries, which is too many");
            return Err(Error::new(ErrorKind::Busy, line));
        }
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    listed.is_sent();
    for batch in entries.chunks(MAX_FRAME / MAX_ENTRY_BYTES) {
        frames::write(output, &FileFrame::Listed(batch.to_vec()))?;
    }
    frames::send(output, &FileFrame::ListEnd { folder: true, hidden })
}

fn listed_entry(name: &str, kind: EntryKind, about: &Metadata) -> DirectoryEntry {
    let modified = about
        .modified()
        .ok()
        .and_then(|t| t.into_std().duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |d| d.as_secs() as i64);
    let size = if about.is_file() { about.len() } else { 0 };
    DirectoryEntry { kind, size, modified, name: name.to_string() }
}

fn left_out(mut line: String) -> DirectoryEntry {
    let at = (0..=MAX_LEFT_OUT_BYTES.min(line.len())).rev().find(|at| line.is_char_boundary(*at));
    line.truncate(at.unwrap_or(0));
    DirectoryEntry { kind: EntryKind::LeftOut, size: 0, modified: 0, name: line }
}
