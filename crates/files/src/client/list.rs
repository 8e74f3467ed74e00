//! `ls`.

use super::{Input, ask, last_word};
use crate::error::{Error, Kind};
use crate::frames::Frames;
use crate::message::{DirectoryEntry, Frame, Request};
use crate::path::{CleanPath, check_name};
use crate::stream::Session;

/// Entries that a client takes of one folder.
const MAX_ENTRIES: usize = 1_000_000;

/// What is at a path.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// Entries, sorted by name; of a file the file itself.
    pub entries: Vec<DirectoryEntry>,
    /// Whether it is a folder.
    pub folder: bool,
    /// Entries that the server left out, or whose names are refused here.
    pub hidden: u64,
}

/// Lists a folder or a file.
///
/// # Errors
/// The server's, or the connection's.
pub fn list(session: &dyn Session, path: &CleanPath) -> Result<Listing, Error> {
    let (mut frames, mut output) = ask(session, &Request::List { path: path.to_string() })?;
    last_word(output.as_mut());
    read_listing(&mut frames)
}

/// Reads the answer to LIST.
pub(super) fn read_listing(frames: &mut Frames<Input>) -> Result<Listing, Error> {
    let mut listing = Listing::default();
    loop {
        match frames.frame()? {
            Frame::Listed(entries) => {
                for entry in entries {
                    // What a server calls its files shall lead nowhere here.
                    match check_name(&entry.name) {
                        Ok(()) => listing.entries.push(entry),
                        Err(_) => listing.hidden += 1,
                    }
                }
                if listing.entries.len() > MAX_ENTRIES {
                    return Err(Error::new(Kind::Busy, "the folder has too many entries"));
                }
            }
            Frame::ListEnd { folder, hidden } => {
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
