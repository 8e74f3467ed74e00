//! A path of a multipath sender, with what the scheduler needs of it.

use super::loss_intervals::LossIntervals;
use crate::endpoints::datagram::path::DatagramPath;
use crate::result::PathResult;
use narrows_base::{Duration, Time};
use narrows_congestion::RateSample;
use narrows_multipath::{CoupledPath, Liveness, PathState, PathStatus};
use narrows_recovery::packet_sender::Permission;

/// Gain of the smoothed delivery rate, as that of the RTT (RFC 6298).
const RATE_GAIN: f64 = 0.125;

/// A path and its state.
pub(super) struct SenderPath {
    pub link: DatagramPath,
    pub liveness: Liveness,
    pub state: PathState,
    /// Whether `state` must be computed anew.
    pub is_stale: bool,
    /// Whether the packet sender permitted a packet that has not been sent.
    pub is_permitted: bool,
    /// For each other path: the lowest packet number there of which no copy was sent here.
    pub copied: Vec<u64>,
    rate: f64,
    losses: LossIntervals,
    pub result: PathResult,
}

impl SenderPath {
    pub fn new(link: DatagramPath, paths: usize) -> SenderPath {
        SenderPath {
            link,
            liveness: Liveness::default(),
            state: PathState { status: PathStatus::Unusable, ..PathState::default() },
            is_stale: true,
            is_permitted: false,
            copied: vec![0; paths],
            rate: 0.0,
            losses: LossIntervals::default(),
            result: PathResult::default(),
        }
    }
    /// Bytes on the wire of a full packet.
    pub fn packet_bytes(&self) -> u32 {
        self.link.payload + self.link.header
    }
    /// A report brought this delivery rate.
    pub fn on_rate(&mut self, sample: &RateSample) {
        let measured = sample.per_second() * f64::from(self.packet_bytes());
        if self.rate == 0.0 || sample.app_limited {
            self.rate = self.rate.max(measured);
        } else {
            self.rate += RATE_GAIN * (measured - self.rate);
        }
    }
    /// What a coupling reads of it; `None` if it carries no data or has no RTT.
    pub fn coupled(&self) -> Option<CoupledPath> {
        let sender = &self.link.sender;
        let srtt = sender.rtt().srtt();
        let is_used = self.link.is_open() && !self.liveness.is_silent() && srtt > Duration::ZERO;
        let loss_interval = self.losses.longest(sender.acknowledged());
        let cwnd = sender.controller().send_limits().cwnd;
        is_used.then_some(CoupledPath { cwnd, srtt, loss_interval })
    }
    /// Its packet sender may have found losses.
    pub fn on_losses(&mut self, now: Time) {
        let sender = &self.link.sender;
        self.losses.update(now, sender.counters().lost, sender.acknowledged(), sender.rtt().srtt());
    }
    /// When its liveness timer is due; never while all data have arrived.
    pub fn silence_due(&self, all_arrived: bool) -> Time {
        if all_arrived || !self.link.is_open() {
            return Time::NEVER;
        }
        self.liveness.due(self.link.sender.pto())
    }
    /// Whether its window is what keeps it from sending more: it is full, or the pacer spreads it.
    pub fn is_window_limited(&self) -> bool {
        self.state.sendable.is_never() || self.link.sender.spreads_window()
    }
    /// Computes the state for the scheduler.
    pub fn refresh(&mut self, now: Time) {
        self.is_stale = false;
        self.is_permitted = false;
        if !self.link.is_open() || self.liveness.is_silent() {
            self.state.status = PathStatus::Unusable;
            return;
        }
        let sendable = match self.link.sender.permission(now) {
            Permission::Now => {
                self.is_permitted = true;
                now
            }
            Permission::Paced(due) => due,
            Permission::WindowFull => Time::NEVER,
        };
        let sender = &self.link.sender;
        let rtt = sender.rtt();
        let bytes = f64::from(self.packet_bytes());
        let losses = sender.losses_at_short_queue();
        // A float's cast saturates.
        self.state = PathState {
            status: PathStatus::Available,
            sendable,
            srtt: rtt.srtt(),
            min_rtt: if rtt.min() == Duration::MAX { Duration::ZERO } else { rtt.min() },
            rttvar: rtt.rttvar(),
            rate: self.rate,
            cwnd: (sender.send_limits().cwnd * bytes) as u64,
            bytes_in_flight: (sender.packets_in_flight() as f64 * bytes) as u64,
            loss: losses.0 as f64 / losses.1.max(1) as f64,
            weight: 1.0,
        };
    }
    /// The packet that was permitted is not sent: the path has more capacity than data.
    pub fn leave_unused(&mut self) {
        if std::mem::take(&mut self.is_permitted) {
            self.link.sender.nothing_to_send();
            self.is_stale = true;
        }
    }
}
