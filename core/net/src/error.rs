//! The errors of this crate, each with a message of one line.

use crate::dial::{DialFailure, FailedAddress, listed};
use narrows_base::{Duration, SpecError};
use narrows_transport::connection::{Closed, MessageError};
use narrows_transport::endpoint::ServerKey;
use narrows_transport::streams::StreamError;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// CLOSE codes of a server that refuses a client, or is busy (docs/rrtp.md).
const REFUSED: u64 = 4;
const BUSY: u64 = 8;
/// CLOSE code for a path that drops full packets (docs/rrtp.md).
const SMALL_PATH: u64 = 11;
/// CLOSE code without a common application protocol (docs/rrtp.md).
const NO_COMMON_PROTOCOL: u64 = 10;

/// An error of an endpoint, a connection, a stream or a relay.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// An address cannot be bound.
    Bind {
        /// Local address.
        address: SocketAddr,
        /// The system's error.
        why: SystemError,
    },
    /// The socket cannot send to this address.
    Address {
        /// Address that is unreachable or of another family.
        address: SocketAddr,
    },
    /// A link's configuration is invalid.
    Link {
        /// Name or specification of the link.
        place: String,
        /// The fault.
        why: SpecError,
    },
    /// The system refused a thread, a descriptor or random bytes.
    System(SystemError),
    /// `Driver::Tokio` was chosen outside of a tokio runtime.
    NoRuntime,
    /// The endpoint has reached its limit on connections.
    TooMany,
    /// A call after [`Endpoint::close`](crate::Endpoint::close), or after the driver ended.
    EndpointClosed,
    /// The handshake did not complete in time.
    NoAnswer {
        /// Address of the server.
        address: SocketAddr,
        /// Time since the first packet.
        waited: Duration,
        /// Time from the first packet to the first answer, which may be forged; absent if no answer arrived.
        first_answer: Option<Duration>,
    },
    /// No socket receives at the server's address: a report of this machine, or an ICMP message.
    NoListener {
        /// Address of the server.
        address: SocketAddr,
    },
    /// Each of a server's addresses failed.
    NoAddress {
        /// The addresses and the reasons; empty for a name without an address.
        failed: Vec<FailedAddress<Error>>,
    },
    /// The server has no capacity for this client now, or closed its idle connection in favour of another.
    Busy {
        /// Address of the server.
        address: SocketAddr,
    },
    /// This end closed the idle connection in favour of another client.
    GaveWay,
    /// This end's congestion controller panicked, or the connection around it; only that connection
    /// ended.
    Panicked {
        /// Label of the controller.
        controller: String,
        /// Text of the panic.
        message: String,
    },
    /// The server has another key than expected.
    WrongKey {
        /// Address of the server.
        address: SocketAddr,
        /// Expected key, if it is known.
        wanted: Option<[u8; 32]>,
        /// Key of the server.
        found: [u8; 32],
    },
    /// The server does not accept this client.
    Refused {
        /// Text from the server.
        reason: String,
    },
    /// The two ends have no version in common.
    Version {
        /// Address of the server.
        address: SocketAddr,
    },
    /// The peer announced a protocol that this end does not implement.
    UnknownProtocol {
        /// Label of the protocol.
        label: String,
    },
    /// Client and server have no application protocol in common
    /// ([`ConnectionConfig::applications`](narrows_transport::connection::ConnectionConfig::applications)).
    NoCommonProtocol {
        /// Text with the protocols of both ends.
        reason: String,
    },
    /// This end closed the connection.
    Closed,
    /// The peer closed the connection.
    ClosedByPeer {
        /// Code; from 256 on the application's.
        code: u64,
        /// Text from the peer.
        reason: String,
    },
    /// The peer has lost the connection's state: it was restarted.
    PeerRestarted,
    /// No packet arrived from the peer within the idle timeout.
    TimedOut,
    /// The path carries small packets but drops full ones of 1,200 bytes.
    SmallPath {
        /// Address of the peer.
        address: SocketAddr,
    },
    /// The peer violated the protocol.
    Fault {
        /// Code of the CLOSE.
        code: u64,
        /// The violation.
        why: &'static str,
    },
    /// The peer reset this stream, with this code.
    StreamReset(u64),
    /// The peer stopped this stream, with this code.
    StreamStopped(u64),
    /// This end finished or reset the stream before.
    StreamFinished,
    /// No stream has this id.
    StreamUnknown,
    /// The message is longer than the peer accepts, or than any packet to it can carry.
    MessageTooLong {
        /// Maximum bytes of a message; 0 if the peer accepts no messages.
        max: usize,
    },
    /// The message is longer than the path's validated packet size permits at present.
    MessageTooLongNow {
        /// Most bytes of a message now.
        max: usize,
    },
    /// The queue of messages is full.
    MessagesFull,
    /// A stream that was to be read completely is longer than expected.
    TooLong {
        /// Most bytes that were expected.
        max: usize,
    },
}

