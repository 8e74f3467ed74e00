//! Real clocks and sockets: the only room that has them. It drives in real time what the simulator
//! drives in virtual time.

pub mod block;
pub mod clock;
pub mod endpoint;
pub mod error;
pub mod relay;
pub mod socket;
pub mod wait;

pub use block::{block_on, block_on_for};
pub use clock::Clock;
pub use endpoint::{
    Blocking, ConnectOptions, Connection, Endpoint, Options, ReceiveStream, SendStream,
};
pub use error::Error;
pub use relay::{Relay, RelayStats};
