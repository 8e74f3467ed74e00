//! Detection of a receiver behind a slow link that acknowledges packets it did not receive. It is a client that seals
//! its frames properly. It learns skipped numbers from the packets that carry SKIPPED.

use super::pair_tests::{beginning, config, keys, params};
use super::{Closed, Connection, ConnectionEvent};
use crate::streams::{FlowControlLimits, Side};
use narrows_base::{Duration, Time};
use narrows_congestion::Feedback;
use narrows_recovery::protocol::STREAMS;
use narrows_wire::frame::{SKIPPED, number};
use narrows_wire::packet::TAG_BYTES;
use narrows_wire::report::{PacketRun, runs};
use narrows_wire::seal::receipt_nonce;
use narrows_wire::{
    Established, Frame, FrameWriter, Frames, Prelude, Report, ReportReason, Sealer,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

/// False acknowledgements of packets that did not arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Lie {
    /// Correct reports.
    None,
    /// All sent packets arrived at once. The test reveals the highest number sent.
    Ahead,
    /// All numbers below the highest received arrived, except those known to be skipped.
    Concealed,
    /// As `Concealed`, but only a single missing number, which the receiver can tell from a skipped one.
    Careful,
    /// As `Careful`, with a guess from the packet's whole content, except the random bits of its header.
    Knowing,
    /// One skipped number arrived.
    Skipped,
    /// A number that was never sent arrived.
    Unsent,
}

/// The link to the receiver: bit/s, bytes of queue, one-way delay.
const BPS: f64 = 1e6;
const QUEUE: f64 = 12_500.0;
const DELAY: Duration = Duration::from_millis(20);

/// Packets and bytes.
#[derive(Default)]
struct SentCounts {
    packets: u64,
    bytes: u64,
    delivered_bytes: u64,
}

/// Reports with false claims, and the packets sent before the first of them.
#[derive(Default)]
struct FalseReports {
    /// Reports with false claims, and the packets sent before the first of them.
    lies: u64,
    sent_before: u64,
}

struct World {
    now: Time,
    server: Connection,
    liar: Established,
    lie: Lie,
    /// The receiver's feedback, for controllers that use it.
    feedback: Feedback,
    number: u64,
    /// Received numbers with their nonces.
    came: BTreeMap<u64, u8>,
    /// Guessed nonces of lost packets, from their content.
    guessed: BTreeMap<u64, u8>,
    /// For these guesses: the sender's keys, and an end that opens dropped packets.
    oracle: (Established, Established),
    /// Reports with false claims, and the packets sent before the first of them.
    lied: FalseReports,
    /// Numbers known to be skipped.
    known: BTreeSet<u64>,
    echo: u32,
    /// Reports cover no number below.
    floor: u64,
    to_liar: BTreeMap<(Time, u64), (u64, Vec<u8>)>,
    to_server: BTreeMap<(Time, u64), Vec<u8>>,
    free: Time,
    order: u64,
    /// One above the highest number sent.
    next: u64,
    /// Packets and bytes.
    counts: SentCounts,
    fault: Option<(u64, &'static str)>,
}

fn client_at() -> SocketAddr {
    "192.0.2.1:5000".parse().unwrap()
}

impl World {
    fn new(protocol: &str, lie: Lie, seed: u8) -> World {
        let ours = config("rrtp");
        let mut theirs = config(protocol);
        let plenty = FlowControlLimits { data: 1 << 40, stream: 1 << 40, both: 16, one_way: 16 };
        let mut client = ours.clone();
        client.limits = plenty;
        theirs.send_buffer = 1 << 26;
        let (liar, server) = keys(&client, &theirs);
        let oracle = keys(&client, &theirs);
        let now = Time::from_secs_f64(50.0);
        let rtt = Some(DELAY + DELAY);
        let hello = params(&theirs);
        let mut begins = beginning(Side::Server, &theirs, &hello, server, client_at(), rtt);
        begins.seed = [seed; 32];
        let server = Connection::new(now, begins);
        World {
            now,
            server,
            liar,
            lie,
            feedback: forged(protocol),
            number: 0,
            came: BTreeMap::new(),
            guessed: BTreeMap::new(),
            oracle,
            lied: FalseReports { lies: 0, sent_before: 0 },
            known: BTreeSet::new(),
            echo: 0,
            floor: 0,
            to_liar: BTreeMap::new(),
            to_server: BTreeMap::new(),
            free: now,
            order: 0,
            next: 0,
            counts: SentCounts { packets: 0, bytes: 0, delivered_bytes: 0 },
            fault: None,
        }
    }

