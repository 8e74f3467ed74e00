//! Who is let in when all places are taken, and who gives up a place for it.
//!
//! A connection that moves data keeps its place. The others give theirs up as [`share`](super::share)
//! says: to a newcomer whose network has as many connections as one may have, one of that network;
//! else any. Whoever gives way is told by CLOSE 8; whoever finds no place by BUSY, or by CLOSE 8 if it
//! got as far as FINISH.

use super::Clients;
use super::Handle;
use super::content::{Content, Live};
use super::conversation::Conversation;
use super::ports::{ANSWERS, Ports};
use super::share::{Client, Holder, give_way, gives_way};
use super::source::{Prefix, Source};
use crate::connection::Closed;
use narrows_base::{Duration, Time};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// CLOSE's code for a client without a place.
pub(super) const BUSY: u64 = 8;
/// What it is told that had one.
const GAVE_WAY: &str = "busy: this idle connection made room for another client";
/// A CLOSE for a connection that gives way.
const CLOSE_BYTES: usize = 1200;
/// Whoever moved so many bytes since the last mark but one (between one and two pauses ago) moves data:
/// 7 kbit/s.
const MOVES: u64 = 8192;
const PAUSE: Duration = Duration::from_secs(10);
/// A connection is new for so long: a request over a path of a second, and its answer.
const NEW: Duration = Duration::from_secs(3);

/// Who gives way next is found by looking at all connections. Of many, several are found at once, one in
/// so many, and remembered for so long; also that nobody was found.
const FOUND_AT_ONCE: usize = 64;
const REMEMBERED: Duration = Duration::from_millis(100);

/// How much data a connection moves: streams and messages, either way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Movement {
    total: u64,
    /// When `before` became `marked`: the last mark.
    since: Time,
    marked: u64,
    before: u64,
}

impl Movement {
    pub(super) fn new(now: Time) -> Movement {
        Movement { total: 0, since: now, marked: 0, before: 0 }
    }
    /// It has moved so much since it began.
    #[inline]
    pub(super) fn on_total(&mut self, now: Time, total: u64) {
        let age = now.since(self.since);
        if age >= PAUSE {
            // After two pauses without a word of it nothing moved lately.
            self.before = if age >= PAUSE.saturating_mul(2) { self.total } else { self.marked };
            (self.marked, self.since) = (self.total, now);
        }
        self.total = total;
    }
    /// Bytes of the last one to two pauses, and of all time.
    pub(super) fn bytes(&self, now: Time) -> (u64, u64) {
        let age = now.since(self.since);
        let from = if age >= PAUSE.saturating_mul(2) {
            self.total
        } else if age >= PAUSE {
            self.marked
        } else {
            self.before
        };
        (self.total - from.min(self.total), self.total)
    }
    pub(super) fn is_moving(&self, now: Time) -> bool {
        self.bytes(now).0 >= MOVES
    }
}

/// How many connections clients have.
#[derive(Debug, Default)]
pub(super) struct Census {
    by_network: BTreeMap<Prefix, usize>,
    unlisted: usize,
    /// Connections that gave way and of which the application was not yet told: they hold a slot and
    /// no place.
    pub(super) gone: usize,
    /// Who gives way next within a network (or anywhere), and to a listed key or not.
    next: BTreeMap<(Option<Prefix>, bool), Next>,
}

/// Found at a time: the first to go last.
#[derive(Debug)]
struct Next {
    at: Time,
    slots: Vec<(u32, Handle)>,
}

impl Census {
    fn enter(&mut self, client: &Client) {
        *self.by_network.entry(client.source.widest()).or_default() += 1;
        self.unlisted += usize::from(!client.is_listed);
    }
    fn leave(&mut self, client: &Client) {
        let network = client.source.widest();
        if let Some(count) = self.by_network.get_mut(&network) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.by_network.remove(&network);
            }
        }
        self.unlisted = self.unlisted.saturating_sub(usize::from(!client.is_listed));
    }
    /// Networks that it knows of.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_network.len()
    }
}

/// Where a newcomer's place comes from.
enum Room {
    Free,
    From(u32),
    None,
}

impl<C: Conversation> Ports<C> {
    /// Connections, this end's own attempts included, without handshakes and those that gave way.
    pub(super) fn connections(&self) -> usize {
        self.table.len().saturating_sub(self.door.half_open() + self.census.gone)
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
        !matches!(self.room(now, &newcomer), Room::None)
    }

    /// Makes room for one more connection; false if nobody gives way.
    pub(super) fn make_room(&mut self, now: Time, newcomer: &Client) -> bool {
        match self.room(now, newcomer) {
            Room::Free => {}
            Room::From(slot) => self.evict(now, slot),
            Room::None => return false,
        }
        true
    }

    fn room(&mut self, now: Time, newcomer: &Client) -> Room {
        let limits = &self.config.limits;
        let network = newcomer.source.widest();
        let here = self.census.by_network.get(&network).copied().unwrap_or(0);
        // Where others may come too, a quarter is kept for listed keys.
        let most_unlisted = match self.config.clients {
            Clients::Preferring(_) => limits.connections - limits.connections / 4,
            _ => limits.connections,
        };
        let is_full = self.connections() >= limits.connections
            || !newcomer.is_listed && self.census.unlisted >= most_unlisted;
        let within = (here >= limits.connections_of_source).then_some(network);
        if within.is_none() && !is_full {
            return Room::Free;
        }
        let scope = (within, newcomer.is_listed);
        let is_old = |next: &Next| now.since(next.at) >= REMEMBERED;
        if self.census.next.get(&scope).is_none_or(is_old) {
            self.census.next.retain(|_, next| !is_old(next));
            let holders = self.idle(now, within);
            let most = holders.len() / FOUND_AT_ONCE + 1;
            let slots = give_way(holders, newcomer, most);
            self.census.next.insert(scope, Next { at: now, slots });
        }
        // Who has gone, or begun to move, since it was found does not give way.
        while let Some(next) = self.census.next.get_mut(&scope)
            && let Some(&(slot, handle)) = next.slots.last()
        {
            let s = self.table.get(slot).filter(|s| s.handle == handle);
            if s.and_then(|s| s.content.as_ref()).is_some_and(|c| may_give_way(now, c)) {
                return Room::From(slot);
            }
            next.slots.pop();
            if next.slots.is_empty() {
                self.census.next.remove(&scope);
                return self.room(now, newcomer);
            }
        }
        Room::None
    }

