//! Datagrams, and the layouts of the handshake's packets.
//!
//! A datagram holds one packet. Bit 7 of the first byte distinguishes *long* packets (handshake)
//! from *short* ones (data, [`crate::header`]). Every long packet begins with a type and the
//! version.

use crate::VERSION;
use crate::bytes::{ByteReader, Malformed};
use crate::cookie::{COOKIE_BYTES, Cookie};
use crate::header::{ConnectionId, LONG, ShortHeader};
use crate::keys::Suite;

/// Minimum length of a SYN, so that no response to it is longer.
pub const SYN_BYTES: usize = 64;
/// Length of a SYN-ECHO.
pub const SYN_ECHO_BYTES: usize = 5 + 16 + COOKIE_BYTES;
/// Length of START's clear part, which is the handshake's prologue.
pub const START_CLEAR_BYTES: usize = 5 + 1 + 16 + COOKIE_BYTES;
/// Length of a START: the clear part and an ephemeral key.
pub const START_BYTES: usize = START_CLEAR_BYTES + 32;
/// The most bytes of a long packet other than a SYN. Longer ones are malformed.
pub const MAX_LONG_BYTES: usize = 1200;
/// The most versions that a VERSION lists.
pub const MAX_VERSIONS: usize = 8;
/// Length of a RESET.
pub const RESET_BYTES: usize = 5 + 16;
/// Length of a BUSY.
pub const BUSY_BYTES: usize = 5 + 16;
/// Length of an EARLY-START, which permits a response three times as long.
pub const EARLY_START_BYTES: usize = MAX_LONG_BYTES;
/// Length of the AEAD's tag.
pub const TAG_BYTES: usize = 16;

const SYN: u8 = LONG | 1;
const SYN_ECHO: u8 = LONG | 2;
const START: u8 = LONG | 3;
const START_ECHO: u8 = LONG | 4;
const FINISH: u8 = LONG | 5;
const VERSIONS: u8 = LONG | 6;
const RESET: u8 = LONG | 7;
const BUSY: u8 = LONG | 8;
const EARLY_START: u8 = LONG | 9;
const EARLY_ECHO: u8 = LONG | 10;

/// The client's random number for an attempt to connect.
pub type Nonce = [u8; 16];

/// A parsed datagram. Its content is not authenticated yet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ParsedPacket<'a> {
    /// A client requests a cookie. The only packet that is parsed in any version; a START of another version is
    /// parsed as a SYN.
    Syn {
        /// The version that the client requests; possibly unsupported here.
        version: u32,
        /// Identifies the attempt.
        nonce: Nonce,
    },
    /// The server's response to a SYN. The server keeps no state for it.
    SynEcho {
        /// As in the SYN.
        nonce: Nonce,
        /// To be returned in the START.
        cookie: Cookie,
    },
    /// The client sends an ephemeral key, and usually proves that it receives at its address.
    Start(Start<'a>),
    /// The server's key, identity and parameters.
    StartEcho(StartEcho<'a>),
    /// The client's identity and parameters.
    Finish(Finish<'a>),
    /// Ephemeral key, identity, parameters and early data of a client with a token.
    EarlyStart(Start<'a>),
    /// The server accepted the early data: its ephemeral key, identity and parameters.
    EarlyEcho(StartEcho<'a>),
    /// The server does not support a SYN's version.
    Version {
        /// The refused version.
        refused: u32,
        /// As in the SYN.
        nonce: Nonce,
        /// The versions that the server supports.
        spoken: Versions<'a>,
    },
    /// Stateless reset: the peer has no state for the connection.
    Reset {
        /// Valid only if it equals the token in the peer's parameters ([`crate::reset`]).
        token: [u8; 16],
    },
    /// The server cannot accept this START now. Not authenticated: a hint for the user.
    Busy {
        /// As in the START.
        nonce: Nonce,
    },
    /// Sealed data.
    Short(ShortHeader),
}

/// The fields of a START.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Start<'a> {
    /// The cipher suite that the client wants.
    pub suite: Suite,
    /// As in the SYN.
    pub nonce: Nonce,
    /// From the SYN-ECHO, a token in the form of a cookie, or [`Cookie::NONE`].
    pub cookie: Cookie,
    /// The clear part, which is the handshake's prologue.
    pub clear: &'a [u8],
    /// Noise message 1: an ephemeral public key; of an EARLY-START sealed parameters and frames, too.
    pub noise: &'a [u8],
}

/// The fields of a START-ECHO.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StartEcho<'a> {
    /// As in the START; identifies the client's attempt.
    pub nonce: Nonce,
    /// Noise message 2; it contains the server's [`Hello`](crate::Hello), sealed.
    pub noise: &'a [u8],
}

/// The fields of a FINISH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Finish<'a> {
    /// The server's connection id, which identifies the handshake.
    pub connection: ConnectionId,
    /// Noise message 3; it contains the client's [`Hello`](crate::Hello), sealed.
    pub noise: &'a [u8],
}

/// The versions in a VERSION packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Versions<'a>(&'a [u8]);

impl Versions<'_> {
    /// The versions, in the server's order of preference.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.chunks_exact(4).filter_map(|c| c.try_into().ok().map(u32::from_be_bytes))
    }
}

