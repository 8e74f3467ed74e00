//! Hostile clients. They open connections in the correct format and seal properly, and then behave as their kind: one
//! file each. The bytes sent to them are compared with the documented limits.

mod churner;
mod liar;
mod nonsense;
mod silent;
mod stranger;

use super::world::Link;
use narrows_base::{Duration, RandomKey, Time, random::RandomStream};
use narrows_wire::hostile::HostilePeer;
use narrows_wire::packet::{self, ParsedPacket};
use narrows_wire::{
    ClientHandshake, ConnectionId, Frame, Hello, Params, StaticKey, Suite, VERSION,
};
use std::net::SocketAddr;

/// UDP payload of one hostile address, in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Traffic {
    /// Sent to it, whether or not it arrived.
    pub sent_to: u64,
    /// Received by it, and by the server from it.
    pub came_to: u64,
    pub came_from: u64,
    /// Handshakes that it completed.
    pub opened: u64,
    /// Bytes that may be sent on each connection, beyond twice those that arrived, to try a rate.
    pub tried: u64,
}

/// Packets to send.
pub type Said = Vec<Vec<u8>>;

/// Behaviour of one kind on a connection. `peer` seals and opens packets.
pub trait Behaviour {
    /// The connection is open.
    fn opened(&mut self, _now: Time, _peer: &mut HostilePeer, _dice: &mut RandomStream) -> Said {
        Said::new()
    }
    /// A packet was opened.
    fn heard(&mut self, _now: Time, _peer: &mut HostilePeer, _dice: &mut RandomStream) -> Said {
        Said::new()
    }
    /// Called from time to time.
    fn turn(&mut self, _now: Time, _peer: &mut HostilePeer, _dice: &mut RandomStream) -> Said {
        Said::new()
    }
    /// Packets sent in place of FINISH, for a kind that does not complete handshakes.
    fn instead_of_finish(
        &mut self,
        _start: &[u8],
        _finish: &[u8],
        _dice: &mut RandomStream,
    ) -> Option<Said> {
        None
    }
    /// Limit on the bytes sent to it.
    fn bound(&self, traffic: &Traffic) -> u64;
}

/// Kinds of hostile clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Acknowledges packets that never arrived, conceals losses, forges times, marks, loss causes and feedback.
    Liar,
    /// Requests much data and acknowledges none.
    Silent,
    /// Sends arbitrary content, properly sealed.
    Nonsense,
    /// Opens streams and resets them.
    Churner,
    /// Never completes a handshake: sends copies of its START, forged FINISHes, old packets and random bytes.
    Stranger,
}

impl Kind {
    pub const ALL: [Kind; 5] =
        [Kind::Liar, Kind::Silent, Kind::Nonsense, Kind::Churner, Kind::Stranger];

    fn behaviour(self, random: &mut RandomStream) -> Box<dyn Behaviour> {
        match self {
            Kind::Liar => Box::new(liar::Liar::new(random)),
            Kind::Silent => Box::new(silent::Silent),
            Kind::Nonsense => Box::new(nonsense::Nonsense),
            Kind::Churner => Box::new(churner::Churner::default()),
            Kind::Stranger => Box::new(stranger::Stranger::default()),
        }
    }
}

/// Stage of its connection.
enum Stage {
    Closed,
    Asking([u8; 16]),
    Proving(Box<ClientHandshake>),
    Open(Box<HostilePeer>),
}

/// A hostile client with its own address.
pub struct Hostile {
    pub at: SocketAddr,
    pub kind: Kind,
    /// When it acts without a packet.
    pub due: Time,
    pub traffic: Traffic,
    behaviour: Box<dyn Behaviour>,
    stage: Stage,
    /// When it abandons the present connection and begins another, and when it stops.
    until: Time,
    over: Time,
    said: Said,
    random: RandomStream,
}

/// Longest duration of a connection, in s.
const LIFE: f64 = 6.0;
/// Bytes that a request names.
const MUCH: u64 = 1 << 40;

impl Hostile {
    /// A client that behaves as its kind until `over`.
    pub fn new(seed: u64, at: SocketAddr, kind: Kind, link: &Link, over: Time) -> Hostile {
        let mut random = RandomKey::from_seed(seed).named("hostile").stream();
        let behaviour = kind.behaviour(&mut random);
        Hostile {
            at,
            kind,
            due: Time::from_secs_f64(random.unit()),
            traffic: Traffic { tried: tried(link), ..Traffic::default() },
            behaviour,
            stage: Stage::Closed,
            until: Time::ZERO,
            over,
            said: Said::new(),
            random,
        }
    }

    /// Compares the bytes sent to it with the limit.
    pub fn check(&self) {
        let sent = self.traffic.sent_to;
        let bound = self.behaviour.bound(&self.traffic);
        assert!(sent <= bound, "{sent} bytes to {:?}, not {bound}: {:?}", self.kind, self.traffic);
    }

    /// Packets that it sends now.
    pub fn act(&mut self, now: Time) -> Said {
        if now >= self.due {
            self.turn(now);
        }
        std::mem::take(&mut self.said)
    }

