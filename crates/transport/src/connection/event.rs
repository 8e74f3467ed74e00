//! What a connection tells whoever drives it: datagrams to send, events, its end, figures.

use crate::Counters;
use crate::streams::StreamEvent;
use narrows_base::{Duration, Rate};
use std::net::SocketAddr;

/// A datagram (or several of equal size, for segmentation offload) to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Where to.
    pub to: SocketAddr,
    /// Bytes written into the buffer.
    pub size: usize,
    /// Bytes of each datagram but perhaps the last; equals `size` if there is one.
    pub segment: usize,
    /// The ECN bits (0 to 3).
    pub ecn: u8,
}

/// Why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Closed {
    /// This end closed it.
    Locally,
    /// The peer closed it.
    ByPeer {
        /// CLOSE's code.
        code: u64,
        /// CLOSE's reason, cleaned of everything but printable text.
        reason: String,
    },
    /// The peer lost its state (RESET).
    Reset,
    /// Nothing came for the idle timeout.
    TimedOut,
    /// The peer broke the protocol; it was told so.
    Fault {
        /// CLOSE's code.
        code: u64,
        /// What it did.
        why: &'static str,
    },
    /// Nobody answered the handshake in time.
    NoAnswer,
    /// Nobody opened the handshake in time: the server said that it had no room (not authenticated).
    Busy,
    /// This end gave up an idle connection to make room for another client; the peer was told.
    GaveWay,
    /// This end's congestion controller panicked, or the connection around it. Nothing more was sent.
    Panicked {
        /// The controller that it sent with.
        controller: String,
        /// The panic's message, if it is text.
        message: String,
    },
    /// The server's key is not the expected one.
    WrongKey {
        /// What it is.
        found: [u8; 32],
    },
    /// The server speaks none of our versions.
    Version,
    /// The peer sends with a protocol that this end does not know, so that it cannot run its receiver
    /// side. The peer was told.
    UnknownProtocol {
        /// As the peer wrote it, printable ASCII.
        label: String,
    },
    /// The server speaks none of the application protocols that this client offered, and did not refuse it. It was
    /// told. (A server that refuses says CLOSE 10.)
    NoCommonProtocol {
        /// What both ends speak.
        reason: String,
    },
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is over; this is the peer's static key.
    Connected([u8; 32]),
    /// Streams.
    Stream(StreamEvent),
    /// A message can be received.
    Message,
    /// A client that offered several application protocols knows which one the server chose.
    ApplicationKnown,
    /// The peer's address changed and was validated.
    Moved(SocketAddr),
    /// It is over; nothing follows.
    Closed(Closed),
}

/// What an application can read of a connection.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Packets sent, lost, timeouts and so on.
    pub counters: Counters,
    /// Datagrams sent, those with nothing but a report included.
    pub datagrams_sent: u64,
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// UDP payload bytes received and opened.
    pub bytes_received: u64,
    /// Bytes of the application's streams that the peer has, each without a gap before it.
    pub bytes_arrived: u64,
    /// Bytes of the peer's streams that the application has read or dropped, and of its messages
    /// that came.
    pub bytes_taken: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Smallest round-trip time.
    pub min_rtt: Duration,
    /// Sum of all round-trip times that reports gave, and how many: their mean is the path's.
    pub rtt_sum: Duration,
    /// How many.
    pub rtt_samples: u64,
    /// Window in packets as the controller allows it; infinite as `f64::INFINITY`.
    pub window: f64,
    /// The controller's pacing rate, bit/s of UDP payload plus IP and UDP headers.
    pub rate: Option<Rate>,
    /// Packets in flight.
    pub flight: u64,
    /// UDP payload of a full datagram now.
    pub datagram: u16,
    /// Packets that were not authentic or came twice.
    pub refused: u64,
    /// Reports that were ignored since they spoke of packets whose nonces were forgotten: none of a peer that says
    /// nothing of packets below those of unknown outcome.
    pub unproved: u64,
    /// Losses that the peer's receiver judged to be the radio link's.
    pub radio_losses: u64,
}
