//! The addresses at which the far side listens for clients.

use narrows_wire::noise::PublicKey;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The listeners of all clients by their addresses. Permitted ports bound their number.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<HashMap<SocketAddr, (PublicKey, Arc<Notify>)>>);

/// A listener's entry; dropping it removes it.
pub(super) struct ListenerEntry<'l> {
    listeners: &'l Listeners,
    at: SocketAddr,
    /// Notified when the same client takes the address again.
    pub replaced: Arc<Notify>,
}

impl Listeners {
    /// Takes an address. A listener of the same client gives way: its connection was lost. `None` if another client
    /// has it.
    pub(super) fn take(&self, at: SocketAddr, key: PublicKey) -> Option<ListenerEntry<'_>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(&at).is_some_and(|(other, _)| *other != key) {
            return None;
        }
        let replaced = Arc::new(Notify::new());
        if let Some((_, before)) = all.insert(at, (key, replaced.clone())) {
            before.notify_one();
        }
        Some(ListenerEntry { listeners: self, at, replaced })
    }
}

impl Drop for ListenerEntry<'_> {
    fn drop(&mut self) {
        let mut all = self.listeners.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.get(&self.at).is_some_and(|(_, own)| Arc::ptr_eq(own, &self.replaced)) {
            all.remove(&self.at);
        }
    }
}
