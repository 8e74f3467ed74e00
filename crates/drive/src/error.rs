//! What can go wrong, each in one line.

use narrows_base::SpecError;
use std::fmt;
use std::io;
use std::net::SocketAddr;

/// Why something did not work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Error {
    /// An address cannot be bound.
    Bind {
        /// Which.
        address: SocketAddr,
        /// The system's reason.
        why: String,
    },
    /// Nothing can be sent to this address.
    Address {
        /// Which.
        address: SocketAddr,
    },
    /// A link cannot be built.
    Link(String),
    /// The system refused a thread, a descriptor or random bytes.
    System(String),
}

impl Error {
    pub(crate) fn bind(address: SocketAddr, e: &io::Error) -> Error {
        Error::Bind { address, why: plain(e) }
    }
    pub(crate) fn link(place: &str, e: &SpecError) -> Error {
        Error::Link(format!("{place}: {e}"))
    }
    pub(crate) fn system(e: &io::Error) -> Error {
        Error::System(plain(e))
    }
}

/// The system's words without its number.
fn plain(e: &io::Error) -> String {
    let text = e.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Bind { address, why } => write!(f, "cannot use {address}: {why}"),
            Error::Address { address } => {
                write!(f, "{address} is no place to send to: give a host and a port above 0")
            }
            Error::Link(why) => f.write_str(why),
            Error::System(why) => write!(f, "the system refuses: {why}"),
        }
    }
}

impl std::error::Error for Error {}
