//! What goes along with a transfer: the user's stop, the progress, the limit.

use crate::error::Error;
use narrows_base::Rate;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What a transfer tells while it runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// A walk through folders found a file with so many bytes.
    Expect(u64),
    /// A file is begun that has so many bytes.
    Begin(u64),
    /// So many bytes were there already.
    Held(u64),
    /// So many bytes were moved.
    Moved(u64),
}

/// Told by whoever starts a transfer.
pub struct Go {
    stop: &'static AtomicBool,
    progress: Box<dyn Fn(Step) + Send + Sync>,
    limit: Option<Limit>,
}

impl Go {
    /// Runs until `stop` is set, at most at `limit`.
    pub fn new(
        stop: &'static AtomicBool,
        limit: Option<Rate>,
        progress: impl Fn(Step) + Send + Sync + 'static,
    ) -> Go {
        Go { stop, progress: Box::new(progress), limit: limit.map(Limit::new) }
    }

    /// Fails when the user has stopped it.
    ///
    /// # Errors
    /// That one.
    pub fn check(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::SeqCst) { Err(Error::interrupted()) } else { Ok(()) }
    }

    /// Tells the progress.
    pub fn tell(&self, step: Step) {
        (self.progress)(step);
    }

    /// Waits until so many bytes may pass.
    ///
    /// # Errors
    /// Stopped by the user.
    pub fn pass(&self, bytes: u64) -> Result<(), Error> {
        self.check()?;
        let Some(limit) = &self.limit else { return Ok(()) };
        let due = limit.due(bytes);
        loop {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
            self.check()?;
        }
    }
}

/// The mean rate of everything that passes; what was not used within a tenth of a second is lost.
struct Limit {
    bytes_per_s: f64,
    free: Mutex<Instant>,
}

impl Limit {
    fn new(rate: Rate) -> Limit {
        Limit { bytes_per_s: rate.as_bps() as f64 / 8.0, free: Mutex::new(Instant::now()) }
    }

    /// When these bytes may pass.
    fn due(&self, bytes: u64) -> Instant {
        let took = Duration::try_from_secs_f64(bytes as f64 / self.bytes_per_s)
            .unwrap_or(Duration::from_secs(3600));
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let early = Instant::now().checked_sub(Duration::from_millis(100));
        let due = early.map_or(*free, |e| (*free).max(e));
        *free = due + took;
        due
    }
}
