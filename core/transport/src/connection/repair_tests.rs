//! Effect of repair packets: real connections in virtual time over a network that loses the client's packets, singly or
//! in bursts.
//!
//! The tables of `docs/benchmarks.md`: `cargo test -p narrows-transport --lib repair_tests -- --ignored --nocapture`.

use super::ConnectionConfig;
use super::pair_tests::{Net, Pair, config};
use crate::streams::Side;
use narrows_base::{Duration, Rate, Time, random::RandomStream};

const RTT: Duration = Duration::from_millis(50);

/// Loss process of the client's packets.
#[derive(Debug)]
pub(crate) struct Losses {
    share: f64,
    /// Mean length of loss bursts; zero for independent losses.
    burst: Duration,
    in_burst: bool,
    /// End of the present burst, or of the gap before the next.
    until: Time,
}

impl Losses {
    pub fn new(share: f64, burst: Duration) -> Losses {
        Losses { share, burst, in_burst: false, until: Time::ZERO }
    }

    /// Whether a packet that arrives at this time is lost.
    pub fn draw(&mut self, at: Time, random: &mut RandomStream) -> bool {
        if self.burst == Duration::ZERO {
            return random.chance(self.share);
        }
        while self.until <= at {
            self.in_burst = !self.in_burst && self.until > Time::ZERO;
            let share = if self.in_burst { 1.0 } else { (1.0 - self.share) / self.share };
            let lasts = random.exponential(self.burst.as_secs_f64() * share);
            let from = if self.until == Time::ZERO { at } else { self.until };
            self.until = from + Duration::from_secs_f64(lasts);
        }
        self.in_burst
    }
}

/// 20 Mbit/s with an RTT of 50 ms, after a first transfer that measured the path's rate and loss. Without repair, the
/// server's parameters refuse it.
pub(super) fn pair(protocol: &str, is_repaired: bool, losses: Losses, seed: u64) -> Pair {
    let net = Net {
        delay: Duration::from_millis(25),
        rate: Rate::from_bps(20_000_000),
        queue: 125_000,
        ..Net::good()
    };
    let server = if is_repaired { "rrtp" } else { "rrtp(repair=off)" };
    let [ours, theirs] = [protocol, server]
        .map(|protocol| ConnectionConfig { messages_held: 1000, ..config(protocol) });
    let mut pair = Pair::of(&ours, &theirs, net, seed);
    pair.losses = Some(losses);
    pair.transfer(Side::Client, 2_000_000, 60.0).expect("the first transfer ends");
    pair.run_for(1.0);
    pair.log.clear();
    pair
}

/// Bytes sent per byte of `payload`.
fn sent_per_byte(pair: &Pair, payload: usize) -> f64 {
    let sent: usize = pair.log.iter().filter(|l| l.1 == Side::Client).map(|l| l.2).sum();
    sent as f64 / payload as f64
}

fn percentile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

const SEEDS: u64 = 5;
/// Transfers of one connection depend on each other, so percentiles of slow ones need many connections.
const MANY_SEEDS: u64 = 240;
/// Loss rates, and mean burst lengths: single packets, and the time of four full packets.
const LOSSES: [f64; 3] = [0.05, 0.1, 0.2];
const BURSTS: [(Duration, &str); 2] =
    [(Duration::ZERO, "single"), (Duration::from_millis(2), "2 ms")];
/// The default protocol, and one with a constant rate, which shows the effect of repair alone.
const PROTOCOLS: [&str; 2] = ["rrtp", "rrtp+fixed(rate=19Mbit/s)"];

/// Durations in ms of `count` consecutive transfers on this connection.
fn one_after_another(pair: &mut Pair, bytes: u64, count: usize) -> Vec<f64> {
    let transfer = |_| {
        let time = pair.transfer(Side::Client, bytes, 60.0).expect("a transfer ends");
        pair.run_for(0.3);
        time.as_secs_f64() * 1e3
    };
    (0..count).map(transfer).collect()
}

/// Median and 95th percentile of the durations of transfers in ms, with one connection per seed, and bytes sent per
/// byte.
fn transfers(
    protocol: &str,
    is_repaired: bool,
    losses: impl Fn() -> Losses,
    seeds: u64,
    bytes: u64,
    count: usize,
) -> String {
    let mut took = Vec::new();
    let mut sent = 0.0;
    for seed in 1..=seeds {
        let mut pair = pair(protocol, is_repaired, losses(), seed);
        took.extend(one_after_another(&mut pair, bytes, count));
        sent += sent_per_byte(&pair, bytes as usize * count) / seeds as f64;
    }
    took.sort_by(f64::total_cmp);
    format!("{:.0}, {:.0} ({sent:.2})", percentile(&took, 0.5), percentile(&took, 0.95))
}

