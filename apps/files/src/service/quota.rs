//! Limit on the bytes that the served folder may hold, including uploads.

use narrows_peers::error::{Error, ErrorKind};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Bytes that a file or folder counts beside its content: empty ones fill a disk, too.
pub(super) const NAME_BYTES: u64 = 1000;

/// The limit, and the bytes counted against it: the last measurement, and all bytes since.
pub(super) struct Quota(Mutex<QuotaUse>);

struct QuotaUse {
    max: Option<u64>,
    used: u64,
}

impl Quota {
    pub fn new(max: Option<u64>) -> Quota {
        Quota(Mutex::new(QuotaUse { max, used: 0 }))
    }

    fn lock(&self) -> MutexGuard<'_, QuotaUse> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the limit. Without one so far, uploads were not counted: measure the folder afterwards.
    pub fn limit(&self, max: Option<u64>) {
        self.lock().max = max;
    }

    /// Bytes counted now.
    pub fn used(&self) -> u64 {
        self.lock().used
    }

    /// Sets the result of a walk that began when `before` was counted. Bytes that arrived meanwhile are added, since
    /// the walk may have missed them.
    pub fn measured(&self, found: u64, before: u64) {
        let mut counted = self.lock();
        counted.used = found.saturating_add(counted.used.saturating_sub(before));
    }

    /// Whether a file of this size fits now. Reserves no space.
    ///
    /// # Errors
    /// It exceeds the quota.
    pub fn check(&self, bytes: u64) -> Result<(), Error> {
        let counted = self.lock();
        match counted.max {
            Some(max) if counted.used.saturating_add(bytes) > max => Err(full()),
            _ => Ok(()),
        }
    }

    /// Counts bytes that arrived.
    ///
    /// # Errors
    /// They exceed the quota.
    pub fn take(&self, bytes: u64) -> Result<(), Error> {
        let mut counted = self.lock();
        let after = counted.used.saturating_add(bytes);
        match counted.max {
            Some(max) if after > max => return Err(full()),
            Some(_) => counted.used = after,
            None => {}
        }
        Ok(())
    }
}

fn full() -> Error {
    Error::new(ErrorKind::Full, "the server takes no more bytes: its quota for uploads is used up")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_arriving_during_the_folder_scan_are_counted() {
        let quota = Quota::new(Some(1000));
        quota.take(300).unwrap();
        let before = quota.used();
        quota.take(400).unwrap();
        quota.measured(300, before);
        assert!(quota.take(301).is_err(), "400 of them were passed by");
        quota.take(300).unwrap();
        quota.measured(50, quota.used());
        quota.take(950).unwrap();
        assert!(quota.take(1).is_err() && quota.check(u64::MAX).is_err());
    }
}
