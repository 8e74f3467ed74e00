//! Paths over one bottleneck: one of them carries the data, so that together they take the share of one flow.

use super::super::Connection;
use narrows_base::{Rate, Time};
use narrows_multipath::MEASURING_RATE;

impl Connection {
    /// A report arrived on the current path.
    pub(in crate::connection) fn on_path_delay(&mut self, now: Time) {
        if self.path_count() < 2 {
            return;
        }
        let index = self.current_index();
        let delay = self.path.sender.forward_delay();
        let Some(multipath) = &mut self.multipath else { return };
        let Some(shared) = &mut multipath.shared else { return };
        if delay.is_some_and(|delay| shared.on_delay(now, index, delay, &multipath.states)) {
            self.share_rate_limit();
            self.announce_leaders(now);
        }
    }

    /// Defers the next packet of the path with this index, if another one carries its data.
    pub(super) fn limit_led_path(&mut self, index: usize) {
        let Some(multipath) = &mut self.multipath else { return };
        let Some(shared) = &multipath.shared else { return };
        let departure = shared.departure(index, &multipath.states);
        if let Some(state) = multipath.states.get_mut(index) {
            state.sendable = state.sendable.max(departure);
        }
    }

    /// The place of the usable path that carries the data of the one with this index.
    pub(super) fn leader(&self, index: usize) -> Option<usize> {
        let shared = self.multipath.as_ref().and_then(|multipath| multipath.shared.as_ref())?;
        let place = self.place_of(shared.leader(index)?);
        self.path_at(place).is_usable().then_some(place)
    }

    /// Divides the limit on the rate among the paths in use. A led path gets [`MEASURING_RATE`] of a share.
    pub(in crate::connection) fn share_rate_limit(&mut self) {
        let Some(limit) = self.multipath.as_ref().map(|multipath| multipath.rate_limit) else {
            return;
        };
        let weight = |connection: &Connection, place: usize| {
            let leader = connection.leader(connection.place_of(place));
            if leader.is_some() { MEASURING_RATE } else { 1.0 }
        };
        let sharing: f64 = self.places_in_use().map(|place| weight(self, place)).sum();
        for place in 0..self.path_count() {
            let part = weight(self, place) / sharing;
            let share = limit.map(|rate| Rate::from_bps_f64(rate.as_bps() as f64 * part));
            self.on_path(place, |connection| connection.path.sender.limit_rate(share));
        }
    }
}
