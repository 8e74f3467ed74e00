//! Answers LIST.

use super::state::{Caller, Service};
use crate::entry;
use crate::frames::{self, WaitSender};
use crate::message::{DirectoryEntry, EntryKind, FileFrame, MAX_FRAME};
use crate::mode::Mode;
use crate::path::{CleanPath, named};
use crate::stream::Output;
use cap_std::fs::Metadata;
use narrows_peers::error::{Error, ErrorKind};

/// Most left-out entries of one folder that are named; the others are only counted.
const MAX_NAMED: u64 = 1_000;
/// Most bytes of such an entry's name with the reason.
const MAX_LEFT_OUT_BYTES: usize = 480;
/// Most bytes of an entry in a LISTED frame: 17 and 2, and its name.
const MAX_ENTRY_BYTES: usize = 500;
/// Most entries of a LISTED frame.
const BATCH: usize = MAX_FRAME / MAX_ENTRY_BYTES;

/// Sends the entries in the order in which the system gives them, so that a folder of any size takes little memory.
pub(super) fn answer(
    service: &Service,
    caller: &Caller,
    path: &CleanPath,
    modes: bool,
    output: &mut dyn Output,
) -> Result<(), Error> {
    let root = &service.root;
    let what = named(path);
    let file_error = |e: std::io::Error| Error::file(&what, &e);
    let about = root.metadata(path.relative()).map_err(file_error)?;
    let mode = modes.then(|| Mode::of(&about));
    if !about.is_dir() {
        let name = path.name().unwrap_or_default();
        let kind = entry::kind(&about, false).ok_or_else(|| {
            Error::new(ErrorKind::WrongType, format!("{what}: is neither a file nor a folder"))
        })?;
        let entry = listed_entry(name, kind, &about);
        frames::write(output, &FileFrame::Listed(vec![entry]))?;
        return frames::send(output, &FileFrame::ListEnd { folder: false, hidden: 0, mode });
    }
    let dir = root.open_dir(path.relative()).map_err(file_error)?;
    let mut waiting = WaitSender::new();
    let mut entries = Vec::new();
    let mut named = 0;
    let mut hidden = 0;
    for found in dir.entries().map_err(file_error)? {
        let found = found.map_err(file_error)?;
        match entry::read(&dir, &found) {
            Ok(Some(found)) => entries.push(listed_entry(&found.name, found.kind, &found.about)),
            Ok(None) => {}
            Err(_) if named >= MAX_NAMED => hidden += 1,
            Err(line) => {
                named += 1;
                entries.push(left_out(line));
            }
        }
        if entries.len() >= BATCH {
            frames::write(output, &FileFrame::Listed(std::mem::take(&mut entries)))?;
        }
        waiting.tell(output)?;
        // Reading an entry takes about as long as moving this many bytes.
        caller.slot.moved(100);
        if let Some(e) = caller.slot.given_up() {
            return Err(e);
        }
    }
    if !entries.is_empty() {
        frames::write(output, &FileFrame::Listed(entries))?;
    }
    frames::send(output, &FileFrame::ListEnd { folder: true, hidden, mode })
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
