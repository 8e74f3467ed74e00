//! `ls`.

use super::{Input, ask, last_word};
use crate::frames::FileFrameReader;
use crate::message::{DirectoryEntry, EntryKind, FileFrame, FileRequest};
use crate::path::{CleanPath, check_name};
use crate::stream::Session;
use narrows_peers::error::{Error, ErrorKind, shown};

/// Memory for one listing, or for all listings of a walk, in bytes. The largest folder that our own server lists fits,
/// with names of any length.
pub(super) const MAX_LISTED_BYTES: usize = if cfg!(test) { 1 << 20 } else { 64 << 20 };
pub(super) const MAX_WALK_BYTES: usize = if cfg!(test) { 4 << 20 } else { 256 << 20 };
/// Approximate memory of an entry without its name. Also counted for entries that are not kept, so that every listing
/// ends.
const ENTRY_BYTES: usize = 64;

/// Most characters of a left-out name with its reason.
const MAX_LEFT_OUT_TEXT: usize = 400;

/// Memory that is left for listings, in bytes.
pub(super) struct ListingBudget(usize);

impl ListingBudget {
    pub fn new(bytes: usize) -> ListingBudget {
        ListingBudget(bytes)
    }

    /// Takes memory for an entry with a name or path of `text` bytes.
    ///
    /// # Errors
    /// Too little is left.
    pub fn take(&mut self, text: usize) -> Result<(), Error> {
        let line = "the server lists more files and folders than can be kept: ask for parts of it";
        self.0 = self
            .0
            .checked_sub(ENTRY_BYTES + text)
            .ok_or_else(|| Error::new(ErrorKind::Busy, line))?;
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
}

/// Lists a folder or a file.
///
/// # Errors
/// The server's, or the connection's.
pub fn list(session: &dyn Session, path: &CleanPath) -> Result<Listing, Error> {
    let (mut frames, mut output) = ask(session, &FileRequest::List { path: path.to_string() })?;
    last_word(output.as_mut());
    read_listing(&mut frames, &mut ListingBudget::new(MAX_LISTED_BYTES))
}

/// Reads the answer to LIST.
pub(super) fn read_listing(
    frames: &mut FileFrameReader<Input>,
    room: &mut ListingBudget,
) -> Result<Listing, Error> {
    let mut listing = Listing::default();
    loop {
        match frames.frame()? {
            FileFrame::Listed(entries) => {
                room.take(0)?;
                for entry in entries {
                    room.take(entry.name.len())?;
                    // Names from a server must not lead out of the local folder.
                    if entry.kind != EntryKind::LeftOut && check_name(&entry.name).is_ok() {
                        listing.entries.push(entry);
                        continue;
                    }
                    listing.hidden = listing.hidden.saturating_add(1);
                    let why = if entry.kind == EntryKind::LeftOut {
                        ""
                    } else {
                        ": no name for this end"
                    };
                    let name: String = entry.name.chars().take(MAX_LEFT_OUT_TEXT).collect();
                    listing.left_out.push(shown(&name) + why);
                }
            }
            FileFrame::ListEnd { folder, hidden } => {
                listing.folder = folder;
                listing.hidden = listing.hidden.saturating_add(hidden);
                break;
            }
            _ => return Err(Error::protocol("an unexpected answer")),
        }
    }
    listing.entries.sort_by(|a, b| a.name.cmp(&b.name));
    listing.entries.dedup_by(|a, b| a.name == b.name);
    Ok(listing)
}
