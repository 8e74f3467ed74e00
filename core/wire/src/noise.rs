//! The handshake behind the cookie: Noise XX (revision 34) by `snow`, over START, START-ECHO and
//! FINISH. The one that begins with early data is in [`early`].
//!
//! The clear part of START (version, suite, nonce, cookie) is the prologue. If a bit of it is changed on the path, the
//! two ends' hashes differ and the messages cannot be opened. The clear fields of START-ECHO and FINISH only identify
//! the handshake: if changed, no handshake matches. The client receives the server's key before it sends its own.
//!
//! `snow` draws its ephemeral key from the caller's seed, so a handshake state can be rebuilt from its inputs. This is
//! necessary because a message with a copied first half and a forged second half leaves the library's state unusable,
//! and a forgery must not change the state.

use crate::bytes::Sink;
use crate::cookie::Cookie;
use crate::header::ConnectionId;
use crate::keys::{Secret, Suite};
use crate::packet::{self, Finish, MAX_LONG_BYTES, Nonce, Start, StartEcho};
use crate::params::{Hello, MAX_HELLO_BYTES};
use crate::path_keys::PathKeys;
use crate::seal::{Opener, Sealer};
use snow::HandshakeState;
use std::fmt;

pub mod early;
mod error;
mod parts;

pub use crate::keys::PublicKey;
pub use error::HandshakeError;
#[cfg(any(test, feature = "hostile"))]
pub(crate) use parts::CryptoProvider;
pub use parts::{StaticKey, builder, is_low_order};
use parts::{library, refused};

/// The result of a handshake: keys, and the peer's identity.
#[derive(Debug)]
#[non_exhaustive]
pub struct Established {
    /// The peer's static key, proven. The client has already accepted the server's key; the server
    /// still has to decide on the client's.
    pub key: PublicKey,
    /// The peer's id and parameters.
    pub peer: Hello,
    /// For sent packets.
    pub sealer: Sealer,
    /// For packets from the peer.
    pub opener: Opener,
    /// For further paths.
    pub path_keys: PathKeys,
    /// Hash of the whole handshake, equal at both ends and unique to this handshake (channel
    /// binding).
    pub hash: [u8; 32],
}

pub(crate) fn hello_bytes(hello: &Hello) -> Result<Vec<u8>, HandshakeError> {
    let mut buffer = [0; MAX_HELLO_BYTES];
    let mut sink = Sink::new(&mut buffer);
    hello.write(&mut sink).map_err(|_| HandshakeError::OwnParams)?;
    Ok(sink.written().to_vec())
}

fn write(state: &mut HandshakeState, payload: &[u8]) -> Result<Vec<u8>, HandshakeError> {
    let mut buffer = [0; MAX_LONG_BYTES];
    let length = state.write_message(payload, &mut buffer).map_err(library)?;
    Ok(buffer.get(..length).unwrap_or_default().to_vec())
}

fn read(state: &mut HandshakeState, message: &[u8]) -> Result<Hello, HandshakeError> {
    let mut buffer = [0; MAX_LONG_BYTES];
    let length = state.read_message(message, &mut buffer).map_err(refused)?;
    Hello::read(buffer.get(..length).unwrap_or_default()).map_err(HandshakeError::Malformed)
}

fn peer_key(state: &HandshakeState) -> Result<PublicKey, HandshakeError> {
    state
        .get_remote_static()
        .and_then(|k| k.try_into().ok())
        .ok_or(HandshakeError::Library("no key of the peer"))
}

fn established(
    suite: Suite,
    state: &mut HandshakeState,
    key: PublicKey,
    peer: Hello,
) -> Result<Established, HandshakeError> {
    let hash: [u8; 32] = state
        .get_handshake_hash()
        .try_into()
        .map_err(|_| HandshakeError::Library("hash length"))?;
    // Noise's order: the initiator's sending key, then the responder's.
    let (initiator, responder) = state.dangerously_get_raw_split();
    let (send, receive) =
        if state.is_initiator() { (initiator, responder) } else { (responder, initiator) };
    let send = Secret::first(suite, &hash, &send);
    let receive = Secret::first(suite, &hash, &receive);
    let underived = || HandshakeError::Library("key derivation");
    let sealer = Sealer::new(peer.connection, &send, 0).ok_or_else(underived)?;
    let opener = Opener::new(&receive, 0).ok_or_else(underived)?;
    let path_keys = PathKeys { send, receive };
    Ok(Established { key, peer, sealer, opener, path_keys, hash })
}

/// The client's side, from START to the keys.
pub struct ClientHandshake {
    suite: Suite,
    key: StaticKey,
    seed: [u8; 32],
    nonce: Nonce,
    clear: Vec<u8>,
    start: Vec<u8>,
    state: HandshakeState,
}

impl ClientHandshake {
    /// Makes a START with the cookie of a SYN-ECHO. `seed` is 32 bytes of a cryptographic random
    /// source, never used again.
    ///
    /// # Errors
    /// Only if the cryptographic library fails.
    pub fn new(
        suite: Suite,
        nonce: Nonce,
        cookie: &Cookie,
        key: &StaticKey,
        seed: [u8; 32],
    ) -> Result<ClientHandshake, HandshakeError> {
        let clear = packet::start_clear(suite, &nonce, cookie);
        let (state, message) = ClientHandshake::begin(suite, &clear, key, &seed)?;
        let start = [&clear[..], &message].concat();
        Ok(ClientHandshake { suite, key: key.clone(), seed, nonce, clear, start, state })
    }

