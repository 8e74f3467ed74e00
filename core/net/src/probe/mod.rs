//! Probes over real sockets: measure the path to a server.
//!
//! A probe uses its own connection with the application protocol `narrows-probe`. The packets of a train are messages;
//! the ends exchange control frames on the first stream ([`narrows_probe::frames`]). The controller has a rate far
//! above any path's, so that each packet leaves on schedule. The sender is limited like every rrtp sender: ten packets
//! at first, then at most twice the path's measured delivery rate. A server answers one probe per address at a time,
//! and sends at most [`narrows_probe::MAX_BYTES`].

mod client;
mod gate;
mod peer;
mod server;

pub use client::{ProbeOptions, Probed, probe};
pub use gate::ProbeGate;
pub use server::{answer, is_probe};

use crate::Error;
use crate::endpoint::connection;
use narrows_base::{Spec, SpecError};
use narrows_probe::frames::BadFrame;
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_wire::ApplicationProtocols;
use std::fmt;
use std::sync::Arc;

/// Name of the application protocol.
pub const APPLICATION: &str = "narrows-probe";

/// The controller: does not limit the rate, and lost packets are not repaired.
const CONTROLLER: &str = "rrtp+fixed(rate=10Gbit/s,repair=off)";
/// Bytes of a train's packet beyond its message: IP and UDP 28, packet header and tag 25, prelude 4, frame header 3.
const OVERHEAD: u32 = 28 + 25 + 4 + 3;
/// Datagram size that every path carries; probes send no longer ones.
const DATAGRAM: u16 = 1200;
/// CLOSE codes.
const BUSY: u64 = 258;
const REFUSED: u64 = 259;

/// Reasons for a probe without an estimate.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProbeError {
    /// The connection failed.
    Connection(Error),
    /// The server is answering other probes.
    Busy {
        /// Text from the server.
        reason: String,
    },
    /// The server does not answer probes, or not this one.
    Refused {
        /// Text from the server.
        reason: String,
    },
    /// The server's sender uses another protocol, and so does not follow the probe's schedule.
    OwnProtocol,
    /// The peer sent a malformed frame.
    BadFrame,
    /// No packet arrived within the time limit.
    Silent,
    /// Too few packets arrived for an estimate.
    TooLittle,
    /// The user stopped the probe.
    Stopped,
}

impl fmt::Display for ProbeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProbeError::Connection(Error::NoCommonProtocol { .. }) => {
                f.write_str("the server answers no probes: it is of an older version")
            }
            ProbeError::Connection(e) => e.fmt(f),
            ProbeError::Busy { reason } => f.write_str(reason),
            ProbeError::Refused { reason } => write!(f, "the server refused: {reason}"),
            ProbeError::OwnProtocol => f.write_str(
                "the server sends with a protocol of its own and so does not keep to a probe's schedule",
            ),
            ProbeError::BadFrame => BadFrame.fmt(f),
            ProbeError::Silent => f.write_str("the other end has fallen silent in the middle of the probe"),
            ProbeError::TooLittle => f.write_str("too few packets arrived to say what the path is like"),
            ProbeError::Stopped => f.write_str("stopped before the probe was over"),
        }
    }
}

impl std::error::Error for ProbeError {}

impl From<Error> for ProbeError {
    fn from(e: Error) -> ProbeError {
        match e {
            Error::ClosedByPeer { code: BUSY, reason } => ProbeError::Busy { reason },
            Error::ClosedByPeer { code: REFUSED, reason } => ProbeError::Refused { reason },
            other => ProbeError::Connection(other),
        }
    }
}

impl From<BadFrame> for ProbeError {
    fn from(_: BadFrame) -> ProbeError {
        ProbeError::BadFrame
    }
}

/// The protocol of a probe's connection.
fn protocol() -> Result<Protocol, SpecError> {
    Protocol::read(&Spec::parse(CONTROLLER)?, 1500)
}

/// Extends a server's configuration so that it also answers probes. Connections of other applications must not send
/// with the probe's controller: see [`is_misused`].
///
/// # Errors
/// Never, with this crate's own names.
pub fn answering(config: ConnectionConfig) -> Result<ConnectionConfig, SpecError> {
    let custom: Arc<[Protocol]> =
        config.custom.iter().cloned().chain([protocol()?]).collect::<Vec<_>>().into();
    let names = config.applications.iter().chain([APPLICATION]);
    let applications =
        ApplicationProtocols::new(names).map_err(|e| SpecError::new(e.to_string()))?;
    Ok(ConnectionConfig { custom, applications, ..config })
}

/// Whether a connection other than a probe would send with the probe's controller.
pub fn is_misused(connection: &crate::Connection) -> bool {
    connection.protocol().is_ok_and(|label| label == CONTROLLER)
}

fn client_config() -> Result<ConnectionConfig, SpecError> {
    let applications =
        ApplicationProtocols::new([APPLICATION]).map_err(|e| SpecError::new(e.to_string()))?;
    Ok(ConnectionConfig {
        max_datagram: DATAGRAM,
        first_datagram: DATAGRAM,
        probes_rate: false,
        messages_held: narrows_probe::frames::MAX_PACKETS as usize,
        applications,
        ..connection(protocol()?)
    })
}
