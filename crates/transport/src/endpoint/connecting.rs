//! The client's side of a handshake: SYN until SYN-ECHO, START until START-ECHO; START at once with a token, or
//! EARLY-START with a token and early data.

use super::accepting::Overtaken;
use super::{Connect, ServerKey, hello};
use crate::connection::{Closed, ConnectionConfig, Early};
use crate::handshake::{ClientExchange, HandshakePacket, MAX_COOKIE_AGE, PROBE_BYTES, PathSample};
use narrows_base::{Duration, Time};
use narrows_wire::cookie::MIN_COOKIE_LIFE;
use narrows_wire::noise::early::EarlyMessage;
use narrows_wire::packet::{self, Nonce, StartEcho, Versions};
use narrows_wire::{
    ClientHandshake, ConnectionId, Cookie, EarlyHandshake, Established, HandshakeError, Hello,
    Params, StaticKey, Token, VERSION,
};
use std::net::SocketAddr;

const _: () = assert!(MAX_COOKIE_AGE.as_nanos() == MIN_COOKIE_LIFE.as_nanos());

/// After an answer that would end the attempt (a wrong key, no common version), the right one may
/// still come for so long: both can be somebody else's.
const GRACE: Duration = Duration::from_secs(1);
/// Reports that no socket receives there end an attempt after this many packets: one report may be late, or forged.
const REFUSALS: u32 = 3;
/// START-ECHOs that an attempt reads at most, two X25519 operations each: then whoever forges
/// them has the attempt.
const ECHOES: u32 = 64;

/// An attempt to connect.
pub(super) struct Connecting {
    connect: Connect,
    id: ConnectionId,
    reset_token: [u8; 16],
    nonce: Nonce,
    exchange: ClientExchange,
    /// What START-ECHO is read with, from SYN-ECHO on.
    keys: Option<Box<ClientHandshake>>,
    /// What EARLY-ECHO is read with. Kept behind a SYN-ECHO, which anybody can forge: then EARLY-ECHO still comes.
    early: Option<Box<EarlyHandshake>>,
    /// Packets of the server that overtook EARLY-ECHO.
    pub(super) overtaken: Overtaken,
    /// Gives up then.
    until: Time,
    /// What to say then.
    outcome: Closed,
    was_busy: bool,
    /// Something of the server came, or was forged.
    is_answered: bool,
    /// Packets that were reported as refused.
    refusals: u32,
    echoes: u32,
}

/// What the server's answer led to.
pub(super) struct HandshakeDone {
    /// Keys.
    pub(super) established: Established,
    /// To be sent until something of the server opens; none if the server has the keys.
    pub(super) finish: Option<Vec<u8>>,
    /// What the server was told.
    pub(super) hello: Params,
    pub(super) path: PathSample,
    /// The attempt's end.
    pub(super) until: Time,
}

impl Connecting {
    pub(super) fn new(
        now: Time,
        connect: Connect,
        id: ConnectionId,
        reset_token: [u8; 16],
        nonce: Nonce,
    ) -> Connecting {
        let until = now + connect.patience;
        let known = connect.connection.path_hints().rate.is_some();
        let probes = connect.connection.probes_rate && !known;
        let exchange = ClientExchange::new(now, connect.connection.hints.rtt, probes);
        Connecting {
            connect,
            id,
            reset_token,
            nonce,
            exchange,
            keys: None,
            early: None,
            overtaken: Overtaken::default(),
            until,
            outcome: Closed::NoAnswer,
            was_busy: false,
            is_answered: false,
            refusals: 0,
            echoes: 0,
        }
    }

    /// Begins with this token, and its age, instead of SYN; with early data, if there are any and the server takes them.
    pub(super) fn present(
        &mut self,
        now: Time,
        (token, age): (Token, Duration),
        key: &StaticKey,
        seed: [u8; 32],
    ) {
        let suite = self.connect.suite;
        if let (Some(data), ServerKey::Is(server)) =
            (&self.connect.early_data, self.connect.server_key)
            && token.permits_early_data()
        {
            let message = EarlyMessage { age, hello: self.hello(), frames: data.frames() };
            let made = EarlyHandshake::new(suite, self.nonce, &token, key, &server, seed, &message);
            if let Ok(early) = made {
                self.exchange = ClientExchange::with_token(now, self.connect.connection.hints.rtt);
                self.early = Some(Box::new(early));
                return;
            }
        }
        if let Ok(keys) = ClientHandshake::new(suite, self.nonce, &token.as_cookie(), key, seed) {
            self.exchange = ClientExchange::with_token(now, self.connect.connection.hints.rtt);
            self.keys = Some(Box::new(keys));
        }
    }

    pub(super) fn remote(&self) -> SocketAddr {
        self.connect.remote
    }
    pub(super) fn nonce(&self) -> Nonce {
        self.nonce
    }
    pub(super) fn config(&self) -> &ConnectionConfig {
        &self.connect.connection
    }
    /// How the attempt ends if it ends now.
    pub(super) fn outcome(&self) -> Closed {
        match &self.outcome {
            Closed::NoAnswer if self.was_busy => Closed::Busy,
            other => other.clone(),
        }
    }
    /// Somebody says that the server has no room now. It may have in a moment, and anybody on the path
    /// can say that, so this only changes what the user is told when patience ends.
    pub(super) fn on_busy(&mut self) {
        (self.was_busy, self.is_answered) = (true, true);
    }
    /// The system reports that no socket receives at the server's address; whether the attempt is to end. An answer
    /// outweighs all reports, and a packet counts once.
    pub(super) fn on_refused(&mut self) -> bool {
        if !self.is_answered && self.refusals < self.exchange.sent() {
            self.refusals += 1;
        }
        !self.is_answered && self.refusals >= REFUSALS
    }
    pub(super) fn met_busy(&self) -> bool {
        self.was_busy
    }
    pub(super) fn until(&self) -> Time {
        self.until
    }
    pub(super) fn due(&self) -> Time {
        self.exchange.due().min(self.until)
    }

