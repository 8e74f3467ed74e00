//! Limits on connections and handshakes, and how clients share them.

/// Default limit on concurrent handshakes at a server: about 2 kB each.
const HANDSHAKES: usize = 1024;
/// Default limits on new handshakes per second, in all and per network: each costs four X25519 operations.
const HANDSHAKE_RATE: u32 = 800;
const HANDSHAKE_RATE_OF_SOURCE: u32 = 200;
/// Default limit on remembered used tokens: less than 500 bytes each.
const USED_TOKENS: usize = 16_384;

/// Limits of an endpoint's connections, handshakes and memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct EndpointLimits {
    /// Connections, including this end's own attempts to connect.
    pub connections: usize,
    /// Connections from one IPv4 address or IPv6 /48.
    pub connections_of_source: usize,
    /// Handshakes with a valid cookie that wait for their FINISH. They do not count as connections.
    pub handshakes: usize,
    /// Handshakes begun per second.
    pub handshake_rate: u32,
    /// Handshakes begun per second from one IPv4 address or IPv6 /48.
    pub handshake_rate_of_source: u32,
    /// Used address tokens that are remembered, to prevent their reuse. Beyond the limit, the oldest token of the
    /// network with most tokens is dropped. From then on, that network's tokens of this age or older are rejected.
    pub used_tokens: usize,
}

impl EndpointLimits {
    /// Limits for this many connections; one network may have half of them.
    pub fn new(connections: usize) -> EndpointLimits {
        EndpointLimits {
            connections,
            connections_of_source: connections.div_ceil(2),
            handshakes: HANDSHAKES,
            handshake_rate: HANDSHAKE_RATE,
            handshake_rate_of_source: HANDSHAKE_RATE_OF_SOURCE,
            used_tokens: USED_TOKENS,
        }
    }
    /// Connections and handshakes together.
    pub(super) fn slots(&self) -> usize {
        self.connections.saturating_add(self.handshakes)
    }
}
