//! How many bytes the served folder may hold with what clients put.

use crate::error::{Error, Kind};
use std::sync::{Mutex, PoisonError};

/// The bound, and what is counted against it: what was measured, and what came since.
pub(super) struct Quota {
    most: Option<u64>,
    used: Mutex<u64>,
}

impl Quota {
    pub fn new(most: Option<u64>) -> Quota {
        Quota { most, used: Mutex::new(0) }
    }

    /// The folder holds so many bytes now.
    pub fn measured(&self, bytes: u64) {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = bytes;
    }

    /// Whether a file of this size can come at all. Nothing is reserved.
    ///
    /// # Errors
    /// It cannot.
    pub fn check(&self, bytes: u64) -> Result<(), Error> {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        match self.most {
            Some(most) if used.saturating_add(bytes) > most => Err(full()),
            _ => Ok(()),
        }
    }

    /// So many bytes came.
    ///
    /// # Errors
    /// There is no room for them.
    pub fn take(&self, bytes: u64) -> Result<(), Error> {
        let Some(most) = self.most else { return Ok(()) };
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let after = used.saturating_add(bytes);
        if after > most {
            return Err(full());
        }
        *used = after;
        Ok(())
    }
}

fn full() -> Error {
    Error::new(Kind::Full, "the server takes no more bytes: its quota for uploads is used up")
}
