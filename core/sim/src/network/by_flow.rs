//! Finds the group of a packet that a link reports later than it was offered.

use super::route::FlowRoute;
use crate::meter::{At, LinkMeter};
use narrows_base::{Packet, Time};
use narrows_link::Meter;

/// A meter for links that report packets later than they were offered.
pub(super) struct ByFlow<'a> {
    pub meter: &'a mut LinkMeter,
    pub routes: &'a [FlowRoute],
}

impl ByFlow<'_> {
    fn at(&mut self, packet: &Packet) -> At<'_> {
        At { meter: self.meter, group: self.routes[packet.flow as usize].group }
    }
}

impl Meter<Packet> for ByFlow<'_> {
    fn offered(&mut self, now: Time, packet: &Packet) {
        self.at(packet).offered(now, packet);
    }
    fn dropped(&mut self, now: Time, packet: &Packet) {
        self.at(packet).dropped(now, packet);
    }
    fn marked(&mut self, now: Time, packet: &Packet) {
        self.at(packet).marked(now, packet);
    }
    fn averaged(&mut self, now: Time, packets: f64) {
        At { meter: self.meter, group: 0 }.averaged(now, packets);
    }
    fn waiting(&mut self, now: Time, packets: usize) {
        At { meter: self.meter, group: 0 }.waiting(now, packets);
    }
    fn queued(&mut self, now: Time, waiting: usize) {
        At { meter: self.meter, group: 0 }.queued(now, waiting);
    }
    fn served(&mut self, packet: &Packet, arrived: Time, start: Time, end: Time) {
        self.at(packet).served(packet, arrived, start, end);
    }
    fn lost(&mut self, at: Time, packet: &Packet) {
        self.at(packet).lost(at, packet);
    }
}
