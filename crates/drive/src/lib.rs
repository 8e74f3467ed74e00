//! Real clocks and sockets: the only room that has them. It drives in real time what the simulator
//! drives in virtual time.

pub mod clock;
pub mod error;
pub mod relay;
pub mod socket;
pub mod wait;

pub use clock::Clock;
pub use error::Error;
pub use relay::{Relay, RelayStats};
