//! LIST.

use super::{Caller, Service, named};
use crate::error::{Error, Kind};
use crate::frames;
use crate::message::{DirectoryEntry, EntryKind, Frame, MAX_FRAME};
use crate::path::{CleanPath, check_name};
use crate::stream::Output;
use cap_std::fs::Metadata;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Entries of one folder.
pub const MAX_ENTRIES: usize = 200_000;

/// Entries of all listings that are made at the same time.
const MAX_LISTED: usize = 400_000;

/// Entries of a listing under way; gone with it.
struct Listed<'s> {
    all: &'s AtomicUsize,
    ours: usize,
}

impl Listed<'_> {
    fn one_more(&mut self) -> Result<(), Error> {
        self.ours += 1;
        if self.all.fetch_add(1, Ordering::Relaxed) < MAX_LISTED {
            return Ok(());
        }
        Err(crate::requests::busy())
    }
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.ours, Ordering::Relaxed);
    }
}

pub(super) fn answer(
    service: &Service,
    caller: &Caller,
    path: &CleanPath,
    output: &mut dyn Output,
) -> Result<(), Error> {
    let (root, what) = (&service.root, named(path));
    let mut listed = Listed { all: &service.listed, ours: 0 };
    let file_error = |e: std::io::Error| Error::file(&what, &e);
    let about = root.metadata(path.relative()).map_err(file_error)?;
    if !about.is_dir() {
        let name = path.name().unwrap_or_default();
        let entry = entry(name, &about, false).ok_or_else(|| {
            Error::new(Kind::WrongType, format!("{what}: is neither a file nor a folder"))
        })?;
        frames::write(output, &Frame::Listed(vec![entry]))?;
        return frames::send(output, &Frame::ListEnd { folder: false, hidden: 0 });
    }
    let dir = root.open_dir(path.relative()).map_err(file_error)?;
    let (mut entries, mut hidden) = (Vec::new(), 0);
    for found in dir.entries().map_err(file_error)? {
        let found = found.map_err(file_error)?;
        let name = found.file_name();
        let Some(name) = name.to_str() else {
            hidden += 1;
            continue;
        };
        if crate::path::is_part(name) {
            continue;
        }
        let link = found.file_type().is_ok_and(|t| t.is_symlink());
        // A link is what it leads to, if that is below the root; else it is not there.
        let about = if link { dir.metadata(name) } else { found.metadata() };
        let shown = about.ok().filter(|_| check_name(name).is_ok());
        match shown.and_then(|about| entry(name, &about, link)) {
            Some(entry) => {
                listed.one_more()?;
                entries.push(entry);
            }
            None => hidden += 1,
        }
        // To look at an entry is work, as long as that of moving some bytes.
        caller.slot.moved(100);
        if let Some(e) = caller.slot.given_up() {
            return Err(e);
        }
        if entries.len() > MAX_ENTRIES {
            let line = format!("{what}: has more than {MAX_ENTRIES} entries, which is too many");
            return Err(Error::new(Kind::Busy, line));
        }
    }
    entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    // An entry has at most 17 + 2 + 255 bytes.
    for batch in entries.chunks(MAX_FRAME / 300) {
        frames::write(output, &Frame::Listed(batch.to_vec()))?;
    }
    frames::send(output, &Frame::ListEnd { folder: true, hidden })
}

fn entry(name: &str, about: &Metadata, link: bool) -> Option<DirectoryEntry> {
    let kind = match (about.is_dir(), about.is_file()) {
        (true, _) if link => EntryKind::FolderLink,
        (true, _) => EntryKind::Folder,
        (_, true) => EntryKind::File,
        _ => return None,
    };
    let modified = about
        .modified()
        .ok()
        .and_then(|t| t.into_std().duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |d| d.as_secs() as i64);
    let size = if about.is_file() { about.len() } else { 0 };
    Some(DirectoryEntry { kind, size, modified, name: name.to_string() })
}
