//! What a killed run left: programs in a namespace whose link is gone, settings, files.
//!
//! Devices, addresses, routes and nftables tables need no cleaning: the kernel removes them with the process.

use super::{forwarding, slot};
use crate::error::Error;
use rustix::process::{Pid, Signal, kill_process};
use std::os::unix::fs::MetadataExt as _;
use std::{fs, io};

const NAMESPACE: &str = "namespace ";

/// What a slot notes of a namespace that was made for it.
pub fn note(inode: u64) -> String {
    format!("{NAMESPACE}{inode}")
}

/// What was removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cleaned {
    /// Links whose owner was killed.
    pub links: usize,
    /// Programs that were still behind them, ended now.
    pub programs: usize,
    /// Namespaces in which forwarding is off again.
    pub forwarding: usize,
}

/// Removes all of it. Links that live are left alone.
///
/// # Errors
/// There is no place where such things would be written down.
pub fn clean() -> Result<Cleaned, Error> {
    let dead = slot::remove_dead()?;
    let namespaces: Vec<u64> = dead
        .iter()
        .flatten()
        .filter_map(|line| line.strip_prefix(NAMESPACE)?.parse().ok())
        .collect();
    let mut programs = 0;
    for (pid, inode) in processes().unwrap_or_default() {
        if namespaces.contains(&inode)
            && Pid::from_raw(pid).is_some_and(|p| kill_process(p, Signal::KILL).is_ok())
        {
            programs += 1;
        }
    }
    Ok(Cleaned { links: dead.len(), programs, forwarding: forwarding::clean()? })
}

/// Every process and its network namespace.
fn processes() -> io::Result<Vec<(i32, u64)>> {
    let all = fs::read_dir("/proc")?.flatten().filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let inode = fs::metadata(entry.path().join("ns/net")).ok()?.ino();
        Some((pid, inode))
    });
    Ok(all.collect())
}
