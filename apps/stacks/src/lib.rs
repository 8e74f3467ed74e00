//! The same transfer over the same network in virtual time, by each protocol stack with each of its controllers.

pub mod noq;
mod quic;
pub mod quinn;
pub mod simulated;

use std::error::Error;
use std::time::Duration;

/// A transfer of one stream.
#[derive(Clone, Debug)]
pub struct Test {
    /// As for `narrows compare --link`.
    pub link: String,
    /// Bytes to send; [`u64::MAX`] for as many as fit into the time.
    pub bytes: u64,
    /// The run ends after this time.
    pub limit: Duration,
    /// Seed of the link's draws.
    pub seed: u64,
}

/// How a transfer went.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// Bits of the stream that the receiver read in a second, from the first packet of the handshake on.
    pub goodput_bps: f64,
    /// Whether all bytes arrived and were acknowledged.
    pub is_done: bool,
    /// Mean of the sender's smoothed RTT.
    pub rtt: Duration,
    /// Mean time in the queue in seconds.
    pub queueing: f64,
    /// Packets that the queue dropped.
    pub dropped: u64,
    /// Packets that the sender found lost.
    pub lost: u64,
    /// Packets that it sent.
    pub sent: u64,
}

/// Runs a transfer with the controller of this name.
pub type Run = fn(&str, &Test) -> Result<Outcome, Box<dyn Error>>;

/// A protocol stack.
#[derive(Debug)]
pub struct Stack {
    /// Its name.
    pub name: &'static str,
    /// Names of its controllers.
    pub controllers: fn() -> Vec<String>,
    /// Runs a transfer with one of them.
    pub run: Run,
}

/// All stacks.
pub const STACKS: [Stack; 3] = [
    Stack { name: "quinn", controllers: quinn::names, run: quinn::run },
    Stack { name: "noq", controllers: noq::names, run: noq::run },
    Stack {
        name: "simulated",
        controllers: || simulated::PROTOCOLS.map(String::from).to_vec(),
        run: simulated::run,
    },
];
