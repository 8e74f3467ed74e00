//! quinn's trait around the adapter that quinn and noq share.

use narrows_congestion::quic::QuicAdapter;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerMetrics};
use std::any::Any;
use std::time::Instant;

pub struct Adapter(pub QuicAdapter);

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        self.0.sent(now, bytes, None);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.0.acked(now, sent, bytes, None, rtt.get());
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

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        match lost_bytes {
            0 => self.0.marked(now, sent),
            _ => self.0.losses(now, sent, lost_bytes, is_persistent_congestion),
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.0.mtu_changed(new_mtu);
    }

    fn window(&self) -> u64 {
        // quinn sends while the bytes in flight with the next packet are fewer than the window, so that a window of
        // whole packets needs a byte more.
        self.0.window_at_rate() + 1
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        metrics.ssthresh = self.0.ssthresh();
        metrics.pacing_rate = self.0.bytes_per_second().map(|rate| rate * 8);
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
