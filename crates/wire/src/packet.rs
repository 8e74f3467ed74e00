//! Outer packets: what a datagram is, and the packets of the handshake byte by byte.
//!
//! A datagram holds one packet. Bit 7 of the first byte tells *long* packets (handshake) from
//! *short* ones (data, [`crate::header`]). Every long packet begins with a type and the version.

use crate::VERSION;
use crate::bytes::{Malformed, Source};
use crate::cookie::{COOKIE_BYTES, Cookie};
use crate::header::{ConnectionId, Header, LONG};
use crate::keys::Suite;

/// A SYN is padded to at least this, so that no answer to it is longer.
pub const SYN_BYTES: usize = 64;
/// A SYN-ECHO.
pub const SYN_ECHO_BYTES: usize = 5 + 16 + COOKIE_BYTES;
/// The part of a START that is in the clear and becomes the handshake's prologue.
pub const START_CLEAR_BYTES: usize = 5 + 1 + 16 + COOKIE_BYTES;
/// A START: the clear part and an ephemeral key.
pub const START_BYTES: usize = START_CLEAR_BYTES + 32;
/// Most bytes of any long packet but a SYN. Longer ones are malformed.
pub const MAX_LONG_BYTES: usize = 1200;
/// Most versions that a VERSION lists.
pub const MAX_VERSIONS: usize = 8;
/// A RESET.
pub const RESET_BYTES: usize = 5 + 16;
/// A BUSY.
pub const BUSY_BYTES: usize = 5 + 16;
/// Seal of a packet: the AEAD's tag.
pub const TAG_BYTES: usize = 16;

const SYN: u8 = LONG | 1;
const SYN_ECHO: u8 = LONG | 2;
const START: u8 = LONG | 3;
const START_ECHO: u8 = LONG | 4;
const FINISH: u8 = LONG | 5;
const VERSIONS: u8 = LONG | 6;
const RESET: u8 = LONG | 7;
const BUSY: u8 = LONG | 8;

/// What the client draws at random for each attempt at a connection.
pub type Nonce = [u8; 16];

/// A parsed datagram. Nothing in it is authenticated yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Packet<'a> {
    /// A client asks for a cookie. The only packet that is read in any version.
    Syn {
        /// The version that the client wants to speak: perhaps not ours.
        version: u32,
        /// The client's name for this attempt.
        nonce: Nonce,
    },
    /// The server's answer to a SYN, which it then forgets.
    SynEcho {
        /// As in the SYN.
        nonce: Nonce,
        /// To be returned in START.
        cookie: Cookie,
    },
    /// The client proves that it gets what is sent to its address, and offers a key.
    Start(Start<'a>),
    /// The server's key, identity and parameters.
    StartEcho(StartEcho<'a>),
    /// The client's identity and parameters.
    Finish(Finish<'a>),
    /// The server does not speak a SYN's version.
    Version {
        /// The version that was not understood.
        refused: u32,
        /// As in the SYN.
        nonce: Nonce,
        /// What the server speaks.
        spoken: Versions<'a>,
    },
    /// Stateless reset: the peer does not know the connection.
    Reset {
        /// Valid only if the peer said this token in its parameters ([`crate::reset`]).
        token: [u8; 16],
    },
    /// The server has no room for this START now. Not authenticated: a hint for the user.
    Busy {
        /// As in the START.
        nonce: Nonce,
    },
    /// Sealed data.
    Short(Header),
}

/// A START.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start<'a> {
    /// Which ciphers the client wants for this connection.
    pub suite: Suite,
    /// As in the SYN.
    pub nonce: Nonce,
    /// From the SYN-ECHO.
    pub cookie: Cookie,
    /// Everything in the clear, the prologue of the handshake.
    pub clear: &'a [u8],
    /// Noise message 1: an ephemeral public key.
    pub noise: &'a [u8],
}

/// A START-ECHO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartEcho<'a> {
    /// As in the START: how a client finds its attempt.
    pub nonce: Nonce,
    /// Noise message 2; sealed in it, the server's [`Hello`](crate::Hello).
    pub noise: &'a [u8],
}

/// A FINISH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finish<'a> {
    /// The server's id of the connection: how it finds the handshake.
    pub connection: ConnectionId,
    /// Noise message 3; sealed in it, the client's [`Hello`](crate::Hello).
    pub noise: &'a [u8],
}

/// The list of a VERSION packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions<'a>(&'a [u8]);

impl Versions<'_> {
    /// The versions, in the server's order of preference.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.chunks_exact(4).filter_map(|c| c.try_into().ok().map(u32::from_be_bytes))
    }
}

