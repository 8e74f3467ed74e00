//! Outgoing datagrams of an endpoint: handshake packets, stateless replies, and the connections'
//! packets in turn.

use super::connection_state::ConnectionState;
use super::connections::Connections;
use super::managed::ManagedConnection;
use crate::connection::Transmit;
use narrows_base::Time;
use std::net::SocketAddr;

impl<C: ManagedConnection> Connections<C> {
    /// The next datagrams: up to `segments` of equal size to one address. Handshake packets come
    /// first, then connections, each once per turn.
    pub fn transmit(&mut self, now: Time, buffer: &mut [u8], segments: usize) -> Option<Transmit> {
        while let Some(slot) = self.urgent.pop_front() {
            let made = self.handshake_packet(now, slot);
            let content = self.table.get(slot).and_then(|s| s.content.as_ref());
            if matches!(content, Some(ConnectionState::Connecting(connecting)) if connecting.has_more())
            {
                self.urge(slot);
            }
            self.rearm(slot);
            if let Some(transmit) = made.and_then(|(to, packet)| put(buffer, to, &packet)) {
                return Some(transmit);
            }
        }
        // Stateless replies and connections alternate, so that neither can starve the other.
        if !self.answered_last || self.ready.is_empty() {
            while let Some((to, packet)) = self.answers.pop_front() {
                if let Some(transmit) = put(buffer, to, &packet) {
                    self.answered_last = true;
                    return Some(transmit);
                }
            }
        }
        self.answered_last = false;
        while let Some(slot) = self.ready.pop_front() {
            let Some(s) = self.table.get(slot) else { continue };
            s.is_ready = false;
            let mut is_finish_due = false;
            let sent = match &mut s.content {
                Some(ConnectionState::Live(live)) => {
                    // FINISH is repeated among the first data packets. One call must not pass the
                    // next repetition.
                    let most = live.finishing.as_ref().map_or(u64::MAX, |f| f.repeat.before_next());
                    let segments = segments.min(usize::try_from(most).unwrap_or(usize::MAX));
                    let sent = live.guarded(|c| c.transmit(now, buffer, segments)).flatten();
                    if let (Some(sent), Some(finishing)) = (&sent, &mut live.finishing) {
                        finishing.repeat.on_data(sent.size.div_ceil(sent.segment.max(1)) as u64);
                        is_finish_due = finishing.repeat.due() <= now;
                    }
                    sent
                }
                _ => None,
            };
            if is_finish_due {
                self.urge(slot);
            }
            let Some(s) = self.table.get(slot) else { continue };
            if sent.is_some() {
                s.is_ready = true;
                self.ready.push_back(slot);
            }
            self.rearm(slot);
            if sent.is_some() {
                return sent;
            }
            self.forget_reported(slot);
        }
        // The last connection had no packet to send, so replies may leave.
        let (to, packet) = self.answers.pop_front()?;
        put(buffer, to, &packet)
    }

    fn handshake_packet(&mut self, now: Time, slot: u32) -> Option<(SocketAddr, Vec<u8>)> {
        let s = self.table.get(slot)?;
        s.is_urgent = false;
        match s.content.as_mut()? {
            ConnectionState::Connecting(o) => Some((o.remote(), o.transmit(now)?)),
            ConnectionState::Accepting(a) => Some((a.from, a.transmit(now)?)),
            ConnectionState::Live(live) => {
                if let Some(early) = live.early.as_mut().filter(|early| early.is_wanted) {
                    early.is_wanted = false;
                    early.answered = Some(now);
                    return Some((early.to, early.packet.clone()));
                }
                let finishing = live.finishing.as_mut().filter(|f| f.repeat.due() <= now)?;
                finishing.repeat.on_sent(now);
                Some((live.remote, finishing.packet.clone()))
            }
            ConnectionState::Over(_) => None,
        }
    }
}

/// Writes one packet. `None` if the caller's buffer is too small; the packet is dropped then.
fn put(buffer: &mut [u8], to: SocketAddr, packet: &[u8]) -> Option<Transmit> {
    let size = packet.len();
    buffer.get_mut(..size)?.copy_from_slice(packet);
    Some(Transmit { to, size, segment: size, ecn: 0, socket: 0 })
}
