//! The control of a transfer: cancellation, progress, rate limit.

use narrows_base::Rate;
use narrows_peers::error::Error;
use narrows_peers::rate_cap::RateCap;
use std::sync::atomic::{AtomicBool, Ordering};

/// Progress of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProgressEvent {
    /// A walk through folders found a file of this many bytes.
    Expect(u64),
    /// The transfer of a file of this many bytes begins.
    Begin(u64),
    /// This many bytes exist at the target already.
    Held(u64),
    /// This many bytes were moved.
    Moved(u64),
}

/// Whether a transfer may replace a local file that it did not begin.
pub enum Replace {
    /// Existing files are left as they are.
    Never,
    /// The user permits it for all files.
    Always,
    /// The user is asked for each name.
    Ask(Box<dyn Fn(&str) -> bool + Send + Sync>),
}

/// Set by the caller of a transfer.
pub struct TransferControl {
    stop: &'static AtomicBool,
    progress: Box<dyn Fn(ProgressEvent) + Send + Sync>,
    left_out: Box<dyn Fn(&str) + Send + Sync>,
    cap: RateCap,
    replace: Replace,
    hidden: bool,
}

impl TransferControl {
    /// Runs until `stop` is set, at a rate of at most `limit`.
    pub fn new(
        stop: &'static AtomicBool,
        limit: Option<Rate>,
        progress: impl Fn(ProgressEvent) + Send + Sync + 'static,
    ) -> TransferControl {
        TransferControl {
            stop,
            progress: Box::new(progress),
            left_out: Box::new(|_| {}),
            cap: RateCap::new(limit),
            replace: Replace::Never,
            hidden: false,
        }
    }

    /// `tell` receives a line for each entry of a folder that is left out: its path and the reason.
    #[must_use]
    pub fn naming_left_out(self, tell: impl Fn(&str) + Send + Sync + 'static) -> TransferControl {
        TransferControl { left_out: Box::new(tell), ..self }
    }

    /// Sets whether local files may be replaced.
    #[must_use]
    pub fn replacing(self, replace: Replace) -> TransferControl {
        TransferControl { replace, ..self }
    }

    /// With `all`, hidden files are also added to a folder that existed before.
    #[must_use]
    pub fn with_hidden(self, all: bool) -> TransferControl {
        TransferControl { hidden: all, ..self }
    }

    /// Whether hidden files may be added to an existing folder.
    pub fn takes_hidden(&self) -> bool {
        self.hidden
    }

    /// Whether the local file of this name may be replaced. May ask the user.
    pub fn may_replace(&self, name: &str) -> bool {
        match &self.replace {
            Replace::Never => false,
            Replace::Always => true,
            Replace::Ask(ask) => ask(name),
        }
    }

    /// Fails if the user has stopped the transfer.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub fn check(&self) -> Result<(), Error> {
        if self.stop.load(Ordering::SeqCst) { Err(Error::interrupted()) } else { Ok(()) }
    }

    /// Reports progress.
    pub fn tell(&self, step: ProgressEvent) {
        (self.progress)(step);
    }

    /// Reports an entry that is left out.
    pub fn leave_out(&self, line: &str) {
        (self.left_out)(line);
    }

    /// Waits until `bytes` fit the rate limit.
    ///
    /// # Errors
    /// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted).
    pub fn pass(&self, bytes: usize) -> Result<(), Error> {
        self.cap.pass(bytes, || self.check())
    }
}
