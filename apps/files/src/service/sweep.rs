//! Walks the served folder: removes abandoned partial uploads and counts the rest.

use super::quota::NAME_BYTES;
use crate::path::is_upload;
use cap_std::fs::{Dir, Metadata};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

/// Age after the last write at which a partial upload is removed.
pub(super) const LASTS: Duration = Duration::from_secs(7 * 24 * 3600);
/// Deepest level of folders that is walked.
const DEPTH: usize = 128;

/// Removes abandoned partial uploads; returns the bytes that everything else counts. Links are not followed.
pub(super) fn sweep(root: &Dir, now: SystemTime) -> u64 {
    let mut bytes: u64 = 0;
    let mut folders = vec![(PathBuf::from("."), 0)];
    while let Some((folder, level)) = folders.pop() {
        let Ok(dir) = root.open_dir(&folder) else { continue };
        let Ok(entries) = dir.entries() else { continue };
        for entry in entries.flatten() {
            let Ok(about) = entry.metadata() else { continue };
            let name = entry.file_name();
            bytes = bytes.saturating_add(NAME_BYTES);
            if about.is_dir() && level < DEPTH {
                folders.push((folder.join(&name), level + 1));
            } else if about.is_file() {
                let partial = name.to_str().is_some_and(is_upload);
                if partial && is_old(&about, now) && dir.remove_file(&name).is_ok() {
                    bytes -= NAME_BYTES;
                    continue;
                }
                bytes = bytes.saturating_add(about.len());
            }
        }
    }
    bytes
}

fn is_old(about: &Metadata, now: SystemTime) -> bool {
    let changed = about.modified().map(|t| t.into_std());
    changed.is_ok_and(|t| now.duration_since(t).is_ok_and(|age| age >= LASTS))
}
