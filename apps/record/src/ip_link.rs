//! An emulated link that carries whole IP packets: its two ends are two interfaces of the capture.

use super::observed_link::ObservedLink;
use super::tap::{Observers, RecordEvent, RecordedIpPacket, WriterQueue, zero};
use narrows_base::Time;
use narrows_net::Clock;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// Records an emulated link. The emulator calls its methods.
#[derive(Debug)]
pub struct IpLinkRecord {
    ends: [usize; 2],
    queue: Arc<WriterQueue>,
    observers: Observers,
}

impl IpLinkRecord {
    pub(super) fn new(
        names: [&'static str; 2],
        clock: Clock,
        queue: Arc<WriterQueue>,
        observers: Observers,
    ) -> IpLinkRecord {
        let zero = zero(clock);
        let ends = names.map(|name| {
            let number = queue.endpoint();
            // Packets have their own addresses.
            let unspecified = SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0));
            queue.push(RecordEvent::Endpoint(number, name, unspecified, zero));
            number
        });
        IpLinkRecord { ends, queue, observers }
    }

    /// A packet, from its IP header on, entered or left the link at end 0 or 1.
    pub fn passed(&self, end: usize, at: Time, packet: &[u8]) {
        let Some(end) = self.ends.get(end) else { return };
        self.queue
            .offer_packet(*end, packet.len(), || RecordedIpPacket { at, bytes: packet.to_vec() });
    }

    /// Samples its counts from now on, until the link has stopped.
    pub fn watch(&self, link: Box<dyn ObservedLink>) {
        let [first, _] = self.ends;
        self.observers.add_link(first, link);
    }
}
