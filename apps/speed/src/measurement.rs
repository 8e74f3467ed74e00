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

/// Longest message in bytes: an endpoint's default limit. With its frame and seal it fits into a datagram of Ethernet's
/// size.
pub const MAX_MESSAGE_BYTES: usize = 1400;

/// Name of the application protocol.
const APPLICATION: &str = "narrows-speed";

/// The sending end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SpeedDirection {
    /// The client sends.
    Up,
    /// The server sends.
    Down,
}

/// What is sent: a stream or messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrafficKind {
    /// A reliable stream.
    Stream,
    /// Unreliable messages of this many bytes, as fast as the controller permits. From the client only.
    Messages(u16),
}

/// End of the measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// When this many bytes of each connection have arrived.
    Bytes(u64),
    /// So long after the client began to connect.
    Time(Duration),
}

/// A measurement.
#[derive(Clone, Debug)]
pub struct Speed {
    /// The sender's protocol and controller. If the server sends, it uses its own.
    pub protocol: Protocol,
    /// Properties of the path that are given to the sender's controller.
    pub hints: PathHints,
    /// Changed hints for a sending client, with the time since the connection was opened, in ascending order.
    pub reconfigurations: Vec<(Duration, PathHints)>,
    /// Never faster than this.
    pub rate_limit: Option<Rate>,
    /// Suite of ciphers.
    pub suite: Suite,
    /// Number of concurrent connections.
    pub connections: usize,
    /// The sending end.
    pub direction: SpeedDirection,
    /// What is sent: a stream or messages.
    pub traffic: TrafficKind,
    /// End of the measurement.
    pub amount: Amount,
    /// Taps that record the endpoints.
    pub taps: MeasurementTaps,
}

impl Speed {
    /// One stream from the client to the server.
    #[must_use]
    pub fn new(protocol: Protocol, amount: Amount) -> Speed {
        Speed {
            protocol,
            hints: PathHints::default(),
            reconfigurations: Vec::new(),
            rate_limit: None,
            suite: Suite::Aes256Gcm,
            connections: 1,
            direction: SpeedDirection::Up,
            traffic: TrafficKind::Stream,
            amount,
            taps: MeasurementTaps::default(),
        }
    }
}

/// Taps of a measurement's endpoints.
#[derive(Clone, Debug, Default)]
pub struct MeasurementTaps {
    /// Tap of the client's endpoint.
    pub client: Option<Arc<dyn Tap>>,
    /// Tap of the server's endpoint, if it is in this process.
    pub server: Option<Arc<dyn Tap>>,
}

impl Speed {
    /// The configuration of the client's connections.
    pub fn config(&self) -> ConnectionConfig {
        ConnectionConfig {
            hints: self.hints,
            rate_limit: self.rate_limit,
            probes_rate: self.direction == SpeedDirection::Up,
            ..for_speed(connection(self.protocol.clone()))
        }
    }
}

/// Names the application protocol in the handshake, since the same servers also serve probes.
pub(crate) fn for_speed(config: ConnectionConfig) -> ConnectionConfig {
    // A name of this form is always one.
    let applications = ApplicationProtocols::new([APPLICATION]).unwrap_or_default();
    ConnectionConfig { applications, ..config }
}