    /// Sends the server's packets through the slow link, which may drop them.
    fn flush(&mut self) {
        let mut buffer = vec![0; 1500];
        while let Some(t) = self.server.transmit(self.now, &mut buffer, 1) {
            let bytes = t.size as u64 + 28;
            let number =
                self.server.path.sender.next_number() - self.server.path.sender.skipped_below() - 1;
            self.next = number + 1;
            self.counts.packets += 1;
            self.counts.bytes += bytes;
            let waits = self.free.since(self.now).as_secs_f64() * BPS / 8.0;
            if waits + bytes as f64 > QUEUE {
                if self.lie == Lie::Knowing {
                    self.guess(number, &buffer[..t.size]);
                }
                continue;
            }
            let start = self.free.max(self.now);
            self.free = start + Duration::from_secs_f64(bytes as f64 * 8.0 / BPS);
            self.order += 1;
            let at = (self.free + DELAY, self.order);
            self.to_liar.insert(at, (number, buffer[..t.size].to_vec()));
        }
    }

    /// The nonce that the packet would have with zero as random bits.
    fn guess(&mut self, number: u64, datagram: &[u8]) {
        let mut opened = datagram.to_vec();
        let mut sealed = datagram.to_vec();
        let opener = &mut self.oracle.0.opener;
        let sealer = &mut self.oracle.1.sealer;
        let payload = opener.open(&mut opened).unwrap().payload;
        let head = datagram.len() - payload.len() - TAG_BYTES;
        sealed[head..head + payload.len()].copy_from_slice(payload);
        let acked = (head == 8).then_some(number.saturating_sub(1));
        sealer.seal(number, acked, &mut sealed).unwrap();
        self.guessed.insert(number, receipt_nonce(&sealed));
    }

    fn on_liar(&mut self, mut datagram: Vec<u8>) {
        self.counts.delivered_bytes += datagram.len() as u64 + 28;
        let nonce = receipt_nonce(&datagram);
        let opened = self.liar.opener.open(&mut datagram).unwrap();
        self.came.insert(opened.number, nonce);
        let (prelude, frames) = Frames::read(opened.payload).unwrap();
        self.echo = prelude.stamp;
        self.floor = self.floor.max(prelude.least_unacked(opened.number));
        for frame in frames {
            if let Frame::Extension { kind: SKIPPED, body } = frame.unwrap() {
                let left_out = number(body).unwrap();
                self.known.extend(opened.number - left_out..opened.number);
            }
        }
        self.report();
    }

    /// The highest number that the receiver claims, and the runs below it.
    fn claims(&self) -> (u64, Vec<PacketRun>) {
        let came = *self.came.last_key_value().unwrap().0;
        let top = match self.lie {
            Lie::Ahead => self.next - 1,
            // More than leave while the report is on its way.
            Lie::Unsent if self.counts.packets > 100 => self.next + 100,
            _ => came,
        };
        let claimed = |n: u64| {
            let known = self.known.contains(&n);
            self.came.contains_key(&n)
                || match self.lie {
                    Lie::None => false,
                    Lie::Ahead | Lie::Concealed => !known,
                    Lie::Careful | Lie::Knowing => {
                        let beside = |n: Option<u64>| n.is_none_or(|n| self.came.contains_key(&n));
                        !known && beside(n.checked_sub(1)) && beside(Some(n + 1))
                    }
                    // The last skipped number, or one that was never sent.
                    Lie::Skipped => known && self.known.last() == Some(&n),
                    Lie::Unsent => n == top && n > came,
                }
        };
        let mut list: Vec<PacketRun> = Vec::new();
        let low = top.saturating_sub(400).max(self.floor);
        let mut left = (low..=top).rev().peekable();
        while left.peek().is_some() && list.len() < 32 {
            let mut run = PacketRun { arrived: 0, missing: 0, radio: false };
            while left.next_if(|n| claimed(*n)).is_some() {
                run.arrived += 1;
            }
            while left.next_if(|n| !claimed(*n)).is_some() {
                run.missing += 1;
            }
            list.push(run);
        }
        if let Some(last) = list.last_mut() {
            last.missing = 0;
        }
        (top, list)
    }

