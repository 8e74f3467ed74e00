//! Rows of `bench paths`: files over two paths, their start included.

use super::runs::*;
use narrows_base::{RandomKey, Time};

/// Bytes of a short file.
const FILE: u64 = 20 << 20;
/// Share of a packet that is the application's.
const PAYLOAD: f64 = 0.957;

/// A file of 20 MiB over both paths of each profile, start included: its share of the sum of rate times (1 - loss), and of what
/// an [`oracle`] reaches.
pub(super) fn short_files(bench: &Bench) -> Result<(), String> {
    println!(
        "\n| a file of 20 MiB over | share of the sum, mean | least | share of the oracle's rate |\n|---|---|---|---|"
    );
    for profile in &PROFILES {
        let links = links(&profile.paths, "kept");
        let sum = capacity(&profile.paths);
        let mut shares = Vec::new();
        for seed in 1..=bench.seeds {
            let took = file_s(&links, FILE, &bench.ours, SECONDS, seed)?;
            shares.push(FILE as f64 * 8.0 / took / 1e6 / sum);
        }
        let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
        let least = shares.iter().copied().fold(f64::INFINITY, f64::min);
        let ideal = FILE as f64 * 8.0 / oracle(&profile.paths, FILE) / 1e6 / sum;
        println!("| {} | {mean:.2} | {least:.2} | {:.2} |", profile.name, mean / ideal);
    }
    for (name, links, limit_s) in PICOQUIC {
        let links = links.map(String::from);
        let mut longest: f64 = 0.0;
        for seed in 1..=bench.seeds {
            longest = longest.max(file_s(&links, 10_000_000, &bench.ours, SECONDS, seed)?);
        }
        println!("\n10 MB over {name}: {longest:.2} s at most, picoquic's limit is {limit_s} s");
    }
    Ok(())
}

/// Two of picoquic's tests of several paths, with the time in seconds that it permits for 10 MB.
const PICOQUIC: [(&str, [&str; 2], f64); 2] = [
    ("50 Mbit/s, 15 ms + 40 Mbit/s, 30 ms", ["50Mbit/s,15ms", "40Mbit/s,30ms"], 1.65),
    ("1 Mbit/s, 10 ms + 10 Mbit/s, 300 ms", ["1Mbit/s,10ms", "10Mbit/s,300ms"], 10.0),
];

/// Seconds that a file takes over these links, start included; `end_s` if that is less.
fn file_s(
    links: &[String],
    bytes: u64,
    protocol: &str,
    end_s: f64,
    seed: u64,
) -> Result<f64, String> {
    let source = source(&format!("transfer(size={bytes}B)"))?;
    let mut spec = network(links, &[("main", protocol, source)], seed)?;
    spec.measure_from = Time::ZERO;
    spec.end = Time::from_secs_f64(end_s);
    let result = result(&spec)?;
    let flow = &result.groups[0].flows[0];
    Ok(flow.done.map_or(end_s, |done| done.since(flow.start).as_secs_f64()))
}

/// Seconds that a file takes if each path begins with ten packets, doubles them per round trip up to its rate, no loss is felt,
/// and each packet takes the path on which it arrives first. The first path begins after its handshake of a round trip,
/// the second after one more of its own.
fn oracle(paths: &[PathText; 2], bytes: u64) -> f64 {
    struct Path {
        rtt_s: f64,
        gap_s: f64,
        /// When the present flight began, and the packets that it still has.
        began_s: f64,
        flight: u64,
        left: u64,
        /// When the next packet can leave.
        next_s: f64,
    }
    let mut begin_s = 0.0;
    let mut all: Vec<Path> = Vec::new();
    for p in paths {
        let rtt_s = 2e-3 * f64::from(p.delay_ms);
        begin_s += rtt_s;
        let gap_s = f64::from(PACKET) * 8.0 / (p.capacity() * 1e6);
        all.push(Path { rtt_s, gap_s, began_s: begin_s, flight: 10, left: 10, next_s: begin_s });
    }
    let mut arrived_s: f64 = 0.0;
    for _ in 0..(bytes as f64 / (f64::from(PACKET) * PAYLOAD)).ceil() as u64 {
        let arrival = |p: &Path| p.next_s + p.gap_s + p.rtt_s / 2.0;
        let first = if arrival(&all[0]) <= arrival(&all[1]) { 0 } else { 1 };
        let path = &mut all[first];
        arrived_s = arrived_s.max(arrival(path));
        path.next_s += path.gap_s;
        path.left -= 1;
        if path.left == 0 {
            path.flight *= 2;
            path.left = path.flight;
            path.began_s += path.rtt_s;
            path.next_s = path.next_s.max(path.began_s);
        }
    }
    arrived_s
}

