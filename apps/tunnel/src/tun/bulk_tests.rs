//! A TCP flow and echo packets through a tunnel's packets, in virtual time: real rrtp endpoints, with the simulator's
//! CUBIC inside.

use super::MAX_MTU;
use super::hand_over::{Carrier, HandOver};
use crate::flow::HEAD;
use narrows_base::{Duration, Machine as _, Packet, RandomKey, Spec, Time};
use narrows_net::endpoint::connection;
use narrows_net::ip_packet::{IpPacket, build};
use narrows_sim::endpoints::{SenderInput, SenderOutput, SimulatedReceiver, SimulatedSender};
use narrows_sim::protocol::{FlowProtocol, Preset};
use narrows_transport::Protocol;
use narrows_transport::connection::{Connection, ConnectionConfig, ConnectionEvent};
use narrows_transport::endpoint::{
    Clients, ConnectRequest, Endpoint, EndpointConfig, EndpointLimits, Entropy, Handle, Permit,
    ServerKey,
};
use narrows_wire::{StaticKey, Suite};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

const TCP: u8 = 6;
/// Numbers of flows, used as ports.
const BULK: u16 = 1;
const ECHO: u16 = 2;
/// Size of the flow's packets in bytes.
const PACKET: usize = 1400;
const EVERY: Duration = Duration::from_millis(100);

struct Counting(u64);

impl Entropy for Counting {
    fn fill(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            *byte = (self.0 >> 56) as u8;
        }
    }
}

fn end(n: u8, clients: Clients) -> Endpoint {
    let config = EndpointConfig {
        key: StaticKey::new([n; 32]).unwrap(),
        clients,
        connection: configured(),
        permit: Permit::Listed,
        filter: Default::default(),
        limits: EndpointLimits::new(4),
        early_data: false,
        local_port: 7,
    };
    Endpoint::new(config, Box::new(Counting(u64::from(n))))
}

fn configured() -> ConnectionConfig {
    let protocol = Protocol::rrtp();
    let max_message = (HEAD + MAX_MTU) as u16;
    ConnectionConfig { max_message, paths: 2, ..connection(protocol) }
}

/// The near end's connection at a given time.
struct Near<'a>(Time, RefCell<&'a mut Connection>);

impl Carrier for Near<'_> {
    fn now(&self) -> Time {
        self.0
    }
    fn waiting(&self) -> Option<usize> {
        Some(self.1.borrow().messages_waiting())
    }
    fn room(&self) -> usize {
        self.1.borrow().max_message_len().saturating_sub(HEAD)
    }
    fn hold_back(&self, bytes: u64) {
        self.1.borrow_mut().hold_back(bytes);
    }
    fn send(&self, bytes: &[u8], expiry: Duration) {
        let message = [&[0; HEAD], bytes].concat();
        let _ = self.1.borrow_mut().send_message(self.0, &message, expiry);
    }
}

#[derive(Clone, Copy, Debug)]
struct Line {
    mbps: u64,
    /// One-way delay.
    delay: Duration,
}

impl Line {
    fn bytes_per_second(self) -> f64 {
        (self.mbps * 125_000) as f64
    }
    /// Size of the queue before the line, in bytes: 100 ms.
    fn buffer(self) -> u64 {
        self.mbps * 12_500
    }
}

/// Results of the later half: the flow's IP bytes as a share of the lines' capacity, and the 95th percentile of the
/// echo.
#[derive(Debug)]
struct Got {
    share: f64,
    p95: Duration,
}

