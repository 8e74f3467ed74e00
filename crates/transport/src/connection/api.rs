//! What an application asks of a connection.

use super::{Closed, Connection, Stats};
use crate::Counters;
use crate::streams::{Read, StreamError};
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{HintSource, PathHints};
use narrows_wire::ConnectionId;
use std::net::SocketAddr;

/// Share of lost packets that a peer may call usual: controllers that allow for twice as much still
/// take a path that delivers less than half for one that is overloaded.
const MAX_PEER_LOSS: f64 = 0.2;
/// Packets after which a share of losses says something.
const ENOUGH: u64 = 200;

impl Connection {
    /// Opens a stream.
    pub fn open(&mut self, one_way: bool) -> Option<u64> {
        if self.is_open() { self.sender.payload_source_mut().streams.open(one_way) } else { None }
    }
    /// The next stream that the peer opened.
    pub fn accept(&mut self) -> Option<u64> {
        self.sender.payload_source_mut().streams.accept()
    }
    /// See [`Streams::write`](crate::streams::Streams::write).
    ///
    /// # Errors
    /// As there; all streams are unknown when the connection is closed.
    pub fn write(&mut self, id: u64, data: &[u8]) -> Result<usize, StreamError> {
        self.sending()?.write(id, data)
    }
    /// See [`Streams::finish`](crate::streams::Streams::finish).
    ///
    /// # Errors
    /// As there.
    pub fn finish(&mut self, id: u64) -> Result<(), StreamError> {
        self.sending()?.finish(id)
    }
    /// See [`Streams::set_priority`](crate::streams::Streams::set_priority).
    ///
    /// # Errors
    /// As there.
    pub fn set_priority(&mut self, id: u64, priority: i32) -> Result<(), StreamError> {
        self.sending()?.set_priority(id, priority)
    }
    /// See [`Streams::priority`](crate::streams::Streams::priority).
    ///
    /// # Errors
    /// As there.
    pub fn priority(&mut self, id: u64) -> Result<i32, StreamError> {
        self.sending()?.priority(id)
    }
    /// See [`Streams::reset`](crate::streams::Streams::reset).
    ///
    /// # Errors
    /// As there.
    pub fn reset(&mut self, id: u64, code: u64) -> Result<(), StreamError> {
        self.sending()?.reset(id, code)
    }
    /// See [`Streams::stop`](crate::streams::Streams::stop).
    ///
    /// # Errors
    /// As there.
    pub fn stop(&mut self, id: u64, code: u64) -> Result<(), StreamError> {
        self.sender.payload_source_mut().streams.stop(id, code)
    }
    /// See [`Streams::read`](crate::streams::Streams::read). What came before the connection ended
    /// can be read after it.
    ///
    /// # Errors
    /// As there.
    pub fn read(&mut self, id: u64, into: &mut [u8]) -> Result<Read, StreamError> {
        self.sender.payload_source_mut().streams.read(id, into)
    }
    /// See [`Streams::read_with`](crate::streams::Streams::read_with).
    ///
    /// # Errors
    /// As there.
    pub fn read_with(
        &mut self,
        id: u64,
        most: usize,
        put: &mut dyn FnMut(&[u8]),
    ) -> Result<Read, StreamError> {
        self.sender.payload_source_mut().streams.read_with(id, most, put)
    }
    fn sending(&mut self) -> Result<&mut crate::streams::Streams, StreamError> {
        if self.is_open() {
            Ok(&mut self.sender.payload_source_mut().streams)
        } else {
            Err(StreamError::Unknown)
        }
    }

    /// Whether the newest message leaves first, when several wait.
    pub fn newest_first(&mut self, on: bool) {
        self.sender.payload_source_mut().messages.newest_first = on;
    }
    /// The next message that came.
    pub fn receive_message(&mut self) -> Option<Vec<u8>> {
        self.inbox.pop()
    }

    /// This end's own address has changed: the peer learns it from a packet that leaves at once.
    pub fn on_local_address_change(&mut self) {
        if self.is_open() {
            self.sender.payload_source_mut().ping = true;
            self.sender.force();
        }
    }

    /// Messages that came and wait to be received.
    pub fn messages_received(&self) -> usize {
        self.inbox.len()
    }

