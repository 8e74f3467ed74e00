//! Sealing and opening data packets: AEAD by ring, in place.
//!
//! The nonce is the path (32 bits) and the packet number (64 bits), highest byte first; the header is the
//! associated data. A [`Sealer`] takes ascending numbers only, so no nonce is used twice under a
//! key; an [`Opener`] opens each number once. Each direction of each path has its own key phase: a sealer moves
//! to its next key by itself, and an opener follows when a packet under that key is authentic.

use crate::bytes::Malformed;
use crate::header::{ConnectionId, MAX_PACKET_NUMBER, ShortHeader};
use crate::keys::Secret;
#[cfg(test)]
use crate::keys::Suite;
use crate::packet::TAG_BYTES;
use narrows_base::replay::{ReplayWindow, WINDOW};
use ring::aead::{Aad, LessSafeKey, Nonce};
use std::fmt;

/// A key update is due after this many packets, once the peer has acknowledged one of them.
pub const UPDATE_AFTER: u64 = 1 << 22;
/// The most packets under one key: AES-GCM's confidentiality limit of RFC 9001 section 6.6, which
/// is safe for packets of up to 2^11 bytes. ChaCha20-Poly1305 would allow more.
pub const MAX_KEY_PACKETS: u64 = 1 << 23;
/// The most unauthentic packets of a connection: the integrity limit of ChaCha20-Poly1305 in RFC
/// 9001 section 6.6; AES-GCM's is higher.
pub const MAX_FORGED: u64 = 1 << 36;

/// Why a packet was not sealed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SealError {
    /// The number is not above all earlier ones, or is too large: it would repeat a nonce.
    Number,
    /// The key reached its limit before the peer acknowledged any of its packets: the connection is over.
    KeyUsedUp,
    /// The buffer is too short for header and tag.
    TooShort,
}

impl fmt::Display for SealError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SealError::Number => "a packet number was used twice or is too large",
            SealError::KeyUsedUp => "the key is used up and the peer does not acknowledge the next",
            SealError::TooShort => "no room for header and seal",
        })
    }
}

impl std::error::Error for SealError {}

/// Why a packet was not opened. Each means that it must be ignored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// It is not a data packet.
    Malformed(Malformed),
    /// Its number was opened before, or is too far below the highest.
    Replayed,
    /// It was not sealed by the peer with this connection's keys.
    Forged,
    /// The cipher's integrity limit is reached: close the connection.
    TooManyForged,
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OpenError::Malformed(m) => m.fmt(f),
            OpenError::Replayed => f.write_str("the packet came before, or much too late"),
            OpenError::Forged => f.write_str("the packet is not the peer's"),
            OpenError::TooManyForged => f.write_str("too many forged packets"),
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            OpenError::Malformed(m) => Some(m),
            _ => None,
        }
    }
}

#[inline]
fn nonce(path: u8, number: u64) -> Nonce {
    let [a, b, c, d, e, f, g, h] = number.to_be_bytes();
    Nonce::assume_unique_for_key([0, 0, 0, path, a, b, c, d, e, f, g, h])
}

/// A sealed packet's nonce in the sense of RFC 3540, by which a receiver proves that the packet arrived. It is the last
/// byte of the tag, which is unpredictable without the packet.
#[inline]
pub fn receipt_nonce(datagram: &[u8]) -> u8 {
    datagram.last().copied().unwrap_or_default()
}

/// The sending end of one direction of a path.
pub struct Sealer {
    connection: ConnectionId,
    path: u8,
    /// The random bits of the next header.
    random: u8,
    key: LessSafeKey,
    /// The secret of the next phase.
    next: Secret,
    phase: bool,
    /// The lowest number that may be sealed next.
    from: u64,
    /// The first number of this phase.
    first: u64,
    sealed: u64,
    confirmed: bool,
}

impl Sealer {
    /// For packets to the peer's `connection`. `None` if the library refuses the secret, which does
    /// not happen.
    pub(crate) fn new(connection: ConnectionId, secret: &Secret, path: u8) -> Option<Sealer> {
        Some(Sealer {
            connection,
            path,
            random: 0,
            key: secret.key()?,
            next: secret.next()?,
            phase: false,
            from: 0,
            first: 0,
            sealed: 0,
            confirmed: false,
        })
    }

    /// The peer's connection id.
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// Sets the five random bits in the headers of the next packets. They must be drawn for every packet, from a source
    /// unknown to the peer, if the packet's tag is to prove its arrival.
    #[inline]
    pub fn set_random(&mut self, bits: u8) {
        self.random = bits;
    }

