//! TCP, segment by segment: the sender, the receiver, and loss recovery.
//!
//! Segments are numbered from 0, which is the SYN. A segment keeps its bytes, so a retransmission repeats exactly the
//! same data. The controller determines the window.
//!
//! Recovery `rack` with its timers, PRR and F-RTO is that of today's Linux; the others are older.
//!
//! Deliberately left out: data in both directions on one connection, the FIN exchange, urgent data, window scaling.

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

pub use receiver::TcpReceiver;
pub use sender::TcpSender;
