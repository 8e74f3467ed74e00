//! Nodes as flows of the simulator (`narrows-sim`): beside TCP and rrtp, in comparisons and scenarios.

use crate::{Datagram, Ecn, Node};
use narrows_base::Time;
use narrows_sim::endpoints::foreign::{ForeignDatagram, ForeignEnd};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A [`Node`] as one end of a simulated flow.
///
/// The sender's node gets the commands `write N` (bytes of the application) and `stop`. Variables: `bytes` that the
/// receiver's node has read, `cwnd` in bytes, `rtt` in seconds, `lost` packets.
pub struct SimulatedNode {
    node: Box<dyn Node + Send>,
    peer: SocketAddr,
    local: SocketAddr,
    made: Instant,
    /// Time of the first call: the node's [`made`](SimulatedNode::made).
    first: Option<Time>,
    overhead: u32,
    outgoing: VecDeque<Datagram>,
}

impl SimulatedNode {
    /// A node that was made at this instant; its time begins with the first call. Of each datagram of a sender all but
    /// `overhead` bytes count as the application's.
    pub fn new(
        node: Box<dyn Node + Send>,
        local: SocketAddr,
        peer: SocketAddr,
        made: Instant,
        overhead: u32,
    ) -> SimulatedNode {
        let outgoing = VecDeque::new();
        SimulatedNode { node, peer, local, made, first: None, overhead, outgoing }
    }

    fn instant(&mut self, now: Time) -> Instant {
        let first = *self.first.get_or_insert(now);
        self.made + Duration::from_nanos(now.since(first).as_nanos())
    }
}

impl ForeignEnd for SimulatedNode {
    fn write(&mut self, now: Time, bytes: u64) {
        let now = self.instant(now);
        self.node.command(now, &format!("write {bytes}"));
    }

    fn stop(&mut self, now: Time) {
        let now = self.instant(now);
        self.node.command(now, "stop");
    }

    fn handle(&mut self, now: Time, datagram: ForeignDatagram) {
        let now = self.instant(now);
        let received = Datagram::udp(self.peer, self.local, datagram.payload);
        self.node.handle(now, received.with_ecn(Ecn::from_bits(datagram.ecn)));
    }

    fn poll(&mut self, now: Time) -> Option<ForeignDatagram> {
        if self.outgoing.is_empty() {
            let now = self.instant(now);
            self.outgoing.extend(self.node.poll_transmit(now)?.segments());
        }
        let datagram = self.outgoing.pop_front()?;
        Some(ForeignDatagram {
            header_bytes: datagram.header_bytes,
            application_bytes: (datagram.payload.len() as u32).saturating_sub(self.overhead),
            ecn: datagram.ecn.bits(),
            payload: datagram.payload,
        })
    }

    fn next_timeout(&mut self) -> Time {
        let Some(first) = self.first else { return Time::NEVER };
        let made = self.made;
        self.node.next_timeout().map_or(Time::NEVER, |at| {
            let since = at.saturating_duration_since(made).as_nanos();
            first + narrows_base::Duration::from_nanos(u64::try_from(since).unwrap_or(u64::MAX))
        })
    }

    fn delivered(&self) -> u64 {
        self.node.variable("bytes").unwrap_or_default() as u64
    }

    fn variable(&self, name: &str) -> Option<f64> {
        self.node.variable(name)
    }
}