    /// Seals a datagram in place. On entry it has space for the header ([`header_len`](Sealer::header_len) bytes), the
    /// payload, and 16 bytes of tag; on return all are filled in. `acked` is the highest number that the peer has
    /// acknowledged.
    ///
    /// # Errors
    /// The number does not ascend, the key is used up, or the buffer is too short; then the datagram is not sealed.
    #[inline]
    pub fn seal(
        &mut self,
        number: u64,
        acked: Option<u64>,
        datagram: &mut [u8],
    ) -> Result<(), SealError> {
        self.seal_with(number, acked, datagram, &[])
    }

    /// As [`seal`](Sealer::seal), but the payload's last bytes are in a separate buffer; `datagram` has space for them
    /// before the tag.
    ///
    /// # Errors
    /// As `seal`.
    #[inline]
    pub fn seal_with(
        &mut self,
        number: u64,
        acked: Option<u64>,
        datagram: &mut [u8],
        tail: &[u8],
    ) -> Result<(), SealError> {
        if number < self.from || number > MAX_PACKET_NUMBER {
            return Err(SealError::Number);
        }
        if self.sealed >= UPDATE_AFTER {
            self.update();
            if self.sealed >= MAX_KEY_PACKETS {
                return Err(SealError::KeyUsedUp);
            }
        }
        let header = ShortHeader::new(self.connection, self.phase, number, acked);
        let header = ShortHeader { random: self.random, ..header };
        let bytes = header.bytes();
        let bytes = bytes.get(..header.len()).unwrap_or_default();
        let (front, rest) =
            datagram.split_at_mut_checked(bytes.len()).ok_or(SealError::TooShort)?;
        let written = rest.len().checked_sub(tail.len() + TAG_BYTES).ok_or(SealError::TooShort)?;
        front.copy_from_slice(bytes);
        self.encrypt(number, front, rest, written, tail).ok_or(SealError::TooShort)?;
        if self.sealed == 0 {
            self.first = number;
        }
        self.from = number + 1;
        self.sealed += 1;
        Ok(())
    }

    /// Seals the first `written` bytes of `rest` in place, and `tail` behind them.
    #[inline]
    fn encrypt(
        &self,
        number: u64,
        header: &[u8],
        rest: &mut [u8],
        written: usize,
        tail: &[u8],
    ) -> Option<()> {
        let nonce = nonce(self.path, number);
        let header = Aad::from(header);
        let (payload, tag) = rest.split_last_chunk_mut::<TAG_BYTES>()?;
        payload.get_mut(written..)?.copy_from_slice(tail);
        let sealed = self.key.seal_in_place_separate_tag(nonce, header, payload).ok()?;
        tag.copy_from_slice(sealed.as_ref());
        Some(())
    }

    /// Length of the header that [`seal`](Sealer::seal) writes: 8 or 9 bytes.
    pub fn header_len(number: u64, acked: Option<u64>) -> usize {
        ShortHeader::new(ConnectionId(0), false, number, acked).len()
    }

    /// The peer acknowledged this number. If it was sealed with the present key, the next key
    /// update is permitted.
    #[inline]
    pub fn acknowledged(&mut self, number: u64) {
        self.confirmed |= self.sealed > 0 && number >= self.first && number < self.from;
    }

    /// Moves to the next key, if the peer has acknowledged a packet under this one and [`WINDOW`] numbers have
    /// passed since the last update; returns whether it did. Otherwise the phase bit would be ambiguous: a late packet
    /// of the phase before the last has the same bit as a new one.
    pub fn update(&mut self) -> bool {
        if !self.confirmed || self.from - self.first < WINDOW {
            return false;
        }
        let (Some(key), Some(next)) = (self.next.key(), self.next.next()) else { return false };
        self.key = key;
        self.next = next;
        self.phase = !self.phase;
        self.sealed = 0;
        self.confirmed = false;
        true
    }
}

/// The receiving end of one direction of a path.
pub struct Opener {
    path: u8,
    /// Boxed because most connections never update their keys, and a key of ring's is half a
    /// kilobyte.
    previous: Option<Box<LessSafeKey>>,
    current: LessSafeKey,
    /// Computed in advance, so that refusing a packet with the other phase bit takes as long as
    /// accepting it.
    next: LessSafeKey,
    /// The secret of the phase after the next.
    after: Secret,
    phase: bool,
    /// The lowest number opened in this phase.
    first: u64,
    replay: ReplayWindow,
    forged: u64,
}

