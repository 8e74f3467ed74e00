//! `ls`.

use super::request::{ask, last_word};
use super::stall::Input;
use crate::frames::FileFrameReader;
use crate::message::{DirectoryEntry, EntryKind, FileFrame, FileRequest};
use crate::mode::Mode;
use crate::path::{CleanPath, check_name};
use crate::stream::Session;
use narrows_peers::error::{Error, ErrorKind, shown};

/// Memory for one listing, or for all listings of a walk, in bytes.
pub(super) const MAX_WALK_BYTES: u64 = if cfg!(test) { 4 << 20 } else { 256 << 20 };
/// Most bytes of listings, counted in the same way, whose entries are compared and not kept.
pub(super) const MAX_COMPARED_BYTES: u64 = if cfg!(test) { 4 << 20 } else { 4 << 30 };
/// Approximate memory of an entry without its name. Also counted for entries that are not kept, so that every listing
/// ends.
const ENTRY_BYTES: u64 = 64;

/// Most characters of a left-out name with its reason.
const MAX_LEFT_OUT_TEXT: usize = 400;

/// Memory that is left for listings, in bytes.
pub(super) struct ListingBudget(u64);

impl ListingBudget {
    pub fn new(bytes: u64) -> ListingBudget {
        ListingBudget(bytes)
    }

    /// Takes memory for an entry with a name or path of `text` bytes.
    ///
    /// # Errors
    /// Too little is left.
    pub fn take(&mut self, text: usize) -> Result<(), Error> {
        let line = "more files and folders than can be kept: get, put or list parts of it";
        self.0 = self
            .0
            .checked_sub(ENTRY_BYTES + text as u64)
            .ok_or_else(|| Error::new(ErrorKind::TooLarge, line))?;
        Ok(())
    }
}

/// The entries at a path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Listing {
    /// Entries sorted by name; of a file, the file itself.
    pub entries: Vec<DirectoryEntry>,
    /// Whether the path is a folder.
    pub folder: bool,
    /// Number of entries left out by the server, or refused here for their names.
    pub hidden: u64,
    /// Names of left-out entries with the reasons, as far as the server sent them.
    pub left_out: Vec<String>,
    /// Permissions of the folder, if they were requested.
    pub mode: Option<Mode>,
}

/// Lists a folder or a file.
///
/// # Errors
/// The server's, or the connection's.
pub fn list(session: &dyn Session, path: &CleanPath) -> Result<Listing, Error> {
    let request = FileRequest::List { path: path.to_string(), modes: false };
    let (mut frames, mut output) = ask(session, &request)?;
    last_word(output.as_mut());
    read_listing(&mut frames, &mut ListingBudget::new(MAX_WALK_BYTES))
}

/// Reads the answer to LIST.
pub(super) fn read_listing(
    frames: &mut FileFrameReader<Input>,
    room: &mut ListingBudget,
) -> Result<Listing, Error> {
    let mut entries = Vec::new();
    let mut left_out = Vec::new();
    let end = read_entries(frames, room, |entry| {
        // Names from a server must not lead out of the local folder.
        if entry.kind != EntryKind::LeftOut && check_name(&entry.name).is_ok() {
            entries.push(entry);
            return;
        }
        let why = if entry.kind == EntryKind::LeftOut { "" } else { ": no name for this end" };
        let name: String = entry.name.chars().take(MAX_LEFT_OUT_TEXT).collect();
        left_out.push(shown(&name) + why);
    })?;
    entries.sort_by(|a: &DirectoryEntry, b| a.name.cmp(&b.name));
    entries.dedup_by(|a, b| a.name == b.name);
    let hidden = end.hidden.saturating_add(left_out.len() as u64);
    Ok(Listing { entries, folder: end.folder, hidden, left_out, mode: end.mode })
}

/// The end of a listing, with its counts.
pub(super) struct ListingEnd {
    folder: bool,
    hidden: u64,
    mode: Option<Mode>,
}

/// Reads the answer to LIST, and passes on each entry.
pub(super) fn read_entries(
    frames: &mut FileFrameReader<Input>,
    room: &mut ListingBudget,
    mut each: impl FnMut(DirectoryEntry),
) -> Result<ListingEnd, Error> {
    loop {
        match frames.frame()? {
            FileFrame::Listed(entries) => {
                room.take(0)?;
                for entry in entries {
                    room.take(entry.name.len())?;
                    each(entry);
                }
            }
            FileFrame::ListEnd { folder, hidden, mode } => {
                return Ok(ListingEnd { folder, hidden, mode });
            }
            _ => return Err(Error::protocol("an unexpected answer")),
        }
    }
}