    fn turn(&mut self, now: Time) {
        if now >= self.over {
            self.stage = Stage::Closed;
            self.due = Time::NEVER;
            return;
        }
        match &mut self.stage {
            Stage::Open(peer) if now < self.until => {
                self.said.extend(self.behaviour.turn(now, peer, &mut self.random));
                self.due = now + Duration::from_secs_f64(0.02 + 0.2 * self.random.unit());
            }
            // The last packet was lost, or the connection is to be abandoned.
            _ => self.ask(now),
        }
    }

    fn ask(&mut self, now: Time) {
        let mut nonce = [0; 16];
        nonce.fill_with(|| self.random.bits() as u8);
        self.said.push(packet::syn(VERSION, &nonce).to_vec());
        self.stage = Stage::Asking(nonce);
        self.due = now + Duration::from_secs(2);
    }

    /// Handles a datagram.
    pub fn receive(&mut self, now: Time, bytes: &mut [u8]) {
        self.traffic.came_to += bytes.len() as u64;
        if let Stage::Open(peer) = &mut self.stage {
            if peer.receive(bytes) {
                self.said.extend(self.behaviour.heard(now, peer, &mut self.random));
            }
            return;
        }
        match (&mut self.stage, ParsedPacket::read(bytes)) {
            (Stage::Asking(nonce), Ok(ParsedPacket::SynEcho { nonce: theirs, cookie }))
                if theirs == *nonce =>
            {
                // New keys are free.
                let key = StaticKey::new([200 + (self.random.bits() % 50) as u8; 32]).unwrap();
                let seed = [self.random.bits() as u8; 32];
                let client = ClientHandshake::new(Suite::Aes256Gcm, *nonce, &cookie, &key, seed);
                let client = client.unwrap();
                self.said.push(client.start().to_vec());
                self.stage = Stage::Proving(Box::new(client));
            }
            (Stage::Proving(client), Ok(ParsedPacket::StartEcho(echo))) => {
                let start = client.start().to_vec();
                let Ok((keys, finish)) = client.on_start_echo(
                    &echo,
                    &hello(PROTOCOLS[self.random.bits() as usize % PROTOCOLS.len()]),
                    |_| true,
                ) else {
                    return;
                };
                let other = self.behaviour.instead_of_finish(&start, &finish, &mut self.random);
                if let Some(other) = other {
                    self.said.extend(other);
                    return;
                }
                self.said.push(finish);
                let mut peer = Box::new(HostilePeer::new(keys, true));
                self.said.extend(self.behaviour.opened(now, &mut peer, &mut self.random));
                self.stage = Stage::Open(peer);
                self.traffic.opened += 1;
                self.until = now + Duration::from_secs_f64(LIFE * self.random.unit());
                self.due = now;
            }
            _ => {}
        }
    }
}

/// The protocols that it announces, including ones driven by a receiver's feedback, or by a given rate that is far from
/// the path's.
const PROTOCOLS: [&str; 8] = [
    "rrtp",
    "rrtp+cubic",
    "rrtp+bbr",
    "rrtp+tfrc",
    "tear-reliable",
    "rrtp-lasthop",
    "rrtp+fixed(rate=40Mbit/s)",
    "rrtp(rate=1Gbit/s,rtt=9s)",
];

fn hello(protocol: &str) -> Hello {
    let params = Params {
        idle_timeout_ms: 30_000,
        max_datagram: 1472,
        max_data: 1 << 40,
        max_stream: 1 << 40,
        max_streams_both: 8,
        max_streams_one: 8,
        max_message: 1400,
        repair: 128,
        controller: protocol.into(),
        ..Params::default()
    };
    Hello { connection: ConnectionId(7), params }
}

/// Requests on all permitted streams, each for more bytes than exist.
fn requests(now: Time, peer: &mut HostilePeer) -> Said {
    let mut said = Said::new();
    for id in [0, 4, 8, 12] {
        let data = MUCH.to_be_bytes();
        said.push(peer.frame(now, &Frame::Stream { id, offset: 0, fin: true, data: &data }));
    }
    said
}

/// Limit on the bytes to a receiver that may forge its reports: twice the bytes that arrived, and for each connection
/// those that try a rate.
fn bound_of_a_receiver(traffic: &Traffic) -> u64 {
    2 * traffic.came_to + (traffic.opened + 1) * traffic.tried
}

/// An initial window and a packet train. After these have arrived, also as much as the path carries in a second or
/// three round trips, whichever is longer (docs/rrtp.md, *How much may leave*).
fn tried(link: &Link) -> u64 {
    const FULL: f64 = 1500.0;
    // Packets may be late by two more delays.
    let round_trip = 6.0 * link.delay.as_secs_f64();
    let carried = link.rate.as_bps() as f64 / 8.0 * (3.0 * round_trip).max(1.0);
    ((10.0 + 54.0) * FULL + carried.min(512.0 * FULL)) as u64
}
