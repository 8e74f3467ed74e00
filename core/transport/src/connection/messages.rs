//! Unreliable messages: the queue of messages to send, and the queue of received ones.

use narrows_base::{Duration, Time};
use narrows_wire::packet::TAG_BYTES;
use std::collections::VecDeque;

/// Most bytes in a packet beside its message: header, prelude, tag, and a report or feedback.
pub(super) const MESSAGE_OVERHEAD: usize = 9 + 8 + TAG_BYTES + 18 + 3;

/// Limits on waiting messages: their number, and their sum in bytes.
const MAX_MESSAGES: usize = 1024;
const MAX_BYTES: usize = 1 << 20;

/// Reason for refusing a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageError {
    /// It is longer than the peer accepts, or longer than fits into the largest datagram of both ends.
    TooLong {
        /// The longest possible message in bytes; 0 if the peer accepts no messages.
        most: usize,
    },
    /// It is longer than the path's present datagram size permits. A search for a larger size has started and takes one
    /// or a few round trips.
    TooLongForPath {
        /// The longest message in bytes that can be sent now.
        most: usize,
    },
    /// Too many messages, or too many bytes, wait to be sent.
    QueueFull,
    /// The connection is closed.
    Closed,
}

impl std::fmt::Display for MessageError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MessageError::TooLong { most: 0 } => f.write_str("the peer takes no messages"),
            MessageError::TooLong { most } => {
                write!(f, "the message is too long for this peer: {most} bytes at most")
            }
            MessageError::TooLongForPath { most } => {
                write!(f, "the message is too long for the path at present: {most} bytes at most")
            }
            MessageError::QueueFull => f.write_str("the queue of messages to send is full"),
            MessageError::Closed => f.write_str("the connection is closed"),
        }
    }
}

impl std::error::Error for MessageError {}

/// Limits on the length of messages, in bytes.
#[derive(Debug)]
pub(super) struct MessageLimits {
    /// Of received messages.
    pub ours: u16,
    /// Of sent messages; 0 if the peer accepts none.
    pub peers: u64,
}

impl MessageLimits {
    /// Length of the longest message for a datagram of this size.
    pub fn bound(&self, datagram: u16) -> usize {
        let peers = usize::try_from(self.peers).unwrap_or(usize::MAX);
        usize::from(datagram).saturating_sub(MESSAGE_OVERHEAD).min(peers)
    }
}

/// Messages to send.
#[derive(Debug, Default)]
pub(super) struct MessageOutbox {
    /// Waiting messages with their expiry times.
    pub waiting: VecDeque<(Time, Vec<u8>)>,
    bytes: usize,
    /// No message expires before this time.
    soonest: Option<Time>,
    pub newest_first: bool,
    pub expired: u64,
}

impl MessageOutbox {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
    /// Bytes of waiting messages.
    pub fn memory(&self) -> usize {
        self.bytes
    }
    /// Releases unused capacity.
    pub fn release_memory(&mut self) {
        self.waiting.shrink_to_fit();
    }
    /// Queues a message; false if the queue is full.
    pub fn push(&mut self, now: Time, message: &[u8], expiry: Duration) -> bool {
        self.expire(now);
        if self.waiting.len() >= MAX_MESSAGES || self.bytes + message.len() > MAX_BYTES {
            return false;
        }
        let expires = if expiry == Duration::ZERO { Time::NEVER } else { now + expiry };
        self.bytes += message.len();
        self.soonest = Some(self.soonest.map_or(expires, |s| s.min(expires)));
        self.waiting.push_back((expires, message.to_vec()));
        true
    }
    /// Drops expired messages.
    #[inline]
    pub fn expire(&mut self, now: Time) {
        if self.soonest.is_some_and(|s| s <= now) {
            self.expire_some(now);
        }
    }
    fn expire_some(&mut self, now: Time) {
        let mut bytes = 0;
        let mut expired = 0;
        let mut soonest = None;
        self.waiting.retain(|(expires, message)| {
            let keep = *expires > now;
            if keep {
                soonest = Some(soonest.map_or(*expires, |s: Time| s.min(*expires)));
            } else {
                bytes += message.len();
                expired += 1;
            }
            keep
        });
        self.bytes -= bytes;
        self.expired += expired;
        self.soonest = soonest;
    }
    /// The next message to send.
    pub fn peek(&self) -> Option<&[u8]> {
        let next = if self.newest_first { self.waiting.back() } else { self.waiting.front() };
        next.map(|(_, message)| message.as_slice())
    }
    /// Removes the message that `peek` returns.
    pub fn pop(&mut self) {
        let gone =
            if self.newest_first { self.waiting.pop_back() } else { self.waiting.pop_front() };
        self.bytes -= gone.map_or(0, |(_, message)| message.len());
    }
}