impl<'a> Packet<'a> {
    /// Parses a datagram.
    ///
    /// # Errors
    /// If it is nothing of this format, or of another version (a SYN excepted).
    pub fn read(datagram: &'a [u8]) -> Result<Packet<'a>, Malformed> {
        let mut source = Source::new(datagram);
        let first = source.byte()?;
        if first & LONG == 0 {
            let header = Header::read(datagram)?;
            if datagram.len() < header.len() + TAG_BYTES {
                return Err(Malformed::new("a data packet without a seal"));
            }
            return Ok(Packet::Short(header));
        }
        let version = source.u32()?;
        if first == SYN {
            if datagram.len() < SYN_BYTES {
                return Err(Malformed::new("a SYN below 64 bytes"));
            }
            return Ok(Packet::Syn { version, nonce: source.array()? });
        }
        if datagram.len() > MAX_LONG_BYTES {
            return Err(Malformed::new("a handshake packet above 1200 bytes"));
        }
        if first == VERSIONS {
            let nonce = source.array()?;
            let count = usize::from(source.byte()?);
            if count == 0 || count > MAX_VERSIONS {
                return Err(Malformed::new("a VERSION lists 1 to 8 versions"));
            }
            let spoken = Versions(source.take(4 * count)?);
            return ended(source, Packet::Version { refused: version, nonce, spoken });
        }
        if version != VERSION {
            return Err(Malformed::new("another version than the one spoken"));
        }
        match first {
            SYN_ECHO => {
                let nonce = source.array()?;
                let cookie = Cookie(source.array()?);
                ended(source, Packet::SynEcho { nonce, cookie })
            }
            START => {
                let suite = Suite::from_code(source.byte()?)
                    .ok_or(Malformed::new("an unknown suite of ciphers"))?;
                let nonce = source.array()?;
                let cookie = Cookie(source.array()?);
                let noise = source.take(32)?;
                let clear = datagram.get(..START_CLEAR_BYTES).unwrap_or_default();
                ended(source, Packet::Start(Start { suite, nonce, cookie, clear, noise }))
            }
            START_ECHO => {
                let nonce = source.array()?;
                Ok(Packet::StartEcho(StartEcho { nonce, noise: sealed(source, 96)? }))
            }
            FINISH => {
                let connection = ConnectionId(source.u32()?);
                Ok(Packet::Finish(Finish { connection, noise: sealed(source, 64)? }))
            }
            RESET => {
                let token = source.array()?;
                ended(source, Packet::Reset { token })
            }
            BUSY => {
                let nonce = source.array()?;
                ended(source, Packet::Busy { nonce })
            }
            _ => Err(Malformed::new("an unknown type of long packet")),
        }
    }
}

fn ended<'a>(source: Source<'a>, packet: Packet<'a>) -> Result<Packet<'a>, Malformed> {
    if source.is_empty() { Ok(packet) } else { Err(Malformed::new("bytes after its end")) }
}

fn sealed(source: Source<'_>, least: usize) -> Result<&[u8], Malformed> {
    if source.rest().len() < least {
        return Err(Malformed::new("a handshake message is cut off"));
    }
    Ok(source.rest())
}

fn long(kind: u8, version: u32, parts: &[&[u8]]) -> Vec<u8> {
    let mut packet = vec![kind];
    packet.extend_from_slice(&version.to_be_bytes());
    for part in parts {
        packet.extend_from_slice(part);
    }
    packet
}

/// A SYN of 64 bytes.
pub fn syn(version: u32, nonce: &Nonce) -> Vec<u8> {
    syn_of(version, nonce, SYN_BYTES)
}

/// A SYN of so many bytes, 64 at least.
pub fn syn_of(version: u32, nonce: &Nonce, bytes: usize) -> Vec<u8> {
    let mut packet = long(SYN, version, &[nonce]);
    packet.resize(bytes.max(SYN_BYTES), 0);
    packet
}

/// The answer to a SYN of our version.
pub fn syn_echo(nonce: &Nonce, cookie: &Cookie) -> Vec<u8> {
    long(SYN_ECHO, VERSION, &[nonce, &cookie.0])
}

/// The answer to a SYN of another version; of `spoken` the first eight are listed.
pub fn version(refused: u32, nonce: &Nonce, spoken: &[u32]) -> Vec<u8> {
    let listed: Vec<u8> = spoken.iter().take(MAX_VERSIONS).flat_map(|v| v.to_be_bytes()).collect();
    long(VERSIONS, refused, &[nonce, &[(listed.len() / 4) as u8], &listed])
}

/// The clear part of a START.
pub fn start_clear(suite: Suite, nonce: &Nonce, cookie: &Cookie) -> Vec<u8> {
    long(START, VERSION, &[&[suite.code()], nonce, &cookie.0])
}

/// A START-ECHO around Noise message 2.
pub fn start_echo(nonce: &Nonce, noise: &[u8]) -> Vec<u8> {
    long(START_ECHO, VERSION, &[nonce, noise])
}

/// A FINISH around Noise message 3, to the connection that the server named.
pub fn finish(connection: ConnectionId, noise: &[u8]) -> Vec<u8> {
    long(FINISH, VERSION, &[&connection.0.to_be_bytes(), noise])
}

/// A RESET. To be sent only in answer to a short packet: those are longer.
pub fn reset(token: &[u8; 16]) -> Vec<u8> {
    long(RESET, VERSION, &[token])
}

/// A BUSY. To be sent only in answer to a START with a good cookie, which is longer.
pub fn busy(nonce: &Nonce) -> Vec<u8> {
    long(BUSY, VERSION, &[nonce])
}

#[cfg(test)]
#[path = "packet_tests.rs"]
mod tests;
