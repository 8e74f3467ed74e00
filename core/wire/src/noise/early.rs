//! The handshake that begins with early data: Noise IK (revision 34) by `snow`, over EARLY-START and EARLY-ECHO. The
//! client has the server's static key and an address token that permits early data. So its first packet already has its
//! identity, parameters and frames, and the server's response completes the handshake.
//!
//! Message 1 is protected less than all later packets:
//!
//! - If the server's static key leaks later, message 1 can be read (no forward secrecy).
//! - With that key it can be forged for any client (key compromise impersonation).
//! - A copy of it is as authentic as the original.
//!
//! So the server **must** accept the frames of each token once ([`token`](crate::token)), and of a fresh message only
//! ([`EarlyMessage::age`]). Packets after EARLY-ECHO are as after FINISH.

use super::{
    Established, HandshakeError, PublicKey, StaticKey, established, peer_key, read, write,
};
use super::{builder, hello_bytes, library, refused};
use crate::bytes::{ByteReader, Malformed, Sink};
use crate::frame::kind::PADDING;
use crate::keys::Suite;
use crate::packet::{
    self, EARLY_START_BYTES, MAX_LONG_BYTES, Nonce, START_CLEAR_BYTES, Start, StartEcho, TAG_BYTES,
};
use crate::params::{Hello, MAX_HELLO_BYTES};
use crate::token::Token;
use narrows_base::Duration;
use snow::HandshakeState;
use std::fmt;

/// An ephemeral key, and a sealed static one.
const KEYS: usize = 32 + 32 + TAG_BYTES;
/// Bytes that message 1 seals besides the keys.
const PAYLOAD_BYTES: usize = EARLY_START_BYTES - START_CLEAR_BYTES - KEYS - TAG_BYTES;
/// Age, and the hello's length.
const HEAD: usize = 4 + 2;
/// Bytes of frames that always fit, whatever the length of the hello.
pub const MAX_EARLY_FRAMES: usize = PAYLOAD_BYTES - HEAD - MAX_HELLO_BYTES;

/// The sealed content of an EARLY-START.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EarlyMessage {
    /// Time since the client received its token, by the client's clock. The server compares it with the token's time of
    /// issue, and so detects a message that was delayed on the path.
    pub age: Duration,
    /// The client's parameters.
    pub hello: Hello,
    /// Frames, for [`Frames::bare`](crate::Frames::bare).
    pub frames: Vec<u8>,
}

impl EarlyMessage {
    /// Padded to a fixed length, so that the length reveals nothing.
    fn bytes(&self) -> Result<Vec<u8>, HandshakeError> {
        let hello = hello_bytes(&self.hello)?;
        let mut buffer = [PADDING; PAYLOAD_BYTES];
        let mut sink = Sink::new(&mut buffer);
        let age = u32::try_from(self.age.as_nanos() / 1_000_000).unwrap_or(u32::MAX);
        sink.number(age.into(), 4)
            .and_then(|()| sink.number(hello.len() as u64, 2))
            .and_then(|()| sink.put(&hello))
            .and_then(|()| sink.put(&self.frames))
            .map_err(|_| HandshakeError::OwnParams)?;
        Ok(buffer.to_vec())
    }
    fn read(bytes: &[u8]) -> Result<EarlyMessage, Malformed> {
        let mut source = ByteReader::new(bytes);
        let age = Duration::from_millis(source.u32()?.into());
        let length = usize::try_from(source.number(2)?).unwrap_or(usize::MAX);
        let hello = Hello::read(source.take(length)?)?;
        Ok(EarlyMessage { age, hello, frames: source.rest().to_vec() })
    }
}

/// The client's side, from EARLY-START to the keys.
pub struct EarlyHandshake {
    suite: Suite,
    nonce: Nonce,
    key: StaticKey,
    server: PublicKey,
    seed: [u8; 32],
    clear: Vec<u8>,
    payload: Vec<u8>,
    start: Vec<u8>,
    state: HandshakeState,
}

