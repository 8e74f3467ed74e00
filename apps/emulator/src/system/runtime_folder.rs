//! The directory of notes about running links: `/run/narrows` for root, otherwise one that belongs to the user.
//!
//! Every user can make directories, links and files in `/tmp`, so a name alone is not trusted. The directory is opened
//! once, must belong to the caller and must not be writable for other users. Its files are opened relative to it,
//! without following links.

use crate::error::Error;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::{geteuid, getuid};
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Root's directory. Other users may list it; they cannot write there.
const SYSTEM: &str = "/run/narrows";
/// The id of users that a user namespace does not map (`/proc/sys/kernel/overflowuid`).
const UNMAPPED: u32 = 65_534;
/// Only root may read or lock notes: a process that can open a file can hold a lock on it.
pub const PRIVATE: u32 = 0o600;
/// For files that replace those in a command's `/etc`; the command may run as another user.
pub const PUBLIC: u32 = 0o644;

/// An open directory that no other user can write to.
#[derive(Debug)]
pub struct RuntimeFolder {
    dir: OwnedFd,
    path: PathBuf,
}

impl RuntimeFolder {
    /// The caller's directory. It is chosen once, since in a user namespace every user is root.
    ///
    /// # Errors
    /// The directory belongs to another user, is writable for others, or cannot be made.
    pub fn own() -> Result<&'static RuntimeFolder, Error> {
        static FOLDER: OnceLock<RuntimeFolder> = OnceLock::new();
        if let Some(folder) = FOLDER.get() {
            return Ok(folder);
        }
        let folder = find()?;
        Ok(FOLDER.get_or_init(|| folder))
    }

    /// Opens `path`. The directory is made if it is missing.
    ///
    /// # Errors
    /// As [`own`](RuntimeFolder::own).
    fn open(path: &Path) -> Result<RuntimeFolder, Error> {
        let cannot = |e: Errno| {
            Error::system(format_args!("cannot make the directory {}", path.display()), &e.into())
        };
        match rustix::fs::mkdir(path, Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(cannot(e)),
        }
        check_parents(path)?;
        let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let dir = rustix::fs::open(path, flags, Mode::empty()).map_err(|e| {
            let found = rustix::fs::lstat(path).map(|found| FileType::from_raw_mode(found.st_mode));
            match found {
                Ok(FileType::Symlink) => refused(path, "it is a symbolic link"),
                Ok(FileType::Directory) => refused(path, "it belongs to another user"),
                Ok(_) => refused(path, "it is no directory"),
                Err(_) => cannot(e),
            }
        })?;
        let found = rustix::fs::fstat(&dir).map_err(cannot)?;
        match others(&found) {
            Some(why) => Err(refused(path, &why)),
            None => Ok(RuntimeFolder { dir, path: path.to_path_buf() }),
        }
    }

    /// Path of a file of this name, for messages.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Opens a regular file that belongs to the caller and has no second name. `mode` applies if `flags` create the
    /// file.
    ///
    /// # Errors
    /// The file is a link, has a second name or another owner; an error of the system.
    pub fn file(&self, name: &str, flags: OFlags, mode: u32) -> io::Result<File> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = rustix::fs::openat(&self.dir, name, flags, Mode::from_raw_mode(mode));
        let file = opened.map_err(|e| match e {
            Errno::LOOP => io::Error::other("it is a symbolic link; remove it"),
            e => e.into(),
        })?;
        let found = rustix::fs::fstat(&file)?;
        let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
        // A link count of zero is accepted here: the file was removed meanwhile, and `is_in_place` will find out.
        if !is_file || found.st_nlink > 1 || others(&found).is_some() {
            return Err(io::Error::other(
                "it is not a file of this user alone (links, owner, mode); remove it",
            ));
        }
        Ok(file.into())
    }

    /// Writes a file, replacing an existing one.
    ///
    /// # Errors
    /// An error of the file system.
    pub fn write(&self, name: &str, mode: u32, text: &str) -> io::Result<()> {
        self.remove(name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        io::Write::write_all(&mut self.file(name, flags, mode)?, text.as_bytes())
    }

    /// The names of all files.
    pub fn names(&self) -> Vec<String> {
        let all = rustix::fs::Dir::read_from(&self.dir).into_iter().flatten().flatten();
        all.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    /// Removes a file, if it is there.
    pub fn remove(&self, name: &str) {
        let _ = rustix::fs::unlinkat(&self.dir, name, AtFlags::empty());
    }

    /// Whether a file of this name exists.
    pub fn has(&self, name: &str) -> bool {
        rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// Whether the name still refers to the open file.
    pub fn is_in_place(&self, file: &File, name: &str) -> bool {
        let there = rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let same = |a: &Stat, b: &Stat| a.st_ino == b.st_ino && a.st_dev == b.st_dev;
        matches!((rustix::fs::fstat(file), there), (Ok(a), Ok(b)) if same(&a, &b))
    }
}

fn refused(path: &Path, why: &str) -> Error {
    Error::new(format!(
        "{}: {why}; correct that, or without root set XDG_RUNTIME_DIR to a directory of your own",
        path.display()
    ))
}

/// The reason why another user could change it, if one could.
fn others(found: &Stat) -> Option<String> {
    if found.st_uid != geteuid().as_raw() {
        return Some(format!("it belongs to user {}", found.st_uid));
    }
    let mode = found.st_mode & 0o7777;
    (mode & 0o022 != 0).then(|| format!("other users can write to it (mode {mode:o})"))
}

/// Checks that no other user can replace this directory by another. Each directory above must belong to root or the
/// caller, and must be writable only for its owner or have the sticky bit.
fn check_parents(path: &Path) -> Result<(), Error> {
    let above = path.parent().unwrap_or(Path::new("/"));
    let cannot = |e: io::Error| Error::system(format_args!("cannot check {}", above.display()), &e);
    let above = above.canonicalize().map_err(cannot)?;
    let own = geteuid().as_raw();
    for parent in above.ancestors() {
        let found = fs::metadata(parent).map_err(cannot)?;
        let is_trusted = [0, own].contains(&found.uid())
            || (found.uid() == UNMAPPED && outside(own) != Some(own));
        let is_closed = found.mode() & 0o022 == 0 || found.mode() & 0o1000 != 0;
        if !is_trusted || !is_closed {
            let why = format!("other users can change the directory {} above it", parent.display());
            return Err(refused(path, &why));
        }
    }
    Ok(())
}

/// Maps a user id of this user namespace to the id outside.
fn outside(user: u32) -> Option<u32> {
    let map = fs::read_to_string("/proc/self/uid_map").ok()?;
    map.lines().find_map(|line| {
        let mut numbers = line.split_whitespace().map(|n| n.parse::<u32>().ok());
        let [inside, outside, count] = [numbers.next()??, numbers.next()??, numbers.next()??];
        let offset = user.checked_sub(inside).filter(|offset| *offset < count)?;
        outside.checked_add(offset)
    })
}

fn find() -> Result<RuntimeFolder, Error> {
    let system = Path::new(SYSTEM);
    match RuntimeFolder::open(system) {
        Ok(folder) => return Ok(folder),
        // In a user namespace even root may be unable to write there; then the next directory is tried.
        Err(e)
            if geteuid().is_root()
                && rustix::fs::access(system, rustix::fs::Access::WRITE_OK).is_ok() =>
        {
            return Err(e);
        }
        Err(_) => {}
    }
    let of_session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    // A directory that does not exist, or belongs to another user (after `su`), is ignored.
    let of_session = of_session.filter(|folder| {
        folder.is_absolute()
            && rustix::fs::access(folder.as_path(), rustix::fs::Access::WRITE_OK).is_ok()
    });
    if let Some(folder) = of_session {
        return RuntimeFolder::open(&folder.join("narrows"));
    }
    let user = getuid().as_raw();
    let user = outside(user).unwrap_or(user);
    RuntimeFolder::open(&std::env::temp_dir().join(format!("narrows-{user}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    const WRITE: OFlags = OFlags::RDWR.union(OFlags::CREATE);

    fn mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn why(path: &Path) -> String {
        RuntimeFolder::open(path).unwrap_err().to_string()
    }

    #[test]
    fn a_directory_that_others_can_change_is_refused() {
        let all = tempfile::tempdir().unwrap();
        let at = |name: &str| all.path().join(name);
        RuntimeFolder::open(&at("new")).unwrap();
        RuntimeFolder::open(&at("new")).unwrap();
        symlink(at("new"), at("link")).unwrap();
        assert!(why(&at("link")).contains("it is a symbolic link"), "{}", why(&at("link")));
        fs::write(at("file"), "").unwrap();
        assert!(why(&at("file")).contains("it is no directory"));
        for open in [0o775, 0o777, 0o1777] {
            mode(&at("new"), open);
            let line = why(&at("new"));
            assert!(line.contains(&format!("can write to it (mode {open:o})")), "{line}");
        }
        // A directory above, in which it could be renamed.
        fs::create_dir(at("above")).unwrap();
        RuntimeFolder::open(&at("above/narrows")).unwrap();
        mode(&at("above"), 0o777);
        let line = why(&at("above/narrows"));
        assert!(line.contains("above above it"), "{line}");
        mode(&at("above"), 0o1777);
        RuntimeFolder::open(&at("above/narrows")).unwrap();
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        if !geteuid().is_root() {
            eprintln!("skipped: only root can give a directory to another user");
            return;
        }
        let all = tempfile::tempdir().unwrap();
        let planted = all.path().join("planted");
        let below = planted.join("narrows");
        fs::create_dir(&planted).unwrap();
        chown(&planted, Some(1234), None).unwrap();
        assert!(why(&planted).contains("it belongs to user 1234"), "{}", why(&planted));
        mode(&planted, 0o1777);
        assert!(why(&below).contains("planted above it"), "{}", why(&below));
    }

    #[test]
    fn planted_links_and_files_are_not_written_to() {
        let all = tempfile::tempdir().unwrap();
        let folder = RuntimeFolder::open(&all.path().join("narrows")).unwrap();
        let precious = all.path().join("precious");
        fs::write(&precious, "kept").unwrap();
        symlink(&precious, folder.path("0.link")).unwrap();
        symlink(all.path().join("nothing"), folder.path("1.link")).unwrap();
        fs::hard_link(&precious, folder.path("2.link")).unwrap();
        fs::create_dir(folder.path("3.link")).unwrap();
        for name in ["0.link", "1.link", "2.link", "3.link"] {
            assert!(folder.file(name, WRITE, PRIVATE).is_err(), "{name}");
        }
        for name in ["0.link", "2.link"] {
            folder.write(name, PUBLIC, "new").unwrap();
            assert_eq!(fs::read_to_string(folder.path(name)).unwrap(), "new");
        }
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
        assert!(!all.path().join("nothing").exists());
        let own = folder.file("4.link", WRITE, PRIVATE).unwrap();
        assert_eq!(own.metadata().unwrap().mode() & 0o777, PRIVATE);
        assert!(folder.is_in_place(&own, "4.link") && !folder.is_in_place(&own, "0.link"));
    }
}