    /// Whether the cookie is so old, or START went so often, that the attempt begins again, which
    /// needs a new nonce: the server may remember the old one.
    pub(super) fn is_stale(&self, now: Time) -> bool {
        self.exchange.is_stale(now)
    }
    /// Begins again.
    pub(super) fn restart(&mut self, now: Time, nonce: Nonce) {
        self.nonce = nonce;
        self.exchange.restart(now);
        (self.keys, self.early) = (None, None);
        self.overtaken = Overtaken::default();
        self.echoes = 0;
    }

    /// The packet that waits for its answer, if it is time to send it.
    pub(super) fn transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        match self.exchange.next_packet(now)? {
            HandshakePacket::Syn => Some(packet::syn(VERSION, &self.nonce)),
            HandshakePacket::Probe => {
                Some(packet::syn_of(VERSION, &self.nonce, PROBE_BYTES.into()))
            }
            HandshakePacket::Start => match (&self.keys, &self.early) {
                (Some(keys), _) => Some(keys.start().to_vec()),
                (None, early) => early.as_ref().map(|early| early.start().to_vec()),
            },
        }
    }

    /// Whether another packet is to follow the last one at once.
    pub(super) fn has_more(&self) -> bool {
        self.exchange.has_probe()
    }

    /// A SYN-ECHO with our nonce; whether there is something to send now.
    pub(super) fn on_syn_echo(
        &mut self,
        now: Time,
        cookie: &Cookie,
        key: &StaticKey,
        seed: [u8; 32],
    ) -> bool {
        self.is_answered = true;
        self.exchange.on_syn_echo(now);
        if !self.exchange.takes_cookie() {
            return false;
        }
        let made = ClientHandshake::new(self.connect.suite, self.nonce, cookie, key, seed);
        let Ok(keys) = made else { return false };
        self.exchange.begin_start(now);
        self.keys = Some(Box::new(keys));
        if self.outcome == Closed::Version {
            // Somebody who speaks our version answered: the VERSION was not the server's.
            self.outcome = Closed::NoAnswer;
        }
        true
    }

    /// A VERSION with our nonce. It is not authenticated, and this end speaks no other version: the
    /// attempt ends soon, unless the server answers after all.
    pub(super) fn on_version(&mut self, now: Time, refused: u32, spoken: &Versions<'_>) {
        self.is_answered = true;
        let is_plausible = refused == VERSION && spoken.iter().all(|v| v != VERSION);
        if is_plausible && self.exchange.awaits_syn_echo() {
            self.end_soon(now, Closed::Version);
        }
    }

    fn end_soon(&mut self, now: Time, outcome: Closed) {
        if self.outcome == Closed::NoAnswer {
            self.outcome = outcome;
            self.until = self.until.min(now + GRACE);
        }
    }

    /// What this end tells the server of itself.
    fn hello(&self) -> Hello {
        let params = Params {
            offered: Some(VERSION),
            reset_token: Some(self.reset_token),
            ..hello::params(&self.connect.connection)
        };
        Hello { connection: self.id, params }
    }

    /// The early data, for the connection that begins.
    pub(super) fn early(&self, is_taken: bool) -> Option<Early<'_>> {
        self.connect.early_data.as_ref().map(|data| Early::Sent { data, is_taken })
    }

    /// Keeps a packet that may have overtaken EARLY-ECHO. Before FINISH nothing else comes from a server.
    pub(super) fn keep(&mut self, ecn: u8, datagram: &[u8]) {
        if self.early.is_some() {
            self.overtaken.keep(ecn, datagram);
        }
    }

    /// An EARLY-ECHO with our nonce.
    pub(super) fn on_early_echo(
        &mut self,
        now: Time,
        echo: &StartEcho<'_>,
    ) -> Option<HandshakeDone> {
        let hello = self.hello().params;
        let early = self.early.as_mut()?;
        if self.echoes >= ECHOES {
            return None;
        }
        self.echoes += 1;
        let established = early.on_early_echo(echo).ok()?;
        let path = self.exchange.finish(now);
        Some(HandshakeDone { established, finish: None, hello, path, until: self.until })
    }

    /// A START-ECHO with our nonce.
    pub(super) fn on_start_echo(
        &mut self,
        now: Time,
        echo: &StartEcho<'_>,
    ) -> Option<HandshakeDone> {
        let hello = self.hello();
        let keys = self.keys.as_mut()?;
        if self.echoes >= ECHOES {
            return None;
        }
        self.echoes += 1;
        let wanted = self.connect.server_key;
        let read = keys.on_start_echo(echo, &hello, |key| match wanted {
            ServerKey::Any => true,
            ServerKey::Is(right) => *key == right,
        });
        match read {
            Ok((established, finish)) => {
                let path = self.exchange.finish(now);
                let (hello, until) = (hello.params, self.until);
                Some(HandshakeDone { established, finish: Some(finish), hello, path, until })
            }
            Err(HandshakeError::KeyRefused(found)) => {
                self.end_soon(now, Closed::WrongKey { found });
                None
            }
            Err(_) => None,
        }
    }
}
