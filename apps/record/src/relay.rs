//! The tap of a relay: its two sides are two interfaces of the capture.

use super::tap::{Datagrams, Observers, RecordEvent, WriterQueue, zero};
use narrows_net::relay::{RelayObserver, RelaySide, RelayTap, RelayedDatagram};
use std::sync::{Arc, OnceLock};

/// Told by the relay's thread.
#[derive(Debug)]
pub struct RelayWatch {
    /// The endpoints' numbers, of the clients' side and of the server's.
    sides: OnceLock<[usize; 2]>,
    queue: Arc<WriterQueue>,
    observers: Observers,
}

impl RelayWatch {
    pub fn new(queue: Arc<WriterQueue>, observers: Observers) -> RelayWatch {
        RelayWatch { sides: OnceLock::new(), queue, observers }
    }

    fn side(&self, side: RelaySide) -> usize {
        let [clients, server] =
            *self.sides.get_or_init(|| [self.queue.endpoint(), self.queue.endpoint()]);
        if side == RelaySide::Clients { clients } else { server }
    }
}

impl RelayTap for RelayWatch {
    fn bound(&self, looker: RelayObserver) {
        let zero = zero(looker.clock());
        let clients = self.side(RelaySide::Clients);
        for (number, name) in [(clients, "clients"), (self.side(RelaySide::Server), "server")] {
            self.queue.push(RecordEvent::Endpoint(number, name, looker.local(), zero));
        }
        self.observers.add_link(clients, Box::new(looker));
    }

    fn passed(&self, d: &RelayedDatagram<'_>) {
        let copy = || Datagrams {
            at: d.at,
            sent: d.sent,
            local: Some(d.local),
            peer: d.peer,
            ecn: d.ecn,
            segment: d.bytes.len(),
            bytes: d.bytes.to_vec(),
        };
        self.queue.offer(self.side(d.side), 1, copy, d.bytes.len());
    }
}
