//! The specification of a measurement: sender, kind of data, and amount.

use narrows_base::{Duration, Rate};
use narrows_congestion::PathHints;
use narrows_net::ApplicationProtocols;
use narrows_net::endpoint::connection;
use narrows_net::tap::Tap;
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_wire::Suite;
use std::sync::Arc;

/// Longest message, bytes: what an endpoint takes unless configured otherwise. With its frame and seal it
/// fits into a datagram of Ethernet's size.
pub const MAX_MESSAGE_BYTES: usize = 1400;

/// The application protocol.
const APPLICATION: &str = "narrows-speed";

/// Who sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Direction {
    /// The client.
    Up,
    /// The server.
    Down,
}

/// What is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Traffic {
    /// A reliable stream.
    Stream,
    /// Unreliable messages of so many bytes, as fast as the controller permits. From the client
    /// only.
    Messages(u16),
}

/// When it ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// When so many bytes of each connection arrived.
    Bytes(u64),
    /// So long after the client began to connect.
    Time(Duration),
}

/// A measurement.
#[derive(Clone, Debug)]
pub struct Speed {
    /// What paces the sender. The server's own is what it was started with.
    pub protocol: Protocol,
    /// What the sender is told of the path.
    pub hints: PathHints,
    /// What a sending client is told of it so long after its connection was opened, in the order of time.
    pub reconfigurations: Vec<(Duration, PathHints)>,
    /// Never faster than this.
    pub rate_limit: Option<Rate>,
    /// The cipher.
    pub suite: Suite,
    /// Connections at once.
    pub connections: usize,
    /// Who sends.
    pub direction: Direction,
    /// What.
    pub traffic: Traffic,
    /// How much.
    pub amount: Amount,
    /// What observes it.
    pub taps: Taps,
}

/// What observes the endpoints of a measurement.
#[derive(Clone, Debug, Default)]
pub struct Taps {
    /// The client's.
    pub client: Option<Arc<dyn Tap>>,
    /// The server's, where it is in this process.
    pub server: Option<Arc<dyn Tap>>,
}

impl Speed {
    pub(crate) fn config(&self) -> ConnectionConfig {
        ConnectionConfig {
            hints: self.hints,
            rate_limit: self.rate_limit,
            probes_rate: self.direction == Direction::Up,
            ..for_speed(connection(self.protocol.clone()))
        }
    }
}

/// A connection that says in its handshake what it is for: the same servers answer probes.
pub(crate) fn for_speed(config: ConnectionConfig) -> ConnectionConfig {
    // A name of this form is always one.
    let applications = ApplicationProtocols::new([APPLICATION]).unwrap_or_default();
    ConnectionConfig { applications, ..config }
}
