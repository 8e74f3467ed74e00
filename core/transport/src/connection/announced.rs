//! The protocols of both ends for sending. The peer's is identified by its label, because this end runs the receiver
//! side of its controller.

use crate::Protocol;
use narrows_base::{Settings, Spec};
use narrows_congestion::{Controller, Environment, ReceiverSide};
use narrows_recovery::loss_classifier::LossTracker;
use narrows_wire::frame::CONTROLLER;
use narrows_wire::{Frame, FrameWriter};
use std::sync::Arc;

/// CLOSE code: the peer announced a protocol unknown to this end.
pub(crate) const UNKNOWN_PROTOCOL: u64 = 9;

/// The protocol for a peer's label.
pub(super) enum Announced {
    Protocol(Box<Protocol>),
    /// A controller that belongs to no listed protocol.
    Controller(&'static narrows_congestion::ControllerEntry, Settings),
}

/// Finds the protocol with this label: this end's own, a custom one, or a listed one.
pub(super) fn find(label: &str, ours: &Protocol, custom: &[Protocol]) -> Option<Announced> {
    let mut known = std::iter::once(ours).chain(custom);
    if let Some(protocol) = known.find(|p| p.label() == label) {
        return Some(Announced::Protocol(Box::new(protocol.clone())));
    }
    let spec = Spec::parse(label).ok()?;
    if let Ok(protocol) = Protocol::read(&spec, ours.packet_bytes()) {
        return Some(Announced::Protocol(Box::new(protocol)));
    }
    let entry = narrows_congestion::find(&spec.name).ok()?;
    Some(Announced::Controller(entry, entry.read(&spec).ok()?))
}

/// Receiver side of the peer's controller, and the loss classifier for its packets.
pub(super) type Receiving = (Option<Box<dyn ReceiverSide>>, Option<LossTracker>);

/// The receiver side and loss classifier for the announced protocol; `None` if this end has no
/// protocol with that label. A peer's protocol without a loss classifier gets that of this end.
pub(super) fn receiving(
    label: &str,
    ours: &Protocol,
    custom: &[Protocol],
    environment: &Environment,
) -> Option<Receiving> {
    let classifier = |p: &Protocol| p.config().feedback.classifier.tracker();
    if label.is_empty() {
        return Some((None, classifier(ours)));
    }
    Some(match find(label, ours, custom)? {
        Announced::Protocol(peers) => {
            (peers.receiver_side(environment), classifier(&peers).or_else(|| classifier(ours)))
        }
        Announced::Controller(entry, settings) => {
            (entry.receiver.map(|build| build(&settings, environment)), classifier(ours))
        }
    })
}

/// The protocols of both ends for sending.
pub(super) struct Protocols {
    /// This end's.
    pub protocol: Protocol,
    /// Unlisted protocols that the peer may announce.
    pub custom: Arc<[Protocol]>,
    /// The input of controllers' constructors.
    pub environment: Environment,
    /// Label of this end's protocol. `announce` is a copy that remains until the announcement is acknowledged.
    pub label: Box<str>,
    pub announce: Option<Box<str>>,
    /// Label of the peer's protocol.
    pub peers: Box<str>,
    /// Whether the peer may still announce another protocol. A server may do so once.
    pub may_say: bool,
    /// The label that the peer announced, if it is unknown to this end. A server may still announce another one.
    pub unknown: Option<Box<str>>,
}

impl Protocols {
    /// A new controller of this end's protocol.
    pub fn controller(&self) -> Box<dyn Controller> {
        self.protocol.controller(&self.environment)
    }
    /// The receiver side and loss classifier for the peer's packets; `None` if its protocol is unknown to this end.
    pub fn receiving(&self) -> Option<Receiving> {
        receiving(&self.peers, &self.protocol, &self.custom, &self.environment)
    }
    /// Writes CONTROLLER, the label of this end's protocol, if it differs from the handshake's. Every packet has it
    /// until one is acknowledged (`is_announced`).
    #[inline]
    pub fn write_label(&mut self, is_announced: bool, writer: &mut FrameWriter<'_>) {
        if is_announced {
            self.announce = None;
        } else if let Some(label) = &self.announce {
            let body = label.as_bytes();
            // The first packets are empty, so it fits.
            let _ = writer.frame(&Frame::Extension { kind: CONTROLLER, body });
        }
    }
}
