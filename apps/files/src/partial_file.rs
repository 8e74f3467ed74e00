//! A file that is being received. Its bytes are stored beside the final place and moved there when they are complete.
//!
//! A partial file has no label that says which file it belongs to: its bytes do. To resume, the receiver hashes the
//! bytes that it holds, and the sender compares the hash with that of its file's beginning. This is exact, unlike size
//! and modification time, and cannot disagree with the bytes after a crash.

use crate::message::HeldPrefix;
use crate::mode::{self, Mode, PRIVATE};
use crate::path::{check_name, part_name, upload_name};
use blake3::Hasher;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, OpenOptions};
use narrows_peers::error::{Error, ErrorKind, shown};
use std::io::{self, Read, Seek, SeekFrom, Write};

/// Aligned blocks of this many zero bytes are stored as holes: the block size of most file systems.
const HOLE: usize = 4096;

/// Bytes read from a disk at a time.
pub const CHUNK: usize = 128 * 1024;

/// Called after each step of reading with the step's bytes; an error stops the reading.
pub type Tick<'t> = &'t mut dyn FnMut(u64) -> Result<(), Error>;

/// Hashes at most the first N bytes of a file; the text names the file in errors.
pub type HashFront<'h> = &'h mut dyn FnMut(&mut File, u64, &str) -> Result<(u64, Hasher), Error>;

/// Outcome of finishing a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finished {
    /// The file now has its final name.
    Named,
    /// An identical file had the name before.
    Same,
}

/// Target of a file: a folder and a name in it.
pub struct TargetFile {
    dir: Dir,
    name: String,
    part: String,
}

/// A file that exists at the target.
pub struct ExistingFile {
    /// Its length and hash.
    pub held: HeldPrefix,
    /// Whether it is a finished file, not a partial one.
    pub whole: bool,
    hasher: Hasher,
}

/// Opens a regular file for reading. Never blocks on a pipe, never reads a device.
///
/// # Errors
/// There is no such file, permission is denied, or it is not a regular file.
pub fn open_regular(dir: &Dir, path: &std::path::Path, what: &str) -> Result<File, Error> {
    let mut options = OpenOptions::new();
    options.read(true).nonblock(true);
    let file = dir.open_with(path, &options).map_err(|e| Error::file(what, &e))?;
    regular(file, what)
}

fn regular(file: File, what: &str) -> Result<File, Error> {
    let about = file.metadata().map_err(|e| Error::file(what, &e))?;
    if about.is_file() {
        return Ok(file);
    }
    let is = if about.is_dir() { "is a folder" } else { "is not a regular file" };
    Err(Error::new(ErrorKind::WrongType, format!("{what}: {is}")))
}

/// Hashes a file's first `max` bytes, or the whole file if it is shorter.
///
/// # Errors
/// The disk's, or the tick's.
pub fn hash_front(
    file: &mut impl Read,
    max: u64,
    what: &str,
    tick: Tick<'_>,
) -> Result<(u64, Hasher), Error> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; CHUNK];
    let mut done = 0;
    while done < max {
        let want = usize::try_from(max - done).map_or(CHUNK, |n| n.min(CHUNK));
        let n = read_some(file, buffer.get_mut(..want).unwrap_or_default(), what)?;
        if n == 0 {
            break;
        }
        hasher.update(buffer.get(..n).unwrap_or_default());
        done += n as u64;
        tick(n as u64)?;
    }
    Ok((done, hasher))
}

/// One read, repeated after a signal.
///
/// # Errors
/// The disk's.
pub fn read_some(file: &mut impl Read, to: &mut [u8], what: &str) -> Result<usize, Error> {
    loop {
        match file.read(to) {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            other => return other.map_err(|e| Error::file(what, &e)),
        }
    }
}