    fn begin(
        suite: Suite,
        clear: &[u8],
        key: &StaticKey,
        seed: &[u8; 32],
    ) -> Result<(HandshakeState, Vec<u8>), HandshakeError> {
        let mut state = builder(suite.noise(), clear, key.private(), seed)?
            .build_initiator()
            .map_err(library)?;
        let message = write(&mut state, &[])?;
        Ok((state, message))
    }

    /// The nonce of START and of the START-ECHO for it.
    pub fn nonce(&self) -> &Nonce {
        &self.nonce
    }
    /// The START, to be sent and repeated until a START-ECHO arrives.
    pub fn start(&self) -> &[u8] {
        &self.start
    }

    /// Reads a START-ECHO. `accept` returns whether the server's key is the expected one. Only then is the FINISH made,
    /// which seals `hello` and this end's key. The FINISH is to be sent and repeated until a data packet of the server
    /// has been opened.
    ///
    /// # Errors
    /// See [`HandshakeError`]; the handshake can continue with another START-ECHO.
    pub fn on_start_echo(
        &mut self,
        echo: &StartEcho<'_>,
        hello: &Hello,
        accept: impl FnOnce(&PublicKey) -> bool,
    ) -> Result<(Established, Vec<u8>), HandshakeError> {
        if echo.nonce != self.nonce {
            return Err(HandshakeError::NotOurs);
        }
        if self.state.is_handshake_finished() {
            return Err(HandshakeError::Finished);
        }
        let payload = hello_bytes(hello)?;
        let done = self.answer(echo, &payload, accept);
        if done.is_err() {
            (self.state, _) =
                ClientHandshake::begin(self.suite, &self.clear, &self.key, &self.seed)?;
        }
        done
    }

    fn answer(
        &mut self,
        echo: &StartEcho<'_>,
        payload: &[u8],
        accept: impl FnOnce(&PublicKey) -> bool,
    ) -> Result<(Established, Vec<u8>), HandshakeError> {
        let peer = read(&mut self.state, echo.noise)?;
        let key = peer_key(&self.state)?;
        if !accept(&key) {
            return Err(HandshakeError::KeyRefused(key));
        }
        let message = write(&mut self.state, payload)?;
        let finish = packet::finish(peer.connection, &message);
        Ok((established(self.suite, &mut self.state, key, peer)?, finish))
    }
}

impl fmt::Debug for ClientHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientHandshake({:?})", self.suite)
    }
}

/// The server's side, from a START with a valid cookie to the keys.
pub struct ServerHandshake {
    suite: Suite,
    connection: ConnectionId,
    key: StaticKey,
    seed: [u8; 32],
    clear: Vec<u8>,
    first: Vec<u8>,
    hello: Vec<u8>,
    echo: Vec<u8>,
    state: HandshakeState,
}

impl ServerHandshake {
    /// Responds to a START **whose cookie the caller has checked**. Its nonce must differ from those of all live
    /// handshakes and connections. `seed` as for the client.
    ///
    /// # Errors
    /// The client's key is invalid, or `hello` is too long.
    pub fn new(
        start: &Start<'_>,
        key: &StaticKey,
        seed: [u8; 32],
        hello: &Hello,
    ) -> Result<ServerHandshake, HandshakeError> {
        let payload = hello_bytes(hello)?;
        let (state, message) =
            ServerHandshake::begin(start.suite, start.clear, start.noise, key, &seed, &payload)?;
        Ok(ServerHandshake {
            suite: start.suite,
            connection: hello.connection,
            key: key.clone(),
            seed,
            clear: start.clear.to_vec(),
            first: start.noise.to_vec(),
            hello: payload,
            echo: packet::start_echo(&start.nonce, &message),
            state,
        })
    }

    fn begin(
        suite: Suite,
        clear: &[u8],
        first: &[u8],
        key: &StaticKey,
        seed: &[u8; 32],
        hello: &[u8],
    ) -> Result<(HandshakeState, Vec<u8>), HandshakeError> {
        let mut state = builder(suite.noise(), clear, key.private(), seed)?
            .build_responder()
            .map_err(library)?;
        let mut nothing = [0; 32];
        state.read_message(first, &mut nothing).map_err(refused)?;
        let message = write(&mut state, hello)?;
        Ok((state, message))
    }

    /// The START-ECHO, to be sent for this START and for each repetition of it.
    pub fn start_echo(&self) -> &[u8] {
        &self.echo
    }

    /// Reads a FINISH. Afterwards the caller decides by [`Established::key`] whether this client
    /// may connect; having the keys, it can refuse with a sealed CLOSE.
    ///
    /// # Errors
    /// See [`HandshakeError`]; the handshake can continue with another FINISH.
    pub fn on_finish(&mut self, finish: &Finish<'_>) -> Result<Established, HandshakeError> {
        if finish.connection != self.connection {
            return Err(HandshakeError::NotOurs);
        }
        if self.state.is_handshake_finished() {
            return Err(HandshakeError::Finished);
        }
        let done = read(&mut self.state, finish.noise).and_then(|peer| {
            let key = peer_key(&self.state)?;
            established(self.suite, &mut self.state, key, peer)
        });
        // Before the client's key was read the state is intact: a blind forgery causes no extra
        // work.
        if done.is_err() && self.state.get_remote_static().is_some() {
            (self.state, _) = ServerHandshake::begin(
                self.suite,
                &self.clear,
                &self.first,
                &self.key,
                &self.seed,
                &self.hello,
            )?;
        }
        done
    }
}

impl fmt::Debug for ServerHandshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerHandshake({:?}, {:?})", self.suite, self.connection)
    }
}
