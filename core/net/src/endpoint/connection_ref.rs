//! Reference counts that keep a connection alive: its clones and its streams.

use super::Owner;
use super::shared::{Core, EndpointShared};
use super::state::AppConnection;
use crate::error::Error;
use narrows_base::Time;
use narrows_transport::connection::Connection as Machine;
use narrows_transport::endpoint::Handle;
use std::sync::Arc;

/// One reference; dropping the last one closes the connection.
#[derive(Debug)]
pub(super) struct ConnectionRef {
    owner: Arc<Owner>,
    pub handle: Handle,
}

impl ConnectionRef {
    pub fn new(owner: Arc<Owner>, handle: Handle) -> ConnectionRef {
        ConnectionRef { owner, handle }
    }

    pub fn shared(&self) -> &EndpointShared {
        &self.owner.shared
    }

    /// Calls `act` on a connection that is open.
    pub fn with<R>(
        &self,
        act: impl FnOnce(&mut Machine, &mut AppConnection) -> R,
    ) -> Result<R, Error> {
        self.shared().with(|core| on_open(core, self.handle, act))
    }

    /// As [`with`](Self::with), with the current time.
    pub fn with_now<R>(&self, act: impl FnOnce(&mut Machine, Time) -> R) -> Result<R, Error> {
        let now = self.shared().clock.now();
        self.with(|machine, _| act(machine, now))
    }

    /// As [`with`](Self::with), with the time of the driver's last turn, which costs no system
    /// call.
    pub fn with_latest<R>(&self, act: impl FnOnce(&mut Machine, Time) -> R) -> Result<R, Error> {
        self.shared().with(|core| {
            let latest = core.latest;
            on_open(core, self.handle, |machine, _| act(machine, latest))
        })
    }

    /// Reads an open connection without a wake-up of the driver.
    pub fn look<R>(
        &self,
        act: impl FnOnce(&mut Machine, &mut AppConnection) -> R,
    ) -> Result<R, Error> {
        on_open(&mut self.shared().lock(), self.handle, act)
    }
}

fn on_open<R>(
    core: &mut Core,
    handle: Handle,
    act: impl FnOnce(&mut Machine, &mut AppConnection) -> R,
) -> Result<R, Error> {
    let (endpoint, state) = core.parts(handle)?;
    let result = endpoint.with(handle, |machine| act(machine, state)).ok_or(Error::Closed)?;
    result.map_err(|why| Error::closed(&why, state.remote, state.wanted))
}

impl Drop for ConnectionRef {
    fn drop(&mut self) {
        self.shared().with_now(|core, now| core.abandon(now, self.handle));
    }
}
