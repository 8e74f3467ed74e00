//! The methods that an application calls on a connection.

use super::messages::MESSAGE_OVERHEAD;
use super::path::Path;
use super::{Closed, Connection, MessageError, ReceivedMessage, Stats};
use crate::streams::{Read, StreamError};
use narrows_base::{Duration, Rate, Time};
use narrows_congestion::{HintSource, PathHints};
use narrows_recovery::packet_sender::Counters;
use narrows_wire::ConnectionId;
use std::net::SocketAddr;

impl Connection {
    /// Opens a stream. `None` if the peer's limit permits no further stream, or the connection is closed.
    pub fn open(&mut self, one_way: bool) -> Option<u64> {
        if self.is_open() { self.payload.streams.open(one_way) } else { None }
    }
    /// The next stream that the peer opened; `None` if there is no new one.
    pub fn accept(&mut self) -> Option<u64> {
        self.payload.streams.accept()
    }
    /// See [`Streams::write`](crate::streams::Streams::write).
    ///
    /// # Errors
    /// Those of `Streams::write`; [`StreamError::Unknown`] once the connection is closed.
    pub fn write(&mut self, id: u64, data: &[u8]) -> Result<usize, StreamError> {
        self.sending()?.write(id, data)
    }
    /// See [`Streams::finish`](crate::streams::Streams::finish).
    ///
    /// # Errors
    /// Those of `Streams::finish`; [`StreamError::Unknown`] once the connection is closed.
    pub fn finish(&mut self, id: u64) -> Result<(), StreamError> {
        self.sending()?.finish(id)
    }
    /// See [`Streams::set_priority`](crate::streams::Streams::set_priority).
    ///
    /// # Errors
    /// Those of `Streams::set_priority`; [`StreamError::Unknown`] once the connection is closed.
    pub fn set_priority(&mut self, id: u64, priority: i32) -> Result<(), StreamError> {
        self.sending()?.set_priority(id, priority)
    }
    /// See [`Streams::priority`](crate::streams::Streams::priority).
    ///
    /// # Errors
    /// Those of `Streams::priority`; [`StreamError::Unknown`] once the connection is closed.
    pub fn priority(&mut self, id: u64) -> Result<i32, StreamError> {
        self.sending()?.priority(id)
    }
    /// See [`Streams::reset`](crate::streams::Streams::reset).
    ///
    /// # Errors
    /// Those of `Streams::reset`; [`StreamError::Unknown`] once the connection is closed.
    pub fn reset(&mut self, id: u64, code: u64) -> Result<(), StreamError> {
        self.sending()?.reset(id, code)
    }
    /// See [`Streams::stop`](crate::streams::Streams::stop).
    ///
    /// # Errors
    /// Those of `Streams::stop`.
    pub fn stop(&mut self, id: u64, code: u64) -> Result<(), StreamError> {
        self.payload.streams.stop(id, code)
    }
    /// See [`Streams::read`](crate::streams::Streams::read). Data received before the connection
    /// ended can still be read.
    ///
    /// # Errors
    /// Those of `Streams::read`.
    pub fn read(&mut self, id: u64, into: &mut [u8]) -> Result<Read, StreamError> {
        self.payload.streams.read(id, into)
    }
    /// See [`Streams::read_with`](crate::streams::Streams::read_with).
    ///
    /// # Errors
    /// Those of `Streams::read_with`.
    pub fn read_with(
        &mut self,
        id: u64,
        most: usize,
        put: &mut dyn FnMut(&[u8]),
    ) -> Result<Read, StreamError> {
        self.payload.streams.read_with(id, most, put)
    }
    fn sending(&mut self) -> Result<&mut crate::streams::Streams, StreamError> {
        if self.is_open() { Ok(&mut self.payload.streams) } else { Err(StreamError::Unknown) }
    }

    /// Sets whether the newest of several waiting messages is sent first. By default the oldest is.
    pub fn newest_first(&mut self, on: bool) {
        self.payload.messages.newest_first = on;
    }
    /// The next received message; `None` if no message waits.
    pub fn receive_message(&mut self) -> Option<Vec<u8>> {
        self.inbox.pop().map(|message| message.bytes)
    }

