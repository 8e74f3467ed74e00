//! Incoming datagrams: which connection each belongs to, and the steps of a handshake.

use super::accepting::{Accepting, StartProof};
use super::connecting::{HandshakeDone, of_attempt};
use super::connection_state::{ConnectionState, Finishing, LiveConnection};
use super::connections::{Connections, MAX_REPLIES};
use super::handshake_gate::AddressProof;
use super::managed::ManagedConnection;
use super::path_ids::PathOf;
use super::{Clients, hello};
use crate::connection::NewConnection;
use crate::streams::Side;
use narrows_base::Time;
use narrows_recovery::handshake::PathSample;
use narrows_wire::header::{LONG, ShortHeader};
use narrows_wire::packet::{self, Finish, Nonce, Start};
use narrows_wire::reset::is_token;
use narrows_wire::{Hello, ParsedPacket, ServerHandshake, VERSION};
use std::net::SocketAddr;

/// Whether two addresses are equal. A dual-stack socket shows IPv4 addresses as IPv6.
fn is_same(a: SocketAddr, b: SocketAddr) -> bool {
    a.port() == b.port() && a.ip().to_canonical() == b.ip().to_canonical()
}

impl<C: ManagedConnection> Connections<C> {
    /// Handles a datagram, which is opened in place.
    pub fn receive(&mut self, now: Time, from: SocketAddr, ecn: u8, datagram: &mut [u8]) {
        if datagram.first().is_some_and(|first| first & LONG == 0) {
            return self.on_short(now, from, ecn, datagram);
        }
        let Ok(packet) = ParsedPacket::read(datagram) else { return };
        let is_server = self.config.clients != Clients::None;
        match packet {
            ParsedPacket::Syn { .. } | ParsedPacket::Start(_) | ParsedPacket::EarlyStart(_)
                if is_server && !self.config.filter.answers(from) => {}
            ParsedPacket::Syn { version, nonce } if is_server => {
                self.on_syn(now, from, version, &nonce);
            }
            ParsedPacket::Start(start) if is_server => self.on_start(now, from, &start),
            ParsedPacket::EarlyStart(start) if is_server => self.on_early_start(now, from, &start),
            ParsedPacket::Finish(finish) if is_server => self.on_finish(now, from, &finish),
            ParsedPacket::SynEcho { nonce, cookie } => {
                let (nonce, is_probe) = of_attempt(nonce);
                if is_probe {
                    return self.on_probe_echo(now, from, &nonce);
                }
                let Some(slot) = self.attempt(from, &nonce) else { return };
                let seed = self.draw();
                let content = self.table.get(slot).and_then(|s| s.content.as_mut());
                if let Some(ConnectionState::Connecting(connecting)) = content
                    && connecting.on_syn_echo(now, nonce, &cookie, &self.config.key, seed)
                {
                    self.urge(slot);
                }
            }
            ParsedPacket::StartEcho(ref echo) | ParsedPacket::EarlyEcho(ref echo) => {
                let Some(slot) = self.attempt(from, &echo.nonce) else { return };
                let content = self.table.get(slot).and_then(|s| s.content.as_mut());
                let Some(ConnectionState::Connecting(connecting)) = content else { return };
                let opened = match packet {
                    ParsedPacket::EarlyEcho(_) => connecting.on_early_echo(now, echo),
                    _ => connecting.on_start_echo(now, echo),
                };
                match opened {
                    Some(opened) => self.connected(now, slot, from, opened),
                    None => self.rearm(slot),
                }
            }
            ParsedPacket::Version { refused, nonce, spoken } => {
                let Some(slot) = self.attempt(from, &nonce) else { return };
                let content = self.table.get(slot).and_then(|s| s.content.as_mut());
                if let Some(ConnectionState::Connecting(connecting)) = content {
                    connecting.on_version(now, refused, &spoken);
                    self.rearm(slot);
                }
            }
            ParsedPacket::Reset { token } => self.on_reset(now, from, &token),
            ParsedPacket::Busy { nonce } => {
                let Some(slot) = self.attempt(from, &nonce) else { return };
                let content = self.table.get(slot).and_then(|s| s.content.as_mut());
                if let Some(ConnectionState::Connecting(connecting)) = content {
                    connecting.on_busy(now);
                }
            }
            _ => {}
        }
    }

