//! The protocol that the peer announced for sending. It is identified by its label, because this
//! end runs the receiver side of its controller.

use super::{Closed, Connection};
use crate::loss_classifier::LossTracker;
use crate::{Preset, Protocol};
use narrows_base::{Settings, Spec, Time};
use narrows_congestion::{Environment, ReceiverSide};

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
    if let Ok(protocol) = Protocol::read(&spec, Preset::Rfc, ours.packet_bytes()) {
        return Some(Announced::Protocol(Box::new(protocol)));
    }
    let entry = narrows_congestion::find(&spec.name).ok()?;
    Some(Announced::Controller(entry, entry.read(&spec).ok()?))
}

/// Receiver side of the peer's controller, and the loss classifier for its packets.
type Receiving = (Option<Box<dyn ReceiverSide>>, Option<LossTracker>);

/// The receiver side and loss classifier for the announced protocol; `None` if this end has no
/// protocol with that label. A peer's protocol without a loss classifier gets that of this end.
pub(super) fn receiving(
    label: &str,
    ours: &Protocol,
    custom: &[Protocol],
    environment: &Environment,
) -> Option<Receiving> {
    let classifier = |p: &Protocol| p.datagram().feedback.classifier.tracker();
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

impl Connection {
    /// Closes the connection if the peer announced a protocol unknown to this end. Without a
    /// receiver side the peer's sending might never work, with no visible reason.
    pub(super) fn on_unknown(&mut self, now: Time) {
        let Some(label) = self.unknown.take() else { return };
        let reason = format!("the protocol '{label}' is unknown here");
        let label = label.into();
        self.begin_closing(now, UNKNOWN_PROTOCOL, &reason, Closed::UnknownProtocol { label });
    }
}
