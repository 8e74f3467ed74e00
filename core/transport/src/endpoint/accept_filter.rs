//! The application's filter for clients.

use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A client with a complete handshake, before the server accepts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct IncomingClient<'a> {
    /// Its validated address.
    pub remote: SocketAddr,
    /// Its static key, proven in the handshake. A client without an identity uses a key for one connection only.
    pub key: &'a [u8; 32],
    /// Whether the key is on the server's list ([`Clients`](super::Clients)).
    pub is_listed: bool,
    /// The agreed application protocol, if any.
    pub application: Option<&'a str>,
}

/// Decision on a client.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Decision {
    /// The client gets a connection, if there is a place.
    Accept,
    /// The client gets a sealed CLOSE 4 with this reason, of which at most 128 bytes are sent.
    Refuse(String),
    /// The client gets no reply for as long as a handshake may last (10 s); most give up by then. Later packets are
    /// answered as for an unknown connection (RESET).
    Ignore,
}

/// Decides which clients may connect. The endpoint's driver calls it, so it must not block. If it panics, the client is
/// ignored.
pub trait AcceptFilter: Send + Sync {
    /// Whether packets from this address that begin a handshake get a reply. Called for each such packet, before any
    /// other work on it. The address may be forged.
    fn answers(&self, remote: SocketAddr) -> bool {
        let _ = remote;
        true
    }
    /// Decides on a client that has proven its key, before it takes a connection's place.
    fn decide(&self, client: &IncomingClient<'_>) -> Decision;
    /// A client that has proven its key was refused for this reason, by [`Clients`](super::Clients), by this filter, or
    /// since all places are taken. Called once for each such handshake.
    fn on_refused(&self, remote: SocketAddr, key: &[u8; 32], reason: &str) {
        let _ = (remote, key, reason);
    }
}

/// A filter for complete handshakes only.
impl<F: Fn(&IncomingClient<'_>) -> Decision + Send + Sync> AcceptFilter for F {
    fn decide(&self, client: &IncomingClient<'_>) -> Decision {
        self(client)
    }
}

/// The filter of an endpoint, or no filter.
#[derive(Clone, Default)]
pub struct ClientFilter(Option<Arc<dyn AcceptFilter>>);

impl ClientFilter {
    /// A filter that calls `filter`.
    pub fn new(filter: impl AcceptFilter + 'static) -> ClientFilter {
        ClientFilter(Some(Arc::new(filter)))
    }
    pub(super) fn answers(&self, remote: SocketAddr) -> bool {
        self.0.as_ref().is_none_or(|filter| {
            catch_unwind(AssertUnwindSafe(|| filter.answers(remote))).unwrap_or(false)
        })
    }
    pub(super) fn decide(&self, client: &IncomingClient<'_>) -> Decision {
        self.0.as_ref().map_or(Decision::Accept, |filter| {
            catch_unwind(AssertUnwindSafe(|| filter.decide(client))).unwrap_or(Decision::Ignore)
        })
    }
    pub(super) fn on_refused(&self, remote: SocketAddr, key: &[u8; 32], reason: &str) {
        if let Some(filter) = &self.0 {
            let _ = catch_unwind(AssertUnwindSafe(|| filter.on_refused(remote, key, reason)));
        }
    }
}

impl fmt::Debug for ClientFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Filter" } else { "no filter" })
    }
}
