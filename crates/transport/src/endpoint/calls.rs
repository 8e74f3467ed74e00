//! What an application asks of an endpoint: to connect, to do something with a connection, to close it.

use super::activity::MIN_MOVING;
use super::connecting::Connecting;
use super::connection_state::ConnectionState;
use super::connections::Connections;
use super::managed::ManagedConnection;
use super::share::Client;
use super::{Connect, Handle};
use crate::connection::Closed;
use narrows_base::{Duration, Time};
use narrows_wire::ConnectionId;

/// What an endpoint knows of a connection that a client opened, for whoever shares something else among
/// clients ([`share`](super::share)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Facts {
    /// Its network, its key, and whether that is listed.
    pub client: Client,
    /// Since its handshake.
    pub age: Duration,
    /// Since something was moved, as far as its packets tell.
    pub idle: Duration,
    /// Bytes of streams and messages that it has moved, either way, known to have arrived.
    pub moved: u64,
    /// The same of the last 10 to 20 s.
    pub moved_lately: u64,
    /// Whether that is so much that the connection gives its place to nobody.
    pub is_moving: bool,
}

impl<C: ManagedConnection> Connections<C> {
    /// Begins to connect; a [`Connected`](crate::connection::Event::Connected) or
    /// [`Closed`](crate::connection::Event::Closed) follows. `None` if there are too many connections.
    pub fn connect(&mut self, now: Time, connect: Connect) -> Option<Handle> {
        if self.connections() >= self.config.limits.connections {
            return None;
        }
        let nonce = self.draw();
        let until = now + connect.patience;
        let reset_key = &self.reset_key;
        let slot = self.table.add(&mut *self.entropy, |id| {
            let token = reset_key.token(id, connect.remote);
            Some(ConnectionState::Connecting(Box::new(Connecting::new(
                now, connect, id, token, nonce,
            ))))
        })?;
        self.nonces.insert(nonce, slot);
        self.urge(slot);
        self.arm(slot, until);
        self.table.get(slot).map(|s| s.handle)
    }

    /// Whether a server answered one of the attempts under way with BUSY. That may be forged, and the attempt
    /// goes on; a user may be told.
    pub fn meets_busy(&mut self) -> bool {
        let Connections { nonces, table, .. } = self;
        nonces.values().any(|slot| match table.get(*slot).and_then(|s| s.content.as_ref()) {
            Some(ConnectionState::Connecting(connecting)) => connecting.met_busy(),
            _ => false,
        })
    }

    /// An established connection; the endpoint looks after it at the next `transmit`. A panic in what is
    /// called is the caller's: [`with`](Connections::with) keeps it to the connection.
    pub fn connection(&mut self, handle: Handle) -> Option<&mut C> {
        let slot = self.table.by_handle(handle)?;
        self.touch(slot);
        match self.table.get(slot)?.content.as_mut()? {
            ConnectionState::Live(live) => Some(&mut live.connection),
            _ => None,
        }
    }

    /// Does something with an established connection, and looks after it at the next `transmit`. If that
    /// panics, which an application's own congestion controller may, the connection ends, as the error
    /// says; so it says if it has ended before. `None` if there is none.
    pub fn with<R>(
        &mut self,
        handle: Handle,
        act: impl FnOnce(&mut C) -> R,
    ) -> Option<Result<R, Closed>> {
        let slot = self.table.by_handle(handle)?;
        self.touch(slot);
        let ConnectionState::Live(live) = self.table.get(slot)?.content.as_mut()? else {
            return None;
        };
        let result = live.guarded(act);
        Some(result.ok_or_else(|| live.over.clone().unwrap_or(Closed::Locally)))
    }

    /// Looks at a connection that was established, over or not, but not at one that has panicked.
    pub fn inspect<R>(&mut self, handle: Handle, look: impl FnOnce(&mut C) -> R) -> Option<R> {
        let slot = self.table.by_handle(handle)?;
        self.touch(slot);
        let ConnectionState::Live(live) = self.table.get(slot)?.content.as_mut()? else {
            return None;
        };
        live.inspected(look)
    }

    /// What is known of a connection that a client opened.
    pub fn facts(&mut self, now: Time, handle: Handle) -> Option<Facts> {
        let slot = self.table.by_handle(handle)?;
        let ConnectionState::Live(live) = self.table.get(slot)?.content.as_mut()? else {
            return None;
        };
        let total = live.guarded(|connection| connection.moved())?;
        live.activity.on_total(now, total);
        let (moved_lately, moved) = live.activity.bytes(now);
        let is_moving = live.activity.moves(now, MIN_MOVING);
        let (age, idle) = (now.since(live.since), now.since(live.activity.last()));
        Some(Facts { client: live.client?, age, idle, moved, moved_lately, is_moving })
    }

    /// What this end calls a connection: the id in the packets that come for it.
    pub fn id(&mut self, handle: Handle) -> Option<ConnectionId> {
        let slot = self.table.by_handle(handle)?;
        self.table.get(slot).map(|s| s.id)
    }

    /// Gives up a connection, established or not.
    pub fn close(&mut self, now: Time, handle: Handle, code: u64, reason: &str) {
        let Some(slot) = self.table.by_handle(handle) else { return };
        match self.table.get(slot).and_then(|s| s.content.as_mut()) {
            Some(ConnectionState::Connecting(_)) => self.give_up(slot, Closed::Locally),
            Some(ConnectionState::Live(live)) => {
                live.guarded(|connection| connection.close(now, code, reason));
                self.touch(slot);
            }
            Some(ConnectionState::Accepting(_)) => self.remove(slot),
            Some(ConnectionState::Over(_)) | None => {}
        }
    }
}
