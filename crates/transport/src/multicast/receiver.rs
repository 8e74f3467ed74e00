//! A receiver: TEAR's receiver side, with inputs from the path's one-way times in place of a sender's feedback.

use super::join::{JoinRules, Membership};
use super::path::OneWayPath;
use crate::datagram::header;
use crate::layers::MAX_LAYERS;
use narrows_base::{Duration, Packet, Time};
use narrows_congestion::{Arrival, Feedback, ReceiverSide};

/// The window grows up to this multiple of the next layer's need.
const HEADROOM: f64 = 1.2;
/// Gain of the mean packet size.
const GAIN: f64 = 0.05;

/// A receiver that sends no reports.
pub struct Receiver {
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

impl Receiver {
    /// `rates` are the layers' in bit/s, `side` is TEAR's receiver side, and `base_rtt` the RTT without queueing delay.
    pub fn new(side: Box<dyn ReceiverSide>, rates: &[f64], base_rtt: Duration) -> Receiver {
        Receiver {
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
    pub fn on_arrival(&mut self, now: Time, p: &Packet) -> Option<Membership> {
        let data = header::read_data(p);
        let layer = usize::from(data.offset as u8);
        // Damaged, or in flight when its layer was left.
        if p.has(Packet::CORRUPT) || layer >= self.join.level() {
            return None;
        }
        let missing = match self.next[layer] {
            None => 0,
            // A duplicate, or a late packet that was counted as missing.
            Some(next) if p.seq < next => return None,
            Some(next) => p.seq - next,
        };
        self.next[layer] = Some(p.seq + 1);
        self.delivered += u64::from(p.payload());
        self.packets += 1;
        self.path.on_arrival(now, p.stamp);
        let bits = f64::from(p.payload()) * 8.0;
        let gain = if self.packets == 1 { 1.0 } else { GAIN };
        self.packet_bits += gain * (bits - self.packet_bits);
        self.seq = self.seq.saturating_add(missing);
        let idle = self.rate >= HEADROOM * self.join.next_need();
        let told =
            [self.path.srtt(), self.path.deviation(), self.path.rtt(), f64::from(u8::from(idle))];
        self.side.on_arrival(&Arrival {
            now,
            seq: self.seq,
            sent: p.stamp,
            bytes: u32::from(p.size),
            marked: p.has(Packet::CE),
            feedback: Feedback::of(&told),
        });
        self.seq += 1;
        self.judge(now)
    }
    /// As [`on_arrival`](Receiver::on_arrival). There is no packet to send back.
    pub fn on_packet(&mut self, now: Time, p: &Packet) -> Option<Packet> {
        self.on_arrival(now, p);
        None
    }
    /// TEAR's timer fired. There is no packet to send back.
    pub fn on_timeout(&mut self, now: Time) -> Option<Packet> {
        self.side.on_tick(now);
        self.judge(now);
        None
    }
    fn judge(&mut self, now: Time) -> Option<Membership> {
        self.rate = self.side.feedback(now).number(0) * self.packet_bits;
        let change = self.join.judge(now, self.rate, Duration::from_secs_f64(self.path.srtt()))?;
        // A layer that is joined again starts without an expected number.
        self.next[self.join.level()..].fill(None);
        Some(change)
    }

    /// When to call [`on_timeout`](Receiver::on_timeout).
    pub fn next_timeout(&self) -> Time {
        self.side.next_tick()
    }
    /// Application bytes received.
    pub fn delivered(&self) -> u64 {
        self.delivered
    }
    /// As [`delivered`](Receiver::delivered): packets are not put in order.
    pub fn received(&self) -> u64 {
        self.delivered
    }
    /// Packets received.
    pub fn delivered_packets(&self) -> u64 {
        self.packets
    }
    /// Frame and layer of a packet.
    pub fn frame_of(&self, p: &Packet) -> (u64, u8) {
        let tag = header::read_data(p).offset;
        (tag >> 8, tag as u8)
    }
    /// TEAR's receiver side, for time series.
    pub fn receiver_side(&self) -> &dyn ReceiverSide {
        self.side.as_ref()
    }
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Receiver({} layers, {} came)", self.level(), self.packets)
    }
}
