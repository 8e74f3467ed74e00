//! The client's side of a handshake. It sends START until START-ECHO, or EARLY-START until EARLY-ECHO if a token permits
//! early data. If the server replies with SYN-ECHO, START follows with the cookie.

use super::accepting::Overtaken;
use super::tries::{Progress, Tries};
use super::{ConnectRequest, ServerKey, hello};
use crate::connection::{Closed, ConnectionConfig, EarlyExchange};
use narrows_base::{Duration, Time};
use narrows_recovery::handshake::{
    ClientExchange, HandshakePacket, MAX_COOKIE_AGE, PROBE_BYTES, PathSample,
};
use narrows_wire::cookie::MIN_COOKIE_LIFE;
use narrows_wire::noise::early::EarlyMessage;
use narrows_wire::packet::{self, Nonce, StartEcho, Versions};
use narrows_wire::{
    ClientHandshake, ConnectionId, Cookie, EarlyHandshake, Established, Hello, Params, StaticKey,
    Token, VERSION,
};
use std::net::SocketAddr;

const _: () = assert!(MAX_COOKIE_AGE.as_nanos() == MIN_COOKIE_LIFE.as_nanos());

/// After a reply that would end the attempt (a wrong key, no common version), wait this long for a valid one. The reply
/// may be an attacker's.
const GRACE: Duration = Duration::from_secs(1);
/// Number of refused packets after which an attempt ends if no reply arrives. A single report may be late.
const REFUSALS: u32 = 3;
/// Time limit of that reply. An observer of the path can forge reports at once, while a reply takes a round trip.
const REFUSED_GRACE: Duration = Duration::from_secs(3);

/// Bit of a nonce's last byte that is 1 in the probes of an attempt, and 0 in its other packets.
const PROBE: u8 = 1;

/// The nonce of an attempt, and whether a reply with this nonce answers a probe.
pub(super) fn of_attempt(mut nonce: Nonce) -> (Nonce, bool) {
    let is_probe = nonce[15] & PROBE != 0;
    nonce[15] &= !PROBE;
    (nonce, is_probe)
}

/// An attempt to connect.
pub(super) struct Connecting {
    connect: ConnectRequest,
    id: ConnectionId,
    reset_token: [u8; 16],
    /// Nonce of the probes, the attempt's first.
    probe_nonce: Nonce,
    exchange: ClientExchange,
    /// State for reading START-ECHO and EARLY-ECHO. Kept after a SYN-ECHO, because that can be forged and they may still
    /// arrive.
    tries: Tries,
    /// Packets of the server that arrived before EARLY-ECHO.
    pub(super) overtaken: Overtaken,
    progress: Progress,
    /// Reason of the failure, if a reply gave one.
    outcome: Option<Closed>,
    was_busy: bool,
    /// Number of packets reported as refused.
    refusals: u32,
    /// When the attempt fails without a reply, after these reports.
    refused_until: Time,
}

/// Result of a handshake at the client.
pub(super) struct HandshakeDone {
    /// Keys, and the server's identity and parameters.
    pub(super) established: Established,
    /// FINISH, repeated until a packet of the server opens; absent if the server has the keys.
    pub(super) finish: Option<Vec<u8>>,
    /// This end's parameters, as sent to the server.
    pub(super) hello: Params,
    pub(super) path: PathSample,
    /// When the attempt fails without a packet of the server.
    pub(super) progress: Progress,
}

impl Connecting {
    pub(super) fn new(
        now: Time,
        connect: ConnectRequest,
        id: ConnectionId,
        reset_token: [u8; 16],
        nonce: Nonce,
    ) -> Connecting {
        let progress = Progress::new(now, connect.patience);
        let known = connect.connection.path_hints().rate.is_some();
        let probes = connect.connection.probes_rate && !known;
        let exchange = ClientExchange::new(now, connect.connection.hints.rtt, probes);
        Connecting {
            connect,
            id,
            reset_token,
            probe_nonce: nonce,
            exchange,
            tries: Tries::new(nonce),
            overtaken: Overtaken::default(),
            progress,
            outcome: None,
            was_busy: false,
            refusals: 0,
            refused_until: Time::NEVER,
        }
    }