    /// The next received message with its packet's arrival time and ECN field.
    pub fn receive_whole_message(&mut self) -> Option<ReceivedMessage> {
        self.inbox.pop()
    }

    /// Sets the ECN field (0 to 3) of later packets that carry data, in place of the protocol's choice. For
    /// applications that measure ECN on the path.
    pub fn set_ecn_field(&mut self, field: u8) {
        self.ecn.by_application = Some(field & 3);
    }

    /// To be called when this end's address has changed. A packet is sent at once to make the new address known to the
    /// peer.
    pub fn on_local_address_change(&mut self, path: u8) {
        let Some(index) = self.paths().position(|begun| begun.number == path) else { return };
        if self.is_open() {
            self.payload.ping |= index == 0;
            self.on_path(index, |connection| connection.path.sender.force());
        }
    }

    /// Number of received messages that wait to be read.
    pub fn messages_received(&self) -> usize {
        self.inbox.len()
    }

    /// Closes the connection and drops undelivered data. Codes from 256 on are the application's.
    pub fn close(&mut self, now: Time, code: u64, reason: &str) {
        let code = code.min(narrows_wire::bytes::MAX_VARINT);
        self.begin_closing(now, code, reason, Closed::Locally);
    }
    /// Starts a key update if the present key has been used long enough. Returns whether it did. Before a key reaches
    /// its limit, an update starts automatically.
    pub fn update_keys(&mut self) -> bool {
        self.is_open() && self.path.sealer.update()
    }
    /// Replaces the path hints, after a change of path or with better estimates from `source`.
    pub fn reconfigure(&mut self, now: Time, hints: &PathHints, source: HintSource) {
        self.path.on_hints(now, hints, source);
    }
    /// Sets an upper limit on the sending rate, regardless of the controller. `None` removes it.
    pub fn limit_rate(&mut self, most: Option<Rate>) {
        match &mut self.multipath {
            None => self.path.sender.limit_rate(most),
            Some(multipath) => {
                multipath.rate_limit = most;
                self.share_rate_limit();
            }
        }
    }

