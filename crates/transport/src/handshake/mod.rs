//! The client's handshake as a sequence of exchanges, the same over sockets and in simulation: SYN until SYN-ECHO,
//! START until START-ECHO, then FINISH, or START at once where an address token replaces the cookie; when each is
//! repeated, and what the answers show of the path. The contents of the packets are added elsewhere: keys, cookies and
//! tokens in `endpoint/connecting.rs`, sizes alone in `datagram/handshake.rs`.

mod packet_pair;
mod repeat;

pub(crate) use packet_pair::PROBE_BYTES;
pub(crate) use repeat::FinishRepeat;

use narrows_base::{Duration, Time};
use narrows_congestion::Dispersion;
use packet_pair::PacketPair;
use repeat::{FIRST_REPEAT, Repeat};

/// A START that went so often, for so long, without an answer that opens, is begun again, too: its
/// cookie, or the key in the one that the server kept, may have been damaged on the way, and nothing
/// but a new nonce mends that.
const MAX_STARTS: u32 = 4;
const MAX_START_TIME: Duration = Duration::from_secs(3);
/// A server may forget so old a cookie.
pub(crate) const MAX_COOKIE_AGE: Duration = Duration::from_secs(10);

/// What the client waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Awaited {
    SynEcho,
    /// Since then, of a START with a cookie.
    StartEcho(Time),
    /// Since then, of a START with a token; SYN-ECHO, if the server does not take the token.
    Either(Time),
}

/// A packet that is to leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HandshakePacket {
    Syn,
    /// A SYN of [`PROBE_BYTES`]: the spacing of the answers tells the path's rate.
    Probe,
    Start,
}

/// What a handshake told of the path.
#[derive(Debug)]
pub(crate) struct PathSample {
    /// The shorter of two exchanges, of those whose answers are known to be theirs.
    pub rtt: Option<Duration>,
    pub dispersion: Option<Dispersion>,
    /// FINISH, to be sent until something of the server opens.
    pub finish: FinishRepeat,
}

/// An attempt, until START-ECHO.
#[derive(Debug)]
pub(crate) struct ClientExchange {
    awaited: Awaited,
    repeat: Repeat,
    rtt: Option<Duration>,
    packet_pair: PacketPair,
}

impl ClientExchange {
    /// To begin now; `rtt` is what is known of the round trip, and `probes` whether the rate is asked for.
    pub fn new(now: Time, rtt: Option<Duration>, probes: bool) -> ClientExchange {
        // Where the path is known to be long, an early repetition only spoils the sample.
        let wait = rtt.map_or(FIRST_REPEAT, |rtt| rtt.mul_f64(1.5)).max(FIRST_REPEAT);
        ClientExchange {
            awaited: Awaited::SynEcho,
            repeat: Repeat::new(now, wait),
            rtt: None,
            packet_pair: PacketPair::new(probes),
        }
    }
    /// To begin now with a START that has a token. The rate is not asked for: data will tell it, a round trip sooner
    /// than they would behind SYN.
    pub fn with_token(now: Time, rtt: Option<Duration>) -> ClientExchange {
        let awaited = Awaited::Either(now);
        ClientExchange { awaited, ..ClientExchange::new(now, rtt, false) }
    }
    /// Begins again.
    pub fn restart(&mut self, now: Time) {
        self.awaited = Awaited::SynEcho;
        self.repeat = Repeat::new(now, FIRST_REPEAT);
        self.packet_pair.spoil();
    }

    /// Whether the attempt is to begin again: START went in vain, or the cookie is too old.
    pub fn is_stale(&self, now: Time) -> bool {
        let (Awaited::StartEcho(since) | Awaited::Either(since)) = self.awaited else {
            return false;
        };
        let in_vain = self.repeat.sent >= MAX_STARTS && now >= since + MAX_START_TIME;
        in_vain || now >= since + MAX_COOKIE_AGE
    }
    /// Whether SYN-ECHO is awaited, and nothing else.
    pub fn awaits_syn_echo(&self) -> bool {
        self.awaited == Awaited::SynEcho
    }
    /// Whether START is to be made of a SYN-ECHO's cookie.
    pub fn takes_cookie(&self) -> bool {
        matches!(self.awaited, Awaited::SynEcho | Awaited::Either(_))
    }
    /// Whether another packet is to follow the last one at once.
    pub fn has_probe(&self) -> bool {
        self.packet_pair.is_due() && self.repeat.is_sent() && self.awaits_syn_echo()
    }
    /// How often the packet that waits for its answer was sent, probes aside.
    pub fn sent(&self) -> u32 {
        self.repeat.sent
    }
    /// When a packet is to be sent (again), probes aside.
    pub fn due(&self) -> Time {
        self.repeat.due
    }
    /// The packet that leaves now, if one is due.
    pub fn next_packet(&mut self, now: Time) -> Option<HandshakePacket> {
        if self.has_probe() {
            self.packet_pair.on_sent();
            return Some(HandshakePacket::Probe);
        }
        if self.repeat.due > now {
            return None;
        }
        self.repeat.on_sent(now);
        Some(match self.awaited {
            Awaited::SynEcho => HandshakePacket::Syn,
            Awaited::StartEcho(_) | Awaited::Either(_) => HandshakePacket::Start,
        })
    }

    /// A SYN-ECHO came, the first or another.
    pub fn on_syn_echo(&mut self, now: Time) {
        self.packet_pair.on_answer(now);
    }
    /// START is to be sent now: a SYN-ECHO was good.
    pub fn begin_start(&mut self, now: Time) {
        self.rtt = self.repeat.sample(now);
        self.repeat = self.repeat.next(now);
        self.awaited = Awaited::StartEcho(now);
    }
    /// A START-ECHO was good.
    pub fn finish(&self, now: Time) -> PathSample {
        let rtt = self.rtt.into_iter().chain(self.repeat.sample(now)).min();
        PathSample {
            rtt,
            dispersion: rtt.and_then(|rtt| self.packet_pair.dispersion(rtt)),
            finish: FinishRepeat::new(self.repeat.next(now)),
        }
    }
}