    /// Creates the first packet, with a token and its age if there is one. Early data are sent if there are any and the
    /// token permits them.
    pub(super) fn begin(
        &mut self,
        now: Time,
        token: Option<(Token, Duration)>,
        key: &StaticKey,
        seed: [u8; 32],
    ) {
        let suite = self.connect.suite;
        let nonce = self.tries.nonce();
        if let (Some(data), ServerKey::Is(server)) =
            (&self.connect.early_data, self.connect.server_key)
            && let Some((token, age)) = token
            && token.permits_early_data()
        {
            let message = EarlyMessage { age, hello: self.hello(), frames: data.frames() };
            let made = EarlyHandshake::new(suite, nonce, &token, key, &server, seed, &message);
            if let Ok(early) = made {
                self.tries.set_early(early);
                return;
            }
        }
        let cookie = token.map_or(Cookie::NONE, |(token, _)| token.as_cookie());
        match ClientHandshake::new(suite, nonce, &cookie, key, seed) {
            Ok(keys) => self.tries.add(keys),
            Err(_) => self.exchange.restart(now),
        }
    }

    pub(super) fn remote(&self) -> SocketAddr {
        self.connect.remote
    }
    /// The nonces whose replies count.
    pub(super) fn nonces(&self) -> impl Iterator<Item = &Nonce> {
        self.tries.nonces()
    }
    pub(super) fn probe_nonce(&self) -> Nonce {
        self.probe_nonce
    }
    pub(super) fn config(&self) -> &ConnectionConfig {
        &self.connect.connection
    }
    /// The event if the attempt ends now.
    pub(super) fn outcome(&self, now: Time) -> Closed {
        match &self.outcome {
            Some(outcome) => outcome.clone(),
            None if self.was_busy => Closed::Busy,
            None if self.is_refused() => Closed::NoListener,
            None => self.progress.failure(now),
        }
    }
    /// Handles BUSY. It may be forged and the server may have a place soon, so it only changes the reason of a later
    /// failure.
    pub(super) fn on_busy(&mut self, now: Time) {
        self.was_busy = true;
        self.progress.on_answer(now);
    }

    /// Handles a report that no socket receives at the server's address; returns whether the attempt must end now. After
    /// a reply, reports are ignored. A packet counts once. An observer of the path can forge reports before the reply
    /// arrives, so that an attempt beyond this host waits for it.
    pub(super) fn on_refused(&mut self, now: Time) -> bool {
        if self.progress.is_answered() || self.refusals >= REFUSALS {
            return false;
        }
        if self.refusals < self.exchange.sent() {
            self.refusals += 1;
        }
        if self.refusals < REFUSALS {
            return false;
        }
        self.refused_until = now + REFUSED_GRACE;
        self.remote().ip().to_canonical().is_loopback()
    }
    pub(super) fn met_busy(&self) -> bool {
        self.was_busy
    }
    /// Whether several packets were refused and no reply arrived.
    fn is_refused(&self) -> bool {
        !self.progress.is_answered() && !self.refused_until.is_never()
    }
    pub(super) fn until(&self) -> Time {
        let until = self.progress.until;
        if self.is_refused() { until.min(self.refused_until) } else { until }
    }
    pub(super) fn due(&self) -> Time {
        self.exchange.due().min(self.until())
    }

    /// Whether to restart the attempt, because the cookie is too old or START was sent too often. This needs a new
    /// nonce: the server may remember the old one.
    pub(super) fn is_stale(&self, now: Time) -> bool {
        self.exchange.is_stale(now)
    }
    /// Restarts the attempt; returns the nonce whose replies count no longer.
    pub(super) fn restart(&mut self, now: Time, nonce: Nonce) -> Option<Nonce> {
        self.exchange.restart(now);
        self.tries.restart(nonce)
    }

