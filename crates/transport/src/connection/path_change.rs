//! A change of path. Both ends reset the sender and receiver sides of their controllers, the delivery rates and the MTU
//! (RFC 9000 section 9.4).
//!
//! The end that validated a new address of its peer sends NEW_PATH in its packets until one is acknowledged. Otherwise
//! the peer may not notice that its address changed. Each reset permits another initial window. Therefore resets after
//! NEW_PATH and after validation occur at most at the rate at which a congestion state becomes meaningful.

use super::{Connection, Learned, receiving};
use crate::Protocol;
use crate::packet_sender::PacketSender;
use crate::protocol::is_sayable;
use narrows_base::{Duration, Time};
use narrows_congestion::{Controller, Environment, Feedback, PathHints};
use narrows_wire::frame::{NEW_PATH, number_bytes};
use narrows_wire::{Frame, FrameWriter};
use std::net::SocketAddr;
use std::sync::Arc;

/// Shortest lifetime of a congestion state; `MIN_PROBE_TIMEOUTS` is the same in PTOs.
const MIN_LIFE: Duration = Duration::from_secs(1);
const MIN_PROBE_TIMEOUTS: u64 = 3;

/// Inputs for building controllers.
pub(super) struct ControllerSetup {
    pub protocol: Protocol,
    /// Unlisted protocols that the peer may announce.
    pub custom: Arc<[Protocol]>,
    pub environment: Environment,
    /// Label of the peer's protocol.
    pub peers: Box<str>,
    /// Whether the peer may still announce another protocol. A server may do so once.
    pub may_say: bool,
}

impl ControllerSetup {
    fn controller(&self) -> Box<dyn Controller> {
        self.protocol.controller(&self.environment)
    }
}

/// Counts of changes, to match NEW_PATH frames with them.
#[derive(Debug, Default)]
pub(super) struct PathChanges {
    /// Changes found by this end, and whether the last is not yet acknowledged.
    found: u64,
    must_say: bool,
    /// Changes announced by the peer.
    peers: u64,
    /// Time of the last reset.
    last: Option<Time>,
}

impl Connection {
    /// Handles CONTROLLER: replaces the receiver side and loss classifier by those for the server's protocol.
    pub(super) fn on_controller(&mut self, now: Time, label: &[u8]) {
        if !std::mem::take(&mut self.setup.may_say) {
            return;
        }
        if let Ok(label) = std::str::from_utf8(label)
            && is_sayable(label)
        {
            self.setup.peers = label.into();
            self.unknown = None;
            if !self.renew_receiver(self.receiver.next_number()) {
                self.unknown = Some(label.into());
                self.on_unknown(now);
            }
        }
    }

    /// Starts with a new receiver side and loss classifier, which ignore numbers below `first`. False if the peer's
    /// protocol is unknown to this end.
    fn renew_receiver(&mut self, first: u64) -> bool {
        let ControllerSetup { peers, protocol, custom, environment, .. } = &*self.setup;
        let Some((side, classifier)) = receiving(peers, protocol, custom, environment) else {
            return false;
        };
        self.receiver.replace_receiver_side(side, classifier, first);
        true
    }

    /// Handles the validation of the peer's new address.
    pub(super) fn on_move(&mut self, now: Time, before: SocketAddr, rtt: Option<Duration>) {
        let to = self.path.remote();
        self.moved = Some(to);
        if before.ip() == to.ip() {
            return;
        }
        self.mtu.restart(now);
        if self.renew_path(now, self.receiver.next_number()) {
            (self.changes.found, self.changes.must_say) = (self.changes.found + 1, true);
            if let Some(rtt) = rtt {
                self.sender.seed_rtt(now, rtt);
            }
        }
        self.set_scale(now);
    }

    /// Handles NEW_PATH: this end's address changed, and the peer's packets from `first` on take another path.
    pub(super) fn on_new_path(&mut self, now: Time, times: u64, first: u64) {
        if times <= self.changes.peers {
            return;
        }
        self.changes.peers = times;
        if self.renew_path(now, first) {
            self.mtu.restart(now);
            self.set_scale(now);
        }
    }

    /// Resets the congestion state in both directions, unless the last reset was too recent. Returns whether it did.
    fn renew_path(&mut self, now: Time, first: u64) -> bool {
        let life = self.sender.probe_timeout().saturating_mul(MIN_PROBE_TIMEOUTS).max(MIN_LIFE);
        if self.changes.last.is_some_and(|last| now < last + life) {
            return false;
        }
        self.changes.last = Some(now);
        // The hints were those of the old path.
        self.setup.environment.hints = PathHints::default();
        self.sender.renew(now, &self.payload, self.setup.controller(), &self.rto);
        self.learned = Learned::default();
        (self.feedback_sent, self.held_until, self.suspects_size) = (Feedback::NONE, None, false);
        let payload = &mut self.payload;
        payload.large_lost = 0;
        // A PING measures the new RTT soon, even if this end has no data to send.
        payload.ping = true;
        _ = self.renew_receiver(first);
        true
    }

    /// Writes NEW_PATH until a packet with it is acknowledged.
    #[inline]
    pub(super) fn say_new_path(&mut self, writer: &mut FrameWriter<'_>) {
        if !self.changes.must_say {
            return;
        }
        if PacketSender::has_arrived(&self.sender) {
            self.changes.must_say = false;
            return;
        }
        let mut bytes = [0; 8];
        let body = number_bytes(self.changes.found, &mut bytes);
        let _ = writer.frame(&Frame::Extension { kind: NEW_PATH, body });
    }
}
