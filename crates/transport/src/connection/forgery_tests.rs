//! Peers that lie to whoever sends: they hold the keys, seal their frames properly and acknowledge what
//! came, and forge everything else. None may make a sender send more than twice what the path delivers.

use super::pair_tests::{beginning, config, keys, params};
use super::{Connection, ConnectionConfig};
use crate::protocol;
use crate::streams::{Limits, Side};
use narrows_base::{Duration, RandomKey, Rate, Time, random::RandomStream};
use narrows_congestion::{Dispersion, HintSource, PathHints};
use narrows_wire::packet::TAG_BYTES;
use narrows_wire::report::{Reason, Report, Run, runs};
use narrows_wire::seal::receipt_nonce;
use narrows_wire::{Frame, FrameWriter, Frames, Opener, Prelude, Sealer};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// UDP's and IPv4's headers.
const HEADERS: usize = 28;
/// A full packet's bytes on the wire.
const FULL: f64 = 1500.0;

/// What a receiver makes up.
#[derive(Clone, Copy, Debug)]
struct Lies {
    /// It acknowledges nothing at all.
    silent: bool,
    /// Feedback: every number as high as can be.
    feedback: bool,
    /// It says that it held packets back for as long as they were under way, so that round trips are none.
    delays: bool,
    /// All that is missing was lost by the radio.
    radio: bool,
    /// A packet that is missing alone is said to have come.
    conceals: bool,
    /// Every packet came with a router's mark.
    marks: bool,
    /// It asks for something every other two seconds only.
    pauses: bool,
    /// Acknowledgements wait for so long, and leave together.
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

/// The sender's victim: a path with a rate, a delay and a queue.
#[derive(Clone, Copy, Debug)]
struct Victim {
    rate: f64,
    rtt: f64,
}

/// A sender, its path, and the liar.
struct World {
    now: Time,
    sender: Connection,
    from: SocketAddr,
    sealer: Sealer,
    opener: Opener,
    victim: Victim,
    lies: Lies,
    number: u64,
    /// What came, and its nonce.
    got: BTreeMap<u64, u8>,
    /// Reports speak of nothing below.
    floor: u64,
    /// The newest packet's stamp, and when it came.
    echo: (u32, Time),
    unsaid: bool,
    next_report: Time,
    /// When the path's link is free; what is under way: when it arrives, and its bytes.
    free: Time,
    flying: VecDeque<(Time, Vec<u8>)>,
    answers: VecDeque<(Time, Vec<u8>)>,
    stream: u64,
    /// Bytes on the wire, when.
    sent: Vec<(Time, u64)>,
    delivered: Vec<(Time, u64)>,
    /// UDP payload of what came to the sender.
    came: u64,
    random: RandomStream,
}

/// The sender sends all that it can; either side may be it.
fn world(side: Side, config: &ConnectionConfig, victim: Victim, lies: Lies) -> World {
    let huge = 1 << 40;
    let open = ConnectionConfig {
        limits: Limits { data: huge, stream: huge, both: 16, one_way: 16 },
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
    let beginning = super::NewConnection {
        dispersion: (side == Side::Client).then_some(forged),
        ..beginning(side, config, &hello, ours, from, Some(rtt))
    };
    let mut sender = Connection::new(now, beginning);
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
        sent: Vec::new(),
        delivered: Vec::new(),
        came: 0,
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
            // An application that pauses is not waited for longer than this.
            let turn = self.now + Duration::from_millis(100);
            let next = arrives.min(answered).min(says).min(due).min(turn);
            self.now = self.now.max(next).min(until);
            while self.flying.front().is_some_and(|f| f.0 <= self.now) {
                let (_, datagram) = self.flying.pop_front().unwrap();
                self.arrive(datagram);
            }
            while self.answers.front().is_some_and(|f| f.0 <= self.now) {
                let (_, mut datagram) = self.answers.pop_front().unwrap();
                self.came += datagram.len() as u64;
                self.sender.receive(self.now, self.from, 0, &mut datagram);
            }
            if self.sender.next_timeout() <= self.now {
                self.sender.on_timeout(self.now);
            }
        }
    }

    /// Into the path: a queue of two round trips, or ten packets.
    fn launch(&mut self, datagram: &[u8]) {
        let bytes = datagram.len() + HEADERS;
        self.sent.push((self.now, bytes as u64));
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
        self.delivered.push((self.now, (datagram.len() + HEADERS) as u64));
        let nonce = receipt_nonce(&datagram);
        let Ok(opened) = self.opener.open(&mut datagram) else { return };
        let Ok((prelude, _)) = Frames::read(opened.payload) else { return };
        self.got.insert(opened.number, nonce);
        self.floor = self.floor.max(prelude.least_unacked(opened.number));
        self.echo = (prelude.stamp, self.now);
        self.unsaid = !self.lies.silent;
    }