    /// Connections of clients (of one network only) that move nothing.
    fn idle(&self, now: Time, within: Option<Prefix>) -> Vec<Holder<(u32, Handle)>> {
        let holder = |(place, content): ((u32, Handle), &Content<C>)| {
            let Content::Live(live) = content else { return None };
            let client = live.client?;
            let is_meant = within.is_none_or(|network| client.source.widest() == network);
            let (moved, since) = (live.movement.bytes(now), live.since);
            let is_new = now.since(since) < NEW;
            let may = is_meant && may_give_way(now, content);
            may.then_some(Holder { client, moved, is_new, since, place })
        };
        self.table.iter().filter_map(holder).collect()
    }

    /// Ends a connection to make room. Its CLOSE is said once and nothing is kept of it; should that
    /// be lost, a RESET tells its peer.
    fn evict(&mut self, now: Time, slot: u32) {
        let content = self.table.get(slot).and_then(|s| s.content.as_mut());
        let Some(Content::Live(live)) = content else { return };
        let mut packet = vec![0; CLOSE_BYTES];
        let said = live.guarded(|connection| {
            connection.close(now, BUSY, GAVE_WAY);
            connection.transmit(now, &mut packet, 1)
        });
        live.over.get_or_insert(Closed::GaveWay);
        if let Some(Some(said)) = said
            && self.answers.len() < ANSWERS
        {
            packet.truncate(said.size);
            self.answers.push_back((said.to, packet));
        }
        self.strike(slot);
        self.touch(slot);
    }

    /// A client's connection begins.
    pub(super) fn count_in(&mut self, live: &Live<C>) {
        if let Some(client) = &live.client {
            self.census.enter(client);
        }
    }

    /// A connection holds no place any more, although perhaps still a slot.
    fn strike(&mut self, slot: u32) {
        let Some(s) = self.table.get(slot) else { return };
        self.alarms.disarm(slot, &mut s.armed);
        let Some(Content::Live(live)) = &mut s.content else { return };
        self.remotes.remove(&(live.remote, slot));
        if let Some(client) = live.client.take() {
            self.census.leave(&client);
            live.is_gone = true;
            self.census.gone += 1;
        }
    }

    /// A connection's slot is free again.
    pub(super) fn count_out(&mut self, live: &Live<C>) {
        if let Some(client) = &live.client {
            self.census.leave(client);
        }
        self.census.gone = self.census.gone.saturating_sub(usize::from(live.is_gone));
    }

    /// The peer of a client's connection is at another address now.
    pub(super) fn count_moved(&mut self, slot: u32, to: SocketAddr) {
        let content = self.table.get(slot).and_then(|s| s.content.as_mut());
        if let Some(Content::Live(live)) = content
            && let Some(client) = &mut live.client
        {
            self.census.leave(client);
            client.source = Source::of(to.ip());
            self.census.enter(client);
        }
    }

    /// Forgets the handshake whose place goes to one from there, if all places are taken: of the
    /// network that has most of them the oldest.
    pub(super) fn make_room_for_handshake(&mut self, from: SocketAddr) {
        if self.door.half_open() < self.config.limits.handshakes {
            return;
        }
        let anonymous =
            |at: SocketAddr| Client { source: Source::of(at.ip()), key: [0; 32], is_listed: false };
        let holders = self.table.iter().filter_map(|(place, content)| match content {
            Content::Answering(answering) => Some(Holder {
                client: anonymous(answering.from),
                moved: (0, 0),
                is_new: false,
                since: answering.born,
                place,
            }),
            _ => None,
        });
        if let Some((slot, _)) = gives_way(holders.collect(), &anonymous(from)) {
            self.remove(slot);
        }
    }
}

/// Whether it is a client's connection that moves nothing, or that is over.
fn may_give_way<C: Conversation>(now: Time, content: &Content<C>) -> bool {
    let Content::Live(live) = content else { return false };
    let is_idle = live.is_told || !live.movement.is_moving(now);
    live.client.is_some() && live.over.is_none() && is_idle
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_moved_lately_is_forgotten_after_two_pauses() {
        let at = |s: u64| Time::ZERO + Duration::from_secs(s);
        let mut movement = Movement::new(at(0));
        assert!(!movement.is_moving(at(0)));
        movement.on_total(at(1), 100_000);
        assert!(movement.is_moving(at(1)) && movement.is_moving(at(9)));
        // Silence.
        assert!(!movement.is_moving(at(20)));
        assert_eq!(movement.bytes(at(20)), (0, 100_000));
        // A few bytes for a long time.
        for second in 20..60 {
            movement.on_total(at(second), 100_000 + second);
        }
        assert!(!movement.is_moving(at(60)));
        // As much as counts, in every pause.
        for second in 60..100 {
            movement.on_total(at(second), 100_060 + (second - 60) * MOVES / 10);
        }
        assert!(movement.is_moving(at(100)) && !movement.is_moving(at(120)));
    }
}
