//! One connection of `rrtp`, from the keys on: packets sealed and opened, reports, streams, messages,
//! timers. Pure: time and randomness are arguments.

use crate::streams::{Limits, Read, Side, StreamError, StreamEvent};
use crate::{Counters, Protocol};
use narrows_base::{Duration, Rate, Time};
use narrows_control::Profile;
use narrows_wire::{Established, Params};
use std::net::SocketAddr;

/// How a connection behaves at this end.
#[derive(Clone, Debug)]
pub struct ConnectionConfig {
    /// Whose controller paces what this end sends: any of `rrtp`'s family or of media.
    pub protocol: Protocol,
    /// What is known of the path.
    pub profile: Profile,
    /// Never faster than this, whatever the controller says.
    pub rate_limit: Option<Rate>,
    /// Largest UDP payload, bytes: what path MTU discovery tries to reach.
    pub max_datagram: u16,
    /// UDP payload that every path is assumed to carry.
    pub first_datagram: u16,
    /// Gives up after so long without a packet of the peer; zero never.
    pub idle_timeout: Duration,
    /// Asks for a sign of life when nothing came for so long; zero never.
    pub keep_alive: Duration,
    /// What the peer may send at first.
    pub limits: Limits,
    /// Written and not yet arrived at most, bytes of each stream.
    pub send_buffer: usize,
    /// Longest message that this end takes, bytes; 0 none.
    pub max_message: u16,
    /// Messages that wait to be read at most; the oldest goes.
    pub messages_held: usize,
}

/// A datagram (or several of equal size, for segmentation offload) to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Where to.
    pub to: SocketAddr,
    /// Bytes written into the buffer.
    pub size: usize,
    /// Bytes of each datagram but perhaps the last; equals `size` if there is one.
    pub segment: usize,
    /// The ECN bits (0 to 3).
    pub ecn: u8,
}

/// Why a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Closed {
    /// This end closed it.
    Locally,
    /// The peer closed it.
    ByPeer {
        /// CLOSE's code.
        code: u64,
        /// CLOSE's reason, cleaned of everything but printable text.
        reason: String,
    },
    /// The peer lost its state (RESET).
    Reset,
    /// Nothing came for the idle timeout.
    TimedOut,
    /// The peer broke the protocol; it was told so.
    Fault {
        /// CLOSE's code.
        code: u64,
        /// What it did.
        why: &'static str,
    },
    /// Nobody answered the handshake in time.
    NoAnswer,
    /// The server's key is not the expected one.
    WrongKey {
        /// What it is.
        found: [u8; 32],
    },
    /// The server speaks none of our versions.
    Version,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The handshake is over; this is the peer's static key.
    Connected([u8; 32]),
    /// Streams.
    Stream(StreamEvent),
    /// A message can be received.
    Message,
    /// The peer's address changed and was validated.
    Moved(SocketAddr),
    /// It is over; nothing follows.
    Closed(Closed),
}

/// What an application can read of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stats {
    /// Packets sent, lost, timeouts and so on.
    pub counters: Counters,
    /// UDP payload bytes sent and received.
    pub bytes_sent: u64,
    /// UDP payload bytes received and opened.
    pub bytes_received: u64,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Duration,
    /// Smallest round-trip time.
    pub min_rtt: Duration,
    /// Sum of all round-trip times that reports gave, and how many: their mean is the path's.
    pub rtt_sum: Duration,
    /// How many.
    pub rtt_samples: u64,
    /// Window in packets as the controller allows it; infinite as `f64::INFINITY`.
    pub window: f64,
    /// The controller's pacing rate, bit/s of UDP payload plus IP and UDP headers.
    pub rate: Option<Rate>,
    /// Packets in flight.
    pub flight: u64,
    /// UDP payload of a full datagram now.
    pub datagram: u16,
    /// Packets that were not authentic or came twice.
    pub refused: u64,
    /// Losses that the peer's receiver judged to be the radio link's.
    pub radio_losses: u64,
}

/// A connection whose keys are known.
pub struct Connection {}