    /// The nonce sum of the claimed packets, with guesses for unknown nonces, and whether the report has false claims.
    fn nonce_sum(&self, highest: u64, list: &[PacketRun]) -> (u8, bool) {
        let mut sum = 0;
        let mut lies = false;
        let mut to = highest + 1;
        for run in list {
            for n in to - run.arrived..to {
                lies |= !self.came.contains_key(&n);
                sum ^= self.came.get(&n).or(self.guessed.get(&n)).copied().unwrap_or(n as u8);
            }
            to = to.saturating_sub(run.arrived + run.missing);
        }
        (sum, lies)
    }

    fn report(&mut self) {
        let (highest, list) = self.claims();
        let (nonce_sum, lies) = self.nonce_sum(highest, &list);
        if lies && self.lied.lies == 0 {
            self.lied.sent_before = self.counts.packets;
        }
        self.lied.lies += u64::from(lies);
        let feedback: Vec<u8> =
            self.feedback.words().iter().flat_map(|w| w.to_be_bytes()).collect();
        let mut space = [0; 600];
        let report = Report {
            reason: ReportReason::Regular,
            highest,
            echo: self.echo,
            delay: 0,
            marks: None,
            feedback: &feedback,
            nonce_sum,
            runs: runs(&mut space, list),
        };
        let mut buffer = vec![0; 1200];
        let head = Sealer::header_len(self.number, None);
        let prelude = Prelude::new(self.now, self.number, self.number);
        let mut writer = FrameWriter::new(&mut buffer[head..1200 - TAG_BYTES], prelude).unwrap();
        writer.frame(&Frame::Report(report)).unwrap();
        let size = head + writer.len() + TAG_BYTES;
        self.liar.sealer.seal(self.number, None, &mut buffer[..size]).unwrap();
        buffer.truncate(size);
        self.number += 1;
        self.order += 1;
        self.to_server.insert((self.now + DELAY, self.order), buffer);
    }

