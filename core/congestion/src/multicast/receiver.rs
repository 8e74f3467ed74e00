//! A receiver: TEAR's receiver side, with inputs from the path's one-way times in place of a sender's feedback.

use super::join::{JoinRules, Membership};
use super::path::OneWayPath;
use crate::layers::MAX_LAYERS;
use crate::{Arrival, Feedback, ReceiverSide};
use narrows_base::{Duration, Time};

/// The window grows up to this multiple of the next layer's need.
const HEADROOM: f64 = 1.2;
/// Gain of the mean packet size.
const GAIN: f64 = 0.05;

/// A packet that a receiver of layers gets, whatever its format on the wire.
#[derive(Clone, Copy, Debug)]
pub struct LayerPacket {
    /// Its layer: 0 is the base.
    pub layer: usize,
    /// Its number within the layer.
    pub number: u64,
    /// When it was sent, by the sender's clock.
    pub sent: Time,
    /// Size on the wire.
    pub bytes: u32,
    /// Application bytes.
    pub payload: u32,
    /// Whether it has a CE mark.
    pub marked: bool,
}

/// A receiver that sends no reports.
pub struct LayerReceiver {
    side: Box<dyn ReceiverSide>,
    join: JoinRules,
    path: OneWayPath,
    /// Next expected number of each joined layer; `None` before its first packet.
    next: [Option<u64>; MAX_LAYERS],
    /// Next number of the sequence over all layers.
    seq: u64,
    /// Mean application bits of a packet.
    packet_bits: f64,
    /// TEAR's rate in application bit/s.
    rate: f64,
    delivered: u64,
    packets: u64,
}

impl LayerReceiver {
    /// `rates` are the layers' in bit/s, `side` is TEAR's receiver side, and `base_rtt` the RTT without queueing delay.
    pub fn new(side: Box<dyn ReceiverSide>, rates: &[f64], base_rtt: Duration) -> LayerReceiver {
        LayerReceiver {
            side,
            join: JoinRules::new(rates),
            path: OneWayPath::new(base_rtt),
            next: [None; MAX_LAYERS],
            seq: 0,
            packet_bits: 0.0,
            rate: 0.0,
            delivered: 0,
            packets: 0,
        }
    }
    /// Layers joined.
    pub fn level(&self) -> usize {
        self.join.level()
    }
    /// TEAR's rate in application bit/s.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// A packet arrived. Returns whether the receiver left or joined a layer.
    pub fn on_arrival(&mut self, now: Time, p: &LayerPacket) -> Option<Membership> {
        // In flight when its layer was left.
        if p.layer >= self.join.level() {
            return None;
        }
        let missing = match self.next[p.layer] {
            None => 0,
            // A duplicate, or a late packet that was counted as missing.
            Some(next) if p.number < next => return None,
            Some(next) => p.number - next,
        };
        self.next[p.layer] = Some(p.number + 1);
        self.delivered += u64::from(p.payload);
        self.packets += 1;
        self.path.on_arrival(now, p.sent);
        let bits = f64::from(p.payload) * 8.0;
        let gain = if self.packets == 1 { 1.0 } else { GAIN };
        self.packet_bits += gain * (bits - self.packet_bits);
        self.seq = self.seq.saturating_add(missing);
        let idle = self.rate >= HEADROOM * self.join.next_need();
        // Without a last RTT, TEAR does not yield: no sender would send less until the queue has drained.
        let state = [self.path.srtt(), self.path.deviation(), 0.0, f64::from(u8::from(idle))];
        self.side.on_arrival(&Arrival {
            now,
            seq: self.seq,
            sent: p.sent,
            bytes: p.bytes,
            marked: p.marked,
            feedback: Feedback::of(&state),
        });
        self.seq += 1;
        self.judge(now)
    }
    /// TEAR's timer fired.
    pub fn on_timeout(&mut self, now: Time) {
        self.side.on_tick(now);
        self.judge(now);
    }
    fn judge(&mut self, now: Time) -> Option<Membership> {
        self.rate = self.side.feedback(now).number(0) * self.packet_bits;
        let change = self.join.judge(now, self.rate, Duration::from_secs_f64(self.path.srtt()))?;
        // A layer that is joined again starts without an expected number.
        self.next[self.join.level()..].fill(None);
        Some(change)
    }

    /// When to call [`on_timeout`](LayerReceiver::on_timeout).
    pub fn next_timeout(&self) -> Time {
        self.side.next_tick()
    }
    /// Application bytes received.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// Packets received.
    pub fn delivered_packets(&self) -> u64 {
        self.packets
    }
    /// TEAR's receiver side, for time series.
    pub fn receiver_side(&self) -> &dyn ReceiverSide {
        self.side.as_ref()
    }
}

impl std::fmt::Debug for LayerReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LayerReceiver({} layers, {} came)", self.level(), self.packets)
    }
}
