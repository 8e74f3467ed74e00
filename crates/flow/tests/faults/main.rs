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
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Schedules of a usual run.
const SCHEDULES: u64 = 500;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Runs one; if it fails, its message and all that the seed decides are printed.
fn run(seed: u64) -> Option<Ending> {
    let done = std::panic::catch_unwind(|| Schedule::new(seed).run());
    if done.is_err() {
        eprintln!("schedule {seed} failed: {:?}", Schedule::new(seed));
    }
    done.ok()
}

#[test]
fn every_schedule_ends_in_identical_bytes_or_a_clear_reason() {
    let one = number("NARROWS_SCHEDULE");
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None => 0..number("NARROWS_SCHEDULES").unwrap_or(SCHEDULES),
    };
    let next = AtomicU64::new(seeds.start);
    let (endings, failed) = (Mutex::new(Vec::new()), Mutex::new(BTreeSet::new()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            match run(seed) {
                Some(ending) => endings.lock().unwrap().push(ending),
                None => {
                    failed.lock().unwrap().insert(seed);
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..threads.min(8) {
            scope.spawn(work);
        }
    });
    let endings = endings.into_inner().unwrap();
    if one.is_some() {
        println!("{:#?}\n{endings:#?}", Schedule::new(seeds.start));
    }
    summarize(&endings);
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "failed, each again with `cargo xtask faults --seed N`: {failed:?}");
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
    let updates: u64 = endings.iter().map(|e| e.updates).sum();
    println!(
        "{} schedules, {updates} key updates: {whole} whole ({again} of them after another attempt), {cut} with a reason; \
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
