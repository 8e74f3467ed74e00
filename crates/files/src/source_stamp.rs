//! Detects whether a file changed while it was sent. Bytes appended meanwhile do not matter: the transfer has the
//! length that the file had at the beginning.

use cap_std::fs::File;
use cap_std::time::SystemTime;
use narrows_peers::error::{Error, ErrorKind};

/// Attributes that change when a file is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceStamp {
    /// Length at the beginning of the transfer, in bytes.
    pub size: u64,
    modified: Option<SystemTime>,
}

impl SourceStamp {
    /// Reads the attributes of an open file.
    ///
    /// # Errors
    /// The system's.
    pub fn of(file: &File, what: &str) -> Result<SourceStamp, Error> {
        let about = file.metadata().map_err(|e| Error::file(what, &e))?;
        Ok(SourceStamp { size: about.len(), modified: about.modified().ok() })
    }

    /// Checks that the first `read` bytes are those of the unchanged file.
    ///
    /// # Errors
    /// The file has become shorter, or was overwritten.
    pub fn check(&self, file: &File, read: u64, what: &str) -> Result<(), Error> {
        let now = SourceStamp::of(file, what)?;
        if read < self.size || now.size < self.size {
            let line = format!(
                "{what}: became shorter while it was sent; run the command again when no program writes it"
            );
            return Err(Error::new(ErrorKind::Changed, line));
        }
        // A file that has grown counts as appended to: its first bytes are assumed unchanged.
        if now.size == self.size && now != *self {
            let line = format!(
                "{what}: was written over while it was sent; run the command again when no program writes it"
            );
            return Err(Error::new(ErrorKind::Changed, line));
        }
        Ok(())
    }
}
