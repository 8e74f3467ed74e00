//! Text files of a user: lists, keys, configurations. No file is read beyond the limit of its kind, and none that another
//! user can change.

use crate::trusted_file;
use std::io::{self, Read as _};
use std::path::Path;

/// Limit for a file of one key or one table: 1 MB.
pub const SHORT: u64 = 1_000_000;
/// Limit for a file with a line per peer: 10 MB, more than a hundred thousand keys.
pub const LIST: u64 = 10_000_000;

/// Reads a text file of at most `max` bytes.
///
/// # Errors
/// The disk's; `InvalidData` for a longer file, one that is not UTF-8, and one that another user can change.
pub fn read(path: &Path, max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    trusted_file::open(path)?.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(refused(format!("is longer than {} MB", max / 1_000_000)));
    }
    String::from_utf8(bytes).map_err(|_| refused("is not text (UTF-8)"))
}

/// The file is not accepted.
pub(crate) fn refused(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}
