//! Early data at the server: an EARLY-START is taken once, or refused as a START whose token is not taken, by a SYN-ECHO.
//!
//! An EARLY-START can be copied. No copy is taken as a second request, since its token names it: tokens are made from a
//! secret that this endpoint drew when it began, and those that were used are remembered (`used_tokens`). So an
//! endpoint that was started again, or another one behind the same address, knows none of them and refuses. A copy
//! that is held back on the way, to be sent when the client has given up, is refused by its age. What is refused is
//! used up as well, so that it is not taken later.
//!
//! The address is proven by the token only, which is up to a day old: see [`Connection::take_early`] for what is sent
//! before the client has shown that it is there. Until then such a connection takes only a place that is free, and one
//! in four at most.
//!
//! [`Connection::take_early`]: crate::connection::Connection::take_early

use super::accepted::Verdict;
use super::accepting::ANSWER_EVERY;
use super::connection_state::{ConnectionState, EarlyAnswer, Live};
use super::connections::Connections;
use super::handshake_gate::AddressProof;
use super::hello;
use super::managed::ManagedConnection;
use super::share::Client;
use crate::connection::{Early, NewConnection};
use crate::streams::Side;
use narrows_base::{Duration, Time};
use narrows_wire::packet::{Nonce, Start};
use narrows_wire::token::TokenName;
use narrows_wire::{EarlyRequest, Hello, VERSION};
use std::net::SocketAddr;

/// A client's and a server's idea of a token's age differ by less than this (RFC 8446 section 8.3): by the two round
/// trips until the client has it and its EARLY-START is here, and by what two clocks differ in a day.
const MAX_SKEW: Duration = Duration::from_secs(10);
/// One in so many places may be taken by connections that are not confirmed.
const UNCONFIRMED_SHARE: usize = 4;

/// Whether a token that was given then can have this age now.
fn is_fresh(now: Time, token: &TokenName, age: Duration) -> bool {
    let here = (now.as_nanos() / 1_000_000).saturating_sub(token.issued);
    here.abs_diff(age.as_nanos() / 1_000_000) <= MAX_SKEW.as_nanos() / 1_000_000
}

/// An EARLY-START is known again from whichever port its copy comes: the token is good for the address without it.
fn without_port(from: SocketAddr) -> SocketAddr {
    SocketAddr::new(from.ip().to_canonical(), 0)
}

impl<C: ManagedConnection> Connections<C> {
    pub(super) fn on_early_start(&mut self, now: Time, from: SocketAddr, start: &Start<'_>) {
        let token = match self.gate.address_proof(now, from, start) {
            AddressProof::Token(token) => token,
            AddressProof::BadToken => return self.on_syn(now, from, VERSION, &start.nonce),
            AddressProof::Cookie | AddressProof::None => return,
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
            (early.to, early.is_wanted) = (to, true);
            self.urge(slot);
        }
    }

    /// Takes it, or gives `None`.
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
        // Whom it is to refuse the whole handshake refuses, which can say why.
        let Verdict::Accept(client) = self.judge(from, &request.key, params) else { return None };
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
        client: Client,
    ) -> Option<u32> {
        let seed = self.draw();
        let token = self.gate.token(now, from.ip(), &mut *self.entropy);
        let (config, reset_key) = (&self.config, &self.reset_key);
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
                dispersion: None,
                without_syn: true,
                token: Some(token),
                early: Some(Early::Received),
                seed,
            };
            let mut live = Live::begin(now, beginning, None, Some(client)).ok()?;
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
