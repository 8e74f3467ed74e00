//! The connections of an endpoint: the order of sending, timers, and pending events.

use super::alarms::Alarms;
use super::client_counts::ClientCounts;
use super::connecting::{Connecting, of_attempt};
use super::connection_state::{ConnectionState, due};
use super::handshake_gate::HandshakeGate;
use super::handshake_rate::HandshakeRateLimit;
use super::managed::ManagedConnection;
use super::path_ids::PathIds;
use super::table::SlotTable;
use super::token_store::{MemoryTokens, TokenStore};
use super::{EndpointConfig, Entropy, Handle};
use crate::connection::{Closed, ConnectionEvent};
use narrows_base::Time;
use narrows_wire::VERSION;
use narrows_wire::packet::Nonce;
use narrows_wire::reset::ResetKey;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Limit on queued stateless replies; further ones are dropped.
pub(super) const MAX_REPLIES: usize = 256;
/// Limit per second on RESETs sent, and on RESETs checked.
const RESETS: u32 = 100;

/// All connections of one socket; [`Endpoint`](super::Endpoint) uses it with
/// [`Connection`](crate::connection::Connection).
pub struct Connections<C> {
    pub(super) config: EndpointConfig,
    pub(super) entropy: Box<dyn Entropy>,
    pub(super) reset_key: ResetKey,
    /// Tokens from servers, for later connections to them.
    pub(super) tokens: Box<dyn TokenStore>,
    /// Versions that this end supports, for the check against a downgrade.
    pub(super) speaks: &'static [u32],
    pub(super) gate: HandshakeGate,
    pub(super) counts: ClientCounts,
    pub(super) table: SlotTable<ConnectionState<C>>,
    pub(super) path_ids: PathIds,
    pub(super) alarms: Alarms,
    /// Number of unconfirmed connections that began with early data.
    pub(super) unconfirmed: usize,
    /// Attempts to connect, by nonce.
    pub(super) nonces: BTreeMap<Nonce, u32>,
    /// Connections, by the peer's address.
    pub(super) remotes: BTreeSet<(SocketAddr, u32)>,
    /// Stateless replies to be sent.
    pub(super) answers: VecDeque<(SocketAddr, Vec<u8>)>,
    /// Slots with a handshake packet to send.
    pub(super) urgent: VecDeque<u32>,
    /// Slots that may have packets to send, or a new timer.
    pub(super) ready: VecDeque<u32>,
    /// Slots that may have events.
    pub(super) eventful: VecDeque<u32>,
    pub(super) resets_sent: HandshakeRateLimit,
    pub(super) resets_read: HandshakeRateLimit,
    /// Whether a stateless reply was sent last, so that it is the connections' turn.
    pub(super) answered_last: bool,
}

impl<C: ManagedConnection> Connections<C> {
    /// An endpoint without connections.
    pub fn new(config: EndpointConfig, mut entropy: Box<dyn Entropy>) -> Connections<C> {
        let mut cookies = [0; 32];
        let mut tokens = [0; 32];
        entropy.fill(&mut cookies);
        entropy.fill(&mut tokens);
        Connections {
            gate: HandshakeGate::new([&cookies, &tokens], &config.limits, config.early_data),
            tokens: Box::new(MemoryTokens::default()),
            counts: ClientCounts::default(),
            reset_key: ResetKey::of(&config.key, config.local_port),
            speaks: &[VERSION],
            table: SlotTable::new(config.limits.slots()),
            path_ids: PathIds::default(),
            alarms: Alarms::default(),
            unconfirmed: 0,
            nonces: BTreeMap::new(),
            remotes: BTreeSet::new(),
            answers: VecDeque::new(),
            urgent: VecDeque::new(),
            ready: VecDeque::new(),
            eventful: VecDeque::new(),
            resets_sent: HandshakeRateLimit::new(RESETS),
            resets_read: HandshakeRateLimit::new(RESETS),
            answered_last: false,
            config,
            entropy,
        }
    }

    /// Replaces the token store, which is in memory by default.
    pub fn set_token_store(&mut self, tokens: Box<dyn TokenStore>) {
        self.tokens = tokens;
    }

