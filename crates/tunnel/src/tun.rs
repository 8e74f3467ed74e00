//! `--tun`: the kernel's IP packets, each as a message that expires. None is within a stream, and none is sent again.
//!
//! ```text
//! near: | 4 (1) | 0 (3) |
//! far:  | 0 (1) | near's IPv4 (4) | far's IPv4 (4) | near's IPv6 (16) | far's IPv6 (16) |    zeros: none
//! ```
//!
//! The stream stays open for as long as packets are carried; its number is that of the messages' flow.
//!
//! | file | what |
//! |---|---|
//! | [`packet`] | what of a packet's headers is read |
//! | `queue` | which packets wait for the connection, and which are marked or dropped |
//! | `hand_over` | when they become the connection's |
//! | [`too_big`] | what its sender is told |
//! | [`given`] | who has which address |
//! | [`near`], [`far`] | both ends |

#[cfg(test)]
mod bulk_tests;
mod carry;
mod device;
pub mod far;
pub mod given;
mod hand_over;
pub mod near;
pub mod packet;
mod queue;
pub mod too_big;

use crate::request::HEAD;
pub use ipnet::IpNet;

/// The head of the request.
pub const MARK: [u8; HEAD] = [4, 0, 0, 0];

/// Longest packet: a message in a datagram of 1472 bytes has room for it.
pub const MAX_MTU: usize = 1414;
/// Every packet as long as this passes (RFC 8200 section 5), in parts if a message is too short.
pub const MIN_MTU: usize = 1280;
