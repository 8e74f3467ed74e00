//! Two connections and a small network between them, in virtual time. The network has a rate, a
//! queue, an MTU, seeded loss, duplicates, reordering, outages and a change of address.

use super::repair_tests::Losses;
use super::{Connection, ConnectionConfig, ConnectionEvent};
use crate::Protocol;
use crate::endpoint::NewConnection;
use crate::streams::{FlowControlLimits, Read, Side, StreamEvent};
use narrows_base::{Duration, RandomKey, Rate, Spec, Time, random::RandomStream};
use narrows_wire::packet::{self, ParsedPacket};
use narrows_wire::{
    ClientHandshake, ConnectionId, CookieSecrets, Established, Hello, Params, ServerHandshake,
    StaticKey, Suite, VERSION,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Impairments of the network, the same in both directions except `back`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Net {
    /// One-way delay.
    pub delay: Duration,
    pub rate: Rate,
    /// Rate of the server's packets, if it differs from `rate`.
    pub back: Option<Rate>,
    /// Bytes of the queue.
    pub queue: u64,
    pub loss: f64,
    pub twice: f64,
    /// Share of packets delayed by up to one more `delay`.
    pub late: f64,
    /// Share of packets overtaken by the next two of their direction, or delayed by 3 ms if these
    /// do not leave in time.
    pub swapped: f64,
    /// Share of packets changed or truncated.
    pub damaged: f64,
    /// Largest UDP payload in bytes that passes.
    pub mtu: usize,
}

impl Net {
    pub fn good() -> Net {
        Net {
            delay: Duration::from_millis(20),
            rate: Rate::from_bps(20_000_000),
            back: None,
            queue: 100_000,
            loss: 0.0,
            twice: 0.0,
            late: 0.0,
            swapped: 0.0,
            damaged: 0.0,
            mtu: 1500,
        }
    }
}

/// A packet in transit.
#[derive(Clone, Debug)]
pub(crate) struct Flying {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub ecn: u8,
    pub bytes: Vec<u8>,
}

pub(crate) struct Pair {
    pub now: Time,
    pub client: Connection,
    pub server: Connection,
    pub net: Net,
    pub client_at: SocketAddr,
    pub server_at: SocketAddr,
    /// An old address at which the client still receives after a change.
    pub old_at: Option<SocketAddr>,
    /// No packet passes before this time.
    pub outage_until: Time,
    pub events: Vec<(Side, ConnectionEvent)>,
    /// Packets sent: time, side, UDP payload, datagrams in the call.
    pub log: Vec<(Time, Side, usize, usize)>,
    /// Copies of sent packets, to be replayed.
    pub keep: Option<Vec<Flying>>,
    pub segments: usize,
    /// Packets of that end with fewer bytes are lost.
    pub drop_short: Option<(Side, usize)>,
    flying: BTreeMap<(Time, u64), Flying>,
    order: u64,
    /// In either direction, the packet to be overtaken, and how many have overtaken it.
    overtaken: [Option<((Time, u64), u32)>; 2],
    /// When the link of either direction is free.
    free: [Time; 2],
    /// Losses of the client's packets, in place of the network's.
    pub losses: Option<Losses>,
    random: RandomStream,
}

pub(crate) fn config(protocol: &str) -> ConnectionConfig {
    let spec = Spec::parse(protocol).unwrap();
    ConnectionConfig {
        keep_alive: Duration::ZERO,
        limits: FlowControlLimits { data: 1 << 22, stream: 1 << 21, both: 16, one_way: 16 },
        send_buffer: 1 << 20,
        max_buffered: 0,
        messages_held: 16,
        ..ConnectionConfig::new(Protocol::read(&spec, 1500).unwrap())
    }
}

pub(crate) fn params(config: &ConnectionConfig) -> Params {
    Params {
        idle_timeout_ms: config.idle_timeout.as_nanos() / 1_000_000,
        max_datagram: u64::from(config.max_datagram),
        max_data: config.limits.data,
        max_stream: config.limits.stream,
        max_streams_both: config.limits.both,
        max_streams_one: config.limits.one_way,
        max_message: u64::from(config.max_message),
        reset_token: Some([9; 16]),
        controller: config.protocol.label().into(),
        applications: config.applications.clone(),
        repair: config.repair(),
        paths: u64::from(config.paths),
        ..Params::default()
    }
}

/// Both ends of a completed handshake.
pub(crate) fn keys(
    client: &ConnectionConfig,
    server: &ConnectionConfig,
) -> (Established, Established) {
    let hello = |id, c| Hello { connection: ConnectionId(id), params: params(c) };
    let nonce = [7; 16];
    let at = Time::from_secs_f64(50.0);
    let address: SocketAddr = "192.0.2.1:5000".parse().unwrap();
    let cookie = CookieSecrets::new(&[7; 32]).create(at, address, &nonce, VERSION);
    let key = |n| StaticKey::new([n; 32]).unwrap();
    let mut c = ClientHandshake::new(Suite::Aes256Gcm, nonce, &cookie, &key(1), [3; 32]).unwrap();
    let Ok(ParsedPacket::Start(start)) = ParsedPacket::read(c.start()) else { panic!("no START") };
    let mut s = ServerHandshake::new(&start, &key(2), [4; 32], &hello(2, server)).unwrap();
    let Ok(ParsedPacket::StartEcho(echo)) = ParsedPacket::read(s.start_echo()) else {
        panic!("no echo")
    };
    let (ours, finish) = c.on_start_echo(&echo, &hello(1, client), |_| true).unwrap();
    let Ok(ParsedPacket::Finish(finish)) = ParsedPacket::read(&finish) else { panic!("no FINISH") };
    let _: packet::Finish<'_> = finish;
    (ours, s.on_finish(&finish).unwrap())
}

pub(crate) fn beginning<'a>(
    side: Side,
    config: &'a ConnectionConfig,
    hello: &'a Params,
    established: Established,
    remote: SocketAddr,
    rtt: Option<Duration>,
) -> NewConnection<'a> {
    let seed = if side == Side::Client { [5; 32] } else { [6; 32] };
    NewConnection {
        side,
        config,
        hello,
        established,
        remote,
        rtt,
        max_rtt: Duration::ZERO,
        without_syn: false,
        token: None,
        early: None,
        seed,
    }
}