    /// Closes; what was not delivered is dropped. A code from 256 on is the application's.
    pub fn close(&mut self, now: Time, code: u64, reason: &str) {
        let code = code.min(narrows_wire::bytes::MAX_VARINT);
        self.begin_closing(now, code, reason, Closed::Locally);
    }
    /// Seals with the next key from now on, if the present one has served long enough; whether it does.
    /// It happens by itself before a key is used up.
    pub fn update_keys(&mut self) -> bool {
        self.is_open() && self.sealer.update()
    }
    /// The path is another one, or better known: so says `source`.
    pub fn reconfigure(&mut self, now: Time, hints: &PathHints, source: HintSource) {
        let mut hints = *hints;
        if source == HintSource::Peer {
            hints = self.bounded(&hints);
        } else if let Some(rate) = hints.rate {
            self.mtu.on_rate(rate);
            self.set_scale(now);
        }
        self.sender.on_path_hints(now, &hints, source);
    }
    /// What may be believed of what the peer says. Its rate is tried, as the packet sender bounds it; its
    /// round-trip time is no longer than ours, of which there is one since the handshake.
    fn bounded(&self, hints: &PathHints) -> PathHints {
        let rtt = self.sender.rtt();
        let measured = if rtt.min() < Duration::MAX { rtt.min() } else { rtt.srtt() };
        let rtt = hints.rtt.filter(|_| measured > Duration::ZERO).map(|rtt| rtt.min(measured));
        PathHints {
            rate: hints.rate,
            rtt,
            loss: hints.loss.map(|loss| loss.clamp(0.0, MAX_PEER_LOSS)),
        }
    }
    /// Never faster than this.
    pub fn limit_rate(&mut self, most: Option<Rate>) {
        self.sender.limit_rate(most);
    }

    /// What it learned of the path, as path hints for the next connection to the same place: the
    /// highest delivery rate of the last ten round trips (no more than arrived in a third of a second or a round
    /// trip, whatever the reports' times pretend), the smallest round-trip time, and the share that was lost of
    /// the packets that left behind one that saw no long queue; none where these were too few.
    pub fn learned(&self) -> PathHints {
        let min = self.sender.rtt().min();
        let (lost, hints) = self.sender.losses_at_short_queue();
        PathHints {
            rate: self.learned.rate().map(|r| r.min(self.sender.max_delivered())),
            rtt: (min < Duration::MAX).then_some(min),
            loss: (hints >= ENOUGH).then(|| lost as f64 / hints as f64),
        }
    }
    /// Figures.
    pub fn stats(&self) -> Stats {
        let send_limits = self.sender.send_limits();
        let min = self.sender.rtt().min();
        let (arrived, taken) = self.sender.payload_source().streams.carried();
        let expired = self.sender.payload_source().messages.expired;
        Stats {
            counters: Counters { expired, ..self.sender.counters() },
            datagrams_sent: self.datagrams_sent,
            bytes_sent: self.bytes_sent,
            bytes_received: self.bytes_received,
            bytes_arrived: arrived,
            bytes_taken: taken + self.inbox.bytes,
            srtt: self.sender.rtt().srtt(),
            min_rtt: if min < Duration::MAX { min } else { Duration::ZERO },
            rtt_sum: self.rtts.0,
            rtt_samples: self.rtts.1,
            window: send_limits.cwnd,
            rate: send_limits.pacing_rate,
            flight: self.sender.flight(),
            datagram: self.datagram() as u16,
            refused: self.refused,
            unproved: self.unproved,
            radio_losses: self.sender.radio_losses(),
        }
    }
    /// Bytes of streams and messages that the peer is known to have, and that the application took.
    /// What was sent twice may count twice.
    pub fn moved(&self) -> u64 {
        let payload_source = self.sender.payload_source();
        payload_source.bytes_arrived + payload_source.streams.carried().1 + self.inbox.bytes
    }
    /// Bytes of the heap that streams, messages and the books of packets hold, about.
    pub fn memory(&self) -> usize {
        let payload_source = self.sender.payload_source();
        payload_source.streams.memory()
            + payload_source.messages.memory()
            + self.inbox.memory()
            + self.sender.memory()
            + self.receiver.memory()
            + self.receiver.received().memory()
            + self.nonces.memory()
    }
    /// The controller's named numbers, for traces.
    pub fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        self.sender.controller().watch(put);
    }
    /// What the peer calls this connection: the id in the packets to it.
    pub fn peer_id(&self) -> ConnectionId {
        self.sealer.connection()
    }
    /// What this end sends with.
    pub fn protocol(&self) -> &str {
        &self.label
    }
    /// When something authentic came last; its beginning before that.
    pub fn last_received(&self) -> Time {
        self.last_received
    }
    /// How long it waits for something authentic; zero for ever. The shorter of both ends' wishes.
    pub fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }
    /// Where the peer is.
    pub fn remote(&self) -> SocketAddr {
        self.path.remote()
    }
}
