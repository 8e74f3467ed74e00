//! Peers that forge reports. They hold the keys, seal their frames properly and acknowledge the packets that arrived,
//! but forge all other contents. No forgery may make a sender send more than twice the delivered bytes.

use super::pair_tests::{beginning, config, keys, params};
use super::{Connection, ConnectionConfig};
use crate::streams::{FlowControlLimits, Side};
use narrows_base::{Duration, RandomKey, Rate, Time, random::RandomStream};
use narrows_congestion::{Dispersion, HintSource, PathHints};
use narrows_recovery::protocol;
use narrows_wire::packet::TAG_BYTES;
use narrows_wire::report::{PacketRun, Report, ReportReason, runs};
use narrows_wire::seal::receipt_nonce;
use narrows_wire::{Frame, FrameWriter, Frames, Opener, Prelude, Sealer};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Bytes of UDP and IPv4 headers.
const HEADERS: usize = 28;
/// Bytes of a full packet on the wire.
const FULL: f64 = 1500.0;

/// Forgeries of a receiver.
#[derive(Clone, Copy, Debug)]
struct Lies {
    /// It acknowledges no packets.
    silent: bool,
    /// Feedback with the highest possible numbers.
    feedback: bool,
    /// It claims ACK delays as long as the RTT, so that RTT samples are near zero.
    delays: bool,
    /// It attributes all losses to the radio link.
    radio: bool,
    /// It acknowledges a lost packet between two that arrived.
    conceals: bool,
    /// It reports a CE mark for every packet.
    marks: bool,
    /// It sends requests only every other two seconds.
    pauses: bool,
    /// Time for which it holds acknowledgements back; then it sends them together.
    holds: Duration,
}

const NO_LIES: Lies = Lies {
    silent: false,
    feedback: false,
    delays: false,
    radio: false,
    conceals: false,
    marks: false,
    pauses: false,
    holds: Duration::ZERO,
};

/// The path that the sender must not overload: rate in bit/s, RTT in s, and a queue.
#[derive(Clone, Copy, Debug)]
struct Victim {
    rate: f64,
    rtt: f64,
}

/// Packets sent and delivered.
#[derive(Default)]
struct ForgeryTraffic {
    /// Times and bytes on the wire.
    sent: Vec<(Time, u64)>,
    delivered: Vec<(Time, u64)>,
    /// UDP payload that arrived at the sender, in bytes.
    came: u64,
}

/// A sender, its path, and a forging receiver.
struct World {
    now: Time,
    sender: Connection,
    from: SocketAddr,
    sealer: Sealer,
    opener: Opener,
    victim: Victim,
    lies: Lies,
    number: u64,
    /// Numbers of received packets with their nonces.
    got: BTreeMap<u64, u8>,
    /// Reports cover no number below.
    floor: u64,
    /// Stamp and arrival time of the newest packet.
    echo: (u32, Time),
    unsaid: bool,
    next_report: Time,
    /// When the path's link is free; packets in transit with their arrival times.
    free: Time,
    flying: VecDeque<(Time, Vec<u8>)>,
    answers: VecDeque<(Time, Vec<u8>)>,
    stream: u64,
    /// Packets sent and delivered.
    traffic: ForgeryTraffic,
    random: RandomStream,
}

