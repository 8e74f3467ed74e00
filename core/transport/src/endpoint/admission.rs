//! Admission when all places are taken: which client gets a place, and which connection is closed for it.
//!
//! A connection that moves data keeps its place, but a network cannot keep many places by moving little data in each.
//! Of the remaining connections, [`share`](super::share) selects the one to close: one of the new client's own network
//! if that has reached its limit, otherwise any. The closed connection gets CLOSE 8. A client without a place gets
//! BUSY, or CLOSE 8 after its FINISH.

use super::accepting::HANDSHAKE_CLAIM;
use super::activity::{MIN_MOVING, MIN_MOVING_MUCH};
use super::client_counts::EvictionOrder;
use super::connection_state::{ConnectionState, LiveConnection};
use super::connections::{Connections, MAX_REPLIES};
use super::managed::ManagedConnection;
use super::share::{CountedClient, Holder, give_way, gives_way};
use super::source::{ClientNetwork, Prefix};
use super::{Clients, Handle};
use crate::connection::{Closed, ConnectionConfig};
use narrows_base::{Duration, Time};
use std::cmp::Reverse;
use std::net::SocketAddr;

/// CLOSE code: no place for this client.
pub(super) const BUSY: u64 = 8;
/// CLOSE code and reason: the client's key is not on the list.
pub(super) const NOT_LISTED: (u64, &str) = (4, "this client's key is not on the list");
/// Reason in the CLOSE of a connection that gives way.
const GAVE_WAY: &str = "busy: this connection, idle or slow, made room for another client";
/// Buffer for the CLOSE of a connection that gives way, in bytes.
const CLOSE_BYTES: usize = 1200;
/// In each network, the most active connections, up to 1/8 of all places, keep their places even if they move little.
const SLOW_KEPT: usize = 8;
/// A connection is new for this time: a request and its response over a path of a second.
const NEW: Duration = Duration::from_secs(3);

/// The connection to give way is found by a scan of all connections. One scan finds one candidate per this many
/// connections. Its result, even an empty one, is kept for `REMEMBERED`.
const FOUND_AT_ONCE: usize = 64;
const REMEMBERED: Duration = Duration::from_millis(100);

/// Source of a new client's place.
enum Vacancy {
    Free,
    From(u32),
    None,
}

impl<C: ManagedConnection> Connections<C> {
    /// Connections, including this end's own attempts, without handshakes and without connections that gave way.
    pub(super) fn connections(&self) -> usize {
        self.table.len().saturating_sub(self.gate.half_open() + self.counts.gone)
    }

    /// The client as counted in the sharing of places.
    pub(super) fn client(&self, from: SocketAddr, key: [u8; 32]) -> CountedClient {
        CountedClient { source: ClientNetwork::of(from.ip()), key, is_listed: self.lists(&key) }
    }

    fn lists(&self, key: &[u8; 32]) -> bool {
        match &self.config.clients {
            Clients::Preferring(keys) | Clients::Listed(keys) => keys.contains(key),
            Clients::Any | Clients::None => false,
        }
    }

    /// Whether a client with this key may connect.
    pub(super) fn permits(&self, key: &[u8; 32]) -> bool {
        match &self.config.clients {
            Clients::None => false,
            Clients::Any | Clients::Preferring(_) => true,
            Clients::Listed(_) => self.lists(key),
        }
    }

    /// Replaces the configuration of connections that are accepted from now on.
    pub fn set_connection_config(&mut self, connection: ConnectionConfig) {
        self.config.connection = connection;
    }

    /// Replaces the list of clients. Connections of clients that may not connect any more get CLOSE 4. The end of a
    /// pending handshake is checked against the new list.
    pub fn set_clients(&mut self, now: Time, clients: Clients) {
        self.config.clients = clients;
        // The candidates to give way were chosen by the former list.
        self.counts.next.clear();
        let client = |((slot, handle), content): ((u32, Handle), &ConnectionState<C>)| match content
        {
            ConnectionState::Live(live) => Some((slot, handle, live.client?.key)),
            _ => None,
        };
        let clients: Vec<_> = self.table.iter().filter_map(client).collect();
        for (slot, handle, key) in clients {
            let is_listed = self.lists(&key);
            self.change_client(slot, |client| client.is_listed = is_listed);
            if !self.permits(&key) {
                let (code, reason) = NOT_LISTED;
                self.close(now, handle, code, reason);
            }
        }
    }

    /// Whether a client at this address can get a place, as far as is known before its key.
    pub(super) fn may_have_room(&mut self, now: Time, from: SocketAddr) -> bool {
        let is_listed = !matches!(self.config.clients, Clients::Any);
        let newcomer = CountedClient { is_listed, ..self.client(from, [0; 32]) };
        !matches!(self.room(now, &newcomer), Vacancy::None)
    }