    /// This end's attempt with this nonce, if the packet is from its server.
    fn attempt(&mut self, from: SocketAddr, nonce: &Nonce) -> Option<u32> {
        let slot = *self.nonces.get(nonce)?;
        match &self.table.get(slot)?.content {
            Some(ConnectionState::Connecting(connecting)) if is_same(connecting.remote(), from) => {
                Some(slot)
            }
            _ => None,
        }
    }

    /// Handles the reply to a probe, before or after START-ECHO.
    fn on_probe_echo(&mut self, now: Time, from: SocketAddr, nonce: &Nonce) {
        if let Some(slot) = self.attempt(from, nonce) {
            let content = self.table.get(slot).and_then(|s| s.content.as_mut());
            if let Some(ConnectionState::Connecting(connecting)) = content {
                connecting.on_probe_echo(now);
            }
            return;
        }
        for &(_, slot) in self.remotes.range((from, 0)..=(from, u32::MAX)) {
            let content = self.table.get(slot).and_then(|s| s.content.as_mut());
            if let Some(ConnectionState::Live(live)) = content
                && let Some(finishing) = live.finishing.as_mut().filter(|f| f.probes.0 == *nonce)
            {
                finishing.probes.1.on_answer(now);
                live.on_dispersion(now);
                return self.touch(slot);
            }
        }
    }

    pub(super) fn on_short(&mut self, now: Time, from: SocketAddr, ecn: u8, datagram: &mut [u8]) {
        let Ok(header) = ShortHeader::read(datagram) else { return };
        let Some(PathOf { slot, path }) = self.path_of(header.connection) else {
            // Only complete packets get a RESET, so that the reply is shorter.
            if datagram.len() >= header.len() + packet::TAG_BYTES
                && self.answers.len() < MAX_REPLIES
                && self.resets_sent.permits(now)
            {
                let token = self.reset_key.token(header.connection, from);
                self.answers.push_back((from, packet::reset(&token)));
            }
            return;
        };
        match self.table.get(slot).and_then(|s| s.content.as_mut()) {
            Some(ConnectionState::Live(live)) if live.over.is_none() => {
                let news = live.guarded(|connection| {
                    let is_authentic = connection.receive_on(now, path, from, ecn, datagram);
                    is_authentic.then(|| (connection.remote(), connection.moved()))
                });
                let wanted = live.guarded(|connection| connection.wanted_path()).flatten();
                let token = live.guarded(|connection| connection.take_token()).flatten();
                if let (Some(token), None) = (token, &live.client) {
                    self.tokens.insert(now, live.remote, token);
                }
                if let Some(Some((remote, moved))) = news {
                    // Server: the client is confirmed. Client: the server has the keys.
                    live.finishing = None;
                    self.unconfirmed -= usize::from(live.early.take().is_some());
                    live.activity.on_total(now, moved);
                    if remote != live.remote {
                        let is_elsewhere =
                            remote.ip().to_canonical() != live.remote.ip().to_canonical();
                        if is_elsewhere && live.client.is_some() {
                            // The last token is valid at the old address only.
                            let token = self.gate.token(now, remote.ip(), &mut *self.entropy);
                            live.guarded(|connection| connection.give_another_token(token));
                        }
                        self.remotes.remove(&(live.remote, slot));
                        self.remotes.insert((remote, slot));
                        live.remote = remote;
                        self.recount_client(slot, remote);
                    }
                }
                if let Some(path) = wanted {
                    self.add_path(now, slot, path);
                }
                self.touch(slot);
            }
            Some(ConnectionState::Connecting(connecting)) if is_same(connecting.remote(), from) => {
                connecting.keep(ecn, datagram);
            }
            Some(ConnectionState::Accepting(accepting)) if accepting.from == from => {
                accepting.keep(ecn, datagram);
                if accepting.on_again(now) {
                    self.urge(slot);
                }
            }
            _ => {}
        }
    }

