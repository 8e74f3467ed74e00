//! A transfer of one stream, and how it went.

use std::time::Duration;

/// A transfer of one stream.
#[derive(Clone, Debug)]
pub struct Test {
    /// As for `narrows compare --link`.
    pub link: String,
    /// Bytes to send; [`u64::MAX`] for as many as fit into the time.
    pub bytes: u64,
    /// The run ends after this time.
    pub limit: Duration,
    /// Seed of the link's draws.
    pub seed: u64,
}

/// How a transfer went.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Bits of the stream that the receiver read in a second, from the first packet of the handshake on.
    pub goodput_bps: f64,
    /// Whether all bytes arrived and were acknowledged.
    pub is_done: bool,
    /// Mean of the sender's smoothed RTT.
    pub rtt: Duration,
    /// Mean time in the queue in seconds.
    pub queueing: f64,
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// Packets that the sender found lost.
    pub lost: u64,
    /// Packets that it sent.
    pub sent: u64,
}
