//! An authenticated peer that violates the protocol: any payload, properly sealed, at any time, and frames that are
//! valid one by one but contradict each other. The connection is opening, transfers in both directions, or has ended.
//! No panic; memory and sent data are bounded, sent packets can be decoded, and the connection ends.

mod keys;

use crate::bytes::FuzzInput;
use narrows_base::{Duration, Spec, Time};
use narrows_transport::Protocol;
use narrows_transport::connection::{Connection, ConnectionConfig, ConnectionEvent, MessageError};
use narrows_transport::endpoint::NewConnection;
use narrows_transport::streams::{FlowControlLimits, Read, Side};
use narrows_wire::frame::{PATH_ID, PathId};
use narrows_wire::header::ShortHeader;
use narrows_wire::hostile::{HostilePeer, Lie};
use narrows_wire::{ConnectionId, Frame, Params};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Most heap bytes of a connection with these limits: windows and send buffers, stream states, messages, fragments, and
/// packet records.
const MAX_HELD: usize = 4 << 20;
/// More datagrams than this at one time count as endless.
const MAX_AT_ONCE: usize = 20_000;
/// Most steps of an input.
const MAX_STEPS: usize = 300;

/// The peer's connection IDs of further paths follow this one.
const PEER_ID: u32 = 0x0200_0000;

/// The tested end's connection ID of a further path.
fn own_id(path: u8) -> ConnectionId {
    ConnectionId(0x0100_0000 + u32::from(path))
}

const PROTOCOLS: [&str; 4] = ["rrtp", "rrtp+tfrc", "tear-reliable", "rrtp+bbr"];

thread_local! {
    static READ: Vec<Protocol> = PROTOCOLS
        .iter()
        .map(|name| Protocol::read(&Spec::named(name), 1500).expect("a protocol"))
        .collect();
}

fn config(which: usize) -> ConnectionConfig {
    ConnectionConfig {
        idle_timeout: Duration::from_secs(30),
        keep_alive: Duration::from_secs(5),
        limits: FlowControlLimits { data: 1 << 18, stream: 1 << 16, both: 8, one_way: 8 },
        send_buffer: 1 << 18,
        max_buffered: 0,
        messages_held: 16,
        probes_rate: false,
        ..ConnectionConfig::new(READ.with(|all| all[which % all.len()].clone()))
    }
}

/// The tested connection with its application.
struct Tried {
    now: Time,
    connection: Connection,
    peer: HostilePeer,
    /// The peer on further paths, by their numbers.
    further: BTreeMap<u8, HostilePeer>,
    peer_at: SocketAddr,
    is_closed: bool,
    own_streams: Vec<u64>,
    peer_streams: Vec<u64>,
}

impl Tried {
    fn new(side: Side, which: usize) -> Tried {
        let now = Time::from_secs_f64(100.0);
        let mut config = config(which);
        if side == Side::Server {
            config.applications = keys::application();
        }
        // A server of one protocol permits several paths. Without them, repair is possible.
        let is_multipath = side == Side::Server && which % PROTOCOLS.len() == 3;
        let paths = if is_multipath { 4 } else { 1 };
        let hello = Params { max_datagram: 1472, paths, ..keys::permits() };
        let (established, peer) = keys::handshake(side, &hello, config.protocol.label());
        let peer_at = SocketAddr::from(([192, 0, 2, 1], 5000));
        let beginning = NewConnection {
            side,
            config: &config,
            hello: &hello,
            established,
            remote: peer_at,
            rtt: Some(Duration::from_millis(20)),
            max_rtt: narrows_base::Duration::ZERO,
            without_syn: false,
            token: None,
            early: None,
            seed: [5; 32],
        };
        let connection = Connection::new(now, beginning);
        let own_streams = Vec::new();
        let peer_streams = Vec::new();
        let further = BTreeMap::new();
        let is_closed = false;
        Tried { now, connection, peer, further, peer_at, is_closed, own_streams, peer_streams }
    }

