//! Would repair packets pay? A model: real connections in virtual time, between them a network that loses the client's
//! packets, singly or in bursts, and that adds repair packets behind the last packet of what waits to be sent. What they
//! repair arrives as soon as enough of them and of the packets that they protect have arrived; the receiver reports only
//! what came by itself. The model favours them: they know the loss rate from the start and wait for no window.
//!
//! The tables of `docs/benchmarks.md`: `cargo test -p narrows-transport --lib repair_tests -- --ignored --nocapture`.

use super::pair_tests::{Flying, Net, Pair, config};
use super::{Connection, ConnectionConfig};
use crate::streams::Side;
use narrows_base::{Duration, Rate, Time, random::RandomStream};
use narrows_wire::{Frame, Frames};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Packets with less carry nothing that is worth a repair.
const MIN_BYTES: usize = 100;
/// Packets that one group protects at most.
const MAX_GROUP: usize = 128;
const RTT: Duration = Duration::from_millis(50);
/// Of a full packet on the link.
const TRANSMISSION: Duration = Duration::from_micros(500);

/// How losses are repaired, beside retransmissions.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Repair {
    Nothing,
    /// The last packets leave twice.
    Twice,
    /// Each of n repair packets is the XOR of every n-th packet of a group.
    Xor,
    /// As many packets of a group and its repair packets suffice as the group has (Reed-Solomon).
    Code,
}

/// Of one end's packets: which are lost, and which repair them.
#[derive(Debug)]
pub(crate) struct RepairModel {
    pub side: Side,
    repair: Repair,
    loss: f64,
    /// Mean length of bursts of losses; zero for losses that do not depend on each other.
    burst: Duration,
    in_burst: bool,
    /// When that changes.
    until: Time,
    /// Bytes of repair packets for each byte sent.
    share: f64,
    /// Packets that left earlier are not repaired any more.
    span: Duration,
    /// Bytes that repair packets may have now.
    budget: f64,
    bytes: u64,
    group: Vec<Protected>,
    /// Packets that were repaired, and when.
    repaired: BTreeMap<(Time, usize), Flying>,
}

#[derive(Clone, Debug)]
struct Protected {
    left: Time,
    arrives: Time,
    lost: bool,
    flying: Flying,
}

impl RepairModel {
    fn new(repair: Repair, loss: f64, burst: Duration, margin: f64, span: Duration) -> RepairModel {
        RepairModel {
            side: Side::Client,
            repair,
            loss,
            burst,
            in_burst: false,
            until: Time::ZERO,
            share: loss + margin,
            span,
            budget: 0.0,
            bytes: 0,
            group: Vec::new(),
            repaired: BTreeMap::new(),
        }
    }

    /// Whether a packet is lost that arrives then.
    fn draw_loss(&mut self, at: Time, random: &mut RandomStream) -> bool {
        if self.burst == Duration::ZERO {
            return random.chance(self.loss);
        }
        while self.until <= at {
            self.in_burst = !self.in_burst && self.until > Time::ZERO;
            let share = if self.in_burst { 1.0 } else { (1.0 - self.loss) / self.loss };
            let lasts = random.exponential(self.burst.as_secs_f64() * share);
            let from = if self.until == Time::ZERO { at } else { self.until };
            self.until = from + Duration::from_secs_f64(lasts);
        }
        self.in_burst
    }

    /// When the next packet is repaired.
    pub fn next_repaired(&self) -> Time {
        self.repaired.keys().next().map_or(Time::NEVER, |key| key.0)
    }
    /// A packet that is repaired by now.
    pub fn take_repaired(&mut self, now: Time) -> Option<Flying> {
        let due = self.next_repaired() <= now;
        due.then(|| self.repaired.pop_first()).flatten().map(|(_, flying)| flying)
    }

    /// A packet leaves that would arrive then: whether it is lost.
    pub fn on_packet(
        &mut self,
        now: Time,
        flying: &Flying,
        at: Time,
        random: &mut RandomStream,
    ) -> bool {
        let lost = self.draw_loss(at, random);
        if self.repair != Repair::Nothing && flying.bytes.len() >= MIN_BYTES {
            self.budget += self.share * flying.bytes.len() as f64;
            self.group.push(Protected { left: now, arrives: at, lost, flying: flying.clone() });
        }
        lost
    }

