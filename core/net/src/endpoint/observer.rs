//! Reads the connections of an endpoint without keeping any of them alive.

use crate::clock::Clock;
use narrows_base::Time;
use narrows_transport::connection::{Connection as Machine, Stats};
use narrows_transport::endpoint::Handle;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Weak;

/// Reads an endpoint's connections repeatedly. It keeps neither the endpoint nor a connection
/// alive.
#[derive(Clone)]
pub struct Observer {
    observed: Weak<dyn ObservedEndpoint>,
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
    /// The connection's handle at this endpoint.
    pub handle: Handle,
    machine: &'a Machine,
}

impl ConnectionView<'_> {
    /// Statistics.
    pub fn stats(&self) -> Stats {
        self.machine.stats()
    }
    /// The controller's variables, as for time series.
    pub fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        self.machine.watch(put);
    }
}

/// The endpoint of an observer; it may have ended.
pub(super) trait ObservedEndpoint: Send + Sync {
    /// Calls `look` for each open connection; false once the endpoint has ended.
    fn each_open(&self, look: &mut dyn FnMut(Time, Handle, &Machine)) -> bool;
    /// Calls `look` for those of these connections that are open; false once the endpoint has ended.
    fn open_of(&self, handles: &[Handle], look: &mut dyn FnMut(Time, Handle, &Machine)) -> bool;
}

impl Observer {
    pub(super) fn new(
        observed: Weak<dyn ObservedEndpoint>,
        clock: Clock,
        local: SocketAddr,
    ) -> Observer {
        Observer { observed, clock, local }
    }

    /// The endpoint's clock, on which the times passed to a tap are based.
    pub fn clock(&self) -> Clock {
        self.clock
    }

    /// The endpoint's local address.
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Calls `look` for each open connection in order of creation; false once the endpoint is gone.
    /// The endpoint is locked during the calls.
    pub fn each(&self, mut look: impl FnMut(Time, ConnectionView<'_>)) -> bool {
        self.observed.upgrade().is_some_and(|observed| {
            observed.each_open(&mut |now, handle, machine| {
                look(now, ConnectionView { handle, machine })
            })
        })
    }
    /// As [`each`](Observer::each), for those of these connections that are open. The endpoint's other connections cost
    /// no time.
    pub fn these(
        &self,
        handles: &[Handle],
        mut look: impl FnMut(Time, ConnectionView<'_>),
    ) -> bool {
        self.observed.upgrade().is_some_and(|observed| {
            observed.open_of(handles, &mut |now, handle, machine| {
                look(now, ConnectionView { handle, machine })
            })
        })
    }
}
