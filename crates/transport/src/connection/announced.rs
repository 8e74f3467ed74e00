//! What a peer says that it sends with: known by its label, since this end runs the receiver side.

use super::{Closed, Connection};
use crate::loss_classifier::LossTracker;
use crate::{Preset, Protocol};
use narrows_base::{Settings, Spec, Time};
use narrows_congestion::{Environment, ReceiverSide};

/// CLOSE's code for a peer that sends with a protocol that this end does not know.
pub(crate) const UNKNOWN_PROTOCOL: u64 = 9;

/// What a peer announced, as far as this end knows it.
pub(super) enum Announced {
    Protocol(Box<Protocol>),
    /// A controller that no protocol over our endpoint has the name of.
    Controller(&'static narrows_congestion::ControllerEntry, Settings),
}

/// What has that label: ours, one that is in no list, or one of the lists.
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

/// What the peer's sending needs at this end: the receiver side of its controller, and who tells
/// radio losses from congestion.
type Receiving = (Option<Box<dyn ReceiverSide>>, Option<LossTracker>);

/// For what the peer announced; `None` if this end does not know it. The loss classifier is the
/// peer's protocol's, else as ours does.
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
    /// The peer sends with something that this end does not know: without a receiver side it may
    /// never learn what it needs, and nobody would know why.
    pub(super) fn on_unknown(&mut self, now: Time) {
        let Some(label) = self.unknown.take() else { return };
        let reason = format!("the protocol '{label}' is unknown here");
        let label = label.into();
        self.begin_closing(now, UNKNOWN_PROTOCOL, &reason, Closed::UnknownProtocol { label });
    }
}