/// A received message with its packet's arrival time and ECN field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceivedMessage {
    /// Arrival time of its packet.
    pub at: Time,
    /// ECN field (0 to 3) of its packet.
    pub ecn: u8,
    /// The message itself.
    pub bytes: Vec<u8>,
}

/// Received messages.
#[derive(Debug)]
pub(super) struct Inbox {
    came: VecDeque<ReceivedMessage>,
    held: usize,
    /// Whether an event is pending.
    pub news: bool,
    /// Bytes of all messages received.
    pub bytes: u64,
}

impl Inbox {
    /// Holds at most `held` messages, and at least one; beyond that the oldest is dropped.
    pub fn new(held: usize) -> Inbox {
        Inbox { came: VecDeque::new(), held: held.max(1), news: false, bytes: 0 }
    }
    pub fn push(&mut self, at: Time, ecn: u8, message: &[u8]) {
        if self.came.len() >= self.held {
            self.came.pop_front();
        }
        self.came.push_back(ReceivedMessage { at, ecn, bytes: message.to_vec() });
        self.bytes += message.len() as u64;
        self.news = true;
    }
    /// Releases unused capacity.
    pub fn release_memory(&mut self) {
        self.came.shrink_to_fit();
    }
    pub fn pop(&mut self) -> Option<ReceivedMessage> {
        self.came.pop_front()
    }
    pub fn len(&self) -> usize {
        self.came.len()
    }
    /// Bytes of waiting messages.
    pub fn memory(&self) -> usize {
        self.came.iter().map(|message| message.bytes.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_messages_expire_and_the_newest_can_go_first() {
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        let mut out = MessageOutbox::default();
        assert!(out.push(at(0), b"a", Duration::from_millis(10)));
        assert!(out.push(at(1), b"b", Duration::ZERO));
        assert!(out.push(at(2), b"c", Duration::from_millis(100)));
        out.expire(at(10));
        assert_eq!((out.peek(), out.expired), (Some(&b"b"[..]), 1));
        out.newest_first = true;
        assert_eq!(out.peek(), Some(&b"c"[..]));
        out.pop();
        out.pop();
        assert!(out.is_empty() && out.bytes == 0);
        let full =
            (0..2 * MAX_MESSAGES).filter(|_| out.push(at(0), &[0; 10], Duration::ZERO)).count();
        assert_eq!(full, MAX_MESSAGES);
    }

    #[test]
    fn the_oldest_unread_message_goes() {
        let mut inbox = Inbox::new(2);
        for m in [b"a", b"b", b"c"] {
            inbox.push(Time::from_nanos(u64::from(m[0])), m[0] % 4, m);
        }
        let came = |m: &[u8]| {
            let at = Time::from_nanos(u64::from(m[0]));
            let ecn = m[0] % 4;
            Some(ReceivedMessage { at, ecn, bytes: m.to_vec() })
        };
        assert_eq!((inbox.pop(), inbox.pop(), inbox.pop()), (came(b"b"), came(b"c"), None));
    }
}
