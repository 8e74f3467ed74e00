//! Forwarding between a link and the machine's interfaces: turned on where it is off, and turned off again by the last
//! run that needed it.
//!
//! Before a setting is turned on, its path is written to a file beside the slots, one file per namespace.

use super::namespace::Namespace;
use super::processes::processes;
use super::runtime_folder::{PRIVATE, RuntimeFolder};
use super::slot::{ReservedSlot, lines, live_notes};
use crate::error::Error;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

const SETTINGS: &str = "/proc/sys/net";
const PREFIX: &str = "forwarding-";

/// The line by which a slot notes that it needs forwarding in a namespace.
fn note(inode: u64) -> String {
    format!("{PREFIX}{inode}")
}

/// The files that control forwarding per interface. IPv6 has one per interface since Linux 6.17. Older kernels have a
/// single one for all interfaces, which would also make the host ignore router advertisements; it is left alone.
fn settings() -> Vec<PathBuf> {
    let all = |version: &str, file: &str| -> Vec<PathBuf> {
        let folder = Path::new(SETTINGS).join(version).join("conf");
        let names = fs::read_dir(&folder).into_iter().flatten().flatten().map(|e| e.file_name());
        let own = names.filter(|n| n != "all" && n != "default" && n != "lo");
        own.map(|n| folder.join(n).join(file)).filter(|p| p.exists()).collect()
    };
    let mut settings = all("ipv4", "forwarding");
    if read(&Path::new(SETTINGS).join("ipv6/conf/all/forwarding")).is_some_and(|v| v == "0") {
        settings.extend(all("ipv6", "force_forwarding"));
    }
    settings
}

/// Whether IPv6 packets are forwarded once forwarding is turned on.
pub fn has_ipv6() -> bool {
    let conf = Path::new(SETTINGS).join("ipv6/conf");
    read(&conf.join("all/forwarding")).is_some_and(|v| v != "0")
        || conf.join("default/force_forwarding").exists()
}

fn read(path: &Path) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_string())
}

/// Use of forwarding by one link. Dropping the last use turns off the settings that were off before.
#[derive(Debug)]
pub struct Forwarding {
    inode: u64,
}

impl Forwarding {
    /// Turns it on for all interfaces of the calling thread's namespace.
    ///
    /// # Errors
    /// No permission.
    pub fn turn_on(slot: &mut ReservedSlot) -> Result<Forwarding, Error> {
        let inode = Namespace::current()?.inode();
        let mut file = locked(inode)?;
        let path = RuntimeFolder::own()?.path(&note(inode));
        let cannot = |path: &Path, e: &std::io::Error| {
            Error::system(format_args!("cannot write {}", path.display()), e)
        };
        // If this process is killed from here on, the next cleanup turns forwarding off.
        slot.note(&note(inode))?;
        let off: Vec<PathBuf> =
            settings().into_iter().filter(|p| read(p).is_some_and(|v| v == "0")).collect();
        for setting in &off {
            writeln!(file, "{}", setting.display()).map_err(|e| cannot(&path, &e))?;
        }
        let this = Forwarding { inode };
        for setting in &off {
            fs::write(setting, "1").map_err(|e| cannot(setting, &e))?;
        }
        Ok(this)
    }

    /// Call this when the slot has been released.
    pub fn turn_off(self) {
        let _ = restore(self.inode);
    }
}

/// The file of a namespace, locked while it is open.
fn locked(inode: u64) -> Result<File, Error> {
    let folder = RuntimeFolder::own()?;
    let name = note(inode);
    let cannot = |e: &std::io::Error| {
        Error::system(format_args!("cannot write {}", folder.path(&name).display()), e)
    };
    loop {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let file = folder.file(&name, flags, PRIVATE).map_err(|e| cannot(&e))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|e| cannot(&e.into()))?;
        // If the file was removed meanwhile, try again.
        if folder.is_in_place(&file, &name) {
            return Ok(file);
        }
    }
}

/// Turns off the settings that were off before, unless a living run needs them.
fn restore(inode: u64) -> Result<(), Error> {
    let folder = RuntimeFolder::own()?;
    let file = locked(inode)?;
    if live_notes()?.contains(&note(inode)) {
        return Ok(());
    }
    if Namespace::current()?.inode() != inode {
        // They can be turned off only within that namespace. If no process is left there, the namespace is gone.
        let gone = processes().is_ok_and(|all| all.iter().all(|(_, i)| *i != inode));
        if gone {
            folder.remove(&note(inode));
        }
        return Ok(());
    }
    for setting in lines(&file) {
        // If the interface is gone, so is its setting.
        let _ = fs::write(setting, "0");
    }
    folder.remove(&note(inode));
    Ok(())
}

/// Turns off the settings that killed runs left on. Returns the number of namespaces that had some.
///
/// # Errors
/// No directory for such files is available.
pub fn clean() -> Result<usize, Error> {
    let mut cleaned = 0;
    let folder = RuntimeFolder::own()?;
    for name in folder.names() {
        let Some(inode) = name.strip_prefix(PREFIX).and_then(|n| n.parse().ok()) else { continue };
        restore(inode)?;
        cleaned += usize::from(!folder.has(&name));
    }
    Ok(cleaned)
}
