//! The machine's processes, by `/proc`.

use std::os::unix::fs::MetadataExt as _;
use std::{fs, io};

/// A process, with its parent.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    pub id: i32,
    pub parent: i32,
    /// Clock ticks from the system's start to the process's start. It distinguishes processes that have used the same
    /// id.
    pub started: u64,
    /// No thread of the process has open files any more; only its status is left.
    pub has_ended: bool,
}

/// Reads a process's entry in `/proc`; `None` if the process does not exist.
pub fn process(id: i32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // proc_pid_stat(5): the name, in parentheses, may contain any character. After it come the fields from the third
    // on.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let threads = fields.nth(15)?;
    let started = fields.nth(1)?.parse().ok()?;
    let has_ended = state.starts_with(['Z', 'X']) && matches!(threads, "0" | "1");
    Some(Process { id, parent, started, has_ended })
}

/// Whether a process, or a thread of it, still has open files.
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

/// Every process, with the inode number of its network namespace.
pub fn processes() -> io::Result<Vec<(i32, u64)>> {
    let of = |id| Some((id, fs::metadata(format!("/proc/{id}/ns/net")).ok()?.ino()));
    Ok(ids()?.filter_map(of).collect())
}
