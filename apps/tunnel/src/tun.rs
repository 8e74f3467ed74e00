//! `--tun`: the kernel's IP packets, each as a message that expires. Packets are not sent in streams, and not
//! retransmitted.
//!
//! ```text
//! near: | 4 (1) | 0 (3) |
//! far:  | 0 (1) | near's IPv4 (4) | far's IPv4 (4) | near's IPv6 (16) | far's IPv6 (16) |    zeros: none
//! ```
//!
//! The stream stays open while packets are carried; its number is that of the messages' flow.
//!
//! | file | content |
//! |---|---|
//! | `queue` | the queue before the connection: order, marks, drops |
//! | `hand_over` | when packets are passed to the connection |
//! | [`given`] | assignment of addresses to clients |
//! | [`near`], [`far`] | both ends |

#[cfg(test)]
mod bulk_tests;
mod carry;
mod device;
pub mod far;
pub mod given;
mod hand_over;
pub mod near;
mod queue;

use crate::request::HEAD;
pub use ipnet::IpNet;

/// The head of a request for packets.
pub const MARK: [u8; HEAD] = [4, 0, 0, 0];

/// Maximum packet size: a message in a datagram of 1472 bytes has room for it.
pub const MAX_MTU: usize = 1414;
/// Packets up to this size always pass (RFC 8200 section 5), in parts if a message is too short.
pub const MIN_MTU: usize = 1280;