impl Connection {
    /// `hello` is what this end told the peer; `rtt` what the handshake measured.
    pub fn new(
        _now: Time,
        _side: Side,
        _config: &ConnectionConfig,
        _hello: &Params,
        _established: Established,
        _remote: SocketAddr,
        _rtt: Option<Duration>,
        _seed: [u8; 32],
    ) -> Connection {
        unimplemented!()
    }
    /// A short packet for this connection came. It is opened in place; what is not authentic
    /// changes nothing. True if it was.
    pub fn receive(
        &mut self,
        _now: Time,
        _from: SocketAddr,
        _ecn: u8,
        _datagram: &mut [u8],
    ) -> bool {
        unimplemented!()
    }
    /// The next datagram, or up to `segments` of equal size in a row.
    pub fn transmit(
        &mut self,
        _now: Time,
        _buffer: &mut [u8],
        _segments: usize,
    ) -> Option<Transmit> {
        unimplemented!()
    }
    /// When [`on_due`](Connection::on_due) is wanted. Ask after every other call.
    pub fn next_due(&self) -> Time {
        unimplemented!()
    }
    /// A due time has come.
    pub fn on_due(&mut self, _now: Time) {
        unimplemented!()
    }
    /// What happened since it was asked last.
    pub fn event(&mut self) -> Option<Event> {
        unimplemented!()
    }
    /// Opens a stream.
    pub fn open(&mut self, _one_way: bool) -> Option<u64> {
        unimplemented!()
    }
    /// The next stream that the peer opened.
    pub fn accept(&mut self) -> Option<u64> {
        unimplemented!()
    }
    /// See [`Streams::write`](crate::streams::Streams::write).
    pub fn write(&mut self, _id: u64, _data: &[u8]) -> Result<usize, StreamError> {
        unimplemented!()
    }
    /// See [`Streams::finish`](crate::streams::Streams::finish).
    pub fn finish(&mut self, _id: u64) -> Result<(), StreamError> {
        unimplemented!()
    }
    /// See [`Streams::reset`](crate::streams::Streams::reset).
    pub fn reset(&mut self, _id: u64, _code: u64) -> Result<(), StreamError> {
        unimplemented!()
    }
    /// See [`Streams::stop`](crate::streams::Streams::stop).
    pub fn stop(&mut self, _id: u64, _code: u64) -> Result<(), StreamError> {
        unimplemented!()
    }
    /// See [`Streams::read`](crate::streams::Streams::read).
    pub fn read(&mut self, _id: u64, _into: &mut [u8]) -> Result<Read, StreamError> {
        unimplemented!()
    }
    /// Hands over a message; dropped unsent after `expiry` (zero never). False if it is longer
    /// than the peer takes or than a packet, or if too many wait.
    pub fn send_message(&mut self, _now: Time, _message: &[u8], _expiry: Duration) -> bool {
        unimplemented!()
    }
    /// Whether the newest message leaves first, when several wait.
    pub fn newest_first(&mut self, _on: bool) {
        unimplemented!()
    }
    /// The next message that came.
    pub fn receive_message(&mut self) -> Option<Vec<u8>> {
        unimplemented!()
    }
    /// Closes; what was not delivered is dropped. A code from 256 on is the application's.
    pub fn close(&mut self, _now: Time, _code: u64, _reason: &str) {
        unimplemented!()
    }
    /// The path is another one, or better known.
    pub fn reconfigure(&mut self, _now: Time, _profile: &Profile) {
        unimplemented!()
    }
    /// Never faster than this.
    pub fn limit_rate(&mut self, _most: Option<Rate>) {
        unimplemented!()
    }
    /// What it learned of the path, as a profile for the next connection to the same place.
    pub fn learned(&self) -> Profile {
        unimplemented!()
    }
    /// Figures.
    pub fn stats(&self) -> Stats {
        unimplemented!()
    }
    /// The controller's named numbers, for traces.
    pub fn watch(&self, _put: &mut dyn FnMut(&'static str, f64)) {
        unimplemented!()
    }
    /// Where the peer is.
    pub fn remote(&self) -> SocketAddr {
        unimplemented!()
    }
    /// Whether everything is over, the last CLOSE included, and the connection can be forgotten.
    pub fn is_drained(&self) -> bool {
        unimplemented!()
    }
}
