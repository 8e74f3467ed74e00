//! A handshake at the server, from a START with a valid cookie to its FINISH.

use narrows_base::{Duration, Time};
use narrows_wire::packet::{Finish, Nonce, TAG_BYTES};
use narrows_wire::{
    Established, Frame, FrameWriter, HandshakeError, Params, Prelude, Sealer, ServerHandshake,
};
use std::net::SocketAddr;

/// A handshake waits for its FINISH so long at most.
const HANDSHAKE_LIFE: Duration = Duration::from_secs(10);
/// Packets that overtook FINISH or EARLY-ECHO, kept for each handshake.
const MAX_OVERTAKEN: usize = 4;
/// Longest of them, bytes.
const MAX_OVERTAKEN_BYTES: usize = 2048;
/// A repeated START, EARLY-START or FINISH is answered no oftener than this.
pub(super) const ANSWER_EVERY: Duration = Duration::from_millis(50);

/// Packets that cannot be opened before another has come, with their ECN bits.
#[derive(Debug, Default)]
pub(super) struct Overtaken(Vec<(u8, Vec<u8>)>);

impl Overtaken {
    /// Keeps one, or drops it.
    pub(super) fn keep(&mut self, ecn: u8, datagram: &[u8]) {
        if self.0.len() < MAX_OVERTAKEN && datagram.len() <= MAX_OVERTAKEN_BYTES {
            self.0.push((ecn, datagram.to_vec()));
        }
    }
    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
    fn bytes(&self) -> usize {
        self.0.iter().map(|(_, packet)| packet.len()).sum()
    }
}

impl IntoIterator for Overtaken {
    type Item = (u8, Vec<u8>);
    type IntoIter = std::vec::IntoIter<(u8, Vec<u8>)>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

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
    /// Packets that overtook FINISH.
    pub(super) overtaken: Overtaken,
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
            overtaken: Overtaken::default(),
            is_wanted: true,
            answered: None,
            echoes: 0,
            was_forged: false,
        }
    }

    /// Bytes of the heap that it holds, about.
    pub(super) fn memory(&self) -> usize {
        size_of::<Accepting>() + size_of::<ServerHandshake>() + self.overtaken.bytes()
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
        let at = self.answered.filter(|_| self.echoes == 1 && self.overtaken.is_empty())?;
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
        self.overtaken = Overtaken::default();
        self.is_wanted = true;
        true
    }

    /// Says nothing to it any more.
    pub(super) fn ignore(&mut self) {
        self.stage = Stage::Ignored;
        (self.overtaken, self.is_wanted) = (Overtaken::default(), false);
    }

    /// Something of a client that was refused came again; whether it may be told again.
    pub(super) fn on_again(&mut self, now: Time) -> bool {
        matches!(self.stage, Stage::Refused(_)) && self.want(now)
    }

    /// Keeps a packet that overtook FINISH, or drops it.
    pub(super) fn keep(&mut self, ecn: u8, datagram: &[u8]) {
        if matches!(self.stage, Stage::Waiting(_)) {
            self.overtaken.keep(ecn, datagram);
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