    /// Makes room for one more connection; false if no connection may give way.
    pub(super) fn make_room(&mut self, now: Time, newcomer: &CountedClient) -> bool {
        match self.room(now, newcomer) {
            Vacancy::Free => {}
            Vacancy::From(slot) => self.evict(now, slot),
            Vacancy::None => return false,
        }
        true
    }

    /// Whether a place is free without closing a connection.
    pub(super) fn has_free_place(&mut self, now: Time, newcomer: &CountedClient) -> bool {
        matches!(self.room(now, newcomer), Vacancy::Free)
    }

    fn room(&mut self, now: Time, newcomer: &CountedClient) -> Vacancy {
        let limits = &self.config.limits;
        let network = newcomer.source.widest();
        let here = self.counts.of(network);
        // With `Preferring`, a quarter of the places is reserved for listed keys.
        let most_unlisted = match self.config.clients {
            Clients::Preferring(_) => limits.connections - limits.connections / 4,
            _ => limits.connections,
        };
        let is_full = self.connections() >= limits.connections
            || !newcomer.is_listed && self.counts.unlisted >= most_unlisted;
        let within = (here >= limits.connections_of_source).then_some(network);
        if within.is_none() && !is_full {
            return Vacancy::Free;
        }
        let scope = (within, newcomer.is_listed);
        let is_old = |next: &EvictionOrder| now.since(next.at) >= REMEMBERED;
        if self.counts.next.get(&scope).is_none_or(is_old) {
            self.counts.next.retain(|_, next| !is_old(next));
            let found = |holders: Vec<_>| {
                let most = holders.len() / FOUND_AT_ONCE + 1;
                give_way(holders, newcomer, most)
            };
            let mut idle = self.below(now, within, MIN_MOVING);
            let new: Vec<_> = idle.iter().filter(|h| h.is_new).map(|h| h.place).collect();
            let mut next =
                EvictionOrder { at: now, slots: found(idle.clone()), kept_by: MIN_MOVING };
            // New connections had no time to move data. If they gave way before old ones that move little, the clients
            // of the old ones could displace every new client by reconnecting. New connections that move a little more
            // at once could do the same, so these may give way, too.
            if next.slots.last().is_none_or(|first| new.contains(first)) {
                let mut slow = self.slow(now, within);
                if slow.iter().any(|h| !h.is_new) {
                    slow.retain(|h| !h.is_new);
                } else {
                    slow.retain(|h| h.moved.0 >= MIN_MOVING);
                    idle.retain(|h| h.is_new);
                    slow.append(&mut idle);
                }
                if !slow.is_empty() {
                    next.slots = found(slow);
                    next.kept_by = MIN_MOVING_MUCH;
                }
            }
            self.counts.next.insert(scope, next);
        }
        // Candidates that ended, or began to move data, since the scan do not give way. The scan counts the bytes that
        // the application had received when the last packet came: it may have received more since.
        while let Some(next) = self.counts.next.get_mut(&scope)
            && let Some(&(slot, handle)) = next.slots.last()
        {
            let s = self.table.get(slot).filter(|s| s.handle == handle);
            let mut content = s.and_then(|s| s.content.as_mut());
            if let Some(ConnectionState::Live(live)) = &mut content
                && let Some(total) = live.guarded(|connection| connection.moved())
            {
                live.activity.on_total(now, total);
            }
            if content.is_some_and(|c| may_give_way(now, c, next.kept_by)) {
                return Vacancy::From(slot);
            }
            next.slots.pop();
            if next.slots.is_empty() {
                self.counts.next.remove(&scope);
                return self.room(now, newcomer);
            }
        }
        Vacancy::None
    }

    /// Connections of clients (of one network, if given) that moved fewer than `bytes` bytes lately.
    fn below(&self, now: Time, within: Option<Prefix>, bytes: u64) -> Vec<Holder<(u32, Handle)>> {
        let holder = |(place, content): ((u32, Handle), &ConnectionState<C>)| {
            let ConnectionState::Live(live) = content else { return None };
            let client = live.client?;
            let is_meant = within.is_none_or(|network| client.source.widest() == network);
            let moved = live.activity.bytes(now);
            let since = live.since;
            let is_new = now.since(since) < NEW;
            let may = is_meant && may_give_way(now, content, bytes);
            may.then_some(Holder { client, moved, is_new, since, place })
        };
        self.table.iter().filter_map(holder).collect()
    }

    /// Connections that move little data, without the most active of each network. If all of them kept their places,
    /// two addresses could hold all places with 4 Mbit/s.
    fn slow(&self, now: Time, within: Option<Prefix>) -> Vec<Holder<(u32, Handle)>> {
        let mut holders = self.below(now, within, u64::MAX);
        holders.sort_unstable_by_key(|h| (h.client.source.widest(), Reverse(h.moved.0)));
        let kept = self.config.limits.connections / SLOW_KEPT;
        let networks =
            holders.chunk_by(|a, b| a.client.source.widest() == b.client.source.widest());
        let slow = networks.flat_map(|network| network.iter().skip(kept));
        slow.filter(|h| h.moved.0 < MIN_MOVING_MUCH).copied().collect()
    }

