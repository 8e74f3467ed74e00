//! Nothing is lost, whatever networks, clocks and peers do: seeded schedules of faults between two
//! whole ports, handshakes included. Each ends in identical bytes at the reader, or in a reason at
//! whoever still lives; soon, and in bounded memory.
//!
//! `NARROWS_SCHEDULES=10000` runs more than the usual number, `NARROWS_SCHEDULE=17` only that one
//! and tells its story: `cargo xtask faults` sets them.

mod app;
mod schedule;
mod world;

use narrows_flow::connection::Closed;
use schedule::{Ending, Schedule};
use std::collections::BTreeMap;

/// Schedules of a usual run.
const SCHEDULES: u64 = 500;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Runs one; what went wrong, with the seed.
fn run(seed: u64) -> Ending {
    let done = std::panic::catch_unwind(|| Schedule::new(seed).run());
    done.unwrap_or_else(|_| {
        let schedule = Schedule::new(seed);
        panic!("schedule {seed} failed (again: cargo xtask faults --seed {seed})\n{schedule:#?}")
    })
}

#[test]
fn every_schedule_ends_in_identical_bytes_or_a_clear_reason() {
    if let Some(seed) = number("NARROWS_SCHEDULE") {
        println!("{:#?}\n{:#?}", Schedule::new(seed), run(seed));
        return;
    }
    let (count, threads) = (number("NARROWS_SCHEDULES").unwrap_or(SCHEDULES), 2);
    let workers: Vec<_> = (0..threads)
        .map(|w| {
            std::thread::spawn(move || (w..count).step_by(threads as usize).map(run).collect())
        })
        .collect();
    let mut endings: Vec<Ending> = Vec::new();
    let mut failed = None;
    for worker in workers {
        match worker.join() {
            Ok::<Vec<Ending>, _>(some) => endings.extend(some),
            Err(why) => failed = Some(why),
        }
    }
    if let Some(why) = failed {
        std::panic::resume_unwind(why);
    }
    summarize(&endings);
}

/// Says how schedules ended, and that each way of ending was met.
fn summarize(endings: &[Ending]) {
    let (mut whole, mut cut, mut reasons) = (0, 0, BTreeMap::new());
    for ending in endings {
        if ending.is_whole {
            whole += 1
        } else {
            cut += 1
        }
        for (who, why) in &ending.reasons {
            let kind = match why {
                Closed::ByPeer { .. } => "closed by the peer",
                Closed::Reset => "reset",
                Closed::TimedOut => "timed out",
                Closed::NoAnswer => "no answer",
                Closed::Locally => "closed here",
                other => panic!("{other:?}"),
            };
            *reasons.entry((*who, kind)).or_insert(0) += 1;
        }
    }
    let again = endings.iter().filter(|e| e.is_whole && e.attempts > 1).count();
    let most = endings.iter().map(|e| e.held).max().unwrap_or(0);
    let longest = endings.iter().map(|e| e.seconds).fold(0.0, f64::max);
    let in_vain: Vec<u64> =
        endings.iter().filter(|e| !e.is_whole && e.both_live).map(|e| e.seed).collect();
    println!("in vain though both live: {in_vain:?}");
    println!(
        "{} schedules: {whole} whole ({again} of them after another attempt), {cut} with a reason; \
         longest {longest:.0} s, at most {most} bytes held by a port",
        endings.len()
    );
    for ((who, kind), count) in &reasons {
        println!("  {who}: {kind}: {count}");
    }
    if endings.len() >= 500 {
        assert!(whole * 10 > endings.len() * 7 && again > 0 && cut > 0);
        for reason in [
            ("client", "reset"),
            ("client", "timed out"),
            ("client", "no answer"),
            ("server", "reset"),
            ("server", "timed out"),
            ("server", "closed by the peer"),
        ] {
            assert!(reasons.contains_key(&reason), "never met: {reason:?}");
        }
    }
}
