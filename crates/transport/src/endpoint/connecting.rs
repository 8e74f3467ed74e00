//! The client's side of a handshake: SYN until SYN-ECHO, START until START-ECHO.

use super::{Connect, ServerKey, hello};
use crate::connection::{Closed, ConnectionConfig};
use crate::packet_pair::{PROBE_BYTES, PacketPair};
use crate::repeat::{FIRST_REPEAT, Repeat};
use narrows_base::{Duration, Time};
use narrows_congestion::Dispersion;
use narrows_wire::cookie::MIN_COOKIE_LIFE;
use narrows_wire::packet::{self, Nonce, StartEcho, Versions};
use narrows_wire::{
    ClientHandshake, ConnectionId, Cookie, Established, HandshakeError, Hello, Params, StaticKey,
    VERSION,
};
use std::net::SocketAddr;

/// A START that went so often, for so long, without an answer that opens, is begun again, too: its
/// cookie, or the key in the one that the server kept, may have been damaged on the way, and nothing
/// but a new nonce mends that.
const TRIES: u32 = 4;
const LONG: Duration = Duration::from_secs(3);
/// After an answer that would end the attempt (a wrong key, no common version), the right one may
/// still come for so long: both can be somebody else's.
const GRACE: Duration = Duration::from_secs(1);
/// START-ECHOs that an attempt reads at most, two X25519 operations each: then whoever forges
/// them has the attempt.
const ECHOES: u32 = 64;

enum Stage {
    Syn,
    Start(Box<ClientHandshake>, Time),
}

/// An attempt to connect.
pub(super) struct Connecting {
    wish: Connect,
    id: ConnectionId,
    reset_token: [u8; 16],
    nonce: Nonce,
    stage: Stage,
    repeat: Repeat,
    rtt: Option<Duration>,
    packet_pair: PacketPair,
    /// Gives up then.
    until: Time,
    /// What to say then.
    outcome: Closed,
    was_busy: bool,
    echoes: u32,
}

/// What the server's answer led to.
pub(super) struct HandshakeDone {
    /// Keys.
    pub(super) established: Established,
    /// To be sent until something of the server opens.
    pub(super) finish: Vec<u8>,
    /// What the server was told.
    pub(super) hello: Params,
    /// First sample.
    pub(super) rtt: Option<Duration>,
    /// What the answers' spacing tells.
    pub(super) spacing: Option<Dispersion>,
    /// What FINISH may take to be answered: the exchange before it, repetitions included.
    pub(super) took: Duration,
    /// The attempt's end.
    pub(super) until: Time,
}

impl Connecting {
    pub(super) fn new(
        now: Time,
        wish: Connect,
        id: ConnectionId,
        reset_token: [u8; 16],
        nonce: Nonce,
    ) -> Connecting {
        // Where the path is known to be long, an early repetition only spoils the sample.
        let wait = wish.connection.hints.rtt.map_or(FIRST_REPEAT, |rtt| rtt.mul_f64(1.5));
        let until = now + wish.patience;
        let known = wish.connection.told().rate.is_some();
        let packet_pair = PacketPair::new(wish.connection.sounds && !known);
        Connecting {
            wish,
            id,
            reset_token,
            nonce,
            stage: Stage::Syn,
            repeat: Repeat::new(now, wait.max(FIRST_REPEAT)),
            rtt: None,
            packet_pair,
            until,
            outcome: Closed::NoAnswer,
            was_busy: false,
            echoes: 0,
        }
    }

    pub(super) fn remote(&self) -> SocketAddr {
        self.wish.remote
    }
    pub(super) fn nonce(&self) -> Nonce {
        self.nonce
    }
    pub(super) fn config(&self) -> &ConnectionConfig {
        &self.wish.connection
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
        self.was_busy = true;
    }
    pub(super) fn met_busy(&self) -> bool {
        self.was_busy
    }
    pub(super) fn until(&self) -> Time {
        self.until
    }
    pub(super) fn due(&self) -> Time {
        self.repeat.due.min(self.until)
    }

