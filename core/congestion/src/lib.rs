//! Congestion controllers: one file each, and the list.
//!
//! A controller receives events (packets sent, acknowledgements, losses, start and end of a recovery, slow-start
//! restarts, ticks) and returns its [`SendLimits`]. Which segments are sent or retransmitted is decided by loss
//! recovery in the crates `recovery` and `sim`. Controllers count windows in segments as real numbers, as papers do.
//!
//! To add one: a file here, its `mod` line and its entry in [`list`]. See `docs/adding-a-controller.md`.

pub mod event;
pub mod feedback;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
pub mod layers;
pub mod list;
pub mod multicast;

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
pub mod quic;
mod rap;
mod reno;
pub mod round_trips;
mod rrtp;
mod rrtp_lasthop;
mod scream;
pub mod stpd;
mod tear;
mod tear_wireless;
mod tfrc;
mod tfwc;
mod vegas;
mod veno;
mod westwood;
mod westwood_plus;

// Mathematics and parts shared by several controllers.
mod acked_count;
mod equation;
mod extreme;
mod fuzzy;
mod hystart;
mod linux;
pub mod packet_train;
mod path_hints;
mod reordering;
mod undo;
pub mod variables;

#[cfg(test)]
mod list_tests;

/// The file that `docs/adding-a-controller.md` shows, in the place where the page puts it.
#[cfg(test)]
#[path = "../../../apps/narrows/examples/my_controller/gentle.rs"]
mod gentle;
#[cfg(test)]
extern crate self as narrows_congestion;

#[cfg(test)]
mod scenario;
#[cfg(test)]
mod scenario_path;

pub use event::{
    Ack, CongestionEvent, CumulativeAck, Dispersion, Loss, LossFoundBy, PacketOutcome, PathEvent,
    RateSample, RecoveryCause, RecoveryEvent, RttEstimate, Sent, SlowStartRestart, SpuriousLosses,
    positive,
};
pub use feedback::{Arrival, Feedback, ReceiverSide};
pub use list::{CONTROLLERS, ControllerEntry, SimulationScope, find};
pub use path_hints::{HintSource, PathHints};
pub use stpd::gains as stpd_gains;

use narrows_base::{Rate, Time};
use std::any::Any;

/// Limits of a sender: packets in flight, and sending rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SendLimits {
    /// Window in segments: the endpoint sends while the outstanding segments are fewer than its
    /// integer part. [`f64::INFINITY`] means no limit.
    pub cwnd: f64,
    /// Pacing rate in bit/s on the wire; `None` for ACK clocking without pacing.
    pub pacing_rate: Option<Rate>,
    /// Slow-start threshold in segments, if any. A window below it may double within a round trip, so an endpoint that
    /// paces by the window must allow for that.
    pub ssthresh: Option<f64>,
}

impl SendLimits {
    /// A window without pacing.
    pub const fn unpaced(cwnd: f64) -> SendLimits {
        SendLimits { cwnd, pacing_rate: None, ssthresh: None }
    }
    /// A window (infinite if only the rate limits) and a pacing rate.
    pub const fn paced(cwnd: f64, rate: Rate) -> SendLimits {
        SendLimits { cwnd, pacing_rate: Some(rate), ssthresh: None }
    }
    /// The same limits with a slow-start threshold.
    pub const fn with_ssthresh(self, segments: f64) -> SendLimits {
        SendLimits { ssthresh: Some(segments), ..self }
    }
}

/// Requirements of a controller on the transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Requirements {
    /// Requires rrtp: losses are reported by [`on_packet_outcome`](Controller::on_packet_outcome) or by its receiver
    /// side, which TCP does not have.
    pub rrtp: bool,
    /// Goes by the numbers of packets, which only rrtp has. Otherwise the number of losses and the send time of the
    /// newest delivered packet suffice.
    pub packet_numbers: bool,
    /// Detects by its own ticks that no acknowledgements arrive. The sender then reports no slow-start restart after
    /// persistent congestion. It also sends no packet beyond the limits (a recovery's first packet, a PTO probe) within
    /// the first two seconds without acknowledgements.
    pub own_timer: bool,
    /// Its packets are ECT(1) (RFC 9331): it reacts to every mark in proportion, and so needs accurate ECN feedback,
    /// which rrtp has.
    pub l4s: bool,
}

impl Requirements {
    /// Requires rrtp's packet outcomes or receiver side.
    pub const RRTP: Requirements =
        Requirements { rrtp: true, packet_numbers: true, own_timer: false, l4s: false };
    /// Requires rrtp, and has a timer of its own.
    pub const OWN_TIMER: Requirements = Requirements { own_timer: true, ..Requirements::RRTP };
    /// Requires rrtp's count of CE marks, and ECT(1) on every packet.
    pub const L4S: Requirements = Requirements { l4s: true, ..Requirements::RRTP };
}

/// Inputs of a controller's constructor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Environment {
    /// Initial window in segments.
    pub initial_window: f64,
    /// Initial slow-start threshold in segments; infinite in practice.
    pub initial_ssthresh: f64,
    /// Bytes of a full data packet on the wire.
    pub packet_bytes: u32,
    /// The TCP implementation to follow.
    pub dialect: Dialect,
    /// Key of random draws (BBR's probing phase).
    pub random_key: narrows_base::RandomKey,
    /// Properties of the path that are given in advance.
    pub hints: PathHints,
    /// Whether the handshake probes the path's rate. [`PathEvent::Dispersion`] follows if every probe has its reply.
    pub expects_dispersion: bool,
}

