//! TCP, segment by segment: the sender, the receiver, and loss recovery.
//!
//! Segments are numbered from 0, which is the SYN; a segment keeps its bytes for life, so a
//! retransmission repeats exactly what was sent. The controller determines the window.
//!
//! Not here, on purpose: data both ways on one connection, the FIN exchange, urgent data, window
//! scaling, PRR (RFC 6937) and RACK (RFC 8985).

pub mod config;
pub mod receiver;
pub mod sender;

mod ecn;
mod recovery;
mod scoreboard;

#[cfg(test)]
mod ecn_tests;
#[cfg(test)]
mod pair;

pub use config::{MAX_WINDOW, Preset, RecoveryKind, TcpConfig};
pub use receiver::Receiver;
pub use sender::Sender;
