//! What a recording asks a link, again and again.

use narrows_net::relay::{RelayObserver, RelaySnapshot};
use std::fmt;

/// A link's counts, looked at as often as somebody likes.
pub trait ObservedLink: Send + fmt::Debug {
    /// What is seen now.
    fn look(&self) -> RelaySnapshot;
    /// Whether it has stopped: what is seen from then on stays.
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
