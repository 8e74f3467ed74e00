//! Our endpoint in simulation: packets whose numbers are never reused, under the [packet sender](crate::packet_sender)
//! and the packet receiver (`packet_receiver`) that real connections run on, too, and two kinds of `payload`. *Media*
//! (writes that expire, `waiting`): nothing is sent twice. A reliable *stream* (`stream`, `assembly`): what
//! a lost packet carried is sent again in a new packet, as in QUIC.
//!
//! Numbers start at 0. Every data packet carries its send time, the sender side's feedback, the
//! stream offset of its bytes, and the *ack of ack*: below it, the sender knows every packet's outcome.
//! A report carries the echoed send time (moved forward by the receiver's delay, so that now minus
//! it is the round-trip time of the path alone), the *ACK vector*, which says what arrived between
//! the ack of ack and the highest number (S1 section 5.1.2), the count of ECN marks, and the
//! receiver side's feedback. All fit in what a simulated packet carries, so a vector is at most six
//! runs from the top: what an older part of it would say was said by earlier reports. At
//! worst, every other packet lost, six reports lost in a row make a packet that came count as lost;
//! so may reports that overtake each other by a window. Then a stream's bytes are sent once more.
//!
//! Losses are found as RFC 9002 says, of streams and media alike: see `packet_sender/losses.rs`. S1 section
//! 5.1.3 has a margin of three, one number more than RFC 9002's threshold: its claims hold with either. S4
//! asks for "selective acknowledgments and timeouts" and no more.
//!
//! Reports leave when the packet receiver (`packet_receiver`)'s ACK policy says so and when the controller's receiver side does. Papers
//! about media know less: TFRC's receiver reports once per round trip, TFWC's for every packet, and no window
//! is paced. In preset `ns2` media do so, too (`ack-every`, `window-pacing`). S1's fairness needs the
//! latter: TFWC that is paced takes from TCP on a short queue what bursts would have lost.
//!
//! A simulated stream is opened as a real connection is (`handshake`), and its packets have the bytes of
//! sealed ones. Encryption itself, several streams and flow control are the real connection's
//! (`crate::connection`); media begin at once, as in ns-2.

mod assembly;
pub(crate) mod handshake;
mod payload;
mod stream;

pub mod config;
pub mod header;
pub mod receiver;
pub mod sender;

mod waiting;

pub use config::{DatagramConfig, FeedbackConfig};
pub use receiver::Receiver;
pub use sender::Sender;

#[cfg(test)]
mod outcomes_tests;
#[cfg(test)]
mod pacing_tests;
#[cfg(test)]
mod stream_mode_tests;
