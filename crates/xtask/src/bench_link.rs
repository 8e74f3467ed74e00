//! `cargo xtask bench link`: packets per second through an emulated link, and their lateness.

use crate::flags::Flags;
use crate::real::kernel_tcp::{bulk, emulator_cpu_s, four};
use crate::real::{alternate, load, spread};
use narrows_base::{Duration, Rate};
use narrows_emulator::{
    EmulatedLink, LinkOptions, LinkStats, MIN_WINDOW_PACKETS, Namespace, WINDOW,
};
use narrows_link::{LinkConfig, QueueConfig, QueueLimit};
use std::fmt::Write as _;
use std::net::{SocketAddr, UdpSocket};
use std::time::Instant;

const PAGE: &str = "docs/link.md";
const RUNS: usize = 3;
const SECONDS: f64 = 4.0;
const WINDOWS: u32 = 10;
/// For the transfer to begin, before the windows count.
const START_S: f64 = 2.0;
/// Of IPv4 and UDP: packets have 1,500 bytes.
const PAYLOAD: usize = 1472;

/// Packets per second on the link, Gbit/s, the emulator's processor time per packet (µs), and packets that overflowed.
struct Rates {
    packets: f64,
    gbps: f64,
    cpu_us: f64,
    unread: u64,
}

/// `bench link`: `--write` writes the section of the page, `--windows N` changes how many there are.
pub fn run(args: &[String]) -> Result<(), String> {
    let (mut write, mut windows) = (false, WINDOWS);
    let mut flags = Flags::new(args);
    while let Some(flag) = flags.advance() {
        match flag {
            "--write" => write = true,
            "--windows" => windows = flags.number(1..=100)?,
            _ => return flags.unknown("--write, --windows N"),
        }
    }
    let before = load();
    let mut rows = String::new();
    let cases = [
        ("TCP, super-frames split inside", (|| tcp(true)) as fn() -> Result<Rates, String>),
        ("TCP, plain frames (the kernel splits)", || tcp(false)),
        ("UDP, a plain frame per system call", udp),
    ];
    for ((what, _), runs) in cases.iter().zip(alternate(RUNS, &cases, |(_, run)| run())?) {
        let of = |pick: fn(&Rates) -> f64| spread(runs.iter().map(pick));
        let (packets, gbps, cpu) = (of(|r| r.packets), of(|r| r.gbps), of(|r| r.cpu_us));
        let unread: u64 = runs.iter().map(|r| r.unread).sum();
        eprintln!("{what}: {:.0} packets/s, {:.2} us each, {unread} unread", packets.0, cpu.0);
        let _ = writeln!(
            rows,
            "| {what} | **{}** ({} to {}) | {:.1} | {:.2} | {unread} |",
            thousands(packets.0),
            thousands(packets.1),
            thousands(packets.2),
            gbps.0,
            cpu.0,
        );
    }
    let late = lateness(windows)?;
    eprint!("{late}");
    let section = section(&rows, &late, before);
    if !write {
        print!("{section}");
        return Ok(());
    }
    crate::section::write(PAGE, "bench link", &section)
}

/// A link that is never full.
fn fast() -> LinkConfig {
    let queue = QueueConfig { limit: QueueLimit::Packets(20_000), aqm: None };
    LinkConfig { queue, ..LinkConfig::plain(Rate::from_bps(100_000_000_000), Duration::ZERO) }
}

fn tcp(super_frames: bool) -> Result<Rates, String> {
    let options = LinkOptions { super_frames, ..LinkOptions::new(fast(), fast()) };
    let done = bulk("cubic", options, SECONDS)?;
    Ok(rates(&done.stats, done.cpu_s))
}

fn rates(stats: &LinkStats, cpu_s: f64) -> Rates {
    let packets = stats.there.packets.delivered_packets as f64;
    Rates {
        packets: packets / SECONDS,
        gbps: stats.there.packets.delivered_bytes as f64 * 8e-9 / SECONDS,
        // ACKs are carried for it, too.
        cpu_us: cpu_s * 1e6 / packets,
        unread: stats.there.unread + stats.back.unread,
    }
}