    /// What arrived, as it is told.
    fn told(&self) -> Vec<Run> {
        let mut list: Vec<Run> = Vec::new();
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
                list.push(Run { arrived, missing, radio: self.lies.radio });
                arrived = 1;
            }
            last = n;
            if list.len() > 30 {
                break;
            }
        }
        list.push(Run { arrived, missing: 0, radio: false });
        list
    }

    /// The sum of what is told; the nonces of what did not come are guessed.
    fn nonce_sum(&self, told: &[Run]) -> u8 {
        let (mut sum, mut to) = (0, *self.got.last_key_value().unwrap().0 + 1);
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
        // Twice to `f32::MAX`, then small: whatever a controller takes for a rate, a loss, or a ratio.
        let mut feedback = [0; 16];
        for (word, number) in feedback.chunks_exact_mut(4).zip([1e12f32, 1e12, 1e-9, 1e12]) {
            word.copy_from_slice(&number.to_be_bytes());
        }
        let us = |d: Duration| d.as_nanos() / 1000;
        let trip = Duration::from_secs_f64(self.victim.rtt) + self.now.since(self.echo.1);
        let report = Report {
            reason: Reason::Regular,
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
        // Not all is remembered for ever.
        while self.got.len() > 600 {
            self.got.pop_first();
        }
        let arrives = self.now + Duration::from_secs_f64(self.victim.rtt / 2.0);
        self.answers.push_back((arrives, datagram));
    }

    /// Says something that asks for an answer and is none.
    fn ping(&mut self) {
        let datagram = sealed(&mut self.sealer, self.number, self.now, &Frame::Ping);
        self.number += 1;
        self.answers.push_back((self.now, datagram));
    }

    /// The worst of all windows of this length that begin so many seconds after the beginning: bytes sent
    /// beyond twice what arrived in it.
    fn excess(&self, window: f64, from: f64) -> f64 {
        let window = Duration::from_secs_f64(window);
        let begin = self.sent.first().map_or(self.now, |s| s.0) + Duration::from_secs_f64(from);
        let (mut worst, mut first, mut bytes) = (0.0f64, 0, 0);
        let (mut came_first, mut came_last, mut came) = (0, 0, 0);
        for (at, size) in &self.sent {
            bytes += size;
            let start = Time::from_nanos(at.as_nanos().saturating_sub(window.as_nanos()));
            while self.sent[first].0 <= start {
                bytes -= self.sent[first].1;
                first += 1;
            }
            while self.delivered.get(came_last).is_some_and(|d| d.0 <= *at) {
                came += self.delivered[came_last].1;
                came_last += 1;
            }
            while came_first < came_last && self.delivered[came_first].0 <= start {
                came -= self.delivered[came_first].1;
                came_first += 1;
            }
            if start >= begin || from == 0.0 {
                worst = worst.max(bytes as f64 - 2.0 * came as f64);
            }
        }
        worst
    }
    fn total(&self) -> u64 {
        self.sent.iter().map(|s| s.1).sum()
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

/// Three round trips, their queue included, or a second.
fn window(victim: &Victim) -> f64 {
    let queue = (2.0 * victim.rtt).max(10.0 * FULL * 8.0 / victim.rate);
    (3.0 * (victim.rtt + queue)).max(1.0)
}

/// Every protocol of the list over sockets, and a rate that this side's own user names for `fixed`.
fn protocols() -> Vec<String> {
    let named = protocol::every().filter(|e| e.family == protocol::Family::Rrtp).map(|e| e.name);
    let mut all: Vec<String> = named.filter(|n| !n.ends_with("fixed")).map(String::from).collect();
    all.push("rrtp+fixed(rate=20Mbit/s)".into());
    all
}

/// A terabit per second: nothing that a peer says is too much to be tried.
const ABSURD: PathHints = PathHints {
    rate: Some(Rate::from_bps(1_000_000_000_000)),
    rtt: Some(Duration::from_secs(60)),
    loss: Some(0.999),
};

/// Of what left in any window, no more than twice what arrived in it, an initial window and a train of
/// probes; while the opening tries a rate also, once, what the path has shown to carry in a window.
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
    // The initial window is what this side's own user says.
    let own = if protocol.contains("fixed") { 20e6 / 8.0 * victim.rtt } else { 0.0 };
    let (all, later) = (world.excess(window, 0.0), world.excess(window, window + 4.0));
    let what =
        format!("{side:?} {protocol} {victim:?} {lies:?}: {all:.0} {later:.0} bytes too many");
    assert!(all <= probes + shown + own, "{what}");
    assert_eq!(world.sender.stats().unproved, 0, "{what}");
    assert!(later <= probes, "{what}");
    let learned = world.sender.learned().rate.map_or(0.0, |r| r.as_bps() as f64) / victim.rate;
    assert!(learned <= 1.5, "{what}: learned {learned:.2} of the path's rate");
    assert!(!world.delivered.is_empty(), "{what}: nothing came");
}

const EVERYTHING: Lies = Lies { feedback: true, delays: true, radio: true, ..NO_LIES };

fn lies(rtt: f64) -> [Lies; 4] {
    let held = |seconds| Duration::from_secs_f64(seconds);
    [
        EVERYTHING,
        Lies { pauses: true, ..EVERYTHING },
        // Acknowledgements that come together pretend a rate; those that come late, a long path.
        Lies { delays: false, holds: held(0.3 + rtt), ..EVERYTHING },
        Lies { feedback: true, marks: true, holds: held(0.05), ..NO_LIES },
    ]
}

const PATHS: [(f64, f64); 4] = [(1e6, 0.02), (1e6, 0.6), (1e5, 0.02), (1e5, 0.6)];

/// The figures that this replaces, through 1 Mbit/s with honest acknowledgements and forged feedback:
/// `tear-reliable` sent 1.64 Gbit/s, `rrtp-lasthop` 0.96.
#[test]
fn no_lie_makes_a_controller_send_more_than_twice_what_the_path_delivers() {
    for protocol in protocols() {
        for (rate, rtt) in PATHS {
            lies(rtt)
                .into_iter()
                .for_each(|l| is_bounded(Side::Server, &protocol, Victim { rate, rtt }, l));
        }
    }
}

/// Who uploads is as safe from a server: the spacing of its answers to the opening is forged, too.
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

/// Who conceals losses where they are one by one names no number that was never sent. Without a proof that packets
/// came it has one more for each that did: of A, lost, A, lost, lost it says three.
#[test]
fn who_conceals_lone_losses_gets_twice_what_the_path_delivers_at_most() {
    for protocol in protocols() {
        for (rate, rtt) in PATHS {
            let victim = Victim { rate, rtt };
            let lies = Lies { conceals: true, ..EVERYTHING };
            let mut world = world(Side::Server, &config(&protocol), victim, lies);
            world.run(30.0, |_| {});
            let own = if protocol.contains("fixed") { 20e6 / 8.0 * rtt } else { 0.0 };
            let came: u64 = world.delivered.iter().map(|d| d.1).sum();
            let probes = 64.0 * FULL + victim.rate / 8.0 * window(&victim);
            let (sent, most) = (world.total() as f64, 2.0 * came as f64 + probes + own);
            assert!(sent <= most, "{protocol} {victim:?}: {sent} bytes, {came} came");
        }
    }
}

/// TUNE with a terabit per second, twenty requests and not one report: the server sent 80.5 MB for 2,145
/// bytes, and 351 MB when TUNE was said again and again.
#[test]
fn who_acknowledges_nothing_gets_forty_bytes_for_each_of_its_own_at_most() {
    let silent = Lies { silent: true, ..NO_LIES };
    for protocol in protocols() {
        for (requests, pause) in [(20, 0.01), (300, 0.2), (1000, 1.5)] {
            let victim = Victim { rate: 1e12, rtt: 0.02 };
            let mut world = world(Side::Server, &config(&protocol), victim, silent);
            let (mut said, mut next) = (0, world.now);
            world.run(120.0, |w| {
                if said < requests && w.now >= next {
                    w.ping();
                    w.sender.reconfigure(w.now, &ABSURD, HintSource::Peer);
                    (said, next) = (said + 1, w.now + Duration::from_secs_f64(pause));
                }
            });
            // SYN, START and the shortest FINISH; what answers them.
            let (came, sent) = (world.came + 64 + 90 + 73, world.total() + 57 + 240);
            assert!(sent <= 40 * came, "{protocol} {requests}: {sent} bytes for {came}");
            assert!(world.total() >= 2 * 1228, "{protocol}: honest clients lose packets, too");
        }
    }
}
