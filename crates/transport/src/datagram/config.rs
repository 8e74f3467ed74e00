//! What a datagram endpoint is made of.

use crate::ack_policy::{MAX_ACK_DELAY, MAX_PACKETS_PER_ACK};
use crate::loss_classifier::ClassifierConfig;
use crate::rtt::RtoConfig;
use crate::tcp::{Preset, TcpConfig};
use narrows_base::Duration;
use narrows_congestion::{Halve, PathHints};

/// What the reliable mode adds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct StreamConfig {
    /// Packets that one report answers at most while they come in order.
    pub ack_every: u32,
    /// How long a packet waits for its report at most (RFC 9000 max_ack_delay).
    pub max_ack_delay: Duration,
    /// Who tells radio losses from congestion at the receiver.
    pub classifier: ClassifierConfig,
}

impl Default for StreamConfig {
    fn default() -> StreamConfig {
        StreamConfig {
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
    /// Bytes of a report.
    pub report_bytes: u32,
    /// How far a paced sender that was late may catch up at once. A bounded credit: lateness
    /// costs no rate, and idleness earns no burst (RFC 5348 section 4.6).
    pub credit: Duration,
    /// Whether data packets are ECN-capable.
    pub ecn: bool,
    /// Writes that waited longer than this are dropped; zero keeps them.
    pub expiry: Duration,
    /// A reliable stream; `None` repairs nothing.
    pub stream: Option<StreamConfig>,
    /// Whether a connection is opened by a handshake before data.
    pub handshake: bool,
    /// What is known of the path.
    pub hints: PathHints,
    /// Initial window in packets.
    pub initial_window: f64,
    /// Initial slow-start threshold in packets.
    pub initial_ssthresh: f64,
    /// What a loss halves.
    pub halve: Halve,
    /// The retransmission timeout; of a stream only the first probe timeout.
    pub rto: RtoConfig,
}

impl DatagramConfig {
    /// A preset with 1000-byte packets.
    pub fn preset(preset: Preset) -> DatagramConfig {
        // A window begins as TCP's.
        let tcp = TcpConfig::preset(preset);
        let rfc = DatagramConfig {
            packet_bytes: 1000,
            // IPv4 and UDP, and the 36 bytes that header and seal may cost together on the wire.
            header_bytes: 64,
            report_bytes: 64,
            credit: Duration::from_millis(1),
            ecn: false,
            expiry: Duration::from_secs(1),
            stream: None,
            handshake: false,
            hints: PathHints::default(),
            initial_window: tcp.initial_window,
            initial_ssthresh: tcp.initial_ssthresh,
            halve: tcp.halve,
            rto: tcp.rto,
        };
        match preset {
            Preset::Rfc => rfc,
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
