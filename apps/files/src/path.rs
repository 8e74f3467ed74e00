//! Paths of the service: names joined by `/`, always below a root, never out of it.

use narrows_peers::error::{Error, ErrorKind, shown};
use std::fmt;

/// Most bytes of a path.
pub const MAX_PATH: usize = 4096;
/// Most bytes of one name in a path.
pub const MAX_NAME: usize = 255;
/// Most names in a path.
pub const MAX_DEPTH: usize = 128;

/// Suffix of partial files; requests with such names are refused.
const PART: &str = ".narrows-part";
/// Ends the name of a partial upload, before [`PART`] and after [`OWNER`] hexadecimal digits of its owner's hash.
const UPLOAD: &str = ".upload";
const OWNER: usize = 16;

/// A clean path below a root; empty means the root itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct CleanPath {
    /// Names joined by `/`, in one string: walks through folders hold many of these.
    text: String,
}

impl CleanPath {
    /// The empty path.
    pub fn root() -> CleanPath {
        CleanPath::default()
    }

    /// Parses a path. A leading, doubled or trailing `/` is ignored.
    ///
    /// # Errors
    /// `..`, `.`, a NUL, a name or path that is too long, a name that is reserved for partial files.
    pub fn read(text: &str) -> Result<CleanPath, Error> {
        if text.len() > MAX_PATH {
            return Err(bad(text, "it is longer than 4096 bytes"));
        }
        let mut clean = String::with_capacity(text.len());
        let mut depth = 0;
        for name in text.split('/').filter(|n| !n.is_empty()) {
            check_name(name)?;
            if !clean.is_empty() {
                clean.push('/');
            }
            clean.push_str(name);
            depth += 1;
        }
        if depth > MAX_DEPTH {
            return Err(bad(text, "it has more than 128 folders"));
        }
        Ok(CleanPath { text: clean })
    }

    /// The path of an entry in this folder.
    ///
    /// # Errors
    /// As [`CleanPath::read`].
    pub fn join(&self, name: &str) -> Result<CleanPath, Error> {
        check_name(name)?;
        let text = if self.is_root() { name.to_string() } else { format!("{}/{name}", self.text) };
        let path = CleanPath { text };
        if path.names().count() > MAX_DEPTH || path.text.len() > MAX_PATH {
            return Err(bad(&path.text, "it is too long or too deep"));
        }
        Ok(path)
    }

    /// Whether the path has no names.
    pub fn is_root(&self) -> bool {
        self.text.is_empty()
    }
    /// The last name; `None` for the root.
    pub fn name(&self) -> Option<&str> {
        self.split().map(|(_, last)| last)
    }
    /// The names from the root down.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.text.split('/').filter(|n| !n.is_empty())
    }
    /// The names with `/` between them.
    pub fn as_str(&self) -> &str {
        &self.text
    }
    /// The parent folder, and the name in it; `None` for the root.
    pub fn split(&self) -> Option<(CleanPath, &str)> {
        let (before, last) = match self.text.rsplit_once('/') {
            Some(parted) => parted,
            None if self.is_root() => return None,
            None => ("", self.text.as_str()),
        };
        Some((CleanPath { text: before.to_string() }, last))
    }
    /// For the file system, relative to the root.
    pub fn relative(&self) -> std::path::PathBuf {
        if self.is_root() { ".".into() } else { self.names().collect() }
    }
}

impl fmt::Display for CleanPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

fn bad(text: &str, why: &str) -> Error {
    let mut short: String = text.chars().take(80).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    Error::new(
        ErrorKind::BadPath,
        format!("'{}' is not a path of this service: {why}", shown(&short)),
    )
}

/// Checks that this is one valid file name, here and at a peer.
///
/// # Errors
/// The name is empty, reserved, too long, or would lead elsewhere.
pub fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name == "." || name == ".." {
        return Err(bad(name, "no name is empty, '.' or '..'"));
    }
    if name.len() > MAX_NAME {
        return Err(bad(name, "a name has at most 255 bytes"));
    }
    if name.contains(['/', '\0']) {
        return Err(bad(name, "no name holds '/' or NUL"));
    }
    if is_part(name) {
        return Err(bad(name, "names that end in .narrows-part are partial transfers"));
    }
    if cfg!(windows) && !windows_takes(name) {
        return Err(bad(name, "this system has no such names"));
    }
    Ok(())
}

/// Streams, drives, separators, devices: names with a special meaning on Windows.
fn windows_takes(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end().to_ascii_uppercase();
    let device = matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || ((stem.starts_with("COM") || stem.starts_with("LPT")) && stem.chars().count() == 4);
    !device
        && !name.ends_with(['.', ' '])
        && !name.contains(|c: char| c < ' ' || "\\:*?\"<>|".contains(c))
}

/// Whether a name is that of a partial transfer.
pub fn is_part(name: &str) -> bool {
    // Also on file systems that ignore case.
    name.len() >= PART.len()
        && name.get(name.len() - PART.len()..).is_some_and(|end| end.eq_ignore_ascii_case(PART))
}

/// Name of the partial file of `name`, in the same folder.
pub fn part_name(name: &str) -> String {
    let plain = format!(".{name}{PART}");
    if plain.len() <= MAX_NAME {
        return plain;
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!(".{}{PART}", hash.as_str())
}

/// Name of the partial file that a server keeps for `owner`'s upload of `name`.
pub fn upload_name(name: &str, owner: &[u8]) -> String {
    let owner = blake3::hash(owner).to_hex();
    let tag = format!(".{}{UPLOAD}{PART}", owner.get(..OWNER).unwrap_or_default());
    if 1 + name.len() + tag.len() <= MAX_NAME {
        return format!(".{name}{tag}");
    }
    format!(".{}{tag}", blake3::hash(name.as_bytes()).to_hex().as_str())
}

/// Marker file in a folder that a transfer created or found empty, until the transfer is complete.
pub const UNFINISHED_FOLDER: &str = PART;

/// Whether the name is reserved for the service's temporary files.
pub fn is_own(name: &str) -> bool {
    name == UNFINISHED_FOLDER || is_upload(name)
}

/// Whether a name is that of a partial upload at a server.
pub fn is_upload(name: &str) -> bool {
    is_part(name) && name.get(..name.len() - PART.len()).is_some_and(|n| n.ends_with(UPLOAD))
}

/// A path in the form of a request.
pub(crate) fn named(path: &CleanPath) -> String {
    format!("/{}", narrows_peers::error::shown(&path.to_string()))
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