    /// Whether the cookie is so old, or START went so often, that the attempt begins again, which
    /// needs a new nonce: the server may remember the old one.
    pub(super) fn is_stale(&self, now: Time) -> bool {
        let Stage::Start(_, since) = self.stage else { return false };
        let in_vain = self.repeat.sent >= TRIES && now >= since + LONG;
        in_vain || now >= since + MIN_COOKIE_LIFE
    }
    /// Begins again.
    pub(super) fn restart(&mut self, now: Time, nonce: Nonce) {
        self.nonce = nonce;
        self.stage = Stage::Syn;
        self.repeat = Repeat::new(now, FIRST_REPEAT);
        self.packet_pair.spoil();
        self.echoes = 0;
    }

    /// The packet that waits for its answer, if it is time to send it.
    pub(super) fn transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        if self.has_more() {
            self.packet_pair.on_sent();
            return Some(packet::syn_of(VERSION, &self.nonce, PROBE_BYTES.into()));
        }
        if self.repeat.due > now {
            return None;
        }
        self.repeat.on_sent(now);
        Some(match &self.stage {
            Stage::Syn => packet::syn(VERSION, &self.nonce),
            Stage::Start(handshake, _) => handshake.start().to_vec(),
        })
    }

    /// Whether another packet is to follow the last one at once.
    pub(super) fn has_more(&self) -> bool {
        self.packet_pair.is_due() && self.repeat.is_sent() && matches!(self.stage, Stage::Syn)
    }

    /// A SYN-ECHO with our nonce; whether there is something to send now.
    pub(super) fn on_syn_echo(
        &mut self,
        now: Time,
        cookie: &Cookie,
        key: &StaticKey,
        seed: [u8; 32],
    ) -> bool {
        self.packet_pair.on_answer(now);
        if !matches!(self.stage, Stage::Syn) {
            return false;
        }
        let made = ClientHandshake::new(self.wish.suite, self.nonce, cookie, key, seed);
        let Ok(handshake) = made else { return false };
        self.rtt = self.repeat.sample(now);
        // The first SYN is at least a round-trip time ago, so START rarely goes twice on a long path.
        self.repeat = Repeat::after(now, now.since(self.repeat.first_sent));
        self.stage = Stage::Start(Box::new(handshake), now);
        if self.outcome == Closed::Version {
            // Somebody who speaks our version answered: the VERSION was not the server's.
            self.outcome = Closed::NoAnswer;
        }
        true
    }

    /// A VERSION with our nonce. It is not authenticated, and this end speaks no other version: the
    /// attempt ends soon, unless the server answers after all.
    pub(super) fn on_version(&mut self, now: Time, refused: u32, spoken: &Versions<'_>) {
        let is_plausible = refused == VERSION && spoken.iter().all(|v| v != VERSION);
        if is_plausible && matches!(self.stage, Stage::Syn) {
            self.judge(now, Closed::Version);
        }
    }

    fn judge(&mut self, now: Time, outcome: Closed) {
        if self.outcome == Closed::NoAnswer {
            self.outcome = outcome;
            self.until = self.until.min(now + GRACE);
        }
    }

    /// A START-ECHO with our nonce.
    pub(super) fn on_start_echo(
        &mut self,
        now: Time,
        echo: &StartEcho<'_>,
    ) -> Option<HandshakeDone> {
        let Stage::Start(handshake, _) = &mut self.stage else { return None };
        if self.echoes >= ECHOES {
            return None;
        }
        self.echoes += 1;
        let params = Params {
            offered: Some(VERSION),
            reset_token: Some(self.reset_token),
            ..hello::params(&self.wish.connection)
        };
        let hello = Hello { connection: self.id, params };
        let wanted = self.wish.server_key;
        let read = handshake.on_start_echo(echo, &hello, |key| match wanted {
            ServerKey::Any => true,
            ServerKey::Is(right) => *key == right,
        });
        match read {
            Ok((established, finish)) => {
                let sample = self.repeat.sample(now);
                let rtt = self.rtt.into_iter().chain(sample).min();
                Some(HandshakeDone {
                    spacing: rtt.and_then(|rtt| self.packet_pair.spacing(rtt)),
                    established,
                    finish,
                    hello: hello.params,
                    rtt,
                    took: now.since(self.repeat.first_sent),
                    until: self.until,
                })
            }
            Err(HandshakeError::KeyRefused(found)) => {
                self.judge(now, Closed::WrongKey { found });
                None
            }
            Err(_) => None,
        }
    }
}
