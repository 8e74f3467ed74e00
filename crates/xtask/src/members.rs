//! The folders of the workspace's crates.

use std::path::{Path, PathBuf};

/// Every crate of `crates`, and the Python package's.
pub fn folders(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut folders = vec![root.join("python")];
    for entry in std::fs::read_dir(root.join("crates"))? {
        folders.push(entry?.path());
    }
    folders.sort();
    Ok(folders)
}
