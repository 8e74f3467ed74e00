//! A receiver of simulated packets of layers.

use crate::endpoints::datagram::header;
use narrows_base::{Duration, Packet, Time};
use narrows_congestion::ReceiverSide;
use narrows_congestion::multicast::join::Membership;
use narrows_congestion::multicast::{LayerPacket, LayerReceiver};

/// The layer that a packet belongs to.
pub fn layer_of(packet: &Packet) -> usize {
    usize::from(header::read_data(packet).offset as u8)
}

/// A receiver that sends no reports.
#[derive(Debug)]
pub struct MulticastReceiver(LayerReceiver);

impl MulticastReceiver {
    /// `rates` are the layers' in bit/s, `side` is TEAR's receiver side, and `base_rtt` the RTT without queueing delay.
    pub fn new(
        side: Box<dyn ReceiverSide>,
        rates: &[f64],
        base_rtt: Duration,
    ) -> MulticastReceiver {
        MulticastReceiver(LayerReceiver::new(side, rates, base_rtt))
    }
    /// Layers joined.
    pub fn level(&self) -> usize {
        self.0.level()
    }
    /// TEAR's rate in application bit/s.
    pub fn rate(&self) -> f64 {
        self.0.rate()
    }
    /// A packet arrived. Returns whether the receiver left or joined a layer.
    pub fn on_arrival(&mut self, now: Time, p: &Packet) -> Option<Membership> {
        if p.has(Packet::CORRUPT) {
            return None;
        }
        let packet = LayerPacket {
            layer: layer_of(p),
            number: p.seq,
            sent: p.stamp,
            bytes: u32::from(p.size),
            payload: p.payload(),
            marked: p.has(Packet::CE),
        };
        self.0.on_arrival(now, &packet)
    }
    /// As [`on_arrival`](MulticastReceiver::on_arrival). There is no packet to send back.
    pub fn on_packet(&mut self, now: Time, p: &Packet) -> Option<Packet> {
        self.on_arrival(now, p);
        None
    }
    /// TEAR's timer fired. There is no packet to send back.
    pub fn on_timeout(&mut self, now: Time) -> Option<Packet> {
        self.0.on_timeout(now);
        None
    }
    /// When to call [`on_timeout`](MulticastReceiver::on_timeout).
    pub fn next_timeout(&self) -> Time {
        self.0.next_timeout()
    }
    /// Application bytes received.
    pub fn delivered(&self) -> u64 {
        self.0.delivered()
    }
    /// As [`delivered`](MulticastReceiver::delivered): packets are not put in order.
    pub fn received(&self) -> u64 {
        self.0.delivered()
    }
    /// Packets received.
    pub fn delivered_packets(&self) -> u64 {
        self.0.delivered_packets()
    }
    /// Frame and layer of a packet.
    pub fn frame_of(&self, p: &Packet) -> (u64, u8) {
        let tag = header::read_data(p).offset;
        (tag >> 8, tag as u8)
    }
    /// TEAR's receiver side, for time series.
    pub fn receiver_side(&self) -> &dyn ReceiverSide {
        self.0.receiver_side()
    }
}