impl<'a> ParsedPacket<'a> {
    /// Parses a datagram.
    ///
    /// # Errors
    /// It is not of this format, or of another version and not a SYN.
    pub fn read(datagram: &'a [u8]) -> Result<ParsedPacket<'a>, Malformed> {
        let mut source = ByteReader::new(datagram);
        let first = source.byte()?;
        if first & LONG == 0 {
            let header = ShortHeader::read(datagram)?;
            if datagram.len() < header.len() + TAG_BYTES {
                return Err(Malformed::new("a data packet without a seal"));
            }
            return Ok(ParsedPacket::Short(header));
        }
        let version = source.u32()?;
        if first == SYN {
            if datagram.len() < SYN_BYTES {
                return Err(Malformed::new("a SYN below 64 bytes"));
            }
            return Ok(ParsedPacket::Syn { version, nonce: source.array()? });
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
            return ended(source, ParsedPacket::Version { refused: version, nonce, spoken });
        }
        if first == START && version != VERSION && datagram.len() >= START_BYTES {
            source.byte()?;
            return Ok(ParsedPacket::Syn { version, nonce: source.array()? });
        }
        if version != VERSION {
            return Err(Malformed::new("another version than the one spoken"));
        }
        match first {
            SYN_ECHO => {
                let nonce = source.array()?;
                let cookie = Cookie(source.array()?);
                ended(source, ParsedPacket::SynEcho { nonce, cookie })
            }
            START => {
                let start = start(datagram, &mut source, 32)?;
                ended(source, ParsedPacket::Start(start))
            }
            EARLY_START if datagram.len() < EARLY_START_BYTES => {
                Err(Malformed::new("an EARLY-START below 1200 bytes"))
            }
            EARLY_START => {
                let start = start(datagram, &mut source, EARLY_START_BYTES - START_CLEAR_BYTES)?;
                ended(source, ParsedPacket::EarlyStart(start))
            }
            EARLY_ECHO => {
                let nonce = source.array()?;
                Ok(ParsedPacket::EarlyEcho(StartEcho { nonce, noise: sealed(source, 48)? }))
            }
            START_ECHO => {
                let nonce = source.array()?;
                Ok(ParsedPacket::StartEcho(StartEcho { nonce, noise: sealed(source, 96)? }))
            }
            FINISH => {
                let connection = ConnectionId(source.u32()?);
                Ok(ParsedPacket::Finish(Finish { connection, noise: sealed(source, 64)? }))
            }
            RESET => {
                let token = source.array()?;
                ended(source, ParsedPacket::Reset { token })
            }
            BUSY => {
                let nonce = source.array()?;
                ended(source, ParsedPacket::Busy { nonce })
            }
            _ => Err(Malformed::new("an unknown type of long packet")),
        }
    }
}

/// The nonce in the first bytes of a client's SYN, START or EARLY-START, as an ICMP error quotes them.
pub fn quoted_nonce(start: &[u8]) -> Option<Nonce> {
    let mut source = ByteReader::new(start);
    let first = source.byte().ok()?;
    source.u32().ok()?;
    match first {
        SYN => {}
        START | EARLY_START => _ = source.byte().ok()?,
        _ => return None,
    }
    source.array().ok()
}

/// Reads the fields after the version, with a Noise message of `noise` bytes.
fn start<'a>(
    datagram: &'a [u8],
    source: &mut ByteReader<'a>,
    noise: usize,
) -> Result<Start<'a>, Malformed> {
    let suite =
        Suite::from_code(source.byte()?).ok_or(Malformed::new("an unknown suite of ciphers"))?;
    let nonce = source.array()?;
    let cookie = Cookie(source.array()?);
    let noise = source.take(noise)?;
    let clear = datagram.get(..START_CLEAR_BYTES).unwrap_or_default();
    Ok(Start { suite, nonce, cookie, clear, noise })
}