    /// Closes a connection to make room. CLOSE is sent once and no state remains. If it is lost, the peer gets a RESET
    /// for its next packet.
    fn evict(&mut self, now: Time, slot: u32) {
        let content = self.table.get(slot).and_then(|s| s.content.as_mut());
        let Some(ConnectionState::Live(live)) = content else { return };
        let mut packet = vec![0; CLOSE_BYTES];
        let said = live.guarded(|connection| {
            connection.close(now, BUSY, GAVE_WAY);
            connection.transmit(now, &mut packet, 1)
        });
        live.over.get_or_insert(Closed::GaveWay);
        if let Some(Some(said)) = said
            && self.answers.len() < MAX_REPLIES
        {
            packet.truncate(said.size);
            self.answers.push_back((said.to, packet));
        }
        self.release_place(slot);
        self.touch(slot);
    }

    /// Counts a client's new connection.
    pub(super) fn count_client(&mut self, live: &LiveConnection<C>) {
        if let Some(client) = &live.client {
            self.counts.enter(client);
        }
    }

    /// Frees a connection's place, although it may still have a slot.
    fn release_place(&mut self, slot: u32) {
        let Some(s) = self.table.get(slot) else { return };
        self.alarms.disarm(slot, &mut s.armed);
        let Some(ConnectionState::Live(live)) = &mut s.content else { return };
        self.remotes.remove(&(live.remote, slot));
        self.unconfirmed -= usize::from(live.early.take().is_some());
        if let Some(client) = live.client.take() {
            self.counts.leave(&client);
            live.is_gone = true;
            self.counts.gone += 1;
        }
    }

    /// Removes a connection from the counts when its slot becomes free.
    pub(super) fn uncount_client(&mut self, live: &LiveConnection<C>) {
        if let Some(client) = &live.client {
            self.counts.leave(client);
        }
        self.counts.gone = self.counts.gone.saturating_sub(usize::from(live.is_gone));
    }

    /// Moves a client's connection to the counts of its new address.
    pub(super) fn recount_client(&mut self, slot: u32, to: SocketAddr) {
        self.change_client(slot, |client| client.source = ClientNetwork::of(to.ip()));
    }

    fn change_client(&mut self, slot: u32, change: impl FnOnce(&mut CountedClient)) {
        let content = self.table.get(slot).and_then(|s| s.content.as_mut());
        if let Some(ConnectionState::Live(live)) = content
            && let Some(client) = &mut live.client
        {
            self.counts.leave(client);
            change(client);
            self.counts.enter(client);
        }
    }

    /// Drops handshakes that wait for FINISH so long that their places are for new ones.
    pub(super) fn drop_old_handshakes(&mut self, now: Time) {
        if now < self.gate.claims_end {
            return;
        }
        let mut claims_end = now + HANDSHAKE_CLAIM;
        let mut old = Vec::new();
        for (place, content) in self.table.iter() {
            if let ConnectionState::Accepting(accepting) = content {
                if accepting.claim_ends() <= now {
                    old.push(place);
                } else {
                    claims_end = claims_end.min(accepting.claim_ends());
                }
            }
        }
        self.gate.claims_end = claims_end;
        old.into_iter().for_each(|(slot, _)| self.remove(slot));
    }

    /// If all handshakes are taken, drops one for a client at this address: the oldest of the network with most
    /// handshakes.
    pub(super) fn make_room_for_handshake(&mut self, now: Time, from: SocketAddr) {
        if self.gate.half_open() >= self.config.limits.handshakes {
            self.drop_old_handshakes(now);
        }
        if self.gate.half_open() < self.config.limits.handshakes {
            return;
        }
        let anonymous = |at: SocketAddr| CountedClient {
            source: ClientNetwork::of(at.ip()),
            key: [0; 32],
            is_listed: false,
        };
        let holders = self.table.iter().filter_map(|(place, content)| match content {
            ConnectionState::Accepting(accepting) => Some(Holder {
                client: anonymous(accepting.from),
                moved: (0, 0),
                is_new: false,
                since: accepting.born,
                place,
            }),
            _ => None,
        });
        if let Some((slot, _)) = gives_way(holders.collect(), &anonymous(from)) {
            self.remove(slot);
        }
    }
}

/// Whether a live client connection moved fewer than `bytes` bytes lately, or its end was reported.
fn may_give_way<C: ManagedConnection>(now: Time, content: &ConnectionState<C>, bytes: u64) -> bool {
    let ConnectionState::Live(live) = content else { return false };
    let is_idle = live.is_told || !live.activity.moves(now, bytes);
    live.client.is_some() && live.over.is_none() && is_idle
}
