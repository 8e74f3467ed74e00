//! What all crates of Narrows share: units, packets, parameters, named random streams.
//!
//! A pure crate: no clock, socket, thread, file or unordered map. It uses no other crate of
//! Narrows, so everything here may be used everywhere.

pub mod descriptor;
pub mod field;
pub mod list;
pub mod math;
pub mod packet;
pub mod random;
pub mod rate;
pub mod replay;
pub mod run;
pub mod spec;
pub mod text;
pub mod time;
pub mod units;

pub use descriptor::{Descriptor, Param, Settings, Status, Variable};
pub use field::FieldError;
pub use packet::Packet;
pub use random::{RandomKey, RandomStream};
pub use rate::Rate;
pub use replay::ReplayWindow;
pub use run::Run;
pub use spec::{Spec, SpecError};
pub use time::{Duration, Time};

/// A state machine: one [`handle`](Machine::handle), then [`poll`](Machine::poll) until it waits.
///
/// Endpoints and links are machines. None reads a clock, draws from a global random source or
/// does I/O: a simulation, a socket driver and an emulator differ only in who supplies `now` and
/// carries what comes out.
pub trait Machine {
    /// What can happen to it: a packet, a timeout, a request of the application.
    type Input;
    /// What the caller is to do: send a packet, report an event, or wait until a time.
    type Output;
    /// Takes in one input at `now`, which never runs backwards.
    fn handle(&mut self, now: Time, input: Self::Input);
    /// Gives one output; the caller polls again until the output says to wait.
    fn poll(&mut self, now: Time) -> Self::Output;
}
