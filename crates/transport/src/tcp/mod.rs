//! TCP, segment by segment: the sender, the receiver, and loss recovery.
//!
//! Segments are numbered from 0, which is the SYN; a segment keeps its bytes for life, so a
//! retransmission repeats exactly what was sent. The controller determines the window.
//!
//! Recovery `rack` with its timers, PRR and F-RTO is that of today's Linux; the others are older.
//!
//! Not here, on purpose: data both ways on one connection, the FIN exchange, urgent data, window
//! scaling.

pub mod config;
pub mod receiver;
pub mod sender;

mod ecn;
mod prr;
mod recovery;
mod scoreboard;

#[cfg(test)]
mod ecn_tests;
#[cfg(test)]
mod pair;

pub use config::{MAX_WINDOW, Preset, RecoveryKind, TcpConfig};
pub use receiver::Receiver;
pub use sender::Sender;
