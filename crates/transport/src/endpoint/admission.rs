//! Admission when all places are taken: which client gets a place, and which connection is closed for it.
//!
//! A connection that moves data keeps its place, but a network cannot keep many places by moving little data in each.
//! Among the others [`share`](super::share) chooses the one that is closed: one of the newcomer's own network if that
//! has reached its limit, otherwise any. A connection that gives way gets CLOSE 8; a client that finds no place gets
//! BUSY, or CLOSE 8 if it had sent its FINISH.

use super::activity::{MIN_MOVING, MIN_MOVING_MUCH};
use super::client_counts::Next;
use super::connection_state::{ConnectionState, Live};
use super::connections::{Connections, MAX_REPLIES};
use super::managed::ManagedConnection;
use super::share::{Client, Holder, give_way, gives_way};
use super::source::{Prefix, Source};
use super::{Clients, Handle};
use crate::connection::Closed;
use narrows_base::{Duration, Time};
use std::cmp::Reverse;
use std::net::SocketAddr;

/// CLOSE's code for a client without a place.
pub(super) const BUSY: u64 = 8;
/// What it is told that had one.
const GAVE_WAY: &str = "busy: this connection, idle or slow, made room for another client";
/// A CLOSE for a connection that gives way.
const CLOSE_BYTES: usize = 1200;
/// So many connections of a network, one in so many of all places, keep theirs by moving little.
const SLOW_KEPT: usize = 8;
/// A connection is new for so long: a request over a path of a second, and its answer.
const NEW: Duration = Duration::from_secs(3);

/// Who gives way next is found by looking at all connections. Of many, several are found at once, one in
/// so many, and remembered for so long; also that nobody was found.
const FOUND_AT_ONCE: usize = 64;
const REMEMBERED: Duration = Duration::from_millis(100);

/// Where a newcomer's place comes from.
enum Vacancy {
    Free,
    From(u32),
    None,
}

impl<C: ManagedConnection> Connections<C> {
    /// Connections, this end's own attempts included, without handshakes and those that gave way.
    pub(super) fn connections(&self) -> usize {
        self.table.len().saturating_sub(self.gate.half_open() + self.counts.gone)
    }

    /// Who a client is to the sharing of places.
    pub(super) fn client(&self, from: SocketAddr, key: [u8; 32]) -> Client {
        let is_listed = match &self.config.clients {
            Clients::Preferring(keys) | Clients::Listed(keys) => keys.contains(&key),
            Clients::Any | Clients::None => false,
        };
        Client { source: Source::of(from.ip()), key, is_listed }
    }

    /// Whether there is a place for somebody from there, as far as can be told before the key is known.
    pub(super) fn may_have_room(&mut self, now: Time, from: SocketAddr) -> bool {
        let is_listed = !matches!(self.config.clients, Clients::Any);
        let newcomer = Client { is_listed, ..self.client(from, [0; 32]) };
        !matches!(self.room(now, &newcomer), Vacancy::None)
    }

    /// Makes room for one more connection; false if nobody gives way.
    pub(super) fn make_room(&mut self, now: Time, newcomer: &Client) -> bool {
        match self.room(now, newcomer) {
            Vacancy::Free => {}
            Vacancy::From(slot) => self.evict(now, slot),
            Vacancy::None => return false,
        }
        true
    }

    /// Whether there is a place for which nobody gives way.
    pub(super) fn has_free_place(&mut self, now: Time, newcomer: &Client) -> bool {
        matches!(self.room(now, newcomer), Vacancy::Free)
    }