/// A sender with unlimited data. It may be the client or the server.
fn world(side: Side, config: &ConnectionConfig, victim: Victim, lies: Lies) -> World {
    let huge = 1 << 40;
    let open = ConnectionConfig {
        limits: FlowControlLimits { data: huge, stream: huge, both: 16, one_way: 16 },
        ..config.clone()
    };
    let (client, server) = keys(&open, &open);
    let (ours, theirs, from) = match side {
        Side::Client => (client, server, "198.51.100.2:443"),
        Side::Server => (server, client, "192.0.2.1:5000"),
    };
    let now = Time::from_secs_f64(50.0);
    let from: SocketAddr = from.parse().unwrap();
    let hello = params(&open);
    let rtt = Duration::from_secs_f64(victim.rtt);
    let forged = Dispersion { rtt, bits: 12e3, took: Duration::from_micros(10) };
    let beginning = beginning(side, config, &hello, ours, from, Some(rtt));
    let mut sender = Connection::new(now, beginning);
    if side == Side::Client {
        sender.on_dispersion(now, &forged);
    }
    let stream = sender.open(true).unwrap();
    World {
        now,
        sender,
        from,
        sealer: theirs.sealer,
        opener: theirs.opener,
        victim,
        lies,
        number: 0,
        got: BTreeMap::new(),
        floor: 0,
        echo: (0, now),
        unsaid: false,
        next_report: now,
        free: now,
        flying: VecDeque::new(),
        answers: VecDeque::new(),
        stream,
        traffic: ForgeryTraffic { sent: Vec::new(), delivered: Vec::new(), came: 0 },
        random: RandomKey::from_seed(1).stream(),
    }
}

impl World {
    fn run(&mut self, seconds: f64, mut at_each: impl FnMut(&mut World)) {
        let until = self.now + Duration::from_secs_f64(seconds);
        let mut buffer = vec![0; 1 << 16];
        let mut steps = 0u64;
        while self.now < until {
            steps += 1;
            assert!(steps < 3_000_000, "the sender never rests");
            at_each(self);
            let pause = self.lies.pauses && self.now.as_secs_f64() % 4.0 >= 2.0;
            while !pause && self.sender.write(self.stream, &[7; 4096]).is_ok_and(|n| n > 0) {}
            while let Some(t) = self.sender.transmit(self.now, &mut buffer, 40) {
                for datagram in buffer[..t.size].chunks(t.segment) {
                    self.launch(datagram);
                }
            }
            while self.sender.event().is_some() {}
            self.report();
            let arrives = self.flying.front().map_or(Time::NEVER, |f| f.0);
            let answered = self.answers.front().map_or(Time::NEVER, |a| a.0);
            let says = if self.unsaid { self.next_report } else { Time::NEVER };
            let due = self.sender.next_timeout();
            // The longest step, for an application that pauses.
            let turn = self.now + Duration::from_millis(100);
            let next = arrives.min(answered).min(says).min(due).min(turn);
            self.now = self.now.max(next).min(until);
            while self.flying.front().is_some_and(|f| f.0 <= self.now) {
                let (_, datagram) = self.flying.pop_front().unwrap();
                self.arrive(datagram);
            }
            while self.answers.front().is_some_and(|f| f.0 <= self.now) {
                let (_, mut datagram) = self.answers.pop_front().unwrap();
                self.traffic.came += datagram.len() as u64;
                self.sender.receive(self.now, self.from, 0, &mut datagram);
            }
            if self.sender.next_timeout() <= self.now {
                self.sender.on_timeout(self.now);
            }
        }
    }

    /// Puts a datagram into the queue, which holds two round trips or ten packets.
    fn launch(&mut self, datagram: &[u8]) {
        let bytes = datagram.len() + HEADERS;
        self.traffic.sent.push((self.now, bytes as u64));
        let waits = self.free.since(self.now).as_secs_f64() * self.victim.rate / 8.0;
        let room = (2.0 * self.victim.rtt * self.victim.rate / 8.0).max(10.0 * FULL);
        if waits + bytes as f64 > room {
            return;
        }
        let took = Duration::from_secs_f64(bytes as f64 * 8.0 / self.victim.rate);
        self.free = self.free.max(self.now) + took;
        let arrives = self.free + Duration::from_secs_f64(self.victim.rtt / 2.0);
        self.flying.push_back((arrives, datagram.to_vec()));
    }

    fn arrive(&mut self, mut datagram: Vec<u8>) {
        self.traffic.delivered.push((self.now, (datagram.len() + HEADERS) as u64));
        let nonce = receipt_nonce(&datagram);
        let Ok(opened) = self.opener.open(&mut datagram) else { return };
        let Ok((prelude, _)) = Frames::read(opened.payload) else { return };
        self.got.insert(opened.number, nonce);
        self.floor = self.floor.max(prelude.least_unacked(opened.number));
        self.echo = (prelude.stamp, self.now);
        self.unsaid = !self.lies.silent;
    }

