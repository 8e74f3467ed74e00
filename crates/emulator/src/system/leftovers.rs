//! What a killed run left: programs in a namespace whose link is gone, settings, files.
//!
//! Devices, addresses, routes and nftables tables need no cleaning: the kernel removes them with the process.

use super::namespace::Namespace;
use super::processes::{is_alive, processes};
use super::{forwarding, slot};
use crate::error::Error;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const NAMESPACE: &str = "namespace ";
/// Programs that start others while they are ended, and links behind links, are looked for so long. On a busy machine
/// the kernel needs a good part of a second to remove the devices of an owner that was killed.
const PATIENCE: Duration = Duration::from_secs(10);
const ROUND: Duration = Duration::from_millis(2);

/// What a slot notes of a namespace that was made for it.
pub fn note(namespace: &Namespace) -> String {
    format!("{NAMESPACE}{} {}", namespace.inode(), namespace.cookie())
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
    let (mut links, mut namespaces, mut programs) = (0, BTreeSet::new(), BTreeSet::new());
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        let dead = slot::left()?;
        let lines = dead.iter().flat_map(|left| left.lines());
        namespaces.extend(lines.filter_map(|line| noted(&line)));
        let found = behind(&namespaces);
        // Owners of links among them leave links themselves, once they have let go of their files.
        if found.is_empty() && !programs.iter().any(|p| is_alive(*p)) {
            if dead.is_empty() {
                break;
            }
            // Only now: the guard of a link behind this one is among the programs that are ended, perhaps while it
            // cleans up itself.
            links += dead.into_iter().filter_map(slot::Left::remove).count();
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
        // The inode of a namespace that is gone is soon another's.
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
