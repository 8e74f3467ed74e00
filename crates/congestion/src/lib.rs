//! Congestion controllers: one file each, and the list.
//!
//! A controller gets events (packets sent, acknowledgements, losses, start and end of a recovery,
//! slow-start restarts, ticks) and returns its [`SendLimits`]. It never chooses which segment is sent
//! and never retransmits: recovery does, in the crate `transport`. Controllers count windows in
//! segments as real numbers, as papers do.
//!
//! To add one: a file here, its `mod` line and its entry in [`list`]. See
//! `docs/adding-a-controller.md`.

pub mod event;
pub mod feedback;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod list;

mod bbr;
mod bbr3;
mod brutal;
mod copa;
mod cubic;
mod fixed;
mod illinois;
mod jersey;
mod ledbat;
mod prague;
mod rap;
mod reno;
mod rrtp;
mod rrtp_lasthop;
mod stpd;
mod tear;
mod tear_wireless;
mod tfrc;
mod tfwc;
mod vegas;
mod veno;
mod westwood;
mod westwood_plus;

// Shared by controllers: mathematics and parts, not controllers.
mod acked_count;
mod equation;
mod extreme;
mod fuzzy;
mod hystart;
mod linux;
mod path_hints;
mod variables;

#[cfg(test)]
mod list_tests;

/// The file that `docs/adding-a-controller.md` shows, in the place where the page puts it.
#[cfg(test)]
#[path = "../../narrows/examples/my_controller/gentle.rs"]
mod gentle;
#[cfg(test)]
extern crate self as narrows_congestion;

#[cfg(test)]
mod scenario;
#[cfg(test)]
mod scenario_path;

pub use event::{
    Ack, CongestionEvent, Dispersion, Loss, LossFoundBy, PacketOutcome, PathEvent, RateSample,
    RecoveryCause, RecoveryEvent, Sent, SlowStartRestart, SpuriousLosses, positive,
};
pub use feedback::{Arrival, Feedback, ReceiverSide};
pub use list::{CONTROLLERS, ControllerEntry, find};
pub use path_hints::{HintSource, PathHints};

use narrows_base::{Rate, Time};

/// How much may be in flight, and how fast it may be sent.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SendLimits {
    /// Window in segments; the endpoint sends while what is outstanding is below its whole part.
    /// [`f64::INFINITY`] is no limit.
    pub cwnd: f64,
    /// Pacing rate in bit/s on the wire; `None` sends as acknowledgements come.
    pub pacing_rate: Option<Rate>,
    /// Slow-start threshold in segments, if there is one: a window below it may double within a round trip,
    /// so an endpoint that paces windows leaves it room for that.
    pub ssthresh: Option<f64>,
}

impl SendLimits {
    /// A window without pacing.
    pub const fn unpaced(cwnd: f64) -> SendLimits {
        SendLimits { cwnd, pacing_rate: None, ssthresh: None }
    }
    /// A window, infinite where the rate alone limits, and a pacing rate.
    pub const fn paced(cwnd: f64, rate: Rate) -> SendLimits {
        SendLimits { cwnd, pacing_rate: Some(rate), ssthresh: None }
    }
    /// ... with a slow-start threshold.
    pub const fn with_ssthresh(self, segments: f64) -> SendLimits {
        SendLimits { ssthresh: Some(segments), ..self }
    }
}

/// What a controller needs of the transport that runs it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requirements {
    /// It needs rrtp and cannot run over TCP: it learns of losses by
    /// [`on_packet_outcome`](Controller::on_packet_outcome) or from its receiver side, neither of which TCP has.
    pub rrtp: bool,
    /// It notices by its own ticks that nothing comes back. The sender then reports no restart after
    /// persistent congestion, and lets nothing leave against its will (a recovery's first packet, a
    /// probe) before two seconds of silence.
    pub own_timer: bool,
    /// Its packets are ECT(1) (RFC 9331): it reacts to every mark, in proportion, and so needs to be told of each
    /// (accurate ECN), which rrtp does.
    pub l4s: bool,
}

impl Requirements {
    /// rrtp's packet outcomes or receiver side.
    pub const RRTP: Requirements = Requirements { rrtp: true, own_timer: false, l4s: false };
    /// ... and a timer of its own.
    pub const OWN_TIMER: Requirements = Requirements { rrtp: true, own_timer: true, l4s: false };
    /// rrtp's count of marks, and ECT(1) on every packet.
    pub const L4S: Requirements = Requirements { rrtp: true, own_timer: false, l4s: true };
}