    /// The runs of a report, as the receiver claims them.
    fn told(&self) -> Vec<PacketRun> {
        let mut list: Vec<PacketRun> = Vec::new();
        let mut numbers = self.got.range(self.floor..).rev().map(|came| *came.0);
        let Some(mut last) = numbers.next() else { return list };
        let mut arrived = 1;
        for n in numbers {
            let missing = last - n - 1;
            if missing == 0 {
                arrived += 1;
            } else if missing == 1 && self.lies.conceals {
                arrived += 2;
            } else {
                list.push(PacketRun { arrived, missing, radio: self.lies.radio });
                arrived = 1;
            }
            last = n;
            if list.len() > 30 {
                break;
            }
        }
        list.push(PacketRun { arrived, missing: 0, radio: false });
        list
    }

    /// The nonce sum for these runs. Nonces of packets that did not arrive are guessed.
    fn nonce_sum(&self, told: &[PacketRun]) -> u8 {
        let mut sum = 0;
        let mut to = *self.got.last_key_value().unwrap().0 + 1;
        for run in told {
            let numbers = to - run.arrived..to;
            sum = numbers.fold(sum, |sum, n| sum ^ self.got.get(&n).copied().unwrap_or(n as u8));
            to = to.saturating_sub(run.arrived + run.missing);
        }
        sum
    }

    fn report(&mut self) {
        if !self.unsaid || self.now < self.next_report {
            return;
        }
        self.unsaid = false;
        self.next_report = self.now + self.lies.holds.mul_f64(0.5 + self.random.unit());
        let mut bytes = [0; 600];
        let told = self.told();
        let nonce_sum = self.nonce_sum(&told);
        // Extreme values for a rate, a loss rate or a ratio.
        let mut feedback = [0; 16];
        for (word, number) in feedback.chunks_exact_mut(4).zip([1e12f32, 1e12, 1e-9, 1e12]) {
            word.copy_from_slice(&number.to_be_bytes());
        }
        let us = |d: Duration| d.as_nanos() / 1000;
        let trip = Duration::from_secs_f64(self.victim.rtt) + self.now.since(self.echo.1);
        let report = Report {
            reason: ReportReason::Regular,
            highest: *self.got.last_key_value().unwrap().0,
            echo: self.echo.0,
            delay: if self.lies.delays {
                us(trip).saturating_sub(50)
            } else {
                us(self.now.since(self.echo.1))
            },
            marks: self.lies.marks.then_some(self.got.len() as u64),
            feedback: if self.lies.feedback { &feedback } else { &[] },
            nonce_sum,
            runs: runs(&mut bytes, told),
        };
        let frame = Frame::Report(report);
        let datagram = sealed(&mut self.sealer, self.number, self.now, &frame);
        self.number += 1;
        // Nonces of old packets are dropped.
        while self.got.len() > 600 {
            self.got.pop_first();
        }
        let arrives = self.now + Duration::from_secs_f64(self.victim.rtt / 2.0);
        self.answers.push_back((arrives, datagram));
    }

    /// Sends a PING, which elicits an acknowledgement.
    fn ping(&mut self) {
        let datagram = sealed(&mut self.sealer, self.number, self.now, &Frame::Ping);
        self.number += 1;
        self.answers.push_back((self.now, datagram));
    }

