//! The machine's processes, by `/proc`.

use std::os::unix::fs::MetadataExt as _;
use std::{fs, io};

/// Whether a process, or a thread of it, still has files.
pub fn is_alive(pid: i32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(") ").map_or("X", |(_, rest)| rest);
    threads > 1 || !state.starts_with(['Z', 'X'])
}

/// Every process and the inode of its network namespace.
pub fn processes() -> io::Result<Vec<(i32, u64)>> {
    let all = fs::read_dir("/proc")?.flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let inode = fs::metadata(entry.path().join("ns/net")).ok()?.ino();
        Some((pid, inode))
    });
    Ok(all.collect())
}