impl EarlyHandshake {
    /// Makes an EARLY-START for the server with this key. `seed` is 32 bytes of a cryptographic random source, never
    /// used again.
    ///
    /// # Errors
    /// The message is too long.
    pub fn new(
        suite: Suite,
        nonce: Nonce,
        token: &Token,
        key: &StaticKey,
        server: &PublicKey,
        seed: [u8; 32],
        message: &EarlyMessage,
    ) -> Result<EarlyHandshake, HandshakeError> {
        let clear = packet::early_start_clear(suite, &nonce, &token.as_cookie());
        let payload = message.bytes()?;
        let (state, first) = begin(suite, &clear, key, server, &seed, &payload)?;
        let start = [&clear[..], &first].concat();
        let key = key.clone();
        let server = *server;
        Ok(EarlyHandshake { suite, nonce, key, server, seed, clear, payload, start, state })
    }

    /// The EARLY-START, to be sent and repeated until the server responds.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// Reads an EARLY-ECHO: the server has the frames.
    ///
    /// # Errors
    /// See [`HandshakeError`]; the handshake can continue with another EARLY-ECHO.
    pub fn on_early_echo(&mut self, echo: &StartEcho<'_>) -> Result<Established, HandshakeError> {
        if echo.nonce != self.nonce {
            return Err(HandshakeError::NotOurs);
        }
        if self.state.is_handshake_finished() {
            return Err(HandshakeError::Finished);
        }
        let done = read(&mut self.state, echo.noise)
            .and_then(|peer| established(self.suite, &mut self.state, self.server, peer));
        if done.is_err() {
            let EarlyHandshake { suite, clear, key, server, seed, payload, .. } = &*self;
            (self.state, _) = begin(*suite, clear, key, server, seed, payload)?;
        }
        done
    }
}

fn begin(
    suite: Suite,
    clear: &[u8],
    key: &StaticKey,
    server: &PublicKey,
    seed: &[u8; 32],
    payload: &[u8],
) -> Result<(HandshakeState, Vec<u8>), HandshakeError> {
    let builder = builder(suite.early_noise(), clear, key.private(), seed)?;
    let builder = builder.remote_public_key(server).map_err(library)?;
    let mut state = builder.build_initiator().map_err(library)?;
    let message = write(&mut state, payload)?;
    Ok((state, message))
}

impl fmt::Debug for EarlyHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EarlyHandshake({:?})", self.suite)
    }
}

/// An EARLY-START at the server: authentic, but perhaps a copy.
pub struct EarlyRequest {
    /// The client's static key.
    pub key: PublicKey,
    /// Its parameters and frames.
    pub message: EarlyMessage,
    suite: Suite,
    nonce: Nonce,
    state: HandshakeState,
}

impl EarlyRequest {
    /// Reads an EARLY-START **whose token the caller has checked**. `seed` as for the client.
    ///
    /// # Errors
    /// The message was made for another key, was changed on the path, or is malformed.
    pub fn read(
        start: &Start<'_>,
        key: &StaticKey,
        seed: [u8; 32],
    ) -> Result<EarlyRequest, HandshakeError> {
        let Start { suite, nonce, .. } = *start;
        let builder = builder(suite.early_noise(), start.clear, key.private(), &seed)?;
        let mut state = builder.build_responder().map_err(library)?;
        let mut buffer = [0; MAX_LONG_BYTES];
        let length = state.read_message(start.noise, &mut buffer).map_err(refused)?;
        let message = EarlyMessage::read(buffer.get(..length).unwrap_or_default())
            .map_err(HandshakeError::Malformed)?;
        Ok(EarlyRequest { key: peer_key(&state)?, message, suite, nonce, state })
    }

    /// Takes it: the keys, and the EARLY-ECHO, to be sent for this EARLY-START and for each repetition of it. That the
    /// client is there now, and this is no copy, is shown only by a packet that opens with these keys.
    ///
    /// # Errors
    /// `hello` is too long.
    pub fn accept(mut self, hello: &Hello) -> Result<(Established, Vec<u8>), HandshakeError> {
        let message = write(&mut self.state, &hello_bytes(hello)?)?;
        let echo = packet::early_echo(&self.nonce, &message);
        let peer = self.message.hello;
        Ok((established(self.suite, &mut self.state, self.key, peer)?, echo))
    }
}

impl fmt::Debug for EarlyRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EarlyRequest({:?})", self.suite)
    }
}

#[cfg(test)]
#[path = "early_tests.rs"]
mod tests;