impl TargetFile {
    /// A file of this name in this folder.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn new(dir: Dir, name: &str) -> Result<TargetFile, Error> {
        check_name(name)?;
        Ok(TargetFile { dir, name: name.to_string(), part: part_name(name) })
    }

    /// As [`TargetFile::new`], with a separate partial file for each owner.
    ///
    /// # Errors
    /// The name is invalid.
    pub fn owned(dir: Dir, name: &str, owner: &[u8]) -> Result<TargetFile, Error> {
        check_name(name)?;
        Ok(TargetFile { dir, name: name.to_string(), part: upload_name(name, owner) })
    }

    /// The size of the regular file that has the name; else `None`. Links are followed.
    ///
    /// # Errors
    /// It is a folder or a device.
    pub fn size(&self) -> Result<Option<u64>, Error> {
        let what = self.shown();
        match self.dir.metadata(&self.name) {
            Ok(about) if about.is_file() => Ok(Some(about.len())),
            Ok(about) if about.is_dir() => {
                Err(Error::new(ErrorKind::WrongType, format!("{what}: is a folder")))
            }
            Ok(_) => {
                Err(Error::new(ErrorKind::WrongType, format!("{what}: is not a regular file")))
            }
            Err(_) => Ok(None),
        }
    }

    /// Whether any entry has the name, also a dangling link.
    pub fn is_taken(&self) -> bool {
        self.dir.symlink_metadata(&self.name).is_ok()
    }

    /// The error for an existing file that must not be replaced.
    pub fn exists(&self) -> Error {
        let line = format!("{}: is there already and is another file", self.shown());
        Error::new(ErrorKind::Exists, line)
    }

    /// The final name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the partial file.
    pub fn part_name(&self) -> &str {
        &self.part
    }

    fn shown(&self) -> String {
        shown(&self.name)
    }

    /// The finished file under the name, hashed; `None` if it cannot be opened.
    ///
    /// # Errors
    /// A folder or device has the name; the disk's; the hash's.
    pub fn whole(&self, hash: HashFront<'_>) -> Result<Option<ExistingFile>, Error> {
        self.size()?;
        let options = OpenOptions::new().read(true).nonblock(true).clone();
        match self.dir.open_with(&self.name, &options) {
            Ok(file) => self.hashed(file, true, hash).map(Some),
            Err(_) => Ok(None),
        }
    }

    /// The partial file, hashed.
    ///
    /// # Errors
    /// A folder or device has one of the two names; the disk's; the hash's.
    pub fn partial(&self, hash: HashFront<'_>) -> Result<Option<ExistingFile>, Error> {
        self.size()?;
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        match self.dir.open_with(&self.part, &options) {
            // A partial file that has other names, or another owner, is not resumed.
            Ok(file) if !is_ours_alone(&file) => Ok(None),
            Ok(file) => self.hashed(file, false, hash).map(Some),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(_) if self.is_link() => Ok(None),
            Err(e) => Err(Error::file(&shown(&self.part), &e)),
        }
    }

    fn hashed(&self, file: File, whole: bool, hash: HashFront<'_>) -> Result<ExistingFile, Error> {
        let what = self.shown();
        let mut file = regular(file, &what)?;
        let (bytes, hasher) = hash(&mut file, u64::MAX, &what)?;
        let held = HeldPrefix { bytes, hash: *hasher.finalize().as_bytes() };
        Ok(ExistingFile { held, whole, hasher })
    }

    /// Removes the partial file when it is not needed any more.
    pub fn forget(&self) {
        let _ = self.dir.remove_file(&self.part);
    }

    /// Opens the partial file, to resume at the end of `from` or to begin empty.
    ///
    /// # Errors
    /// The disk's, or another transfer is writing the file.
    pub fn part(self, from: Option<ExistingFile>) -> Result<PartialFile, Error> {
        let what = shown(&self.part);
        let file_error = |e: io::Error| Error::file(&what, &e);
        let mut file = self.open_part(&what)?;
        lock(&file, &what)?;
        let (bytes, hasher) = match from {
            Some(found) if !found.whole => {
                let there = file.metadata().map_err(file_error)?.len();
                if there != found.held.bytes {
                    return Err(busy(&what));
                }
                (there, found.hasher)
            }
            _ => {
                file.set_len(0).map_err(file_error)?;
                (0, Hasher::new())
            }
        };
        file.seek(SeekFrom::Start(bytes)).map_err(file_error)?;
        Ok(PartialFile { place: self, file, bytes, hasher })
    }
}

impl TargetFile {
    /// Whether a symbolic link has the partial file's name.
    fn is_link(&self) -> bool {
        self.dir.symlink_metadata(&self.part).is_ok_and(|about| about.is_symlink())
    }

    /// Opens or creates the partial file. A link, or a file with other names or another owner, is unlinked and not
    /// written.
    fn open_part(&self, what: &str) -> Result<File, Error> {
        let file_error = |e: io::Error| Error::file(what, &e);
        let mut options = OpenOptions::new();
        options.read(true).write(true).nonblock(true).follow(FollowSymlinks::No);
        match self.dir.open_with(&self.part, &options) {
            Ok(file) => {
                let file = regular(file, what)?;
                if is_ours_alone(&file) {
                    mode::set(&file, PRIVATE);
                    return Ok(file);
                }
                self.dir.remove_file(&self.part).map_err(file_error)?;
            }
            Err(_) if self.is_link() => self.dir.remove_file(&self.part).map_err(file_error)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(file_error(e)),
        }
        #[cfg(unix)]
        cap_std::fs::OpenOptionsExt::mode(&mut options, PRIVATE);
        self.dir.open_with(&self.part, options.create_new(true)).map_err(file_error)
    }
}

/// Whether a file has a single name and belongs to this user.
#[cfg(unix)]
fn is_ours_alone(file: &File) -> bool {
    use cap_std::fs::MetadataExt as _;
    let user = rustix::process::geteuid().as_raw();
    file.metadata().is_ok_and(|about| {
        // Folders and devices are refused elsewhere, by their kind.
        !about.is_file() || cap_fs_ext::MetadataExt::nlink(&about) == 1 && about.uid() == user
    })
}
#[cfg(not(unix))]
fn is_ours_alone(file: &File) -> bool {
    file.metadata().is_ok_and(|about| cap_fs_ext::MetadataExt::nlink(&about) == 1)
}

