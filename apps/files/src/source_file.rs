//! A file that is sent. Its size is announced before its bytes, and it must not change meanwhile.
//!
//! Some files are longer or shorter than the system says: those of procfs say 0, those of sysfs a page. So small files
//! are read before their size is announced, and the length of larger ones that say 0 is counted.

use crate::mode::Mode;
use crate::partial_file::{CHUNK, open_regular, read_some};
use cap_std::fs::{Dir, File};
use cap_std::time::SystemTime;
use narrows_peers::error::{Error, ErrorKind};
use std::cmp::Ordering;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Up to this size an upload may be sent without a query ([`crate::client`]), and is compared with an existing file.
pub(crate) const UNASKED: u64 = 2 * CHUNK as u64;

/// Maximum length of a file whose stated size is zero.
const MAX_COUNTED: u64 = 64 << 20;
/// Bytes read at a time while they are counted.
const STEP: usize = 64 * 1024;

/// Attributes that change when a file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct SourceStamp {
    size: u64,
    modified: Option<SystemTime>,
}

/// Where the bytes come from.
#[derive(Debug)]
enum SourceContent {
    /// They have been read: all, and the position in them.
    Read(io::Cursor<Vec<u8>>),
    /// They are read as they are sent.
    File,
    /// The same, of a file with a stated size of zero.
    Counted,
}

/// An open file and the size under which it is sent.
#[derive(Debug)]
pub struct SourceFile {
    file: File,
    before: SourceStamp,
    size: u64,
    content: SourceContent,
    mode: Mode,
    what: String,
}

impl SourceFile {
    /// Opens a regular file; `what` names it in errors.
    ///
    /// # Errors
    /// There is no such file, permission is denied, it is not a regular file, or it changes while it is read.
    pub fn open(dir: &Dir, path: &Path, what: &str) -> Result<SourceFile, Error> {
        let file = open_regular(dir, path, what)?;
        let about = file.metadata().map_err(|e| Error::file(what, &e))?;
        let before = SourceStamp { size: about.len(), modified: about.modified().ok() };
        let mut source = SourceFile {
            file,
            before,
            size: before.size,
            content: SourceContent::File,
            mode: Mode::of(&about),
            what: what.to_string(),
        };
        if before.size <= UNASKED {
            source.read_ahead()?;
        }
        Ok(source)
    }

    /// Its name in errors.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Size in bytes that is announced.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Permissions of the file.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// The file, if hashes of its beginning may be cached.
    pub fn cacheable(&mut self) -> Option<&mut File> {
        matches!(self.content, SourceContent::File).then_some(&mut self.file)
    }

    /// Goes back to the first byte.
    ///
    /// # Errors
    /// The disk's.
    pub fn rewind(&mut self) -> Result<(), Error> {
        match &mut self.content {
            SourceContent::Read(bytes) => bytes.set_position(0),
            SourceContent::File | SourceContent::Counted => {
                self.file.seek(SeekFrom::Start(0)).map_err(|e| Error::file(&self.what, &e))?;
            }
        }
        Ok(())
    }

    /// Checks that the `read` bytes are those of the unchanged file. Bytes appended meanwhile do not matter.
    ///
    /// # Errors
    /// The file has become shorter, was overwritten, or has fewer bytes than it says.
    pub fn check(&self, read: u64) -> Result<(), Error> {
        let why = match self.content {
            SourceContent::Read(_) => return Ok(()),
            SourceContent::Counted if read < self.size => {
                "has another length each time it is read".into()
            }
            SourceContent::Counted => return Ok(()),
            SourceContent::File => match self.change()? {
                Some(change) => return Err(change),
                None if read < self.size => format!("has {read} bytes and says {}", self.size),
                None => return Ok(()),
            },
        };
        let line = format!("{}: {why}; send a copy of it", self.what);
        Err(Error::new(ErrorKind::Changed, line))
    }

    /// The error if the file was written since it was opened, beyond its end excepted.
    fn change(&self) -> Result<Option<Error>, Error> {
        let now = self.stamp()?;
        let why = match now.size.cmp(&self.before.size) {
            Ordering::Less => "became shorter",
            Ordering::Equal if now != self.before => "was written over",
            // A file that has grown counts as appended to: its first bytes are assumed unchanged.
            Ordering::Equal | Ordering::Greater => return Ok(None),
        };
        let line = format!(
            "{}: {why} while it was sent; run the command again when no program writes it",
            self.what
        );
        Ok(Some(Error::new(ErrorKind::Changed, line)))
    }

    fn stamp(&self) -> Result<SourceStamp, Error> {
        let about = self.file.metadata().map_err(|e| Error::file(&self.what, &e))?;
        Ok(SourceStamp { size: about.len(), modified: about.modified().ok() })
    }

    /// Reads a small file, or counts the bytes of a file with a stated size of zero.
    fn read_ahead(&mut self) -> Result<(), Error> {
        let max = if self.size == 0 { UNASKED + 1 } else { self.size };
        let mut bytes = Vec::new();
        let read = (&self.file).take(max).read_to_end(&mut bytes);
        read.map_err(|e| Error::file(&self.what, &e))?;
        if bytes.len() as u64 > UNASKED {
            self.content = SourceContent::Counted;
            return self.count(bytes.len() as u64);
        }
        if self.size > 0
            && let Some(change) = self.change()?
        {
            return Err(change);
        }
        self.size = bytes.len() as u64;
        self.content = SourceContent::Read(io::Cursor::new(bytes));
        Ok(())
    }

    fn count(&mut self, mut bytes: u64) -> Result<(), Error> {
        let mut buffer = vec![0; STEP];
        loop {
            match read_some(&mut self.file, &mut buffer, &self.what)? {
                0 => break,
                n => bytes += n as u64,
            }
            if bytes > MAX_COUNTED {
                let what = &self.what;
                let line = format!(
                    "{what}: says that it has 0 bytes and has more than 64 MiB; send a copy of it"
                );
                return Err(Error::new(ErrorKind::WrongType, line));
            }
        }
        self.size = bytes;
        self.rewind()
    }
}

impl Read for SourceFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match &mut self.content {
            SourceContent::Read(bytes) => bytes.read(to),
            SourceContent::File | SourceContent::Counted => self.file.read(to),
        }
    }
}
