//! The streams of a connection at one end: ordered bytes in both directions, with flow control.
//!
//! Streams are those of RFC 9000 sections 2 to 4, with the frames of `docs/rrtp.md`. A stream is
//! dropped when both directions are over. Only streams with something to send are in lists, so
//! thousands of idle ones cost nothing. Memory is bounded by what this end's limits grant to the
//! peer and by `send_buffer` for each stream.

mod early;
mod events;
mod fill;
mod flow_control;
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
mod stream_map;

use flow_control::{Credit, Total, Window};
use narrows_wire::Frame;
use open::Stream;
use queues::Queues;
use send_buffer::SendBuffers;
use spare::SpareStreams;
pub use stream_map::StreamMap;

/// A stream keeps a buffer of so many bytes while nothing is in it; greater ones are given back.
const KEPT: usize = 1024;

/// Which end of a connection this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It began the connection.
    Client,
    /// It was connected to.
    Server,
}

/// Initial flow-control limits for the peer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of all streams together; also the window while the application reads.
    pub data: u64,
    /// Bytes of one stream; also the window while the application reads.
    pub stream: u64,
    /// Number of open bidirectional streams.
    pub both: u64,
    /// Number of open unidirectional streams.
    pub one_way: u64,
}

/// The result of a read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing now; an event tells when.
    Blocked,
    /// All was read: the stream's end.
    End,
}

/// Why an operation on a stream failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamError {
    /// There is no such stream (any more), or not in this direction.
    Unknown,
    /// The peer gave its sending up, with this code.
    Reset(u64),
    /// The peer wants no more of it, with this code.
    Stopped(u64),
    /// It was finished or reset before by this end.
    Finished,
}

impl std::fmt::Display for StreamError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StreamError::Unknown => f.write_str("there is no such stream"),
            StreamError::Reset(code) => {
                write!(f, "the peer gave up sending on this stream (code {code})")
            }
            StreamError::Stopped(code) => {
                write!(f, "the peer wants no more of this stream (code {code})")
            }
            StreamError::Finished => f.write_str("this stream was finished before"),
        }
    }
}

impl std::error::Error for StreamError {}

/// An event of a stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// The peer opened one or several: `accept` gives them.
    Opened,
    /// There is something to read, or the end, or a reset.
    Readable(u64),
    /// After a write that took less than all: there is room again, or the peer wants no more.
    Writable(u64),
    /// All that was written, the end included, has arrived at the peer.
    Arrived(u64),
    /// After an `open` that got none: the peer permits more.
    MayOpen,
}

/// A frame in a sent packet, kept until its outcome is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SentFrame {
    /// Bytes of a stream.
    Stream {
        /// Which.
        id: u64,
        /// Of the first byte.
        offset: u64,
        /// How many.
        length: u32,
        /// Whether the end was said.
        fin: bool,
    },
    /// MAX_DATA.
    MaxData,
    /// MAX_STREAM.
    MaxStream(u64),
    /// MAX_STREAMS, of one direction or both.
    MaxStreams(bool),
    /// RESET_STREAM.
    Reset(u64),
    /// STOP.
    Stop(u64),
    /// BLOCKED and its kin: said again only if still true.
    Blocked,
}

/// A protocol violation by the peer that ends the connection: CLOSE's code and the reason.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Violation {
    /// Error code as in `docs/rrtp.md`: 2 flow control, 3 stream state.
    pub code: u64,
    /// A description for people.
    pub why: &'static str,
}

/// All streams of one end.
#[derive(Debug)]
pub struct Streams {
    side: Side,
    held: SendBuffers,
    /// Bytes of a stream that this end permits at first.
    stream_window: u64,
    /// Bytes of a stream that the peer permits at first.
    stream_credit: u64,
    /// Bytes of all streams: permitted to the peer, and by it.
    all: Total,
    credit: Credit,
    /// Streams of both directions and of one: permitted to the peer, and by it.
    theirs: [Window; 2],
    ours: [Credit; 2],
    /// An `open` got none.
    wants_open: [bool; 2],
    /// How many of the peer's streams `accept` has looked at.
    accepted: [u64; 2],
    map: StreamMap<Box<Stream>>,
    spare: SpareStreams,
    queues: Queues,
    /// Bytes of all streams that arrived at the peer, each without a gap before it.
    arrived: u64,
}

