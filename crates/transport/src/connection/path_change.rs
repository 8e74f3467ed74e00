//! A change of path: the controllers' sender and receiver sides, the delivery rates and the MTU are reset at both ends
//! (RFC 9000 section 9.4).
//!
//! The end that validated a new address of its peer sends NEW_PATH in its packets until one has arrived, because the
//! peer may not know that its address changed. Resets at the peer's request are limited to the rate at which a
//! congestion state becomes meaningful, and so are resets for validated addresses: each reset permits another initial
//! window.

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

/// A congestion state lasts at least so long, and so many probe timeouts.
const MIN_LIFE: Duration = Duration::from_secs(1);
const MIN_PROBE_TIMEOUTS: u64 = 3;

/// What controllers are made of.
pub(super) struct ControllerSetup {
    pub protocol: Protocol,
    /// Unlisted protocols that the peer may announce.
    pub custom: Arc<[Protocol]>,
    pub environment: Environment,
    /// Label of the peer's protocol.
    pub peers: Box<str>,
    /// Whether the peer may still announce another protocol, which a server may do once.
    pub may_say: bool,
}

impl ControllerSetup {
    fn controller(&self) -> Box<dyn Controller> {
        self.protocol.controller(&self.environment)
    }
}

/// Changes of the path.
#[derive(Debug, Default)]
pub(super) struct PathChanges {
    /// How many this end found, and whether the peer must still be told of the last.
    found: u64,
    must_say: bool,
    /// How many the peer found.
    peers: u64,
    /// When the last began.
    last: Option<Time>,
}

impl Connection {
    /// The server says what it sends with: its receiver side and loss classifier are to fit.
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

    /// A receiver side and a loss classifier that know nothing yet; numbers below `first` are none of theirs.
    /// False if this end does not know what the peer sends with.
    fn renew_receiver(&mut self, first: u64) -> bool {
        let ControllerSetup { peers, protocol, custom, environment, .. } = &*self.setup;
        let Some((side, classifier)) = receiving(peers, protocol, custom, environment) else {
            return false;
        };
        self.receiver.replace_receiver_side(side, classifier, first);
        true
    }

    /// The peer's new address is validated.
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

    /// The peer says that its packets from `first` on take another path: then this end's own address changed.
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

    /// A new congestion state in both directions, unless the last is young.
    fn renew_path(&mut self, now: Time, first: u64) -> bool {
        let life = self.sender.probe_timeout().saturating_mul(MIN_PROBE_TIMEOUTS).max(MIN_LIFE);
        if self.changes.last.is_some_and(|last| now < last + life) {
            return false;
        }
        self.changes.last = Some(now);
        // What was told was told of the old path.
        self.setup.environment.hints = PathHints::default();
        self.sender.renew(now, self.setup.controller(), &self.rto);
        self.learned = Learned::default();
        (self.feedback_sent, self.held_until, self.suspects_size) = (Feedback::NONE, None, false);
        let payload_source = self.sender.payload_source_mut();
        payload_source.large_lost = 0;
        // Its round-trip time is to be known soon, also where this end has nothing else to send.
        payload_source.ping = true;
        _ = self.renew_receiver(first);
        true
    }

    /// NEW_PATH, until a packet with it has arrived.
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
