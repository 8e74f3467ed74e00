//! Further paths of connections.

use super::Handle;
use super::connection_state::ConnectionState;
use super::connections::Connections;
use super::managed::ManagedConnection;
use super::path_ids::PathOf;
use narrows_base::Time;
use narrows_wire::ConnectionId;

/// Tries to draw an unused ID.
const TRIES: u32 = 8;

impl<C: ManagedConnection> Connections<C> {
    /// The path of a packet with this ID.
    #[inline]
    pub(super) fn path_of(&self, id: ConnectionId) -> Option<PathOf> {
        match self.table.by_id(id) {
            Some(slot) => Some(PathOf { slot, path: 0 }),
            None => self.path_ids.get(id),
        }
    }

    /// Opens a further path of a client's connection, from the socket with the same number. Returns whether the
    /// connection tries to: both ends must permit so many paths, and the path must not have been opened before.
    pub fn open_path(&mut self, now: Time, handle: Handle, path: u8) -> bool {
        let Some(slot) = self.table.by_handle(handle) else { return false };
        let is_client = match self.table.get(slot).and_then(|s| s.content.as_ref()) {
            Some(ConnectionState::Live(live)) => live.client.is_none(),
            _ => false,
        };
        let is_opened = is_client && self.add_path(now, slot, path);
        self.touch(slot);
        is_opened
    }

    /// Gives a connection an ID for a further path. Returns whether it uses that.
    pub(super) fn add_path(&mut self, now: Time, slot: u32, path: u8) -> bool {
        let drawn = (0..TRIES).find_map(|_| {
            let id = ConnectionId(u32::from_be_bytes(self.draw()));
            self.path_of(id).is_none().then_some(id)
        });
        let content = self.table.get(slot).and_then(|s| s.content.as_mut());
        let (Some(id), Some(ConnectionState::Live(live))) = (drawn, content) else { return false };
        if live.guarded(|connection| connection.give_path_id(now, path, id)) != Some(true) {
            return false;
        }
        live.path_ids.push(id);
        self.path_ids.insert(id, PathOf { slot, path });
        true
    }
}
