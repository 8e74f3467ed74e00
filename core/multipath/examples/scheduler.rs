//! Drives a scheduler without a transport: two links of our own, 50 Mbit/s with 10 ms and 10 Mbit/s with 40 ms one way,
//! carry 5 MB. Prints when the last byte arrives and how many bytes each path carried.
//!
//! `cargo run -p narrows-multipath --example scheduler -- ecf`

use narrows_base::{Duration, Time};
use narrows_multipath::{Choice, PathState, Piece, SCHEDULERS, TrafficClass};

/// A link that sends one packet after the other. Its sender keeps at most this many bytes in its queue.
struct Link {
    bytes_per_second: f64,
    delay: Duration,
    free: Time,
    carried: u64,
}

const QUEUE_SECONDS: f64 = 0.005;
const PACKET: u32 = 1200;

impl Link {
    /// What a transport would measure of it.
    fn state(&self, now: Time) -> PathState {
        let queue = self.free.since(now);
        let most = Duration::from_secs_f64(QUEUE_SECONDS);
        PathState {
            sendable: now + (queue - most.min(queue)),
            srtt: self.delay.saturating_mul(2) + queue,
            min_rtt: self.delay.saturating_mul(2),
            rate: self.bytes_per_second,
            ..PathState::default()
        }
    }
    /// Sends a packet; returns when it arrives.
    fn send(&mut self, now: Time, bytes: u64) -> Time {
        let took = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
        self.free = self.free.max(now) + took;
        self.carried += bytes;
        self.free + self.delay
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "earliest".into());
    let mut scheduler = (SCHEDULERS.find(&name)?.build)();
    let link = |mbps: f64, ms| Link {
        bytes_per_second: mbps * 125_000.0,
        delay: Duration::from_millis(ms),
        free: Time::ZERO,
        carried: 0,
    };
    let mut links = [link(50.0, 10), link(10.0, 40)];
    let mut now = Time::ZERO;
    let mut last = Time::ZERO;
    let mut backlog: u64 = 5_000_000;
    while backlog > 0 {
        let paths: Vec<PathState> = links.iter().map(|l| l.state(now)).collect();
        let length = backlog.min(u64::from(PACKET)) as u32;
        let piece = Piece {
            length,
            backlog,
            class: TrafficClass::Bulk,
            deadline: Time::NEVER,
            is_lost: false,
        };
        match scheduler.choose(now, &paths, &piece) {
            Choice::Send(path) => {
                last = last.max(links[path].send(now, u64::from(length)));
                scheduler.on_sent(path, length, false);
                backlog -= u64::from(length);
            }
            Choice::Wait(until) => now = until.max(now + Duration::from_nanos(1)),
        }
    }
    println!("{name}: 5 MB in {:.3} s", last.as_secs_f64());
    for (n, link) in links.iter().enumerate() {
        println!("  path {n}: {} bytes", link.carried);
    }
    Ok(())
}
