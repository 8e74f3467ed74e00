//! Drives an endpoint from a thread of its own, or from a task of the caller's runtime.

#[cfg(feature = "runtime-tokio")]
mod readiness;
#[cfg(feature = "runtime-tokio")]
pub(super) mod task;
pub(super) mod thread;
#[cfg(feature = "runtime-tokio")]
mod timer;

use super::shared::EndpointShared;
use std::sync::Arc;
use std::task::Waker;

/// Marks the endpoint as ended when dropped, also after a panic of the driver, so that no task waits forever.
pub(super) struct Ending(pub Arc<EndpointShared>);

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
