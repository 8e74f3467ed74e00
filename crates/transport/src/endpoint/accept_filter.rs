//! The application's decision on which clients may connect.

use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A client whose handshake is complete except for the server's consent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Incoming<'a> {
    /// Its address, which has been validated.
    pub remote: SocketAddr,
    /// Its static key, which it has proved to hold. A client without an identity uses a key for one
    /// connection only.
    pub key: &'a [u8; 32],
    /// Whether the key is in the server's list ([`Clients`](super::Clients)).
    pub is_listed: bool,
    /// The agreed application protocol, if any.
    pub application: Option<&'a str>,
}

/// What to do with a client.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Decision {
    /// It gets a connection, if there is a place.
    Accept,
    /// It is told under seal that it is not served (CLOSE 4), with this reason, of which 128 bytes leave at most.
    Refuse(String),
    /// It gets no answer for as long as a handshake may last (10 s), and mostly gives up by then. What it still sends
    /// later is answered as for any unknown connection (RESET).
    Ignore,
}

/// Decides which clients may connect. Called by the endpoint's driver, so it must not block. If it panics, the client
/// is ignored.
pub trait AcceptFilter: Send + Sync {
    /// Whether somebody who claims to be at this address gets any answer at all. Nothing has been spent on it, and the
    /// address may be forged. Asked for each packet that begins a handshake.
    fn answers(&self, remote: SocketAddr) -> bool {
        let _ = remote;
        true
    }
    /// What becomes of a client that has shown its key; asked before it takes a connection's place.
    fn decide(&self, client: &Incoming<'_>) -> Decision;
}

/// A filter that looks at complete handshakes only.
impl<F: Fn(&Incoming<'_>) -> Decision + Send + Sync> AcceptFilter for F {
    fn decide(&self, client: &Incoming<'_>) -> Decision {
        self(client)
    }
}

/// The filter of an endpoint, if it has one.
#[derive(Clone, Default)]
pub struct Filter(Option<Arc<dyn AcceptFilter>>);

impl Filter {
    /// Uses this filter.
    pub fn new(filter: impl AcceptFilter + 'static) -> Filter {
        Filter(Some(Arc::new(filter)))
    }
    pub(super) fn answers(&self, remote: SocketAddr) -> bool {
        self.0.as_ref().is_none_or(|filter| {
            catch_unwind(AssertUnwindSafe(|| filter.answers(remote))).unwrap_or(false)
        })
    }
    pub(super) fn decide(&self, client: &Incoming<'_>) -> Decision {
        self.0.as_ref().map_or(Decision::Accept, |filter| {
            catch_unwind(AssertUnwindSafe(|| filter.decide(client))).unwrap_or(Decision::Ignore)
        })
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Filter" } else { "no filter" })
    }
}
