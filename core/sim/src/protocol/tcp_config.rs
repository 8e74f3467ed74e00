//! The configuration of a TCP endpoint, and its presets.

use super::preset::{NS2_INITIAL_SSTHRESH, NS2_INITIAL_WINDOW, Preset};
use narrows_base::{Duration, Packet, RandomKey};
use narrows_congestion::{Dialect, Environment, PathHints};
use narrows_recovery::rtt::RtoConfig;

/// Limit on bytes in flight in preset `linux`: the data that the largest send buffer (`tcp_wmem`, 4 MiB) holds in
/// addition to its own bookkeeping.
pub const LINUX_SEND_BUFFER: u64 = 2_750_000;
/// Data bytes that fit into the receive window in preset `linux` (`tcp_rmem`, 6 MiB, half of it for data).
pub const LINUX_RECEIVE_WINDOW: u64 = 3 << 20;

/// How losses are detected and retransmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecoveryKind {
    /// The third duplicate restarts slow start.
    Tahoe,
    /// Fast retransmit and fast recovery, ended by any advance (RFC 5681).
    Reno,
    /// Fast recovery that retransmits a hole per partial acknowledgement (RFC 6582).
    NewReno,
    /// Selective acknowledgements (RFC 2018, RFC 6675).
    Sack,
    /// Selective acknowledgements as ns-2's Sack1 uses them. Only the third duplicate begins a recovery, and after a
    /// timeout only once all segments sent before it are acknowledged. Every ACK subtracts one from the outstanding
    /// segments and a partial one two, whatever its blocks report. Any hole below a block is retransmitted. A timeout
    /// clears the blocks.
    Sack1,
    /// Reno with per-segment send times checked at duplicates (Vegas).
    Vegas,
    /// RACK-TLP (RFC 8985), PRR (RFC 9937) and F-RTO (RFC 5682), as in Linux.
    Rack,
}

impl RecoveryKind {
    /// Whether it uses duplicates only.
    pub fn is_without_sack(self) -> bool {
        use RecoveryKind::{NewReno, Reno, Tahoe, Vegas};
        matches!(self, Tahoe | Reno | NewReno | Vegas)
    }
}

/// Parameters of a TCP sender and receiver.
#[derive(Clone, PartialEq, Debug)]
pub struct TcpConfig {
    /// Loss recovery.
    pub recovery: RecoveryKind,
    /// Bytes of a full data packet on the wire.
    pub packet_bytes: u32,
    /// Header bytes inside a data packet that are not application data.
    pub header_bytes: u32,
    /// Bytes of an acknowledgement, and of the SYN.
    pub ack_bytes: u32,
    /// Initial window in segments.
    pub initial_window: f64,
    /// Initial slow-start threshold in segments.
    pub initial_ssthresh: f64,
    /// The retransmission timeout.
    pub rto: RtoConfig,
    /// Whether every ACK gives an RTT sample (RFC 7323), rather than one timed packet per round.
    pub timestamps: bool,
    /// Packets per acknowledgement.
    pub ack_every: u32,
    /// Longest time that an acknowledgement is delayed if fewer packets arrive.
    pub delayed_ack: Duration,
    /// Number of segments that are acknowledged one by one at the start, before `ack_every` applies. If it is not 0,
    /// acknowledgements of segments out of order are sent at most once a millisecond from the fifth on, as in Linux.
    pub quick_acks: u32,
    /// Whether segments leave in bursts of up to a millisecond, as Linux builds them for segmentation offload.
    pub bursts: bool,
    /// Whether to use limited transmit (RFC 3042).
    pub limited_transmit: bool,
    /// At most one fast retransmit for each window of data (RFC 6582 section 3.2 step 2; ns-2's `bugFix_`). Without
    /// SACK only; Reno of 1990 had no such rule.
    pub once_per_window: bool,
    /// The implementation that its controller follows.
    pub dialect: Dialect,
    /// Size of the send buffer in segments: a limit on segments in flight.
    pub send_buffer: u64,
    /// Receive window in segments, at most [`MAX_WINDOW`](narrows_recovery::protocol::MAX_WINDOW).
    pub receive_window: u64,
    /// Whether both ends use ECN (RFC 3168).
    pub ecn: bool,
    /// Whether acknowledgements carry the time at which the packet that triggered them arrived, by the receiver's clock
    /// (RFC 7323 TSval). In a simulated packet this time replaces the third SACK block.
    pub receiver_stamps: bool,
}

impl TcpConfig {
    /// A preset with NewReno recovery and 1000-byte packets.
    pub fn preset(preset: Preset) -> TcpConfig {
        let rfc = TcpConfig {
            recovery: RecoveryKind::NewReno,
            packet_bytes: 1000,
            header_bytes: Packet::HEADER,
            ack_bytes: Packet::HEADER,
            initial_window: 4.0,
            initial_ssthresh: f64::INFINITY,
            rto: RtoConfig::RFC,
            timestamps: true,
            ack_every: 1,
            delayed_ack: Duration::from_millis(100),
            quick_acks: 0,
            bursts: false,
            limited_transmit: true,
            once_per_window: true,
            dialect: Dialect::Rfc,
            send_buffer: u64::MAX,
            receive_window: u64::MAX,
            ecn: false,
            receiver_stamps: false,
        };
        match preset {
            Preset::Rfc => rfc,
            Preset::Ns2 => TcpConfig {
                header_bytes: 0,
                initial_window: NS2_INITIAL_WINDOW,
                initial_ssthresh: NS2_INITIAL_SSTHRESH,
                rto: RtoConfig::NS2,
                timestamps: false,
                dialect: Dialect::Ns2,
                // `window_`, which is usually set higher than a run reaches.
                receive_window: 10_000,
                ..rfc
            },
            Preset::Linux => TcpConfig {
                dialect: Dialect::Linux,
                recovery: RecoveryKind::Rack,
                header_bytes: 52,
                ack_bytes: 52,
                initial_window: 10.0,
                rto: RtoConfig::LINUX,
                ack_every: 2,
                delayed_ack: Duration::from_millis(40),
                quick_acks: 16,
                bursts: true,
                ..rfc
            }
            .with_linux_window(),
        }
    }
    /// Sets the limits of Linux's buffers for packets of this size.
    pub fn with_linux_window(self) -> TcpConfig {
        let segments = |bytes: u64| (bytes / u64::from(self.payload())).max(1);
        TcpConfig {
            send_buffer: segments(LINUX_SEND_BUFFER),
            receive_window: segments(LINUX_RECEIVE_WINDOW),
            ..self
        }
    }
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
            hints,
            expects_dispersion: false,
        }
    }
    /// Application bytes of a full data packet.
    pub fn payload(&self) -> u32 {
        self.packet_bytes.saturating_sub(self.header_bytes).max(1)
    }
}
