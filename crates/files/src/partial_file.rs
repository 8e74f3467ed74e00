//! A file that is being received: its bytes are stored beside the final place and moved there when
//! they are complete.
//!
//! A partial file has no label that says which file it belongs to: its bytes do. To resume, the
//! receiver hashes what it holds, and the sender says whether its file begins with the same bytes.
//! This is exact, unlike size and modification time, and cannot disagree with the bytes after a
//! crash.

use crate::error::{Error, Kind, shown};
use crate::message::HeldPrefix;
use crate::path::{check_name, part_name, upload_name};
use blake3::Hasher;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};

/// So many zero bytes in a row, at such an offset, are left out of a file: a block of most file systems.
const HOLE: usize = 4096;

/// Bytes read from a disk at a time.
pub const CHUNK: usize = 128 * 1024;

/// Called while something is read, with the bytes of the last step; an error stops the reading.
pub type Tick<'t> = &'t mut dyn FnMut(u64) -> Result<(), Error>;

/// Hashes the first bytes of a file, at most so many; the text names the file.
pub type HashFront<'h> = &'h mut dyn FnMut(&mut File, u64, &str) -> Result<(u64, Hasher), Error>;

/// What became of a file that is whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Finished {
    /// It has its name.
    Named,
    /// The very same file had that name before.
    Same,
}

/// Where a file is to be: a folder and a name in it.
pub struct TargetFile {
    dir: Dir,
    name: String,
    part: String,
}

/// What is at a place already.
pub struct ExistingFile {
    /// How much, and its hash.
    pub held: HeldPrefix,
    /// Whether it is a finished file and not a partial one.
    pub whole: bool,
    hasher: Hasher,
}

/// Opens a regular file for reading; never waits for a pipe, never reads a device.
///
/// # Errors
/// None there, not permitted, or no regular file.
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
    Err(Error::new(Kind::WrongType, format!("{what}: {is}")))
}

/// Hashes a file's first `most` bytes, or all it has.
///
/// # Errors
/// The disk's, or the tick's.
pub fn hash_front(
    file: &mut impl Read,
    most: u64,
    what: &str,
    tick: Tick<'_>,
) -> Result<(u64, Hasher), Error> {
    let mut hasher = Hasher::new();
    let mut buffer = vec![0; CHUNK];
    let mut done = 0;
    while done < most {
        let want = usize::try_from(most - done).map_or(CHUNK, |n| n.min(CHUNK));
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

/// One read, again after a signal.
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
    /// In this folder, under this name.
    ///
    /// # Errors
    /// A name that is none.
    pub fn new(dir: Dir, name: &str) -> Result<TargetFile, Error> {
        check_name(name)?;
        Ok(TargetFile { dir, name: name.to_string(), part: part_name(name) })
    }

    /// The same, with a partial file of its own for every owner.
    ///
    /// # Errors
    /// A name that is none.
    pub fn owned(dir: Dir, name: &str, owner: &[u8]) -> Result<TargetFile, Error> {
        check_name(name)?;
        Ok(TargetFile { dir, name: name.to_string(), part: upload_name(name, owner) })
    }

    /// The size of what has the name now, if it is a regular file; links are followed.
    ///
    /// # Errors
    /// It is a folder or a device.
    pub fn size(&self) -> Result<Option<u64>, Error> {
        let what = self.shown();
        match self.dir.metadata(&self.name) {
            Ok(about) if about.is_file() => Ok(Some(about.len())),
            Ok(about) if about.is_dir() => {
                Err(Error::new(Kind::WrongType, format!("{what}: is a folder")))
            }
            Ok(_) => Err(Error::new(Kind::WrongType, format!("{what}: is not a regular file"))),
            Err(_) => Ok(None),
        }
    }

    /// Whether anything has the name, a link that leads nowhere too.
    pub fn is_taken(&self) -> bool {
        self.dir.symlink_metadata(&self.name).is_ok()
    }

    /// What to say of a file that is not replaced.
    pub fn exists(&self) -> Error {
        let line = format!("{}: is there already and is another file", self.shown());
        Error::new(Kind::Exists, line)
    }

    /// The final name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What a partial file there is called.
    pub fn part_name(&self) -> &str {
        &self.part
    }

    fn shown(&self) -> String {
        shown(&self.name)
    }

    /// The finished file that is there, hashed; none if it cannot be read.
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

    /// The partial file that is there, hashed.
    ///
    /// # Errors
    /// A folder or device has the name of either; the disk's; the hash's.
    pub fn partial(&self, hash: HashFront<'_>) -> Result<Option<ExistingFile>, Error> {
        self.size()?;
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true).follow(FollowSymlinks::No);
        match self.dir.open_with(&self.part, &options) {
            // What other names or users can change is not gone on with.
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

    /// Removes the partial file, where it is not needed any more.
    pub fn forget(&self) {
        let _ = self.dir.remove_file(&self.part);
    }

    /// Opens the partial file to go on with what was found, or to begin with nothing.
    ///
    /// # Errors
    /// The disk's; or somebody else writes it at this moment.
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

    /// The partial file that is there, or a new one. A link, and a file that has other names or belongs to another
    /// user, loses the name and is not written.
    fn open_part(&self, what: &str) -> Result<File, Error> {
        let file_error = |e: io::Error| Error::file(what, &e);
        let mut options = OpenOptions::new();
        options.read(true).write(true).nonblock(true).follow(FollowSymlinks::No);
        match self.dir.open_with(&self.part, &options) {
            Ok(file) => {
                let file = regular(file, what)?;
                if is_ours_alone(&file) {
                    return Ok(file);
                }
                self.dir.remove_file(&self.part).map_err(file_error)?;
            }
            Err(_) if self.is_link() => self.dir.remove_file(&self.part).map_err(file_error)?,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(file_error(e)),
        }
        self.dir.open_with(&self.part, options.create_new(true)).map_err(file_error)
    }
}

/// Whether a file has one name only, and belongs to this user.
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
    Error::new(Kind::Busy, format!("{what}: another transfer writes it; wait for it or end it"))
}

#[cfg(unix)]
fn lock(file: &File, what: &str) -> Result<(), Error> {
    use rustix::fs::{FlockOperation, flock};
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(rustix::io::Errno::WOULDBLOCK) => Err(busy(what)),
        // Some network file systems know no locks; the transfer's hash still guards the result.
        _ => Ok(()),
    }
}
#[cfg(not(unix))]
fn lock(_: &File, _: &str) -> Result<(), Error> {
    Ok(())
}

