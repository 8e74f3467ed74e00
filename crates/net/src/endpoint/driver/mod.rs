//! What drives an endpoint: a thread of its own, or a task of the caller's runtime.

#[cfg(feature = "runtime-tokio")]
mod readiness;
#[cfg(feature = "runtime-tokio")]
pub(super) mod task;
pub(super) mod thread;
#[cfg(feature = "runtime-tokio")]
mod timer;

use super::shared::Shared;
use std::sync::Arc;
use std::task::Waker;

/// Says that the driver has ended, even if it did by a panic, so that nobody waits for ever.
pub(super) struct Ending(pub Arc<Shared>);

impl Drop for Ending {
    fn drop(&mut self) {
        let mut woken = Vec::new();
        {
            let mut core = self.0.lock();
            core.end();
            core.woken(&mut woken);
        }
        woken.into_iter().for_each(Waker::wake);
    }
}
