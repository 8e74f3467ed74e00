//! Text files of a user: lists, keys, configurations. No file is read beyond the limit of its kind, and none that another
//! user can change.

use crate::trusted_file::{self, refused};
use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, SystemTime};

/// Limit for a file of one key or one table: 1 MB.
pub const SHORT: u64 = 1_000_000;
/// Limit for a file with a line per peer: 10 MB, more than a hundred thousand keys.
pub const LIST: u64 = 10_000_000;

/// Time between two reads of a file that another program may be writing: a hundred writes of a script.
const PAUSE: Duration = Duration::from_millis(100);
/// Most reads of such a file.
const READS: usize = 10;

/// Reads a text file of at most `max` bytes.
///
/// # Errors
/// The disk's; `InvalidData` for a longer file, one that is not UTF-8, and one that another user can change.
pub fn read(path: &Path, max: u64) -> io::Result<String> {
    Ok(read_stamped(path, max)?.1)
}

/// Reads a text file that another program may be writing: until it has text, and the next read, 100 ms later, has the
/// same. A file without text at all reads, for a second, is empty.
///
/// # Errors
/// As [`read`]; `InvalidData` for a file that changes for a second.
pub fn read_settled(path: &Path, max: u64) -> io::Result<String> {
    settled(|| read_stamped(path, max), || sleep(PAUSE))
}

/// The text of two equal reads.
pub(crate) fn settled(
    mut read: impl FnMut() -> io::Result<Stamped>,
    pause: impl Fn(),
) -> io::Result<String> {
    let mut last = read()?;
    let mut had_text = has_text(&last);
    for _ in 1..READS {
        pause();
        let next = read()?;
        had_text |= has_text(&next);
        let is_settled = next == last && has_text(&next);
        last = next;
        if is_settled {
            return Ok(last.1);
        }
    }
    // Its writer empties a file before it writes it: empty at the last read alone is not an empty list.
    if had_text {
        return Err(refused("is being written; write a file beside it and rename that (mv)"));
    }
    Ok(last.1)
}

/// When a file was written, and its text.
type Stamped = (Option<SystemTime>, String);

fn has_text(read: &Stamped) -> bool {
    !read.1.trim().is_empty()
}

fn read_stamped(path: &Path, max: u64) -> io::Result<Stamped> {
    let mut bytes = Vec::new();
    let file = trusted_file::open(path)?;
    (&file).take(max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max {
        return Err(refused(format!("is longer than {} MB", max / 1_000_000)));
    }
    let written = file.metadata()?.modified().ok();
    let text = String::from_utf8(bytes).map_err(|_| refused("is not text (UTF-8)"))?;
    Ok((written, text))
}

/// To open a file that only its owner can read: keys, and which servers this user has connected to.
pub(crate) fn private() -> OpenOptions {
    #[cfg_attr(not(unix), expect(unused_mut))]
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the folder of a file, if it is missing, for its owner alone.
pub(crate) fn private_folder(file: &Path) -> std::io::Result<()> {
    let Some(folder) = file.parent().filter(|p| !p.as_os_str().is_empty()) else { return Ok(()) };
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(folder)
}