impl Error {
    pub(crate) fn bind(address: SocketAddr, e: &io::Error) -> Error {
        Error::Bind { address, why: SystemError::new(e) }
    }
    pub(crate) fn link(place: &str, e: &SpecError) -> Error {
        Error::Link { place: place.into(), why: e.clone() }
    }
    pub(crate) fn system(e: &io::Error) -> Error {
        Error::System(SystemError::new(e))
    }
    pub(crate) fn closed(why: &Closed, address: SocketAddr, wanted: ServerKey) -> Error {
        match why {
            Closed::Locally => Error::Closed,
            Closed::ByPeer { code: REFUSED, reason } => Error::Refused { reason: reason.clone() },
            Closed::ByPeer { code: BUSY, .. } | Closed::Busy => Error::Busy { address },
            Closed::GaveWay => Error::GaveWay,
            Closed::Panicked { controller, message } => {
                Error::Panicked { controller: controller.clone(), message: message.clone() }
            }
            Closed::ByPeer { code: NO_COMMON_PROTOCOL, reason }
            | Closed::NoCommonProtocol { reason } => {
                Error::NoCommonProtocol { reason: reason.clone() }
            }
            Closed::ByPeer { code: SMALL_PATH, .. } | Closed::SmallPath { .. } => {
                Error::SmallPath { address }
            }
            Closed::ByPeer { code, reason } => {
                Error::ClosedByPeer { code: *code, reason: reason.clone() }
            }
            Closed::Reset => Error::PeerRestarted,
            Closed::TimedOut => Error::TimedOut,
            Closed::Fault { code, why } => Error::Fault { code: *code, why },
            &Closed::NoAnswer { waited, first_answer } => {
                Error::NoAnswer { address, waited, first_answer }
            }
            Closed::NoListener => Error::NoListener { address },
            Closed::WrongKey { found } => {
                let wanted = match wanted {
                    ServerKey::Is(key) => Some(key),
                    ServerKey::Any => None,
                };
                Error::WrongKey { address, wanted, found: *found }
            }
            Closed::Version => Error::Version { address },
            Closed::UnknownProtocol { label } => Error::UnknownProtocol { label: label.clone() },
        }
    }
    /// Whether a failed attempt to connect would fail at the server's other addresses, too: the server refused it, or
    /// this end cannot connect at all.
    pub fn is_of_all_addresses(&self) -> bool {
        matches!(
            self,
            Error::WrongKey { .. }
                | Error::Refused { .. }
                | Error::Version { .. }
                | Error::UnknownProtocol { .. }
                | Error::NoCommonProtocol { .. }
                | Error::Closed
                | Error::EndpointClosed
                | Error::NoRuntime
                | Error::TooMany
        )
    }
    /// A few words without the address, for a list of addresses.
    pub fn brief(&self) -> String {
        match self {
            Error::NoAnswer { first_answer: None, .. } => "no answer".into(),
            Error::NoAnswer { .. } => "answered, but not in time".into(),
            Error::NoListener { .. } => "connection refused".into(),
            Error::Busy { .. } => "busy".into(),
            Error::SmallPath { .. } => "large packets do not pass".into(),
            _ => self.to_string(),
        }
    }
    fn kind(&self) -> io::ErrorKind {
        use io::ErrorKind as K;
        match self {
            Error::Bind { .. } | Error::Address { .. } => K::AddrNotAvailable,
            Error::Link { .. } | Error::MessageTooLong { .. } | Error::TooLong { .. } => {
                K::InvalidInput
            }
            Error::MessageTooLongNow { .. } | Error::MessagesFull => K::WouldBlock,
            Error::System(_) | Error::TooMany => K::OutOfMemory,
            Error::NoRuntime => K::Unsupported,
            Error::EndpointClosed | Error::Closed | Error::StreamFinished => K::NotConnected,
            Error::NoAnswer { .. }
            | Error::NoAddress { .. }
            | Error::TimedOut
            | Error::SmallPath { .. } => K::TimedOut,
            Error::Busy { .. } | Error::NoListener { .. } => K::ConnectionRefused,
            Error::GaveWay => K::ConnectionAborted,
            Error::Panicked { .. } => K::Other,
            Error::WrongKey { .. } | Error::Refused { .. } => K::PermissionDenied,
            Error::Version { .. }
            | Error::Fault { .. }
            | Error::UnknownProtocol { .. }
            | Error::NoCommonProtocol { .. } => K::InvalidData,
            Error::ClosedByPeer { .. } => K::ConnectionAborted,
            Error::PeerRestarted | Error::StreamReset(_) => K::ConnectionReset,
            Error::StreamStopped(_) => K::BrokenPipe,
            Error::StreamUnknown => K::NotFound,
        }
    }
}