    /// Processes everything that needs no time.
    fn settle(&mut self) {
        if self.connection.next_timeout() <= self.now {
            self.connection.on_timeout(self.now);
        }
        let mut buffer = [0; 3000];
        let mut count = 0;
        while let Some(transmit) = self.connection.transmit(self.now, &mut buffer, 2) {
            count += 1;
            assert!(count < MAX_AT_ONCE, "there is no end to what it sends");
            for datagram in buffer[..transmit.size].chunks_mut(transmit.segment) {
                let id = ShortHeader::read(datagram).map_or(0, |header| header.connection.0);
                let path = id.checked_sub(PEER_ID).and_then(|path| u8::try_from(path).ok());
                let further = path.and_then(|path| self.further.get_mut(&path));
                let peer = further.unwrap_or(&mut self.peer);
                assert!(peer.receive(datagram), "not sealed properly, or a number used twice");
            }
        }
        let mut events = 0;
        while let Some(event) = self.connection.event() {
            events += 1;
            assert!(events < 10_000, "there is no end to what happens");
            assert!(!self.is_closed, "{event:?} after the end");
            self.is_closed = matches!(event, ConnectionEvent::Closed(_));
        }
        while let Some(id) = self.connection.accept() {
            self.peer_streams.push(id);
        }
        while let Some(path) = self.connection.wanted_path() {
            let id = own_id(path);
            let is_used = self.connection.give_path_id(self.now, path, id);
            assert!((1..4).contains(&path) && (is_used || self.is_closed));
        }
        let held = self.connection.memory();
        assert!(held <= MAX_HELD, "{held} bytes held");
    }

    /// The peer sends a payload.
    fn send(&mut self, write: impl FnOnce(&mut HostilePeer, Time) -> Vec<u8>) {
        let mut datagram = write(&mut self.peer, self.now);
        let from = self.peer_at;
        self.connection.receive(self.now, from, 0, &mut datagram);
        self.settle();
    }

    /// The peer opens a further path of a server that permits some, and sends a payload there from an address of its
    /// own.
    fn send_on(
        &mut self,
        path: u8,
        port: u16,
        write: impl FnOnce(&mut HostilePeer, Time) -> Vec<u8>,
    ) {
        if !self.further.contains_key(&path) {
            let body = PathId { path, connection: ConnectionId(PEER_ID + u32::from(path)) }.bytes();
            self.send(|peer, now| {
                peer.frame(now, &Frame::Extension { kind: PATH_ID, body: &body })
            });
            let Some(peer) = self.peer.further(path, own_id(path), true) else { return };
            self.further.insert(path, peer);
        }
        let Some(peer) = self.further.get_mut(&path) else { return };
        let mut datagram = write(peer, self.now);
        let from = SocketAddr::from(([192, 0, 2, 10 + path], port));
        self.connection.receive_on(self.now, path, from, 0, &mut datagram);
        self.settle();
    }

    /// A stream of either end, selected by a number.
    fn stream(&self, n: u8) -> Option<u64> {
        let all: Vec<u64> = self.own_streams.iter().chain(&self.peer_streams).copied().collect();
        all.get(usize::from(n) % all.len().max(1)).copied()
    }

    /// One action of the application.
    fn work(&mut self, what: u8, arg: u8) {
        let size = usize::from(arg) * 256;
        let now = self.now;
        match what % 8 {
            0 => self.own_streams.extend(self.connection.open(arg & 1 == 1)),
            1 => {
                if let Some(id) = self.stream(arg) {
                    let _ = self.connection.write(id, &vec![arg; 70_000]);
                }
            }
            2 => {
                if let Some(id) = self.stream(arg) {
                    let mut into = vec![0; 4096];
                    while let Ok(Read::Bytes(n)) = self.connection.read(id, &mut into) {
                        assert!(n > 0 && n <= into.len());
                    }
                }
            }
            3 => _ = self.stream(arg).map(|id| self.connection.finish(id)),
            4 => _ = self.stream(arg).map(|id| self.connection.reset(id, 300)),
            5 => _ = self.stream(arg).map(|id| self.connection.stop(id, 301)),
            6 => {
                let max = self.connection.max_message_len();
                let message = vec![arg; size.min(1500)];
                let sent = self.connection.send_message(now, &message, Duration::from_secs(1));
                assert!(message.len() <= max || sent != Ok(()), "too long, and taken");
                assert!(message.len() > max || !matches!(sent, Err(MessageError::TooLong { .. })));
                while self.connection.receive_message().is_some() {}
            }
            _ => _ = self.connection.learned(),
        }
        self.settle();
    }