/// A partial file, growing.
pub struct PartialFile {
    place: TargetFile,
    file: File,
    bytes: u64,
    hasher: Hasher,
}

impl PartialFile {
    /// Bytes that it has.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds bytes at the end.
    ///
    /// # Errors
    /// The disk's. What was added before stays.
    pub fn append(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.store(bytes).map_err(|e| Error::file(&self.place.shown(), &e))?;
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Blocks of zeros become holes, as a sparse source has them.
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

    /// Checks the hash of the whole, makes the bytes safe on the disk, and gives them their name, over
    /// what has it already only if `replace` says so.
    ///
    /// # Errors
    /// Another hash, or another file that has the name: then the partial file is thrown away. Or the
    /// disk's: then it stays.
    pub fn finish(self, hash: &[u8; 32], replace: bool) -> Result<Finished, Error> {
        let PartialFile { place, file, hasher, .. } = self;
        let what = place.shown();
        if hasher.finalize() != blake3::Hash::from_bytes(*hash) {
            let _ = place.dir.remove_file(&place.part);
            return Err(Error::new(
                Kind::Corrupt,
                format!(
                    "{what}: the bytes that came are not those of the source (hash of the \
                         whole differs); they were thrown away, run the command again"
                ),
            ));
        }
        file.sync_all().map_err(|e| Error::file(&what, &e))?;
        let done = if replace { place.rename(&what)? } else { place.name_it(&what, hash)? };
        // The name itself: where a folder cannot be synced, the file is whole all the same.
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
        // Where both names were the same file, which a crash can leave, nothing was renamed.
        self.forget();
        Ok(Finished::Named)
    }

    /// Gives the partial file the name, unless that is taken.
    fn name_it(&self, what: &str, hash: &[u8; 32]) -> Result<Finished, Error> {
        // A second name cannot be made over another file, by nobody at no moment.
        match self.dir.hard_link(&self.part, &self.dir, &self.name) {
            Ok(()) => {
                self.forget();
                return Ok(Finished::Named);
            }
            // Some file systems have no second names.
            Err(e) if e.kind() != io::ErrorKind::AlreadyExists && !self.is_taken() => {
                return self.rename(what);
            }
            Err(_) => {}
        }
        let plain: HashFront<'_> =
            &mut |file, most, what| hash_front(file, most, what, &mut |_| Ok(()));
        let same = self.whole(plain).ok().flatten().is_some_and(|f| f.held.hash == *hash);
        self.forget();
        if same { Ok(Finished::Same) } else { Err(self.exists()) }
    }
}
