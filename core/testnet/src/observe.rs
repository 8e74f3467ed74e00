//! What happens to each datagram, for observers.

use crate::datagram::Datagram;
use crate::ids::{LinkId, NodeId};
use narrows_base::Time;
use std::fmt;
use std::time::Duration;

/// What happened to a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Fate {
    /// A host sent it. Each segment counts.
    Sent,
    /// It arrived at its host, with the ECN field that queues gave it.
    Delivered,
    /// A queue marked it with CE; the datagram is shown as it was sent.
    Marked,
    /// The queue or the policer dropped it.
    Dropped,
    /// It was larger than the link's MTU.
    TooLarge,
    /// It was lost behind the queue.
    Lost,
    /// Its host discarded it because it was damaged on a link.
    Damaged,
    /// An address translator refused it.
    Filtered,
    /// No route led to its destination, or its source was not its host's.
    Unroutable,
    /// Not sent because 2^20 datagrams were in the network.
    Refused,
}

impl Fate {
    /// A name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Fate::Sent => "sent",
            Fate::Delivered => "delivered",
            Fate::Marked => "marked",
            Fate::Dropped => "dropped",
            Fate::TooLarge => "too large",
            Fate::Lost => "lost",
            Fate::Damaged => "damaged",
            Fate::Filtered => "filtered",
            Fate::Unroutable => "unroutable",
            Fate::Refused => "refused",
        }
    }
}

/// Where something happened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// At a host, a router or an address translator.
    Node(NodeId),
    /// On a link.
    Link(LinkId),
}

/// Something that happened to a datagram.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct NetworkEvent<'a> {
    /// Time from the network's start. A loss has the time at which its datagram left the queue, which may be later than
    /// that of the next event.
    pub at: Duration,
    /// Where.
    pub place: Place,
    /// What.
    pub fate: Fate,
    /// The datagram, with the addresses that it has there.
    pub datagram: &'a Datagram,
}

type Observer = Box<dyn FnMut(&NetworkEvent<'_>) + Send>;

/// All observers of a network.
#[derive(Default)]
pub(crate) struct Observers(Vec<Observer>);

impl Observers {
    pub(crate) fn add(&mut self, observer: Observer) {
        self.0.push(observer);
    }

    #[inline]
    pub(crate) fn report(&mut self, at: Time, place: Place, fate: Fate, datagram: &Datagram) {
        if self.0.is_empty() {
            return;
        }
        let at = Duration::from_nanos(at.as_nanos());
        let event = NetworkEvent { at, place, fate, datagram };
        self.0.iter_mut().for_each(|observer| observer(&event));
    }
}

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} observers", self.0.len())
    }
}