    /// Path hints for the next connection to the same peer, from measurements of this one.
    ///
    /// - Rate: the highest delivery rate of the last ten round trips. It is bounded by the bytes that arrived in a third
    ///   of a second or in a round trip, independently of the times in reports.
    /// - RTT: the smallest.
    /// - Loss rate: among packets that directly follow one with a short queueing delay. Absent below 200 such packets.
    ///
    /// None of them if an end's IP address ever changed, or with several paths: the address that the connection has now
    /// may be another one than that of the measurements.
    pub fn learned(&self) -> PathHints {
        if self.path_count() > 1 { PathHints::default() } else { self.path.learned() }
    }
    /// Counters and measurements up to now.
    pub fn stats(&self) -> Stats {
        let measured = |path: &&Path| path.sender.rtt().srtt() > Duration::ZERO;
        let nearest = self.paths_in_use().filter(measured);
        let nearest = nearest.min_by_key(|path| path.sender.rtt().srtt()).unwrap_or(&self.path);
        let rtt = nearest.sender.rtt();
        let limits = || self.paths_in_use().map(|path| path.sender.send_limits());
        let (arrived, taken) = self.payload.streams.carried();
        let expired = self.payload.messages.expired;
        Stats {
            counters: Counters { expired, ..self.counters() },
            datagrams_sent: self.traffic.datagrams_sent,
            bytes_sent: self.traffic.bytes_sent,
            bytes_received: self.traffic.bytes_received,
            bytes_arrived: arrived,
            bytes_unacknowledged: self.payload.streams.unacknowledged() as u64,
            bytes_taken: taken + self.inbox.bytes,
            srtt: rtt.srtt(),
            min_rtt: if rtt.min() < Duration::MAX { rtt.min() } else { Duration::ZERO },
            rtt_sum: self.path.rtts.0,
            rtt_samples: self.path.rtts.1,
            window: limits().map(|limits| limits.cwnd).sum(),
            rate: limits().filter_map(|limits| limits.pacing_rate).reduce(Rate::saturating_add),
            permitted: self.permitted_rate(),
            delay_difference: self.delay_difference(),
            flight: self.in_flight(),
            datagram: self.paths_in_use().map(Path::datagram).min().unwrap_or(0) as u16,
            refused: self.traffic.refused,
            unproved: self.traffic.unproved,
            repairs_sent: self.repairs.as_ref().map_or(0, |r| r.outgoing.sent.0),
            repair_bytes: self.repairs.as_ref().map_or(0, |r| r.outgoing.sent.1),
            rebuilt: self.repairs.as_ref().map_or(0, |r| r.incoming.count),
            radio_losses: self.path.sender.radio_losses(),
        }
    }
    /// Counters of all paths.
    fn counters(&self) -> Counters {
        let mut sum = self.path.sender.counters();
        self.further_paths().for_each(|path| sum.add(&path.sender.counters()));
        sum
    }
    /// Bytes of streams and messages acknowledged by the peer, plus those that the application received. Data sent
    /// twice may count twice.
    pub fn moved(&self) -> u64 {
        let payload = &self.payload;
        payload.bytes_arrived + payload.streams.carried().1 + self.inbox.bytes
    }
    /// Packets sent that are neither acknowledged nor declared lost.
    pub fn in_flight(&self) -> u64 {
        self.paths().map(|path| path.sender.packets_in_flight()).sum()
    }
    /// Approximate heap memory in bytes of streams, messages and packet records.
    pub fn memory(&self) -> usize {
        let payload = &self.payload;
        payload.streams.memory()
            + payload.messages.memory()
            + self.inbox.memory()
            + self.paths().map(Path::memory).sum::<usize>()
            + self.further_paths().count() * size_of::<Path>()
            + self.multipath.as_ref().map_or(0, |multipath| multipath.memory())
            + self.repairs.as_ref().map_or(0, |repairs| repairs.memory())
    }
    /// The controller's variables, for time series.
    pub fn watch(&self, put: &mut dyn FnMut(&'static str, f64)) {
        self.path.sender.controller().watch(put);
    }
    /// The peer's connection ID, which packets to the peer carry.
    pub fn peer_id(&self) -> ConnectionId {
        self.path.sealer.connection()
    }
    /// Label of this end's protocol for sending: name and parameters.
    pub fn protocol(&self) -> &str {
        &self.protocols.label
    }
    /// Label of the peer's protocol, as announced; empty before an announcement.
    pub fn peer_protocol(&self) -> &str {
        &self.protocols.peers
    }
    /// Arrival time of the last authentic packet; before the first, the time when the connection began.
    pub fn last_received(&self) -> Time {
        self.timeouts.received
    }
    /// The shorter of both ends' idle timeouts; zero means no timeout.
    pub fn idle_timeout(&self) -> Duration {
        self.timeouts.idle
    }
    /// The peer's validated address.
    pub fn remote(&self) -> SocketAddr {
        self.path.address.remote()
    }
    /// The agreed application protocol, or `Some(None)` if neither end names any. `None` at a client that offered
    /// several, until the server's choice arrives.
    pub fn application(&self) -> Option<Option<&str>> {
        self.agreement.agreed()
    }

    /// Queues a message. If it is not sent within `expiry`, it is dropped; zero means no limit.
    ///
    /// # Errors
    /// See [`MessageError`].
    pub fn send_message(
        &mut self,
        now: Time,
        message: &[u8],
        expiry: Duration,
    ) -> Result<(), MessageError> {
        if !self.is_open() {
            return Err(MessageError::Closed);
        }
        let most = self.message_limits.bound(self.path.mtu.most());
        if message.len() > most || self.message_limits.peers == 0 {
            return Err(MessageError::TooLong { most });
        }
        let most = self.max_message_len();
        if message.len() > most {
            self.seek_larger_datagrams(now, message.len() + MESSAGE_OVERHEAD);
            return Err(MessageError::TooLongForPath { most });
        }
        let taken = self.payload.messages.push(now, message, expiry);
        if taken { Ok(()) } else { Err(MessageError::QueueFull) }
    }

    /// Length in bytes of the longest message that can be sent now. It follows the path MTU found by probing, of several
    /// paths the smallest.
    pub fn max_message_len(&self) -> usize {
        self.message_limits.bound(self.common_datagram())
    }

    /// Number of messages that wait to be sent.
    pub fn messages_waiting(&self) -> usize {
        self.payload.messages.waiting.len()
    }
}
