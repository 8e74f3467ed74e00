//! Names of the files.

use crate::recording::MAX_CONNECTIONS;
use std::io;
use std::path::{Path, PathBuf};

/// The ends that a recording may have.
const ENDS: [&str; 5] = ["client", "server", "clients", "a", "b"];

/// The packets of the first end.
pub fn packets(folder: &Path) -> PathBuf {
    folder.join("packets.pcapng")
}

/// The packets of another end.
pub fn packets_of(folder: &Path, end: &str) -> PathBuf {
    folder.join(format!("packets-{end}.pcapng"))
}

/// The events of connection `number`, from 1.
pub fn events(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("connection-{number}.sqlog"))
}

/// Removes an earlier recording's connections and ends, which this one might not write over.
pub fn remove_old(folder: &Path) -> io::Result<()> {
    let ends = ENDS.iter().map(|end| packets_of(folder, end));
    for old in (1..=MAX_CONNECTIONS).map(|number| events(folder, number)).chain(ends) {
        match std::fs::remove_file(old) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    Ok(())
}
