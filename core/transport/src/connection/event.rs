//! Output of a connection: datagrams, events, and statistics.

use crate::streams::StreamEvent;
use narrows_base::{Duration, Rate};
use narrows_recovery::packet_sender::Counters;
use std::net::SocketAddr;

/// A datagram to send, or several of equal size for segmentation offload.
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
    /// Number of the endpoint's socket that sends it: that of the path at a client with several paths, otherwise 0.
    pub socket: u8,
}

/// Reason for the end of a connection.
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
    /// No packet arrived within the idle timeout.
    TimedOut,
    /// Small packets arrived but full ones did not, so the path is unusable; this end sent CLOSE.
    SmallPath {
        /// Required size, in bytes of UDP payload.
        size: u16,
    },
    /// The peer violated the protocol; this end sent CLOSE.
    Fault {
        /// CLOSE's code.
        code: u64,
        /// The violation.
        why: &'static str,
    },
    /// The handshake did not complete in time.
    NoAnswer {
        /// Time since the first packet.
        waited: Duration,
        /// Time from the first packet to the first reply, which may be forged; absent if no reply arrived.
        first_answer: Option<Duration>,
    },
    /// Before any reply, the system reported that no socket receives at the server's address (not authenticated).
    NoListener,
    /// The handshake did not complete in time, and the server replied that it was full (not authenticated).
    Busy,
    /// This end closed an idle connection to admit another client, and sent CLOSE.
    GaveWay,
    /// This end's congestion controller or connection code panicked. No packet was sent afterwards.
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
    /// The server supports no protocol version of this end.
    Version,
    /// The peer announced a protocol unknown to this end, which therefore cannot run its receiver side. This end sent
    /// CLOSE.
    UnknownProtocol {
        /// The label as the peer sent it, printable ASCII.
        label: String,
    },
    /// The server supports no application protocol that this client offered, yet accepted the connection. This end sent
    /// CLOSE. (A server that refuses sends CLOSE 10.)
    NoCommonProtocol {
        /// The protocols of both ends.
        reason: String,
    },
}

/// News for the application.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// The handshake completed. Contains the peer's static key.
    Connected([u8; 32]),
    /// An event of one of the streams.
    Stream(StreamEvent),
    /// At least one received message waits to be read.
    Message,
    /// The server's choice arrived at a client that offered several application protocols.
    ApplicationKnown,
    /// The peer's address changed, and the new one is validated.
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
    /// Stream bytes that were written and are not acknowledged yet.
    pub bytes_unacknowledged: u64,
    /// Bytes of the peer's streams that the application has read or discarded, and bytes of
    /// received messages.
    pub bytes_taken: u64,
    /// Smoothed round-trip time; zero before the first sample. Of several paths in use, that of the path with the
    /// smallest one.
    pub srtt: Duration,
    /// Smallest round-trip time of that path; zero before the first sample.
    pub min_rtt: Duration,
    /// Sum of all round-trip times from reports.
    pub rtt_sum: Duration,
    /// Number of round-trip times in `rtt_sum`.
    pub rtt_samples: u64,
    /// The controller's window in packets; [`f64::INFINITY`] without a window. The sum of all paths in use.
    pub window: f64,
    /// The controller's pacing rate in bit/s, including IP and UDP headers; absent without pacing. The sum of all paths
    /// in use.
    pub rate: Option<Rate>,
    /// The rate in bit/s that the controllers permit on all paths in use, including IP and UDP headers: of each path,
    /// the lower of its pacing rate and a window per round trip. Absent if that is not known of any.
    pub permitted: Option<Rate>,
    /// By how much the slowest path in use takes longer than the fastest one to deliver a packet; zero with one path.
    pub delay_difference: Duration,
    /// Packets in flight.
    pub flight: u64,
    /// UDP payload of a full datagram at present, the smallest of all paths in use.
    pub datagram: u16,
    /// Packets dropped because they were duplicates or not authentic.
    pub refused: u64,
    /// Reports ignored because they covered packets with dropped nonces. Zero if the peer follows the protocol's lower
    /// limit for reports.
    pub unproved: u64,
    /// Repair packets sent. They leave only at high loss rates, when no other data wait.
    pub repairs_sent: u64,
    /// Bytes of repair packets sent, including IP and UDP headers.
    pub repair_bytes: u64,
    /// Lost packets of the peer that were rebuilt from its repair packets.
    pub rebuilt: u64,
    /// Losses that the peer's receiver attributed to the radio link.
    pub radio_losses: u64,
}