    /// Nothing else waits to leave: repair packets take their place on the link.
    pub fn on_nothing_waiting(
        &mut self,
        now: Time,
        net: &Net,
        random: &mut RandomStream,
        free: &mut Time,
    ) {
        self.group.retain(|p| now.since(p.left) <= self.span);
        let excess = self.group.len().saturating_sub(MAX_GROUP);
        self.group.drain(..excess);
        let longest = self.group.iter().map(|p| p.flying.bytes.len()).max();
        let count = longest.map_or(0, |bytes| self.count(bytes));
        let Some(bytes) = longest.filter(|_| count > 0) else { return };
        let mut repairs = Vec::new();
        for _ in 0..count {
            let bits = (bytes + 28) as f64 * 8.0;
            *free = (*free).max(now) + Duration::from_secs_f64(bits / net.rate.as_bps() as f64);
            let arrives = *free + net.delay;
            repairs.push((!self.draw_loss(arrives, random)).then_some(arrives));
            self.bytes += bytes as u64;
            self.budget -= bytes as f64;
        }
        let group = std::mem::take(&mut self.group);
        let repaired = match self.repair {
            Repair::Nothing => Vec::new(),
            Repair::Twice => twice(&group, &repairs),
            Repair::Code => decoded(&group, &repairs),
            Repair::Xor => {
                let every = |n| group.iter().skip(n).step_by(count).cloned().collect::<Vec<_>>();
                (0..count).flat_map(|n| decoded(&every(n), &repairs[n..=n])).collect()
            }
        };
        for (at, flying) in repaired {
            self.repaired.insert((at, self.repaired.len()), flying);
        }
    }

    /// Repair packets for the group: as many as losses are probable, and as the budget has.
    fn count(&self, bytes: usize) -> usize {
        let affordable = (self.budget / bytes as f64) as usize;
        let expected = self.group.len() as f64 * self.loss / (1.0 - self.loss);
        let together = (self.burst.as_secs_f64() / TRANSMISSION.as_secs_f64()).max(1.0);
        let wanted = match self.repair {
            Repair::Twice => self.group.len(),
            _ => (expected + 2.0 * (expected * together).sqrt() + 1.0) as usize,
        };
        affordable.min(wanted).min(self.group.len())
    }
}

/// The last packets again, each as one of the repair packets.
fn twice(group: &[Protected], repairs: &[Option<Time>]) -> Vec<(Time, Flying)> {
    let last = group.iter().rev().zip(repairs);
    last.filter(|(p, _)| p.lost).filter_map(|(p, at)| Some(((*at)?, p.flying.clone()))).collect()
}

/// The lost packets of a group, if as many repair packets have arrived.
fn decoded(group: &[Protected], repairs: &[Option<Time>]) -> Vec<(Time, Flying)> {
    let arrived = group.iter().filter(|p| !p.lost).map(|p| p.arrives);
    let mut times: Vec<Time> = arrived.chain(repairs.iter().flatten().copied()).collect();
    times.sort();
    let Some(&at) = group.len().checked_sub(1).and_then(|last| times.get(last)) else {
        return Vec::new();
    };
    group.iter().filter(|p| p.lost).map(|p| (at, p.flying.clone())).collect()
}

impl Connection {
    /// What a repaired packet carried, without a report of it.
    pub fn receive_repaired(&mut self, now: Time, from: SocketAddr, datagram: &mut [u8]) {
        let Ok(opened) = self.opener.open(datagram) else { return };
        let Ok((_, frames)) = Frames::read(opened.payload) else { return };
        for frame in frames.flatten() {
            if matches!(frame, Frame::Stream { .. } | Frame::Datagram(_)) {
                self.on_frame(now, from, 0, &frame);
            }
        }
    }
}

/// 20 Mbit/s with an RTT of 50 ms; a first transfer has shown the sender what the path carries.
fn pair(protocol: &str, model: RepairModel, seed: u64) -> Pair {
    let net = Net {
        delay: Duration::from_millis(25),
        rate: Rate::from_bps(20_000_000),
        queue: 125_000,
        ..Net::good()
    };
    let config = ConnectionConfig { messages_held: 1000, ..config(protocol) };
    let mut pair = Pair::new(&config, net, seed);
    pair.repair = Some(model);
    pair.transfer(Side::Client, 2_000_000, 60.0).expect("the first transfer ends");
    pair.run_for(1.0);
    pair.log.clear();
    let model = pair.repair.as_mut().expect("it was set");
    (model.budget, model.bytes) = (0.0, 0);
    pair
}

