//! A handshake at the server, from START to FINISH.

use narrows_base::{Duration, Time};
use narrows_wire::packet::{Finish, Nonce, TAG_BYTES};
use narrows_wire::{
    Established, Frame, FrameWriter, HandshakeError, Params, Prelude, Sealer, ServerHandshake,
};
use std::net::SocketAddr;

/// Longest wait for FINISH, which arrives one round trip after START-ECHO has left.
const HANDSHAKE_LIFE: Duration = Duration::from_secs(30);
/// After this time a handshake keeps its place only while places are free.
pub(super) const HANDSHAKE_CLAIM: Duration = Duration::from_secs(10);
/// A refused or ignored client is remembered for this long after its FINISH.
const REFUSED_LIFE: Duration = Duration::from_secs(10);
/// Packets kept per handshake that arrived before FINISH or EARLY-ECHO.
const MAX_OVERTAKEN: usize = 4;
/// Longest packet kept, in bytes.
const MAX_OVERTAKEN_BYTES: usize = 2048;
/// Shortest interval between replies to a repeated START, EARLY-START or FINISH.
pub(super) const ANSWER_EVERY: Duration = Duration::from_millis(50);

/// Packets that cannot be opened before a later one arrives, with their ECN fields.
#[derive(Debug, Default)]
pub(super) struct Overtaken(Vec<(u8, Vec<u8>)>);

impl Overtaken {
    /// Keeps a packet within the limits, or drops it.
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

enum AcceptStage {
    /// Waits for FINISH.
    Waiting(Box<ServerHandshake>),
    /// The client was refused with this sealed CLOSE.
    Refused(Vec<u8>),
    /// The client gets no reply. The slot remains, so that its later packets get no RESET.
    Ignored,
}

/// How a START proved that its client receives at its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum StartProof {
    Cookie,
    Token,
    /// Not at all; FINISH will.
    None,
}

/// A handshake.
pub(super) struct Accepting {
    pub(super) from: SocketAddr,
    pub(super) nonce: Nonce,
    pub(super) proof: StartProof,
    pub(super) born: Time,
    /// When the handshake is dropped.
    pub(super) until: Time,
    /// This end's parameters, as sent to the client.
    pub(super) hello: Params,
    stage: AcceptStage,
    /// Packets that arrived before FINISH.
    pub(super) overtaken: Overtaken,
    /// Whether the reply is to be sent.
    is_wanted: bool,
    answered: Option<Time>,
    echoes: u32,
    /// Whether an invalid FINISH arrived.
    pub(super) was_forged: bool,
}

impl Accepting {
    pub(super) fn new(
        now: Time,
        from: SocketAddr,
        nonce: Nonce,
        proof: StartProof,
        handshake: ServerHandshake,
        hello: Params,
    ) -> Accepting {
        Accepting {
            from,
            nonce,
            proof,
            born: now,
            until: now + HANDSHAKE_LIFE,
            hello,
            stage: AcceptStage::Waiting(Box::new(handshake)),
            overtaken: Overtaken::default(),
            is_wanted: true,
            answered: None,
            echoes: 0,
            was_forged: false,
        }
    }

    /// Approximate bytes on the heap.
    pub(super) fn memory(&self) -> usize {
        size_of::<Accepting>() + size_of::<ServerHandshake>() + self.overtaken.bytes()
    }

    /// From when on the handshake gives way to any new one.
    pub(super) fn claim_ends(&self) -> Time {
        self.born + HANDSHAKE_CLAIM
    }
    /// Requests the reply (again). Returns whether it is to be sent.
    fn want(&mut self, now: Time) -> bool {
        let is_early = self.answered.is_some_and(|at| now.since(at) < ANSWER_EVERY);
        self.is_wanted |= !is_early;
        self.is_wanted
    }

    /// Handles a repeated START. Returns whether START-ECHO is to be sent.
    pub(super) fn on_start(&mut self, now: Time, from: SocketAddr, nonce: &Nonce) -> bool {
        self.from == from
            && self.nonce == *nonce
            && matches!(self.stage, AcceptStage::Waiting(_))
            && self.want(now)
    }

    /// Handles a FINISH.
    pub(super) fn on_finish(&mut self, finish: &Finish<'_>) -> Result<Established, HandshakeError> {
        let read = match &mut self.stage {
            AcceptStage::Waiting(handshake) => handshake.on_finish(finish),
            AcceptStage::Refused(_) | AcceptStage::Ignored => Err(HandshakeError::Finished),
        };
        self.was_forged |= read.is_err();
        read
    }

    /// RTT from START-ECHO to FINISH. Absent if START-ECHO was sent twice, or if data arrived
    /// first: then this FINISH may be a repetition.
    pub(super) fn sample(&self, now: Time) -> Option<Duration> {
        let at = self.answered.filter(|_| self.echoes == 1 && self.overtaken.is_empty())?;
        Some(now.since(at))
    }

    /// Refuses the client with a sealed CLOSE. Returns whether it could be written.
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
        self.stage = AcceptStage::Refused(datagram);
        self.until = now + REFUSED_LIFE;
        self.overtaken = Overtaken::default();
        self.is_wanted = true;
        true
    }

    /// Ignores the client from now on.
    pub(super) fn ignore(&mut self, now: Time) {
        self.stage = AcceptStage::Ignored;
        self.until = now + REFUSED_LIFE;
        self.overtaken = Overtaken::default();
        self.is_wanted = false;
    }

    /// Handles a further packet of a refused client. Returns whether CLOSE is to be sent again.
    pub(super) fn on_again(&mut self, now: Time) -> bool {
        matches!(self.stage, AcceptStage::Refused(_)) && self.want(now)
    }

    /// Keeps a packet that arrived before FINISH, or drops it.
    pub(super) fn keep(&mut self, ecn: u8, datagram: &[u8]) {
        if matches!(self.stage, AcceptStage::Waiting(_)) {
            self.overtaken.keep(ecn, datagram);
        }
    }

    /// The reply, if it is to be sent.
    pub(super) fn transmit(&mut self, now: Time) -> Option<Vec<u8>> {
        if !std::mem::take(&mut self.is_wanted) {
            return None;
        }
        self.answered = Some(now);
        Some(match &self.stage {
            AcceptStage::Waiting(handshake) => {
                self.echoes = self.echoes.saturating_add(1);
                handshake.start_echo().to_vec()
            }
            AcceptStage::Refused(close) => close.clone(),
            AcceptStage::Ignored => return None,
        })
    }
}