    /// Both ends transfer, and the peer reports correctly.
    fn transfer(&mut self) {
        for one_way in [false, true] {
            self.own_streams.extend(self.connection.open(one_way));
        }
        for _ in 0..6 {
            for id in self.own_streams.clone() {
                let _ = self.connection.write(id, &[7; 5000]);
            }
            self.settle();
            self.now += Duration::from_millis(20);
            self.send(|peer, now| peer.report(now, Lie::None));
            self.send(|peer, now| peer.stream(now, 3000));
        }
    }
}

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let mut bytes = FuzzInput::new(bytes);
    let Some(first) = bytes.byte() else { return };
    let side = if first & 1 == 0 { Side::Server } else { Side::Client };
    let mut tried = Tried::new(side, usize::from(first >> 1 & 3));
    tried.settle();
    let stage = first >> 3 & 3;
    if stage > 0 {
        tried.transfer();
    }
    match stage {
        2 => {
            tried.send(|peer, now| peer.frame(now, &Frame::Close { code: 256, reason: b"enough" }))
        }
        3 => tried.connection.close(tried.now, 256, "enough"),
        _ => {}
    }
    for _ in 0..MAX_STEPS {
        let Some(op) = bytes.byte() else { break };
        let arg = bytes.byte().unwrap_or(0);
        match op % 13 {
            0 => {
                tried.now += Duration::from_millis(u64::from(arg) * u64::from(arg));
                tried.settle();
            }
            // An arbitrary payload.
            1 | 2 => {
                let payload = bytes.take(usize::from(arg));
                tried.send(|peer, now| peer.raw(now, payload));
            }
            // A number as small or as large as a field permits.
            3 => {
                let lie = bytes.lie();
                tried.send(|peer, now| peer.arbitrary_frame(now, arg, lie));
            }
            4 => tried.send(|peer, now| peer.report(now, Lie::from(arg))),
            5 => tried.send(|peer, now| peer.stream(now, usize::from(arg) * 5)),
            6 => tried.work(op / 12, arg),
            7 => {
                tried.peer_at.set_port(5000 + u16::from(arg));
                tried.send(|peer, now| peer.frame(now, &Frame::Ping));
            }
            8 => tried.send(|peer, _| peer.again()),
            9 => {
                tried.peer.skip(u64::from(arg) << (op / 12));
            }
            10 => {
                let datagram = tried.peer.challenged(tried.now, arg);
                tried.send(|_, _| datagram);
            }
            11 if side == Side::Server => {
                let path = 1 + arg % 3;
                let port = 5000 + u16::from(arg >> 6);
                let content = bytes.byte().unwrap_or(0);
                let lie = bytes.lie();
                tried.send_on(path, port, |peer, now| match content % 5 {
                    0 => peer.frame(now, &Frame::Padding(1100)),
                    1 => peer.challenged(now, content),
                    2 => peer.report(now, Lie::from(content)),
                    3 => peer.stream(now, usize::from(content) * 5),
                    _ => peer.arbitrary_frame(now, content, lie),
                });
            }
            _ => {
                for _ in 0..arg {
                    tried.send(|peer, now| peer.report(now, Lie::None));
                    tried.now += Duration::from_millis(1);
                }
            }
        }
    }
    // Without further input, the connection ends.
    let mut wakes = 0;
    while !tried.connection.is_drained() {
        wakes += 1;
        let due = tried.connection.next_timeout();
        assert!(!due.is_never() && wakes < 100_000, "it does not end");
        tried.now = tried.now.max(due);
        tried.settle();
    }
    assert!(tried.is_closed, "its end was not told");
}
