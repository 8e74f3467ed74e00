//! What is known about a path in advance, and the source of that knowledge.

use narrows_base::{Duration, Rate};

/// What is known about a path in advance: initial estimates, which measurements replace (S3 section
/// 3.2, "network characteristics").
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PathHints {
    /// Rate of the path in bit/s on the wire (S3's SendRate_char).
    pub rate: Option<Rate>,
    /// Round-trip time with empty queues (S3's RoundTripTime_char).
    pub rtt: Option<Duration>,
    /// Share of packets that the path loses without congestion, 0 to 1 (S3's LossRate_char).
    pub loss: Option<f64>,
}

/// Where hints come from, which decides how far they are trusted before packets arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HintSource {
    /// The local user, by a flag or a configuration.
    #[default]
    User,
    /// A measurement that this side stored for this peer, whose key and address were verified.
    Stored,
    /// The peer, whose hints may be false.
    Peer,
}
