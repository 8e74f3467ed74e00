//! The methods that an application calls on a connection.

use super::{Closed, Connection, ReceivedMessage, Stats};
use crate::Counters;
use crate::streams::{Read, StreamError};
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{HintSource, PathHints};
use narrows_wire::ConnectionId;
use std::net::SocketAddr;

/// The highest loss rate accepted in a peer's hints: controllers that allow for twice as much still
/// detect overload on a path that delivers less than half.
const MAX_PEER_LOSS: f64 = 0.2;
/// Number of packets from which on a loss rate is meaningful.
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
    /// As there; after the connection is closed every stream is unknown.
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
    /// See [`Streams::read`](crate::streams::Streams::read). Data received before the connection
    /// ended can still be read.
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

    /// If several messages wait, whether the newest leaves first.
    pub fn newest_first(&mut self, on: bool) {
        self.sender.payload_source_mut().messages.newest_first = on;
    }
    /// The next received message.
    pub fn receive_message(&mut self) -> Option<Vec<u8>> {
        self.inbox.pop().map(|message| message.bytes)
    }

    /// The next received message, and what is known of its packet.
    pub fn receive_whole_message(&mut self) -> Option<ReceivedMessage> {
        self.inbox.pop()
    }

    /// Sets the ECN field (0 to 3) of the packets that carry data from now on, whatever the protocol would have; for
    /// applications that measure what becomes of it.
    pub fn set_ecn_field(&mut self, field: u8) {
        self.ecn_field = Some(field & 3);
    }

    /// This end's own address has changed. A packet is sent at once so that the peer learns the new
    /// one.
    pub fn on_local_address_change(&mut self) {
        if self.is_open() {
            self.sender.payload_source_mut().ping = true;
            self.sender.force();
        }
    }

    /// Number of received messages that wait to be read.
    pub fn messages_received(&self) -> usize {
        self.inbox.len()
    }

    /// Closes the connection and drops undelivered data. Codes from 256 on belong to the
    /// application.
    pub fn close(&mut self, now: Time, code: u64, reason: &str) {
        let code = code.min(narrows_wire::bytes::MAX_VARINT);
        self.begin_closing(now, code, reason, Closed::Locally);
    }
    /// Starts a key update if the present key has been used long enough; returns whether it did. Updates happen by
    /// themselves before a key reaches its limit.
    pub fn update_keys(&mut self) -> bool {
        self.is_open() && self.sealer.update()
    }
    /// The path has changed or is better known, according to `source`.
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
    /// Bounds a peer's hints. Its rate is tried within the packet sender's limits; its round-trip time may not exceed
    /// ours, which the handshake has measured.
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
    /// Limits the sending rate, whatever the controller says.
    pub fn limit_rate(&mut self, most: Option<Rate>) {
        self.sender.limit_rate(most);
    }

    /// What it measured of the path, as path hints for the next connection to the same peer: the highest delivery rate
    /// of the last ten round trips (but no more than arrived in a third of a second or a round trip, independently of
    /// the reports' times), the smallest round-trip time, and the loss rate among packets that followed one that met no
    /// long queue, if there were enough of them.
    pub fn learned(&self) -> PathHints {
        let min = self.sender.rtt().min();
        let (lost, hints) = self.sender.losses_at_short_queue();
        PathHints {
            rate: self.learned.rate().map(|r| r.min(self.sender.max_delivered())),
            rtt: (min < Duration::MAX).then_some(min),
            loss: (hints >= ENOUGH).then(|| lost as f64 / hints as f64),
        }
    }
    /// Counters and measurements.
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
            repairs_sent: self.repairs.as_ref().map_or(0, |r| r.outgoing.sent.0),
            repair_bytes: self.repairs.as_ref().map_or(0, |r| r.outgoing.sent.1),
            rebuilt: self.repairs.as_ref().map_or(0, |r| r.incoming.count),
            radio_losses: self.sender.radio_losses(),
        }
    }
    /// Bytes of streams and messages that the peer is known to have received, plus those that the
    /// application took. Data sent twice may count twice.
    pub fn moved(&self) -> u64 {
        let payload_source = self.sender.payload_source();
        payload_source.bytes_arrived + payload_source.streams.carried().1 + self.inbox.bytes
    }
    /// Packets sent of which nothing is known.
    pub fn in_flight(&self) -> u64 {
        self.sender.flight()
    }
    /// Approximate heap memory in bytes of streams, messages and packet records.
    pub fn memory(&self) -> usize {
        let payload_source = self.sender.payload_source();
        payload_source.streams.memory()
            + payload_source.messages.memory()
            + self.inbox.memory()
            + self.sender.memory()
            + self.receiver.memory()
            + self.receiver.received().memory()
            + self.nonces.memory()
            + self.repairs.as_ref().map_or(0, |repairs| repairs.memory())
    }
    /// The controller's variables, for time series.
    pub fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        self.sender.controller().watch(put);
    }
    /// The peer's connection id, which packets to it carry.
    pub fn peer_id(&self) -> ConnectionId {
        self.sealer.connection()
    }
    /// Name and parameters of the protocol of this end's sending.
    pub fn protocol(&self) -> &str {
        &self.label
    }
    /// The same of the peer's, as it announced it; empty if it announced nothing.
    pub fn peer_protocol(&self) -> &str {
        &self.setup.peers
    }
    /// When the last authentic packet arrived; at first, when the connection began.
    pub fn last_received(&self) -> Time {
        self.last_received
    }
    /// Idle timeout, the shorter of both ends'; zero for none.
    pub fn idle_timeout(&self) -> Duration {
        self.idle_timeout
    }
    /// The peer's address.
    pub fn remote(&self) -> SocketAddr {
        self.path.remote()
    }
}