    fn on_reset(&mut self, now: Time, from: SocketAddr, token: &[u8; 16]) {
        if !self.resets_read.permits(now) {
            return;
        }
        let mut found = None;
        for &(_, slot) in self.remotes.range((from, 0)..=(from, u32::MAX)) {
            let content = self.table.get(slot).and_then(|s| s.content.as_mut());
            if let Some(ConnectionState::Live(live)) = content
                && live.token.as_ref().is_some_and(|told| is_token(told, token))
            {
                live.guarded(|connection| connection.on_reset(token));
                live.finishing = None;
                found = Some(slot);
                break;
            }
        }
        if let Some(slot) = found {
            self.touch(slot);
        }
    }

    /// Replies with a cookie to a SYN, or to a START without a proof of its address. No state is kept.
    pub(super) fn on_syn(&mut self, now: Time, from: SocketAddr, version: u32, nonce: &Nonce) {
        if self.answers.len() < MAX_REPLIES {
            let answer = self.gate.on_syn(now, from, version, nonce, &mut *self.entropy);
            self.answers.push_back((from, answer));
        }
    }

    fn on_start(&mut self, now: Time, from: SocketAddr, start: &Start<'_>) {
        let token = match self.gate.address_proof(now, from, start) {
            AddressProof::Cookie => None,
            AddressProof::Token(token) => Some(token),
            AddressProof::BadToken => return self.on_syn(now, from, VERSION, &start.nonce),
            AddressProof::Absent => return self.on_unproven_start(now, from, start),
            AddressProof::Invalid => return,
        };
        if let Some(slot) = self.gate.known(now, from, &start.nonce) {
            return self.on_start_again(now, from, &start.nonce, slot);
        }
        if token.is_some_and(|token| !self.gate.is_unused(from.ip(), &token)) {
            return self.on_syn(now, from, VERSION, &start.nonce);
        }
        if !self.may_have_room(now, from) || !self.gate.permits(now, from) {
            return self.say_busy(from, &start.nonce);
        }
        self.make_room_for_handshake(now, from);
        if !self.table.has_room() {
            return self.say_busy(from, &start.nonce);
        }
        let proof = if token.is_some() { StartProof::Token } else { StartProof::Cookie };
        if self.begin_handshake(now, from, start, proof)
            && let Some(token) = token
        {
            self.gate.use_up(now, from.ip(), &token);
        }
    }

    /// Handles a START without a cookie or token. While few of them wait for FINISH, a handshake begins. Otherwise the
    /// client gets a cookie: a flood of them, from whatever addresses, costs a bounded amount of work and memory, and
    /// delays clients by one round trip.
    fn on_unproven_start(&mut self, now: Time, from: SocketAddr, start: &Start<'_>) {
        if let Some(slot) = self.gate.known(now, from, &start.nonce) {
            return self.on_start_again(now, from, &start.nonce, slot);
        }
        let most = self.config.limits.handshakes;
        if self.gate.half_open() >= most || self.gate.is_full_of_unproven() {
            self.drop_old_handshakes(now);
        }
        let is_permitted = self.gate.half_open() < most
            && self.table.has_room()
            && self.may_have_room(now, from)
            && self.gate.permits_unproven(now);
        if !is_permitted {
            return self.on_syn(now, from, VERSION, &start.nonce);
        }
        self.begin_handshake(now, from, start, StartProof::None);
    }

    /// Handles a START with the nonce and address of a known one.
    fn on_start_again(&mut self, now: Time, from: SocketAddr, nonce: &Nonce, slot: u32) {
        let content = self.table.get(slot).and_then(|s| s.content.as_mut());
        if let Some(ConnectionState::Accepting(accepting)) = content
            && accepting.on_start(now, from, nonce)
        {
            self.urge(slot);
        }
    }