    /// Runs for `seconds`, or until the server closes the connection.
    fn run(&mut self, seconds: u64) {
        let id = self.server.open(true).unwrap();
        let until = self.now + Duration::from_secs(seconds);
        let mut ahead = self.now;
        while self.fault.is_none() {
            while self.server.write(id, &[7; 65_536]).is_ok_and(|n| n > 0) {}
            self.flush();
            while let Some(event) = self.server.event() {
                if let ConnectionEvent::Closed(Closed::Fault { code, why }) = event {
                    self.fault = Some((code, why));
                }
            }
            let first = |k: Option<&(Time, u64)>| k.map_or(Time::NEVER, |k| k.0);
            let mut due = self.server.next_timeout();
            due = due.min(first(self.to_liar.keys().next()));
            due = due.min(first(self.to_server.keys().next()));
            if self.lie == Lie::Ahead && !self.came.is_empty() {
                due = due.min(ahead);
            }
            if due > until {
                return;
            }
            self.now = self.now.max(due);
            if self.lie == Lie::Ahead && !self.came.is_empty() && self.now >= ahead {
                ahead = self.now + Duration::from_millis(5);
                self.report();
            }
            while let Some((k, _)) = self.to_liar.first_key_value().filter(|(k, _)| k.0 <= self.now)
            {
                let k = *k;
                let (_, datagram) = self.to_liar.remove(&k).unwrap();
                self.on_liar(datagram);
            }
            while let Some((k, _)) =
                self.to_server.first_key_value().filter(|(k, _)| k.0 <= self.now)
            {
                let k = *k;
                let mut datagram = self.to_server.remove(&k).unwrap();
                self.server.receive(self.now, client_at(), 0, &mut datagram);
            }
            if self.server.next_timeout() <= self.now {
                self.server.on_timeout(self.now);
            }
        }
    }
    /// Bytes sent beyond twice the bytes that the link delivered.
    fn excess(&self) -> i64 {
        self.counts.bytes as i64 - 2 * self.counts.delivered_bytes as i64
    }
}

/// Feedback that requests 10 Mbit/s, in the format of each controller that uses feedback.
fn forged(protocol: &str) -> Feedback {
    let per_second = 10e6 / 8.0 / 1500.0;
    match protocol.trim_start_matches("rrtp+").trim_end_matches("-paper") {
        "tfrc" => Feedback::of(&[0.0, 10e6 / 8.0, 0.0]),
        "tear" | "tear-reliable" | "tear-wireless" => Feedback::of(&[per_second]),
        "rrtp-lasthop" => Feedback::of(&[1.0 / per_second, 1.0 / per_second]),
        _ => Feedback::NONE,
    }
}

fn protocols() -> impl Iterator<Item = String> {
    let fixed = |n: &str| {
        if n == "rrtp+fixed" { "rrtp+fixed(rate=10Mbit/s)".into() } else { n.to_string() }
    };
    let listed = STREAMS.iter().map(move |e| fixed(e.name));
    ["rrtp", "rrtp-lasthop", "tear-reliable"].map(String::from).into_iter().chain(listed)
}

const SECONDS: u64 = 30;

/// Runs every controller with this receiver. Prints, with `--nocapture`, the packets sent until detection and the bytes
/// beyond twice the delivered ones.
fn meet(lie: Lie, mut tracker: impl FnMut(&str, &World)) {
    println!(
        "{lie:?}: caught, lies told, packets sent before the first, and in all, bytes delivered, bytes beyond twice \
         of them"
    );
    for protocol in protocols() {
        for seed in 1..=3 {
            let mut world = World::new(&protocol, lie, seed);
            world.run(SECONDS);
            let caught = world.fault.is_some();
            let delivered = world.counts.delivered_bytes;
            println!(
                "{protocol:28} {caught:>5} {:>5} {:>6} {:>6} {delivered:>9} {:>9}",
                world.lied.lies,
                world.lied.sent_before,
                world.counts.packets,
                world.excess()
            );
            assert_eq!(world.server.stats().unproved, 0, "{protocol}");
            tracker(&protocol, &world);
        }
    }
}

/// Packets until detection: a false report passes only if its nonces were guessed, with probability 1/256.
const SOON: u64 = 200;

#[test]
fn optimistic_acks_are_detected() {
    meet(Lie::Ahead, |protocol, world| {
        assert!(
            world.fault.is_some() && world.counts.packets < SOON,
            "{protocol}: {}",
            world.counts.packets
        );
    });
}

#[test]
fn concealed_losses_are_detected_or_gain_no_rate() {
    meet(Lie::Concealed, |protocol, world| {
        let gains = world.excess() > 10 * 1500;
        assert!(!gains || world.fault.is_some(), "{protocol}: {}", world.excess());
        assert!(!gains || world.counts.packets < SOON, "{protocol}: {}", world.counts.packets);
    });
}

/// A single loss between two arrivals cannot be a skipped number, because the second packet would have reported that.
/// Only the nonce reveals the false claim. The server detects it after a round trip; until then the receiver may repeat
/// it.
#[test]
fn concealed_lone_losses_are_detected_at_once() {
    let mut lied = 0;
    meet(Lie::Careful, |protocol, world| {
        assert_eq!(world.fault.is_some(), world.lied.lies > 0, "{protocol}");
        if world.lied.lies > 0 {
            lied += 1;
            let after = world.counts.packets - world.lied.sent_before;
            assert!(after < 32, "{protocol}: {after}");
        }
    });
    assert!(lied > 20, "{lied}");
}

/// Knowledge of the lost packet's content does not help: five bits of its header are random.
#[test]
fn concealed_lone_losses_of_known_packets_are_detected_soon() {
    let mut lied = 0;
    meet(Lie::Knowing, |protocol, world| {
        assert_eq!(world.fault.is_some(), world.lied.lies > 0, "{protocol}");
        if world.lied.lies > 0 {
            lied += 1;
            let after = world.counts.packets - world.lied.sent_before;
            assert!(after < 100, "{protocol}: {after}");
        }
    });
    assert!(lied > 20, "{lied}");
}

#[test]
fn numbers_that_were_never_sent_end_the_connection() {
    for lie in [Lie::Skipped, Lie::Unsent] {
        let mut world = World::new("rrtp+cubic", lie, 1);
        world.run(SECONDS);
        let (code, why) = world.fault.unwrap_or_else(|| panic!("{lie:?}"));
        assert_eq!((code, why), (1, "a report of a packet that was never sent"));
        // Packets sent before the first false claim do not count: a skipped number must come first.
        let after = world.counts.packets - world.lied.sent_before;
        assert!(after < SOON, "{lie:?}: {after} of {}", world.counts.packets);
    }
}

#[test]
fn conforming_receiver_is_never_accused() {
    for protocol in protocols() {
        let mut world = World::new(&protocol, Lie::None, 1);
        world.feedback = Feedback::NONE;
        world.run(SECONDS);
        assert_eq!(world.fault, None, "{protocol}");
        assert!(
            !world.known.is_empty() || world.counts.packets < 500,
            "{protocol}: {}",
            world.counts.packets
        );
    }
}