/// Waiting packets are handed over every `late`.
fn run(lines: &[Line], late: Duration, seconds: u64) -> Got {
    let server_at: SocketAddr = "192.0.2.2:7".parse().unwrap();
    let client_at = |line: usize| SocketAddr::from(([192, 0, 2, 10 + line as u8], 5));
    let nearest = lines[0].delay;
    let begin = Time::from_secs_f64(10.0);
    let over = begin + Duration::from_secs(seconds);
    let half = begin + Duration::from_secs(seconds / 2);
    let mut ends = [end(1, Clients::None), end(2, Clients::Any)];
    let server_key = ServerKey::Is(*StaticKey::new([2; 32]).unwrap().public());
    let connect = ConnectRequest {
        remote: server_at,
        server_key,
        suite: Suite::Aes256Gcm,
        connection: ConnectionConfig { paths: lines.len() as u8, ..configured() },
        patience: Duration::from_secs(9),
        early_data: None,
    };
    let handle = ends[0].connect(begin, connect).unwrap();
    let mut far: Option<Handle> = None;
    let cubic = FlowProtocol::read(&Spec::named("cubic"), Preset::Linux, PACKET as u32).unwrap();
    let (mut sender, mut receiver): (SimulatedSender, SimulatedReceiver) =
        narrows_sim::endpoints::build(&cubic, 0, RandomKey::from_seed(1), 1);
    let mut hand_over: Option<HandOver> = None;
    // Events by time and order: datagrams to an end, acknowledgements to the flow.
    let mut order = 0u64;
    let mut datagrams: BTreeMap<(Time, u64), (usize, SocketAddr, Vec<u8>)> = BTreeMap::new();
    let mut acks: BTreeMap<(Time, u64), Packet> = BTreeMap::new();
    let mut carried: Vec<Packet> = Vec::new();
    let mut free = vec![begin; lines.len()];
    let mut next_echo = begin + EVERY;
    let mut timer = Time::NEVER;
    let mut wait = Time::NEVER;
    let mut delivered = 0;
    let mut echoes = Vec::new();
    let mut now = begin;
    let mut opened = false;
    let mut turns = 0u64;
    while now < over {
        turns += 1;
        assert!(turns < 3_000_000, "it goes on");
        // Packets of the flow and the echo.
        let mut leaving: Vec<Vec<u8>> = Vec::new();
        // The flow begins when its packets fit into a message.
        let room =
            ends[0].connection(handle).map_or(0, |near| Near(now, RefCell::new(near)).room());
        if hand_over.is_some() && room < PACKET {
            let near = Near(now, RefCell::new(ends[0].connection(handle).unwrap()));
            near.send(&vec![0xff; room + 1], Duration::from_millis(100));
        } else if hand_over.is_some() {
            if !opened {
                opened = true;
                next_echo = now;
                sender.handle(now, SenderInput::Open);
                sender.handle(now, SenderInput::Data(u64::MAX));
            }
            if wait <= now {
                sender.handle(now, SenderInput::Timeout);
            }
            wait = loop {
                match sender.poll(now) {
                    SenderOutput::Wait(until) => break until,
                    SenderOutput::Send(sent) => {
                        leaving.push(ip(BULK, carried.len() as u64, usize::from(sent.size)));
                        carried.push(sent);
                    }
                }
            };
            if next_echo <= now {
                next_echo += EVERY;
                leaving.push(ip(ECHO, now.as_nanos(), 68));
            }
        }
        if let Some(hand_over) = &mut hand_over {
            let near = Near(now, RefCell::new(ends[0].connection(handle).unwrap()));
            for bytes in leaving {
                let _ = hand_over.push(&near, &IpPacket::read(&bytes).unwrap(), &bytes);
            }
            if timer <= now {
                hand_over.follow(&near.1.borrow().stats());
                hand_over.hand_over(&near);
                timer = Time::NEVER;
            }
            if !hand_over.is_empty() && timer.is_never() {
                timer = now + late;
            }
        }
        // Datagrams that the ends send.
        for from in 0..2 {
            ends[from].on_timeout(now);
            let mut buffer = [0; 1500];
            while let Some(transmit) = ends[from].transmit(now, &mut buffer, 1) {
                order += 1;
                let bytes = buffer[..transmit.size].to_vec();
                if from == 1 {
                    let line = (0..lines.len()).find(|line| client_at(*line) == transmit.to);
                    let delay = lines[line.unwrap()].delay;
                    datagrams.insert((now + delay, order), (0, server_at, bytes));
                    continue;
                }
                let number = usize::from(transmit.socket);
                let line = lines[number];
                let free = &mut free[number];
                let size = transmit.size as u64 + 28;
                let waits = free.since(now).as_secs_f64() * line.bytes_per_second();
                if waits as u64 + size <= line.buffer() {
                    let takes = size as f64 / line.bytes_per_second();
                    *free = (*free).max(now) + Duration::from_secs_f64(takes);
                    datagrams.insert((*free + line.delay, order), (1, client_at(number), bytes));
                }
            }
            while let Some((which, event)) = ends[from].event() {
                if !matches!(event, ConnectionEvent::Connected(_)) {
                    continue;
                }
                if from == 1 {
                    far = Some(which);
                } else {
                    let srtt = ends[0].connection(handle).unwrap().stats().srtt;
                    hand_over = HandOver::new(srtt);
                    for path in 1..lines.len() as u8 {
                        assert!(ends[0].open_path(now, handle, path));
                    }
                }
            }
        }
        if let Some(connection) = far.and_then(|far| ends[1].connection(far)) {
            while let Some(message) = connection.receive_message() {
                let packet = &message[HEAD..];
                let port = u16::from_be_bytes([packet[20], packet[21]]);
                let what = u64::from_be_bytes(packet[24..32].try_into().unwrap());
                if port == ECHO {
                    let took = now.since(Time::from_nanos(what)) + nearest;
                    echoes.extend((now > half).then_some(took));
                    continue;
                }
                if now > half {
                    delivered += packet.len() as u64;
                }
                if let Some(ack) = receiver.on_packet(now, &carried[what as usize]) {
                    order += 1;
                    acks.insert((now + nearest, order), ack);
                }
            }
        }
        // Time of the next event.
        let first = |map: Option<&(Time, u64)>| map.map_or(Time::NEVER, |key| key.0);
        let mut next =
            first(datagrams.keys().next()).min(first(acks.keys().next())).min(wait).min(timer);
        for end in &ends {
            next = next.min(end.next_timeout());
        }
        if hand_over.is_some() && !opened {
            next = next.min(now + Duration::from_millis(10));
        } else if opened {
            next = next.min(next_echo).min(receiver.next_timeout());
        }
        now = next.max(now);
        while let Some(entry) = datagrams.first_entry().filter(|e| e.key().0 <= now) {
            let (to, from, mut bytes) = entry.remove();
            ends[to].receive(now, from, 0, &mut bytes);
        }
        while let Some(entry) = acks.first_entry().filter(|e| e.key().0 <= now) {
            sender.handle(now, SenderInput::Packet(entry.remove()));
        }
        if receiver.next_timeout() <= now
            && let Some(ack) = receiver.on_timeout(now)
        {
            order += 1;
            acks.insert((now + nearest, order), ack);
        }
    }
    echoes.sort();
    let p95 = echoes[(0.95 * (echoes.len() - 1) as f64) as usize];
    let capacity: f64 = lines.iter().map(|line| line.bytes_per_second()).sum();
    let carried = over.since(half).as_secs_f64() * capacity;
    Got { share: delivered as f64 / carried, p95 }
}