impl Pair {
    pub fn new(config: &ConnectionConfig, net: Net, seed: u64) -> Pair {
        Pair::of(config, config, net, seed)
    }
    pub fn of(ours: &ConnectionConfig, theirs: &ConnectionConfig, net: Net, seed: u64) -> Pair {
        let client_at = "192.0.2.1:5000".parse().unwrap();
        let server_at = "198.51.100.2:443".parse().unwrap();
        let (c, s) = keys(ours, theirs);
        let now = Time::from_secs_f64(50.0);
        let rtt = Some(net.delay + net.delay);
        let client =
            Connection::new(now, beginning(Side::Client, ours, &params(ours), c, server_at, rtt));
        let server = Connection::new(
            now,
            beginning(Side::Server, theirs, &params(theirs), s, client_at, rtt),
        );
        Pair {
            now,
            client,
            server,
            net,
            client_at,
            server_at,
            old_at: None,
            outage_until: Time::ZERO,
            events: Vec::new(),
            log: Vec::new(),
            keep: None,
            segments: 40,
            drop_short: None,
            flying: BTreeMap::new(),
            order: 0,
            overtaken: [None; 2],
            free: [now; 2],
            losses: None,
            random: RandomKey::from_seed(seed).stream(),
        }
    }
    pub fn end(&mut self, side: Side) -> &mut Connection {
        match side {
            Side::Client => &mut self.client,
            Side::Server => &mut self.server,
        }
    }

    /// Takes all packets that an end sends now.
    fn flush(&mut self, side: Side) {
        let mut buffer = vec![0; 64 * 1024];
        for _ in 0..10_000 {
            let now = self.now;
            let segments = self.segments;
            let Some(t) = self.end(side).transmit(now, &mut buffer, segments) else { return };
            assert!(t.size > 0 && t.segment <= t.size);
            let count = t.size.div_ceil(t.segment);
            for datagram in buffer[..t.size].chunks(t.segment) {
                self.log.push((now, side, datagram.len(), count));
                let from = if side == Side::Client { self.client_at } else { self.server_at };
                let flying = Flying { from, to: t.to, ecn: t.ecn, bytes: datagram.to_vec() };
                if let Some(keep) = &mut self.keep {
                    keep.push(flying.clone());
                }
                self.launch(side, flying);
            }
        }
        panic!("{side:?} sends without end at {:?}", self.now);
    }

    /// Puts a packet into the network, unless it is lost.
    fn launch(&mut self, side: Side, mut flying: Flying) {
        let net = self.net;
        let free = &mut self.free[usize::from(side == Side::Server)];
        let rate = net.back.filter(|_| side == Side::Server).unwrap_or(net.rate).as_bps() as f64;
        let waits = free.since(self.now).as_secs_f64() * rate / 8.0;
        let size = flying.bytes.len() as u64 + 28;
        let is_short = self.drop_short.is_some_and(|(s, n)| s == side && flying.bytes.len() < n);
        if is_short || flying.bytes.len() > net.mtu || waits as u64 + size > net.queue {
            return;
        }
        let start = (*free).max(self.now);
        *free = start + Duration::from_secs_f64(size as f64 * 8.0 / rate);
        let mut at = *free + net.delay;
        let is_lost = match self.losses.as_mut().filter(|_| side == Side::Client) {
            Some(losses) => losses.draw(at, &mut self.random),
            None => self.random.chance(net.loss),
        };
        if is_lost || self.now < self.outage_until {
            return;
        }
        if self.random.chance(net.damaged) {
            let place = self.random.bits() as usize % flying.bytes.len();
            let bit = self.random.bits() % 8;
            flying.bytes[place] ^= 1 << bit;
            if self.random.chance(0.3) {
                flying.bytes.truncate(place);
            }
        }
        if self.random.chance(net.late) {
            at += net.delay.mul_f64(self.random.unit());
        }
        let waits = &mut self.overtaken[usize::from(side == Side::Server)];
        if let Some((key, overtakes)) = waits.take() {
            if overtakes == 1 {
                // It arrives directly after the second packet.
                if key.0 > at
                    && let Some(flying) = self.flying.remove(&key)
                {
                    self.order += 1;
                    self.flying.insert((at + Duration::from_nanos(1), self.order), flying);
                }
            } else {
                *waits = Some((key, overtakes + 1));
            }
        } else if net.swapped > 0.0 && self.random.chance(net.swapped) {
            at += Duration::from_millis(3);
            *waits = Some(((at, self.order + 1), 0));
        }
        let copies = if self.random.chance(net.twice) { 2 } else { 1 };
        for _ in 0..copies {
            self.order += 1;
            self.flying.insert((at, self.order), flying.clone());
            at += net.delay.mul_f64(0.5);
        }
    }