impl From<DialFailure<Error>> for Error {
    fn from(e: DialFailure<Error>) -> Error {
        match e {
            DialFailure::Final(e) => e,
            DialFailure::All(mut failed) if failed.len() == 1 => failed.remove(0).cause,
            DialFailure::All(failed) => Error::NoAddress { failed },
        }
    }
}

impl From<StreamError> for Error {
    fn from(e: StreamError) -> Error {
        match e {
            StreamError::Unknown => Error::StreamUnknown,
            StreamError::Reset(code) => Error::StreamReset(code),
            StreamError::Stopped(code) => Error::StreamStopped(code),
            StreamError::Finished => Error::StreamFinished,
        }
    }
}

impl From<MessageError> for Error {
    fn from(e: MessageError) -> Error {
        match e {
            MessageError::TooLong { most } => Error::MessageTooLong { max: most },
            MessageError::TooLongForPath { most } => Error::MessageTooLongNow { max: most },
            MessageError::QueueFull => Error::MessagesFull,
            MessageError::Closed => Error::Closed,
        }
    }
}

impl From<Error> for io::Error {
    fn from(e: Error) -> io::Error {
        io::Error::new(e.kind(), e)
    }
}

/// An error of the system, in a form that can be cloned and compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SystemError {
    kind: io::ErrorKind,
    text: String,
}

impl SystemError {
    fn new(e: &io::Error) -> SystemError {
        let text = e.to_string();
        let text = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
        SystemError { kind: e.kind(), text }
    }
    /// Portable category of the error.
    pub fn kind(&self) -> io::ErrorKind {
        self.kind
    }
}

impl From<io::Error> for SystemError {
    fn from(e: io::Error) -> SystemError {
        SystemError::new(&e)
    }
}

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for SystemError {}

