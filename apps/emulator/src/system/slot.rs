//! Numbers of links, unique on the machine; addresses and interface names are derived from them.
//!
//! Each number is a file that its owner keeps locked. The kernel releases the lock when the owner ends for any reason,
//! so an unlocked file was left by a killed run ([`super::leftovers`]).

use super::runtime_folder::{PRIVATE, PUBLIC, RuntimeFolder};
use crate::error::Error;
use rustix::fs::{FlockOperation, OFlags, flock};
use std::fs::File;
use std::io::{self, Seek as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// Maximum number of links at a time: the number of /29 blocks in 198.18.0.0/15.
const MAX_SLOTS: u32 = 16_384;
const SUFFIX: &str = ".link";

/// A reserved number. It is unique on the machine while this lives.
#[derive(Debug)]
pub struct ReservedSlot {
    number: u32,
    file: File,
    folder: &'static RuntimeFolder,
}

impl ReservedSlot {
    /// Takes the lowest free number.
    ///
    /// # Errors
    /// No directory for the files is available, or all numbers are taken.
    pub fn take() -> Result<ReservedSlot, Error> {
        let folder = RuntimeFolder::own()?;
        for number in 0..MAX_SLOTS {
            let name = file_name(number);
            let file = folder.file(&name, OFlags::RDWR | OFlags::CREATE, PRIVATE);
            let file = file.map_err(|e| cannot_write(folder, &name, &e))?;
            if !is_locked(folder, &file, &name) || file.metadata().is_ok_and(|m| m.len() > 0) {
                continue;
            }
            return Ok(ReservedSlot { number, file, folder });
        }
        Err(Error::new(format!(
            "all {MAX_SLOTS} links of this machine are in use: {}",
            folder.path("").display()
        )))
    }

    /// Writes a line with instructions for the cleanup if the owner is killed.
    ///
    /// # Errors
    /// The disk is full.
    pub fn note(&mut self, line: &str) -> Result<(), Error> {
        let written = writeln!(self.file, "{line}");
        written.map_err(|e| cannot_write(self.folder, &file_name(self.number), &e))
    }

    /// Writes an accompanying file, for a command's own `/etc`; it is removed with the slot.
    ///
    /// # Errors
    /// The disk is full.
    pub fn write_beside(&self, extension: &str, text: &str) -> Result<PathBuf, Error> {
        let name = format!("{}.{extension}", self.number);
        let written = self.folder.write(&name, PUBLIC, text);
        written.map_err(|e| cannot_write(self.folder, &name, &e))?;
        Ok(self.folder.path(&name))
    }

    /// Name of the link's nftables tables.
    pub fn name(&self) -> String {
        format!("narrows{}", self.number)
    }

    /// The name of the interface at end 0 or 1.
    pub fn interface(&self, end: usize) -> String {
        format!("narrows{}{}", self.number, if end == 0 { 'a' } else { 'b' })
    }

    /// The n-th of its eight IPv4 addresses (a /29 of 198.18.0.0/15, which RFC 2544 keeps for such tests).
    pub fn ipv4(&self, n: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(Ipv4Addr::new(198, 18, 0, 0).to_bits() + 8 * self.number + n)
    }

    /// The n-th address of its IPv6 network, a /64.
    pub fn ipv6(&self, n: u16) -> Ipv6Addr {
        Ipv6Addr::new(0xfd6e, 0x6172, 0x726f, self.number as u16, 0, 0, 0, n)
    }

    /// The addresses of end 0 or 1 with their prefixes.
    pub fn addresses(&self, end: usize) -> [(IpAddr, u8); 2] {
        let n = end as u16 + 1;
        [(self.ipv4(u32::from(n)).into(), 29), (self.ipv6(n).into(), 64)]
    }
}

impl Drop for ReservedSlot {
    fn drop(&mut self) {
        // Remove it while it is still locked: a process that opened it before finds that it is not in its place any
        // more.
        remove(self.folder, &file_name(self.number));
    }
}

fn file_name(number: u32) -> String {
    format!("{number}{SUFFIX}")
}

fn cannot_write(folder: &RuntimeFolder, name: &str, e: &io::Error) -> Error {
    Error::system(format_args!("cannot write {}", folder.path(name).display()), e)
}

/// A slot's file and those beside it.
fn remove(folder: &RuntimeFolder, name: &str) {
    let number = name.strip_suffix(SUFFIX).unwrap_or(name);
    for file in [name, &format!("{number}.resolv.conf"), &format!("{number}.hosts")] {
        folder.remove(file);
    }
}

/// Locks a file. False if its owner lives, or if it was removed meanwhile.
fn is_locked(folder: &RuntimeFolder, file: &File, name: &str) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() && folder.is_in_place(file, name)
}

/// All lines of a file, from its start.
pub fn lines(mut file: &File) -> Vec<String> {
    let text = file.rewind().and_then(|()| io::read_to_string(file)).unwrap_or_default();
    text.lines().map(str::to_string).collect()
}

/// All slots: their files, and whether their owners live. Those of dead owners are locked.
fn all() -> Result<Vec<(String, File, bool)>, Error> {
    let folder = RuntimeFolder::own()?;
    let mut all = Vec::new();
    for name in folder.names() {
        if name.ends_with(SUFFIX)
            && let Ok(file) = folder.file(&name, OFlags::RDONLY, PRIVATE)
        {
            let dead = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
            all.push((name, file, !dead));
        }
    }
    Ok(all)
}

/// All lines that living owners wrote.
///
/// # Errors
/// No directory for the files is available.
pub fn live_notes() -> Result<Vec<String>, Error> {
    let living = all()?.into_iter().filter(|(_, _, live)| *live);
    Ok(living.flat_map(|(_, file, _)| lines(&file)).collect())
}

/// The file of a dead owner. Its number is not given out while this lives.
#[derive(Debug)]
pub struct OrphanSlot {
    file: File,
    name: String,
}

impl OrphanSlot {
    /// The lines that the owner wrote.
    pub fn lines(&self) -> Vec<String> {
        lines(&self.file)
    }

    /// Removes its files. Do this last: if this process is killed during cleanup, the next one repeats it. `None` while
    /// another process inspects it, too.
    pub fn remove(self) -> Option<()> {
        let folder = RuntimeFolder::own().ok()?;
        // Without the lock the file might already belong to a new owner.
        is_locked(folder, &self.file, &self.name).then(|| remove(folder, &self.name))
    }
}

/// The files of dead owners.
///
/// # Errors
/// No directory for the files is available.
pub fn left() -> Result<Vec<OrphanSlot>, Error> {
    let dead = all()?.into_iter().filter(|(_, _, live)| !live);
    Ok(dead.map(|(name, file, _)| OrphanSlot { file, name }).collect())
}
