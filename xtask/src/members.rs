//! The folders of the workspace's crates.

use std::path::{Path, PathBuf};

/// The three floors, from the lowest. A crate depends on its own floor and those below.
pub const FLOORS: [&str; 3] = ["core", "papers", "apps"];

/// Every crate of the floors, the Python package's and the developers'.
pub fn folders(root: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut folders = vec![root.join("python"), root.join("xtask")];
    for floor in FLOORS {
        for entry in std::fs::read_dir(root.join(floor))? {
            folders.push(entry?.path());
        }
    }
    folders.sort();
    Ok(folders)
}
