//! Types that all crates of Narrows share: units, packets, parameters, named random streams.
//!
//! A pure crate: no clock, socket, thread, file or unordered map. It depends on no other crate of
//! Narrows.

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
pub mod window_change;

pub use descriptor::{Descriptor, Param, Settings, Status, Variable};
pub use field::FieldError;
pub use packet::Packet;
pub use random::{RandomKey, RandomStream};
pub use rate::Rate;
pub use replay::ReplayWindow;
pub use run::PacketRun;
pub use spec::{Spec, SpecError};
pub use time::{Duration, Time};
pub use window_change::WindowChange;

/// A state machine: one [`handle`](Machine::handle), then [`poll`](Machine::poll) until it waits.
///
/// Endpoints and links are machines. No machine reads a clock, draws from a global random source or does I/O. A
/// simulation, a socket driver and an emulator differ only in the source of `now` and in how they transmit the output.
///
/// One that returns each input a second later:
///
/// ```
/// use narrows_base::{Duration, Machine, Time};
/// use std::collections::VecDeque;
///
/// #[derive(Default)]
/// struct Echo(VecDeque<(Time, u8)>);
///
/// enum Output {
///     Send(u8),
///     WaitUntil(Time),
/// }
///
/// impl Machine for Echo {
///     type Input = u8;
///     type Output = Output;
///     fn handle(&mut self, now: Time, input: u8) {
///         self.0.push_back((now + Duration::from_secs(1), input));
///     }
///     fn poll(&mut self, now: Time) -> Output {
///         let Some(&(due, byte)) = self.0.front() else { return Output::WaitUntil(Time::NEVER) };
///         if due > now {
///             return Output::WaitUntil(due);
///         }
///         self.0.pop_front();
///         Output::Send(byte)
///     }
/// }
/// ```
pub trait Machine {
    /// An input: a packet, a timeout, a request of the application.
    type Input;
    /// A request to the caller: send a packet, report an event, or wait until a time.
    type Output;
    /// Processes one input at `now`. Time never runs backwards.
    fn handle(&mut self, now: Time, input: Self::Input);
    /// Returns the next output; the caller polls again until the output says to wait.
    fn poll(&mut self, now: Time) -> Self::Output;
}
