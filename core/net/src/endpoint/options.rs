//! The configuration of an endpoint and of a connection.

use crate::tap::Tap;
use narrows_base::Duration;
use narrows_transport::Protocol;
use narrows_transport::connection::ConnectionConfig;
use narrows_transport::endpoint::{
    ClientFilter, Clients, EarlyData, EndpointConfig, EndpointLimits, Entropy, MemoryTokens,
    Permit, ServerKey, TokenStore,
};
use narrows_wire::{StaticKey, Suite};
use std::sync::Arc;

/// Default limit on an endpoint's connections.
const CONNECTIONS: usize = 16_384;

/// The driver of an endpoint: receives and sends at the right time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Driver {
    /// A task of the tokio runtime, if the endpoint is bound within one and the feature `runtime-tokio` is on: then a
    /// packet wakes no other thread. Otherwise a thread of its own.
    #[default]
    Auto,
    /// A thread of its own. Its timers are exact to microseconds regardless of the application, and it seals and opens
    /// packets while the application computes. For large transfers, for programs without a runtime, and for tasks that
    /// block their runtime's threads (as [`Blocking`](super::Blocking) streams do).
    Thread,
    /// A task of the tokio runtime in which the endpoint is bound, with I/O and time enabled. A packet wakes no other
    /// thread, so a small request costs a third of that with a thread. An application task that does not yield delays
    /// all connections, unless the runtime has other threads.
    #[cfg(feature = "runtime-tokio")]
    Tokio,
}

/// The configuration of an endpoint.
#[derive(Debug)]
#[non_exhaustive]
pub struct Options {
    /// Key pair of this endpoint.
    pub key: StaticKey,
    /// Admission of clients by their keys.
    pub clients: Clients,
    /// Configuration of accepted connections.
    pub connection: ConnectionConfig,
    /// Whether a server's sender uses the protocol that the client requests. By default listed protocols are permitted.
    pub permit: Permit,
    /// The application's filter, applied to clients that `clients` permits; by default it accepts
    /// all.
    ///
    /// ```
    /// # use narrows_net::Options;
    /// use narrows_transport::endpoint::{Decision, ClientFilter, IncomingClient};
    ///
    /// # fn closed_on_sundays(mut options: Options, is_sunday: fn() -> bool) -> Options {
    /// options.filter = ClientFilter::new(move |client: &IncomingClient<'_>| match is_sunday() {
    ///     true if client.remote.ip().is_loopback() => Decision::Accept,
    ///     true => Decision::Refuse("closed on Sundays".into()),
    ///     false => Decision::Accept,
    /// });
    /// # options
    /// # }
    /// ```
    pub filter: ClientFilter,
    /// Limits on connections and handshakes, in total and per network. When all places are taken, idle connections give
    /// way ([`share`](narrows_transport::endpoint::share)).
    pub limits: EndpointLimits,
    /// Receives and sends at the right time.
    pub driver: Driver,
    /// Observes all datagrams and connections; absent by default.
    pub tap: Option<Arc<dyn Tap>>,
    /// Stores address tokens, with which a connection to a known server needs one round trip. By default in memory, for
    /// the endpoint's lifetime.
    pub token_store: Box<dyn TokenStore>,
    /// Whether a server accepts early data of known clients; by default not. For a stream that [was
    /// early](super::ReceiveStream::is_early), the application must then do only repeatable work.
    pub early_data: bool,
}

impl Options {
    /// An endpoint that only opens connections.
    pub fn client(key: StaticKey, connection: ConnectionConfig) -> Options {
        let clients = Clients::None;
        let limits = EndpointLimits::new(CONNECTIONS);
        let permit = Permit::Listed;
        let driver = Driver::default();
        let filter = ClientFilter::default();
        Options {
            key,
            clients,
            connection,
            permit,
            filter,
            limits,
            driver,
            tap: None,
            token_store: Box::new(MemoryTokens::default()),
            early_data: false,
        }
    }
    /// An endpoint that also accepts connections from `clients`.
    pub fn server(key: StaticKey, clients: Clients, connection: ConnectionConfig) -> Options {
        Options { clients, ..Options::client(key, connection) }
    }
    /// Sets the driver.
    #[must_use]
    pub fn driven_by(self, driver: Driver) -> Options {
        Options { driver, ..self }
    }
    /// Sets an observer.
    #[must_use]
    pub fn tapped(self, tap: Option<Arc<dyn Tap>>) -> Options {
        Options { tap, ..self }
    }
    /// Sets the store of address tokens.
    #[must_use]
    pub fn with_token_store(self, token_store: Box<dyn TokenStore>) -> Options {
        Options { token_store, ..self }
    }
    /// Sets whether a server accepts early data.
    #[must_use]
    pub fn accepting_early_data(self, early_data: bool) -> Options {
        Options { early_data, ..self }
    }
    pub(super) fn port(self, local_port: u16) -> EndpointConfig {
        EndpointConfig {
            key: self.key,
            clients: self.clients,
            connection: self.connection,
            permit: self.permit,
            filter: self.filter,
            limits: self.limits,
            early_data: self.early_data,
            local_port,
        }
    }
}

/// Default time without an answer after which an attempt to connect fails: round trips of 20 s are waited for.
pub const OPENING_TIMEOUT: Duration = Duration::from_secs(25);

/// The configuration of a connection to a server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectOptions {
    /// Expected key of the server.
    pub server_key: ServerKey,
    /// Cipher suite that the client chooses.
    pub suite: Suite,
    /// Timeouts, buffers, protocol and more.
    pub connection: ConnectionConfig,
    /// The attempt fails after this long without an answer. Once the server answers, it may take three times as long.
    pub patience: Duration,
    /// Data of the first stream, [`Connection::early_stream`](super::Connection::early_stream). It leaves with the
    /// first packet if the server is known ([`ServerKey::Is`]) and its stored token permits early data.
    pub early_data: Option<EarlyData>,
}

impl ConnectOptions {
    /// For a server with this key: AES-256-GCM, and [`OPENING_TIMEOUT`].
    pub fn new(server_key: ServerKey, connection: ConnectionConfig) -> ConnectOptions {
        let suite = Suite::Aes256Gcm;
        let patience = OPENING_TIMEOUT;
        ConnectOptions { server_key, suite, connection, patience, early_data: None }
    }
    /// Adds early data, **which must be a repeatable request**.
    #[must_use]
    pub fn with_early_data(self, early_data: EarlyData) -> ConnectOptions {
        ConnectOptions { early_data: Some(early_data), ..self }
    }
}

/// The default configuration with this protocol ([`ConnectionConfig::new`]).
pub fn connection(protocol: Protocol) -> ConnectionConfig {
    ConnectionConfig::new(protocol)
}

/// The system's random number generator.
pub(super) struct System;

impl Entropy for System {
    fn fill(&mut self, bytes: &mut [u8]) {
        // Secrets must never be made from undrawn bytes: wait instead.
        while getrandom::fill(bytes).is_err() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    }
}

/// A new random identity.
///
/// # Errors
/// The system provides no random bytes.
pub fn new_key() -> Result<StaticKey, crate::Error> {
    let mut private = [0; 32];
    getrandom::fill(&mut private).map_err(|e| crate::Error::system(&std::io::Error::other(e)))?;
    StaticKey::new(private).map_err(|e| crate::Error::system(&std::io::Error::other(e)))
}
