//! Clients that keep to nothing. They open connections as the format wants it, seal properly, and then do what
//! their kind does: one file each. What they are sent is counted, to be held against what was promised.

mod churner;
mod liar;
mod nonsense;
mod silent;
mod stranger;

use super::world::Link;
use narrows_base::{Duration, RandomKey, Time, random::RandomStream};
use narrows_wire::hostile::Peer;
use narrows_wire::packet::{self, Packet};
use narrows_wire::{
    ClientHandshake, ConnectionId, Frame, Hello, Params, StaticKey, Suite, VERSION,
};
use std::net::SocketAddr;

/// UDP payload of one hostile address.
#[derive(Clone, Copy, Default, Debug)]
pub struct Traffic {
    /// Sent to it, whether it came or not.
    pub sent_to: u64,
    /// Came to it, and from it to the server.
    pub came_to: u64,
    pub came_from: u64,
    /// Handshakes that it completed.
    pub opened: u64,
    /// What may be sent on each connection, beyond what came, to try a rate.
    pub tried: u64,
}

/// Packets that leave.
pub type Said = Vec<Vec<u8>>;

/// What a kind does with a connection. `peer` seals and opens for it.
pub trait Behaviour {
    /// The connection is open.
    fn opened(&mut self, _now: Time, _peer: &mut Peer, _dice: &mut RandomStream) -> Said {
        Said::new()
    }
    /// A packet was opened.
    fn heard(&mut self, _now: Time, _peer: &mut Peer, _dice: &mut RandomStream) -> Said {
        Said::new()
    }
    /// Every so often.
    fn turn(&mut self, _now: Time, _peer: &mut Peer, _dice: &mut RandomStream) -> Said {
        Said::new()
    }
    /// What it sends instead of FINISH, if it does not want to be open.
    fn instead_of_finish(
        &mut self,
        _start: &[u8],
        _finish: &[u8],
        _dice: &mut RandomStream,
    ) -> Option<Said> {
        None
    }
    /// What may be sent to it.
    fn bound(&self, traffic: &Traffic) -> u64;
}

/// The kinds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Acknowledges what never came, conceals losses, forges times, marks, loss causes and feedback.
    Liar,
    /// Asks for much and acknowledges nothing.
    Silent,
    /// Sends anything, properly sealed.
    Nonsense,
    /// Opens streams and resets them.
    Churner,
    /// Never finishes a handshake: copies of its START, false FINISHes, old packets and noise.
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

/// How far its connection is.
enum Stage {
    Closed,
    Asking([u8; 16]),
    Proving(Box<ClientHandshake>),
    Open(Box<Peer>),
}

/// A hostile client at an address of its own.
pub struct Hostile {
    pub at: SocketAddr,
    pub kind: Kind,
    /// When it does something by itself.
    pub due: Time,
    pub traffic: Traffic,
    behaviour: Box<dyn Behaviour>,
    stage: Stage,
    /// The present connection is given up then, and another begun; all is over then.
    until: Time,
    over: Time,
    said: Said,
    random: RandomStream,
}

/// A connection is given up after so long at most, s.
const LIFE: f64 = 6.0;
/// What a request asks for.
const MUCH: u64 = 1 << 40;

impl Hostile {
    /// Does what its kind does until `over`.
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

    /// What it was sent, against what may be sent to it.
    pub fn check(&self) {
        let (sent, bound) = (self.traffic.sent_to, self.behaviour.bound(&self.traffic));
        assert!(sent <= bound, "{sent} bytes to {:?}, not {bound}: {:?}", self.kind, self.traffic);
    }

    /// What it sends now.
    pub fn act(&mut self, now: Time) -> Said {
        if now >= self.due {
            self.turn(now);
        }
        std::mem::take(&mut self.said)
    }

    fn turn(&mut self, now: Time) {
        if now >= self.over {
            (self.stage, self.due) = (Stage::Closed, Time::NEVER);
            return;
        }
        match &mut self.stage {
            Stage::Open(peer) if now < self.until => {
                self.said.extend(self.behaviour.turn(now, peer, &mut self.random));
                self.due = now + Duration::from_secs_f64(0.02 + 0.2 * self.random.unit());
            }
            // What was asked got lost, or it has had enough of this connection.
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

    /// A datagram for it.
    pub fn receive(&mut self, now: Time, bytes: &mut [u8]) {
        self.traffic.came_to += bytes.len() as u64;
        if let Stage::Open(peer) = &mut self.stage {
            if peer.came(bytes) {
                self.said.extend(self.behaviour.heard(now, peer, &mut self.random));
            }
            return;
        }
        match (&mut self.stage, Packet::read(bytes)) {
            (Stage::Asking(nonce), Ok(Packet::SynEcho { nonce: theirs, cookie }))
                if theirs == *nonce =>
            {
                // Keys cost nothing.
                let key = StaticKey::new([200 + (self.random.bits() % 50) as u8; 32]).unwrap();
                let seed = [self.random.bits() as u8; 32];
                let client = ClientHandshake::new(Suite::Aes256Gcm, *nonce, &cookie, &key, seed);
                let client = client.unwrap();
                self.said.push(client.start().to_vec());
                self.stage = Stage::Proving(Box::new(client));
            }
            (Stage::Proving(client), Ok(Packet::StartEcho(echo))) => {
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
                let mut peer = Box::new(Peer::new(keys, true));
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

/// What it wants to be sent with: also what goes by a receiver's feedback, or by a rate that is told and far from right.
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

/// Requests on the streams that it may open, each for more than there is.
fn requests(now: Time, peer: &mut Peer) -> Said {
    let mut said = Said::new();
    for id in [0, 4, 8, 12] {
        let data = MUCH.to_be_bytes();
        said.push(peer.frame(now, &Frame::Stream { id, offset: 0, fin: true, data: &data }));
    }
    said
}

/// What a sender may send to somebody who says what he likes, for what came to him: twice of it, and for
/// each connection what tries a rate.
fn bound_of_a_receiver(traffic: &Traffic) -> u64 {
    2 * traffic.came_to + (traffic.opened + 1) * traffic.tried
}

/// An initial window and a train; and when that has arrived, as much as the path carries in the longer of a second
/// and three round trips (docs/rrtp.md, *How much may leave*).
fn tried(link: &Link) -> u64 {
    const FULL: f64 = 1500.0;
    // Packets may be late by two delays more.
    let round_trip = 6.0 * link.delay.as_secs_f64();
    let carried = link.rate.as_bps() as f64 / 8.0 * (3.0 * round_trip).max(1.0);
    ((10.0 + 54.0) * FULL + carried.min(512.0 * FULL)) as u64
}
