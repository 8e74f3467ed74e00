//! Measures memory-to-memory transfers over `rrtp`: throughput and CPU cost.
//!
//! The client opens a stream and sends a request of 17 bytes: direction and kind of payload (1), number of bytes (8;
//! all ones for "until I end it"), length of messages (8). The sender's data follow on that stream; messages are sent
//! beside it, and the stream ends when each of them has arrived or is lost. The receiver reports on the other half of
//! the stream, every 50 ms (every second if little arrives) and at the end: bytes received in order (8) and nanoseconds
//! since the request (8). Goodput is counted from the moment when the client began to connect.

mod client;
#[cfg(target_os = "linux")]
mod kernel_tcp;
mod measurement;
mod request;
mod result;
mod server;
mod sim_vs_real;
mod transfer;
mod worker;

#[cfg(test)]
mod tests;

pub use client::OpenConnection;
#[cfg(target_os = "linux")]
pub use kernel_tcp::KernelTcp;
pub use measurement::{
    Amount, MAX_MESSAGE_BYTES, MeasurementTaps, Speed, SpeedDirection, TrafficKind,
};
pub use result::SpeedResult;
pub use server::SpeedServer;
pub use sim_vs_real::{MeasuredRun, SimVsReal, between};
