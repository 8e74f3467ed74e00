//! Seeded schedules of faults between whole endpoints, including handshakes: with one client, or with several of which
//! some are hostile. Networks, clocks and peers misbehave. Each schedule ends soon and in bounded memory: with
//! identical bytes at the reader, or with a reason at every live endpoint.
//!
//! `NARROWS_SCHEDULES=10000` runs more than the usual number. `NARROWS_SCHEDULE=17` runs only that one and prints its
//! events. `cargo xtask faults` sets them.

mod app;
mod crowd;
mod hostile;
mod schedule;
mod world;

use crowd::{Crowd, CrowdEnding};
use hostile::Kind;
use narrows_transport::connection::Closed;
use schedule::{Ending, Schedule};
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// Schedules of a usual run.
const SCHEDULES: u64 = 500;
/// Schedules of one client per crowd, because a crowd costs that much more.
const CROWDS: u64 = 10;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Runs the requested schedules, or one for `share` of them, on all cores. Prints those that failed.
fn run_all<E: Send>(
    share: u64,
    run: impl Fn(u64) -> E + Sync,
    shown: impl Fn(u64) -> String + Sync,
) -> Vec<E> {
    let one = number("NARROWS_SCHEDULE");
    let seeds = match one {
        Some(seed) => seed..seed + 1,
        None => 0..number("NARROWS_SCHEDULES").unwrap_or(SCHEDULES).div_ceil(share),
    };
    let next = AtomicU64::new(seeds.start);
    let endings = Mutex::new(Vec::new());
    let failed = Mutex::new(BTreeSet::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                return;
            }
            let done = std::panic::catch_unwind(AssertUnwindSafe(|| run(seed)));
            if one.is_some() || done.is_err() {
                eprintln!("schedule {seed}: {}", shown(seed));
            }
            match done {
                Ok(ending) => endings.lock().unwrap().push(ending),
                Err(_) => _ = failed.lock().unwrap().insert(seed),
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..threads.min(8) {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "failed, each again with `cargo xtask faults --seed N`: {failed:?}");
    endings.into_inner().unwrap()
}

#[test]
fn every_schedule_ends_in_identical_bytes_or_a_clear_reason() {
    let run = |seed| Schedule::new(seed).run();
    summarize(&run_all(1, run, |seed| format!("{:#?}", Schedule::new(seed))));
}

#[test]
fn conforming_clients_are_served_beside_hostile_ones() {
    let run = |seed| Crowd::new(seed).run();
    summarize_crowds(&run_all(CROWDS, run, |seed| format!("{:#?}", Crowd::new(seed))));
}

/// Prints how crowds ended, and asserts that each kind of client occurred.
fn summarize_crowds(endings: &[CrowdEnding]) {
    let sum = |of: fn(&CrowdEnding) -> u64| endings.iter().map(of).sum::<u64>();
    let clients = sum(|e| e.clients as u64);
    println!(
        "{} crowds: {clients} honest clients served in {} attempts; {} handshakes of hostile ones, {} bytes from \
         them, {} to them; longest {:.0} s, at most {} bytes held by an endpoint",
        endings.len(),
        sum(|e| e.attempts as u64),
        sum(|e| e.opened),
        sum(|e| e.came_from),
        sum(|e| e.sent_to),
        endings.iter().map(|e| e.seconds).fold(0.0, f64::max),
        endings.iter().map(|e| e.held).max().unwrap_or(0),
    );
    for kind in Kind::ALL {
        let met = endings.iter().filter(|e| e.kinds.contains(&kind)).count();
        println!("  beside a {kind:?}: {met}");
        assert!(met > 0 || endings.len() < 50, "never met: {kind:?}");
    }
}

/// Prints how schedules ended, and asserts that each reason occurred.
fn summarize(endings: &[Ending]) {
    let mut whole = 0;
    let mut cut = 0;
    let mut reasons = BTreeMap::new();
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
                Closed::NoAnswer { .. } => "no answer",
                Closed::NoListener => "no listener",
                Closed::SmallPath { .. } => "small path",
                Closed::Locally => "closed here",
                other => panic!("{other:?}"),
            };
            *reasons.entry((*who, kind)).or_insert(0) += 1;
        }
    }
    let again = endings.iter().filter(|e| e.is_whole && e.attempts > 1).count();
    let most = endings.iter().map(|e| e.held).max().unwrap_or(0);
    let longest = endings.iter().map(|e| e.seconds).fold(0.0, f64::max);
    // More than the challenges of a path without data.
    let bonded = endings.iter().filter(|e| e.sent_further > 20).count();
    let updates: u64 = endings.iter().map(|e| e.updates).sum();
    println!(
        "{} schedules, {bonded} over several paths, {updates} key updates: {whole} whole ({again} of them after another attempt), {cut} with a reason; \
         longest {longest:.0} s, at most {most} bytes held by an endpoint",
        endings.len()
    );
    for ((who, kind), count) in &reasons {
        println!("  {who}: {kind}: {count}");
    }
    if endings.len() >= 500 {
        assert!(whole * 10 > endings.len() * 7 && again > 0 && cut > 0);
        assert!(bonded * 10 > endings.len(), "{bonded} over several paths");
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
