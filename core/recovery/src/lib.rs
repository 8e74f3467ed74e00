//! Packet sender and packet receiver as pure state machines, for the connections of `narrows_transport` and for
//! simulations: packet numbers and their outcomes, loss detection, RTT, pacing, reports, and the timers of a handshake.
//!
//! A [packet sender](packet_sender) drives one congestion controller and knows nothing of the contents of its packets. A
//! [protocol](protocol::Protocol) names the controller, and configures both ends.

pub mod handshake;
pub mod loss_classifier;
pub mod packet_receiver;
pub mod packet_sender;
pub mod protocol;
pub mod ranges;
pub mod rtt;
pub mod scheduled_path;
