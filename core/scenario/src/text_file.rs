//! Reads text files named by a user, if they are regular files of bounded length.

use narrows_base::SpecError;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

static PROVIDED: Mutex<BTreeMap<PathBuf, String>> = Mutex::new(BTreeMap::new());

/// Sets the text of a file for a program without a file system: [`read`] returns it for this path.
pub fn provide(path: impl Into<PathBuf>, text: &str) {
    let mut provided = PROVIDED.lock().unwrap_or_else(PoisonError::into_inner);
    provided.insert(path.into(), text.to_string());
}

/// The text of a file of at most `max` bytes; `what` is the kind of file in messages.
///
/// # Errors
/// One line: it cannot be read, is no regular file (a device may have no end, and a pipe may never begin), is too long,
/// or is not UTF-8.
pub fn read(path: &Path, max: u64, what: &str) -> Result<String, SpecError> {
    let shown = path.display();
    let cannot = |e: std::io::Error| {
        SpecError::new(format!("cannot read the {what} '{shown}': {}", plain(&e)))
    };
    let refused = |why: &str| SpecError::new(format!("the {what} '{shown}' {why}"));
    let provided = PROVIDED.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned();
    if let Some(text) = provided.filter(|text| text.len() as u64 <= max) {
        return Ok(text);
    }
    // Before it is opened: opening a pipe waits for a writer.
    let found = std::fs::metadata(path).map_err(cannot)?;
    if found.is_dir() {
        return Err(refused("is a folder, not a file"));
    }
    if !found.is_file() {
        return Err(refused("is not a regular file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(cannot)?;
    file.take(max.saturating_add(1)).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() as u64 > max {
        let size = if max < 1_000_000 {
            format!("{} kB", max / 1000)
        } else {
            format!("{} MB", max / 1_000_000)
        };
        return Err(refused(&format!("is longer than {size}")));
    }
    String::from_utf8(bytes).map_err(|_| refused("is not text (UTF-8)"))
}

/// The error of a file operation, without the operating system's error number.
pub fn plain(e: &std::io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_of_bounded_length_are_read() {
        let refused =
            |path: &str, max| read(Path::new(path), max, "trace").unwrap_err().to_string();
        assert!(refused("/dev/zero", 10).contains("'/dev/zero' is not a regular file"));
        assert!(refused("/", 10).contains("is a folder"));
        assert!(refused("/no/such/file", 10).contains("no such file"));
        let own = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
        assert!(refused(own, 10).contains("longer than"));
        assert!(read(Path::new(own), 1_000_000, "trace").unwrap().contains("narrows-scenario"));
    }
}
