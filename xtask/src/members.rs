//! The folders of the workspace's crates.

use crate::files::entries;
use std::path::{Path, PathBuf};

/// The three floors, from the lowest. A crate depends on its own floor and those below.
pub const FLOORS: [&str; 3] = ["core", "papers", "apps"];

/// Every crate of the floors, the Python package's and the developers'.
pub fn folders(root: &Path) -> Result<Vec<PathBuf>, String> {
    let mut folders = vec![root.join("python"), root.join("xtask")];
    for floor in FLOORS {
        folders.extend(entries(&root.join(floor))?);
    }
    folders.sort();
    Ok(folders)
}
