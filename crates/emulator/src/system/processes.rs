//! The machine's processes, by `/proc`.

use std::os::unix::fs::MetadataExt as _;
use std::{fs, io};

/// A process and where it comes from.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    pub id: i32,
    pub parent: i32,
    /// In clock ticks since the system was started: no other process of this id has the same.
    pub started: u64,
    /// No thread of it has files any more; only its status is left.
    pub has_ended: bool,
}

/// What is known of a process, if there is one.
pub fn process(id: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // proc_pid_stat(5): the name, in parentheses, may have any characters. Behind it are the fields from the third on.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let (threads, started) = (fields.nth(15)?, fields.nth(1)?.parse().ok()?);
    let has_ended = state.starts_with(['Z', 'X']) && matches!(threads, "0" | "1");
    Some(Process { id, parent, started, has_ended })
}

/// Whether a process, or a thread of it, still has files.
pub fn is_alive(pid: i32) -> bool {
    process(pid).is_some_and(|p| !p.has_ended)
}

/// The ids of all processes.
fn ids() -> io::Result<impl Iterator<Item = i32>> {
    let all = fs::read_dir("/proc")?.flatten();
    Ok(all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()))
}

/// Every process.
pub fn parents() -> io::Result<Vec<Process>> {
    Ok(ids()?.filter_map(process).collect())
}

/// Every process and the inode of its network namespace.
pub fn processes() -> io::Result<Vec<(i32, u64)>> {
    let of = |id| Some((id, fs::metadata(format!("/proc/{id}/ns/net")).ok()?.ino()));
    Ok(ids()?.filter_map(of).collect())
}