fn udp() -> Result<Rates, String> {
    let say = |e: narrows_emulator::Error| e.to_string();
    let (a, b) = (Namespace::create("a").map_err(say)?, Namespace::create("b").map_err(say)?);
    let link = EmulatedLink::between(&a, &b, LinkOptions::new(fast(), fast())).map_err(say)?;
    let to = SocketAddr::new(four(&link)?, 5001);
    let open = |n: &Namespace, at: SocketAddr| n.enter(|| UdpSocket::bind(at)).map_err(say);
    let receiver = open(&b, to)?.map_err(|e| e.to_string())?;
    let sender = open(&a, ([0, 0, 0, 0], 0).into())?.map_err(|e| e.to_string())?;
    sender.connect(to).map_err(|e| e.to_string())?;
    let patience = Some(std::time::Duration::from_millis(200));
    receiver.set_read_timeout(patience).map_err(|e| e.to_string())?;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut room = [0; PAYLOAD];
            let begun = Instant::now();
            while begun.elapsed().as_secs_f64() < SECONDS + 0.2 {
                let _ = receiver.recv(&mut room);
            }
        });
        let (begun, block) = (Instant::now(), [0; PAYLOAD]);
        while begun.elapsed().as_secs_f64() < SECONDS {
            (0..100).for_each(|_| drop(sender.send(&block)));
        }
    });
    let cpu_s = emulator_cpu_s();
    Ok(rates(&link.stop(), cpu_s))
}

/// Windows of lateness at 50 Mbit/s, as a sentence.
fn lateness(windows: u32) -> Result<String, String> {
    let config = LinkConfig {
        queue: QueueConfig { limit: QueueLimit::Packets(167), aqm: None },
        ..LinkConfig::plain(Rate::from_bps(50_000_000), Duration::from_millis(20))
    };
    let seconds = f64::from(windows) * WINDOW.as_secs_f64() + START_S;
    let there = bulk("cubic", LinkOptions::new(config.clone(), config), seconds)?.stats.there;
    let of = |pick: fn(&narrows_net::relay::Lateness) -> f64| {
        spread(there.windows.iter().map(|w| pick(w) * 1e3))
    };
    let (p99, p50) = (of(|w| w.p99_s), of(|w| w.p50_s));
    Ok(format!(
        "Lateness at 50 Mbit/s, 20 ms each way, CUBIC, in {} windows of {:.0} s (of {} packets at least each): 99th percentile \
         **{:.3} ms** in the best, {:.3} in the median, {:.3} in the worst; median of a window {:.3} ms.\n",
        there.windows.len(),
        WINDOW.as_secs_f64(),
        MIN_WINDOW_PACKETS,
        p99.1,
        p99.0,
        p99.2,
        p50.0,
    ))
}

fn section(rows: &str, late: &str, before: f64) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let version = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "Measured on {cores} cores with the load at {before:.1} before (Linux {}), sender and receiver beside the emulator. Packets of 1,500 bytes on a link \
that is never full, each queued and handed over by itself; medians of {RUNS} runs of {SECONDS:.0} s (least to most). Processor time \
is that of both threads of the link, ACKs included.\n\n\
| what | packets a second | Gbit/s | emulator's µs per packet | not read in time |\n|---|---|---|---|---|\n{rows}\n{late}\n\
Again, as root: `cargo xtask bench link` (`--write`).\n",
        version.trim()
    )
}

/// Rounded to thousands: `1,592,000`.
fn thousands(packets: f64) -> String {
    let all = (packets / 1e3).round() as u64;
    match all / 1000 {
        0 => format!("{all},000"),
        millions => format!("{millions},{:03},000", all % 1000),
    }
}
