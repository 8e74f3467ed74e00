//! The same transfer over the same network in virtual time, by each protocol stack with each of its controllers.

pub mod noq;
mod quic;
pub mod quinn;
pub mod simulated;
mod transfer;

use std::error::Error;
pub use transfer::{Outcome, Test};

/// Runs a transfer with the controller of this name.
pub type Run = fn(&str, &Test) -> Result<Outcome, Box<dyn Error>>;

/// A protocol stack.
#[derive(Debug)]
pub struct Stack {
    /// As in tables and `--only`.
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
