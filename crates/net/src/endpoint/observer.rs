//! Looking at every connection of an endpoint without holding any of them.

use crate::clock::Clock;
use narrows_base::Time;
use narrows_transport::connection::{Connection as Machine, Stats};
use narrows_transport::endpoint::Handle;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Weak;

/// Looks at an endpoint's connections as often as it likes. It keeps neither the endpoint nor a
/// connection alive.
pub struct Observer {
    observed: Weak<dyn Observed>,
    clock: Clock,
    local: SocketAddr,
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observer({})", self.local)
    }
}

/// One open connection.
pub struct ConnectionView<'a> {
    /// Its name at this endpoint.
    pub handle: Handle,
    machine: &'a Machine,
}

impl ConnectionView<'_> {
    /// Figures.
    pub fn stats(&self) -> Stats {
        self.machine.stats()
    }
    /// The controller's named numbers.
    pub fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        self.machine.watch(put);
    }
}

/// What an observer looks at: an endpoint, which may be gone.
pub(super) trait Observed: Send + Sync {
    /// Shows each open connection; false once the endpoint has ended.
    fn each_open(&self, look: &mut dyn FnMut(Time, Handle, &Machine)) -> bool;
}

impl Observer {
    pub(super) fn new(observed: Weak<dyn Observed>, clock: Clock, local: SocketAddr) -> Observer {
        Observer { observed, clock, local }
    }

    /// The endpoint's clock: the one of every time that a tap is told.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// Where the endpoint is bound.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Looks at all open connections in the order in which they began; false once the endpoint is
    /// gone. Whatever `look` does is done with the endpoint locked.
    pub fn each(&self, mut look: impl FnMut(Time, ConnectionView<'_>)) -> bool {
        self.observed.upgrade().is_some_and(|observed| {
            observed.each_open(&mut |now, handle, machine| {
                look(now, ConnectionView { handle, machine })
            })
        })
    }
}
