//! What is known of a path beforehand, and from whom.

use narrows_base::{Duration, Rate};

/// What is known of a path beforehand: initial estimates, replaced by measurements (S3 section 3.2,
/// "network characteristics").
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PathHints {
    /// Bit/s on the wire that the path carries (S3's SendRate_char).
    pub rate: Option<Rate>,
    /// Round-trip time with empty queues (S3's RoundTripTime_char).
    pub rtt: Option<Duration>,
    /// Share of packets that the path loses without congestion, 0 to 1 (S3's LossRate_char).
    pub loss: Option<f64>,
}

/// Where hints come from, and so how far they are trusted before packets arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HintSource {
    /// This side's own user, by a flag or a configuration.
    #[default]
    User,
    /// A measurement that this side kept for this very peer: its key and its address were
    /// verified.
    Stored,
    /// The peer, whose hints may be false.
    Peer,
}
