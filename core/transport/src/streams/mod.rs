//! The streams of a connection at one end: ordered bytes in both directions, with flow control.
//!
//! Streams are those of RFC 9000 sections 2 to 4, with the frames of `docs/rrtp.md`. A stream is dropped when both
//! directions are over. Only streams with frames to send are in queues, so thousands of idle ones cost no work. Memory
//! is bounded by the limits granted to the peer and by `send_buffer`, both of which `growth` may raise.

mod early;
mod events;
mod fill;
mod flow_control;
mod growth;
mod incoming;
mod open;
mod outcomes;
mod priority;
mod queues;
mod reassembly;
mod receive;
mod send;
mod send_buffer;
mod spare;
mod stream;
mod stream_map;
mod values;

use flow_control::{Credit, ReceiveWindow, Total};
use growth::{BufferGrowth, Carried};
use narrows_base::{Duration, Time};
use narrows_wire::Frame;
use queues::Queues;
use send_buffer::SendBuffers;
use spare::SpareStreams;
use std::sync::Arc;
use stream::{MAX_STREAMS, Stream};
use values::KEPT;

pub use fill::WaitingData;
pub use growth::GrowthBudget;
pub use stream_map::StreamMap;
pub use values::{FlowControlLimits, Read, SentFrame, Side, StreamError, StreamEvent, Violation};

/// All streams of one end.
#[derive(Debug)]
pub struct Streams {
    side: Side,
    held: SendBuffers,
    /// Initial limit on a stream's bytes, granted by this end.
    stream_window: u64,
    /// Initial limit on a stream's bytes, granted by the peer.
    stream_credit: u64,
    /// Limits on the bytes of all streams, granted by this end and by the peer.
    all: Total,
    credit: Credit,
    /// Limits on bidirectional and unidirectional streams, granted by this end and by the peer.
    theirs: [ReceiveWindow; 2],
    ours: [Credit; 2],
    /// Whether an `open` failed, so that `MayOpen` is due.
    wants_open: [bool; 2],
    /// Number of the peer's streams that `accept` has visited.
    accepted: [u64; 2],
    map: StreamMap<Box<Stream>>,
    spare: SpareStreams,
    queues: Queues,
    /// Bytes of all streams acknowledged in order.
    arrived: u64,
    growth: BufferGrowth,
}

impl Streams {
    /// An end without streams. `send_buffer` limits the bytes written and not acknowledged, over all streams: see
    /// `send_buffer.rs`.
    pub fn new(side: Side, ours: FlowControlLimits, send_buffer: usize) -> Streams {
        let streams = |most: u64| ReceiveWindow::new(most.min(MAX_STREAMS));
        Streams {
            side,
            held: SendBuffers::new(send_buffer),
            stream_window: ours.stream,
            stream_credit: 0,
            all: Total::new(&ours),
            credit: Credit::default(),
            theirs: [streams(ours.both), streams(ours.one_way)],
            ours: [Credit::default(), Credit::default()],
            wants_open: [false; 2],
            accepted: [0; 2],
            map: StreamMap::default(),
            spare: SpareStreams::default(),
            queues: Queues::default(),
            arrived: 0,
            growth: BufferGrowth::default(),
        }
    }
    /// Lets the windows and the send buffer grow to this many bytes, as far as the budget lasts.
    pub fn set_growth(&mut self, most: usize, budget: Arc<GrowthBudget>) {
        self.growth = BufferGrowth::new(most, budget);
    }
    /// Whether a round trip has ended: then [`grow`](Streams::grow) is due.
    #[inline]
    pub fn round_ended(&self, now: Time) -> bool {
        self.growth.is_due(now)
    }
    /// Handles the end of a round trip. `round` is the longest of all paths.
    pub fn grow(&mut self, now: Time, round: Duration) {
        let sent = Carried { bytes: self.arrived, space: self.held.most() as u64 };
        let read = Carried { bytes: self.all.read, space: self.all.of_stream };
        let [sent, read] = self.growth.on_round(now, round, sent, read);
        self.held.grow(sent as usize);
        self.all.grow(read);
    }
    /// See [`ConnectionConfig::turn_bytes`](crate::connection::ConnectionConfig::turn_bytes).
    pub fn set_turn(&mut self, bytes: u64) {
        self.queues.fresh.set_turn(bytes);
    }
    /// Sets the bytes that may be sent before the first acknowledgement, which should be written by then.
    pub fn on_known_path(&mut self, bytes: usize) {
        self.held.on_known_path(bytes);
    }
    /// Sets the peer's initial limits, from the handshake.
    pub fn peer_permits(&mut self, peers: FlowControlLimits) {
        self.credit.raise(peers.data);
        self.stream_credit = peers.stream;
        for stream in self.map.values_mut() {
            if let Some(half) = &mut stream.send {
                half.credit.raise(peers.stream);
            }
            self.queues.touch(stream);
        }
        self.on_max_streams(false, peers.both);
        self.on_max_streams(true, peers.one_way);
    }
    /// Writes as many bytes as the buffer has space for. Returns their number, which may be 0.
    ///
    /// # Errors
    /// The stream does not exist or is not in this direction, was finished or reset, or was stopped
    /// by the peer.
    pub fn write(&mut self, id: u64, data: &[u8]) -> Result<usize, StreamError> {
        let held = self.held;
        self.sending(id, |half| half.write(data, &held))
    }
    /// Ends the stream after the written data.
    ///
    /// # Errors
    /// As [`write`](Streams::write).
    pub fn finish(&mut self, id: u64) -> Result<(), StreamError> {
        self.sending(id, send::SendHalf::finish)
    }
    /// Abandons sending. Also possible after [`finish`](Streams::finish), until all data are acknowledged.
    ///
    /// # Errors
    /// The stream does not exist or is not in this direction, or was reset.
    pub fn reset(&mut self, id: u64, code: u64) -> Result<(), StreamError> {
        let code = code.min(narrows_wire::bytes::MAX_VARINT);
        self.sending(id, |half| half.reset(code))
    }
    /// Stops reading: unread data are dropped, and the peer is requested to stop sending.
    ///
    /// # Errors
    /// The stream does not exist or is not in this direction, or its end was read.
    pub fn stop(&mut self, id: u64, code: u64) -> Result<(), StreamError> {
        let code = code.min(narrows_wire::bytes::MAX_VARINT);
        let stream = self.map.get_mut(id).ok_or(StreamError::Unknown)?;
        let half = stream.receive.as_mut().ok_or(StreamError::Unknown)?;
        half.stop(code, &mut self.all)?;
        self.settle(id);
        Ok(())
    }
    /// Reads in order. After [`Read::End`] or [`StreamError::Reset`] this direction is over; if the other is, too, the
    /// stream no longer exists.
    ///
    /// # Errors
    /// The stream does not exist or is not in this direction, was stopped, or was reset by the
    /// peer.
    pub fn read(&mut self, id: u64, into: &mut [u8]) -> Result<Read, StreamError> {
        let mut at = 0;
        self.read_with(id, into.len(), &mut |piece| {
            if let Some(place) = into.get_mut(at..at + piece.len()) {
                place.copy_from_slice(piece);
                at += piece.len();
            }
        })
    }
    /// As [`read`](Streams::read), but passes at most `most` bytes to `put`, in pieces, instead of copying them into a
    /// slice.
    ///
    /// # Errors
    /// As [`read`](Streams::read).
    pub fn read_with(
        &mut self,
        id: u64,
        most: usize,
        put: &mut dyn FnMut(&[u8]),
    ) -> Result<Read, StreamError> {
        let stream = self.map.get_mut(id).ok_or(StreamError::Unknown)?;
        let half = stream.receive.as_mut().ok_or(StreamError::Unknown)?;
        let read = half.read(most, put, &mut self.all);
        match read {
            // A caller may not read again after a short read, so the end needs an event.
            Ok(Read::Bytes(_)) if half.only_end_left() => self.queues.readable(stream),
            Ok(Read::Bytes(_)) if half.must_grant() => self.queues.touch(stream),
            Ok(_) if !half.is_over() => {}
            _ => self.settle(id),
        }
        read
    }