    fn room(&mut self, now: Time, newcomer: &Client) -> Vacancy {
        let limits = &self.config.limits;
        let network = newcomer.source.widest();
        let here = self.counts.of(network);
        // Where others may come too, a quarter is kept for listed keys.
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
        let is_old = |next: &Next| now.since(next.at) >= REMEMBERED;
        if self.counts.next.get(&scope).is_none_or(is_old) {
            self.counts.next.retain(|_, next| !is_old(next));
            let found = |holders: Vec<_>| {
                let most = holders.len() / FOUND_AT_ONCE + 1;
                give_way(holders, newcomer, most)
            };
            let mut idle = self.below(now, within, MIN_MOVING);
            let new: Vec<_> = idle.iter().filter(|h| h.is_new).map(|h| h.place).collect();
            let mut next = Next { at: now, slots: found(idle.clone()), kept_by: MIN_MOVING };
            // Who has just come had no time to move anything. If it went before those who are here for
            // long and move little, these could put out every newcomer by coming again; and so could
            // newcomers that move a little more at once, if these did not go too.
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
        // Who has gone, or begun to move, since it was found does not give way.
        while let Some(next) = self.counts.next.get_mut(&scope)
            && let Some(&(slot, handle)) = next.slots.last()
        {
            let s = self.table.get(slot).filter(|s| s.handle == handle);
            let content = s.and_then(|s| s.content.as_ref());
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

    /// Connections of clients (of one network only) that move fewer than so many bytes.
    fn below(&self, now: Time, within: Option<Prefix>, bytes: u64) -> Vec<Holder<(u32, Handle)>> {
        let holder = |(place, content): ((u32, Handle), &ConnectionState<C>)| {
            let ConnectionState::Live(live) = content else { return None };
            let client = live.client?;
            let is_meant = within.is_none_or(|network| client.source.widest() == network);
            let (moved, since) = (live.activity.bytes(now), live.since);
            let is_new = now.since(since) < NEW;
            let may = is_meant && may_give_way(now, content, bytes);
            may.then_some(Holder { client, moved, is_new, since, place })
        };
        self.table.iter().filter_map(holder).collect()
    }

    /// Connections that move little, but for those of each network that move most: else two addresses
    /// could keep all places for 4 Mbit/s.
    fn slow(&self, now: Time, within: Option<Prefix>) -> Vec<Holder<(u32, Handle)>> {
        let mut holders = self.below(now, within, u64::MAX);
        holders.sort_unstable_by_key(|h| (h.client.source.widest(), Reverse(h.moved.0)));
        let kept = self.config.limits.connections / SLOW_KEPT;
        let networks =
            holders.chunk_by(|a, b| a.client.source.widest() == b.client.source.widest());
        let slow = networks.flat_map(|network| network.iter().skip(kept));
        slow.filter(|h| h.moved.0 < MIN_MOVING_MUCH).copied().collect()
    }

    /// Ends a connection to make room. Its CLOSE is said once and nothing is kept of it; should that
    /// be lost, a RESET tells its peer.
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

    /// A client's connection begins.
    pub(super) fn count_client(&mut self, live: &Live<C>) {
        if let Some(client) = &live.client {
            self.counts.enter(client);
        }
    }

    /// A connection holds no place any more, although perhaps still a slot.
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

    /// A connection's slot is free again.
    pub(super) fn uncount_client(&mut self, live: &Live<C>) {
        if let Some(client) = &live.client {
            self.counts.leave(client);
        }
        self.counts.gone = self.counts.gone.saturating_sub(usize::from(live.is_gone));
    }

    /// The peer of a client's connection is at another address now.
    pub(super) fn recount_client(&mut self, slot: u32, to: SocketAddr) {
        let content = self.table.get(slot).and_then(|s| s.content.as_mut());
        if let Some(ConnectionState::Live(live)) = content
            && let Some(client) = &mut live.client
        {
            self.counts.leave(client);
            client.source = Source::of(to.ip());
            self.counts.enter(client);
        }
    }

    /// Forgets the handshake whose place goes to one from there, if all places are taken: of the
    /// network that has most of them the oldest.
    pub(super) fn make_room_for_handshake(&mut self, from: SocketAddr) {
        if self.gate.half_open() < self.config.limits.handshakes {
            return;
        }
        let anonymous =
            |at: SocketAddr| Client { source: Source::of(at.ip()), key: [0; 32], is_listed: false };
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

/// Whether it is a client's connection that moved fewer than so many bytes lately, or that is over.
fn may_give_way<C: ManagedConnection>(now: Time, content: &ConnectionState<C>, bytes: u64) -> bool {
    let ConnectionState::Live(live) = content else { return false };
    let is_idle = live.is_told || !live.activity.moves(now, bytes);
    live.client.is_some() && live.over.is_none() && is_idle
}