    /// Bytes sent beyond twice the delivered bytes, in the worst window of `window` seconds that begins at least `from`
    /// seconds after the start.
    fn excess(&self, window: f64, from: f64) -> f64 {
        let window = Duration::from_secs_f64(window);
        let begin =
            self.traffic.sent.first().map_or(self.now, |s| s.0) + Duration::from_secs_f64(from);
        let mut worst = 0.0f64;
        let mut first = 0;
        let mut bytes = 0;
        let mut came_first = 0;
        let mut came_last = 0;
        let mut came = 0;
        for (at, size) in &self.traffic.sent {
            bytes += size;
            let start = Time::from_nanos(at.as_nanos().saturating_sub(window.as_nanos()));
            while self.traffic.sent[first].0 <= start {
                bytes -= self.traffic.sent[first].1;
                first += 1;
            }
            while self.traffic.delivered.get(came_last).is_some_and(|d| d.0 <= *at) {
                came += self.traffic.delivered[came_last].1;
                came_last += 1;
            }
            while came_first < came_last && self.traffic.delivered[came_first].0 <= start {
                came -= self.traffic.delivered[came_first].1;
                came_first += 1;
            }
            if start >= begin || from == 0.0 {
                worst = worst.max(bytes as f64 - 2.0 * came as f64);
            }
        }
        worst
    }
    fn total(&self) -> u64 {
        self.traffic.sent.iter().map(|s| s.1).sum()
    }
}

fn sealed(sealer: &mut Sealer, number: u64, now: Time, frame: &Frame<'_>) -> Vec<u8> {
    let mut datagram = vec![0; 1200];
    let head = Sealer::header_len(number, None);
    let area = &mut datagram[head..1200 - TAG_BYTES];
    let mut writer = FrameWriter::new(area, Prelude::new(now, number, number)).unwrap();
    writer.frame(frame).unwrap();
    let size = head + writer.len() + TAG_BYTES;
    datagram.truncate(size);
    sealer.seal_with(number, None, &mut datagram, &[]).unwrap();
    datagram
}

/// Three round trips, including their queueing delay, but at least a second.
fn window(victim: &Victim) -> f64 {
    let queue = (2.0 * victim.rtt).max(10.0 * FULL * 8.0 / victim.rate);
    (3.0 * (victim.rtt + queue)).max(1.0)
}

/// Every listed protocol for sockets, and `fixed` with a rate set by this side's user.
fn protocols() -> Vec<String> {
    let named = protocol::every().filter(|e| e.family == protocol::Family::Rrtp).map(|e| e.name);
    let mut all: Vec<String> = named.filter(|n| !n.ends_with("fixed")).map(String::from).collect();
    all.push("rrtp+fixed(rate=20Mbit/s)".into());
    all
}

/// One terabit per second: a peer's hint may name any rate.
const ABSURD: PathHints = PathHints {
    rate: Some(Rate::from_bps(1_000_000_000_000)),
    rtt: Some(Duration::from_secs(60)),
    loss: Some(0.999),
};

/// In any window the sender sends at most twice the delivered bytes, an initial window and a probe train. While startup
/// tries a rate, it may once send in addition the bytes that the path has carried in a window.
fn is_bounded(side: Side, protocol: &str, victim: Victim, lies: Lies) {
    let mut world = world(side, &config(protocol), victim, lies);
    let mut tuned = world.now;
    world.run(20.0, |w| {
        if w.now >= tuned {
            w.sender.reconfigure(w.now, &ABSURD, HintSource::Peer);
            tuned = w.now + Duration::from_secs(1);
        }
    });
    let window = window(&victim);
    let probes = 64.0 * FULL;
    let shown = (512.0 * FULL).min(victim.rate / 8.0 * window);
    // This side's own user sets the initial window.
    let own = if protocol.contains("fixed") { 20e6 / 8.0 * victim.rtt } else { 0.0 };
    let all = world.excess(window, 0.0);
    let later = world.excess(window, window + 4.0);
    let what =
        format!("{side:?} {protocol} {victim:?} {lies:?}: {all:.0} {later:.0} bytes too many");
    assert!(all <= probes + shown + own, "{what}");
    assert_eq!(world.sender.stats().unproved, 0, "{what}");
    assert!(later <= probes, "{what}");
    let learned = world.sender.learned().rate.map_or(0.0, |r| r.as_bps() as f64) / victim.rate;
    assert!(learned <= 1.5, "{what}: learned {learned:.2} of the path's rate");
    assert!(!world.traffic.delivered.is_empty(), "{what}: nothing came");
}

const EVERYTHING: Lies = Lies { feedback: true, delays: true, radio: true, ..NO_LIES };

