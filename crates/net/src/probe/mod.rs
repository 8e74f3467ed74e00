//! Probes over real sockets: what a path to one of our servers is like.
//!
//! A connection of its own, with the application protocol `narrows-probe`: the packets of a train are its messages,
//! what the ends say of them goes over its first stream ([`narrows_probe::frames`]). Its controller is a rate that no
//! path has, so that each packet leaves when the schedule says; what bounds the sender is what bounds every sender of
//! rrtp: ten packets at first, then no more than twice what the path is shown to deliver. A server answers one probe
//! of an address at a time, and sends [`narrows_probe::MAX_BYTES`] at most.

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
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::{Preset, Protocol};
use narrows_wire::ApplicationProtocols;
use std::fmt;
use std::sync::Arc;

/// The application protocol.
pub const APPLICATION: &str = "narrows-probe";

/// The controller: it holds nothing back, and nothing is rebuilt of what the path lost.
const CONTROLLER: &str = "rrtp+fixed(rate=10Gbit/s,repair=off)";
/// A message of a train is so much shorter than its packet: IP and UDP 28, a packet's header and seal 25, its prelude 4,
/// the frame's head 3.
const OVERHEAD: u32 = 28 + 25 + 4 + 3;
/// Datagrams that every path carries: none is tried that is longer.
const DATAGRAM: u16 = 1200;
/// Close codes.
const BUSY: u64 = 258;
const REFUSED: u64 = 259;

/// Why there is no estimate.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProbeError {
    /// The connection failed.
    Connection(Error),
    /// The server answers another probe.
    Busy {
        /// Its words.
        reason: String,
    },
    /// The server does not do that.
    Refused {
        /// Its words.
        reason: String,
    },
    /// The server sends with a protocol of its own, which is not the probe's schedule.
    OwnProtocol,
    /// The other end says what is no frame.
    BadFrame,
    /// Nothing was heard for too long.
    Silent,
    /// Too few packets arrived to say anything.
    TooLittle,
    /// The user stopped it.
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
    Protocol::read(&Spec::parse(CONTROLLER)?, Preset::Rfc, 1500)
}

/// A server's configuration, so that it also answers probes. Connections of other applications must not send with the
/// probe's controller: see [`is_misused`].
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

/// Whether a connection that is no probe would send with the probe's controller.
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