    /// Begins a handshake. False if the START's key is invalid.
    fn begin_handshake(
        &mut self,
        now: Time,
        from: SocketAddr,
        start: &Start<'_>,
        proof: StartProof,
    ) -> bool {
        let seed = self.draw();
        let config = &self.config;
        let reset_key = &self.reset_key;
        let made = self.table.add(&mut *self.entropy, |id| {
            let reset_token = reset_key.token(id, from);
            let params = hello::server_params(&config.connection, reset_token);
            let hello = Hello { connection: id, params };
            let handshake = ServerHandshake::new(start, &config.key, seed, &hello).ok()?;
            let accepting = Accepting::new(now, from, start.nonce, proof, handshake, hello.params);
            Some(ConnectionState::Accepting(Box::new(accepting)))
        });
        let Some(slot) = made else { return false };
        self.gate.enter(now, from, start.nonce, slot, proof);
        self.urge(slot);
        self.rearm(slot);
        true
    }

    /// Replies BUSY to a START without a place. BUSY is shorter than START, and the address is validated. The client
    /// will retry.
    pub(super) fn say_busy(&mut self, to: SocketAddr, nonce: &Nonce) {
        if self.answers.len() < MAX_REPLIES {
            self.answers.push_back((to, packet::busy(nonce)));
        }
    }

    fn on_finish(&mut self, now: Time, from: SocketAddr, finish: &Finish<'_>) {
        let Some(slot) = self.table.by_id(finish.connection) else { return };
        match self.table.get(slot).and_then(|s| s.content.as_mut()) {
            // The FINISH must come from the address of START.
            Some(ConnectionState::Accepting(accepting)) if accepting.from == from => {
                // A machine that slept reads waiting packets before its timers fire.
                if now >= accepting.until {
                    return;
                }
                if accepting.was_forged && !self.gate.permits_finish(now) {
                    return;
                }
                match accepting.on_finish(finish) {
                    Ok(established) => self.on_proven(now, slot, established),
                    Err(_) if accepting.on_again(now) => self.urge(slot),
                    Err(_) => {}
                }
            }
            // A repeated FINISH: the connection has begun, and repeats its first packet until the client acknowledges
            // it.
            _ => {}
        }
    }

    /// Begins the connection after the server is authenticated and the keys are known.
    fn connected(&mut self, now: Time, slot: u32, from: SocketAddr, opened: HandshakeDone) {
        let seed = self.draw();
        let Some(s) = self.table.get(slot) else { return };
        let Some(ConnectionState::Connecting(connecting)) = &mut s.content else { return };
        let overtaken = std::mem::take(&mut connecting.overtaken);
        let progress = opened.progress;
        let PathSample { rtt, max_rtt, packet_pair, finish: repeat } = opened.path;
        let probes = (connecting.probe_nonce(), packet_pair);
        // Without FINISH the server has accepted the early data.
        let early = connecting.early(opened.finish.is_none());
        let finishing =
            opened.finish.map(|packet| Box::new(Finishing { packet, repeat, probes, progress }));
        let beginning = NewConnection {
            side: Side::Client,
            config: connecting.config(),
            hello: &opened.hello,
            established: opened.established,
            remote: from,
            rtt,
            max_rtt,
            without_syn: false,
            token: None,
            early,
            seed,
        };
        let begun = LiveConnection::begin(now, beginning, finishing, None);
        for nonce in connecting.nonces() {
            self.nonces.remove(nonce);
        }
        let mut live = match begun {
            Ok(live) => live,
            Err(why) => {
                self.alarms.disarm(slot, &mut s.armed);
                s.content = Some(ConnectionState::Over(why));
                return self.touch(slot);
            }
        };
        live.on_dispersion(now);
        s.content = Some(ConnectionState::Live(Box::new(live)));
        self.remotes.insert((from, slot));
        self.arm(slot, progress.until);
        self.urge(slot);
        self.touch(slot);
        for (ecn, mut datagram) in overtaken {
            self.on_short(now, from, ecn, &mut datagram);
        }
    }
}
