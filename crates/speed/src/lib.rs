//! Memory to memory over `rrtp`: how fast, at what cost.
//!
//! The client opens a stream and says what it wants in 17 bytes: direction and cargo (1), how many
//! bytes (8; all ones for "until I end it"), how long messages are (8). Data follow on that stream
//! from whoever sends; messages go beside it, and when each has arrived or is lost, the stream ends. Whoever receives tells on the other half of the
//! stream, every 50 ms (each second where little comes) and at the end, what came: bytes in order
//! (8) and nanoseconds since the request (8). Goodput counts from the moment when the client began
//! to connect.

mod client;
mod measurement;
mod request;
mod result;
mod server;
mod sim_vs_real;
mod transfer;
mod worker;

#[cfg(test)]
mod tests;

pub use measurement::{Amount, Direction, MAX_MESSAGE_BYTES, Speed, Traffic};
pub use result::SpeedResult;
pub use server::Server;
pub use sim_vs_real::{Observed, SimVsReal};