    /// Delivers a packet to the end at its address. False if it was not accepted.
    pub fn hand(&mut self, mut flying: Flying) -> bool {
        let now = self.now;
        let side = match flying.to {
            to if to == self.server_at => Side::Server,
            to if to == self.client_at || Some(to) == self.old_at => Side::Client,
            _ => return false,
        };
        self.end(side).receive(now, flying.from, flying.ecn, &mut flying.bytes)
    }

    /// Runs until a time, or until `stop` returns true. Returns whether it did.
    pub fn run(&mut self, until: Time, mut stop: impl FnMut(&mut Pair) -> bool) -> bool {
        loop {
            for side in [Side::Client, Side::Server] {
                self.flush(side);
            }
            for side in [Side::Client, Side::Server] {
                while let Some(event) = self.end(side).event() {
                    self.events.push((side, event));
                }
            }
            if stop(self) {
                return true;
            }
            // Packets that result from the application's calls.
            for side in [Side::Client, Side::Server] {
                self.flush(side);
            }
            let arrival = self.flying.keys().next().map_or(Time::NEVER, |k| k.0);
            let due = self.client.next_timeout().min(self.server.next_timeout()).min(arrival);
            if due > until {
                self.now = until;
                return false;
            }
            self.now = self.now.max(due);
            while let Some((key, _)) =
                self.flying.first_key_value().filter(|(k, _)| k.0 <= self.now)
            {
                let key = *key;
                let flying = self.flying.remove(&key).unwrap();
                self.hand(flying);
            }
            for side in [Side::Client, Side::Server] {
                let now = self.now;
                if self.end(side).next_timeout() <= now {
                    self.end(side).on_timeout(now);
                }
            }
        }
    }
    pub fn run_for(&mut self, seconds: f64) {
        let until = self.now + Duration::from_secs_f64(seconds);
        self.run(until, |_| false);
    }

    /// Sends `bytes` bytes over a new stream from one end. Returns the time until the other end has
    /// read them all, unchanged; `None` after `seconds`.
    pub fn transfer(&mut self, from: Side, bytes: u64, seconds: f64) -> Option<Duration> {
        let other = if from == Side::Client { Side::Server } else { Side::Client };
        let start = self.now;
        let until = self.now + Duration::from_secs_f64(seconds);
        let id = self.end(from).open(true).unwrap();
        let byte = |at: u64| (at ^ (at >> 8) ^ (at >> 16)).wrapping_mul(31) as u8;
        let mut written = 0u64;
        let mut read = 0u64;
        let mut ended = false;
        let mut buffer = vec![0; 1 << 16];
        self.run(until, |pair| {
            while written < bytes {
                let most = (bytes - written).min(4096);
                let chunk: Vec<u8> = (written..written + most).map(byte).collect();
                match pair.end(from).write(id, &chunk).unwrap() {
                    0 => break,
                    n => written += n as u64,
                }
                if written == bytes {
                    pair.end(from).finish(id).unwrap();
                }
            }
            let reader = pair.end(other);
            while reader.accept().is_some() {}
            loop {
                match reader.read(id, &mut buffer) {
                    Ok(Read::Bytes(n)) => {
                        for (at, b) in (read..).zip(&buffer[..n]) {
                            assert_eq!(*b, byte(at), "byte {at}");
                        }
                        read += n as u64;
                    }
                    Ok(Read::End) => break ended = true,
                    _ => break,
                }
            }
            ended
        });
        assert!(!ended || read == bytes);
        ended.then(|| self.now.since(start))
    }
    pub fn closed(&self, side: Side) -> Option<&super::Closed> {
        self.events.iter().rev().find_map(|(s, e)| match e {
            ConnectionEvent::Closed(c) if *s == side => Some(c),
            _ => None,
        })
    }
    pub fn saw(&self, side: Side, wanted: StreamEvent) -> bool {
        self.events.contains(&(side, ConnectionEvent::Stream(wanted)))
    }
}
