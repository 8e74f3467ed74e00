//! The streams of a connection at one end: bytes in order, both directions, flow control.

use narrows_wire::{Frame, FrameWriter};

/// Which end of a connection this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It began the connection.
    Client,
    /// It was connected to.
    Server,
}

/// What one end lets the other send at first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of all streams together, and how many more while the application reads.
    pub data: u64,
    /// Bytes of one stream, likewise.
    pub stream: u64,
    /// Open streams of both directions.
    pub both: u64,
    /// Open streams of one direction.
    pub one_way: u64,
}

/// What a read gave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// So many bytes, at least one.
    Bytes(usize),
    /// Nothing now; an event tells when.
    Blocked,
    /// All was read: the stream's end.
    End,
}

/// Why a stream does not do what was asked.
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

/// What happened to streams.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamEvent {
    /// The peer opened one: `accept` gives it.
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

/// A piece of a packet, to be told what became of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Piece {
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

/// A fault of the peer that ends the connection: CLOSE's code and why.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Violation {
    /// As `docs/rrtp.md` lists them: 2 flow control, 3 stream state.
    pub code: u64,
    /// For people.
    pub why: &'static str,
}

/// All streams of one end.
#[derive(Debug)]
pub struct Streams {}

impl Streams {
    /// None yet; `send_buffer` bounds what is written and not yet arrived, in bytes of each stream.
    pub fn new(_side: Side, _ours: Limits, _send_buffer: usize) -> Streams {
        unimplemented!()
    }
    /// What the peer permits at first (known after the handshake).
    pub fn peer_permits(&mut self, _peers: Limits) {
        unimplemented!()
    }
    /// A new stream, if the peer permits one more.
    pub fn open(&mut self, _one_way: bool) -> Option<u64> {
        unimplemented!()
    }
    /// The next stream that the peer opened.
    pub fn accept(&mut self) -> Option<u64> {
        unimplemented!()
    }
    /// Takes what there is room for; 0 if there is none.
    pub fn write(&mut self, _id: u64, _data: &[u8]) -> Result<usize, StreamError> {
        unimplemented!()
    }
    /// No more will be written.
    pub fn finish(&mut self, _id: u64) -> Result<(), StreamError> {
        unimplemented!()
    }
    /// Gives sending up.
    pub fn reset(&mut self, _id: u64, _code: u64) -> Result<(), StreamError> {
        unimplemented!()
    }
    /// Wants no more.
    pub fn stop(&mut self, _id: u64, _code: u64) -> Result<(), StreamError> {
        unimplemented!()
    }
    /// Reads in order.
    pub fn read(&mut self, _id: u64, _into: &mut [u8]) -> Result<Read, StreamError> {
        unimplemented!()
    }
    /// What happened since it was asked last.
    pub fn event(&mut self) -> Option<StreamEvent> {
        unimplemented!()
    }
    /// Takes a frame of the peer; false if it is not about streams.
    pub fn on_frame(&mut self, _frame: &Frame<'_>) -> Result<bool, Violation> {
        unimplemented!()
    }
    /// Whether [`fill`](Streams::fill) would write something.
    pub fn has_something(&mut self) -> bool {
        unimplemented!()
    }
    /// Writes frames while there is room, what must be sent again first; says what it wrote. Stream
    /// data that would fill the packet goes last, without a length.
    pub fn fill(&mut self, _writer: &mut FrameWriter<'_>, _wrote: &mut dyn FnMut(Piece)) {
        unimplemented!()
    }
    /// A packet with this piece arrived.
    pub fn arrived(&mut self, _piece: &Piece) {
        unimplemented!()
    }
    /// A packet with this piece was lost; whether anything of it must leave again.
    pub fn lost(&mut self, _piece: &Piece) -> bool {
        unimplemented!()
    }
    /// Whether nothing sent still waits to be known as arrived.
    pub fn all_arrived(&self) -> bool {
        unimplemented!()
    }
}
