//! The nonces and keys of an attempt to connect. An attempt that gets no reply in time restarts with a new nonce, but on
//! a path of seconds a reply to the packets before may be under way. So the last nonces and keys are kept, and a reply
//! to any of them is accepted.

use crate::connection::Closed;
use narrows_base::{Duration, Time};
use narrows_wire::packet::{Nonce, StartEcho};
use narrows_wire::{
    ClientHandshake, EarlyHandshake, Established, HandshakeError, Hello, noise::PublicKey,
};
use std::collections::VecDeque;

/// Nonces kept, and keys of STARTs kept. A START with a cookie has keys of its own, and needs 3 s to be given up.
const MAX_KEPT: usize = 4;
/// Limit on the START-ECHOs and EARLY-ECHOs that one nonce reads, with two X25519 operations each. Beyond it an attacker
/// that forges them prevents the connection.
const MAX_ECHOES: u32 = 64;

/// Nonces and keys of an attempt, the newest last.
pub(super) struct Tries {
    nonces: VecDeque<Nonce>,
    starts: VecDeque<Box<ClientHandshake>>,
    early: Option<Box<EarlyHandshake>>,
    echoes: u32,
}

impl Tries {
    pub(super) fn new(nonce: Nonce) -> Tries {
        Tries { nonces: [nonce].into(), starts: VecDeque::new(), early: None, echoes: 0 }
    }
    pub(super) fn nonces(&self) -> impl Iterator<Item = &Nonce> {
        self.nonces.iter()
    }
    /// The nonce of the packets sent now.
    pub(super) fn nonce(&self) -> Nonce {
        self.nonces.back().copied().unwrap_or_default()
    }
    /// Uses this kept nonce again.
    pub(super) fn use_nonce(&mut self, nonce: Nonce) {
        self.nonces.retain(|kept| *kept != nonce);
        self.nonces.push_back(nonce);
    }
    /// Uses a new nonce; returns the one that is not kept any longer.
    pub(super) fn restart(&mut self, nonce: Nonce) -> Option<Nonce> {
        self.echoes = 0;
        self.nonces.push_back(nonce);
        if self.nonces.len() > MAX_KEPT { self.nonces.pop_front() } else { None }
    }
    /// Adds the keys of the START to send from now on.
    pub(super) fn add(&mut self, start: ClientHandshake) {
        if self.starts.len() >= MAX_KEPT {
            self.starts.pop_front();
        }
        self.starts.push_back(Box::new(start));
    }
    pub(super) fn set_early(&mut self, early: EarlyHandshake) {
        self.early = Some(Box::new(early));
    }
    pub(super) fn has_early(&self) -> bool {
        self.early.is_some()
    }
    /// The START to send, or the EARLY-START.
    pub(super) fn start(&self) -> Option<Vec<u8>> {
        let start = self.starts.back().map(|start| start.start().to_vec());
        start.or_else(|| self.early.as_ref().map(|early| early.start().to_vec()))
    }

    fn may_read(&mut self) -> bool {
        self.echoes += 1;
        self.echoes <= MAX_ECHOES
    }
    pub(super) fn on_early_echo(&mut self, echo: &StartEcho<'_>) -> Option<Established> {
        let may_read = self.early.is_some() && self.may_read();
        self.early.as_mut().filter(|_| may_read)?.on_early_echo(echo).ok()
    }
    /// The keys and FINISH for a START-ECHO, or the key of a server that `accept` refuses.
    pub(super) fn on_start_echo(
        &mut self,
        echo: &StartEcho<'_>,
        hello: &Hello,
        accept: impl Fn(&PublicKey) -> bool,
    ) -> Result<(Established, Vec<u8>), Option<PublicKey>> {
        let mut refused = None;
        for n in (0..self.starts.len()).rev() {
            let is_meant = self.starts.get(n).is_some_and(|start| *start.nonce() == echo.nonce);
            if !is_meant || !self.may_read() {
                continue;
            }
            let Some(start) = self.starts.get_mut(n) else { continue };
            match start.on_start_echo(echo, hello, &accept) {
                Ok(done) => return Ok(done),
                Err(HandshakeError::KeyRefused(found)) => refused = Some(found),
                Err(_) => {}
            }
        }
        Err(refused)
    }
}

/// The times of an attempt: how long it waits, and what its failure reports.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    began: Time,
    /// When the first reply arrived, authentic or forged.
    answered: Option<Time>,
    /// When the attempt fails.
    pub(super) until: Time,
    longest: Time,
}

impl Progress {
    /// Fails after `max_wait` without a reply.
    pub(super) fn new(now: Time, max_wait: Duration) -> Progress {
        let longest = now + max_wait.saturating_mul(3);
        Progress { began: now, answered: None, until: now + max_wait, longest }
    }
    pub(super) fn is_answered(&self) -> bool {
        self.answered.is_some()
    }
    /// Records a reply.
    pub(super) fn on_answer(&mut self, now: Time) {
        self.answered.get_or_insert(now);
    }
    /// A step of the handshake took this long, and another follows.
    pub(super) fn on_step(&mut self, now: Time, took: Duration) {
        self.on_answer(now);
        let next = now + took.mul_f64(1.5);
        self.until = self.until.max(next.min(self.longest));
    }
    /// The failure if the attempt ends now.
    pub(super) fn failure(&self, now: Time) -> Closed {
        let first_answer = self.answered.map(|at| at.since(self.began));
        Closed::NoAnswer { waited: now.since(self.began), first_answer }
    }
}
