//! Permissions of files and folders: read, write and execute, of owner, group and others.
//!
//! A received file is readable by no more users than its source, as far as the receiver's umask permits that. Other
//! bits of a mode (set-user-ID, set-group-ID, sticky) have no place in messages.

use crate::path::CleanPath;
use cap_std::fs::{Dir, DirBuilder, File, Metadata};
use std::io;

/// Permission bits.
const ALL: u16 = 0o777;
/// Mode of a partial file: only its owner reads it.
pub(crate) const PRIVATE: u32 = 0o600;

/// The nine permission bits of a file or folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Mode(u16);

impl Mode {
    /// Permits everything; the receiver's umask decides.
    pub const ANY: Mode = Mode(ALL);

    /// From the bits of a message; `None` if there are others.
    pub fn from_bits(bits: u16) -> Option<Mode> {
        (bits <= ALL).then_some(Mode(bits))
    }

    /// The bits in a message.
    pub fn bits(self) -> u16 {
        self.0
    }

    /// Of a file or folder. A system without such bits gives those of a usual one.
    pub fn of(about: &Metadata) -> Mode {
        #[cfg(unix)]
        {
            use cap_std::fs::MetadataExt as _;
            Mode((about.mode() & u32::from(ALL)) as u16)
        }
        #[cfg(not(unix))]
        Mode(if about.is_dir() { ALL } else { 0o666 })
    }

    /// For a new folder, before the umask is applied; its owner can always put files in it.
    pub fn for_folder(self) -> u32 {
        u32::from(self.0) | 0o700
    }

    /// For a new file that has these permissions at the sender; its owner can always read it.
    fn for_file(self) -> u32 {
        u32::from(self.0) & !umask() | 0o400
    }
}

/// Gives a complete file its mode: that of its source, or the usual one if it is not known.
pub(crate) fn complete(file: &File, source: Option<Mode>, replaced: Option<&Metadata>) {
    let mode = source.map_or_else(|| 0o666 & !umask(), Mode::for_file);
    set(file, replaced.map_or(mode, |before| no_wider(mode, Mode::of(before))));
}

/// The mode for a file that replaces another one: its group and others gain no access, but may execute what they can
/// read.
fn no_wider(mode: u32, before: Mode) -> u32 {
    let kept = u32::from(before.0) | 0o700;
    mode & (kept | (kept & 0o444) >> 2)
}

/// Makes a folder with the permissions that it has at the sender, and its parents with the usual ones. An existing
/// folder keeps its own.
pub(crate) fn make_folder(dir: &Dir, path: &CleanPath, mode: Option<Mode>) -> io::Result<()> {
    let Some((parent, _)) = path.split() else { return Ok(()) };
    dir.create_dir_all(parent.relative())?;
    match dir.create_dir_with(path.relative(), &builder(mode)) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(e),
        // An error unless it is a folder.
        Err(_) => dir.create_dir_all(path.relative()),
        Ok(()) => Ok(()),
    }
}

#[cfg_attr(not(unix), expect(unused_mut, unused_variables, reason = "there are no such bits"))]
fn builder(mode: Option<Mode>) -> DirBuilder {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    if let Some(mode) = mode {
        use cap_std::fs::DirBuilderExt as _;
        builder.mode(mode.for_folder());
    }
    builder
}

/// Sets a file's mode. Not all file systems have modes.
pub(crate) fn set(file: &File, mode: u32) {
    #[cfg(unix)]
    {
        let mode = rustix::fs::Mode::from_bits_truncate(mode);
        let _ = rustix::fs::fchmod(file, mode);
    }
    #[cfg(not(unix))]
    let _ = (file, mode);
}

/// The process's umask, which is read once.
#[cfg(unix)]
fn umask() -> u32 {
    use rustix::fs::Mode;
    use rustix::process::umask;
    use std::sync::OnceLock;
    static UMASK: OnceLock<u32> = OnceLock::new();
    // It can only be read by setting it: files that other threads create meanwhile are private.
    let read = || {
        let before = umask(Mode::RWXG | Mode::RWXO);
        umask(before);
        before.bits()
    };
    *UMASK.get_or_init(read)
}
#[cfg(not(unix))]
fn umask() -> u32 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaced_file_gains_no_readers() {
        for (new, before, mode) in [
            (0o755, 0o644, 0o755),
            (0o755, 0o600, 0o700),
            (0o644, 0o600, 0o600),
            (0o600, 0o644, 0o600),
            (0o666, 0o640, 0o640),
            (0o755, 0o640, 0o750),
        ] {
            assert_eq!(no_wider(new, Mode(before)), mode, "{new:o} over {before:o}");
        }
    }

    #[test]
    fn bits_beyond_permissions_are_no_mode() {
        assert_eq!(Mode::from_bits(0o777), Some(Mode::ANY));
        for bits in [0o1777, 0o4755, 0o2755, u16::MAX] {
            assert_eq!(Mode::from_bits(bits), None);
        }
    }
}
