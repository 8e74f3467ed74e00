//! The interface by which a recording samples a link.

use narrows_net::relay::{RelayObserver, RelaySnapshot};
use std::fmt;

/// A link's counts, sampled at any rate.
pub trait ObservedLink: Send + fmt::Debug {
    /// The counts at present.
    fn look(&self) -> RelaySnapshot;
    /// Whether the link has stopped, so that its counts no longer change.
    fn is_over(&self) -> bool;
}

impl ObservedLink for RelayObserver {
    fn look(&self) -> RelaySnapshot {
        RelayObserver::look(self)
    }
    fn is_over(&self) -> bool {
        RelayObserver::is_over(self)
    }
}
