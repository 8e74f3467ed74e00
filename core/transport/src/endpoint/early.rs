//! Early data at the server. An EARLY-START is accepted once, or rejected with a SYN-ECHO, like a START with a bad
//! token.
//!
//! An attacker can copy an EARLY-START. A copy is never accepted as a second request, because its token identifies it.
//! Tokens are made from a secret drawn when this endpoint started, and used tokens are remembered (`used_tokens`). So
//! after a restart, or at another endpoint behind the same address, no token is valid. The age check rejects a copy
//! that an attacker delays until the client has given up. A rejected token counts as used, so that it cannot be
//! accepted later.
//!
//! Only the token validates the address, and it may be a day old: see [`Connection::take_early`] for the limits on
//! sending before the client is confirmed. Until then such a connection gets only a free place, and at most one in
//! four.
//!
//! [`Connection::take_early`]: crate::connection::Connection::take_early

use super::accepted::ClientVerdict;
use super::accepting::ANSWER_EVERY;
use super::connection_state::{ConnectionState, EarlyAnswer, LiveConnection};
use super::connections::Connections;
use super::handshake_gate::AddressProof;
use super::hello;
use super::managed::ManagedConnection;
use super::share::CountedClient;
use crate::connection::{EarlyExchange, NewConnection};
use crate::streams::Side;
use narrows_base::{Duration, Time};
use narrows_wire::packet::{Nonce, Start};
use narrows_wire::token::TokenName;
use narrows_wire::{EarlyRequest, Hello, VERSION};
use std::net::SocketAddr;

/// Largest difference between the client's and the server's estimate of a token's age (RFC 8446 section 8.3). It covers
/// two round trips, and the drift of two clocks in a day.
const MAX_SKEW: Duration = Duration::from_secs(10);
/// One in this many places may be taken by unconfirmed connections.
const UNCONFIRMED_SHARE: usize = 4;

/// Whether this age, as claimed by the client, matches the token's age by this end's clock.
fn is_fresh(now: Time, token: &TokenName, age: Duration) -> bool {
    let here = (now.as_nanos() / 1_000_000).saturating_sub(token.issued);
    here.abs_diff(age.as_nanos() / 1_000_000) <= MAX_SKEW.as_nanos() / 1_000_000
}

/// A copy of an EARLY-START must be recognized from any port, because the token is valid for the IP address.
fn without_port(from: SocketAddr) -> SocketAddr {
    SocketAddr::new(from.ip().to_canonical(), 0)
}

impl<C: ManagedConnection> Connections<C> {
    pub(super) fn on_early_start(&mut self, now: Time, from: SocketAddr, start: &Start<'_>) {
        let token = match self.gate.address_proof(now, from, start) {
            AddressProof::Token(token) => token,
            AddressProof::BadToken => return self.on_syn(now, from, VERSION, &start.nonce),
            AddressProof::Cookie | AddressProof::Absent | AddressProof::Invalid => return,
        };
        if let Some(slot) = self.gate.known(now, without_port(from), &start.nonce) {
            return self.repeat_early_echo(now, from, slot, &start.nonce);
        }
        let is_unused = self.gate.is_unused(from.ip(), &token);
        if is_unused && !self.gate.permits(now, from) {
            return self.say_busy(from, &start.nonce);
        }
        if !is_unused || self.take_early(now, from, start, &token).is_none() {
            self.on_syn(now, from, VERSION, &start.nonce);
        }
    }

    fn repeat_early_echo(&mut self, now: Time, to: SocketAddr, slot: u32, nonce: &Nonce) {
        let content = self.table.get(slot).and_then(|s| s.content.as_mut());
        if let Some(ConnectionState::Live(live)) = content
            && let Some(early) = live.early.as_mut().filter(|early| early.nonce == *nonce)
            && early.answered.is_none_or(|at| now.since(at) >= ANSWER_EVERY)
        {
            early.to = to;
            early.is_wanted = true;
            self.urge(slot);
        }
    }

    /// Accepts an EARLY-START, or returns `None`.
    fn take_early(
        &mut self,
        now: Time,
        from: SocketAddr,
        start: &Start<'_>,
        token: &TokenName,
    ) -> Option<()> {
        let seed = self.draw();
        let request = EarlyRequest::read(start, &self.config.key, seed).ok()?;
        self.gate.use_up(now, from.ip(), token);
        if !self.config.early_data || !is_fresh(now, token, request.message.age) {
            return None;
        }
        let params = &request.message.hello.params;
        // Clients to be refused go through the whole handshake, which can give a reason.
        let ClientVerdict::Accept(client) = self.judge(from, &request.key, params) else {
            return None;
        };
        let most = self.config.limits.connections / UNCONFIRMED_SHARE;
        if self.unconfirmed >= most || !self.has_free_place(now, &client) {
            return None;
        }
        let slot = self.begin_early(now, from, start.nonce, request, client)?;
        self.unconfirmed += 1;
        self.counts.enter(&client);
        self.remotes.insert((from, slot));
        self.gate.remember(now, without_port(from), start.nonce, slot);
        self.urge(slot);
        self.touch(slot);
        Some(())
    }

    fn begin_early(
        &mut self,
        now: Time,
        from: SocketAddr,
        nonce: Nonce,
        request: EarlyRequest,
        client: CountedClient,
    ) -> Option<u32> {
        let seed = self.draw();
        let token = self.gate.token(now, from.ip(), &mut *self.entropy);
        let config = &self.config;
        let reset_key = &self.reset_key;
        self.table.add(&mut *self.entropy, |id| {
            let frames = request.message.frames.clone();
            let announced = &request.message.hello.params.controller;
            let wanted = config.permit.config(announced, &config.connection);
            let params = hello::server_params(&config.connection, reset_key.token(id, from));
            let hello = Hello { connection: id, params };
            let (established, packet) = request.accept(&hello).ok()?;
            let beginning = NewConnection {
                side: Side::Server,
                config: wanted.as_ref().unwrap_or(&config.connection),
                hello: &hello.params,
                established,
                remote: from,
                rtt: None,
                max_rtt: Duration::ZERO,
                without_syn: true,
                token: Some(token),
                early: Some(EarlyExchange::Received),
                seed,
            };
            let mut live = LiveConnection::begin(now, beginning, None, Some(client)).ok()?;
            live.early = Some(Box::new(EarlyAnswer {
                nonce,
                packet,
                to: from,
                is_wanted: true,
                answered: None,
            }));
            let is_taken = live.guarded(|connection: &mut C| connection.take_early(&frames));
            is_taken?.then(|| ConnectionState::Live(Box::new(live)))
        })
    }
}
