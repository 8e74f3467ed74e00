//! Paths of the service: names joined by `/`, always below a root, never out of it.

use crate::error::{Error, Kind, shown};
use std::fmt;

/// Bytes of a path.
pub const MAX_PATH: usize = 4096;
/// Bytes of one name in it.
pub const MAX_NAME: usize = 255;
/// Folders below one another.
pub const MAX_DEPTH: usize = 128;

/// What a file that is not yet whole is called; nobody can ask for such a name.
const PART: &str = ".narrows-part";
/// ... of an upload, behind so many digits of its owner.
const UPLOAD: &str = ".upload";
const OWNER: usize = 16;

/// A clean path below a root; empty means the root itself.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct CleanPath {
    /// Names with one `/` between two: whoever walks through folders holds many of these.
    text: String,
}

impl CleanPath {
    /// The root.
    pub fn root() -> CleanPath {
        CleanPath::default()
    }

    /// From text with `/`. A leading, doubled or last `/` says nothing.
    ///
    /// # Errors
    /// `..`, `.`, a NUL, a name or path too long, a name that is kept for partial files.
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

    /// One level deeper.
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

    /// Whether it is the root.
    pub fn is_root(&self) -> bool {
        self.text.is_empty()
    }
    /// The last name.
    pub fn name(&self) -> Option<&str> {
        self.split().map(|(_, last)| last)
    }
    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.text.split('/').filter(|n| !n.is_empty())
    }
    /// The names with `/` between them.
    pub fn as_str(&self) -> &str {
        &self.text
    }
    /// The folder that holds it, and its name there.
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
    Error::new(Kind::BadPath, format!("'{}' is not a path of this service: {why}", shown(&short)))
}

/// Whether this may be a file's name, here or at a peer.
///
/// # Errors
/// Not one name, or one that would lead elsewhere.
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

/// Streams, drives, separators, devices: what Windows reads as something else than a name.
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
    // Also where the file system takes small and capital letters for the same.
    name.len() >= PART.len()
        && name.get(name.len() - PART.len()..).is_some_and(|end| end.eq_ignore_ascii_case(PART))
}

/// Where the bytes of `name` wait until they are whole: beside it.
pub fn part_name(name: &str) -> String {
    let plain = format!(".{name}{PART}");
    if plain.len() <= MAX_NAME {
        return plain;
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    format!(".{}{PART}", hash.as_str())
}

/// Where a server keeps what `owner` puts there under `name` until it is whole.
pub fn upload_name(name: &str, owner: &[u8]) -> String {
    let owner = blake3::hash(owner).to_hex();
    let tag = format!(".{}{UPLOAD}{PART}", owner.get(..OWNER).unwrap_or_default());
    if 1 + name.len() + tag.len() <= MAX_NAME {
        return format!(".{name}{tag}");
    }
    format!(".{}{tag}", blake3::hash(name.as_bytes()).to_hex().as_str())
}

/// In a folder that a transfer made or found empty, until everything is there.
pub const UNFINISHED_FOLDER: &str = PART;

/// Whether the service itself keeps a file of this name for a while.
pub fn is_own(name: &str) -> bool {
    name == UNFINISHED_FOLDER || is_upload(name)
}

/// Whether a name is that of a partial upload at a server.
pub fn is_upload(name: &str) -> bool {
    is_part(name) && name.get(..name.len() - PART.len()).is_some_and(|n| n.ends_with(UPLOAD))
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
