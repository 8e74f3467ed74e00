//! Names of the files.

use crate::recording::MAX_CONNECTIONS;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// The datagrams.
pub const PACKETS: &str = "packets.pcapng";

/// The events of connection `number`, from 1.
pub fn events(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("connection-{number}.sqlog"))
}

/// Makes a file anew. What has its name is removed and not written through: a link leads elsewhere.
pub fn fresh(path: &Path) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => File::create_new(path),
    }
}

/// Removes an earlier recording's connections, which this one might not write over.
pub fn remove_old(folder: &Path) -> io::Result<()> {
    for number in 1..=MAX_CONNECTIONS {
        match std::fs::remove_file(events(folder, number)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn a_link_is_replaced_and_not_written_through() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        std::fs::write(at("precious"), "kept").unwrap();
        std::os::unix::fs::symlink(at("precious"), at("symbolic")).unwrap();
        std::fs::hard_link(at("precious"), at("hard")).unwrap();
        for name in ["symbolic", "hard", "new"] {
            fresh(&at(name)).unwrap().write_all(b"packets").unwrap();
            assert_eq!(std::fs::read_to_string(at(name)).unwrap(), "packets");
        }
        assert_eq!(std::fs::read_to_string(at("precious")).unwrap(), "kept");
    }
}
