//! A file in a private temporary folder, for the standard streams: a transfer announces a file's size before its bytes,
//! and its bytes are passed on only after they were checked.

use crate::failure::Failure;
use crate::terminal::STOP;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use narrows_peers::{Error, error};
use std::fs::{DirBuilder, File};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// Name of the file in the folder.
pub const NAME: &str = "stream";

/// A private temporary folder, removed when this is dropped.
pub struct Spool {
    folder: PathBuf,
    /// The open folder.
    pub dir: Dir,
}

impl Spool {
    /// A new folder that only this user can open.
    ///
    /// # Errors
    /// The temporary folder cannot be written.
    pub fn new() -> Result<Spool, Failure> {
        // Random keys of the standard library: a name that other users, or an earlier process with this number, do not
        // have.
        let random = RandomState::new().build_hasher().finish();
        let folder = std::env::temp_dir().join(format!("narrows-{random:016x}"));
        let failed = |e: io::Error| Error::file(&error::shown(&folder.display().to_string()), &e);
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // An existing folder is an error.
        builder.create(&folder).map_err(failed)?;
        let dir = Dir::open_ambient_dir(&folder, ambient_authority()).map_err(failed)?;
        Ok(Spool { folder, dir })
    }

    fn failed(&self, e: &io::Error) -> Failure {
        Error::file(&error::shown(&self.folder.display().to_string()), e).into()
    }

    /// Stores all bytes of this input. Another thread opens and reads it, since both may wait for ever.
    ///
    /// # Errors
    /// The user stops it; the input's or the disk's.
    pub fn fill<R: Read>(
        &self,
        open: impl FnOnce() -> io::Result<R> + Send + 'static,
    ) -> Result<(), Failure> {
        let mut file = File::create_new(self.folder.join(NAME)).map_err(|e| self.failed(&e))?;
        let (done, read) = channel();
        let copy = move || {
            let copied = open().and_then(|mut input| io::copy(&mut input, &mut file));
            let _ = done.send(copied.map(drop));
        };
        let started = std::thread::Builder::new().spawn(copy);
        started.map_err(|e| Failure::from(Error::no_thread(&e)))?;
        loop {
            match read.recv_timeout(Duration::from_millis(100)) {
                Ok(copied) => return copied.map_err(|e| self.failed(&e)),
                Err(RecvTimeoutError::Timeout) if STOP.load(Ordering::SeqCst) => {
                    return Err(Failure::from(Error::interrupted()));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Failure::Outside("a thread ended without its work".into()));
                }
            }
        }
    }

    /// Writes the file to this output. A closed pipe is not an error.
    ///
    /// # Errors
    /// The output's or the disk's.
    pub fn pass_on(&self, mut output: impl Write) -> Result<(), Failure> {
        let mut file = File::open(self.folder.join(NAME)).map_err(|e| self.failed(&e))?;
        match io::copy(&mut file, &mut output).and_then(|_| output.flush()) {
            Err(e) if e.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::Outside(format!("cannot write to the output: {e}")))
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