    /// Calls `act` on a sending half and updates the queues.
    fn sending<R>(
        &mut self,
        id: u64,
        act: impl FnOnce(&mut send::SendHalf) -> Result<R, StreamError>,
    ) -> Result<R, StreamError> {
        let stream = self.map.get_mut(id).ok_or(StreamError::Unknown)?;
        let half = stream.send.as_mut().ok_or(StreamError::Unknown)?;
        let before = half.buffered();
        let done = act(half);
        self.held.change(before, half.buffered());
        let over = half.is_over();
        self.queues.touch(stream);
        if over {
            self.settle(id);
        }
        done
    }

    /// Queues a stream after a change, or drops it if it is over.
    fn settle(&mut self, id: u64) {
        let Some(stream) = self.map.get_mut(id) else { return };
        self.queues.touch(stream);
        if stream.is_over() {
            self.queues.forget(stream);
            if let Some(stream) = self.map.remove(id) {
                self.spare.keep(stream);
            }
            if self.map.is_empty() {
                self.queues.release();
            }
            if !stream::is_ours(self.side, id) {
                self.theirs[stream::direction_index(id)].take(1);
            }
        }
    }

    /// Bytes acknowledged in order, over all streams; and bytes of the peer's streams that were read or dropped here.
    pub fn carried(&self) -> (u64, u64) {
        (self.arrived, self.all.window.taken())
    }

    /// Bytes written and not acknowledged.
    pub fn unacknowledged(&self) -> usize {
        self.held.bytes()
    }
    /// Heap memory in bytes.
    pub fn memory(&self) -> usize {
        let streams: usize = self.map.values().map(|stream| stream.memory()).sum();
        streams + self.map.memory() + self.spare.memory() + self.queues.memory()
    }
    /// Whether closed streams are kept for reuse.
    #[inline]
    pub fn has_spare(&self) -> bool {
        !self.spare.is_empty()
    }
    /// Releases memory kept for later streams.
    pub fn release_memory(&mut self) {
        self.spare = SpareStreams::default();
        self.map.release();
        self.queues.release_all();
    }

    /// Whether everything sent is acknowledged. Data written but not yet sent do not count.
    pub fn all_arrived(&self) -> bool {
        self.queues.busy == 0 && self.queues.said == 0
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "memory_tests.rs"]
mod memory_tests;

#[cfg(test)]
#[path = "priority_tests.rs"]
mod priority_tests;

#[cfg(test)]
#[path = "shuffle_tests.rs"]
mod shuffle_tests;