impl Default for Environment {
    /// Preset `rfc`, 1000-byte packets.
    fn default() -> Environment {
        Environment {
            initial_window: 4.0,
            initial_ssthresh: f64::INFINITY,
            packet_bytes: 1000,
            dialect: Dialect::Rfc,
            random_key: narrows_base::RandomKey::from_seed(1),
            hints: PathHints::default(),
            expects_dispersion: false,
        }
    }
}

/// The TCP implementation that controllers follow where they differ, unless a parameter overrides it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Dialect {
    /// TCP after RFC 5681, 6582, 6675 and 9438.
    #[default]
    Rfc,
    /// ns-2.35.
    Ns2,
    /// Linux 6.1.
    Linux,
}

impl Dialect {
    /// The new (cwnd, ssthresh) after a loss with `flight` segments in flight: half of FlightSize (RFC 5681 equation 4);
    /// in ns-2 half of cwnd, of which ssthresh is the integer part.
    pub fn halve(self, cwnd: f64, flight: u64) -> (f64, f64) {
        match self {
            Dialect::Rfc | Dialect::Linux => {
                let half = (flight as f64 / 2.0).max(2.0);
                (half, half)
            }
            Dialect::Ns2 => {
                let half = (cwnd / 2.0).max(1.0);
                (half, half.floor().max(2.0))
            }
        }
    }
}

/// The sender side of a controller.
///
/// All methods except [`on_ack`](Controller::on_ack) and [`send_limits`](Controller::send_limits) have empty defaults.
/// `#[derive(Clone)]` is required, so that a running controller can be copied. As [`Any`], a `dyn Controller` can be
/// `#[derive(Clone)]` is required, so that a running controller can be copied. As [`Any`], a `dyn Controller` can be
/// converted back to its own type.
///
/// Calls for one acknowledgement are in this order: `on_packet_outcome` for each packet, `on_ack`, then
/// `on_congestion_event` for its consequences. Losses come first, then the end or start of a recovery or a slow-start
/// restart, and ECN marks last. During recovery `Ack::in_recovery` is set, also for the acknowledgement that ends it.
///
/// A window that grows by a segment per round trip and is halved at a loss:
///
/// ```
/// use narrows_congestion::{Ack, CongestionEvent, Controller, SendLimits};
///
/// #[derive(Clone)]
/// struct Halving {
///     cwnd: f64,
/// }
///
/// impl Controller for Halving {
///     fn on_ack(&mut self, ack: &Ack) {
///         if ack.may_grow() {
///             self.cwnd += ack.counted as f64 / self.cwnd;
///         }
///     }
///     fn on_congestion_event(&mut self, event: &CongestionEvent) {
///         if let CongestionEvent::RecoveryStart(_) = event {
///             self.cwnd = (self.cwnd / 2.0).max(2.0);
///         }
///     }
///     fn send_limits(&self) -> SendLimits {
///         SendLimits::unpaced(self.cwnd)
///     }
/// }
/// ```
pub trait Controller: CloneController + Any + Send {
    /// An acknowledgement arrived. Called for every one, including duplicates.
    fn on_ack(&mut self, ack: &Ack);
    /// The limits in force.
    fn send_limits(&self) -> SendLimits;

    /// A packet was sent.
    fn on_sent(&mut self, _sent: &Sent) {}
    /// A packet arrived or was lost (rrtp only, where packet numbers are never reused). Called once per packet, in the
    /// order of packet numbers.
    fn on_packet_outcome(&mut self, _outcome: &PacketOutcome) {}
    /// Losses were detected, a recovery begins or ends, or slow start restarts.
    fn on_congestion_event(&mut self, _event: &CongestionEvent) {}
    /// Some properties of the path have changed or become known.
    fn on_path_event(&mut self, _now: Time, _event: &PathEvent) {}
    /// The time given by [`next_tick`](Controller::next_tick) has been reached.
    fn on_tick(&mut self, _now: Time) {}
    /// When to call [`on_tick`](Controller::on_tick); [`Time::NEVER`] for never.
    fn next_tick(&self) -> Time {
        Time::NEVER
    }
    /// Feedback to the receiver side, carried by the next packet.
    fn feedback_to_receiver(&self) -> Feedback {
        Feedback::NONE
    }
    /// Requirements on the transport; they never change.
    fn requirements(&self) -> Requirements {
        Requirements::default()
    }
    /// Passes estimates and state to `put`, for time series. Each name is one of its list entry's
    /// [`variables`](ControllerEntry::variables).
    fn watch(&self, _put: &mut dyn FnMut(&'static str, f64)) {}
}

/// Clones a boxed controller; implemented for every [`Controller`] that is [`Clone`].
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

/// Updates the moving average `old + gain (new - old)`; the first sample initialises it.
pub fn smooth(old: &mut Option<f64>, new: f64, gain: f64) -> f64 {
    let value = old.map_or(new, |o| o + gain * (new - o));
    *old = Some(value);
    value
}

/// The largest window in segments: far beyond any path, and exact in a float.
const MAX_CWND: f64 = 1e15;

/// `value` within `[least, 10^15]`; NaN becomes `min`. Applied to every window, so that no
/// sequence of legal events makes one infinite.
pub fn bounded(value: f64, min: f64) -> f64 {
    value.max(min).min(MAX_CWND)
}