impl Streams {
    /// Without streams. `send_buffer` bounds the bytes that are written and have not arrived, over
    /// all streams: see `send_buffer.rs`.
    pub fn new(side: Side, ours: Limits, send_buffer: usize) -> Streams {
        let streams = |most: u64| Window::new(most.min(open::MAX_STREAMS));
        Streams {
            side,
            held: SendBuffers::new(send_buffer),
            stream_window: ours.stream,
            stream_credit: 0,
            all: Total { window: Window::new(ours.data), sent_frames: 0 },
            credit: Credit::default(),
            theirs: [streams(ours.both), streams(ours.one_way)],
            ours: [Credit::default(), Credit::default()],
            wants_open: [false; 2],
            accepted: [0; 2],
            map: StreamMap::default(),
            spare: SpareStreams::default(),
            queues: Queues::default(),
            arrived: 0,
        }
    }
    /// See [`ConnectionConfig::turn_bytes`](crate::connection::ConnectionConfig::turn_bytes).
    pub fn set_turn(&mut self, bytes: u64) {
        self.queues.fresh.set_turn(bytes);
    }
    /// This many bytes may be sent before anything is acknowledged, and should be written by then.
    pub fn on_known_path(&mut self, bytes: usize) {
        self.held.on_known_path(bytes);
    }
    /// The peer's initial limits, known after the handshake.
    pub fn peer_permits(&mut self, peers: Limits) {
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
    /// Writes as many bytes as there is room for, and returns how many; 0 if there is no room.
    ///
    /// # Errors
    /// The stream does not exist or is not in this direction, was finished or reset, or was stopped
    /// by the peer.
    pub fn write(&mut self, id: u64, data: &[u8]) -> Result<usize, StreamError> {
        let held = self.held;
        self.sending(id, |half| half.write(data, &held))
    }
    /// Ends the stream after what has been written.
    ///
    /// # Errors
    /// As [`write`](Streams::write).
    pub fn finish(&mut self, id: u64) -> Result<(), StreamError> {
        self.sending(id, send::Sending::finish)
    }
    /// Abandons sending. Possible after [`finish`](Streams::finish), too, until all data have
    /// arrived.
    ///
    /// # Errors
    /// The stream does not exist or is not in this direction, or was reset.
    pub fn reset(&mut self, id: u64, code: u64) -> Result<(), StreamError> {
        let code = code.min(narrows_wire::bytes::MAX_VARINT);
        self.sending(id, |half| half.reset(code))
    }
    /// Stops reading: unread data are dropped, and the peer is asked to stop sending.
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
    /// Reads in order. After [`Read::End`] or [`StreamError::Reset`] this direction is over; if the
    /// other is too, the stream no longer exists.
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
            // Whoever takes a short read for the last one would not come back for the end.
            Ok(Read::Bytes(_)) if half.only_end_left() => self.queues.readable(stream),
            Ok(Read::Bytes(_)) if half.must_grant() => self.queues.touch(stream),
            Ok(_) if !half.is_over() => {}
            _ => self.settle(id),
        }
        read
    }

    /// Does something to a sending half.
    fn sending<R>(
        &mut self,
        id: u64,
        act: impl FnOnce(&mut send::Sending) -> Result<R, StreamError>,
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

    /// After something happened to a stream: into the lists where it belongs, or forgotten.
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
            if !open::is_ours(self.side, id) {
                self.theirs[open::direction_index(id)].take(1);
            }
        }
    }

    /// Bytes that the peer has received in order, over all streams; and bytes of the peer's streams
    /// that were read or dropped here.
    pub fn carried(&self) -> (u64, u64) {
        (self.arrived, self.all.window.taken())
    }

    /// Bytes written that are not known to have arrived.
    pub fn unacknowledged(&self) -> usize {
        self.held.bytes()
    }
    /// Heap memory in bytes.
    pub fn memory(&self) -> usize {
        let streams: usize = self.map.values().map(|stream| stream.memory()).sum();
        streams + self.map.memory() + self.spare.memory() + self.queues.memory()
    }
    /// Whether streams are kept for those to come.
    #[inline]
    pub fn has_spare(&self) -> bool {
        !self.spare.is_empty()
    }
    /// Gives back what is kept for streams to come.
    pub fn release_memory(&mut self) {
        self.spare = SpareStreams::default();
        self.map.release();
        self.queues.release_all();
    }

    /// Whether everything sent is known to have arrived. Data written but not sent yet do not
    /// count.
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
