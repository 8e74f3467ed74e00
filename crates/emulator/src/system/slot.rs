//! Numbers of links, unique on the machine: addresses and names of interfaces are made of them.
//!
//! Each is a file that its owner holds locked. The kernel lets go of the lock when the owner ends, however it
//! ends, so a file without a lock is what a killed run left ([`super::leftovers`]).

use crate::error::Error;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Links at once: as many blocks of eight addresses as 198.18.0.0/15 has.
const MAX_SLOTS: u32 = 16_384;
const SUFFIX: &str = "link";

/// A number that nobody else has while this lives.
#[derive(Debug)]
pub struct Slot {
    number: u32,
    file: File,
    path: PathBuf,
}

impl Slot {
    /// The lowest free one.
    ///
    /// # Errors
    /// There is no place for the files, or none is free.
    pub fn take() -> Result<Slot, Error> {
        let folder = folder()?;
        for number in 0..MAX_SLOTS {
            let path = folder.join(format!("{number}.{SUFFIX}"));
            let file =
                OpenOptions::new().create(true).read(true).write(true).truncate(false).open(&path);
            let file = match file {
                Ok(file) => file,
                // Another user's.
                Err(e) if e.kind() == ErrorKind::PermissionDenied => continue,
                Err(e) => {
                    return Err(Error::system(format_args!("cannot write {}", path.display()), &e));
                }
            };
            if !is_locked(&file, &path) || file.metadata().is_ok_and(|m| m.len() > 0) {
                continue;
            }
            return Ok(Slot { number, file, path });
        }
        Err(Error::new(format!(
            "all {MAX_SLOTS} links of this machine are in use: {}",
            folder.display()
        )))
    }

    /// Writes down what is to be undone if the owner is killed.
    ///
    /// # Errors
    /// The disk is full.
    pub fn note(&mut self, line: &str) -> Result<(), Error> {
        let written = writeln!(self.file, "{line}");
        written.map_err(|e| Error::system(format_args!("cannot write {}", self.path.display()), &e))
    }

    /// The number.
    pub fn number(&self) -> u32 {
        self.number
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

impl Drop for Slot {
    fn drop(&mut self) {
        // While it is still locked: whoever opened it before sees that it is not in its place any more.
        let _ = fs::remove_file(&self.path);
    }
}

/// Locks a file unless its owner lives; false too if it was removed meanwhile.
pub fn is_locked(file: &File, path: &Path) -> bool {
    if flock(file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return false;
    }
    let same = |a: &fs::Metadata, b: &fs::Metadata| a.ino() == b.ino() && a.dev() == b.dev();
    matches!((file.metadata(), fs::metadata(path)), (Ok(a), Ok(b)) if same(&a, &b))
}

/// Where the files are: one place for root, and one for each user.
///
/// # Errors
/// None can be made.
pub fn folder() -> Result<PathBuf, Error> {
    let user = rustix::process::getuid().as_raw();
    let of_session = std::env::var_os("XDG_RUNTIME_DIR").map(|d| PathBuf::from(d).join("narrows"));
    let all = [
        Some(PathBuf::from("/run/narrows")),
        of_session,
        Some(std::env::temp_dir().join(format!("narrows-{user}"))),
    ];
    let mut last = None;
    for folder in all.into_iter().flatten() {
        let made = fs::create_dir_all(&folder);
        let free = made.and_then(|()| {
            rustix::fs::access(&folder, rustix::fs::Access::WRITE_OK).map_err(Into::into)
        });
        match free {
            Ok(()) => return Ok(folder),
            Err(e) => last = Some((folder, e)),
        }
    }
    let (folder, e) = last.unwrap_or_else(|| ("/run/narrows".into(), ErrorKind::NotFound.into()));
    Err(Error::system(format_args!("cannot write {}", folder.display()), &e))
}
