//! noq's trait around the adapter that quinn and noq share.

use narrows_congestion::quic::QuicAdapter;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerMetrics};
use std::any::Any;
use std::time::Instant;

#[derive(Debug)]
pub struct Adapter(pub QuicAdapter);

impl Controller for Adapter {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.0.sent(now, u64::from(bytes), Some(pn));
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.0.acked(now, sent, bytes, Some(pn), rtt.get());
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.0.end_acks(now, in_flight, app_limited);
    }

    fn on_packet_lost(&mut self, _lost_bytes: u16, pn: u64, _now: Instant) {
        self.0.lost_packet(pn);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        match is_ecn {
            true => self.0.marked(now, sent),
            false => self.0.losses(now, sent, lost_bytes, is_persistent_congestion),
        }
    }

    fn on_spurious_congestion_event(&mut self) {
        self.0.spurious();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.0.mtu_changed(new_mtu);
    }

    fn window(&self) -> u64 {
        self.0.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.0.window();
        metrics.ssthresh = self.0.ssthresh();
        metrics.pacing_rate = self.0.bytes_per_second();
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Adapter(self.0.clone()))
    }

    fn initial_window(&self) -> u64 {
        self.0.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