    pub(super) fn draw<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.entropy.fill(&mut bytes);
        bytes
    }

    /// When to call [`on_timeout`](Connections::on_timeout). Valid only after [`transmit`](Connections::transmit) has
    /// returned `None`, because a connection's new timer is read there. (If the socket is full, it is still the time of
    /// the next timer.)
    pub fn next_timeout(&self) -> Time {
        self.alarms.first()
    }

    /// Whether [`transmit`](Connections::transmit) has no work.
    pub fn is_quiet(&self) -> bool {
        self.urgent.is_empty() && self.answers.is_empty() && self.ready.is_empty()
    }

    /// Whether exactly one connection may have packets to send, and none of its packets is in flight. Its packets then
    /// need not wait to be sent with others.
    pub fn is_one_ready(&mut self) -> bool {
        if !self.urgent.is_empty() || !self.answers.is_empty() || self.ready.len() != 1 {
            return false;
        }
        let slot = self.ready.front().and_then(|slot| self.table.get(*slot));
        match slot.and_then(|s| s.content.as_mut()) {
            Some(ConnectionState::Live(live)) => live.guarded(|c| c.in_flight()) == Some(0),
            _ => false,
        }
    }

    /// Handles the time given by [`next_timeout`](Connections::next_timeout).
    pub fn on_timeout(&mut self, now: Time) {
        // No alarm is set for `now` or earlier in this loop, so it ends.
        while let Some(slot) = self.alarms.take(now) {
            let Some(s) = self.table.get(slot) else { continue };
            s.armed = Time::NEVER;
            if s.content.as_mut().is_some_and(|c| due(c) > now) {
                self.rearm(slot);
            } else {
                self.fire(now, slot);
            }
        }
    }

    fn fire(&mut self, now: Time, slot: u32) {
        let Some(content) = self.table.get(slot).and_then(|s| s.content.as_mut()) else { return };
        match content {
            ConnectionState::Connecting(connecting) if now >= connecting.until() => {
                let outcome = connecting.outcome(now);
                self.give_up(slot, outcome);
            }
            ConnectionState::Connecting(connecting) => {
                // This does not depend on whether the driver takes the packet.
                let until = connecting.until();
                if connecting.is_stale(now) {
                    let mut drawn = [0; 16];
                    self.entropy.fill(&mut drawn);
                    let (nonce, _) = of_attempt(drawn);
                    if let Some(old) = connecting.restart(now, nonce) {
                        self.nonces.remove(&old);
                    }
                    self.nonces.insert(nonce, slot);
                }
                self.urge(slot);
                self.arm(slot, until);
            }
            ConnectionState::Accepting(_) => self.remove(slot),
            ConnectionState::Live(live) => {
                if let Some(finishing) = &live.finishing {
                    if now >= finishing.progress.until {
                        live.over = Some(finishing.progress.failure(now));
                        live.finishing = None;
                    } else if finishing.repeat.due() <= now {
                        self.urge(slot);
                    }
                }
                self.wake(now, slot);
            }
            ConnectionState::Over(_) => {}
        }
    }

    fn wake(&mut self, now: Time, slot: u32) {
        let content = self.table.get(slot).and_then(|s| s.content.as_mut());
        if let Some(ConnectionState::Live(live)) = content {
            live.guarded(|connection| {
                if connection.next_timeout() <= now {
                    connection.on_timeout(now);
                }
            });
            self.touch(slot);
        }
    }

    /// The next event, if any. After [`ConnectionEvent::Closed`] the connection can still be read until the next call.
    pub fn event(&mut self) -> Option<(Handle, ConnectionEvent)> {
        while let Some(&slot) = self.eventful.front() {
            let Some(s) = self.table.get(slot) else {
                self.eventful.pop_front();
                continue;
            };
            let handle = s.handle;
            let event = match s.content.as_mut() {
                Some(ConnectionState::Live(live)) => live.next_event(),
                Some(ConnectionState::Over(why)) => Some(ConnectionEvent::Closed(why.clone())),
                _ => None,
            };
            let is_over = matches!(s.content, Some(ConnectionState::Over(_)));
            if event.is_none() || is_over {
                s.is_eventful = false;
                self.eventful.pop_front();
                if is_over {
                    self.remove(slot);
                } else {
                    self.forget_reported(slot);
                }
            }
            if let Some(event) = event {
                return Some((handle, event));
            }
        }
        None
    }

    /// Number of connections, including those being opened.
    pub fn len(&self) -> usize {
        self.table.len()
    }
    /// Whether there are no connections.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Approximate heap memory of connections and queued replies, in bytes.
    pub fn memory(&self) -> usize {
        let held = |content: &ConnectionState<C>| match content {
            ConnectionState::Live(live) => live.connection.memory(),
            ConnectionState::Accepting(accepting) => accepting.memory(),
            ConnectionState::Connecting(_) | ConnectionState::Over(_) => size_of_val(content),
        };
        let answers: usize = self.answers.iter().map(|(_, packet)| packet.len()).sum();
        self.table.iter().map(|(_, content)| held(content)).sum::<usize>()
            + answers
            + self.gate.memory()
    }

    /// Ends a failed attempt.
    pub(super) fn give_up(&mut self, slot: u32, why: Closed) {
        let Some(s) = self.table.get(slot) else { return };
        self.alarms.disarm(slot, &mut s.armed);
        if let Some(ConnectionState::Connecting(connecting)) =
            s.content.replace(ConnectionState::Over(why))
        {
            self.forget_nonces(&connecting);
        }
        self.touch(slot);
    }

    fn forget_nonces(&mut self, connecting: &Connecting) {
        connecting.nonces().for_each(|nonce| {
            self.nonces.remove(nonce);
        });
    }

    /// Queues the slot for a handshake packet.
    pub(super) fn urge(&mut self, slot: u32) {
        if let Some(s) = self.table.get(slot).filter(|s| !s.is_urgent) {
            s.is_urgent = true;
            self.urgent.push_back(slot);
        }
    }

    /// Queues the slot: it may have packets to send, another timer, or an event.
    pub(super) fn touch(&mut self, slot: u32) {
        let Some(s) = self.table.get(slot) else { return };
        if !std::mem::replace(&mut s.is_ready, true) {
            self.ready.push_back(slot);
        }
        if !std::mem::replace(&mut s.is_eventful, true) {
            self.eventful.push_back(slot);
        }
    }

    /// Sets the slot's alarm to its next timer.
    pub(super) fn rearm(&mut self, slot: u32) {
        let Some(s) = self.table.get(slot) else { return };
        let due = s.content.as_mut().map_or(Time::NEVER, due);
        self.alarms.arm(slot, &mut s.armed, due);
        self.announce_end(slot);
    }

    /// Queues the slot for events, if the endpoint has ended its connection.
    pub(super) fn announce_end(&mut self, slot: u32) {
        let Some(s) = self.table.get(slot) else { return };
        let is_over =
            matches!(&s.content, Some(ConnectionState::Live(l)) if l.over.is_some() && !l.is_told);
        if is_over && !std::mem::replace(&mut s.is_eventful, true) {
            self.eventful.push_back(slot);
        }
    }
    /// Sets the slot's alarm to `due` or earlier.
    pub(super) fn arm(&mut self, slot: u32, due: Time) {
        if let Some(s) = self.table.get(slot) {
            self.alarms.arm(slot, &mut s.armed, due);
        }
    }

    /// Drops a connection after its end was reported and its last packet was sent.
    pub(super) fn forget_reported(&mut self, slot: u32) {
        let content = self.table.get(slot).and_then(|s| s.content.as_ref());
        if matches!(content, Some(ConnectionState::Live(l)) if l.is_told && (l.over.is_some() || l.connection.is_drained()))
        {
            self.remove(slot);
        }
    }

    pub(super) fn remove(&mut self, slot: u32) {
        if let Some(s) = self.table.get(slot) {
            self.alarms.disarm(slot, &mut s.armed);
        }
        match self.table.remove(slot) {
            Some(ConnectionState::Live(live)) => {
                self.remotes.remove(&(live.remote, slot));
                self.path_ids.remove(&live.path_ids);
                self.unconfirmed -= usize::from(live.early.is_some());
                self.uncount_client(&live);
            }
            Some(ConnectionState::Accepting(accepting)) => self.gate.leave(accepting.proof),
            Some(ConnectionState::Connecting(connecting)) => {
                self.forget_nonces(&connecting);
            }
            Some(ConnectionState::Over(_)) | None => {}
        }
    }
}