/// A key in hexadecimal.
fn hex(key: &[u8; 32]) -> String {
    key.iter().map(|b| format!("{b:02x}")).collect()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Bind { address, why } => write!(f, "cannot use {address}: {why}"),
            Error::Address { address } if address.port() == 0 || address.ip().is_unspecified() => {
                write!(f, "{address} is no place to send to: give a host and a port above 0")
            }
            Error::Address { address } => {
                write!(
                    f,
                    "{address} is of another family than the socket: IPv6 instead of IPv4, or vice versa"
                )
            }
            Error::Link { place, why } => write!(f, "{place}: {why}"),
            Error::System(why) => write!(f, "the system refuses: {why}"),
            Error::NoRuntime => f.write_str(
                "a task is to drive this endpoint, but it is not bound within a tokio runtime",
            ),
            Error::TooMany => f.write_str("this endpoint has as many connections as it may have"),
            Error::EndpointClosed => f.write_str("this endpoint is closed"),
            Error::NoAnswer { address, waited, first_answer: None } => {
                let seconds = waited.as_secs_f64();
                write!(
                    f,
                    "no answer from {address} in {seconds:.0} s: packets were sent and none arrived; is a server \
                     there, and does UDP pass?"
                )
            }
            Error::NoAnswer { address, waited, first_answer: Some(first_answer) } => {
                let first = first_answer.as_secs_f64();
                let seconds = waited.as_secs_f64();
                write!(
                    f,
                    "no connection with {address} in {seconds:.0} s: a first answer arrived after {first:.1} s, but \
                     the handshake did not complete; are most packets lost?"
                )
            }
            Error::NoListener { address } => {
                write!(f, "connection refused: no server listens at {address}")
            }
            Error::NoAddress { failed } if failed.is_empty() => {
                f.write_str("the server's name has no address")
            }
            Error::NoAddress { failed } => {
                let each = listed(failed, Error::brief);
                write!(f, "no connection to any of the server's addresses ({each})")
            }
            Error::Busy { address } => write!(f, "{address} is busy: try again later"),
            Error::GaveWay => {
                f.write_str("the idle connection was closed to make room for another client")
            }
            Error::Panicked { controller, message } => {
                write!(f, "the congestion controller {controller} panicked: {message}")
            }
            Error::WrongKey { address, wanted, found } => {
                write!(f, "{address} has another key than expected: {}", hex(found))?;
                wanted.map_or(Ok(()), |w| write!(f, " instead of {}", hex(&w)))
            }
            Error::Refused { reason } if reason.is_empty() => {
                f.write_str("the server refuses this client: its key is not on the server's list")
            }
            Error::Refused { reason } => write!(f, "the server refuses this client: {reason}"),
            Error::Version { address } => {
                write!(f, "{address} speaks another version of the protocol: update the older end")
            }
            Error::UnknownProtocol { label } => write!(
                f,
                "the peer sends with the protocol '{label}', which is unknown here: both ends must know it"
            ),
            Error::NoCommonProtocol { reason } => f.write_str(reason),
            Error::Closed => f.write_str("the connection is closed"),
            Error::ClosedByPeer { code, reason } if reason.is_empty() => {
                write!(f, "the peer closed the connection (code {code})")
            }
            Error::ClosedByPeer { code, reason } => {
                write!(f, "the peer closed the connection: {reason} (code {code})")
            }
            Error::PeerRestarted => {
                f.write_str("the peer does not know this connection any more: it was restarted")
            }
            Error::TimedOut => f.write_str("the peer has fallen silent"),
            Error::SmallPath { address } => write!(
                f,
                "large packets do not pass between this machine and {address}: the path must carry UDP datagrams of \
                 1,200 bytes"
            ),
            Error::Fault { code, why } => {
                write!(f, "the peer broke the protocol: {why} (code {code})")
            }
            Error::StreamReset(code) => StreamError::Reset(*code).fmt(f),
            Error::StreamStopped(code) => StreamError::Stopped(*code).fmt(f),
            Error::StreamFinished => StreamError::Finished.fmt(f),
            Error::StreamUnknown => StreamError::Unknown.fmt(f),
            Error::TooLong { max } => write!(f, "the stream is longer than {max} bytes"),
            Error::MessageTooLong { max } => MessageError::TooLong { most: *max }.fmt(f),
            Error::MessageTooLongNow { max } => MessageError::TooLongForPath { most: *max }.fmt(f),
            Error::MessagesFull => MessageError::QueueFull.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Bind { why, .. } | Error::System(why) => Some(why),
            Error::Link { why, .. } => Some(why),
            _ => None,
        }
    }
}
