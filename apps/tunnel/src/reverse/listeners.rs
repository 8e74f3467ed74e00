//! The addresses at which the far side listens for clients.

use crate::permissions::Permissions;
use narrows_wire::noise::PublicKey;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The listeners of all clients by their addresses. Permitted ports bound their number.
#[derive(Default)]
pub(crate) struct Listeners(Mutex<HashMap<SocketAddr, (PublicKey, Arc<Notify>)>>);

/// Reason why a client gets no listener at a permitted address.
pub(super) enum NotTaken {
    /// Another client has it.
    OfOther,
    /// The client holds its share of the ports.
    Share,
}

/// A listener's entry; dropping it removes it.
pub(super) struct ListenerEntry<'l> {
    listeners: &'l Listeners,
    at: SocketAddr,
    /// Notified when the same client takes the address again.
    pub replaced: Arc<Notify>,
}

impl Listeners {
    /// Takes an address. A listener of the same client gives way: its connection was lost. Of the ports for all clients,
    /// a client holds at most as many as remain free, as of [descriptors](crate::descriptors).
    ///
    /// # Errors
    /// Another client has the address, or the client holds its share.
    pub(super) fn take(
        &self,
        at: SocketAddr,
        key: PublicKey,
        permissions: &Permissions,
    ) -> Result<ListenerEntry<'_>, NotTaken> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get(&at) {
            Some((other, _)) if *other != key => return Err(NotTaken::OfOther),
            None if permissions.clients.len() > 1 && permissions.reverse.is_shared(at) => {
                let shared = all.iter().filter(|(at, _)| permissions.reverse.is_shared(**at));
                let keys: Vec<_> = shared.map(|(_, (other, _))| *other).collect();
                let own = keys.iter().filter(|other| **other == key).count();
                if own >= permissions.reverse.shared().saturating_sub(keys.len()) {
                    return Err(NotTaken::Share);
                }
            }
            _ => {}
        }
        let replaced = Arc::new(Notify::new());
        if let Some((_, before)) = all.insert(at, (key, replaced.clone())) {
            before.notify_one();
        }
        Ok(ListenerEntry { listeners: self, at, replaced })
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
