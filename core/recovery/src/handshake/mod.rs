//! The client's handshake as a sequence of exchanges, the same over sockets and in simulation: START until START-ECHO,
//! then FINISH. A server that requires a proof of the client's address replies with SYN-ECHO, and START follows with its
//! cookie. If START gets no reply, the attempt restarts with SYN; replies to the packets before still count. This module decides when to repeat
//! packets, and measures the path by their replies. The packets' contents are added elsewhere: keys, cookies and tokens in
//! `endpoint/connecting.rs`, sizes alone in the simulator's `datagram/handshake.rs`.

mod packet_pair;
mod repeat;

pub use packet_pair::{PROBE_BYTES, PacketPair};
pub use repeat::{FinishRepeat, LAST_REPEAT};

use narrows_base::{Duration, Time};
use repeat::{FIRST_REPEAT, Repeat, SECOND_REPEAT};

/// After this many STARTs during at least `MIN_START_TIME` without a valid reply, the attempt restarts with a new
/// nonce. The cookie, or the key that the server received, may have been damaged in transit. The client still accepts
/// replies to the nonce before: the path may only be slow.
const MAX_STARTS: u32 = 4;
const MIN_START_TIME: Duration = Duration::from_secs(3);
/// A server may reject a cookie older than this.
pub const MAX_COOKIE_AGE: Duration = Duration::from_secs(30);

/// UDP payload of SYN, START and FINISH in bytes, without parameters.
pub const CLIENT_BYTES: [u16; 3] = [64, 90, 140];
/// UDP payload of SYN-ECHO and START-ECHO in bytes, likewise.
pub const SERVER_BYTES: [u16; 2] = [57, 200];

/// The reply that the client waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    SynEcho,
    /// After a START with a cookie.
    StartEcho,
    /// After a START without a cookie. SYN-ECHO arrives if the server requires one.
    Either,
}

/// A packet to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandshakePacket {
    /// A request for a cookie.
    Syn,
    /// A SYN of [`PROBE_BYTES`] with a nonce of its own: the spacing of the replies measures the path's rate.
    Probe,
    /// The ephemeral key, with a cookie, a token or neither.
    Start,
}

/// Measurements of the path in a handshake.
#[derive(Debug)]
pub struct PathSample {
    /// The shorter of the exchanges that were not repeated.
    pub rtt: Option<Duration>,
    /// How long the last exchange took, an upper limit on the RTT.
    pub max_rtt: Duration,
    /// The probes. Their replies may still arrive.
    pub packet_pair: PacketPair,
    /// FINISH, to be sent until a packet of the server opens.
    pub finish: FinishRepeat,
}

/// A handshake until START-ECHO.
#[derive(Debug)]
pub struct ClientExchange {
    awaited: Awaited,
    /// The packet that awaits its reply, and how long it does at least before the attempt restarts.
    repeat: Repeat,
    max_wait: Duration,
    /// The packet before the last restart.
    earlier: Option<Repeat>,
    rtt: Option<Duration>,
    packet_pair: PacketPair,
}

impl ClientExchange {
    /// Begins now with a START without a cookie. `rtt` is an estimate of the RTT, and `probes` requests a measurement of the rate.
    pub fn new(now: Time, rtt: Option<Duration>, probes: bool) -> ClientExchange {
        // On a path with a long RTT an early repetition would only spoil the sample.
        let wait = rtt.map_or(FIRST_REPEAT, |rtt| rtt.mul_f64(1.5)).max(FIRST_REPEAT);
        ClientExchange {
            awaited: Awaited::Either,
            repeat: Repeat::new(now, wait),
            max_wait: wait.max(MIN_START_TIME),
            earlier: None,
            rtt: None,
            packet_pair: PacketPair::new(probes),
        }
    }
    /// Restarts with SYN.
    pub fn restart(&mut self, now: Time) {
        self.awaited = Awaited::SynEcho;
        self.earlier = Some(self.repeat);
        self.repeat = Repeat::new(now, SECOND_REPEAT);
    }
    /// A valid reply to a packet before the last restart arrived; [`begin_start`](ClientExchange::begin_start) or
    /// [`finish`](ClientExchange::finish) follows.
    pub fn resume_earlier(&mut self) {
        self.repeat = self.earlier.take().unwrap_or(self.repeat);
    }

    /// Whether to restart: START got no valid reply, or the cookie is too old.
    pub fn is_stale(&self, now: Time) -> bool {
        let waited = self.repeat.waited(now);
        let in_vain = self.repeat.sent >= MAX_STARTS && waited >= self.max_wait;
        !self.awaits_syn_echo() && (in_vain || waited >= MAX_COOKIE_AGE)
    }
    /// Time since the packet that awaits its reply was first sent.
    pub fn waited(&self, now: Time) -> Duration {
        self.repeat.waited(now)
    }
    /// Whether SYN-ECHO is the only reply awaited.
    pub fn awaits_syn_echo(&self) -> bool {
        self.awaited == Awaited::SynEcho
    }
    /// Whether the cookie of a SYN-ECHO is to be used for START.
    pub fn takes_cookie(&self) -> bool {
        self.awaited != Awaited::StartEcho
    }
    /// Whether another packet follows the last one at once.
    pub fn has_probe(&self) -> bool {
        self.packet_pair.is_due() && self.repeat.is_sent()
    }
    /// Transmissions of the packet that awaits its reply, except probes.
    pub fn sent(&self) -> u32 {
        self.repeat.sent
    }
    /// When the next packet is due, except probes.
    pub fn due(&self) -> Time {
        self.repeat.due
    }
    /// The packet to send now, if one is due.
    pub fn next_packet(&mut self, now: Time) -> Option<HandshakePacket> {
        if self.has_probe() {
            self.packet_pair.on_sent(now);
            return Some(HandshakePacket::Probe);
        }
        if self.repeat.due > now {
            return None;
        }
        self.repeat.on_sent(now);
        Some(match self.awaited {
            Awaited::SynEcho => HandshakePacket::Syn,
            Awaited::StartEcho | Awaited::Either => HandshakePacket::Start,
        })
    }

    /// Handles the reply to a probe.
    pub fn on_probe_echo(&mut self, now: Time) {
        self.packet_pair.on_answer(now);
    }
    /// Begins to send START, after a valid SYN-ECHO.
    pub fn begin_start(&mut self, now: Time) {
        self.rtt = self.repeat.sample(now);
        self.max_wait = self.repeat.waited(now).mul_f64(1.5).max(MIN_START_TIME);
        self.repeat = self.repeat.next(now);
        self.awaited = Awaited::StartEcho;
    }
    /// Ends the exchange after a valid START-ECHO.
    pub fn finish(&self, now: Time) -> PathSample {
        let rtt = self.rtt.into_iter().chain(self.repeat.sample(now)).min();
        PathSample {
            rtt,
            max_rtt: self.repeat.waited(now),
            packet_pair: self.packet_pair,
            finish: FinishRepeat::new(self.repeat.next(now)),
        }
    }
}
