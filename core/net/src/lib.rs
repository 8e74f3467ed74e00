//! Real clocks and UDP sockets. This crate drives in real time the state machines that the simulator drives in virtual
//! time, and does not change the protocols.
//!
//! | module | content |
//! |---|---|
//! | [`endpoint`] | connections over one UDP socket, for applications: streams, messages, statistics |
//! | [`dial`] | connecting to the first of a name's addresses that answers |
//! | [`probe`] | estimates of the path to a server: rate, delay, losses, jitter, buffer |
//! | [`relay`] | a UDP link emulator built from the simulator's links |
//! | [`socket`] | UDP with segmentation offload, coalesced receiving, ECN, time stamps |
//! | [`ip_packet`] | IP headers, and ICMP errors for packets that are too large |
//! | [`tap`] | for recordings: an observer is passed every datagram of an endpoint's socket |
//! | [`wait`] | waiting for sockets, a wake-up, a time in nanoseconds |
//! | [`clock`] | the monotonic clock as [`narrows_base::Time`] |
//!
//! ```no_run
//! use narrows_net::{ConnectOptions, Endpoint, Options, block_on, endpoint};
//! use narrows_transport::{Protocol, endpoint::{Clients, ServerKey}};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let protocol = Protocol::with_controller("bbr")?;
//! let config = endpoint::connection(protocol);
//! let identity = endpoint::new_key()?;
//! let expected = ServerKey::Is(*identity.public());
//! let options = Options::server(identity, Clients::Any, config.clone());
//! let server = Endpoint::bind("[::1]:4433".parse()?, options)?;
//!
//! let options = Options::client(endpoint::new_key()?, config.clone());
//! let client = Endpoint::bind("[::1]:0".parse()?, options)?;
//! block_on(async {
//!     let options = ConnectOptions::new(expected, config);
//!     let connection = client.connect(server.local_addr(), options).await?;
//!     let mut stream = connection.open_uni().await?;
//!     stream.send_all(b"hello").await?;
//!     stream.arrived().await
//! })?;
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `runtime-tokio`, an endpoint that is bound within a tokio runtime is driven by a task of that
//! runtime, so that a request wakes no other thread. Otherwise it has a thread of its own. `Options::driven_by` chooses
//! ([`Driver`]).
//!
//! **Systems.** Tested on Linux only (kernel 6.18). Elsewhere the libraries fall back: no segmentation offload if the
//! system lacks it, `poll` in milliseconds instead of `ppoll`, and a socket connected to itself instead of an eventfd.
//! These fallbacks have not been tested.
//!
//! **Accuracy.** A wake-up is late by 20 to 70 us on an idle machine and by milliseconds on a busy one. The kernel
//! time-stamps received datagrams, and connections and links use these times. A relay records how late it sends
//! ([`relay::Lateness`]).

pub mod block;
pub mod clock;
pub mod dial;
pub mod endpoint;
pub mod error;
pub mod ip_packet;
mod local_path;
pub mod openings;
pub mod probe;
mod reachable;
mod refusals;
pub mod relay;
pub mod socket;
pub mod tap;
mod threads;
pub mod wait;
mod wildcard;

pub use block::{block_on, block_on_for};
pub use clock::Clock;
pub use endpoint::{
    Blocking, ConnectOptions, Connection, Driver, Endpoint, OPENING_TIMEOUT, Options,
    ReceiveStream, SendStream, WeakConnection,
};
pub use error::{Error, SystemError};
pub use local_path::LocalPath;
pub use narrows_transport::endpoint::{EarlyData, MemoryTokens, TokenStore};
pub use narrows_wire::{ApplicationProtocolError, ApplicationProtocols, Token};
pub use reachable::reachable;
pub use relay::{Relay, RelayStats};
pub use threads::has_threads_for_runtime;
pub use wildcard::tcp_listener;

/// Compiles the README's Rust examples.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
