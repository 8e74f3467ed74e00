//! The configuration of a datagram endpoint pair.

use super::tcp_config::{Preset, TcpConfig};
use narrows_base::Duration;
use narrows_congestion::{Dialect, PathHints};
use narrows_recovery::loss_classifier::ClassifierConfig;
use narrows_recovery::packet_receiver::{MAX_ACK_DELAY, MAX_PACKETS_PER_ACK};
use narrows_recovery::rtt::RtoConfig;

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
    /// Initial window in packets.
    pub initial_window: f64,
    /// Initial slow-start threshold in packets.
    pub initial_ssthresh: f64,
    /// The implementation that its controller follows.
    pub dialect: Dialect,
    /// The PTO before the first RTT sample.
    pub rto: RtoConfig,
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

impl DatagramConfig {
    /// A preset with 1000-byte packets.
    pub fn preset(preset: Preset) -> DatagramConfig {
        // Windows begin as TCP's.
        let tcp = TcpConfig::preset(if preset == Preset::Ns2 { preset } else { Preset::Rfc });
        let rfc = DatagramConfig {
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
            initial_window: tcp.initial_window,
            initial_ssthresh: tcp.initial_ssthresh,
            dialect: tcp.dialect,
            rto: tcp.rto,
        };
        match preset {
            Preset::Rfc | Preset::Linux => rfc,
            Preset::Ns2 => {
                DatagramConfig { header_bytes: 0, report_bytes: 40, credit: Duration::ZERO, ..rfc }
            }
        }
    }
    /// Application bytes of a full data packet.
    pub fn payload(&self) -> u32 {
        self.packet_bytes.saturating_sub(self.header_bytes).max(1)
    }
}
