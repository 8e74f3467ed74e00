//! Number of connections per network, and which of them were chosen to give way next.

use super::Handle;
use super::share::Client;
use super::source::Prefix;
use narrows_base::Time;
use std::collections::BTreeMap;

/// How many connections clients have.
#[derive(Debug, Default)]
pub(super) struct ClientCounts {
    by_network: BTreeMap<Prefix, usize>,
    pub(super) unlisted: usize,
    /// Connections that gave way and of which the application was not yet told: they hold a slot and
    /// no place.
    pub(super) gone: usize,
    /// Who gives way next within a network (or anywhere), and to a listed key or not.
    pub(super) next: BTreeMap<(Option<Prefix>, bool), Next>,
}

/// Found at a time: the first to go last.
#[derive(Debug)]
pub(super) struct Next {
    pub(super) at: Time,
    pub(super) slots: Vec<(u32, Handle)>,
    /// Whoever moves so many bytes keeps its place after all.
    pub(super) kept_by: u64,
}

impl ClientCounts {
    pub(super) fn enter(&mut self, client: &Client) {
        *self.by_network.entry(client.source.widest()).or_default() += 1;
        self.unlisted += usize::from(!client.is_listed);
    }
    pub(super) fn leave(&mut self, client: &Client) {
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
    /// Networks that it knows of.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_network.len()
    }
}