/// Networks of each of De Coninck and Bonaventure's four classes (CoNEXT 2017), and the file's bytes.
const DESIGN: u64 = 253;
const DESIGN_FILE: u64 = 20_000_000;

/// A class of the design: longest RTT and longest queue, and largest loss of both paths.
struct DesignClass {
    name: &'static str,
    rtt_ms: f64,
    queue_ms: f64,
    loss: f64,
}

const DESIGN_CLASSES: [DesignClass; 4] = [
    DesignClass { name: "short RTT", rtt_ms: 50.0, queue_ms: 100.0, loss: 0.0 },
    DesignClass { name: "short RTT, loss", rtt_ms: 50.0, queue_ms: 100.0, loss: 0.025 },
    DesignClass { name: "long RTT", rtt_ms: 400.0, queue_ms: 2000.0, loss: 0.0 },
    DesignClass { name: "long RTT, loss", rtt_ms: 400.0, queue_ms: 2000.0, loss: 0.025 },
];

/// A file of 20 MB over pairs of paths drawn from the ranges of De Coninck and Bonaventure: the benefit (G - best) / (sum - best)
/// of the goodput over both paths, or (G - best) / best below the better path alone. Rates are log-uniform from 0.1 to
/// 100 Mbit/s, RTTs and queues uniform, losses uniform.
pub(super) fn design(bench: &Bench) -> Result<(), String> {
    println!(
        "\n| {DESIGN} pairs each of | gains | median benefit | 10th percentile | least |\n|---|---|---|---|---|"
    );
    for class in &DESIGN_CLASSES {
        let mut benefits = Vec::new();
        for n in 1..=DESIGN {
            let mut stream = RandomKey::from_seed(n).named(class.name).stream();
            let mut unit = || stream.unit();
            let mut link = || {
                let kbps = (100.0 * narrows_base::math::pow(1000.0, unit())).round();
                let delay_ms = (class.rtt_ms * unit() / 2.0).max(0.1);
                let queue_bytes =
                    (kbps * class.queue_ms * unit() / 8.0).max(2.0 * f64::from(PACKET));
                let loss = class.loss * unit() * 100.0;
                format!("{kbps}kbit/s,{delay_ms:.1}ms,queue={queue_bytes:.0}B,loss={loss:.2}%")
            };
            let links = [link(), link()];
            // Longer than the slowest pair needs.
            let goodput = |links: &[String]| {
                file_s(links, DESIGN_FILE, &bench.ours, 20_000.0, n).map(|took| 1.0 / took)
            };
            let both = goodput(&links)?;
            let alone = [goodput(&links[..1])?, goodput(&links[1..])?];
            let best = alone[0].max(alone[1]);
            let room = if both > best { alone[0] + alone[1] - best } else { best };
            benefits.push((both - best) / room);
        }
        benefits.sort_by(f64::total_cmp);
        let gains = benefits.iter().filter(|b| **b > 0.0).count() as f64 / DESIGN as f64;
        let at = |share: f64| benefits[(share * (DESIGN - 1) as f64) as usize];
        println!(
            "| {} | {gains:.2} | {:.2} | {:.2} | {:.2} |",
            class.name,
            at(0.5),
            at(0.1),
            at(0.0)
        );
    }
    Ok(())
}
