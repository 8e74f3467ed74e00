//! The variables of BBRv3.

use super::history::DeliveryHistory;
use crate::bbr::WindowedMax;
use narrows_base::{Duration, RandomStream, Time};

/// Loss rate above which a probe sent too much (LossThresh).
pub const LOSS_THRESHOLD: f64 = 0.02;

/// The largest reduction leaves this share (Beta).
pub const BETA: f64 = 0.7;

pub const MIN_PIPE_CWND: f64 = 4.0;

/// Before the first RTT, one millisecond is assumed.
pub const NOMINAL_RTT: f64 = 1e-3;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bbr3State {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl Bbr3State {
    /// Whether it is one of the four states of ProbeBW.
    pub fn probes_bandwidth(self) -> bool {
        matches!(self, Bbr3State::Down | Bbr3State::Cruise | Bbr3State::Refill | Bbr3State::Up)
    }
    /// Whether it sends more than the estimated capacity of the path (IsProbingBW).
    pub fn accelerates(self) -> bool {
        matches!(self, Bbr3State::Startup | Bbr3State::Refill | Bbr3State::Up)
    }
    /// Section 5.6.1.
    pub fn pacing_gain(self) -> f64 {
        match self {
            Bbr3State::Startup => 2.77,
            Bbr3State::Drain => 0.5,
            Bbr3State::Down => 0.9,
            Bbr3State::Cruise | Bbr3State::Refill | Bbr3State::ProbeRtt => 1.0,
            Bbr3State::Up => 1.25,
        }
    }
    pub fn cwnd_gain(self) -> f64 {
        match self {
            Bbr3State::Up => 2.25,
            Bbr3State::ProbeRtt => 0.5,
            _ => 2.0,
        }
    }
}

/// How many more packets ACKs report than the bandwidth explains (section 5.5.9).
#[derive(Clone, Debug)]
pub struct ExtraAcked {
    pub began: Option<Time>,
    pub acked: u64,
    pub max: WindowedMax,
}

/// One ACK, with the state at the time when the packet that it acknowledges was sent.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    pub now: Time,
    /// Segments per second; 0 without a sample.
    pub rate: f64,
    pub delivered: f64,
    pub prior_delivered: u64,
    pub newly_delivered: u64,
    pub app_limited: bool,
    /// In flight when the packet was sent.
    pub tx_in_flight: f64,
    /// Lost since then.
    pub lost: f64,
    pub outstanding: f64,
    pub window_limited: bool,
}

#[derive(Clone, Debug)]
pub struct Bbr3 {
    pub packet_bits: f64,
    pub random: RandomStream,
    pub state: Bbr3State,
    pub drain_began_in: u64,
    pub rounds: Bbr3Rounds,
    pub bandwidth: MaxBandwidth,
    pub in_flight: InFlight,
    pub losses: LossRound,
    pub full: FullPipe,
    pub cycle: Cycle,
    pub min_rtt: MinRtt,
    pub history: DeliveryHistory,
    pub extra: ExtraAcked,
    pub window: Bbr3Window,
    pub idle_restart: bool,
    pub before_losses: Option<ModelBeforeLosses>,
}

/// Packet-timed rounds, counted in segments delivered (section 5.5.1).
#[derive(Clone, Debug, Default)]
pub struct Bbr3Rounds {
    pub count: u64,
    pub end: u64,
    pub start: bool,
    pub delivered: u64,
}

/// Segments per second.
#[derive(Clone, Debug)]
pub struct MaxBandwidth {
    /// Largest rate of the present cycle and of the previous one.
    pub max: [f64; 2],
    pub short_term: f64,
    /// Largest of this round.
    pub latest: f64,
}

impl Default for MaxBandwidth {
    fn default() -> MaxBandwidth {
        MaxBandwidth { max: [0.0; 2], short_term: f64::INFINITY, latest: 0.0 }
    }
}

/// Bounds in segments; infinite before a loss.
#[derive(Clone, Debug)]
pub struct InFlight {
    pub long_term: f64,
    pub short_term: f64,
    pub latest: f64,
}

impl Default for InFlight {
    fn default() -> InFlight {
        InFlight { long_term: f64::INFINITY, short_term: f64::INFINITY, latest: 0.0 }
    }
}

/// Losses of the present round.
#[derive(Clone, Debug, Default)]
pub struct LossRound {
    /// Segments lost in total.
    pub total: u64,
    pub any: bool,
    /// ACKs that revealed losses, and the segments lost.
    pub events: u32,
    pub segments: u64,
    /// The round ends with a packet that was sent when this much had been delivered.
    pub end: u64,
    pub start: bool,
    /// Whether the application, not the network, limited the packet delivered last.
    pub app_limited: bool,
}

/// Looks for a plateau of the delivery rate.
#[derive(Clone, Debug, Default)]
pub struct FullPipe {
    pub rate: f64,
    pub rounds: u32,
    pub now: bool,
    /// Whether the pipe has ever been full.
    pub reached: bool,
}

/// The smallest RTT, and when to probe for it.
#[derive(Clone, Debug, Default)]
pub struct MinRtt {
    /// (value, when).
    pub min: Option<(Duration, Time)>,
    pub probe: Option<(Duration, Time)>,
    pub expired: bool,
    /// When ProbeRTT may end, set once few enough packets are in flight.
    pub done_at: Option<Time>,
    pub round_done: bool,
    /// Samples of packets sent before this much was delivered are low because little was sent.
    pub low: Option<(u64, u64)>,
}

/// The packets that the present ACKs acknowledge.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

#[derive(Clone, Debug, Default)]
pub struct Cycle {
    pub began: Time,
    /// Time until the next probe.
    pub wait: Duration,
    pub rounds_since_probe: u64,
    pub phase: AckPhase,
    /// Whether losses belong to a probe that has not been evaluated yet.
    pub probe_sample: bool,
    /// Whether the last probe lost too much, and whether the next stopped early for that reason.
    pub too_high: bool,
    pub precautionary: bool,
    pub up_rounds: u32,
    pub up_acked: f64,
    /// ACKs that raise the long-term bound by one.
    pub acked_per_step: f64,
}

#[derive(Clone, Debug)]
pub struct Bbr3Window {
    pub packet_bits: f64,
    pub initial: f64,
    pub cwnd: f64,
    /// The window before a recovery or ProbeRTT.
    pub prior: f64,
    pub in_recovery: bool,
    /// bit/s.
    pub pacing: f64,
    pub srtt: Duration,
}

/// The model before a loss recovery.
#[derive(Clone, Copy, Debug)]
pub struct ModelBeforeLosses {
    pub bandwidth_short_term: f64,
    pub short_term: f64,
    pub long_term: f64,
    /// The state that the losses ended: Startup or Up.
    pub ended: Option<Bbr3State>,
}
