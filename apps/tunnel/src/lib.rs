//! A tunnel: any TCP or UDP program over one `rrtp` connection, to targets that the far side permits.
//!
//! | to | see |
//! |---|---|
//! | run the far side | [`server`] |
//! | connect to it, and stay connected | [`client`](client::Tunnel::keep) |
//! | carry datagrams over TCP where UDP is blocked | [`over_tcp`] |
//! | forward local ports | [`forward`], for datagrams [`datagrams`] |
//! | let the far side listen for the near side | [`reverse`] |
//! | connect the standard streams | [`stdio`] |
//! | carry the kernel's packets | [`tun`] |
//! | run a proxy | [`socks`], [`http`] |
//! | check targets at the far side | [`allow`], [`address`] |
//! | replace permissions while it runs | [`permissions`] |
//! | limit clients' open connections | [`limits`], [`descriptors`] |
//! | read the format | [`request`], [`flow`], [`parts`], [`hints`] |
//! | call these from a program without an async runtime | [`blocking`] |
//!
//! `docs/tunnel.md` describes the command.

pub mod address;
pub mod allow;
pub mod blocking;
pub mod client;
mod connected_client;
pub mod connection;
pub mod datagrams;
pub mod descriptors;
pub mod dial;
pub mod flow;
pub mod forward;
mod head;
pub mod hints;
pub mod http;
mod keep;
mod learning;
pub mod limits;
pub mod listen;
pub mod over_tcp;
pub mod parts;
mod peer;
pub mod permissions;
pub mod pipe;
mod places;
pub mod request;
pub mod reverse;
pub mod server;
mod shared;
pub mod socks;
pub mod stdio;
pub mod tun;

#[cfg(test)]
mod both_ends;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod outage_tests;
#[cfg(test)]
mod proxy_tests;
#[cfg(test)]
mod reload_tests;
#[cfg(test)]
mod reverse_tests;
#[cfg(test)]
mod test_path;
#[cfg(all(test, target_os = "linux"))]
mod tun_tests;
#[cfg(test)]
mod tunnel_tests;
