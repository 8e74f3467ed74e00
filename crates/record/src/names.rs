//! Names of the files.

use crate::recording::MAX_CONNECTIONS;
use std::io;
use std::path::{Path, PathBuf};

/// The datagrams.
pub const PACKETS: &str = "packets.pcapng";

/// The events of connection `number`, from 1.
pub fn events(folder: &Path, number: usize) -> PathBuf {
    folder.join(format!("connection-{number}.sqlog"))
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