/// Number and content of a packet with a valid seal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OpenedPacket<'p> {
    /// Packet number, recovered in full.
    pub number: u64,
    /// Prelude and frames, for [`Frames::read`](crate::Frames::read).
    pub payload: &'p [u8],
}

enum KeyPhase {
    Previous,
    Current,
    Next,
}

impl Opener {
    /// `None` if the library refuses the secret, which does not happen.
    pub(crate) fn new(secret: &Secret, path: u8) -> Option<Opener> {
        let next = secret.next()?;
        Some(Opener {
            path,
            previous: None,
            current: secret.key()?,
            next: next.key()?,
            after: next.next()?,
            phase: false,
            first: 0,
            replay: ReplayWindow::default(),
            forged: 0,
        })
    }

    /// Opens a datagram in place. If it is refused, its bytes are unusable, but the opener is unchanged.
    ///
    /// # Errors
    /// It is malformed, a duplicate, or not authentic.
    #[inline]
    pub fn open<'p>(&mut self, datagram: &'p mut [u8]) -> Result<OpenedPacket<'p>, OpenError> {
        let header = ShortHeader::read(datagram).map_err(OpenError::Malformed)?;
        let number = header.complete(self.replay.highest());
        if !self.replay.is_new(number) {
            return Err(OpenError::Replayed);
        }
        if self.forged >= MAX_FORGED {
            return Err(OpenError::TooManyForged);
        }
        let phase = if header.phase == self.phase {
            KeyPhase::Current
        } else if number < self.first {
            KeyPhase::Previous
        } else {
            KeyPhase::Next
        };
        let key = match phase {
            KeyPhase::Current => &self.current,
            KeyPhase::Next => &self.next,
            KeyPhase::Previous => self.previous.as_deref().ok_or(OpenError::Replayed)?,
        };
        let (front, rest) = datagram
            .split_at_mut_checked(header.len())
            .filter(|(_, rest)| rest.len() >= TAG_BYTES)
            .ok_or(OpenError::Malformed(Malformed::new("a data packet without a seal")))?;
        let opened = key.open_in_place(nonce(self.path, number), Aad::from(&*front), rest);
        let Ok(payload) = opened else {
            self.forged += 1;
            return Err(OpenError::Forged);
        };
        match phase {
            KeyPhase::Current => self.first = self.first.min(number),
            KeyPhase::Next => self.turn(number),
            KeyPhase::Previous => {}
        }
        self.replay.mark(number);
        // So late packets of the previous phase are not opened any more (docs/rrtp.md, Key update).
        if self.previous.is_some() && number >= self.first.saturating_add(WINDOW) {
            self.previous = None;
        }
        Ok(OpenedPacket { number, payload })
    }

    /// Whether a packet with this number was not opened yet and is not too old.
    pub fn is_new(&self, number: u64) -> bool {
        self.replay.is_new(number)
    }
    /// The highest number opened.
    #[inline]
    pub fn highest(&self) -> Option<u64> {
        self.replay.highest()
    }
    /// Number of packets that were not authentic.
    pub fn forged(&self) -> u64 {
        self.forged
    }

    /// A packet under the peer's next key was authentic.
    fn turn(&mut self, number: u64) {
        let (Some(key), Some(after)) = (self.after.key(), self.after.next()) else { return };
        let current = std::mem::replace(&mut self.next, key);
        self.previous = Some(Box::new(std::mem::replace(&mut self.current, current)));
        self.after = after;
        self.phase = !self.phase;
        self.first = number;
    }
}

/// The two ends of a direction.
#[cfg(test)]
pub(crate) fn pair(suite: Suite, seed: u8) -> (Sealer, Opener) {
    let secret = Secret::first(suite, &[seed; 32], &[seed.wrapping_add(1); 32]);
    (
        Sealer::new(ConnectionId(0x0102_0304), &secret, 0).expect("HKDF of 32 bytes"),
        Opener::new(&secret, 0).expect("HKDF of 32 bytes"),
    )
}

impl fmt::Debug for Sealer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sealer({:?}, next {}, phase {})", self.connection, self.from, self.phase)
    }
}

impl fmt::Debug for Opener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opener(highest {:?}, phase {})", self.replay.highest(), self.phase)
    }
}

#[cfg(test)]
#[path = "seal_tests.rs"]
mod tests;
