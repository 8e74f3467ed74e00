//! Remains of a killed run: programs in a namespace whose link is gone, settings, files.
//!
//! Devices, addresses, routes and nftables tables need no cleanup: the kernel removes them with the process.

use super::namespace::Namespace;
use super::processes::{is_alive, processes};
use super::{forwarding, slot};
use crate::error::Error;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const NAMESPACE: &str = "namespace ";
/// Time in which programs that start others while they are ended, and links behind links, are searched for. On a busy
/// machine the kernel takes a good part of a second to remove the devices of a killed owner.
const PATIENCE: Duration = Duration::from_secs(10);
const ROUND: Duration = Duration::from_millis(2);

/// The line by which a slot notes a namespace that was made for it.
pub fn note(namespace: &Namespace) -> String {
    format!("{NAMESPACE}{} {}", namespace.inode(), namespace.cookie())
}

/// Counts of the removed remains.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Cleaned {
    /// Links of killed owners.
    pub links: usize,
    /// Programs behind those links that were still running and have been ended.
    pub programs: usize,
    /// Namespaces in which forwarding was turned off again.
    pub forwarding: usize,
}

/// Removes all remains. Running links are left alone.
///
/// # Errors
/// No directory for notes is available.
pub fn clean() -> Result<Cleaned, Error> {
    let mut links = 0;
    let mut namespaces = BTreeSet::new();
    let mut programs = BTreeSet::new();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let dead = slot::left()?;
        let lines = dead.iter().flat_map(|left| left.lines());
        namespaces.extend(lines.filter_map(|line| noted(&line)));
        let found = behind(&namespaces);
        // If some of them own links, these become remains, too, once the owners' files are closed.
        if found.is_empty() && !programs.iter().any(|p| is_alive(*p)) {
            if dead.is_empty() {
                break;
            }
            // Not earlier: the guard of a link behind this one may be among the ended programs, perhaps in the middle
            // of its own cleanup.
            links += dead.into_iter().filter_map(slot::OrphanSlot::remove).count();
        }
        let killed =
            |p: &i32| Pid::from_raw(*p).is_some_and(|p| kill_process(p, Signal::KILL).is_ok());
        programs.extend(found.into_iter().filter(killed));
        std::thread::sleep(ROUND);
    }
    Ok(Cleaned { links, programs: programs.len(), forwarding: forwarding::clean()? })
}

/// Inode and cookie of a namespace, as [`note`] wrote them.
fn noted(line: &str) -> Option<(u64, u64)> {
    let (inode, cookie) = line.strip_prefix(NAMESPACE)?.split_once(' ')?;
    Some((inode.parse().ok()?, cookie.parse().ok()?))
}

/// The programs in these namespaces.
fn behind(namespaces: &BTreeSet<(u64, u64)>) -> Vec<i32> {
    let is_noted = |pid: i32, inode: u64| {
        // After a namespace is gone, its inode number is soon used again.
        let mut same = namespaces.iter().filter(|(i, _)| *i == inode).peekable();
        same.peek().is_some()
            && Namespace::of_process(pid).is_some_and(|n| {
                let cookie = n.cookie();
                same.any(|(_, noted)| *noted == cookie)
            })
    };
    let all = processes().unwrap_or_default().into_iter();
    all.filter(|(pid, inode)| is_noted(*pid, *inode)).map(|(pid, _)| pid).collect()
}
