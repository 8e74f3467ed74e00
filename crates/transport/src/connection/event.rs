//! What a connection passes to its driver: datagrams to send, events, and statistics.

use crate::Counters;
use crate::streams::StreamEvent;
use narrows_base::{Duration, Rate};
use std::net::SocketAddr;

/// A datagram (or several of equal size, for segmentation offload) to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Destination.
    pub to: SocketAddr,
    /// Bytes written into the buffer.
    pub size: usize,
    /// Bytes of each datagram except possibly the last; equals `size` if there is only one.
    pub segment: usize,
    /// The ECN field (0 to 3).
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
        /// CLOSE's reason, escaped for display.
        reason: String,
    },
    /// The peer lost its state (RESET).
    Reset,
    /// Nothing arrived within the idle timeout.
    TimedOut,
    /// No full packet arrived, though smaller ones did: the path carries less than this protocol needs. The peer got a
    /// CLOSE.
    SmallPath {
        /// UDP payload that the path should carry, bytes.
        size: u16,
    },
    /// The peer violated the protocol; it got a CLOSE.
    Fault {
        /// CLOSE's code.
        code: u64,
        /// The violation.
        why: &'static str,
    },
    /// No answer to the handshake in time.
    NoAnswer,
    /// The system reported, before any answer, that no socket receives at the server's address (not authenticated).
    NoListener,
    /// The handshake was not completed in time, and the server said that it had no room (not
    /// authenticated).
    Busy,
    /// This end closed an idle connection to make room for another client; the peer got a CLOSE.
    GaveWay,
    /// This end's congestion controller panicked, or the connection around it. Nothing was sent
    /// afterwards.
    Panicked {
        /// Name and parameters of the controller.
        controller: String,
        /// The panic's message, if it is text.
        message: String,
    },
    /// The server's key is not the expected one.
    WrongKey {
        /// The server's key.
        found: [u8; 32],
    },
    /// The server supports none of our versions.
    Version,
    /// The peer announced a protocol that this end does not know, so that it cannot run its receiver side. The peer got
    /// a CLOSE.
    UnknownProtocol {
        /// The label as the peer sent it, printable ASCII.
        label: String,
    },
    /// The server supports none of the application protocols that this client offered, and did not refuse it. It got a
    /// CLOSE. (A server that refuses sends CLOSE 10.)
    NoCommonProtocol {
        /// The protocols of both ends.
        reason: String,
    },
}

/// An event of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake has completed; the peer's static key.
    Connected([u8; 32]),
    /// Streams.
    Stream(StreamEvent),
    /// A message can be received.
    Message,
    /// A client that offered several application protocols has learnt the server's choice.
    ApplicationKnown,
    /// The peer's address changed, and the new one was validated.
    Moved(SocketAddr),
    /// The connection is over; no event follows.
    Closed(Closed),
}

/// Statistics of a connection.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Counters of packets sent, packets lost, timeouts, and so on.
    pub counters: Counters,
    /// Datagrams sent, including those with only a report.
    pub datagrams_sent: u64,
    /// UDP payload bytes sent.
    pub bytes_sent: u64,
    /// UDP payload bytes received in authentic packets.
    pub bytes_received: u64,
    /// Stream bytes that the peer has received in order.
    pub bytes_arrived: u64,
    /// Bytes of the peer's streams that the application has read or discarded, and bytes of
    /// received messages.
    pub bytes_taken: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Smallest round-trip time.
    pub min_rtt: Duration,
    /// Sum of all round-trip times from reports.
    pub rtt_sum: Duration,
    /// Number of round-trip times in `rtt_sum`.
    pub rtt_samples: u64,
    /// The controller's window in packets; [`f64::INFINITY`] for none.
    pub window: f64,
    /// The controller's pacing rate in bit/s, including IP and UDP headers.
    pub rate: Option<Rate>,
    /// Packets in flight.
    pub flight: u64,
    /// UDP payload of a full datagram at present.
    pub datagram: u16,
    /// Packets that were not authentic or were duplicates.
    pub refused: u64,
    /// Reports that were ignored because they covered packets whose nonces had been dropped. Zero if the peer reports
    /// only packets that still concern this end.
    pub unproved: u64,
    /// Repair packets sent, where the path loses much and nothing else waits to be sent.
    pub repairs_sent: u64,
    /// Their bytes, including IP and UDP headers.
    pub repair_bytes: u64,
    /// Lost packets of the peer's that its repair packets rebuilt.
    pub rebuilt: u64,
    /// Losses that the peer's receiver attributed to the radio link.
    pub radio_losses: u64,
}
