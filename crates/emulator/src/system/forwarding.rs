//! Forwarding between a link and the machine's interfaces: turned on where it is off, and off again by the last
//! run that needed it.
//!
//! What was off is written down beside the slots before it is turned on, in a file for each namespace.

use super::namespace::Namespace;
use super::processes::processes;
use super::runtime_folder::{PRIVATE, RuntimeFolder};
use super::slot::{Slot, lines, live_notes};
use crate::error::Error;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

const SETTINGS: &str = "/proc/sys/net";
const PREFIX: &str = "forwarding-";

/// What a slot notes that needs forwarding in a namespace.
fn note(inode: u64) -> String {
    format!("{PREFIX}{inode}")
}

/// The files that say whether an interface forwards. IPv6 has one of its own since Linux 6.17; before, there is only one
/// for all, which would also stop the host from listening to routers, and is left alone.
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

/// Forwarding that is needed; dropping it turns off what nobody else needs.
#[derive(Debug)]
pub struct Forwarding {
    inode: u64,
}

impl Forwarding {
    /// On all interfaces of the calling thread's namespace.
    ///
    /// # Errors
    /// No permission.
    pub fn turn_on(slot: &mut Slot) -> Result<Forwarding, Error> {
        let inode = Namespace::current()?.inode();
        let mut file = locked(inode)?;
        let path = RuntimeFolder::own()?.path(&note(inode));
        let cannot = |path: &Path, e: &std::io::Error| {
            Error::system(format_args!("cannot write {}", path.display()), e)
        };
        // From here on whoever cleans up knows.
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

    /// To be called when the slot does not count any more.
    pub fn turn_off(self) {
        let _ = restore(self.inode);
    }
}

/// The file of a namespace, locked while it is open.
fn locked(inode: u64) -> Result<File, Error> {
    let (folder, name) = (RuntimeFolder::own()?, note(inode));
    let cannot = |e: &std::io::Error| {
        Error::system(format_args!("cannot write {}", folder.path(&name).display()), e)
    };
    loop {
        let flags = OFlags::RDWR | OFlags::APPEND | OFlags::CREATE;
        let file = folder.file(&name, flags, PRIVATE).map_err(|e| cannot(&e))?;
        flock(&file, FlockOperation::LockExclusive).map_err(|e| cannot(&e.into()))?;
        // Removed while we waited: again.
        if folder.is_in_place(&file, &name) {
            return Ok(file);
        }
    }
}

/// Turns off again what was off, unless a living run needs it.
fn restore(inode: u64) -> Result<(), Error> {
    let (folder, file) = (RuntimeFolder::own()?, locked(inode)?);
    if live_notes()?.contains(&note(inode)) {
        return Ok(());
    }
    if Namespace::current()?.inode() != inode {
        // Only there it can be turned off; unless nobody is there any more.
        let gone = processes().is_ok_and(|all| all.iter().all(|(_, i)| *i != inode));
        if gone {
            folder.remove(&note(inode));
        }
        return Ok(());
    }
    for setting in lines(&file) {
        // An interface may be gone, and its setting with it.
        let _ = fs::write(setting, "0");
    }
    folder.remove(&note(inode));
    Ok(())
}

/// What killed runs left turned on; how many namespaces had some.
///
/// # Errors
/// There is no place for such files.
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
