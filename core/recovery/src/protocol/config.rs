//! The configuration of a protocol: packets, reports, handshake, hints.

use crate::loss_classifier::ClassifierConfig;
use crate::packet_receiver::{MAX_ACK_DELAY, MAX_PACKETS_PER_ACK};
use crate::rtt::RtoConfig;
use narrows_base::{Duration, RandomKey};
use narrows_congestion::{Dialect, Environment, PathHints};

/// Limit on segments in flight, whatever the receive window: the largest window that TCP can express (RFC 7323: 2^30
/// bytes) in segments of 1024 bytes. It bounds a sender's memory if neither the controller nor the link does.
pub const MAX_WINDOW: u64 = 1 << 20;

/// The receiver's ACK policy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FeedbackConfig {
    /// Limit on the packets that one report acknowledges while packets arrive in order; 0 if only the controller's
    /// receiver side requests reports, as in papers about media.
    pub ack_every: u32,
    /// The longest time that a packet waits for its report (RFC 9000 max_ack_delay).
    pub max_ack_delay: Duration,
    /// The receiver's loss classifier.
    pub classifier: ClassifierConfig,
}

impl Default for FeedbackConfig {
    fn default() -> FeedbackConfig {
        FeedbackConfig {
            ack_every: MAX_PACKETS_PER_ACK,
            max_ack_delay: MAX_ACK_DELAY,
            classifier: ClassifierConfig::default(),
        }
    }
}

/// Parameters of a datagram endpoint pair.
#[derive(Clone, PartialEq, Debug)]
pub struct DatagramConfig {
    /// Bytes of a full data packet on the wire.
    pub packet_bytes: u32,
    /// Header bytes inside a data packet that are not application data.
    pub header_bytes: u32,
    /// Bytes of a report on the wire.
    pub report_bytes: u32,
    /// How much lateness a paced sender may make up for at once. The credit is bounded: lateness costs no rate, and
    /// idle time permits no burst (RFC 5348 section 4.6).
    pub credit: Duration,
    /// Whether a window without a rate is paced (RFC 9002 section 7.7), as over sockets; otherwise
    /// acknowledgements alone clock packets out, as in papers about media.
    pub window_pacing: bool,
    /// Whether data packets are ECN-capable.
    pub ecn: bool,
    /// Whether to send repair packets on paths with much loss, and to rebuild lost packets from the peer's, if the peer
    /// supports this. Over sockets only.
    pub repair: bool,
    /// A reliable stream if true; otherwise media, which are not retransmitted.
    pub reliable: bool,
    /// Whether the sender or the receiver decides on a stream's retransmissions.
    pub recovery: StreamRecovery,
    /// Media packets that have waited longer are dropped; zero for never.
    pub expiry: Duration,
    /// The receiver's ACK policy, in addition to requests of the controller's receiver side.
    pub feedback: FeedbackConfig,
    /// The handshake before the data.
    pub handshake: OpeningExchange,
    /// Hints about the path.
    pub hints: PathHints,
    /// Initial window in packets (RFC 9002 section 7.2).
    pub initial_window: f64,
    /// Initial slow-start threshold in packets.
    pub initial_ssthresh: f64,
    /// The implementation that its controller follows.
    pub dialect: Dialect,
    /// The PTO before the first RTT sample.
    pub rto: RtoConfig,
    /// Name of the scheduler of a stream over several paths. In simulation only.
    pub scheduler: &'static str,
    /// Name of the coupling of its paths. Those of windows are in simulation only.
    pub coupling: &'static str,
}

/// The side that decides on a stream's retransmissions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StreamRecovery {
    /// The sender, by reports and its timer (RFC 9002).
    #[default]
    Rfc9002,
    /// The receiver, by NACKs with a timer each (section 3.5 of the RRTP thesis). In simulation only.
    Nack,
}

/// The exchange before a stream's first byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OpeningExchange {
    /// No handshake, as in the papers.
    None,
    /// The whole handshake: one round trip, with probes of the rate if it is unknown.
    Full,
    /// The handshake of a client that has an address token of the server: no probes.
    Token,
}

impl Default for DatagramConfig {
    /// Media with 1000-byte packets, as over sockets.
    fn default() -> DatagramConfig {
        DatagramConfig {
            packet_bytes: 1000,
            // IPv4 and UDP, and up to 36 bytes of packet header and encryption.
            header_bytes: 64,
            report_bytes: 64,
            credit: Duration::from_millis(1),
            window_pacing: true,
            ecn: false,
            repair: true,
            reliable: false,
            recovery: StreamRecovery::default(),
            expiry: Duration::from_secs(1),
            feedback: FeedbackConfig::default(),
            handshake: OpeningExchange::None,
            hints: PathHints::default(),
            initial_window: 10.0,
            initial_ssthresh: f64::INFINITY,
            dialect: Dialect::Rfc,
            rto: RtoConfig::RFC,
            scheduler: narrows_multipath::SCHEDULER_NAMES[0],
            coupling: narrows_multipath::COUPLING_NAMES[0],
        }
    }
}

impl DatagramConfig {
    /// The input of a controller's constructor; `random_key` is the flow's key.
    pub fn environment(
        &self,
        packet_bytes: u32,
        random_key: RandomKey,
        hints: PathHints,
    ) -> Environment {
        Environment {
            initial_window: self.initial_window,
            initial_ssthresh: self.initial_ssthresh,
            packet_bytes,
            dialect: self.dialect,
            random_key: random_key.named("controller"),
            expects_dispersion: self.handshake == OpeningExchange::Full && hints.rate.is_none(),
            hints,
        }
    }
    /// Application bytes of a full data packet.
    pub fn payload(&self) -> u32 {
        self.packet_bytes.saturating_sub(self.header_bytes).max(1)
    }
}