fn ended<'a>(
    source: ByteReader<'a>,
    packet: ParsedPacket<'a>,
) -> Result<ParsedPacket<'a>, Malformed> {
    if source.is_empty() { Ok(packet) } else { Err(Malformed::new("bytes after its end")) }
}

fn sealed(source: ByteReader<'_>, least: usize) -> Result<&[u8], Malformed> {
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

/// A SYN of `bytes` bytes, but at least 64.
pub fn syn_of(version: u32, nonce: &Nonce, bytes: usize) -> Vec<u8> {
    let mut packet = long(SYN, version, &[nonce]);
    packet.resize(bytes.max(SYN_BYTES), 0);
    packet
}

/// The response to a SYN of a supported version.
pub fn syn_echo(nonce: &Nonce, cookie: &Cookie) -> Vec<u8> {
    long(SYN_ECHO, VERSION, &[nonce, &cookie.0])
}

/// The response to a SYN of an unsupported version; lists the first eight of `spoken`.
pub fn version(refused: u32, nonce: &Nonce, spoken: &[u32]) -> Vec<u8> {
    let listed: Vec<u8> = spoken.iter().take(MAX_VERSIONS).flat_map(|v| v.to_be_bytes()).collect();
    long(VERSIONS, refused, &[nonce, &[(listed.len() / 4) as u8], &listed])
}

/// The clear part of a START.
pub fn start_clear(suite: Suite, nonce: &Nonce, cookie: &Cookie) -> Vec<u8> {
    long(START, VERSION, &[&[suite.code()], nonce, &cookie.0])
}

/// A START-ECHO with Noise message 2.
pub fn start_echo(nonce: &Nonce, noise: &[u8]) -> Vec<u8> {
    long(START_ECHO, VERSION, &[nonce, noise])
}

/// The clear part of an EARLY-START.
pub fn early_start_clear(suite: Suite, nonce: &Nonce, token: &Cookie) -> Vec<u8> {
    long(EARLY_START, VERSION, &[&[suite.code()], nonce, &token.0])
}

/// An EARLY-ECHO with Noise message 2.
pub fn early_echo(nonce: &Nonce, noise: &[u8]) -> Vec<u8> {
    long(EARLY_ECHO, VERSION, &[nonce, noise])
}

/// A FINISH with Noise message 3, for the server's `connection`.
pub fn finish(connection: ConnectionId, noise: &[u8]) -> Vec<u8> {
    long(FINISH, VERSION, &[&connection.0.to_be_bytes(), noise])
}

/// A RESET. To be sent only in response to a short packet, which is longer.
pub fn reset(token: &[u8; 16]) -> Vec<u8> {
    long(RESET, VERSION, &[token])
}

/// A BUSY. To be sent only in response to a START, which is longer.
pub fn busy(nonce: &Nonce) -> Vec<u8> {
    long(BUSY, VERSION, &[nonce])
}

#[cfg(test)]
#[path = "packet_tests.rs"]
mod tests;
