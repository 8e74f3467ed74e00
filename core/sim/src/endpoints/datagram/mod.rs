//! rrtp's endpoint in simulation: the [packet sender](narrows_recovery::packet_sender) and the packet receiver (`packet_receiver`)
//! that real connections use, with packet numbers that are never reused and two kinds of `payload`. *Media* (writes
//! that expire, `waiting`) are not retransmitted. The data of a reliable *stream* (`stream`, `assembly`) in a lost
//! packet are sent again in a new packet, as in QUIC.
//!
//! Numbers start at 0. Every data packet carries its send time, the sender side's feedback, the stream offset of its
//! bytes, and the *ack of ack*: below it, the sender has every packet's outcome. A report carries:
//!
//! - the echoed send time, moved forward by the receiver's delay, so that now minus it is the RTT of the path alone;
//! - the *ACK vector*: which packets arrived between the ack of ack and the highest number (Choi 2006 section 4.2.2);
//! - the count of ECN marks;
//! - the receiver side's feedback.
//!
//! All must fit in a simulated packet's fields, so a vector has at most six runs, the highest ones; earlier reports
//! covered the rest. In the worst case, with every other packet lost, six consecutive lost reports make a packet that
//! arrived count as lost, and so may reports that are reordered by a window. A stream's bytes are then sent once more.
//!
//! Losses are detected as in RFC 9002, for streams and media alike: see `packet_sender/losses.rs`. Choi 2006 section
//! 4.2.2 has a margin of three, one number more than RFC 9002's threshold; its claims hold with either. Jayaram 2001
//! specifies "selective acknowledgments and timeouts" and no more.
//!
//! Reports are sent when the packet receiver (`packet_receiver`)'s ACK policy or the controller's receiver side
//! requires it. Papers about media have simpler policies: TFRC's receiver reports once per round trip, TFWC's for every
//! packet, and no window is paced. In preset `ns2` media do the same (`ack-every`, `window-pacing`). The fairness
//! results of Choi 2006 depend on the latter: behind a short queue a paced TFWC avoids the losses of bursts and takes
//! that share from TCP.
//!
//! In the RRTP thesis the receiver requests lost packets by NACKs with a timer each. With `recovery=nack` a simulated
//! stream does so (`nack`), for comparison; connections do not.
//!
//! A simulated stream opens with the handshake of a real connection (`handshake`), and its packets have the bytes of
//! encrypted ones. Encryption itself, several streams and flow control are in the real connection
//! (`narrows_transport::connection`). Media begin at once, as in ns-2.

pub(in crate::endpoints) mod assembly;
pub(crate) mod frame_queue;
mod handshake;
mod nack;
pub(in crate::endpoints) mod path;
mod payload;
pub(in crate::endpoints) mod stream;

pub mod header;
pub mod receiver;
pub mod sender;

mod waiting;

pub use receiver::DatagramReceiver;
pub use sender::DatagramSender;

#[cfg(test)]
mod nack_mode_tests;
#[cfg(test)]
mod outcomes_tests;
#[cfg(test)]
mod pacing_tests;
#[cfg(test)]
mod stream_mode_tests;
