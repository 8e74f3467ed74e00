//! Properties of a path that are given in advance, and their source.

use narrows_base::{Duration, Rate};

/// Initial estimates of a path's properties, which measurements replace (the RRTP thesis, section 3.2, "network
/// characteristics").
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct PathHints {
    /// Rate of the path in bit/s on the wire (SendRate_char of the RRTP thesis).
    pub rate: Option<Rate>,
    /// Round-trip time with empty queues (RoundTripTime_char of the RRTP thesis).
    pub rtt: Option<Duration>,
    /// Share of packets that the path loses without congestion, 0 to 1 (LossRate_char of the RRTP thesis).
    pub loss: Option<f64>,
}

/// Where hints come from, which decides how far they are trusted before packets arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HintSource {
    /// The local user, by a flag or a configuration.
    #[default]
    User,
    /// A measurement that this side stored for this peer, after its key and address were verified.
    Stored,
    /// The peer. Its hints may be false.
    Peer,
}
