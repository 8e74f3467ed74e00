//! A change of path. Both ends reset the sender and receiver sides of their controllers, the delivery rates and the MTU
//! (RFC 9000 section 9.4).
//!
//! The end that validated a new address of its peer sends NEW_PATH in its packets until one is acknowledged. Otherwise
//! the peer may not notice that its address changed. Each reset permits another initial window. Therefore resets after
//! NEW_PATH and after validation occur at most at the rate at which a congestion state becomes meaningful.

use super::Connection;
use narrows_base::{Duration, Time};
use narrows_congestion::PathHints;
use narrows_recovery::protocol::is_printable_label;
use std::net::SocketAddr;

impl Connection {
    /// Handles CONTROLLER: replaces the receiver side and loss classifier by those for the server's protocol.
    pub(super) fn on_controller(&mut self, now: Time, label: &[u8]) {
        if !std::mem::take(&mut self.protocols.may_say) {
            return;
        }
        if let Ok(label) = std::str::from_utf8(label)
            && is_printable_label(label)
        {
            self.protocols.peers = label.into();
            self.protocols.unknown = None;
            for index in 0..self.path_count() {
                let is_known = self.on_path(index, |connection| {
                    connection.renew_receiver(connection.path.receiver.next_number())
                });
                if !is_known {
                    self.protocols.unknown = Some(label.into());
                    return self.on_unknown(now);
                }
            }
        }
    }

    /// Starts with a new receiver side and loss classifier, which ignore numbers below `first`. False if the peer's
    /// protocol is unknown to this end.
    fn renew_receiver(&mut self, first: u64) -> bool {
        let Some((side, classifier)) = self.protocols.receiving() else { return false };
        self.path.receiver.replace_receiver_side(side, classifier, first);
        true
    }

    /// Handles the validation of the peer's new address.
    pub(super) fn on_move(&mut self, now: Time, before: SocketAddr, rtt: Option<Duration>) {
        if before.ip() == self.path.address.remote().ip() {
            return;
        }
        self.path.changes.on_moved();
        self.path.mtu.restart(now);
        if self.renew_path(now, self.path.receiver.next_number()) {
            self.path.changes.on_found();
            if let Some(rtt) = rtt {
                self.path.sender.seed_rtt(now, rtt);
            }
        }
        self.path.set_scale(now);
    }

    /// Handles NEW_PATH: this end's address changed, and the peer's packets from `first` on take another path.
    pub(super) fn on_new_path(&mut self, now: Time, times: u64, first: u64) {
        if self.path.changes.on_announced(times) && self.renew_path(now, first) {
            self.path.mtu.restart(now);
            self.path.set_scale(now);
        }
    }

    /// Resets the congestion state in both directions, unless the last reset was too recent. Returns whether it did.
    fn renew_path(&mut self, now: Time, first: u64) -> bool {
        if !self.path.changes.may_reset(now, self.path.sender.pto()) {
            return false;
        }
        // The hints were those of the old path.
        self.protocols.environment.hints = PathHints::default();
        self.protocols.environment.expects_dispersion = false;
        self.path.renew(now, &mut self.payload, self.protocols.controller());
        _ = self.renew_receiver(first);
        true
    }
}
