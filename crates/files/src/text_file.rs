//! Text files of a user: lists, keys, configurations. None is read further than its kind can be long.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

/// A file of one key or one table: 1 MB.
pub const SHORT: u64 = 1_000_000;
/// A file with a line for each peer: 10 MB, more than a hundred thousand keys.
pub const LIST: u64 = 10_000_000;

/// The text of a file of at most `max` bytes; of a device or a pipe no more is read, either.
///
/// # Errors
/// The disk's; `InvalidData` for a longer file, or one that is not UTF-8.
pub fn read(path: &Path, max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    let refused = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    if bytes.len() as u64 > max {
        return Err(refused(format!("is longer than {} MB", max / 1_000_000)));
    }
    String::from_utf8(bytes).map_err(|_| refused("is not text (UTF-8)".into()))
}
