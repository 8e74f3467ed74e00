//! A cgroup of one's own for a command, below the one that this process is in.

use crate::Error;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::time::Duration;

/// How names of cgroups begin; the process's number follows.
const PREFIX: &str = "narrows-kernel-";

/// A cgroup (version 2) that exists until this value is dropped, or until its last process ends.
///
/// Its file system is mounted for this process alone, detached from any path. So it does not depend on the mounts of
/// the current namespace (`ip netns exec` hides /sys/fs/cgroup), and leaves no mount behind.
#[derive(Debug)]
pub struct Cgroup {
    parent: OwnedFd,
    name: String,
    directory: OwnedFd,
}

impl Cgroup {
    /// Creates one, and removes those of killed processes.
    ///
    /// # Errors
    /// Missing rights, or a kernel without cgroups of version 2.
    pub fn create() -> Result<Cgroup, Error> {
        let failed = |doing: &str| {
            let doing = format!("{doing} (cgroup v2)");
            move |e: rustix::io::Errno| Error::from_kernel(&doing, &e.into())
        };
        let context = fsopen("cgroup2", FsOpenFlags::FSOPEN_CLOEXEC).map_err(failed("opening"))?;
        fsconfig_create(&context).map_err(failed("mounting"))?;
        let attributes = MountAttrFlags::empty();
        let root = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
            .map_err(failed("mounting"))?;
        let path = own_path();
        let path = path.trim_start_matches('/');
        let parent = open(&root, if path.is_empty() { "." } else { path })
            .or_else(|_| open(&root, "."))
            .map_err(failed("opening the own group"))?;
        remove_leftovers(&parent);
        let name = format!("{PREFIX}{}", std::process::id());
        mkdirat(&parent, &name, Mode::from_raw_mode(0o755)).map_err(failed("making a group"))?;
        let directory = open(&parent, &name).map_err(failed("opening the group"))?;
        Ok(Cgroup { parent, name, directory })
    }

    /// Descriptor of its directory.
    pub fn directory(&self) -> &OwnedFd {
        &self.directory
    }

    /// Runs `work` inside the cgroup, such as starting a command, which stays there. This process returns afterwards.
    ///
    /// # Errors
    /// The process cannot be moved.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> Result<T, Error> {
        enter(&self.directory).map_err(|e| Error::from_kernel("entering the cgroup", &e))?;
        let result = work();
        enter(&self.parent).map_err(|e| Error::from_kernel("leaving the cgroup", &e))?;
        Ok(result)
    }

    /// Processes in the cgroup at present.
    pub fn processes(&self) -> Vec<Pid> {
        let read = || {
            let mut text = String::new();
            open_file(&self.directory, "cgroup.procs", OFlags::RDONLY)?
                .read_to_string(&mut text)?;
            Ok::<_, std::io::Error>(text)
        };
        let text = read().unwrap_or_default();
        text.lines().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
    }

    /// Sends all of them a signal. 0 and invalid numbers have no effect.
    pub fn signal(&self, number: i32) {
        let Some(signal) = Signal::from_named_raw(number) else { return };
        for pid in self.processes() {
            let _ = kill_process(pid, signal);
        }
    }

    /// Kills all of them.
    pub fn kill(&self) {
        let kill = open_file(&self.directory, "cgroup.kill", OFlags::WRONLY);
        if kill.and_then(|mut f| f.write_all(b"1")).is_err() {
            // Before Linux 5.14.
            self.signal(Signal::KILL.as_raw());
        }
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Groups of killed processes within it.
        remove_leftovers(&self.directory);
        // Processes that have just ended may count for a moment.
        for _ in 0..20 {
            match unlinkat(&self.parent, &self.name, AtFlags::REMOVEDIR) {
                Err(rustix::io::Errno::BUSY) => std::thread::sleep(Duration::from_millis(10)),
                _ => return,
            }
        }
    }
}

fn open(at: &OwnedFd, path: &str) -> rustix::io::Result<OwnedFd> {
    openat(at, path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

fn open_file(directory: &OwnedFd, name: &str, flags: OFlags) -> std::io::Result<File> {
    Ok(openat(directory, name, flags | OFlags::CLOEXEC, Mode::empty())?.into())
}

fn enter(directory: &OwnedFd) -> std::io::Result<()> {
    // 0: the writer.
    open_file(directory, "cgroup.procs", OFlags::WRONLY)?.write_all(b"0")
}

/// The group of version 2 that this process is in.
fn own_path() -> String {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    groups.lines().find_map(|l| l.strip_prefix("0::")).unwrap_or("/").to_string()
}

fn remove_leftovers(parent: &OwnedFd) {
    let Ok(entries) = rustix::fs::Dir::read_from(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(pid) = name.strip_prefix(PREFIX) else { continue };
        if !std::path::Path::new(&format!("/proc/{pid}")).exists() {
            // One that is in use stays.
            let _ = unlinkat(parent, &name, AtFlags::REMOVEDIR);
        }
    }
}
