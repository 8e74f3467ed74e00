//! A path of a multipath sender, with what the scheduler needs of it.

use super::loss_intervals::LossIntervals;
use crate::endpoints::datagram::path::DatagramPath;
use crate::result::PathResult;
use narrows_base::{Duration, Time};
use narrows_congestion::RateSample;
use narrows_multipath::{CoupledPath, Offered};
use narrows_recovery::packet_sender::Permission;
use narrows_recovery::scheduled_path::ScheduledPath;

/// A path and its state.
pub(super) struct SenderPath {
    pub link: DatagramPath,
    pub scheduled: ScheduledPath,
    /// For each other path: what was offered to the scheduler for a copy on this one.
    pub offered: Vec<Offered>,
    losses: LossIntervals,
    pub result: PathResult,
}

impl SenderPath {
    pub fn new(link: DatagramPath, paths: usize) -> SenderPath {
        SenderPath {
            link,
            scheduled: ScheduledPath::default(),
            offered: vec![Offered::default(); paths],
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
        self.scheduled.on_rate(sample, self.packet_bytes());
    }
    /// What a coupling reads of it; `None` if it carries no data or has no RTT.
    pub fn coupled(&self) -> Option<CoupledPath> {
        let sender = &self.link.sender;
        let srtt = sender.rtt().srtt();
        let is_used =
            self.link.is_open() && !self.scheduled.liveness.is_silent() && srtt > Duration::ZERO;
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
        self.scheduled.liveness.due(self.link.sender.pto())
    }
    /// Whether its window is what keeps it from sending more: it is full, or the pacer spreads it.
    pub fn is_window_limited(&self) -> bool {
        self.scheduled.state.sendable.is_never() || self.link.sender.spreads_window()
    }
    /// Computes the state for the scheduler.
    pub fn refresh(&mut self, now: Time) {
        if !self.link.is_open() || self.scheduled.liveness.is_silent() {
            return self.scheduled.exclude();
        }
        let sendable = match self.link.sender.permission(now) {
            Permission::Now => now,
            Permission::Paced(due) => due,
            Permission::WindowFull => Time::NEVER,
        };
        let bytes = self.packet_bytes();
        self.scheduled.refresh(now, &self.link.sender, bytes, sendable);
    }
    /// The packet that was permitted is not sent.
    pub fn leave_unused(&mut self) {
        self.scheduled.leave_unused(&mut self.link.sender);
    }
}
