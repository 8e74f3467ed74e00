//! How many connections and handshakes an endpoint has, and how its clients share them.

/// Handshakes that a server keeps at most, unless configured otherwise: about 2 kB each.
const HANDSHAKES: usize = 1024;
/// Handshakes that a server begins in a second at most, unless configured otherwise, in all and for one
/// network: each costs four X25519 operations.
const HANDSHAKE_RATE: u32 = 800;
const HANDSHAKE_RATE_OF_SOURCE: u32 = 200;

/// How many there may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EndpointLimits {
    /// Connections, this end's own attempts to connect included.
    pub connections: usize,
    /// Connections of clients from one IPv4 address or IPv6 /48.
    pub connections_of_source: usize,
    /// Handshakes with a valid cookie that wait for their FINISH. They take no connection's place.
    pub handshakes: usize,
    /// Handshakes that begin in a second.
    pub handshake_rate: u32,
    /// Handshakes from one IPv4 address or IPv6 /48 that begin in a second.
    pub handshake_rate_of_source: u32,
}

impl EndpointLimits {
    /// For so many connections; one network may have half of them.
    pub fn new(connections: usize) -> EndpointLimits {
        EndpointLimits {
            connections,
            connections_of_source: connections.div_ceil(2),
            handshakes: HANDSHAKES,
            handshake_rate: HANDSHAKE_RATE,
            handshake_rate_of_source: HANDSHAKE_RATE_OF_SOURCE,
        }
    }
    /// Connections and handshakes together.
    pub(super) fn slots(&self) -> usize {
        self.connections.saturating_add(self.handshakes)
    }
}
