//! An endpoint: all connections of one UDP socket, and their handshakes. Pure: a driver passes in datagrams, time and
//! randomness, and sends the resulting datagrams.
//!
//! | task | module |
//! |---|---|
//! | store connections, and call each when its timer is due | `connections`, with `table`, `connection_state` and `alarms` |
//! | methods for the application | `calls` |
//! | let connections send in turn | `outgoing` |
//! | dispatch received datagrams | `incoming`, with `paths` and `path_ids` for connections with several paths |
//! | open a connection as the client | `connecting`, with `narrows_recovery::handshake` |
//! | accept a connection as the server: cookies, address tokens, handshakes and their limits, the application's filter | `handshake_gate`, `used_tokens`, `handshake_rate`, `accepting`, `accepted`, `accept_filter` |
//! | accept early data | `early` |
//! | keep tokens from servers | `token_store` |
//! | share places among clients when all are taken | `admission`, with `activity`, `client_counts`, [`share`], [`source`] |
//!
//! State that unauthenticated packets can create: for a SYN only a reply in a queue of 256; for a START with a valid
//! cookie a handshake. There are at most [`EndpointLimits::handshakes`], each for at most 10 s. An idle connection
//! costs work only when its timer fires.
//!
//! If a connection's congestion controller (or another part of it) panics, only that connection ends. It is not called
//! again, and the application gets the controller's name.

use crate::connection::Connection;

mod accept_filter;
mod accepted;
mod accepting;
mod activity;
mod admission;
mod alarms;
mod calls;
mod client_counts;
mod config;
mod connecting;
mod connection_state;
mod connections;
mod early;
mod handshake_gate;
mod handshake_rate;
mod hello;
mod incoming;
mod limits;
mod managed;
mod outgoing;
mod path_ids;
mod paths;
pub mod share;
pub mod source;
mod table;
mod token_store;
mod tries;
mod used_tokens;

#[cfg(test)]
mod accept_filter_tests;
#[cfg(test)]
mod amplification_tests;
#[cfg(test)]
mod application_tests;
#[cfg(test)]
mod attackers;
#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod connecting_tests;
#[cfg(test)]
mod early_tests;
#[cfg(test)]
mod half_open_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod panic_tests;
#[cfg(test)]
mod paths_tests;
#[cfg(test)]
mod race_tests;
#[cfg(test)]
mod ready_tests;
#[cfg(test)]
mod sharing_tests;
#[cfg(test)]
mod stub;
#[cfg(test)]
mod token_tests;
#[cfg(test)]
mod whole_tests;

pub use crate::connection::{EarlyData, NewConnection};
pub use accept_filter::{AcceptFilter, ClientFilter, Decision, IncomingClient};
pub use calls::Facts;
pub use config::{Clients, ConnectRequest, EndpointConfig, Entropy, Handle, Permit, ServerKey};
pub use connections::Connections;
pub use limits::EndpointLimits;
pub use managed::ManagedConnection;
pub use token_store::{MemoryTokens, TokenStore};

/// All connections of one socket.
pub type Endpoint = Connections<Connection>;
