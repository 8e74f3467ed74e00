//! Datagrams: the unreliable mode of `rrtp`. Nothing is sent twice.
//!
//! Sequence numbers start at 0 and are never reused. Every data packet carries its send time, the
//! sender half's advice and the *ack of ack*: below it, the sender knows every packet's fate. A
//! report carries the echoed send time (moved forward by the receiver's delay, so that now minus
//! it is the round-trip time of the path alone), the *ACK vector*, which says what arrived between
//! the ack of ack and the highest number (S1 section 5.1.2), the count of ECN marks, and the
//! receiver half's advice. Both fit in the 24 bytes that a simulated packet carries, so a vector
//! is at most twelve run lengths from the top: what an older part of it would say was said by
//! earlier reports. At worst, every other packet lost, six reports lost in a row make a packet that
//! came count as lost; so may reports that overtake each other by a window. A packet is lost when it is absent and the packet four numbers above it, or a
//! later one, has arrived: a margin of three (S1 section 5.1.3).
//!
//! Not here yet, because it belongs to the connection and not to its controller: the handshake,
//! encryption, streams and their repair. So the first data packet needs no round trip before it,
//! as in ns-2.

pub mod config;
pub mod header;
pub mod receiver;
pub mod sender;

mod waiting;

pub use config::DatagramConfig;
pub use receiver::Receiver;
pub use sender::Sender;

#[cfg(test)]
mod fates_tests;
#[cfg(test)]
mod pacing_tests;