fn lies(rtt: f64) -> [Lies; 4] {
    let held = |seconds| Duration::from_secs_f64(seconds);
    [
        EVERYTHING,
        Lies { pauses: true, ..EVERYTHING },
        // Acknowledgements that arrive together suggest a high rate; late ones suggest a long RTT.
        Lies { delays: false, holds: held(0.3 + rtt), ..EVERYTHING },
        Lies { feedback: true, marks: true, holds: held(0.05), ..NO_LIES },
    ]
}

const PATHS: [(f64, f64); 4] = [(1e6, 0.02), (1e6, 0.6), (1e5, 0.02), (1e5, 0.6)];

/// Earlier, forged feedback with correct acknowledgements made `tear-reliable` send 1.64 Gbit/s into 1 Mbit/s, and
/// `rrtp-lasthop` 0.96 Gbit/s.
#[test]
fn false_reports_gain_at_most_twice_the_delivery_rate() {
    for protocol in protocols() {
        for (rate, rtt) in PATHS {
            lies(rtt)
                .into_iter()
                .for_each(|l| is_bounded(Side::Server, &protocol, Victim { rate, rtt }, l));
        }
    }
}

/// A client that uploads is protected in the same way. The server forges the spacing of its first reports, too.
#[test]
fn a_lying_server_makes_no_client_send_more_either() {
    for protocol in ["rrtp", "rrtp-lasthop", "tear-reliable", "rrtp+bbr", "rrtp+reno"] {
        for (rate, rtt) in PATHS {
            lies(rtt)
                .into_iter()
                .for_each(|l| is_bounded(Side::Client, protocol, Victim { rate, rtt }, l));
        }
    }
}

/// A receiver that conceals single losses claims only numbers that were sent. Without nonces it could claim one more
/// packet for each that arrived: three for arrived, lost, arrived, lost, lost.
#[test]
fn concealed_lone_losses_gain_at_most_twice_the_delivery() {
    for protocol in protocols() {
        for (rate, rtt) in PATHS {
            let victim = Victim { rate, rtt };
            let lies = Lies { conceals: true, ..EVERYTHING };
            let mut world = world(Side::Server, &config(&protocol), victim, lies);
            world.run(30.0, |_| {});
            let own = if protocol.contains("fixed") { 20e6 / 8.0 * rtt } else { 0.0 };
            let came: u64 = world.traffic.delivered.iter().map(|d| d.1).sum();
            let probes = 64.0 * FULL + victim.rate / 8.0 * window(&victim);
            let sent = world.total() as f64;
            let most = 2.0 * came as f64 + probes + own;
            assert!(sent <= most, "{protocol} {victim:?}: {sent} bytes, {came} came");
        }
    }
}

/// Earlier, a TUNE of one terabit per second and twenty requests without a report made the server send 80.5 MB for
/// 2,145 bytes. With repeated TUNE it sent 351 MB.
#[test]
fn peer_without_acks_gets_at_most_forty_bytes_per_byte() {
    let silent = Lies { silent: true, ..NO_LIES };
    for protocol in protocols() {
        for (requests, pause) in [(20, 0.01), (300, 0.2), (1000, 1.5)] {
            let victim = Victim { rate: 1e12, rtt: 0.02 };
            let mut world = world(Side::Server, &config(&protocol), victim, silent);
            let mut said = 0;
            let mut next = world.now;
            world.run(120.0, |w| {
                if said < requests && w.now >= next {
                    w.ping();
                    w.sender.reconfigure(w.now, &ABSURD, HintSource::Peer);
                    said += 1;
                    next = w.now + Duration::from_secs_f64(pause);
                }
            });
            // SYN, START and the shortest FINISH; and the server's handshake packets.
            let came = world.traffic.came + 64 + 90 + 73;
            let sent = world.total() + 57 + 240;
            assert!(sent <= 40 * came, "{protocol} {requests}: {sent} bytes for {came}");
            assert!(world.total() >= 2 * 1228, "{protocol}: honest clients lose packets, too");
        }
    }
}
