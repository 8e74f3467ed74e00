//! Keeps the driver of an endpoint running.

use super::shared::EndpointShared;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// Shared by all handles that may still need the driver.
pub(super) struct Owner {
    pub shared: Arc<EndpointShared>,
    pub thread: Mutex<Option<JoinHandle<()>>>,
}

impl fmt::Debug for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Owner({})", self.shared.socket().local())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        // The driver ends by itself after the lingering connections.
        self.shared.with_now(|core, now| {
            core.leaving.get_or_insert(now);
        });
    }
}