fn busy(what: &str) -> Error {
    Error::new(
        ErrorKind::Busy,
        format!("{what}: another transfer writes it; wait for it or end it"),
    )
}

#[cfg(unix)]
fn lock(file: &File, what: &str) -> Result<(), Error> {
    use rustix::fs::{FlockOperation, flock};
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(busy(what)),
        // Some network file systems have no locks; the transfer's hash still protects the result.
        _ => Ok(()),
    }
}
#[cfg(not(unix))]
fn lock(_: &File, _: &str) -> Result<(), Error> {
    Ok(())
}

/// A partial file that is being written.
pub struct PartialFile {
    place: TargetFile,
    file: File,
    bytes: u64,
    hasher: Hasher,
}

impl PartialFile {
    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// The disk's. Bytes appended before stay.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.store(bytes).map_err(|e| Error::file(&self.place.shown(), &e))?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Stores blocks of zeros as holes, as in a sparse source.
    fn store(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut at = self.bytes;
        let first = (at.next_multiple_of(HOLE as u64) - at) as usize;
        let (head, rest) = bytes.split_at(first.min(bytes.len()));
        self.file.write_all(head)?;
        at += head.len() as u64;
        let is_hole = |block: &&[u8]| block.len() == HOLE && block.iter().all(|b| *b == 0);
        let mut blocks = rest.chunks(HOLE).peekable();
        while blocks.peek().is_some() {
            let holes = std::iter::from_fn(|| blocks.next_if(is_hole)).count();
            if holes > 0 {
                at += (holes * HOLE) as u64;
                self.file.set_len(at)?;
                self.file.seek(SeekFrom::Start(at))?;
            }
            let from = (at - self.bytes) as usize;
            let data: usize =
                std::iter::from_fn(|| blocks.next_if(|b| !is_hole(b))).map(<[u8]>::len).sum();
            self.file.write_all(bytes.get(from..from + data).unwrap_or_default())?;
            at += data as u64;
        }
        Ok(())
    }

    /// Verifies the hash of the whole file, syncs it to disk, and gives it its name and the permissions of its source.
    /// Replaces another file of that name only if `replace` is set; then no user can read it that could not before.
    ///
    /// # Errors
    /// The hash differs, or another file has the name: the partial file is removed. Or the disk's: the partial file
    /// stays.
    pub fn finish(
        self,
        hash: &[u8; 32],
        replace: bool,
        source: Option<Mode>,
    ) -> Result<Finished, Error> {
        let PartialFile { place, file, hasher, .. } = self;
        let what = place.shown();
        if hasher.finalize() != blake3::Hash::from_bytes(*hash) {
            let _ = place.dir.remove_file(&place.part);
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!(
                    "{what}: the bytes that came are not those of the source (hash of the \
                         whole differs); they were thrown away, run the command again"
                ),
            ));
        }
        let before = place.dir.symlink_metadata(&place.name).ok();
        mode::complete(&file, source, before.filter(|about| replace && about.is_file()).as_ref());
        file.sync_all().map_err(|e| Error::file(&what, &e))?;
        let done = if replace { place.rename(&what)? } else { place.name_it(&what, hash)? };
        // Sync the name as well. Some folders cannot be synced; the file is complete all the same.
        if let Ok(dir) = place.dir.try_clone() {
            let _ = dir.into_std_file().sync_all();
        }
        Ok(done)
    }
}

impl TargetFile {
    fn rename(&self, what: &str) -> Result<Finished, Error> {
        let renamed = self.dir.rename(&self.part, &self.dir, &self.name);
        renamed.map_err(|e| Error::file(what, &e))?;
        // After a crash both names may be the same file: then `rename` does nothing and the partial name remains.
        self.forget();
        Ok(Finished::Named)
    }

    /// Gives the partial file the final name unless that is taken.
    fn name_it(&self, what: &str, hash: &[u8; 32]) -> Result<Finished, Error> {
        // A hard link never replaces another file, and the check is atomic.
        match self.dir.hard_link(&self.part, &self.dir, &self.name) {
            Ok(()) => {
                self.forget();
                return Ok(Finished::Named);
            }
            // Some file systems have no hard links.
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists && !self.is_taken() => {
                return self.rename(what);
            }
            Err(_) => {}
        }
        let plain: HashFront<'_> =
            &mut |file, max, what| hash_front(file, max, what, &mut |_| Ok(()));
        let same = self.whole(plain).ok().flatten().is_some_and(|f| f.held.hash == *hash);
        self.forget();
        if same { Ok(Finished::Same) } else { Err(self.exists()) }
    }
}
