//! Connections per network, and the candidates to give way next.

use super::Handle;
use super::share::CountedClient;
use super::source::Prefix;
use narrows_base::Time;
use std::collections::BTreeMap;

/// Counts of the connections of clients.
#[derive(Debug, Default)]
pub(super) struct ClientCounts {
    by_network: BTreeMap<Prefix, usize>,
    pub(super) unlisted: usize,
    /// Connections that gave way, before the application is informed: they have a slot but no place.
    pub(super) gone: usize,
    /// Candidates to give way, by network (`None`: any) and by whether the new client is listed.
    pub(super) next: BTreeMap<(Option<Prefix>, bool), EvictionOrder>,
}

/// Result of one scan. The last slot gives way first.
#[derive(Debug)]
pub(super) struct EvictionOrder {
    pub(super) at: Time,
    pub(super) slots: Vec<(u32, Handle)>,
    /// A candidate that moves this many bytes by then keeps its place.
    pub(super) kept_by: u64,
}

impl ClientCounts {
    pub(super) fn enter(&mut self, client: &CountedClient) {
        *self.by_network.entry(client.source.widest()).or_default() += 1;
        self.unlisted += usize::from(!client.is_listed);
    }
    pub(super) fn leave(&mut self, client: &CountedClient) {
        let network = client.source.widest();
        if let Some(count) = self.by_network.get_mut(&network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_network.remove(&network);
            }
        }
        self.unlisted = self.unlisted.saturating_sub(usize::from(!client.is_listed));
    }
    /// Connections of a network.
    pub(super) fn of(&self, network: Prefix) -> usize {
        self.by_network.get(&network).copied().unwrap_or(0)
    }
    /// Number of networks.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_network.len()
    }
}