/// Bytes that left for each byte of `payload`.
fn sent_per_byte(pair: &Pair, payload: usize) -> f64 {
    let sent: usize = pair.log.iter().filter(|l| l.1 == Side::Client).map(|l| l.2).sum();
    let repair = pair.repair.as_ref().map_or(0, |model| model.bytes);
    (sent as u64 + repair) as f64 / payload as f64
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

const SEEDS: u64 = 5;
/// What is lost, and for how long: single packets, and as long as four full packets take.
const LOSSES: [f64; 3] = [0.05, 0.1, 0.2];
const BURSTS: [(Duration, &str); 2] =
    [(Duration::ZERO, "single"), (Duration::from_millis(2), "2 ms")];
/// Each with the budget beyond the loss rate.
const FORMS: [(Repair, f64); 5] = [
    (Repair::Nothing, 0.0),
    (Repair::Twice, 0.03),
    (Repair::Xor, 0.03),
    (Repair::Code, 0.03),
    (Repair::Twice, 1.0),
];
/// As it is, and one that keeps its rate whatever is lost, which shows what repair alone changes.
const PROTOCOLS: [&str; 2] = ["rrtp", "rrtp+fixed(rate=19Mbit/s)"];

/// Median and 95th percentile of the times that transfers took, one after another on a connection, in ms; and bytes sent
/// for each byte.
fn transfers(protocol: &str, model: impl Fn() -> RepairModel, bytes: u64, count: usize) -> String {
    let (mut took, mut sent) = (Vec::new(), 0.0);
    for seed in 1..=SEEDS {
        let mut pair = pair(protocol, model(), seed);
        for _ in 0..count {
            let time = pair.transfer(Side::Client, bytes, 60.0).expect("a transfer ends");
            took.push(time.as_secs_f64() * 1e3);
            pair.run_for(0.3);
        }
        sent += sent_per_byte(&pair, bytes as usize * count) / SEEDS as f64;
    }
    took.sort_by(f64::total_cmp);
    format!("{:.0}, {:.0} ({sent:.2})", percentile(&took, 0.5), percentile(&took, 0.95))
}

#[test]
#[ignore = "a measurement of some minutes"]
fn completion_times_of_short_transfers() {
    for protocol in PROTOCOLS {
        println!("{protocol}");
        for (burst, name) in BURSTS {
            for loss in LOSSES {
                for (bytes, count) in [(10_000, 100), (100_000, 40), (1_000_000, 12)] {
                    print!("| {:.0}% {name} | {} kB ", loss * 100.0, bytes / 1000);
                    for (repair, margin) in FORMS {
                        let model = || RepairModel::new(repair, loss, burst, margin, RTT);
                        print!("| {} ", transfers(protocol, model, bytes, count));
                    }
                    println!("|");
                }
            }
        }
    }
}

/// Messages that leave together.
struct MessageGroups {
    each: usize,
    bytes: usize,
    gap: Duration,
    /// Messages that left earlier could not be repaired in time.
    span: Duration,
}

/// The share of frames in % of which not all arrived within the deadline, and bytes sent for each byte.
fn missed(
    protocol: &str,
    model: impl Fn() -> RepairModel,
    frames: &MessageGroups,
    deadline: Duration,
) -> String {
    let count = (30.0 / frames.gap.as_secs_f64()) as usize;
    let (mut whole, mut sent) = (0, 0.0);
    for seed in 1..=SEEDS {
        let mut pair = pair(protocol, model(), seed);
        let start = pair.now;
        let mut in_time = vec![0; count];
        for n in 0..count + 10 {
            if n < count {
                let now = pair.now;
                let mut message = vec![0; frames.bytes];
                message[..8].copy_from_slice(&(n as u64).to_be_bytes());
                for _ in 0..frames.each {
                    pair.client.send_message(now, &message, deadline).expect("it is not too long");
                }
            }
            pair.run(start + frames.gap.saturating_mul(n as u64 + 1), |pair| {
                while let Some(message) = pair.server.receive_message() {
                    let (number, _) = message.split_first_chunk().expect("it has a number");
                    let n = u64::from_be_bytes(*number);
                    let took = pair.now.since(start + frames.gap.saturating_mul(n));
                    in_time[n as usize] += usize::from(took <= deadline);
                }
                false
            });
        }
        whole += in_time.iter().filter(|n| **n >= frames.each).count();
        sent += sent_per_byte(&pair, count * frames.each * frames.bytes) / SEEDS as f64;
    }
    let missed = 1.0 - whole as f64 / (count as f64 * SEEDS as f64);
    format!("{:.1} ({sent:.2})", missed * 100.0)
}

#[test]
#[ignore = "a measurement of some minutes"]
fn deadlines_that_messages_miss() {
    let lone = MessageGroups { each: 1, bytes: 200, gap: Duration::from_millis(20), span: RTT };
    let video = MessageGroups {
        each: 8,
        bytes: 1100,
        gap: Duration::from_micros(33_333),
        span: Duration::from_millis(10),
    };
    for protocol in PROTOCOLS {
        println!("{protocol}");
        for (burst, name) in BURSTS {
            for loss in LOSSES {
                for frames in [&lone, &video] {
                    print!("| {:.0}% {name} | {} × {} B ", loss * 100.0, frames.each, frames.bytes);
                    for (repair, margin) in FORMS {
                        let model = || RepairModel::new(repair, loss, burst, margin, frames.span);
                        print!("| {} ", missed(protocol, model, frames, RTT.mul_f64(1.5)));
                    }
                    println!("|");
                }
            }
        }
    }
}

/// What the tables rest on: the model loses what it is told to lose, and its repair packets repair as many losses as they
/// are, no more.
#[test]
fn the_model_loses_and_repairs_what_it_should() {
    let arrivals = |repair, burst| {
        let model = RepairModel::new(repair, 0.2, burst, 0.05, Duration::from_millis(10));
        let mut pair = pair("rrtp+fixed(rate=19Mbit/s)", model, 1);
        let mut came = 0;
        for _ in 0..300 {
            let now = pair.now;
            for _ in 0..8 {
                pair.client.send_message(now, &[0; 1000], Duration::ZERO).expect("it is short");
            }
            pair.run_for(0.1);
            came += std::iter::from_fn(|| pair.server.receive_message()).count();
        }
        came as f64 / 2400.0
    };
    for burst in [Duration::ZERO, Duration::from_millis(2)] {
        let nothing = arrivals(Repair::Nothing, burst);
        assert!((nothing - 0.8).abs() < 0.04, "{nothing}");
    }
    let (twice, xor) =
        (arrivals(Repair::Twice, Duration::ZERO), arrivals(Repair::Xor, Duration::ZERO));
    let code = arrivals(Repair::Code, Duration::ZERO);
    // Two packets more for eight: each is lost twice with 4%; two of five, or two of ten losses are repaired.
    assert!((twice - (0.75 * 0.8 + 0.25 * 0.96)).abs() < 0.03, "{twice}");
    assert!(xor > twice + 0.02 && code > xor && code < 0.95, "{twice} {xor} {code}");
}

/// An application that sends little does not show that the link is not full: its losses must not take down what is known
/// of the link, for the next transfer would be slow. Nine in ten take little longer than for a sender that holds its rate.
#[test]
fn transfers_one_after_another_over_a_link_that_loses_stay_fast() {
    let ninth = |protocol, burst| {
        let mut took = Vec::new();
        for seed in 1..=3 {
            let model = RepairModel::new(Repair::Nothing, 0.2, burst, 0.0, RTT);
            let mut pair = pair(protocol, model, seed);
            for _ in 0..12 {
                let time = pair.transfer(Side::Client, 1_000_000, 60.0).expect("a transfer ends");
                took.push(time.as_secs_f64());
                pair.run_for(0.3);
            }
        }
        took.sort_by(f64::total_cmp);
        percentile(&took, 0.9)
    };
    for (burst, name) in BURSTS {
        let [took, held] = PROTOCOLS.map(|protocol| ninth(protocol, burst));
        assert!(took < 1.25 * held, "{name}: {took} {held}");
    }
}