#[test]
// It has no assertion and takes two minutes. The tests of repair are in `repair`.
#[ignore = "prints figures of docs/benchmarks.md for minutes and asserts nothing: -- --ignored --nocapture"]
fn completion_times_of_short_transfers() {
    for protocol in PROTOCOLS {
        println!("{protocol}");
        for (burst, name) in BURSTS {
            for loss in LOSSES {
                for (bytes, count) in [(10_000, 100), (100_000, 40), (1_000_000, 12)] {
                    print!("| {:.0}% {name} | {} kB ", loss * 100.0, bytes / 1000);
                    for is_repaired in [false, true] {
                        let losses = || Losses::new(loss, burst);
                        let took = transfers(protocol, is_repaired, losses, SEEDS, bytes, count);
                        print!("| {took} ");
                    }
                    println!("|");
                }
            }
        }
    }
}

#[test]
// It has no assertion and takes two minutes. The tests of repair are in `repair`.
#[ignore = "prints figures of docs/benchmarks.md for minutes and asserts nothing: -- --ignored --nocapture"]
fn completion_times_over_many_seeds() {
    let (burst, name) = BURSTS[1];
    for protocol in PROTOCOLS {
        print!("| {protocol}, 20% {name}, 1000 kB ");
        for is_repaired in [false, true] {
            let losses = || Losses::new(0.2, burst);
            let took = transfers(protocol, is_repaired, losses, MANY_SEEDS, 1_000_000, 12);
            print!("| {took} ");
        }
        println!("|");
    }
}

/// Groups of messages, each sent at one time.
struct MessageGroups {
    each: usize,
    bytes: usize,
    gap: Duration,
}

/// The share in % of groups that missed the deadline with a message, and bytes sent per byte.
fn missed(
    protocol: &str,
    is_repaired: bool,
    losses: impl Fn() -> Losses,
    frames: &MessageGroups,
    deadline: Duration,
) -> String {
    let count = (30.0 / frames.gap.as_secs_f64()) as usize;
    let mut whole = 0;
    let mut sent = 0.0;
    for seed in 1..=SEEDS {
        let mut pair = pair(protocol, is_repaired, losses(), seed);
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
// It has no assertion and takes two minutes. The tests of repair are in `repair`.
#[ignore = "prints figures of docs/benchmarks.md for minutes and asserts nothing: -- --ignored --nocapture"]
fn deadlines_that_messages_miss() {
    let lone = MessageGroups { each: 1, bytes: 200, gap: Duration::from_millis(20) };
    let video = MessageGroups { each: 8, bytes: 1100, gap: Duration::from_micros(33_333) };
    for protocol in PROTOCOLS {
        println!("{protocol}");
        for (burst, name) in BURSTS {
            for loss in LOSSES {
                for frames in [&lone, &video] {
                    print!("| {:.0}% {name} | {} × {} B ", loss * 100.0, frames.each, frames.bytes);
                    for is_repaired in [false, true] {
                        let losses = || Losses::new(loss, burst);
                        let deadline = RTT.mul_f64(1.5);
                        let missed = missed(protocol, is_repaired, losses, frames, deadline);
                        print!("| {missed} ");
                    }
                    println!("|");
                }
            }
        }
    }
}

/// Losses of an application-limited sender must not lower its estimate of the link, which would slow the next transfer.
/// Nine of ten transfers take little longer than with a constant rate.
///
/// The losses are single, because results with bursts vary more. These figures were measured with the controller that
/// `rrtp/alone.rs` and its neighbours replaced. With bursts the 90th percentile varied between 0.85 and 2 times the
/// constant rate's, between sets of a few seeds. With single losses it was 0.88 to 1.15 times in any eight of forty
/// seeds. When application-limited rounds counted, it exceeded 1.5 times in half of the sets.
#[test]
fn successive_transfers_over_a_lossy_link_stay_fast() {
    let ninth = |protocol| {
        let connection = |seed| pair(protocol, false, Losses::new(0.2, Duration::ZERO), seed);
        let mut took: Vec<f64> = (1..=8)
            .flat_map(|seed| one_after_another(&mut connection(seed), 1_000_000, 12))
            .collect();
        took.sort_by(f64::total_cmp);
        percentile(&took, 0.9)
    };
    let [took, held] = PROTOCOLS.map(ninth);
    assert!(took < 1.25 * held, "{took} {held}");
}
