//! A path among several, as a [scheduler](narrows_multipath::Scheduler) sees it: whether it answers, and its state.

use crate::packet_sender::PacketSender;
use narrows_base::{Duration, Time};
use narrows_congestion::{RateSample, SendLimits};
use narrows_multipath::{Liveness, PathState, PathStatus, PathWeight};

/// Gain of the smoothed delivery rate, as that of the RTT (RFC 6298).
const RATE_GAIN: f64 = 0.125;

/// The rate in bytes per second that a controller permits, with packets of this many bytes on the wire: the lower of its
/// pacing rate and a window per round trip. `None` if it sets neither, or before the first round trip.
pub fn permitted_rate(limits: &SendLimits, srtt: Duration, bytes: u32) -> Option<f64> {
    let by_window = limits.cwnd * f64::from(bytes) / srtt.as_secs_f64();
    let by_window = Some(by_window).filter(|rate| rate.is_finite());
    let paced = limits.pacing_rate.map(|rate| rate.as_bps() as f64 / 8.0);
    match (paced, by_window) {
        (Some(paced), Some(window)) => Some(paced.min(window)),
        (paced, window) => paced.or(window),
    }
}

/// State of a path for the scheduler.
#[derive(Debug)]
pub struct ScheduledPath {
    /// Whether the peer answers.
    pub liveness: Liveness,
    /// Whether the user permits data here.
    pub permitted: PathStatus,
    /// The part of the heaviest path's data that the user permits here.
    pub weight: PathWeight,
    /// The state at the last [`refresh`](ScheduledPath::refresh).
    pub state: PathState,
    /// Whether `state` must be computed anew.
    pub is_stale: bool,
    /// Whether the packet sender permitted a packet that has not been sent.
    pub is_permitted: bool,
    rate: f64,
    /// Whether a delivery rate was limited neither by the data nor by the initial window.
    is_measured: bool,
}

impl Default for ScheduledPath {
    fn default() -> ScheduledPath {
        ScheduledPath {
            liveness: Liveness::default(),
            permitted: PathStatus::Available,
            weight: PathWeight::default(),
            state: PathState { status: PathStatus::Unusable, ..PathState::default() },
            is_stale: true,
            is_permitted: false,
            rate: 0.0,
            is_measured: false,
        }
    }
}

impl ScheduledPath {
    /// A report brought this delivery rate of packets with `bytes` bytes on the wire.
    pub fn on_rate(&mut self, sample: &RateSample, bytes: u32) {
        let measured = sample.per_second() * f64::from(bytes);
        self.is_measured |= !sample.app_limited && sample.prior_delivered > 0;
        if self.rate == 0.0 || sample.app_limited {
            self.rate = self.rate.max(measured);
        } else {
            self.rate += RATE_GAIN * (measured - self.rate);
        }
    }
    /// Whether `state` must be computed before the scheduler reads it.
    #[inline]
    pub fn is_outdated(&self, now: Time) -> bool {
        self.is_stale || self.state.sendable <= now && !self.is_permitted
    }
    /// The path carries no data at present.
    pub fn exclude(&mut self) {
        self.is_stale = false;
        self.is_permitted = false;
        self.state.status = PathStatus::Unusable;
    }
    /// Computes the state. The packet sender permits the next packet, of `bytes` bytes on the wire, at `sendable`.
    /// Until the path's rate is measured, it is at least the controller's: a path that carried few packets would else
    /// count as slow, and carry few for ever.
    pub fn refresh<P: Default>(
        &mut self,
        now: Time,
        sender: &PacketSender<P>,
        bytes: u32,
        sendable: Time,
    ) {
        self.is_stale = false;
        self.is_permitted = sendable <= now;
        let rtt = sender.rtt();
        let limits = sender.send_limits();
        let permitted = Some(&limits).filter(|_| !self.is_measured);
        let permitted = permitted.and_then(|limits| permitted_rate(limits, rtt.srtt(), bytes));
        let bytes = f64::from(bytes);
        let losses = sender.losses_at_short_queue();
        // A float's cast saturates.
        self.state = PathState {
            status: self.permitted,
            sendable,
            srtt: rtt.srtt(),
            min_rtt: if rtt.min() == Duration::MAX { Duration::ZERO } else { rtt.min() },
            rttvar: rtt.rttvar(),
            rate: self.rate.max(permitted.unwrap_or(0.0)),
            cwnd: (limits.cwnd * bytes) as u64,
            bytes_in_flight: (sender.packets_in_flight() as f64 * bytes) as u64,
            loss: losses.0 as f64 / losses.1.max(1) as f64,
            weight: self.weight.fraction(),
        };
    }
    /// The packet that was permitted is not sent: the path has more capacity than data.
    pub fn leave_unused<P: Default>(&mut self, sender: &mut PacketSender<P>) {
        if std::mem::take(&mut self.is_permitted) {
            sender.nothing_to_send();
            self.is_stale = true;
        }
    }
    /// A packet that asks for a report leaves.
    #[inline]
    pub fn on_sent(&mut self, now: Time) {
        self.is_stale = true;
        self.is_permitted = false;
        self.liveness.on_sent(now);
    }
}