fn ip(port: u16, what: u64, size: usize) -> Vec<u8> {
    let ports = [&port.to_be_bytes()[..], &[0, 80]].concat();
    let inside = [&ports[..], &what.to_be_bytes(), &vec![0; size - 32]].concat();
    let ends: [IpAddr; 2] = [[10, 0, 0, 1].into(), [10, 0, 0, 2].into()];
    build(ends[0], ends[1], TCP, &inside).unwrap()
}

/// For comparison: if the connection held packets for a second, p95 of the echo would be 140 ms at 10 Mbit/s.
#[test]
fn link_stays_full_and_echo_beside_bulk_is_short() {
    for (mbps, delay) in [(10, 20), (100, 10)] {
        let ms = Duration::from_millis;
        let delay = ms(delay);
        // The actual interval, and that of a busy machine.
        for late in [ms(1), ms(12)] {
            let got = run(&[Line { mbps, delay }], late, 16);
            let shown = format!("{mbps} Mbit/s, {late:?} late: {got:?}");
            // Headers and seals take about 5%: 1400 bytes of 1477.
            assert!(got.share > 0.9, "{shown}");
            assert!(got.p95 < delay + delay + ms(12), "{shown}");
        }
    }
}

#[test]
fn one_tcp_connection_takes_both_lines() {
    let ms = Duration::from_millis;
    let lines = [Line { mbps: 20, delay: ms(5) }, Line { mbps: 10, delay: ms(25) }];
    let got = run(&lines, ms(1), 16);
    assert!(got.share > 0.9, "{got:?}");
}
