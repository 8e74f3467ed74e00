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
use std::sync::OnceLock;

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

    /// A file beside it, for a command's own `/etc`; removed with it.
    ///
    /// # Errors
    /// The disk is full.
    pub fn write_beside(&self, extension: &str, text: &str) -> Result<PathBuf, Error> {
        let path = self.path.with_extension(extension);
        let written = fs::write(&path, text);
        written.map_err(|e| Error::system(format_args!("cannot write {}", path.display()), &e))?;
        Ok(path)
    }

    /// What carries its name: an nftables table.
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

impl Drop for Slot {
    fn drop(&mut self) {
        // While it is still locked: whoever opened it before sees that it is not in its place any more.
        remove(&self.path);
    }
}

/// A slot's file and those beside it.
fn remove(path: &Path) {
    for file in
        [path.to_path_buf(), path.with_extension("resolv.conf"), path.with_extension("hosts")]
    {
        let _ = fs::remove_file(file);
    }
}

/// Locks a file unless its owner lives; false too if it was removed meanwhile.
fn is_locked(file: &File, path: &Path) -> bool {
    flock(file, FlockOperation::NonBlockingLockExclusive).is_ok() && is_in_place(file, path)
}

/// Whether the open file is still the one of this path.
pub fn is_in_place(file: &File, path: &Path) -> bool {
    let same = |a: &fs::Metadata, b: &fs::Metadata| a.ino() == b.ino() && a.dev() == b.dev();
    matches!((file.metadata(), fs::metadata(path)), (Ok(a), Ok(b)) if same(&a, &b))
}

/// All slots: their files, and whether their owners live. Those of dead owners are locked.
fn all() -> Result<Vec<(PathBuf, File, bool)>, Error> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder()?).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == SUFFIX)
            && let Ok(file) = File::open(&path)
        {
            let dead = flock(&file, FlockOperation::NonBlockingLockShared).is_ok();
            all.push((path, file, !dead));
        }
    }
    Ok(all)
}

/// The lines that living owners noted.
///
/// # Errors
/// There is no place for the files.
pub fn live_notes() -> Result<Vec<String>, Error> {
    let mut lines = Vec::new();
    for (path, _, _) in all()?.into_iter().filter(|(_, _, live)| *live) {
        lines.extend(fs::read_to_string(path).unwrap_or_default().lines().map(str::to_string));
    }
    Ok(lines)
}

/// What a dead owner left: its file, which nobody takes while this lives.
#[derive(Debug)]
pub struct Left {
    file: File,
    path: PathBuf,
}

impl Left {
    /// The lines that the owner noted.
    pub fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(&self.path).unwrap_or_default();
        text.lines().map(str::to_string).collect()
    }

    /// Removes its files. To be done last: whoever is killed while cleaning up leaves them to the next.
    /// `None` while another looks at it, too.
    pub fn remove(self) -> Option<()> {
        // Without the lock it might be a new owner's already.
        is_locked(&self.file, &self.path).then(|| remove(&self.path))
    }
}

/// What dead owners left.
///
/// # Errors
/// There is no place for the files.
pub fn left() -> Result<Vec<Left>, Error> {
    let dead = all()?.into_iter().filter(|(_, _, live)| !live);
    Ok(dead.map(|(path, file, _)| Left { file, path }).collect())
}

/// Where the files are: one place for root, and one for each user. Decided once: in a user namespace everybody
/// is root.
///
/// # Errors
/// None can be made.
pub fn folder() -> Result<PathBuf, Error> {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    if let Some(folder) = FOLDER.get() {
        return Ok(folder.clone());
    }
    let folder = find_folder()?;
    Ok(FOLDER.get_or_init(|| folder).clone())
}

fn find_folder() -> Result<PathBuf, Error> {
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