/// What a controller is built with.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Environment {
    /// Initial window in segments.
    pub initial_window: f64,
    /// Initial slow-start threshold in segments; infinite in practice.
    pub initial_ssthresh: f64,
    /// Bytes of a full data packet on the wire.
    pub packet_bytes: u32,
    /// What "half" is half of at a loss.
    pub halve: Halve,
    /// Whether the scenario asks for ns-2's variants: controllers that ns-2 implements otherwise than
    /// their RFC follow ns-2, unless a parameter says which.
    pub ns2: bool,
    /// Seed for controllers that draw (BBR's probing phase).
    pub random_key: narrows_base::RandomKey,
    /// What is known of the path.
    pub hints: PathHints,
}

impl Default for Environment {
    /// Preset `rfc` at 1000-byte packets.
    fn default() -> Environment {
        Environment {
            initial_window: 4.0,
            initial_ssthresh: f64::INFINITY,
            packet_bytes: 1000,
            halve: Halve::Flight,
            ns2: false,
            random_key: narrows_base::RandomKey::from_seed(1),
            hints: PathHints::default(),
        }
    }
}

/// What a loss halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Halve {
    /// FlightSize (RFC 5681 equation 4).
    Flight,
    /// cwnd, and ssthresh is the whole part of the half (ns-2).
    Window,
}

impl Halve {
    /// The new (cwnd, ssthresh) for a loss with `flight` segments in flight.
    pub fn apply(self, cwnd: f64, flight: u64) -> (f64, f64) {
        match self {
            Halve::Flight => {
                let half = (flight as f64 / 2.0).max(2.0);
                (half, half)
            }
            Halve::Window => {
                let half = (cwnd / 2.0).max(1.0);
                (half, half.floor().max(2.0))
            }
        }
    }
}

/// The sender side of a controller.
///
/// Everything but [`on_ack`](Controller::on_ack) and [`send_limits`](Controller::send_limits) has an
/// empty default; `#[derive(Clone)]` is required, so that a running controller can be copied. The order within
/// one acknowledgement: `on_packet_outcome` for each packet, `on_ack`, then `on_congestion_event` for what it
/// revealed: the losses, then a recovery's end or start or a restart, marks last. `on_ack` during recovery has
/// `Ack::in_recovery` set, the acknowledgement that ends the recovery included.
pub trait Controller: CloneController + Send {
    /// An acknowledgement came: every one, duplicates included.
    fn on_ack(&mut self, ack: &Ack);
    /// How much may be in flight, how fast.
    fn send_limits(&self) -> SendLimits;

    /// A packet left.
    fn on_sent(&mut self, _sent: &Sent) {}
    /// One packet arrived or was lost (rrtp only, where packet numbers are never reused): called once for
    /// each, in the order of their numbers.
    fn on_packet_outcome(&mut self, _outcome: &PacketOutcome) {}
    /// Losses were found, a recovery begins or ends, or slow start begins again.
    fn on_congestion_event(&mut self, _event: &CongestionEvent) {}
    /// More is known of the path, or it has changed.
    fn on_path_event(&mut self, _now: Time, _event: &PathEvent) {}
    /// The time asked for by [`next_tick`](Controller::next_tick) has come.
    fn on_tick(&mut self, _now: Time) {}
    /// When [`on_tick`](Controller::on_tick) is wanted; [`Time::NEVER`] if not.
    fn next_tick(&self) -> Time {
        Time::NEVER
    }
    /// Feedback to the receiver side that the next packet carries.
    fn feedback_to_receiver(&self) -> Feedback {
        Feedback::NONE
    }
    /// What it needs of the transport, the same for its whole life.
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }
    /// Passes its estimates and its state to `put`, for time series. Each name is that of one of its
    /// entry's [`variables`](ControllerEntry::variables).
    fn watch(&self, _put: &mut dyn FnMut(&'static str, f64)) {}
}

/// Copies a controller behind a pointer; every [`Controller`] that is [`Clone`] has it.
pub trait CloneController {
    /// A copy with all estimates and timers.
    fn clone_box(&self) -> Box<dyn Controller>;
}

impl<C: Controller + Clone + 'static> CloneController for C {
    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Controller> {
    fn clone(&self) -> Box<dyn Controller> {
        (**self).clone_box()
    }
}

/// A smoothed value `old + gain (new - old)`, started by its first sample.
pub fn smooth(old: &mut Option<f64>, new: f64, gain: f64) -> f64 {
    let value = old.map_or(new, |o| o + gain * (new - o));
    *old = Some(value);
    value
}

/// Widest window in segments, and fastest rate: far beyond any path, and still exact in a float.
const MAX_CWND: f64 = 1e15;

/// `value` within `[least, 10^15]`; NaN becomes `least`. Every window passes through here, so that
/// no chain of legal events makes one infinite.
fn bounded(value: f64, least: f64) -> f64 {
    value.max(least).min(MAX_CWND)
}