    /// The next handshake packet, if it is due.
    pub(super) fn transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        match self.exchange.next_packet(now)? {
            HandshakePacket::Syn => Some(packet::syn(VERSION, &self.tries.nonce())),
            HandshakePacket::Probe => {
                let mut nonce = self.probe_nonce;
                nonce[15] |= PROBE;
                Some(packet::syn_of(VERSION, &nonce, PROBE_BYTES.into()))
            }
            HandshakePacket::Start => self.tries.start(),
        }
    }

    /// Whether another packet follows the last one at once.
    pub(super) fn has_more(&self) -> bool {
        self.exchange.has_probe()
    }

    /// Handles the reply to a probe.
    pub(super) fn on_probe_echo(&mut self, now: Time) {
        self.progress.on_answer(now);
        self.exchange.on_probe_echo(now);
    }

    /// A reply to the kept `nonce` continues the handshake.
    fn resume(&mut self, nonce: Nonce) {
        if nonce != self.tries.nonce() {
            self.exchange.resume_earlier();
            self.tries.use_nonce(nonce);
        }
    }

    /// Handles a SYN-ECHO with one of this attempt's nonces. Returns whether START is to be sent.
    pub(super) fn on_syn_echo(
        &mut self,
        now: Time,
        nonce: Nonce,
        cookie: &Cookie,
        key: &StaticKey,
        seed: [u8; 32],
    ) -> bool {
        self.progress.on_answer(now);
        if !self.exchange.takes_cookie() {
            return false;
        }
        let made = ClientHandshake::new(self.connect.suite, nonce, cookie, key, seed);
        let Ok(keys) = made else { return false };
        self.resume(nonce);
        self.progress.on_step(now, self.exchange.waited(now));
        self.exchange.begin_start(now);
        self.tries.add(keys);
        if self.outcome == Some(Closed::Version) {
            // A server with this version replied, so the VERSION was forged.
            self.outcome = None;
        }
        true
    }

    /// Handles a VERSION with this attempt's nonce. It is not authenticated, and this end supports no other version.
    /// The attempt ends soon, unless another reply of the server arrives.
    pub(super) fn on_version(&mut self, now: Time, refused: u32, spoken: &Versions<'_>) {
        self.progress.on_answer(now);
        let is_plausible = refused == VERSION && spoken.iter().all(|v| v != VERSION);
        if is_plausible && self.exchange.takes_cookie() {
            self.end_soon(now, Closed::Version);
        }
    }

    fn end_soon(&mut self, now: Time, outcome: Closed) {
        if self.outcome.is_none() {
            self.outcome = Some(outcome);
            self.progress.until = self.progress.until.min(now + GRACE);
        }
    }

    /// This end's connection ID and parameters for the server.
    fn hello(&self) -> Hello {
        let params = Params {
            offered: Some(VERSION),
            reset_token: Some(self.reset_token),
            ..hello::params(&self.connect.connection)
        };
        Hello { connection: self.id, params }
    }

    /// The early data, for the new connection.
    pub(super) fn early(&self, is_taken: bool) -> Option<EarlyExchange<'_>> {
        self.connect.early_data.as_ref().map(|data| EarlyExchange::Sent { data, is_taken })
    }

    /// Keeps a packet that may have arrived before EARLY-ECHO. Before FINISH a server sends no other packets.
    pub(super) fn keep(&mut self, ecn: u8, datagram: &[u8]) {
        if self.tries.has_early() {
            self.overtaken.keep(ecn, datagram);
        }
    }

    /// Handles an EARLY-ECHO with one of this attempt's nonces.
    pub(super) fn on_early_echo(
        &mut self,
        now: Time,
        echo: &StartEcho<'_>,
    ) -> Option<HandshakeDone> {
        self.progress.on_answer(now);
        let established = self.tries.on_early_echo(echo)?;
        Some(self.done(now, echo.nonce, established, None))
    }

    /// Handles a START-ECHO with one of this attempt's nonces.
    pub(super) fn on_start_echo(
        &mut self,
        now: Time,
        echo: &StartEcho<'_>,
    ) -> Option<HandshakeDone> {
        self.progress.on_answer(now);
        let hello = self.hello();
        let wanted = self.connect.server_key;
        let read = self.tries.on_start_echo(echo, &hello, |key| match wanted {
            ServerKey::Any => true,
            ServerKey::Is(right) => *key == right,
        });
        match read {
            Ok((established, finish)) => {
                Some(self.done(now, echo.nonce, established, Some(finish)))
            }
            Err(refused) => {
                if let Some(found) = refused {
                    self.end_soon(now, Closed::WrongKey { found });
                }
                None
            }
        }
    }

    fn done(
        &mut self,
        now: Time,
        nonce: Nonce,
        established: Established,
        finish: Option<Vec<u8>>,
    ) -> HandshakeDone {
        self.resume(nonce);
        self.progress.on_step(now, self.exchange.waited(now));
        let path = self.exchange.finish(now);
        let hello = self.hello().params;
        HandshakeDone { established, finish, hello, path, progress: self.progress }
    }
}
