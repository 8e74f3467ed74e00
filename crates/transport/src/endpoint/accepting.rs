//! A handshake at the server, from a START with a valid cookie to its FINISH.

use narrows_base::{Duration, Time};
use narrows_wire::packet::{Finish, Nonce, TAG_BYTES};
use narrows_wire::{
    Established, Frame, FrameWriter, HandshakeError, Params, Prelude, Sealer, ServerHandshake,
};
use std::net::SocketAddr;

/// A handshake waits for its FINISH so long at most.
const HANDSHAKE_LIFE: Duration = Duration::from_secs(10);
/// Packets that overtook FINISH, kept for each handshake.
const EARLY: usize = 4;
/// Longest of them, bytes.
const EARLY_BYTES: usize = 2048;
/// A repeated START or FINISH is answered no oftener than this.
const ANSWER_EVERY: Duration = Duration::from_millis(50);

enum Stage {
    /// For FINISH.
    Waiting(Box<ServerHandshake>),
    /// The client was refused, by this sealed CLOSE.
    Refused(Vec<u8>),
    /// It gets no answer; its place is kept so that nothing else answers what it goes on sending.
    Ignored,
}

/// A handshake with a good cookie.
pub(super) struct Accepting {
    pub(super) from: SocketAddr,
    pub(super) nonce: Nonce,
    /// Its START had a token.
    pub(super) without_syn: bool,
    pub(super) born: Time,
    /// What the client learns of us.
    pub(super) hello: Params,
    stage: Stage,
    /// Packets that overtook FINISH, with their ECN bits.
    pub(super) early: Vec<(u8, Vec<u8>)>,
    /// Whether the answer is to be sent.
    is_wanted: bool,
    answered: Option<Time>,
    echoes: u32,
    /// Whether a FINISH was read that did not end it.
    pub(super) was_forged: bool,
}

impl Accepting {
    pub(super) fn new(
        now: Time,
        from: SocketAddr,
        nonce: Nonce,
        without_syn: bool,
        handshake: ServerHandshake,
        hello: Params,
    ) -> Accepting {
        Accepting {
            from,
            nonce,
            without_syn,
            born: now,
            hello,
            stage: Stage::Waiting(Box::new(handshake)),
            early: Vec::new(),
            is_wanted: true,
            answered: None,
            echoes: 0,
            was_forged: false,
        }
    }

    /// Bytes of the heap that it holds, about.
    pub(super) fn memory(&self) -> usize {
        let early: usize = self.early.iter().map(|(_, packet)| packet.len()).sum();
        size_of::<Accepting>() + size_of::<ServerHandshake>() + early
    }

    /// When it is forgotten.
    pub(super) fn until(&self) -> Time {
        self.born + HANDSHAKE_LIFE
    }

    /// Wants the answer sent (again); whether it may.
    fn want(&mut self, now: Time) -> bool {
        let is_early = self.answered.is_some_and(|at| now.since(at) < ANSWER_EVERY);
        self.is_wanted |= !is_early;
        self.is_wanted
    }

    /// Its START came again, and its START-ECHO may go.
    pub(super) fn on_start(&mut self, now: Time, from: SocketAddr, nonce: &Nonce) -> bool {
        self.from == from
            && self.nonce == *nonce
            && matches!(self.stage, Stage::Waiting(_))
            && self.want(now)
    }

    /// A FINISH came for it.
    pub(super) fn on_finish(&mut self, finish: &Finish<'_>) -> Result<Established, HandshakeError> {
        let read = match &mut self.stage {
            Stage::Waiting(handshake) => handshake.on_finish(finish),
            Stage::Refused(_) | Stage::Ignored => Err(HandshakeError::Finished),
        };
        self.was_forged |= read.is_err();
        read
    }

    /// What the exchange of START-ECHO and FINISH took. Nothing if START-ECHO went twice, or if
    /// data came first: then this FINISH is perhaps not the first.
    pub(super) fn sample(&self, now: Time) -> Option<Duration> {
        let at = self.answered.filter(|_| self.echoes == 1 && self.early.is_empty())?;
        Some(now.since(at))
    }

    /// Tells the client under seal that it is not wanted; whether there is something to send.
    pub(super) fn refuse(
        &mut self,
        now: Time,
        mut keys: Established,
        code: u64,
        reason: &str,
    ) -> bool {
        let frame = Frame::Close { code, reason: reason.as_bytes() };
        let mut datagram = vec![0; 256];
        let head = Sealer::header_len(0, None);
        let most = datagram.len() - TAG_BYTES;
        let written = datagram.get_mut(head..most).and_then(|payload| {
            let mut writer = FrameWriter::new(payload, Prelude::new(now, 0, 0)).ok()?;
            writer.frame(&frame).ok()?;
            Some(writer.len())
        });
        let Some(length) = written else { return false };
        datagram.truncate(head + length + TAG_BYTES);
        if keys.sealer.seal(0, None, &mut datagram).is_err() {
            return false;
        }
        self.stage = Stage::Refused(datagram);
        self.early = Vec::new();
        self.is_wanted = true;
        true
    }

    /// Says nothing to it any more.
    pub(super) fn ignore(&mut self) {
        self.stage = Stage::Ignored;
        (self.early, self.is_wanted) = (Vec::new(), false);
    }

    /// Something of a client that was refused came again; whether it may be told again.
    pub(super) fn on_again(&mut self, now: Time) -> bool {
        matches!(self.stage, Stage::Refused(_)) && self.want(now)
    }

    /// Keeps a packet that overtook FINISH, or drops it.
    pub(super) fn keep(&mut self, ecn: u8, datagram: &[u8]) {
        if self.early.len() < EARLY
            && datagram.len() <= EARLY_BYTES
            && matches!(self.stage, Stage::Waiting(_))
        {
            self.early.push((ecn, datagram.to_vec()));
        }
    }

    /// The answer, if it is to be sent.
    pub(super) fn transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.is_wanted) {
            return None;
        }
        self.answered = Some(now);
        Some(match &self.stage {
            Stage::Waiting(handshake) => {
                self.echoes = self.echoes.saturating_add(1);
                handshake.start_echo().to_vec()
            }
            Stage::Refused(close) => close.clone(),
            Stage::Ignored => return None,
        })
    }
}
