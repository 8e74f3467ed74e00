//! The binary format of `rrtp` over UDP, and its sealing. `docs/rrtp.md` has every layout. Connections and endpoints
//! are in crate `transport`.
//!
//! Pure: no clock, no socket, no random source; time and randomness are arguments. Decoding never panics. It borrows
//! from the packet, and makes no allocation of a size that a peer controls.
//!
//! | to | see |
//! |---|---|
//! | distinguish packets, write those of the handshake | [`packet`] |
//! | respond to a SYN without keeping state | [`cookie`] |
//! | recognise a client's address without a SYN | [`token`] |
//! | agree on keys | [`noise`] ([`noise::early`] with early data), with both ends' parameters in [`params`] and [`application`] |
//! | seal and open a data packet | [`seal`], its header in [`header`], its keys in [`keys`] |
//! | read and write what is inside | [`frame`], [`prelude`], [`report`], [`writer`] |

pub mod application;
pub mod bytes;
pub mod cookie;
pub mod frame;
pub mod header;
#[cfg(feature = "hostile")]
pub mod hostile;
#[cfg(any(test, feature = "hostile"))]
pub mod keyless;
pub mod keys;
pub mod noise;
pub mod packet;
pub mod params;
mod path_keys;
pub mod prelude;
pub mod prf;
pub mod repair;
pub mod report;
pub mod reset;
pub mod seal;
pub mod token;
pub mod writer;

pub use application::{ApplicationProtocolError, ApplicationProtocols};
pub use bytes::{BufferFull, Malformed};
pub use cookie::{Cookie, CookieSecrets};
pub use frame::{Frame, Frames};
pub use header::ConnectionId;
pub use keys::Suite;
pub use noise::early::{EarlyHandshake, EarlyRequest};
pub use noise::{ClientHandshake, Established, HandshakeError, ServerHandshake, StaticKey};
pub use packet::ParsedPacket;
pub use params::{Hello, Params};
pub use path_keys::{PathKeys, PathSecrets};
pub use prelude::Prelude;
pub use repair::RepairFields;
pub use report::{PacketRun, Report, ReportReason};
pub use seal::{OpenError, Opener, SealError, Sealer};
pub use token::{Token, TokenSecrets};
pub use writer::FrameWriter;

#[cfg(test)]
mod handshake_tests;
#[cfg(test)]
mod vectors_tests;

/// The version number in every long packet: the letters `RRT` and the number 1.
pub const VERSION: u32 = 0x5252_5401;
