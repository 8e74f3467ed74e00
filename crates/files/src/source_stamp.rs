//! Whether a file stayed as it was while it was sent. Bytes that are appended meanwhile do not matter: what is sent is
//! as long as the file was at the beginning.

use crate::error::{Error, Kind};
use cap_std::fs::File;
use cap_std::time::SystemTime;

/// What changes when a file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceStamp {
    /// Its size in bytes.
    pub size: u64,
    modified: Option<SystemTime>,
}

impl SourceStamp {
    /// Of an open file.
    ///
    /// # Errors
    /// The system's.
    pub fn of(file: &File, what: &str) -> Result<SourceStamp, Error> {
        let about = file.metadata().map_err(|e| Error::file(what, &e))?;
        Ok(SourceStamp { size: about.len(), modified: about.modified().ok() })
    }

    /// Whether the `read` bytes from the beginning are the file that this is of.
    ///
    /// # Errors
    /// The file has become shorter, or was written over.
    pub fn check(&self, file: &File, read: u64, what: &str) -> Result<(), Error> {
        let now = SourceStamp::of(file, what)?;
        if read < self.size || now.size < self.size {
            let line = format!(
                "{what}: became shorter while it was sent; run the command again when no program writes it"
            );
            return Err(Error::new(Kind::Changed, line));
        }
        // A file that has grown was appended to: the bytes that were sent are those of a moment.
        if now.size == self.size && now != *self {
            let line = format!(
                "{what}: was written over while it was sent; run the command again when no program writes it"
            );
            return Err(Error::new(Kind::Changed, line));
        }
        Ok(())
    }
}
