//! The receiving side: a packet receiver per path, one reassembly.

use super::PathParts;
use crate::endpoints::datagram::DatagramReceiver;
use crate::endpoints::datagram::assembly::Assembly;
use crate::endpoints::datagram::header;
use crate::protocol::DatagramConfig;
use narrows_base::{Packet, Time};
use narrows_congestion::ReceiverSide;

/// Receives a stream over several paths.
pub struct MultipathReceiver {
    /// Each with the flow number of its path.
    paths: Vec<(u32, DatagramReceiver)>,
    assembly: Assembly,
    packets: u64,
    /// Bytes that arrived more than once.
    duplicate_bytes: u64,
    /// Most bytes that waited for earlier ones.
    max_held: u64,
}

impl MultipathReceiver {
    /// A receiver with these paths.
    pub fn new(
        config: &DatagramConfig,
        paths: Vec<PathParts<Option<Box<dyn ReceiverSide>>>>,
    ) -> MultipathReceiver {
        // The paths' receivers do not reassemble.
        let config = DatagramConfig { reliable: false, ..config.clone() };
        let path = |p: PathParts<_>| {
            (p.flow, DatagramReceiver::new(&config, p.controller, p.flow, p.random_key))
        };
        MultipathReceiver {
            paths: paths.into_iter().map(path).collect(),
            assembly: Assembly::default(),
            packets: 0,
            duplicate_bytes: 0,
            max_held: 0,
        }
    }

    /// Sets the flow numbers of the paths after the first.
    pub fn number_paths(&mut self, first: u32) {
        for (number, path) in (first..).zip(&mut self.paths[1..]) {
            path.0 = number;
            path.1.set_flow(number);
        }
    }
    /// A packet arrived. Returns the report to send now on the same path, if any.
    pub fn on_packet(&mut self, now: Time, p: &Packet) -> Option<Packet> {
        let (_, path) = self.paths.iter_mut().find(|(flow, _)| *flow == p.flow)?;
        let is_data = !p.has(Packet::SYN) && !p.has(Packet::CORRUPT);
        let offset = header::read_data(p).offset;
        if is_data && !self.assembly.has_room(offset, p.payload()) {
            return None;
        }
        let before = path.delivered_packets();
        let report = path.on_packet(now, p);
        if path.delivered_packets() > before {
            let fresh = self.assembly.take(offset, p.payload());
            self.packets += u64::from(fresh > 0);
            self.duplicate_bytes += u64::from(p.payload()) - fresh;
            self.max_held = self.max_held.max(self.assembly.held());
        }
        report
    }
    /// When to call [`on_timeout`](MultipathReceiver::on_timeout).
    pub fn next_timeout(&self) -> Time {
        self.paths.iter().map(|p| p.1.next_timeout()).min().unwrap_or(Time::NEVER)
    }
    /// A timer fired. Returns the report to send now, if any.
    pub fn on_timeout(&mut self, now: Time) -> Option<Packet> {
        let due = self.paths.iter_mut().filter(|p| p.1.next_timeout() <= now);
        due.filter_map(|p| p.1.on_timeout(now)).next()
    }
    /// Length of the in-order prefix in bytes.
    pub fn delivered(&self) -> u64 {
        self.assembly.in_order()
    }
    /// Distinct bytes received.
    pub fn received(&self) -> u64 {
        self.assembly.received()
    }
    /// Packets with new bytes.
    pub fn delivered_packets(&self) -> u64 {
        self.packets
    }
    /// Bytes that arrived more than once.
    pub fn duplicate_bytes(&self) -> u64 {
        self.duplicate_bytes
    }
    /// Most bytes that waited for earlier ones.
    pub fn max_held(&self) -> u64 {
        self.max_held
    }
    /// The receiver side of the first path's controller.
    pub fn receiver_side(&self) -> Option<&dyn ReceiverSide> {
        self.paths[0].1.receiver_side()
    }
}

impl std::fmt::Debug for MultipathReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Receiver({} paths, {} came)", self.paths.len(), self.packets)
    }
}
