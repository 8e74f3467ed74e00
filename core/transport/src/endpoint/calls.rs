//! The methods that an application calls on an endpoint: connect, access a connection, close it.

use super::activity::MIN_MOVING;
use super::connecting::{Connecting, of_attempt};
use super::connection_state::ConnectionState;
use super::connections::Connections;
use super::managed::ManagedConnection;
use super::share::CountedClient;
use super::{ConnectRequest, Handle};
use crate::connection::Closed;
use narrows_base::{Duration, Time};
use narrows_wire::{ConnectionId, packet};
use std::net::SocketAddr;

/// An endpoint's data on a client's connection, for applications that share other resources among clients
/// ([`share`](super::share)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Facts {
    /// Its network, its key, and whether the key is listed.
    pub client: CountedClient,
    /// Time since its handshake.
    pub age: Duration,
    /// Time since it last moved data, measured by its packets.
    pub idle: Duration,
    /// Bytes of streams and messages moved in both directions, known to have arrived.
    pub moved: u64,
    /// Such bytes of the last 10 to 20 s.
    pub moved_lately: u64,
    /// Whether it moves enough data to keep its place unconditionally.
    pub is_moving: bool,
}

impl<C: ManagedConnection> Connections<C> {
    /// Starts connecting; a [`Connected`](crate::connection::ConnectionEvent::Connected) or
    /// [`Closed`](crate::connection::ConnectionEvent::Closed) event follows. `None` if there are too many connections.
    pub fn connect(&mut self, now: Time, connect: ConnectRequest) -> Option<Handle> {
        if self.connections() >= self.config.limits.connections {
            return None;
        }
        let (nonce, _) = of_attempt(self.draw());
        let until = now + connect.patience;
        let token = self.tokens.take(now, connect.remote);
        let seed = self.draw();
        let reset_key = &self.reset_key;
        let key = &self.config.key;
        let slot = self.table.add(&mut *self.entropy, |id| {
            let reset_token = reset_key.token(id, connect.remote);
            let mut connecting = Connecting::new(now, connect, id, reset_token, nonce);
            connecting.begin(now, token, key, seed);
            Some(ConnectionState::Connecting(Box::new(connecting)))
        })?;
        self.nonces.insert(nonce, slot);
        self.urge(slot);
        self.arm(slot, until);
        self.table.get(slot).map(|s| s.handle)
    }

    /// Whether an attempt to connect is pending.
    pub fn is_connecting(&self) -> bool {
        !self.nonces.is_empty()
    }

    /// Handles a report of the system that no socket receives at this address. The report is ICMP, which may be forged
    /// (RFC 5927): it counts only if `quoted`, the first bytes of the refused packet, has the random nonce of a pending
    /// attempt to connect there. After several such reports without a reply the attempt ends with
    /// [`Closed::NoListener`](crate::connection::Closed::NoListener), at another host after a grace period. Established
    /// connections ignore reports.
    pub fn on_refused(&mut self, now: Time, remote: SocketAddr, quoted: &[u8]) {
        let Some((nonce, _)) = packet::quoted_nonce(quoted).map(of_attempt) else { return };
        let Some(slot) = self.nonces.get(&nonce).copied() else { return };
        let Some(ConnectionState::Connecting(connecting)) =
            self.table.get(slot).and_then(|s| s.content.as_mut())
        else {
            return;
        };
        if connecting.remote() != remote {
            return;
        }
        if connecting.on_refused(now) {
            self.give_up(slot, Closed::NoListener);
        } else {
            let until = connecting.until();
            self.arm(slot, until);
        }
    }

    /// Whether a server replied to a pending attempt with BUSY, which may be forged. The attempt continues; the
    /// application may inform its user.
    pub fn meets_busy(&mut self) -> bool {
        let Connections { nonces, table, .. } = self;
        nonces.values().any(|slot| match table.get(*slot).and_then(|s| s.content.as_ref()) {
            Some(ConnectionState::Connecting(connecting)) => connecting.met_busy(),
            _ => false,
        })
    }

    /// An established connection; changes take effect at the next `transmit`. This does not catch panics, unlike
    /// [`with`](Connections::with).
    pub fn connection(&mut self, handle: Handle) -> Option<&mut C> {
        let slot = self.table.by_handle(handle)?;
        self.touch(slot);
        match self.table.get(slot)?.content.as_mut()? {
            ConnectionState::Live(live) => Some(&mut live.connection),
            _ => None,
        }
    }

    /// Calls `act` on an established connection; changes take effect at the next `transmit`. If it panics, as an
    /// application's own congestion controller may, the connection ends with [`Closed::Panicked`]. `None` if there is
    /// no such connection.
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

    /// Reads an established connection, even if it is over, but not after a panic.
    pub fn inspect<R>(&mut self, handle: Handle, look: impl FnOnce(&mut C) -> R) -> Option<R> {
        let slot = self.table.by_handle(handle)?;
        self.touch(slot);
        let ConnectionState::Live(live) = self.table.get(slot)?.content.as_mut()? else {
            return None;
        };
        live.inspected(look)
    }

    /// Data on a client's connection; `None` for other connections.
    pub fn facts(&mut self, now: Time, handle: Handle) -> Option<Facts> {
        let slot = self.table.by_handle(handle)?;
        let ConnectionState::Live(live) = self.table.get(slot)?.content.as_mut()? else {
            return None;
        };
        let total = live.guarded(|connection| connection.moved())?;
        live.activity.on_total(now, total);
        let (moved_lately, moved) = live.activity.bytes(now);
        let is_moving = live.activity.moves(now, MIN_MOVING);
        let age = now.since(live.since);
        let idle = now.since(live.activity.last());
        Some(Facts { client: live.client?, age, idle, moved, moved_lately, is_moving })
    }

    /// This end's connection ID, which packets to this end carry.
    pub fn id(&mut self, handle: Handle) -> Option<ConnectionId> {
        let slot = self.table.by_handle(handle)?;
        self.table.get(slot).map(|s| s.id)
    }

    /// Closes a connection, established or not.
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
